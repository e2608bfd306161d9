"""The page for addresses that do not exist, from a server, some folders below the book's own."""

import threading
from functools import partial
from http.server import ThreadingHTTPServer

import pytest
from attnbias_missing import missing_page

from tools.files import SITE
from tools.serve import Handler

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The book below ``/a/b/`` of a server."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "a").mkdir()
    (folder / "a/b").symlink_to(SITE)
    handler = type("Quiet", (Handler,), {"log_message": lambda *told: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/a/b/"
        server.shutdown()


@pytest.fixture
def missing(browser, address, request):
    """The page as it is shown for an address, and what the console says beside its 404."""
    tab, said = browser.tab, []
    browser.tab.context.set_offline(False)
    tab.on("console", lambda message: said.append((message.location["url"], message.text)))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(address + request.param)
    browser.wait_for(f"document.baseURI === '{address}'")
    assert [each for each in said if each[0] != address + request.param] == []
    yield browser


DEEP = "x/y/z"
AT_ANY_DEPTH = pytest.mark.parametrize(
    "missing", ["gone.html", DEEP, "book/paper/gone/", "x/y/?q=a/b#c/d"], indirect=True
)


@AT_ANY_DEPTH
def test_it_has_its_looks_and_its_links_lead_into_the_book(missing, address):
    looks = "getComputedStyle(document.querySelector('main').parentElement).maxWidth"
    assert missing.evaluate(looks) == "640px"
    links = missing.evaluate("[...document.links].map(link => link.href)")
    assert len(links) == 4 and all(link.startswith(address) for link in links)
    assert all((SITE / link.removeprefix(address)).is_file() for link in links)


@pytest.mark.parametrize("missing", [DEEP], indirect=True)
def test_its_search_finds(missing, address):
    missing.tab.fill("input", "momentum")
    missing.tab.click("button")
    missing.wait_for("document.querySelector('#search-results li a') !== null")
    assert missing.evaluate("location.href") == f"{address}search.html?q=momentum"


@pytest.mark.parametrize("missing", [DEEP], indirect=True)
def test_its_first_link_leads_home(missing, address):
    missing.tab.click("header a")
    missing.tab.wait_for_url(f"{address}book/intro.html")  # where index.html leads on


def test_a_published_book_needs_no_script_for_its_links():
    assert '<base href="/attnbias/">' in missing_page("https://example.org/attnbias/")
    assert '<base href="/">' in missing_page("") and '<base href="/">' in missing_page(
        "https://x.y"
    )


def test_neither_the_contents_nor_the_search_have_it():
    assert (SITE / "404.html").is_file()
    assert '"404"' not in (SITE / "searchindex.js").read_text(encoding="utf8")
    assert "404.html" not in (SITE / "index.html").read_text(encoding="utf8")
