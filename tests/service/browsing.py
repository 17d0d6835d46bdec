"""A real browser in tests: Debian's chromium, driven through its own driver. Pictures are kept where one asks for them.

With a folder in UNDERTOW_PICTURES every test leaves pictures there of what it saw.
"""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from needs import needs

NEEDED = [
    pytest.mark.full,
    needs("chromium", shutil.which("chromium") and shutil.which("chromedriver"), "chromium and chromedriver"),
]
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


def window(folder, width=1400, height=1500):
    """Chromium, its profile in a folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def sized(browser, width, height, mobile=False):
    """As a screen of this size shows it; windows of a desktop cannot be as narrow as a phone."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def shot(browser, name):
    """A picture of the window, where pictures are wanted."""
    if folder := os.environ.get("UNDERTOW_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def until(browser, script, seconds=30):
    """What a script gives once it gives something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := browser.execute_script(f"return {script}"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"never true: {script}; console: {browser.get_log('browser')}")


def serious(browser):
    return [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]


def slice_of(number, shape, anomaly=False):
    x = 10 + np.random.default_rng(number).normal(size=shape)
    x[(0,) * len(shape)] = np.nan
    if anomaly:
        x[2] += 30
    return x


def fill(client, name="flows", shape=(6, 5), first=0, last=80, anomalies=()):
    for number in range(first, last):
        client.push(name, slice_of(number, shape, number in anomalies), sequence=number, fields="")
