"""Imports go one way; the test walks them."""

from __future__ import annotations

import pytest

from tools import draw_house
from tools.house import FLOORS, LAYERS, PACKAGE, Room, imported_parts, layer, modules, own_part

MODULES = modules()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    for part in imported_parts(path, path.read_text()):
        assert layer(part) <= layer(own_part(path)), f"{path.name} imports {part} from above"


def test_an_upward_import_is_found():
    path = PACKAGE / "geometry" / "svm.py"
    upward = imported_parts(path, "from ..dynamics.train import train\nfrom .. import plots\n")
    assert upward == {"dynamics", "plots"}
    assert all(layer(part) > layer("geometry") for part in upward)


def test_cli_and_plots_are_not_needed_by_the_library():
    for path in MODULES:
        if own_part(path) not in {"cli"}:
            assert not imported_parts(path, path.read_text()) & {"cli"}


def test_no_global_seed():
    """Seeds go through explicit generators."""
    for path in MODULES:
        text = path.read_text()
        for call in ("torch.manual_seed(", "np.random.seed(", "numpy.random.seed(", "random.seed("):
            assert call not in text, f"{path.name} sets a global seed"


def test_every_part_has_a_room_and_every_room_its_parts():
    parts = {own_part(path) for path in MODULES}
    assert {name for names in LAYERS for name in names} == parts
    with pytest.raises(AssertionError, match="give it a room in tools/house.py"):
        layer("a_new_package")


def test_the_picture_of_the_house_shows_the_code_as_it_is():
    """`python tools/draw_house.py` draws it anew."""
    assert draw_house.TARGET.read_text(encoding="utf8") == draw_house.draw()


def test_a_new_room_or_a_new_import_changes_the_picture(monkeypatch):
    before, found = draw_house.draw(), draw_house.uses()
    monkeypatch.setattr(draw_house, "uses", lambda: found | {"nets": found["nets"] | {"checks"}})
    assert draw_house.draw() != before
    monkeypatch.setattr(draw_house, "FLOORS", [*FLOORS, [Room(("attic",), "boxes")]])
    assert "attic" in draw_house.draw() and "attic" not in before


def too_long(rows) -> list[str]:
    """Calls that would run out of their box; all other text is wrapped."""
    inside = draw_house.WIDTH - draw_house.LEFT
    room_for = {room: room.share * (inside + draw_house.GAP) - draw_house.GAP
                - 2 * draw_house.PAD - 21 for row in rows for room in row}  # fmt: skip
    return [call for room, width in room_for.items() for _, call in room.stations
            if len(call) * draw_house.CALL > width]  # fmt: skip


def test_the_picture_reads_on_a_phone_and_aloud():
    assert draw_house.WIDTH <= 360  # the column of a phone: letters keep their 12 pixels
    assert too_long(draw_house.rows()) == []
    narrow = Room(("attic",), "boxes", (("8", "a_call_that_is_far_too_long(data)"),), 0.34)
    assert too_long([[narrow]]) == ["a_call_that_is_far_too_long(data)"]
    said = draw_house.described(draw_house.uses())
    parts = {own_part(path) for path in MODULES}
    calls = {call for floor in FLOORS for room in floor for _, call in room.stations}
    assert [words for words in parts | calls if words not in said] == []
