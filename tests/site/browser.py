"""One page in the browser of `tools.browser`: keys, fingers, and waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attnbias.errors import MissingExtraError, MissingFileError
from tools.browser import open_browser
from tools.files import SITE

WAIT_MS = 30_000
# JavaScript: a frame has been drawn, or won't be. Without a window now and then none is.
DRAWN = """new Promise(done => {
  requestAnimationFrame(() => setTimeout(done, 0));
  setTimeout(done, 1000);
})"""


def or_skip(find: Callable[[], str]) -> str:
    """What a search finds on this machine; the test is skipped where it finds nothing."""
    try:
        return find()
    except (MissingFileError, MissingExtraError) as error:
        pytest.skip(str(error))


class Page:
    """``with Page() as page``: a tab without a network that shows one page of the built book."""

    site = ""

    def __enter__(self) -> Page:
        self.opened = open_browser()
        self.tab = self.opened.__enter__().new_page()
        self.tab.set_default_timeout(WAIT_MS)
        self.tab.context.set_offline(True)
        self.send = self.tab.context.new_cdp_session(self.tab).send
        return self

    def __exit__(self, *error) -> None:
        self.opened.__exit__(*error)

    def open(self, page: Path, width: int = 390, height: int = 844) -> None:
        """Load a file and wait until it is complete; a narrow window is a phone's."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            {
                "width": width,
                "height": height,
                "deviceScaleFactor": 1,
                "mobile": width < 600,
            },
        )
        self.paper(False)
        self.tab.goto(self.address_of(page))

    def address_of(self, page: Path) -> str:
        """Where a page is opened: on disk, or from the server that `site` names."""
        if not self.site:
            return page.resolve().as_uri()
        return f"{self.site}/{page.relative_to(SITE).as_posix()}"

    def paper(self, printed: bool = True) -> None:
        """Show the page as on paper, or on a screen."""
        self.tab.emulate_media(media="print" if printed else "screen", color_scheme="light")

    def scripts(self, run: bool) -> None:
        """Whether pages run their scripts."""
        self.send("Emulation.setScriptExecutionDisabled", {"value": not run})

    def evaluate(self, expression: str):
        """The value of an expression on the page; a promise is waited for."""
        return self.tab.evaluate(expression)

    def style(self, rules: str) -> None:
        """Add rules, if any, to the page's style sheets."""
        self.tab.add_style_tag(content=rules or "/* none */")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true, also where another page is being loaded."""
        self.tab.wait_for_function(expression, polling=20)

    def press(self, key: str, times: int = 1) -> None:
        """A key of the keyboard, on whatever has the focus."""
        for _ in range(times):
            self.tab.keyboard.press(key)

    def point(self, x: float, y: float) -> None:
        """The mouse moved to a place."""
        self.tab.mouse.move(x, y)

    def touch(self, x: float, y: float) -> None:
        """A finger put down and lifted."""
        self.fingers(True)
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def fingers(self, there: bool) -> None:
        """Whether the screen can be touched."""
        self.send("Emulation.setTouchEmulationEnabled", {"enabled": there})
