"""The machine's own Chromium, Chrome or Edge, driven by Playwright; it fetches none of its own."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from attnbias.errors import AttnBiasError, MissingFileError
from tools.files import ROOT

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
PATIENCE = 300_000  # milliseconds to wait for the slowest step, a long page
FETCHED = ROOT / "_build/browser/chromium"  # put there by tools/get_browser.sh
OLDEST = 131  # the first that prints running titles and page numbers from a style sheet
REMEDY = "install one, such as `apt-get install chromium`, or name it: CHROME=/path/to/chrome"
FLAGS = ["--allow-file-access-from-files", "--font-render-hinting=none", "--no-zygote"]


class BrowserError(AttnBiasError, RuntimeError):
    """The browser is too old, did not start, or could not do what it was asked."""


def find_browser() -> str:
    """The browser named by ``CHROME``, or the first known one on this machine.

    Raises
    ------
    MissingFileError
        There is none, or ``CHROME`` names no program.
    """
    if chosen := os.environ.get("CHROME"):
        if found := shutil.which(chosen):
            return found
        raise MissingFileError("CHROME", expected="a browser's program", got=chosen, remedy=REMEDY)
    for name in (*NAMES, *ON_MACOS, FETCHED):
        if found := shutil.which(name):
            return found
    wanted = "Chromium, Chrome or Edge on the PATH"
    raise MissingFileError("a browser", expected=wanted, got="none", remedy=REMEDY)


def has_browser() -> bool:
    """Whether formulas can be set here; pages written without one are written anew with one."""
    try:
        return bool(find_browser())
    except MissingFileError:
        return False


@contextmanager
def open_browser(program: str | None = None) -> Iterator[Browser]:
    """A fresh browser without a window, as Playwright has it; `find_browser` looks for the program.

    Raises
    ------
    BrowserError
        It does not start, is too old, or a page fails at what it is asked.
    """
    program = program or find_browser()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            refuse_old(program, browser.version)
            yield browser
            browser.close()
    except PlaywrightError as error:
        got = error.message.splitlines()[0]
        raise BrowserError(program, expected="no error", got=got, remedy=REMEDY) from error


def refuse_old(program: str, version: str) -> None:
    """Raise BrowserError for a browser that is too old for the book on paper."""
    if int(version.partition(".")[0]) < OLDEST:
        wanted = f"version {OLDEST} or newer"
        raise BrowserError(program, expected=wanted, got=version, remedy=REMEDY)


if __name__ == "__main__":
    try:
        print(find_browser())
    except MissingFileError as error:
        sys.exit(str(error))
