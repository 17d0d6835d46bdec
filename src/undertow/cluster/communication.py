"""What the devices of a mesh send each other in a compiled step, counted in the program itself.

Every collective operation of the program's text counts with the bytes of its result; in a loop whose number of turns
the compiler knows, that often; of the branches of a condition the dearest one.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast")
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_CALL = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=(\{[^}]*\}|%?[\w.\-]+)")
_ARRAY = re.compile(r"\b(pred|bf16|[a-z]+\d+)\[([\d,]*)\]")
_BODY = re.compile(r"body=%?([\w.\-]+)")
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_NAME = re.compile(r'op_name="([^"]*)"')
_COLLECTIVE = re.compile(rf"= (.*?) (?:{'|'.join(COLLECTIVES)})(?:-start)?\(")


@dataclass(frozen=True)
class Communication:
    """Bytes that one device receives in one step.

    Attributes:
        sweep: In every sweep over all unknowns (an iteration).
        rest: In everything else, where each loop of unknown length has one turn: the start of the slice, one round of
            pruning and adding, and the end.
    """

    sweep: int
    rest: int


def communication(program: str) -> Communication:
    """Count the collectives of a compiled step.

    Args:
        program: Its text: ``compiled.as_text()``.
    """
    parts = dict(_computations(program))
    sweep = _sweep(parts)
    known: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in known:
            known[name] = sum(map(of_line, parts.get(name, [])))
        return known[name]

    def of_line(line: str) -> int:
        collective = _COLLECTIVE.search(line)
        if collective:
            return _bytes(collective[1])
        called = [name for name in _called(line) if name != sweep]
        if " conditional(" in line:
            return max(map(of, called), default=0)
        turns = _TURNS.search(line) if " while(" in line else None
        return (int(turns[1]) if turns else 1) * sum(map(of, called))

    entry = next(name for name, lines in parts.items() if lines[0].startswith("ENTRY"))
    return Communication(sum(map(of_line, parts[sweep])), of(entry))


def _computations(program: str) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of every computation; the first line is its head."""
    name, lines = "", list[str]()
    for line in program.splitlines():
        head = _HEAD.match(line)
        if head:
            name, lines = head[1], [line]
        elif line.startswith("}"):
            yield name, lines
        else:
            lines.append(line)


def _sweep(parts: dict[str, list[str]]) -> str:
    """The body of the loop over sweeps: the innermost that is not in a sweep itself, and holds some of it."""
    bodies = set()
    for line in itertools.chain.from_iterable(parts.values()):
        if " while(" in line and "/sweep/" not in _named(line):
            body = _BODY.search(line)
            if body and any("/sweep/" in _named(inner) for inner in parts[body[1]]):
                bodies.add(body[1])
    outer = {name for name in bodies if not bodies.isdisjoint(_BODY.findall("\n".join(parts[name])))}
    return (bodies - outer).pop()


def _named(line: str) -> str:
    found = _NAME.search(line)
    return found[1] if found else ""


def _called(line: str) -> list[str]:
    return [name for group in _CALL.findall(line) for name in re.findall(r"[\w.\-]+", group)]


def _bytes(shapes: str) -> int:
    """Of an array, or of a tuple of them, as the text writes its type."""
    total = 0
    for kind, sizes in _ARRAY.findall(shapes):
        bits = 8 if kind == "pred" else int(re.sub(r"\D", "", kind))
        total += math.prod(int(size) for size in sizes.split(",") if size) * bits // 8
    return total
