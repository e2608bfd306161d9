"""List every link that leads out of the book, the README and the docstrings, and try each.

    python tools/check_links.py            asks, and writes _build/links.txt
    python tools/check_links.py --list     lists, without the network

The asking is Sphinx's own linkcheck, with its retries, redirects and anchors. What it finds is
told apart: a link is broken when its server says so or the anchor is missing, and unreachable when
there was no answer, or one that says nothing of the page (refused to programs, busy, an error).
Exit status: 0 all live, 1 some are broken, 3 none is broken but some could not be reached.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "_build" / "links.txt"
TEXTS = ("*.md", "CITATION.cff", "book/**/*.md", "book/*.bib", "attnbias/data/files/*.md")
MODULES = ("attnbias/**/*.py", "tools/*.py", "benchmarks/*.py")
LINK = re.compile(r"https?://[^\s<>\"'`{}\\^|\]]+")
PAPER = re.compile(r"arXiv[: ]+(\d{4}\.\d{4,5})", re.IGNORECASE)
NOWHERE = re.compile(r"https?://(localhost|127\.|0\.0\.0\.0|[\w.]*example\.(org|com))")
ANSWERED = re.compile(r"(\d{3}) (?:Client|Server) Error|^Anchor |^Exceeded ")
SAYS_NOTHING = {"401", "403", "407", "408", "425", "429"}  # and all from 500
STATUS = {"live": 0, "broken": 1, "unreachable": 3}
SETTINGS = {
    "linkcheck_timeout": 20,
    "linkcheck_retries": 3,
    "linkcheck_workers": 4,
    "linkcheck_rate_limit_timeout": 60.0,
    "linkcheck_report_timeouts_as_broken": False,
    "linkcheck_allow_unauthorized": False,
    "user_agent": "Mozilla/5.0 (compatible; attnbias link check)",
}


def links_in(text: str) -> set[str]:
    """The addresses that a text names; of a paper on arXiv, that of its page."""
    found = {_trimmed(link) for link in LINK.findall(text)}
    found |= {f"https://arxiv.org/abs/{number}" for number in PAPER.findall(text)}
    return {link for link in found if not NOWHERE.match(link)}


def _trimmed(link: str) -> str:
    """Without the punctuation of the sentence around it; a bracket that it opened stays."""
    while link[-1] in ".,;:!?*" or (link[-1] == ")" and link.count(")") > link.count("(")):
        link = link[:-1]
    return link


def docstrings(source: str) -> str:
    """All docstrings of a module."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    return "\n".join(ast.get_docstring(node) or "" for node in found)


def collect(root: Path = ROOT) -> dict[str, list[str]]:
    """Every link with the files that hold it."""
    texts = {path: path.read_text("utf8") for pattern in TEXTS for path in root.glob(pattern)}
    modules = [path for pattern in MODULES for path in root.glob(pattern)]
    texts |= {path: docstrings(path.read_text("utf8")) for path in modules}
    pages: dict[str, list[str]] = {}
    for path, text in sorted(texts.items()):
        for link in links_in(text):
            pages.setdefault(link, []).append(path.relative_to(root).as_posix())
    return dict(sorted(pages.items()))


def ask(links: list[str], **settings) -> list[dict]:
    """What Sphinx's linkcheck says of each link."""
    with tempfile.TemporaryDirectory() as folder:
        page = "Links\n=====\n\n" + "".join(f"* `link <{link}>`__\n" for link in links)
        Path(folder, "index.rst").write_text(page, encoding="utf8")
        lines = [f"{key} = {value!r}\n" for key, value in (SETTINGS | settings).items()]
        Path(folder, "conf.py").write_text("".join(lines), encoding="utf8")
        command = [sys.executable, "-m", "sphinx", "-Q", "-b", "linkcheck", folder, f"{folder}/out"]
        subprocess.run(command, check=False)  # it ends with 1 for whatever is not live
        answers = Path(folder, "out", "output.json").read_text("utf8").splitlines()
    return [json.loads(line) for line in answers]


def verdict(answer: dict) -> tuple[str, str]:
    """Whether it is live, broken or unreachable, and why."""
    status, info = answer["status"], answer["info"]
    if status in ("working", "redirected"):
        return "live", f"moved to {info}" if status == "redirected" else ""
    said = ANSWERED.search(info)
    code = said.group(1) if said else None
    dead = status == "broken" and said and code not in SAYS_NOTHING and (code or "0") < "500"
    return "broken" if dead else "unreachable", (info or status)[:160]


def report(pages: dict[str, list[str]], answers: list[dict]) -> tuple[str, int]:
    """What was found, the worst first, and the exit status."""
    judged = {answer["uri"]: verdict(answer) for answer in answers}
    judged |= {link: ("unreachable", "not asked") for link in pages.keys() - judged.keys()}
    order = {"broken": 0, "unreachable": 1, "live": 2}
    lines = []
    for link in sorted(pages, key=lambda link: (order[judged[link][0]], link)):
        word, why = judged[link]
        lines.append(f"{word:<12}{link}{f'  ({why})' if why else ''}")
        lines += [f"{'':<12}  in {page}" for page in pages[link]]
    found = [word for word, _ in judged.values()]
    lines.append(", ".join(f"{found.count(word)} {word}" for word in order))
    if found and set(found) == {"unreachable"}:
        lines.append("no link could be reached: is there a network here? Nothing is said of them")
    worst = min(found, key=order.get, default="live")
    return "\n".join(lines) + "\n", STATUS[worst]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list them, and ask nobody")
    pages = collect()
    if parser.parse_args().list:
        print("\n".join(f"{link}  {', '.join(held)}" for link, held in pages.items()))
        return 0
    text, status = report(pages, ask(list(pages)))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text, encoding="utf8")
    print(text, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
