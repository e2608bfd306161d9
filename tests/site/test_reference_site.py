"""In the built book every box leads to its check, and every check back to its box."""

import pytest
from attnbias_checked import Checked
from reference_statements import listed_names, read_statements

from tools.files import SITE

LISTED = listed_names()
MAPPED = [kept for kept in read_statements().values() if kept.names]
CHECKED = Checked().boxes

pytestmark = pytest.mark.site


def page(name: str) -> str:
    return (SITE / f"{name}.html").read_text(encoding="utf8")


@pytest.mark.parametrize("kept", MAPPED, ids=[kept.label for kept in MAPPED])
def test_statement_and_code_lead_to_each_other(kept):
    chapter, where = page(kept.chapter), page("book/reference/code")
    back = f'href="../{kept.chapter.removeprefix("book/")}.html#{kept.label}"'
    assert back in where
    for name in kept.names:
        if name not in LISTED:  # a room's, which has no page
            module, _, last = name.rpartition(".")
            assert last in where and module in where
            assert kept.kind == "equation" or module in chapter
            continue
        target = f"{LISTED[name]}.html#{name}"
        assert f'href="{target}"' in where
        assert back in page(f"book/reference/{LISTED[name]}")
        if kept.kind != "equation":
            assert f'href="../reference/{target}"' in chapter


@pytest.mark.parametrize("label", CHECKED)
def test_a_box_that_rocq_has_checked_leads_to_its_statement_and_back(label):
    chapter, anchor = CHECKED[label].chapter.removeprefix("book/"), f"rocq-{label}"
    assert f'class="rocq" href="../checked.html#{anchor}"' in page(f"book/{chapter}")
    listed = page("book/checked")
    assert listed.count(f'id="{anchor}"') == 1
    assert f'href="{chapter}.html#{label}"' in listed


def test_each_public_name_has_one_anchor():
    for name, place in LISTED.items():
        assert page(f"book/reference/{place}").count(f'id="{name}"') == 1, name


def test_no_page_of_the_reference_is_large():
    sizes = {path.name: path.stat().st_size for path in (SITE / "book/reference").glob("*.html")}
    assert sizes and max(sizes.values()) < 1e6, sizes
