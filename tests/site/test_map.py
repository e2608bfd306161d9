"""The map of statements in the built book: by mouse, by keyboard, on a phone and without scripts.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest
from reference_statements import read_statements
from statement_graph import all_behind, read_edges, reverse

from tools.files import SITE

PAGE = SITE / "book/statements.html"
LABEL = "assumption-2"
USES = read_edges(set(read_statements()))
USED = reverse(USES)
pytestmark = pytest.mark.site


@pytest.fixture(params=[390, 1200])
def page(browser, request):
    assert PAGE.is_file(), f"{PAGE} is missing: run `make book`"
    browser.fingers(False)
    browser.open(PAGE, width=request.param)
    return browser


def marked(page, kind):
    ids = f"[...document.querySelectorAll('.map-frame li.{kind}')].map(each => each.id.slice(4))"
    return set(page.evaluate(ids))


def check_marks(page, label):
    assert marked(page, "here") == {label}
    assert marked(page, "uses") == set(USES[label]) and marked(page, "used") == set(USED[label])
    assert marked(page, "falls") == all_behind(label, USED)
    lines = "[...document.querySelectorAll('path.KIND')].map(line => line.dataset.END)"
    for kind, end, others in (("uses", "from", USES), ("used", "to", USED)):
        found = page.evaluate(lines.replace("KIND", kind).replace("END", end))
        assert sorted(found) == sorted(others[label])
    said = page.evaluate("document.querySelector('.map-words').textContent")
    assert f"{len(all_behind(label, USED))} of the others would fall with it" in said


def test_all_statements_stand_in_the_frame_and_none_on_another(page):
    places = """[...document.querySelectorAll('.map-frame li')].map(each => [each.id.slice(4),
      each.offsetLeft, each.offsetTop, each.scrollWidth > each.offsetWidth ||
      each.scrollHeight > each.offsetHeight, each.offsetWidth, each.offsetHeight])"""
    found = page.evaluate(places)
    assert sorted(label for label, *_ in found) == sorted(USES)
    assert [label for label, *_, spills, _, _ in found if spills] == []
    for k, (_, x, y, _, wide, high) in enumerate(found):
        for _, other_x, other_y, *_ in found[:k]:
            assert abs(x - other_x) >= wide or abs(y - other_y) >= high
    assert page.evaluate("document.scrollingElement.scrollWidth") == page.evaluate("innerWidth")


def test_a_line_leads_from_each_statement_to_each_that_rests_on_it(page):
    """At its ends stand the two, as one sees them."""
    ends = """[...document.querySelectorAll('path[data-to]')].map(line => {
      const home = line.ownerSVGElement.getBoundingClientRect(), length = line.getTotalLength();
      const off = (name, at, side) => {
        const box = document.getElementById(`map-${name}`).getBoundingClientRect();
        const point = line.getPointAtLength(at);
        const middle = box.y + box.height / 2;
        return Math.hypot(home.x + point.x - box[side], home.y + point.y - middle);
      };
      const { from, to } = line.dataset;
      return [from, to, Math.max(off(from, 0, 'right'), off(to, length, 'left'))];
    })"""
    found = page.evaluate(ends)
    lines = sorted((used, label) for label in USES for used in USES[label])
    assert sorted((start, end) for start, end, _ in found) == lines
    assert max(off for *_, off in found) < 7  # pixels: an arrow's head lies between


def test_a_narrow_frame_says_that_it_moves(page):
    frame = "document.querySelector('.map-frame')"
    wider = page.evaluate(f"{frame}.scrollWidth > {frame}.clientWidth")
    assert wider == ("sideways" in page.evaluate(f"getComputedStyle({frame}, '::before').content"))
    assert wider or page.evaluate("innerWidth") > 390


def test_no_card_covers_the_words_nor_its_own_statement(page):
    page.style("* { transition: none !important; scroll-behavior: auto !important }")
    boxes = """(chip => [chip, document.querySelector('.map-words'),
      document.getElementById('hover-card')].map(each => {
        const { left, top, right, bottom } = each.getBoundingClientRect();
        return [left, top, right, bottom];
    }))"""
    for label in list(USES)[::12]:
        chip = f"document.getElementById('map-{label}')"
        page.press("Escape")
        page.evaluate(f"{chip}.querySelector('a').blur()")
        page.evaluate(f"{chip}.querySelector('a').focus({{focusVisible: true}})")
        page.wait_for(f"{chip}.querySelector('[aria-describedby]') !== null")
        shown, words, card = page.evaluate(f"{boxes}({chip})")
        for one, two in ((card, words), (card, shown), (shown, words)):
            apart = [one[0] >= two[2], two[0] >= one[2], one[1] >= two[3], two[1] >= one[3]]
            assert any(apart), (label, one, two)


def test_the_mouse_marks_what_a_statement_rests_on_and_what_falls_with_it(page):
    chip = f"document.getElementById('map-{LABEL}')"
    page.evaluate(f"{chip}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = f"(b => [b.left + b.width / 2, b.top + b.height / 2])({chip}.getBoundingClientRect())"
    page.point(*page.evaluate(box))
    page.wait_for("document.querySelector('.map-frame li.here') !== null")
    check_marks(page, LABEL)


@pytest.mark.parametrize("label", ["assumption-2", "lemma-7", "w-svm"])
def test_a_first_tap_marks_and_shows_the_card_and_a_second_follows_the_link(browser, label):
    browser.open(PAGE, width=390)
    chip = f"document.getElementById('map-{label}')"
    browser.evaluate(f"{chip}.scrollIntoView({{block: 'center', inline: 'center'}})")
    box = f"(b => [b.left + b.width / 2, b.top + b.height / 2])({chip}.getBoundingClientRect())"
    place = browser.evaluate(box)
    browser.touch(*place)
    browser.wait_for(f"{chip}.querySelector('[aria-describedby]') !== null")
    check_marks(browser, label)
    assert browser.evaluate("location.pathname").endswith("book/statements.html")
    browser.touch(*place)
    browser.wait_for(f"location.hash === '#{label}'")
    browser.fingers(False)


def test_marks_are_drawn_and_need_no_letters(page):
    """The words of a chip are its link and its letter; what checks it has a shape."""
    marks = """[...document.querySelectorAll('.map-frame li')].map(each => {
      const [square, tick] = [[each, '::before'], [each.querySelector('a'), '::after']].map(
        ([at, part]) => getComputedStyle(at, part).content === '""');
      return [each.title.includes('Rocq'), square, each.title.includes('run'), tick,
        getComputedStyle(each, '::after').content];
    })"""
    found = page.evaluate(marks)
    assert all(rocq == square and run == tick for rocq, square, run, tick, _ in found)
    assert sum(square for _, square, *_ in found) > 10 and sum(each[3] for each in found) > 50
    assert {letter for *_, letter in found} == {'""', '"a"', '"b"', '"c"'}


def test_nothing_shows_beside_the_bar_when_it_scrolls(browser):
    """A strip of the window right of the bar's end looks as it does above the map."""
    browser.open(PAGE, width=1200)
    browser.style("* { transition: none !important; scroll-behavior: auto !important }")
    strip = {"x": 940, "y": 2, "width": 240, "height": 36}
    plain = browser.tab.screenshot(clip=strip)
    boxes = "document.elementsFromPoint(1040, 20).some(each => each.matches('.map-frame li'))"
    for down in range(0, 1200, 17):  # to where a box lies under the strip
        browser.evaluate(f"scrollTo(0, {down})")
        if browser.evaluate(boxes):
            break
    assert browser.evaluate(boxes)
    assert browser.tab.screenshot(clip=strip) == plain


def test_the_keyboard_does_too_and_escape_ends_it(page):
    label = next(label for label in USES if USES[label] and USED[label])
    page.evaluate(f"document.querySelector('#map-{label} a').focus()")
    check_marks(page, label)
    page.press("Escape")
    assert marked(page, "here") == marked(page, "falls") == set()


def test_without_scripts_a_table_says_it(browser):
    browser.scripts(False)
    try:
        browser.open(PAGE, width=1200)
        rows = browser.evaluate("document.querySelectorAll('details table tbody tr').length")
        assert rows == sum(1 for label in USES if USES[label] or USED[label])
    finally:
        browser.scripts(True)
