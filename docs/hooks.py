"""Pages of the site that are written by the code they describe, and pages that live elsewhere in the repository.

MkDocs calls `on_files` before it reads the pages. A text exists once: README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and
the READMEs in the source become pages here, with their links led to the site's own pages.
"""

from __future__ import annotations

import ast
import inspect
import os
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

FROM_REPOSITORY = {
    "index.md": "README.md",
    "developers/architecture.md": "ARCHITECTURE.md",
    "developers/contributing.md": "CONTRIBUTING.md",
    "developers/changelog.md": "CHANGELOG.md",
    "concepts/equations.md": "src/undertow/model/README.md",
    "how-to/add-a-baseline.md": "src/undertow/lab/baselines/README.md",
    "developers/evaluation.md": "src/undertow/lab/README.md",
}
"""Page of the site → file of the repository."""

SECTIONS = {
    "tracker": "Models",
    "estimator": "Models",
    "fleet": "Models",
    "plot": "Plots",
    "results": "Results",
    "diagnostics": "Results",
    "config": "Settings",
    "inputs": "Slices",
    "engine": "Functional core",
    "sources": "Sources",
    "runs": "Runs",
    "incidents": "Incidents",
    "client": "Service",
    "serialization": "Errors",
}
"""Package of a public name → the section of the reference it stands in."""


SEARCH_BOOST = {
    "how-to/": 3.0,
    "concepts/statuses": 4.0,
    "reference/statuses": 4.0,
    "reference/": 2.0,
    "concepts/": 2.0,
    "developers/glossary": 4.0,
}
"""What pages that answer questions weigh in the search; those that follow are for developers."""
DEVELOPERS_BOOST = 0.3


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """What users look for is found before how it came about."""
    path = page.file.src_uri
    found = (boost for start, boost in SEARCH_BOOST.items() if path.startswith(start))
    boost = next(found, DEVELOPERS_BOOST if path.startswith("developers/") else 1.0)
    page.meta.setdefault("search", {"boost": boost})
    return markdown


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those on disk."""
    for page, text in generated_pages():
        files.append(File.generated(config, page, content=text))
    return files


def generated_pages() -> Iterator[tuple[str, str]]:
    """Every page that is not a file in docs/: its address in the site, and its Markdown."""
    for page, source in FROM_REPOSITORY.items():
        yield page, with_room_between_blocks(with_links_of_the_site(page, source, (ROOT / source).read_text()))
    yield "reference/api.md", api_page()
    yield "reference/settings.md", settings_page()
    yield "reference/statuses.md", statuses_page()
    yield "reference/constants.md", constants_page()
    yield "reference/cli.md", command_line_page()
    yield "reference/baselines.md", baselines_page()
    yield "developers/decisions/index.md", decisions_page()


def with_links_of_the_site(page: str, source: str, text: str) -> str:
    """Links between files of the repository become links between pages; without a page only the words stay."""
    pages = {file: page for page, file in FROM_REPOSITORY.items()}

    def led(match: re.Match[str]) -> str:
        bang, words, target, anchor = match.groups()
        if ":" in target or not target:
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        address = file.removeprefix("docs/") if file.startswith("docs/") else pages.get(file)
        if address is None:
            return words
        return f"{bang}[{words}]({os.path.relpath(address, posixpath.dirname(page) or '.')}{anchor or ''})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", led, text)


def with_room_between_blocks(text: str) -> str:
    """An empty line before tables, lists and indented code, which MkDocs needs and repository viewers do not."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        was, kind = (match and match.lastgroup for match in (_BLOCK.match(before), _BLOCK.match(line)))
        goes_on = before.startswith(" ") and kind != "table"  # a list item's next line
        if kind and kind != was and before.strip() and not fenced and not goes_on:
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


_BLOCK = re.compile(r"(?P<table>\|)|(?P<list>(?:[-*]|\d+\.) )|(?P<code> {4})")


def public_names() -> dict[str, list[str]]:
    """Section → full names of the public objects that it documents."""
    import undertow
    from undertow import plot, runs, sources

    sections: dict[str, list[str]] = {title: [] for title in SECTIONS.values()}
    for module in (undertow, sources, runs, plot):
        for name in module.__all__:
            found = getattr(module, name)
            home = getattr(found, "__module__", "")
            if not home.startswith("undertow.") or not (inspect.isclass(found) or inspect.isfunction(found)):
                continue
            title = (
                "Errors" if inspect.isclass(found) and issubclass(found, Exception) else SECTIONS[home.split(".")[1]]
            )
            full = f"{home}.{found.__qualname__}"
            if full not in sections[title]:
                sections[title].append(full)
    adapters = ("sklearn.StreamCleaner", "river.Completer", "river.Detector", "pandas.Accessor")
    sections["Adapters"] = [f"undertow.adapters.{name}" for name in adapters]
    return {title: names for title, names in sections.items() if names}


def api_page() -> str:
    """The public interface, by mkdocstrings."""
    parts = [
        "# Python interface",
        "Everything here can be imported from `undertow`, `undertow.sources`, `undertow.runs` or `undertow.plot`; "
        "adapters from where they are. "
        "Importing `undertow` does not load JAX; the first model does.",
    ]
    for title, names in public_names().items():
        parts.append(f"## {title}")
        parts += [f"::: {name}\n    options:\n      heading_level: 3" for name in names]
    return "\n\n".join(parts) + "\n"


def settings_page() -> str:
    """Every setting of `undertow.Config`: default, what the presets change, meaning."""
    from undertow.config import PRESETS, Config

    meanings = attribute_meanings("undertow.config", "Config")
    rows = []
    for field in fields(Config):
        others = [f'{changes[field.name]!r} in "{name}"' for name, changes in PRESETS.items() if field.name in changes]
        rows.append((f"`{field.name}`", f"`{field.default!r}`", ", ".join(others) or "–", meanings[field.name]))
    return "\n".join(
        [
            "# Settings",
            "",
            "Keywords of `undertow.RobustCP`, `undertow.Fleet` and `undertow.make_config`; on the command line "
            "`--set name=value`. All are optional; which suit what: [concepts](../concepts/settings.md).",
            "",
            *table(("setting", "default", "other presets", "meaning"), rows),
            "",
            f"Presets: {', '.join(f'`{name}`' for name in PRESETS)}.",
            "",
        ]
    )


def statuses_page() -> str:
    """Every flag of a step: what it means, what to do, and whether `status.ok` is still true."""
    from undertow.diagnostics import Flags, Status

    meanings = attribute_meanings("undertow.model.flags", "Flags")
    parts = [
        "# Statuses",
        "",
        "`result.status` says how a step went. `status.ok` is true or false, `status.codes` are the names below, "
        "`str(status)` is `ok` or the advice. What statuses are for: [concepts](../concepts/statuses.md).",
        "",
    ]
    for flag in Flags:
        if flag:
            status = Status(flag)
            said = "true" if status.ok else "false"
            parts += [f"## {flag.name}", "", meanings[flag.name], "", f"> {status}", "", f"`status.ok` is {said}.", ""]
    return "\n".join(parts)


def constants_page() -> str:
    """Every constant of the model, under the headings of its file; then those of the other modules that compute."""
    source = (ROOT / "src/undertow/model/defaults.py").read_text()
    head = ("constant", "value", "what it is for")
    parts = [
        "# Constants",
        "`undertow bench ablation --replace OVER_RELAXATION=0 --replace tracker.huber.TIGHT=3` shows what one is "
        "worth: those of the CP model go by their name alone, the others by module and name.",
        "## The CP model",
        one_line(ast.get_docstring(ast.parse(source)) or ""),
    ]
    for title, first, last in sections(source):
        rows = [row for line, *row in constants(source) if first <= line < last]
        parts += [f"### {title}", "\n".join(table(head, rows))]
    for folder, title in (("tracker", "The tracker"), ("incidents", "Incidents"), ("engine", "The engine")):
        parts.append(f"## {title}")
        for path in sorted((ROOT / "src/undertow" / folder).rglob("*.py")):
            rows = [row for _, *row in constants(path.read_text())]
            if rows:
                name = ".".join(path.relative_to(ROOT / "src/undertow").with_suffix("").parts)
                parts += [f"### `{name}`", "\n".join(table(head, rows))]
    return "\n\n".join(parts) + "\n"


def constants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Constants of a module that are made of numbers: line, name, value, and the text below it or its group."""
    body = ast.parse(source).body
    for place, node in enumerate(body):
        if isinstance(node, ast.Assign) and _is_number(node.value):
            name = ast.unparse(node.targets[0]).strip("()")
            after = next((one for one in body[place:] if not isinstance(one, ast.Assign)), None)
            if name.isupper() and not name.startswith("_"):
                meaning = one_line(after.value.value) if after is not None and _is_text(after) else ""
                yield node.lineno, f"`{name}`", f"`{ast.unparse(node.value)}`", meaning


def _is_number(value: ast.expr) -> bool:
    """Numbers, and what NumPy makes of numbers."""
    values = value.values if isinstance(value, ast.Dict) else [value]
    parts = [part for one in values for part in ast.walk(one)]
    numbers = [one.value for one in parts if isinstance(one, ast.Constant)]
    called = [ast.unparse(one.func) for one in parts if isinstance(one, ast.Call)]
    plain = all(isinstance(one, (int, float)) for one in numbers)
    return bool(numbers) and plain and all(one.startswith("np.") for one in called)


def sections(source: str) -> list[tuple[str, int, int]]:
    """Headings of a file, which are comments at the margin: text, first line, line after the last."""
    lines = source.splitlines()
    starts = [number for number, line in enumerate(lines, 1) if line.startswith("# ")]
    return [(lines[a - 1][2:], a, b) for a, b in pairwise([*starts, len(lines) + 1])]


def _is_text(node: ast.stmt) -> TypeGuard[Any]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def command_line_page() -> str:
    """What ``--help`` says, of every command."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from undertow.cli.app import app

    command = get_command(app)
    context = typer.Context(command, info_name="undertow")
    text = get_docs_for_click(obj=command, ctx=context, name="undertow", title="Command line")
    return text.replace("\b\n", "").replace("\n  undertow ", "\n    undertow ").replace("\n  sensor-", "\n    sensor-")


def baselines_page() -> str:
    """Every method of the registry, with its settings."""
    from undertow.lab.baselines import METHODS

    rows = []
    for method in METHODS.values():
        config = method.configure()
        settings = ", ".join(f"`{field.name}={getattr(config, field.name)!r}`" for field in fields(config))
        takes = ["missing entries" if method.missing else "full slices only", *(["outliers"] if method.robust else [])]
        takes += [f"at most {method.most_entries} entries"] if method.most_entries else []
        tried = "; then ".join(
            " × ".join(f"`{name}` {', '.join(map(str, values))}" for name, values in stage.items())
            for stage in method.hindsight
        )
        rows.append((f"`{method.name}`", method.citation or "no model", ", ".join(takes), settings, tried or "–"))
    return "\n".join(
        [
            "# Baselines",
            "",
            "The methods that Undertow is compared with, all called the same way: "
            "[how to use them and how to add one](../how-to/add-a-baseline.md).",
            "",
            "Tables show each with its published settings and with those tried here that turn out best in hindsight: "
            "[what that means](../how-to/compare-methods.md#as-published-and-at-its-best-in-hindsight).",
            "",
            *table(("name", "from", "handles", "settings and defaults", "tried in hindsight"), rows),
            "",
        ]
    )


def decisions_page() -> str:
    """The list of records, newest number last, from the records themselves."""
    rows = []
    for path in sorted((ROOT / "docs/developers/decisions").glob("[0-9]*.md")):
        head = re.match(r"# \d+\. (.+)\n\n\*([\d-]+)\*\n", path.read_text())
        if head is None:
            raise ValueError(f"{path.name} must begin with '# NNNN. Title', an empty line and its date in italics.")
        rows.append((path.name[:4], f"[{head[1]}]({path.name})", head[2]))
    return "\n".join(
        [
            "# Decisions",
            "",
            "Why things are as they are, one short record each, with what was measured. A record is not changed when "
            "the decision is: a new one takes its place and says so.",
            "",
            *table(("", "decision", "date"), rows),
            "",
        ]
    )


def attribute_meanings(module: str, name: str) -> dict[str, str]:
    """What the source says about each attribute of a class: its docstring's Attributes, or the text below each."""
    found = griffe.load(module, search_paths=[str(ROOT / "src")])[name]
    meanings = {key: one_line(member.docstring.value) for key, member in found.members.items() if member.docstring}
    for section in griffe.parse_google(found.docstring) if found.docstring else ():
        if section.kind is griffe.DocstringSectionKind.attributes:
            meanings.update({attribute.name: one_line(attribute.description) for attribute in section.value})
    return meanings


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A Markdown table."""
    head = tuple(head)
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def one_line(text: str) -> str:
    """Without line breaks."""
    return " ".join(text.split())
