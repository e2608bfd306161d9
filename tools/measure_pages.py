"""What a page of the built book weighs, whether it jumps, and how soon it answers on a slow phone.

    python tools/measure_pages.py                            # a few light and heavy pages
    python tools/measure_pages.py book/intro --json out.json
    python tools/measure_pages.py --all --fast               # every page, without the slow phone

The site is served on this machine with gzip, as any host of a book does. The phone is a window of
390 x 844 with a CPU four times slower than this one and a connection of 1.6 Mbit/s with 150 ms a
round trip; the first visit has an empty cache, the second is a reload of what the cache holds.

* weight: what comes over the line, compressed, and in brackets after unpacking
* shift: the layout shifts of loading and of scrolling to the end, summed as browsers do (CLS)
* shown: the first paint of any content
* answers: when content is shown and the last task over 50 ms, before a second without one, is over
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
import threading
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.browser import DRAWN, Browser  # noqa: E402
from tools.chapters import toc_files  # noqa: E402

SITE = ROOT / "_build" / "html"
SOME = [
    "book/intro", "book/notation", "book/ledger", "book/reference/geometry",
    "book/paper/one_picture", "book/paper/theorem1",
    "book/paper/bad_start", "book/beyond/momentum",
]  # fmt: skip
SLOWER = 4
LINE = {"latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 93_750, "offline": False}
FREE = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1, "offline": False}
PACKED = {".html", ".css", ".js", ".svg", ".json", ".txt"}
WATCH = """
window.seen = {shifts: [], tasks: []};
new PerformanceObserver(list => list.getEntries().forEach(e => e.hadRecentInput ||
  seen.shifts.push([e.startTime, e.value]))).observe({type: "layout-shift", buffered: true});
new PerformanceObserver(list => list.getEntries().forEach(e =>
  seen.tasks.push([e.startTime, e.duration]))).observe({type: "longtask", buffered: true});
"""
QUIET = """new Promise(done => {
  const wait = () => {
    const last = Math.max(...performance.getEntries().map(e => e.startTime + e.duration),
      ...seen.tasks.map(([start, length]) => start + length));
    document.readyState === "complete" && performance.now() - last > %d ? done(0)
      : setTimeout(wait, 50);
  };
  wait();
})"""
SCROLL = """(async () => {
  const frame = () => DRAWN;
  document.documentElement.style.scrollBehavior = "auto";
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
    scrollTo(0, y); await frame(); await frame();
  }
  await new Promise(done => setTimeout(done, 200)); // observers are told late
})()""".replace("DRAWN", DRAWN)
READ = """(() => {
  const loaded = [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource").filter(e => e.name.startsWith(origin))];
  const sum = key => loaded.reduce((total, e) => total + e[key], 0);
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return {...seen, sent: sum("encodedBodySize"), unpacked: sum("decodedBodySize"),
    files: loaded.length, shown: paint ? paint.startTime : NaN};
})()"""


class Packed(SimpleHTTPRequestHandler):
    """Files of a folder, text as gzip, kept by the browser for an hour."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        packed = path.suffix in PACKED
        body = _gzipped(path) if packed else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3600")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@cache
def _gzipped(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 9)


@contextmanager
def served(site: Path):
    """The address of `site`, served from a thread."""
    handler = partial(Packed, directory=str(site))
    handler.protocol_version = "HTTP/1.1"
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def layout_shift(shifts: list[list[float]]) -> float:
    """The largest sum of shifts in a window of at most 5 s without a gap of 1 s."""
    worst = total = 0.0
    begin = last = float("-inf")
    for at, value in shifts:
        if at - last > 1000 or at - begin > 5000:
            begin, total = at, 0.0
        total, last = total + value, at
        worst = max(worst, total)
    return worst


def answers_at(shown: float, tasks: list[list[float]]) -> float:
    """When the last long task before a quiet second is over, and content is shown (ms)."""
    now = shown
    for start, length in sorted(tasks):
        if start - now > 1000:
            break
        now = max(now, start + length)
    return now


async def watched(browser: Browser) -> None:
    """Prepare the tab, which notes shifts and long tasks.

    A narrow window: in its emulation of a mobile Chromium reports no shifts.
    """
    for domain in ("Page", "Network"):
        await browser.call(f"{domain}.enable")
    await browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=390, height=844, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    await browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)


async def visit(browser: Browser, address: str, slow: bool, quiet: int) -> dict:
    """Open a page, let it settle, scroll through it."""
    await browser.call("Emulation.setCPUThrottlingRate", rate=SLOWER if slow else 1)
    await browser.call("Network.emulateNetworkConditions", **(LINE if slow else FREE))
    await browser.call("Page.navigate", url="about:blank")
    await browser.call("Page.navigate", url=address)
    await browser.run(QUIET % quiet)
    loaded = await browser.run(READ)
    await browser.run(SCROLL)
    found = await browser.run(READ)
    return {
        "sent": found["sent"], "unpacked": found["unpacked"], "files": found["files"],
        "shift": round(layout_shift(found["shifts"]), 4), "shown": round(loaded["shown"]),
        "answers": round(answers_at(loaded["shown"], loaded["tasks"])),
    }  # fmt: skip


async def measure(names: list[str], site: Path = SITE, slow: bool = True) -> dict[str, dict]:
    """For each page its first visit, and on the slow phone its second."""
    found = {}
    async with Browser() as browser:
        with served(site) as address:
            await watched(browser)
            for name in names:
                if slow:
                    await browser.call("Network.clearBrowserCache")
                page = f"{address}/{name}.html"
                found[name] = {"first": await visit(browser, page, slow, 1100 if slow else 100)}
                if slow:
                    found[name]["second"] = await visit(browser, page, slow, 1100)
    return found


def table(found: dict[str, dict]) -> str:
    head = f"{'page':34}{'weight kB':>16}{'files':>7}{'shift':>8}"
    timed = any("second" in each for each in found.values())
    lines = [head + ("   first: shown, answers   second: shown, answers" if timed else "")]
    for name, each in found.items():
        first = each["first"]
        weight = f"{first['sent'] / 1e3:.0f} ({first['unpacked'] / 1e3:.0f})"
        line = f"{name:34}{weight:>16}{first['files']:>7}{first['shift']:>8.4f}"
        if timed:
            times = [each[which][what] / 1e3 for which in each for what in ("shown", "answers")]
            line += "{:>15.2f} s{:>7.2f} s{:>15.2f} s{:>7.2f} s".format(*times)
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="such as book/paper/theorem1")
    parser.add_argument("--all", action="store_true", help="every page of the table of contents")
    parser.add_argument("--fast", action="store_true", help="weight and shift alone")
    parser.add_argument("--site", type=Path, default=SITE, help="another built book")
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    chosen = parser.parse_args()
    names = toc_files() if chosen.all else chosen.pages or SOME
    found = asyncio.run(measure(names, chosen.site, slow=not chosen.fast))
    print(table(found))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
