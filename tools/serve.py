"""Serve the built book here as a host does: an address without a file gets 404.html."""

import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from tools.files import SITE


class Handler(SimpleHTTPRequestHandler):
    """The files of a folder, and the book's page for what is not among them."""

    def send_error(self, code: int, *told: str | None) -> None:
        page = SITE / "404.html"
        if code != 404 or not page.is_file():
            return super().send_error(code, *told)
        body = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # the page asks for what may be missing, and hangs up
                self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), partial(Handler, directory=SITE))
    with suppress(KeyboardInterrupt):
        server.serve_forever()
