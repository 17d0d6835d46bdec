"""Make the picture of the live page: `undertow serve --demo` in a real browser (`make system` installs one)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
for folder in ("tests", "tests/service"):
    sys.path.insert(0, str(DOCS.parent / folder))

from browsing import until, window  # noqa: E402 (beside the tests, which drive the same browser)
from processes import command  # noqa: E402

SLICES = 110
"""Slices of the example until a router has failed and its incident is there."""


def main() -> None:
    """Wait for an incident of the example, jump to it, open a cell, and keep what is seen."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process, address = command("serve", "--demo", "--port", 0, "--store", "live.db", folder=folder)
        browser = window(folder, 1400, 1320)
        try:
            browser.get(f"{address}/#network-east")
            shown = "undertow.stream && undertow.stream.name === 'network-east' && undertow.frame"
            until(browser, f"{shown} && undertow.frame.sequence >= {SLICES}", 600)
            until(browser, "document.querySelector('#incidents .jump')", 60)
            browser.execute_script("document.querySelector('#incidents .jump').click()")
            until(browser, "!undertow.live && !document.getElementById('cell').hidden")
            browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
            until(browser, "undertow.redraws > 0")
            browser.save_screenshot(str(DOCS / "images" / "live-page.png"))
            print("live-page.md: images/live-page.png")
        finally:
            browser.quit()
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
