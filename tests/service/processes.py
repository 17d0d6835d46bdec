"""A real service in a process of its own, to be killed."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from stubs import python_environment

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
