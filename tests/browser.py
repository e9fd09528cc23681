"""A real browser for tests: Chromium without a window, driven over a pipe by its own DevTools protocol."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for path in map(shutil.which, NAMES) if path), None)
MISSING = "no Chromium on this machine; get one with: apt-get install chromium"
PATIENCE = 60.0
START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium reads from 3 and writes to 4."""


class Browser:
    """A page in a browser; everything that it says and fetches is kept.

    Attributes:
        said: messages of the console, and errors.
        fetched: addresses that were asked for.
    """

    def __init__(self, folder):
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        commands, answers = _high(commands), _high(answers)
        flags = ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking")
        flags += ("disable-dev-shm-usage", "remote-debugging-pipe", f"user-data-dir={folder}")
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(commands), str(answers), FOUND, *(f"--{flag}" for flag in flags)],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        os.set_blocking(self._read, False)
        self._rest, self._sent, self._session = b"", 0, None
        self.said, self.fetched = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        os.close(self._read)
        os.close(self._write)

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda found: found.get("id") == message["id"])
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, address):
        """Open a page and wait until it is loaded."""
        self.call("Page.navigate", url=address)
        end = time.monotonic() + PATIENCE
        while not self.run(f"location.href === {json.dumps(address)} && document.readyState === 'complete'"):
            assert time.monotonic() < end, f"{address} was not loaded within {PATIENCE:g} seconds."
            time.sleep(0.02)

    def run(self, script):
        """Return what a script comes to."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def move(self, x, y):
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _wait(self, wanted):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                data = os.read(self._read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            assert data, "the browser has gone"
            *messages, self._rest = (self._rest + data).split(b"\0")
            result = None
            for message in map(json.loads, messages):
                self._note(message)
                if result is None and wanted(message):
                    result = message
            if result is not None:
                return result
        raise TimeoutError(f"The browser did not answer within {PATIENCE:g} seconds.")

    def _note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.fetched.append(what["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(what)


def _high(descriptor):
    """Return the same file under a number that is out of the way."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
    os.close(descriptor)
    return moved
