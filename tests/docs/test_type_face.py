"""Pages, reports and figures are set in one type face."""

import re

from pages import ROOT

from undertow.view.drawing import FONT

FACE = f"'{FONT[0]}', Verdana, system-ui, sans-serif"


def test_style_sheets_name_one_type_face_beside_that_of_code():
    sheets = sorted((ROOT / "src").rglob("*.css"))
    assert len(sheets) > 3
    for sheet in sheets:
        for declared in re.findall(r"\bfont(?:-family)?\s*:\s*([^;}]*)", sheet.read_text()):
            if "sans-serif" in declared or "system-ui" in declared:
                assert declared.strip().endswith(FACE), f"{sheet.name}: {declared}"
