"""A headless Chromium, driven through its DevTools protocol over two pipes (fd 3 and 4; messages end with
a zero byte)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
)

LUMINANCE = """const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number);
  return 0.2126*channel(r) + 0.7152*channel(g) + 0.0722*channel(b); };
const contrast = (x, y) => { const [a, b] = [light(x), light(y)].sort((p, q) => q - p); return (a + 0.05) / (b + 0.05); };"""  # noqa: E501
"""JavaScript: light(colour) and contrast(colour, colour), as WCAG 2.2 defines them."""


def find() -> str | None:
    """The first Chromium on the path that starts (Ubuntu's chromium-browser may be
    a stub without its snap)."""
    for name in NAMES:
        path = shutil.which(name)
        if (
            path
            and subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60).returncode
            == 0
        ):
            return path
    return None


_ON_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One browser with one page. `errors` and `requests` collect since the last `open`."""

    def __init__(self, program: str) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="mmagold-browser-", ignore_cleanup_errors=True)
        theirs, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [
            program,
            *_FLAGS,
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, str(theirs), str(theirs_out), *command],
            pass_fds=(theirs, theirs_out),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(theirs_out)
        self._buffer, self._number, self._session = b"", 0, None
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command; returns its result. Events that come meanwhile are recorded."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def _read(self, seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, what: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(what["exceptionDetails"].get("exception", what["exceptionDetails"])))
        elif event == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
            self.errors.append(str(what["args"]))
        elif event == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def size(self, width: int, height: int, dark: bool = False) -> None:
        """The size of the window, and the system's colours."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, path: Path, query: str = "") -> None:
        """Opens a file and waits until it is loaded. Of a missing one Chromium shows a page of its own."""
        assert path.is_file(), f"{path} does not exist"
        self.navigate(path.resolve().as_uri() + query)

    def navigate(self, address: str) -> None:
        """Opens an address and waits until it is loaded."""
        self.errors, self.requests, self._loaded = [], [], False
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._read()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, what it becomes."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """A picture of the page, or of all of it."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
