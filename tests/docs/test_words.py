"""Standard words: what the glossary has replaced does not come back."""

import re

import pytest
from pages import ROOT

RETIRED = {
    r"fore(?:tell|tells|telling|told|teller)": "predict, cross-predict",
    r"telling|tellings": "report, result",
    r"quench|quenched|quenches": "shrink noise",
    r"reheat|reheated|reheats": "reset noise",
    r"newcomers?|broods?|newborn": "candidate",
    r"speakers?": "selected",
    r"rivals?": "baseline",
    r"knobs?": "setting",
    r"entangled": "collinear",
    r"whole numbers?": "integer",
    r"in one move": "atomically",
    r"as it is met|meets? the slice": "robust initialisation",
    r"sums that (?:forget|fall apart)": "discounted statistics; separable sums",
    r"so many": "n",
    r"speaks|seated": "is selected",
    r"the door": "validation",
    r"nothing set": "default",
    r"by itself": "asynchronously; alone, on its own",
    r"at once": "immediately; together",
    r"(?<![`'\"])troubles?(?![`'\"])": "failure, problem, diagnostics",
    r"settle|settled|settles": "converged",
    r"shares? of": "fraction of",
    r"thinned|colder": "pruned; shrink noise",
    r"living components?": "active",
    r"settings made for it": "tuned per row",
}
"""Retired word, as a pattern → what to write instead (docs/developers/glossary.md)."""

KINDS = {".py", ".md", ".js", ".css", ".html", ".ipynb"}
FILES = sorted(
    [path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    + list(ROOT.glob("*.md"))
)


@pytest.mark.parametrize("word", RETIRED)
def test_retired_words_are_not_used(word):
    pattern = re.compile(rf"\b(?:{word})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line.replace("_", " "))
    ]
    assert not found, f"write {RETIRED[word]} instead:\n" + "\n".join(found)


def test_there_is_something_to_read():
    assert len(FILES) > 100
