"""Make the pictures of the documentation by running the code of its pages: `make pictures`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

import pages  # noqa: E402 (beside the tests, which run the same code)


def main(wanted: list[str]) -> None:
    """Run every page that saves figures; the n-th figure that it saves is the n-th picture that it shows."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        saved = re.findall(r"savefig\(\"([\w.-]+\.png)\"", text)
        shown = re.findall(r"!\[[^\]]*\]\(([^)]+\.png)\)", text)
        if not saved or (wanted and page.stem not in wanted):
            continue
        if len(saved) != len(shown):
            raise SystemExit(f"{page.name} saves {len(saved)} figures and shows {len(shown)}: they must be as many.")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            pages.run(page)
            for figure, picture in zip(saved, shown, strict=True):
                shutil.copy(figure, page.parent / picture)
                print(f"{page.name}: {picture}")
    if not wanted or "README" in wanted:
        day()


def day() -> None:
    """The picture of the README, which `undertow demo` draws."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.executable).with_name("undertow"), "demo", "--out", folder], check=True)
        shutil.copy(Path(folder) / "traffic.png", DOCS / "images")
    print("README.md: docs/images/traffic.png")


if __name__ == "__main__":
    main(sys.argv[1:])
