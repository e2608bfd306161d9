"""The links that lead out: all of them found, and a dead one told from one that nobody answers for.

A server on this machine stands for the world: no network.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools import check_links

PAGE = b"<html><body><h1 id='here'>here</h1></body></html>"
MOVED = {"/moved": "/page", "/moved-and-gone": "/gone"}
STATUS = {"/page": 200, "/moved": 302, "/moved-and-gone": 301, "/forbidden": 403, "/trouble": 500}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path
        if path == "/silent":
            self.server.done.wait(60)
            return
        self.send_response(STATUS.get(path, 404))
        if path in MOVED:
            self.send_header("Location", MOVED[path])
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(PAGE)

    do_HEAD = do_GET


@pytest.fixture(scope="module")
def world():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.done = threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for key in [key for key in os.environ if key.lower().endswith("_proxy")]:
            patch.delenv(key)
        yield f"http://127.0.0.1:{server.server_port}"
    server.done.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def nobody():
    """An address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}/"


@pytest.fixture(scope="module")
def found(world, nobody):
    paths = ["/page", "/page#here", "/page#there", "/gone", *MOVED, "/forbidden", "/trouble"]
    answers = check_links.ask([world + path for path in paths] + [nobody], linkcheck_retries=1)
    answers += check_links.ask([f"{world}/silent"], linkcheck_retries=1, linkcheck_timeout=0.5)
    return {answer["uri"]: check_links.verdict(answer) for answer in answers}


@pytest.mark.parametrize(
    ("path", "word", "why"),
    [
        ("/page", "live", ""),
        ("/page#here", "live", ""),
        ("/page#there", "broken", "Anchor 'there' not found"),
        ("/gone", "broken", "404"),
        ("/moved", "live", "moved to"),
        ("/moved-and-gone", "broken", "404"),
        ("/forbidden", "unreachable", "403"),
        ("/trouble", "unreachable", "500"),
        ("/silent", "unreachable", "timed out"),
    ],
)
def test_what_a_server_answers(found, world, path, word, why):
    got, reason = found[world + path]
    assert got == word and why in reason


def test_nobody_there(found, nobody):
    assert found[nobody][0] == "unreachable"


def answer(uri, status, info=""):
    return {"uri": uri, "status": status, "info": info}


GONE = answer("a", "broken", "404 Client Error: Not Found for url: a")
LIVE = answer("b", "working")
LOST = answer("c", "broken", "Failed to resolve 'c'")


@pytest.mark.parametrize(
    ("answers", "status"),
    [([LIVE], 0), ([LIVE, LOST], 3), ([GONE, LIVE, LOST], 1), ([LOST], 3), ([], 0)],
)
def test_the_status_tells_broken_from_unreachable(answers, status):
    pages = {one["uri"]: ["README.md"] for one in answers}
    assert check_links.report(pages, answers)[1] == status


def test_the_report_says_what_and_where_the_worst_first():
    pages = {"a": ["README.md", "book/intro.md"], "b": ["README.md"], "c": ["x.py"]}
    text, _ = check_links.report(pages, [LIVE, LOST, GONE])
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["broken", "a"] and lines[2].strip() == "in book/intro.md"
    assert lines[-1] == "1 broken, 1 unreachable, 1 live"
    assert "is there a network" not in text
    assert "is there a network" in check_links.report({"c": []}, [LOST])[0]
    assert check_links.report({"d": []}, [])[0].startswith("unreachable d  (not asked)")


def test_every_redirect_again_is_broken():
    assert check_links.verdict(answer("a", "broken", "Exceeded 30 redirects."))[0] == "broken"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("See [x](https://a.b/c), or <https://d.e>.", {"https://a.b/c", "https://d.e"}),
        ("(https://a.b/wiki/C_(letter))", {"https://a.b/wiki/C_(letter)"}),
        ('"https://a.b/c": https://a.b/c; **https://a.b/c**', {"https://a.b/c"}),
        ("journal = {arXiv preprint arXiv:1803.07300},", {"https://arxiv.org/abs/1803.07300"}),
        ("http://localhost:8000/ http://127.0.0.1:8 https://example.org/a.js", set()),
        ("no link: //a.b/c, git@github.com:a/b", set()),
    ],
)
def test_links_in_a_text(text, links):
    assert check_links.links_in(text) == links


def test_docstrings_hold_links_and_code_does_not(tmp_path):
    module = tmp_path / "attnbias" / "part.py"
    module.parent.mkdir()
    module.write_text('def f():\n    """See https://a.b/c."""\n    return "https://d.e"\n')
    (tmp_path / "README.md").write_text("https://a.b/c and https://f.g/h")
    assert check_links.collect(tmp_path) == {
        "https://a.b/c": ["README.md", "attnbias/part.py"],
        "https://f.g/h": ["README.md"],
    }


def test_the_paper_is_among_them_and_listing_needs_no_network(monkeypatch, capsys):
    monkeypatch.setattr(check_links, "ask", None)
    monkeypatch.setattr(sys, "argv", ["check_links.py", "--list"])
    assert check_links.main() == 0
    listed = capsys.readouterr().out
    assert "https://arxiv.org/abs/2402.05738  CITATION.cff, README.md" in listed


def test_what_was_found_is_written_down(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(check_links, "REPORT", tmp_path / "links.txt")
    monkeypatch.setattr(check_links, "collect", lambda: {"a": ["README.md"], "b": ["README.md"]})
    monkeypatch.setattr(check_links, "ask", lambda links: [GONE, LIVE])
    monkeypatch.setattr(sys, "argv", ["check_links.py"])
    assert check_links.main() == 1
    assert (tmp_path / "links.txt").read_text() == capsys.readouterr().out
