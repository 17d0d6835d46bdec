"""The page in a real browser: an incident from its first slice to its answer, a restart, how quickly maps are drawn."""

import contextlib
import re
import threading
import time

import numpy as np
import psutil
from browsing import NEEDED, fill, serious, shot, slice_of, until
from processes import running, start

from undertow import Client

pytestmark = NEEDED
DRAWN = "one.getContext('2d').getImageData(0, 23, 200, 1).data.filter(x => x).length"


def test_an_anomaly_is_one_incident_that_can_be_jumped_to_and_answered(browser, tmp_path):
    with running(tmp_path / "s.db") as address, Client(address) as client:
        labels = [[f"router-{n}" for n in range(6)], [f"port-{n}" for n in range(5)]]
        client.create("flows", (6, 5), dims=["router", "port"], labels=labels, false_alarms="1/10000")
        client.create("cube", (4, 3, 2), dims=["a", "b", "c"])
        fill(client, "cube", (4, 3, 2), last=5)
        fill(client, anomalies=range(60, 66))
        browser.get(address + "/#flows")
        until(browser, "undertow.frame && undertow.frame.sequence === 79")
        until(browser, "document.querySelectorAll('#incidents li[data-id]').length === 1")
        assert "router-2" in browser.execute_script("return document.querySelector('#incidents .jump').textContent")
        dates = browser.execute_script("return [...document.querySelectorAll('.jump .date')].map(x => x.textContent)")
        assert len(dates) == 2
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", one) for one in dates)  # none is broken
        browser.execute_script("document.querySelector('#incidents .jump').click()")
        until(browser, "undertow.frame.sequence >= 60 && undertow.frame.sequence <= 66 && !undertow.live")
        assert all(entry[0] == 2 for entry in browser.execute_script("return undertow.marks"))
        until(browser, "!document.getElementById('cell').hidden")
        assert "router router-2" in browser.execute_script("return document.querySelector('#cell b').textContent")
        browser.execute_script("document.querySelector('#incidents .feedback').click()")
        until(browser, "document.querySelector('#incidents li').dataset.false === 'true'")
        assert client.incidents("flows")[0]["false_alarm"] is True
        shot(browser, "incident")
        # Colours span what was observed, too, but for the outliers: the mean is flat here, noise is 1, a row 30 off.
        low, high = browser.execute_script(
            "return [...document.querySelectorAll('.key span')].map(x => x.textContent)"
        )[:2]
        assert float(low) < 9
        assert 11 < float(high) < 15
        # Numbers under the pointer, of a cell and of a curve; labels beside the maps; what was before in the overview.
        from selenium.webdriver import ActionChains

        for selector in ("canvas.map", "#curves canvas"):
            ActionChains(browser).move_to_element(browser.find_element("css selector", selector)).perform()
        assert "router router-" in browser.execute_script("return document.getElementById('hover').textContent")
        until(browser, "document.querySelector('#curves output').textContent.startsWith('1 at 20')")
        assert browser.execute_script("return document.querySelector('.rows i').textContent") == "router-0"
        until(browser, f"[...document.querySelectorAll('nav canvas')].some(one => {DRAWN} > 60)")
        # Scrubbing, by the slider and by keys.
        browser.execute_script("const t = document.getElementById('time'); t.value = 7; t.oninput()")
        until(browser, "undertow.frame.sequence === 7")
        browser.execute_script(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
        )
        until(browser, "undertow.frame.sequence === 8")
        # Back to live: maps and curves move.
        browser.execute_script("document.getElementById('live').click()")
        fill(client, first=80, last=90)
        until(browser, "undertow.frame.sequence === 89 && undertow.series.sequence.at(-1) === 89")
        # More than two modes: another plane.
        browser.execute_script(
            "[...document.querySelectorAll('#streams button')].find(b => b.textContent.includes('cube')).click()"
        )
        until(browser, "undertow.stream.name === 'cube' && undertow.frame && document.querySelector('#modes input')")
        browser.execute_script("const s = document.querySelector('#modes input'); s.value = 1; s.oninput()")
        assert browser.execute_script("return undertow.plane.fixed") == [0, 0, 1]
        assert serious(browser) == []


def test_the_page_goes_on_when_a_router_comes_for_which_there_was_no_row(browser, tmp_path):
    with running(tmp_path / "s.db") as address, Client(address) as client:
        client.create("flows", (2, 3), dims=["router", "port"], labels=[["a", None], ["x", "y", "z"]])
        for x in np.random.default_rng(0).normal(10, 1, (4, 1, 3)):
            client.push("flows", x, labels=[["a"], None])
        browser.get(address + "/#flows")
        until(browser, "undertow.frame && undertow.frame.sequence === 3 && undertow.frame.data.length === 6")
        client.push("flows", np.ones((3, 3)), labels=[["b", "c", "d"], None])
        until(browser, "undertow.frame && undertow.frame.sequence === 4 && undertow.stream.shape[0] === 4")
        until(browser, "[...document.querySelectorAll('.rows i')].some(one => one.textContent === 'd')")
        browser.execute_script("const t = document.getElementById('time'); t.value = 1; t.oninput()")
        until(browser, "undertow.frame.sequence === 1 && undertow.frame.data.length === 12")
        assert serious(browser) == []


ROWS = """
const done = arguments[0];
import("/page/chart.js").then(({ Chart }) => {
  const box = document.body.appendChild(document.createElement("div"));
  box.style.width = "400px";
  const chart = new Chart(box, "cell"), xs = [0, 1, 2, 3];
  const line = { values: [0, 1, 0, 1], colour: "#ff0000" };
  chart.draw(xs, [line, { values: [null, null, 1000, null], colour: "#0000ff", dots: 3, far: true }]);
  const { width, height } = chart.canvas, red = new Set(), blue = new Set();
  const { data } = chart.canvas.getContext("2d").getImageData(0, 0, width, height);
  for (let i = 0; i < data.length; i += 4) {
    const row = Math.floor(i / 4 / width);
    if (data[i] > 200 && data[i + 1] + data[i + 2] < 100 && data[i + 3] > 128) red.add(row);
    if (data[i + 2] > 200 && data[i] + data[i + 1] < 100 && data[i + 3] > 128) blue.add(row);
  }
  done([height, red.size, blue.size, Math.max(...blue)]);
});
"""


def test_what_lies_far_off_does_not_flatten_a_curve(browser, tmp_path):
    with running(tmp_path / "s.db") as address:
        browser.get(address)
        height, line, arrow, lowest = browser.execute_async_script(ROWS)
        assert line > 0.3 * height  # else it would be a line at the bottom
        assert arrow > 0
        assert lowest < 0.2 * height  # at the upper edge
        assert serious(browser) == []


def test_the_page_comes_back_after_a_restart(browser, tmp_path):
    process, address = start(tmp_path / "s.db")
    port = int(address.rpartition(":")[2])
    with Client(address) as client:
        client.create("flows", (6, 5))
        fill(client, last=10)
        browser.get(address)
        until(browser, "undertow.frame && undertow.frame.sequence === 9")
        process.kill()
        process.wait()
        until(browser, "document.getElementById('connection').dataset.state === 'off'")
        with running(tmp_path / "s.db", port):
            until(browser, "document.getElementById('connection').dataset.state === 'on'")
            fill(client, first=10, last=15)
            until(browser, "undertow.frame.sequence === 14")
            # While the service is away the browser itself says that it does not answer; nothing else is wrong.
            away = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "WebSocket")
            assert [one for one in serious(browser) if not any(word in one["message"] for word in away)] == []
            fill(client, first=15, last=20)
            until(browser, "undertow.frame.sequence === 19")
            assert serious(browser) == []


def test_redraws_of_a_large_stream(browser, tmp_path, record_property):
    """Asked: 15 a second. Its processor time says what a machine can do that has other work now."""
    process, address = start(tmp_path / "s.db")
    stop, sent, measured = threading.Event(), [0], 10.0
    with Client(address) as client:
        client.create("video", (144, 176))
        slices = [slice_of(number, (144, 176)) for number in range(20)]
        browser.get(address)

        def feed():
            while not stop.is_set():
                client.push("video", slices[sent[0] % 20], fields="")
                sent[0] += 1

        several = [threading.Thread(target=feed) for _ in range(3)]  # the next one is there when one is learned
        for thread in several:
            thread.start()
        try:
            until(browser, "undertow.redraws > 5", 60)
            service, pages = psutil.Process(process.pid), psutil.Process(browser.service.process.pid)
            before = *_spent(service, pages), browser.execute_script("return undertow.redraws"), sent[0]
            began, costs = time.monotonic(), []
            while time.monotonic() - began < measured:
                costs.append(browser.execute_script("return undertow.drawMs"))
                time.sleep(0.5)
            after = *_spent(service, pages), browser.execute_script("return undertow.redraws"), sent[0]
            seconds = time.monotonic() - began
        finally:
            stop.set()
            for thread in several:
                thread.join()
            process.kill()
            process.wait()
    here, there, redraws, learned = (now - then for now, then in zip(after, before, strict=True))
    each = f"{1e3 * here / learned:.1f} ms of the service for a slice, {1e3 * there / redraws:.1f} ms of the browser"
    drawn = f"the script takes {min(costs):.1f} ms of them at least, {np.median(costs):.1f} ms mostly"
    print(f"{redraws / seconds:.1f} redraws and {learned / seconds:.1f} slices a second of 144×176; {each}; {drawn}")
    record_property("redraws a second", redraws / seconds)
    # On two cores, one for the service and one for the browser, that have nothing else to do:
    assert min(learned / here, redraws / there) >= 15
    assert serious(browser) == []


def _spent(*processes):
    """Processor seconds so far, of each with its children."""

    def one(process):
        total = 0.0
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = member.cpu_times()
                total += times.user + times.system
        return total

    return [one(process) for process in processes]
