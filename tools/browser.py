"""A browser without a window, driven over its DevTools protocol: it opens a page and prints it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from tornado.websocket import websocket_connect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attnbias.errors import AttnBiasError, MissingFileError  # noqa: E402

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
ON_MACOS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
PATIENCE = 300  # seconds to wait for the slowest step, a long page
FETCHED = ROOT / "_build/browser/chromium"  # put there by tools/get_browser.sh
OLDEST = 131  # the first that prints running titles and page numbers from a style sheet
REMEDY = "install one, such as `apt-get install chromium`, or name it: CHROME=/path/to/chrome"
# JavaScript: a frame has been drawn, or won't be. Without a window now and then none is.
DRAWN = """new Promise(done => {
  requestAnimationFrame(() => setTimeout(done, 0));
  setTimeout(done, 1000);
})"""
FLAGS = (
    "--headless",
    "--no-sandbox",  # a container's root can have no sandbox; only pages of this book are opened
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--allow-file-access-from-files",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--no-zygote",
    "--blink-settings=preferredColorScheme=1",
    "--remote-debugging-port=0",
)


class BrowserError(AttnBiasError, RuntimeError):
    """The browser is too old, did not start, or could not do what it was asked."""


def find_browser() -> str:
    """The browser named by ``CHROME``, or the first known one on this machine.

    Raises
    ------
    MissingFileError
        There is none, or ``CHROME`` names no program.
    """
    chosen = os.environ.get("CHROME")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise MissingFileError(
                "CHROME", expected="a browser's program", got=chosen, remedy=REMEDY
            )
        return found
    for name in (*NAMES, *ON_MACOS):
        if found := shutil.which(name):
            return found
    if FETCHED.is_file():
        return str(FETCHED)
    raise MissingFileError(
        "a browser",
        expected="Chromium, Chrome or Edge on the PATH",
        got="none",
        remedy=REMEDY,
    )


class Browser:
    """``async with Browser() as browser``: one tab of a fresh browser.

    Parameters
    ----------
    program : str, optional
        The browser; without it `find_browser` looks for one.
    """

    def __init__(self, program: str | None = None) -> None:
        self.program, self.calls = program or find_browser(), 0

    async def __aenter__(self) -> Browser:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [self.program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port = await self._port()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            self.socket = await websocket_connect(
                tabs[0]["webSocketDebuggerUrl"], max_message_size=1 << 30
            )
            await self._refuse_old()
        except BaseException:
            self._stop()
            raise
        return self

    async def __aexit__(self, *error) -> None:
        self.socket.close()
        self._stop()

    def _stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    async def _port(self, patience: float = 60.0) -> str:
        file = Path(self.profile.name, "DevToolsActivePort")
        for _ in range(int(patience / 0.1)):
            if file.is_file() and (lines := file.read_text().split()):
                return lines[0]
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.1)
        raise BrowserError(
            self.program,
            expected="a browser that starts",
            got=f"no answer (exit status {self.process.poll()})",
            remedy=f"try `{self.program} --headless --dump-dom about:blank`; or {REMEDY}",
        )

    async def _refuse_old(self) -> None:
        product = (await self.call("Browser.getVersion"))["product"]
        version = int(product.partition("/")[2].partition(".")[0])
        if version < OLDEST:
            raise BrowserError(
                self.program, expected=f"version {OLDEST} or newer", got=product, remedy=REMEDY
            )

    async def call(self, method: str, **arguments) -> dict:
        """Send one command of the protocol and wait for its result."""
        self.calls += 1
        await self.socket.write_message(
            json.dumps({"id": self.calls, "method": method, "params": arguments})
        )
        while True:
            try:
                message = await asyncio.wait_for(self.socket.read_message(), PATIENCE)
            except TimeoutError:
                got = f"no answer in {PATIENCE} s"
                break
            if message is None:
                got = "the browser has closed the connection"
                break
            answer = json.loads(message)
            if answer.get("id") == self.calls:
                if "result" in answer:
                    return answer["result"]
                got = answer["error"]["message"]
                break
        raise BrowserError(method, expected="a result", got=got, remedy="run it again")

    async def run(self, script: str):
        """The value of a JavaScript expression on the page; a promise is waited for."""
        answer = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            got = details.get("exception", {}).get("description", details["text"])
            raise BrowserError("a page", expected="no error on it", got=got, remedy="run make book")
        return answer["result"].get("value")

    async def open(self, file: Path, width: int) -> None:
        """Open a file as paper shows it, `width` pixels wide, and wait until it is there."""
        await self.call("Emulation.setEmulatedMedia", media="print")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=1000,
            deviceScaleFactor=1,
            mobile=False,
        )
        await self.call("Page.navigate", url=file.resolve().as_uri())
        await self.run(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', () => done()))"
        )

    async def print(self) -> bytes:
        """The open page as a PDF, on the paper that its style asks for."""
        answer = await self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])


if __name__ == "__main__":
    try:
        print(find_browser())
    except MissingFileError as error:
        sys.exit(str(error))
