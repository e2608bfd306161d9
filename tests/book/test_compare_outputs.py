"""One comparison, for nbval and the shake: equal words and counts, numbers within a tolerance."""

import re

import nbformat
import pytest

from tools import compare_outputs as outputs
from tools.chapters import notebook_sources
from tools.compare_outputs import RTOL, compare_cells, compare_outputs, compare_texts, tolerance
from tools.sync_notebooks import code_of, read_source


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("1.000", "1.010"),
        ("9.99", "10.00"),
        ("  9.99 |", " 10.00 |"),
        ("1.0e-12", "9.9e-13"),
        ("loss = -27997.93 at step 10", "loss = -28003.41 at step 10"),
        ("[ 9.99 10.01]", "[10.01 10.01]"),
        ("[0.999 0.5  ]", "[1.  0.5]"),
        ("1.005e-700", "1e-700"),
        ("0.000", "-0.000"),
        ("x=-0.500", "x=-0.501"),
        ("'0.988'", "'0.989'"),
        ("1 to 0.998", "1 to 1"),
        ("999.5 ms", "1,000.5 ms"),
        ("1,234.5 of 2,000", "1,235.5 of 2,000"),
        ("0.301-0.502", "0.302-0.501"),
        ("12.51%, 3.21s, 0.993x", "12.52%, 3.22s, 0.994x"),
        ("It took 0.501.", "It took 0.502."),
        ("a    b\n-----\n9.99 1.01", "a     b\n------\n10.00 1.01"),
        ("gap < 1e-12: True", "gap < 1e-12: True"),
    ],
)
def test_one_per_cent_and_the_width_of_a_column_are_accepted(reference, found):
    assert compare_texts(reference, found) == []
    assert compare_texts(found, reference) == []


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("1.000", "1.015"),
        ("4e-03", "5e-03"),
        ("1.23e-05", "1.23e-06"),
        ("1e-700", "2e-700"),
        ("0", "1e-17"),
        ("0.000", "0.001"),
        ("0.1", "-0.1"),
        ("x=-0.5", "x=0.5"),
        ("12 steps", "13 steps"),
        ("27997", "27998"),
        ("It took 12.", "It took 13."),
        ("[1. 2.]", "[1. 3.]"),
        ("1,234 steps", "1,235 steps"),
        ("1,234.5", "2,234.5"),
        ("3-5", "3-6"),
        ("0.3-0.5", "0.3-0.6"),
        ("20M", "21M"),
        ("3.2s", "3.2m"),
        ("3.2s", "3.3s"),
        ("v1.2.3", "v1.2.4"),
        ("2.13.0+cpu", "2.13.1+cpu"),
        ("254e9d6c6cff", "255e9d6c6cff"),
        ("10³", "10⁴"),
        ("a1.5", "a1.6"),
        ("w_0 = 0.5", "w_1 = 0.5"),
        ("a -b", "a b"),
        ("a-b", "a b"),
        ("inf", "-inf"),
        ("inf", "nan"),
        ("0.5", "nan"),
        ("0.5 0.5", "0.5"),
        ("0.5\n", "0.5"),
        ("0.5\n0.5", "0.5 0.5"),
        ("gap < 1e-12: True", "gap < 1e-12: False"),
    ],
)
def test_anything_more_is_refused(reference, found):
    assert compare_texts(reference, found)
    assert compare_texts(found, reference)


def output(**data):
    return nbformat.v4.new_output("display_data", data=data)


def printed(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def code_cell(source, *outputs):
    return nbformat.v4.new_code_cell(source, execution_count=1, outputs=list(outputs))


def test_the_difference_names_the_numbers_and_the_lines():
    (found,) = compare_texts("same\nloss 0.20 here", "same\nloss 0.25 here")
    assert found.startswith("0.20 against 0.25, 20.00% apart") and "loss 0.25 here" in found
    assert "same" not in found
    (words,) = compare_texts("holds", "fails")
    assert "apart" not in words and "holds" in words and "fails" in words


GLUED = "application/papermill.record/text/plain"


KINDS = {
    kind: lambda text, kind=kind: output(**{kind: text})
    for kind in ("text/plain", "text/markdown", "text/latex", GLUED)
} | {
    "stream": printed,
    "json": lambda text: output(**{"application/json": {"a": text}}),
    "html": lambda text: output(**{"text/html": f"<td style='width:{text}'>{text}</td>"}),
    "error": lambda text: nbformat.v4.new_output("error", ename="E", evalue=text, traceback=[]),
}


@pytest.mark.parametrize("show", KINDS.values(), ids=KINDS)
def test_every_kind_of_text_is_compared(show):
    assert not compare_outputs([show("0.500")], [show("0.501")])
    assert compare_outputs([show("0.50")], [show("0.52")])
    assert compare_outputs([show("0.50")], [])
    assert compare_outputs([], [show("0.50")])
    assert outputs.is_compared(code_cell("", show("0.50")))


def test_pictures_and_what_draws_are_not_compared():
    def svg(value):
        data = f'{{"text":["margin {value}"],"slots":[["{value},0.7"]]}};'
        return output(**{"text/html": f'<svg><path d="M{value} 1"/></svg>\ndata = {data}\nx()'})

    pictures = [
        output(**{kind: bits, "text/plain": "<Figure size 660x380 with 1 Axes>"})
        for kind in ("image/png", "image/svg+xml", "application/papermill.record/image/svg+xml")
        for bits in ("a", "b")
    ]
    assert not compare_outputs(pictures[::2], pictures[1::2])
    for shown in (pictures, []):
        assert not outputs.is_compared(code_cell("", *shown))
    assert compare_outputs([svg(0.5)], [svg(0.6)])  # in words that a reader sees
    moved = svg(0.5)
    moved.data["text/html"] = moved.data["text/html"].replace("0.7", "0.9").replace("M0.5", "M0.6")
    assert moved != svg(0.5) and not compare_outputs([svg(0.5)], [moved])


def test_streams_in_pieces_and_kinds_in_another_order_are_the_same():
    both = {"text/plain": "0.5", "text/html": "<b>0.5</b>"}
    old = [printed("a 0.5\n"), output(**both), printed("b\n")]
    new = [printed("a 0.5\nb\n"), output(**dict(reversed(both.items())))]
    assert not compare_outputs(old, new)
    assert compare_outputs(old, [printed("a 0.5\nb\n", "stderr"), new[1]])
    assert compare_outputs(old, [*old, printed("careful", "stderr")])  # a warning not recorded


def test_a_stated_tolerance_is_honoured_where_it_has_a_reason():
    stated = "x = 1\n# compared within 5%: single precision\nprint(x)"
    assert (tolerance(stated), tolerance("x = 1")) == (0.05, RTOL)
    assert tolerance("# compared within 0.1%: known exactly") == 0.001
    one, near, far = (code_cell(stated, printed(text)) for text in ("1.00", "1.05", "1.06"))
    assert not compare_cells(one, near) and compare_cells(one, far)
    for refused in ("# compared within 5%", "# compared within 5%: ", "# compared within five%: a"):
        assert tolerance(refused) == RTOL and badly_stated(refused)
    fine = "# compared within 5%: single precision"
    assert badly_stated(fine) == []
    assert badly_stated("# compared within 30%: it is chaotic")
    assert badly_stated(f"{fine}\n{fine}")
    assert badly_stated("x = 1  # compared within 5%: at the end of a line it is not read")


def badly_stated(source: str) -> list[str]:
    """Lines of a cell's code that state a tolerance without a number or a reason, or too much."""
    lines = [line for line in source.splitlines() if re.search(r"#.*compared +within", line)]
    within = [line for line in lines if outputs.STATED.fullmatch(line)]
    stated = [line for line in within if tolerance(line) <= outputs.LOOSEST]
    return [line for line in lines if line not in stated] + stated[1:]


@pytest.mark.parametrize("source", notebook_sources(), ids=lambda source: source.stem)
def test_chapters_state_tolerances_with_a_reason(source):
    code = code_of(read_source(source).cells)
    assert [line for cell in code for line in badly_stated(cell)] == []


def test_numbers_are_counted_and_counts_are_not():
    text, glued = printed("step 10: 0.5, 1e-3 and 1,000.5\n"), output(**{"text/plain": "'0.5'"})
    cells = [
        code_cell("", text, glued),
        code_cell("", output(**{"text/html": "<td>0.5</td>", "text/plain": "a 0.5"})),
        nbformat.v4.new_markdown_cell("0.5"),
    ]
    assert outputs.count_numbers(cells) == 5
