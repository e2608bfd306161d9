"""One browser without a network for the tests of a file; they are skipped where there is none."""

import pytest
from browser import Page, or_skip

from tools.browser import find_browser


@pytest.fixture(scope="module")
def browser():
    or_skip(find_browser)
    with Page() as browser:
        yield browser
