"""One page in the headless browser of `tools.browser`, step by step: keys, fingers, and waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from attnbias.errors import MissingExtraError, MissingFileError
from tools.browser import Browser

KEYS = {
    "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, " ": 32,
    "Tab": 9, "Escape": 27,
}  # fmt: skip
WAIT_S = 30


def or_skip(find: Callable[[], str]) -> str:
    """What a search finds on this machine; the test is skipped where it finds nothing."""
    try:
        return find()
    except (MissingFileError, MissingExtraError) as error:
        pytest.skip(str(error))


class Page:
    """``with Page() as page``: a tab that shows one page of the built book."""

    def __enter__(self) -> Page:
        self.loop, self.browser = asyncio.new_event_loop(), Browser()
        try:
            self._run(self.browser.__aenter__())
        except BaseException:
            self.loop.close()
            raise
        self.send("Page.enable")
        return self

    def __exit__(self, *error) -> None:
        self._run(self.browser.__aexit__(*error))
        self.loop.close()

    def send(self, method: str, **params) -> dict:
        """Call a method of the protocol and wait for its answer."""
        return self._run(self.browser.call(method, **params))

    def open(self, page: Path, width: int = 390, height: int = 844) -> None:
        """Load a file and wait until it is complete."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        light = {"name": "prefers-color-scheme", "value": "light"}
        self.send("Emulation.setEmulatedMedia", media="", features=[light])
        self.send("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, expression: str):
        """The value of an expression on the page."""
        return self._run(self.browser.run(expression))

    def wait_for(self, expression: str) -> None:
        end = time.monotonic() + WAIT_S
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def press(self, key: str, times: int = 1) -> None:
        """A key of the keyboard, on whatever has the focus."""
        name = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        for _ in range(times):
            self.send("Input.dispatchKeyEvent", type="keyDown", **name)
            self.send("Input.dispatchKeyEvent", type="keyUp", **name)

    def point(self, x: float, y: float) -> None:
        """The mouse moved to a place."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def touch(self, x: float, y: float) -> None:
        """A finger put down and lifted."""
        self.send("Emulation.setTouchEmulationEnabled", enabled=True)
        point = [{"x": x, "y": y}]
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=point)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def _run(self, work):
        return self.loop.run_until_complete(work)
