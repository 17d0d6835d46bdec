"""All criteria by name. A new one is an entry of `CRITERIA` in the file that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from undertow.lab.criteria import changes, events, generated, recorded
from undertow.lab.criteria.criterion import Criterion
from undertow.lab.names import pick

CRITERIA: Mapping[str, Criterion] = {
    criterion.name: criterion for file in (recorded, generated, events, changes) for criterion in file.CRITERIA
}
"""Every criterion by name, in the order of the table."""


def chosen(names: Sequence[str] | None) -> list[Criterion]:
    """The criteria of these names; a name that ends in a hyphen stands for all that begin with it; None for all.

    Example:
        >>> [criterion.name for criterion in chosen(["slice-", "walks"])]
        ['slice-shifted', 'slice-doubled', 'slice-noise', 'walks']
    """
    if names is None:
        return list(CRITERIA.values())
    spelled: list[str] = []
    for name in names:
        spelled += [known for known in CRITERIA if name.endswith("-") and known.startswith(name)] or [name]
    return pick("row", spelled, CRITERIA)
