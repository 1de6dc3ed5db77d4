"""A headless Chromium, driven through a pipe with nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser with one page; use it as a context.

    It speaks the DevTools protocol over two pipes: messages are JSON that end with a
    zero byte, requests carry an id and answers the same one.
    """

    def __init__(self, program, timeout=60.0):
        self._program = program
        self._timeout = timeout
        self._answers = b""
        self._number = 0
        self.events = []

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        arguments = [
            self._program,
            "--headless",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            f"--user-data-dir={self._folder.name}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        # The browser reads from number 3 and writes to number 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = None
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call(
                "Target.attachToTarget", targetId=target, flatten=True
            )["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def call(self, method, **params):
        """Send a request and return its answer; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _next(self):
        deadline = time.monotonic() + self._timeout
        while b"\0" not in self._answers:
            ready = select.select([self._in], [], [], deadline - time.monotonic())[0]
            data = os.read(self._in, 2**16) if ready else b""
            if not data:
                raise RuntimeError(f"{self._program} does not answer.")
            self._answers += data
        first, _, self._answers = self._answers.partition(b"\0")
        return json.loads(first)

    def show(self, width, height, scheme):
        """Set the size of the window and the colour scheme that the user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url):
        """Load a page and wait until it is there with all its images."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def evaluate(self, expression):
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def seen(self, *methods):
        """Return the parameters of the events of these kinds since the page opened."""
        return [e["params"] for e in self.events if e.get("method") in methods]

    def screenshot(self, path):
        """Write a picture of the whole page."""
        found = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True
        )
        with open(path, "wb") as file:
            file.write(base64.b64decode(found["data"]))

    def print(self, path):
        """Write the page as it is printed, as PDF."""
        found = self.call("Page.printToPDF", printBackground=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(found["data"]))
