"""Run chapters one at a time and print the peak memory of each one's kernel.

    python tools/measure_memory.py                  every chapter
    python tools/measure_memory.py exponents     some chapters

Binder gives 2 GB. The peak is that of the resident memory of the kernel and its children together,
looked at every 50 ms.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import psutil
from nbclient import NotebookClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.sync_notebooks import TIMEOUT_S, choose, read_source  # noqa: E402

LIMIT_GB = 2.0
SECONDS_BETWEEN = 0.05


def resident(process: psutil.Process) -> int:
    """Bytes held by a process and its children; those that end meanwhile count as nothing."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


class Watch:
    """Keeps the largest amount that `look` has returned while the block ran."""

    def __init__(self, look) -> None:
        self.look, self.peak = look, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN):
            try:
                self.peak = max(self.peak, self.look())
            except psutil.NoSuchProcess:
                return

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._over.set()
        self._thread.join()


def peak_gb(source: Path) -> float:
    """The peak of a chapter's kernel, in GB."""
    client = NotebookClient(read_source(source), timeout=TIMEOUT_S, kernel_name="python3")
    with client.setup_kernel(cwd=str(source.parent)):
        kernel = psutil.Process(client.km.provisioner.pid)
        with Watch(lambda: resident(kernel)) as watch:
            for index, cell in enumerate(client.nb.cells):
                client.execute_cell(cell, index)
    return watch.peak / 1e9


def main() -> int:
    largest = 0.0
    for source in choose(sys.argv[1:]):
        peak = peak_gb(source)
        largest = max(largest, peak)
        print(f"{source.stem:24s} {peak:.2f} GB", flush=True)
    return 1 if largest > LIMIT_GB else 0


if __name__ == "__main__":
    sys.exit(main())
