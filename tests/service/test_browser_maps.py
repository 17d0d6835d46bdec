"""The page in a real browser: maps by pointer and keys, what is missing, planes, themes, a phone, a real tracker."""

import pytest
from browsing import NEEDED, fill, serious, shot, sized, until
from processes import command, running

from undertow import Client

pytestmark = NEEDED
LABELS = [[f"router-{n}" for n in range(6)], [f"port-{n}" for n in range(5)]]
PIXELS = """
const [map, row, column, rows, columns] = arguments, canvas = document.querySelectorAll("canvas.map")[map];
const wide = canvas.width / columns, tall = canvas.height / rows;
const inside = [column * wide + 3, row * tall + 3, wide - 6, tall - 6].map(Math.round);
const { data } = canvas.getContext("2d").getImageData(...inside);
let full = 0;
for (let i = 3; i < data.length; i += 4) full += data[i] === 255;
return full / (data.length / 4);
"""
BRIGHT = """
const parts = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number);
return parts.reduce((a, b) => a + b) / 3;
"""


@pytest.fixture
def flows(tmp_path):
    with running(tmp_path / "s.db") as address, Client(address) as client:
        client.create("flows", (6, 5), dims=["router", "port"], labels=LABELS, false_alarms="1/10000")
        fill(client, anomalies=range(60, 66))
        yield address


def point(browser, row, column, rows, columns, number=0):
    """The pointer over a cell of a map."""
    from selenium.webdriver import ActionChains

    canvas = browser.find_elements("css selector", "canvas.map")[number]
    wide, tall = canvas.size["width"], canvas.size["height"]
    offset = [
        round((at + 0.5) / count * size - size / 2) for at, count, size in ((column, columns, wide), (row, rows, tall))
    ]
    return ActionChains(browser).move_to_element_with_offset(canvas, *offset)


def cell(browser):
    return browser.execute_script("return undertow.cell")


def test_a_cell_is_chosen_by_pointer_and_by_keys(browser, flows):
    from selenium.webdriver.common.keys import Keys

    browser.get(flows)
    until(browser, "undertow.frame && undertow.frame.sequence === 79")
    point(browser, 3, 2, 6, 5).click().perform()
    until(browser, "undertow.cell && !document.getElementById('cell').hidden")
    assert cell(browser) == [3, 2]
    until(browser, "document.querySelector('#cell b').textContent === 'router router-3, port port-2'")
    shot(browser, "cell")
    canvas = browser.find_elements("css selector", "canvas.map")[1]
    browser.execute_script("arguments[0].focus()", canvas)
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert browser.execute_script("return undertow.cursor") == [1, 1]
    assert "router router-1, port port-1: value" in browser.execute_script(
        "return document.getElementById('hover').textContent"
    )
    canvas.send_keys(Keys.ENTER)
    until(browser, "document.querySelector('#cell b').textContent === 'router router-1, port port-1'")
    canvas.send_keys(*[Keys.ARROW_UP] * 9, *[Keys.ARROW_LEFT] * 9)  # not beyond the edge
    assert browser.execute_script("return undertow.cursor") == [0, 0]
    assert "missing, expected" in browser.execute_script("return document.getElementById('hover').textContent")
    assert browser.execute_script("return undertow.live && undertow.frame.sequence") == 79  # the keys moved no time
    assert serious(browser) == []


def test_what_is_missing_is_hatched(browser, flows):
    browser.get(flows)
    until(browser, "undertow.frame && undertow.frame.sequence === 79 && undertow.redraws > 0")
    for number, hatched in ((0, True), (1, False), (2, True), (3, True)):  # data, mean, probability, residual
        drawn = browser.execute_script(PIXELS, number, 0, 0, 6, 5)
        assert (0.02 < drawn < 0.8) if hatched else drawn == 1
        assert browser.execute_script(PIXELS, number, 2, 3, 6, 5) == 1
    # A curve of which nothing is known, as in a finished run, is not there.
    curve = "document.querySelector('canvas[aria-label=calibration]').offsetParent"
    until(browser, curve)
    browser.execute_script("undertow.series.numbers.calibration.fill(null); dispatchEvent(new Event('resize'))")
    until(browser, f"!{curve}")
    assert serious(browser) == []


def test_any_two_modes_are_shown(browser, tmp_path):
    from selenium.webdriver.support.ui import Select

    with running(tmp_path / "s.db") as address, Client(address) as client:
        client.create("cube", (4, 3, 2), dims=["a", "b", "c"])
        fill(client, "cube", (4, 3, 2), last=5)
        browser.get(address)
        until(browser, "undertow.frame && undertow.frame.sequence === 4")
        for number, name in ((0, "c"), (1, "a")):
            Select(browser.find_elements("css selector", "#modes select")[number]).select_by_visible_text(name)
        assert browser.execute_script("return [undertow.plane.rows, undertow.plane.columns]") == [2, 0]
        browser.execute_script("const s = document.querySelector('#modes input'); s.value = 2; s.oninput()")
        point(browser, 1, 3, 2, 4).click().perform()
        until(browser, "undertow.cell")
        assert cell(browser) == [3, 2, 1]
        # To choose the mode that the other one has is to swap them.
        Select(browser.find_elements("css selector", "#modes select")[0]).select_by_visible_text("a")
        assert browser.execute_script("return [undertow.plane.rows, undertow.plane.columns]") == [0, 2]
        shot(browser, "cube")
        assert serious(browser) == []


@pytest.mark.parametrize(("width", "height"), [(1400, 1500), (390, 844)])
def test_light_and_dark_on_a_desk_and_on_a_phone(browser, flows, width, height):
    sized(browser, width, height, mobile=width < 500)
    browser.get(flows)
    until(browser, "undertow.frame && undertow.frame.sequence === 79")
    browser.execute_script("document.querySelector('#incidents .jump').click()")
    until(browser, "!undertow.live && !document.getElementById('cell').hidden")
    for theme, bright in (("light", True), ("dark", False)):
        while browser.execute_script("return document.documentElement.dataset.theme") != theme:
            browser.execute_script("document.getElementById('theme').click()")
        assert (browser.execute_script(BRIGHT) > 127) == bright
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        shot(browser, f"{theme}-{width}")
        browser.execute_script("document.querySelector('.pair section').scrollIntoView()")
        shot(browser, f"{theme}-{width}-below")
        browser.execute_script("scrollTo(0, 0)")
    browser.refresh()
    until(browser, "undertow.frame")
    assert browser.execute_script("return document.documentElement.dataset.theme") == "dark"  # it is remembered
    assert serious(browser) == []


def test_a_tracker_finds_a_failing_row_and_the_page_shows_it(browser, tmp_path):
    process, address = command("serve", "--port", 0, "--store", tmp_path / "s.db", folder=tmp_path)
    try:
        with Client(address) as client:
            client.create("flows", (6, 5), dims=["router", "port"], labels=LABELS, false_alarms="1/10000")
            fill(client, anomalies=range(60, 66))
            browser.get(address)
            until(browser, "undertow.frame && undertow.frame.sequence === 79", 60)
            until(browser, "document.querySelectorAll('#incidents li[data-id]').length === 1")
            browser.execute_script("document.querySelector('#incidents .jump').click()")
            until(browser, "undertow.frame.sequence >= 60 && undertow.frame.sequence <= 66 && !undertow.live")
            assert all(entry[0] == 2 for entry in browser.execute_script("return undertow.marks"))
            browser.execute_script("document.querySelector('#incidents .feedback').click()")
            until(browser, "document.querySelector('#incidents li').dataset.false === 'true'")
            assert client.incidents("flows")[0]["false_alarm"] is True
            names = browser.execute_script("return Object.keys(undertow.series.weights)")
            assert len(names) > 2  # predictors of a tracker
            shot(browser, "tracker")
            assert serious(browser) == []
    finally:
        process.kill()
        process.wait()
