"""Where a package's archive lies, by the registries that pip and npm are set up for here."""

from __future__ import annotations

import contextlib
import html.parser
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ..errors import MissingExtraError
from ._download import read_page

NPM_VARIABLE = "npm_config_registry"


def addresses(package, by_hand: str) -> Iterator[str]:
    """Addresses of the package's archive, the likeliest first.

    Parameters
    ----------
    package : Package
    by_hand : str
        What to do without a registry, for messages.

    Raises
    ------
    MissingExtraError, MissingFileError
    """
    if package.registry == "npm":
        basename = package.name.rpartition("/")[2]
        root = npm_registry(by_hand).rstrip("/")
        yield f"{root}/{package.name}/-/{basename}-{package.version}.tgz"
        return
    for index in python_indexes(by_hand):
        # Normalised as the simple index prescribes.
        page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', package.name).lower()}/"
        yield from file_links(read_page(page, by_hand) or "", page, package.filename)


def file_links(text: str, page: str, filename: str) -> list[str]:
    """Addresses of one file among the links of a simple index page."""
    parser = _Links()
    parser.feed(text)
    found = []
    for link in parser.links:
        with contextlib.suppress(ValueError):  # a link that is no address
            url = urldefrag(urljoin(page, link)).url
            name = unquote(urlsplit(url).path).rpartition("/")[2]
            if name == filename and _on_web(url):
                found.append(url)
    return found


def _on_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "a":
            self.links += [value for key, value in attrs if key == "href" and value]


def python_indexes(by_hand: str) -> list[str]:
    """Simple indexes in pip's order: its index, then the extra ones that are on the web."""
    settings = _pip_settings()
    main = settings.get("index-url") or _pip_default(by_hand)
    extra = settings.get("extra-index-url", "").split()
    return [url for url in (main, *extra) if _on_web(url)]


def _pip_settings() -> dict[str, str]:
    """What pip's environment variables say of indexes, else its files."""
    keys = {key: "PIP_" + key.upper().replace("-", "_") for key in ("index-url", "extra-index-url")}
    named = {key: os.environ[name] for key, name in keys.items() if name in os.environ}
    if len(named) == len(keys):
        return named
    lines = _output([sys.executable, "-m", "pip", "config", "list"]).splitlines()
    listed = dict(line.split("=", 1) for line in lines if "=" in line)
    filed = {
        key: listed[f"{section}.{key}"].strip("'\"")
        for section in ("global", "download")  # the second goes before the first
        for key in keys
        if f"{section}.{key}" in listed
    }
    return filed | named


def _pip_default(by_hand: str) -> str:
    try:
        from pip._internal.models.index import PyPI

        return PyPI.simple_url
    except (ImportError, AttributeError):
        raise MissingExtraError(
            "pip",
            expected="pip, which knows the index of Python packages",
            got="none in this environment",
            remedy=f"set PIP_INDEX_URL; {by_hand}",
        ) from None


def npm_registry(by_hand: str) -> str:
    """npm's registry, by its environment variable or its settings.

    Raises
    ------
    MissingExtraError
    """
    npm = shutil.which("npm")
    # npm reads its variables in either case.
    named = next((os.environ[key] for key in os.environ if key.lower() == NPM_VARIABLE), "")
    address = named or (_output([npm, "config", "get", "registry"]) if npm else "")
    if not _on_web(address):
        raise MissingExtraError(
            "npm",
            expected="the npm program on the PATH, or its registry in npm_config_registry",
            got=address or "neither",
            remedy=f"install Node.js; {by_hand}",
        )
    return address


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
