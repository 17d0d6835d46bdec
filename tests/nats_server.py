"""A NATS server of the tests' own, which can be killed and started again where it was."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ports import free_port


class Server:
    """nats-server with JetStream in a folder."""

    def __init__(self, folder):
        self.program = shutil.which(
            "nats-server", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        )
        if self.program is None:
            pytest.skip("nats-server is not installed")
        self.port, self.folder, self.process = free_port(), folder, None
        self.start()

    @property
    def address(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        command = [self.program, "-js", "-a", "127.0.0.1", "-p", str(self.port), "-sd", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                return self.ask(lambda js: js.account_info())
            except Exception:
                assert time.monotonic() < end, "nats-server does not come up"
                time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, question):
        """The answer of something asynchronous."""
        import nats

        async def whole():
            client = await nats.connect(self.address, allow_reconnect=False, connect_timeout=2)
            try:
                return await question(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(whole())

    def make(self, name, subjects, **settings):
        self.ask(lambda js: js.add_stream(name=name, subjects=subjects, **settings))

    def publish(self, subject, bodies, headers=None):
        async def all_of_them(js):
            for body in bodies:
                await js.publish(subject, body, headers=headers)

        self.ask(all_of_them)

    def messages(self, stream):
        """Everything that a stream keeps: headers and body."""

        async def all_of_them(js):
            state = (await js.stream_info(stream)).state
            found = []
            for number in range(max(state.first_seq, 1), state.last_seq + 1):  # one that is empty begins with 0
                one = await js.get_msg(stream, number)
                found.append((one.headers or {}, one.data))
            return found

        return self.ask(all_of_them)

    def consumer(self, stream, durable):
        return self.ask(lambda js: js.consumer_info(stream, durable))
