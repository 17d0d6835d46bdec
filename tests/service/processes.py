"""A real service in a process of its own, to be killed."""

import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from stubs import HEAR_SIGNALS, python_environment

SCRIPT = Path(__file__).with_name("level_service.py")


def start(store, port=0):
    """The process and its address, once it listens."""
    command = [sys.executable, str(SCRIPT), str(store), str(port)]
    process = subprocess.Popen(
        command, env=python_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    address = process.stdout.readline().strip()
    if not address:
        raise AssertionError(process.stderr.read())
    return process, address


def command(*arguments, folder):
    """A command in a process of its own, and the address of its page."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAR_SIGNALS + "from undertow.cli import main; main()", *map(str, arguments)],
        env={**python_environment(), "UNDERTOW_CACHE": "off"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"Page: (http://[\w.:]+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()  # else it would wait for us
            return process, found[1]
    raise AssertionError(said)


@contextmanager
def running(store, port=0):
    """The address of a service that is ended afterwards."""
    process, address = start(store, port)
    try:
        yield address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
