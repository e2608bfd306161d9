"""One browser without a network for the tests of a file; they are skipped where there is none."""

import pytest
from browser import Page, or_skip
from served import served

from tools.browser import find_browser
from tools.files import SITE


@pytest.fixture(scope="module")
def browser():
    or_skip(find_browser)
    with Page() as browser:
        yield browser


@pytest.fixture
def online(browser):
    """The same browser with the book as a host has it."""
    with served(SITE) as browser.site:
        browser.tab.context.set_offline(False)
        yield browser
    browser.tab.context.set_offline(True)
    browser.site = ""
