"""Two books are the same when every file is, but for the few that are stated."""

import pytest

from attnbias.errors import MissingFileError
from tools.compare_books import MAY_DIFFER, main

FILES = {
    ".buildinfo": b"config: 1",
    "index.html": b"<p>as good as 0.5</p>",
    "book/page.html": b"<p>a page</p>",
    "_images/a.svg": b"\xff\x00",
}


def book(folder, **changes):
    for name, content in (FILES | changes).items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return str(folder)


def compare(tmp_path, **changes):
    return main([book(tmp_path / "one"), book(tmp_path / "two", **changes)])


def test_equal_books_may_differ_in_what_is_stated(tmp_path, capsys):
    assert compare(tmp_path, **{".buildinfo": b"config: 2"}) == 0
    said = capsys.readouterr().out
    assert "4 and 4 files, of which 0 differ" in said and MAY_DIFFER[".buildinfo"] in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"index.html": b"<p>as good as 0.6</p>"}, "index.html: byte 16: b'<p>as good as 0.5</p>'"),
        ({"index.html": b"<p>as good as 0.5</p>\n"}, "index.html: byte 21: "),
        ({"_images/a.svg": b"\xff\x01"}, r"_images/a.svg: byte 1: b'\xff\x00' against b'\xff\x01'"),
        ({"book/page.html": None}, "book/page.html: in the first alone"),
        ({"book/.buildinfo": b""}, "book/.buildinfo: in the second alone"),
    ],
)
def test_any_other_difference_is_named(tmp_path, capsys, changes, said):
    assert compare(tmp_path, **changes) == 1
    shown = capsys.readouterr().out
    assert said in shown and "of which 1 differ" in shown


def test_a_folder_without_a_first_page_is_no_book(tmp_path):
    with pytest.raises(MissingFileError, match=r"a folder with an index\.html"):
        compare(tmp_path, **{"index.html": None})
