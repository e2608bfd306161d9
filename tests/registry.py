"""A package registry on this machine, in both layouts, that can misbehave on demand."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from attnbias.data.packages import Package


def package(name: str, blob: bytes, registry="npm", **changes) -> Package:
    """An entry of the table for `blob` as version 1.0 of `name`."""
    base = name.rpartition("/")[2]
    filename = f"{base}-1.0.tgz" if registry == "npm" else f"{name.replace('-', '_')}-1.0.whl"
    entry = {
        "name": name, "version": "1.0", "registry": registry, "filename": filename,
        "sha256": hashlib.sha256(blob).hexdigest(), "size": len(blob),
        "licence": "CC0", "holds": "noise",
    }  # fmt: skip
    return Package(**(entry | changes))


class Registry(ThreadingHTTPServer):
    """Serves `files` by path; every request is in `seen` as (path, Range, Authorization)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.status: dict[str, int] = {}  # answered instead of a file
        self.redirect: dict[str, str] = {}
        self.cuts: list[int] = []  # the next answers end after so many bytes
        self.ranges, self.sized, self.pause = True, True, 0.0
        self.seen: list[tuple[str, str | None, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, entry: Package, blob: bytes) -> str:
        """Put a package where a client looks for it; the path of its archive."""
        if entry.registry == "npm":
            path = f"/npm/{entry.name}/-/{entry.filename}"
        else:
            path = f"/files/{entry.filename}"
            link = f'<a href="../..{path}#sha256=00">{entry.filename}</a>'
            other = f'<a href="../../files/{entry.filename}.metadata">other</a>'
            page = f"<!doctype html><a name=top>{entry.name}</a>{other}{link}"
            self.files[f"/simple/{entry.name}/"] = page.encode()
        self.files[path] = blob
        return path

    def handle_error(self, request, client_address) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.seen.append((self.path, wanted, self.headers.get("Authorization")))
        blob = server.files.get(self.path)
        if self.path in server.redirect:
            return self._answer(302, {"Location": server.redirect[self.path]}, b"")
        if self.path in server.status or blob is None:
            return self._answer(server.status.get(self.path, 404), {}, b"no")
        if not wanted or not server.ranges:
            return self._answer(200, {}, blob)
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(blob):
            return self._answer(416, {}, b"")
        span = {"Content-Range": f"bytes {start}-{len(blob) - 1}/{len(blob)}"}
        return self._answer(206, span, blob[start:])

    def _answer(self, status: int, headers: dict, body: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if self.server.sized:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.server.cuts.pop(0) if status in (200, 206) and self.server.cuts else len(body)
        self.wfile.write(body[: cut // 2])
        self.wfile.flush()
        time.sleep(self.server.pause)
        self.wfile.write(body[cut // 2 : cut])


@contextlib.contextmanager
def running(monkeypatch):
    """A registry that pip's and npm's settings point to, and nothing else."""
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    for key in [key for key in os.environ if key.lower().endswith("_proxy")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("npm_config_registry", server.url + "/npm/")
    monkeypatch.setattr("attnbias.data._download.PAUSE", 0.0)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
