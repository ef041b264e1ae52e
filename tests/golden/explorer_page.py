"""The explorer in a browser, for tests: the page, asked as its own script asks it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from browser import Browser

API = "mmagoldExplorer.api"
_SECONDS = 20


class ExplorerPage:
    """The page in a folder, opened in a browser."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.path, self._opened = browser, folder / "index.html", 0

    def open(self, link: str = "", width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Opens the page anew; `link` is what stands behind the #."""
        self._opened += 1  # another address, or the browser would only change the part behind the #
        self.browser.size(width, height, dark)
        self.browser.open(self.path, f"?{self._opened}{'#' if link else ''}{link}")
        self.wait("document.body.dataset.ready === 'yes' || !document.getElementById('complaint').hidden")

    def wait(self, condition: str) -> None:
        """Waits until a JavaScript expression holds."""
        end = time.monotonic() + _SECONDS
        while not self.browser.evaluate(condition):
            assert time.monotonic() < end, f"never: {condition}; {self.browser.errors} {self.complaint}"
            time.sleep(0.05)

    @property
    def complaint(self) -> str:
        """What the page complains about; empty where it does not."""
        one = "document.getElementById('complaint')"
        return str(self.browser.evaluate(f"{one}.hidden ? '' : {one}.textContent"))

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return str(self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))

    def press(self, key: str, alt: bool = False, text: str = "") -> None:
        """Presses and releases a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.browser.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                modifiers=int(alt),
                code=key,
                **_code(key),
                **more,
            )

    def type(self, text: str) -> None:
        """Types a text where the focus is."""
        self.browser.call("Input.insertText", text=text)

    def focus(self, selector: str) -> None:
        """Puts the focus on the first element, and marks its text."""
        one = f"document.querySelector({json.dumps(selector)})"
        self.browser.evaluate(f"{one}.focus(); {one}.select && {one}.select()")

    def ask(self, function: str, *arguments: Any) -> Any:
        """What an async JavaScript function of the arguments returns; codes go in as hex text."""
        given = ", ".join(json.dumps(argument, default=int) for argument in arguments)
        return self.browser.evaluate(f"({function})({given})")


def _code(key: str) -> dict[str, int]:
    known = {
        "Enter": 13,
        "ArrowUp": 38,
        "ArrowDown": 40,
        "ArrowLeft": 37,
        "ArrowRight": 39,
        "Tab": 9,
        " ": 32,
    }
    return {"windowsVirtualKeyCode": known[key]} if key in known else {}


def as_hex(operands: dict[str, Any]) -> dict[str, list[str]]:
    """Operands of one dot product as lists of hex text."""
    return {name: [hex(int(code)) for code in np.ravel(codes)] for name, codes in operands.items()}
