"""Draw the first page's picture, the race of chapter 1, by the cells of the chapter itself.

python scripts/make_front_picture.py

The PNG is what a chat shows beside a link to the book: few of them draw SVG.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import jupytext
from matplotlib.gridspec import GridSpec

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = ROOT / "book/paper/one_picture.md"
PICTURE, PREVIEW = ROOT / "book/images/one_picture.svg", ROOT / "book/_static/preview.png"


def drawing_code() -> str:
    """The chapter's cells up to the one that draws the picture."""
    cells = [cell.source for cell in jupytext.read(CHAPTER).cells if cell.cell_type == "code"]
    last = next(k for k, cell in enumerate(cells) if 'glue("one_picture"' in cell)
    return "\n".join(cells[: last + 1])


def digest() -> str:
    """Stored in the picture, so that a test sees when the chapter has gone on without it."""
    return hashlib.sha256(drawing_code().encode()).hexdigest()


def main() -> None:
    sys.path.insert(0, str(ROOT))  # for the book's own modules
    names = {"unglued": lambda *_, **__: None}  # there is no page to glue anything to
    exec(drawing_code().replace("glue(", "unglued("), names)
    race = names["fig"]
    race.axes[0].remove()  # the upper half is in words that a first page has not explained
    race.axes[0].set(subplotspec=GridSpec(1, 1, race)[0], title="")
    race.set_size_inches(4.4, 3.6)  # letters of full size beside the words, and on a phone
    race.savefig(PICTURE, metadata={"Date": None, "Identifier": digest()})
    race.savefig(PREVIEW, dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
