"""A headless Chromium, driven over the DevTools protocol with tornado, which Jupyter brings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
WAIT_S = 30


def find_browser() -> str | None:
    """$CHROME, or the first of the usual names on the path."""
    names = (os.environ.get("CHROME"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One page in a headless browser; use it in a `with`."""

    def __init__(self, command: str):
        self.profile = tempfile.mkdtemp()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        self.process = subprocess.Popen(
            [command, *options, f"--user-data-dir={self.profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self.loop, self.sent = IOLoop(make_current=False), 0
            address = self._address()
            self.socket = self._run(lambda: websocket_connect(address, max_message_size=2**28))
            self.send("Page.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(WAIT_S)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method: str, **params) -> dict:
        """Call a method of the protocol and wait for its answer."""
        self.sent += 1
        self.socket.write_message(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self._run(self.socket.read_message))
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer["error"]
                return answer["result"]

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
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

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

    def touch(self, x: float, y: float) -> None:
        """A finger put down and lifted."""
        self.send("Emulation.setTouchEmulationEnabled", enabled=True)
        point = [{"x": x, "y": y}]
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=point)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def _run(self, call):
        return self.loop.run_sync(call, timeout=WAIT_S)

    def _address(self) -> str:
        port_file, end = Path(self.profile, "DevToolsActivePort"), time.monotonic() + WAIT_S
        while time.monotonic() < end:
            assert self.process.poll() is None, "the browser ended by itself"
            if port_file.exists() and port_file.read_text().count("\n"):
                port = port_file.read_text().splitlines()[0]
                with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT_S) as answer:
                    targets = json.load(answer)
                for target in targets:
                    if target["type"] == "page":
                        return target["webSocketDebuggerUrl"]
            time.sleep(0.05)
        raise TimeoutError("the browser opened no page")
