"""Documentation runs: the README's code, and every doctest."""

import doctest
import re
from pathlib import Path

import pytest

from undertow import estimator, fleet

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/fleets.md", "docs/how-to/sparse-slices.md"])
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("module", [estimator, fleet])
def test_doctests(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (ROOT / target).exists(), f"{page.name} links to {target}, which is not there"
