"""Figures with several controls: what they hold is what the library computes."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from attnbias.figures.explore import Control, Picture
from attnbias.figures.panel import Panel, decades
from attnbias.figures.slider_window import windows_of

from attnbias import (
    GD,
    NGD,
    Dataset,
    InfeasibleError,
    figures,
    fit_rate,
    make_bad_start,
    make_dm,
    make_example1,
    solve_w_svm,
    train,
)
from attnbias.errors import DtypeError, RangeError, ShapeError

PLACES = (-1.0, 0.0, 1.5)
TOKENS = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]


def solve(token):
    try:
        return solve_w_svm(Dataset([[*TOKENS[:3], token]], [1]), opt=[1])
    except InfeasibleError as error:
        return error


SOLVED = [solve([x, y]) for x in PLACES for y in PLACES]
DATA = make_example1(n=2, T=2, d=6)
BAD, _ = make_bad_start()
SVM = solve_w_svm(BAD)
STEP = np.unique(np.geomspace(10, 10**4, 150).round())


def paths(record=(0, 1, 10, 100), sizes=(0.1, 1.0), rules=(GD, NGD)):
    return {
        r.__name__: {s: train(DATA, r(s), record[-1], record=record) for s in sizes} for r in rules
    }


def starts(angles=(0, 90, 180)):
    return {
        rule.__name__: {
            a: train(BAD, rule(0.5), 200, W0=figures.row_plane(SVM, 2.0, a), record=range(201))
            for a in angles
        }
        for rule in (GD, NGD)
    }


def joint(ways=("separate", "shared")):
    data = make_dm(4, 2, 40, alpha=3.0, seed=0)
    return {
        way: {
            eta: train(data, NGD(eta, normalise=way), 100, train_u=True, record=40)
            for eta in (0.05, 0.2)
        }
        for way in ways
    }


KINDS = {
    "paths": lambda: figures.slider_paths(paths(), label="A <path>"),
    "support": lambda: figures.slider_support(
        TOKENS, 1, PLACES, PLACES, SOLVED, start=(1, 0), label="A <token>"
    ),
    "start": lambda: figures.slider_start(SVM, starts(), label="A <start>"),
    "window": lambda: figures.slider_window(STEP, STEP**-1.5, label="A <window>"),
    "normalisation": lambda: figures.slider_normalisation(joint(), label="A <norm>"),
}


class Tags(HTMLParser):
    """All tags, and whether each that opens is closed in order."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "input":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def data_of(markup):
    """The data of a figure: controls, start, texts and slots."""
    return json.loads(re.search(r"data = (\{.*?\});\n", markup).group(1))


def texts_of(markup):
    return data_of(markup)["text"]["values"]


@pytest.mark.parametrize("kind", KINDS)
def test_stands_alone_and_is_accessible(kind):
    markup = KINDS[kind]()
    page, data = Tags(markup), data_of(markup)
    assert page.open == []
    for forbidden in ("http", "src=", "href=", "@import", "url(", "<style", "nan", "inf"):
        assert forbidden not in re.sub("infinit", "", markup)
    assert "A &lt;" in markup
    assert len(page.named("input")) == len(page.named("label")) == len(data["controls"]) == 2
    for control, values in zip(page.named("input"), data["controls"], strict=True):
        assert (control["type"], control["max"]) == ("range", str(len(values) - 1))
    assert len(page.named("output")) == len(page.named("script")) == 1
    assert len(markup) < 100_000
    assert markup == KINDS[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_picture_is_drawn_without_the_script(kind):
    markup = KINDS[kind]()
    data = data_of(markup)
    drawn = [a for _, a in Tags(markup).tags if "data-set" in a]
    assert len(drawn) == len(data["slots"])
    for attributes, slot in zip(drawn, data["slots"], strict=True):
        assert attributes[attributes["data-set"]] == slot["values"][place(slot["on"], data)]
    text = data["text"]["values"][place(data["text"]["on"], data)]
    assert f"<output>{text}</output>" in markup.replace("&gt;", ">")


def place(on, data):
    k = 0
    for c in on:
        k = k * len(data["controls"][c]) + data["start"][c]
    return k


def test_every_window_shows_fit_rate():
    value = STEP**-1.5 * (1 + 20 / STEP)
    windows, begins, lengths = windows_of(STEP)
    texts = texts_of(figures.slider_window(STEP, value, label="x"))
    assert len(texts) == len(windows) == len(begins) * len(lengths)
    for text, window in zip(texts, windows, strict=True):
        fit = fit_rate(STEP, value, window=window)
        low, high = fit.interval
        assert text == (
            f"steps {window[0]} to {window[1]}: exponent {fit.exponent:.2f}, "
            f"slopes inside {low:.2f} to {high:.2f}"
        )
    assert len(set(texts)) > len(texts) // 2


def test_support_tokens_are_named_from_the_certified_solution():
    texts = texts_of(KINDS["support"]())
    for text, given in zip(texts, SOLVED, strict=True):
        if isinstance(given, InfeasibleError):
            assert text.startswith("no W attends to token 2")
        else:
            others = [1, 3, 4]
            named = text.split("tokens ")[-1] if "tokens" in text else text.split("token ")[-1]
            found = [int(n) for n in re.findall(r"\d+", named.split(", dual")[0])]
            assert found == [others[k] for k in given.support.tolist()]
            assert f"margin {given.margin:.2f}" in text
    # by hand: the fourth token above the second puts it inside the hull of the others
    assert "among tokens 1, 3 and 4" in texts[PLACES.index(0.0) * 3 + PLACES.index(1.5)]
    assert texts[PLACES.index(0.0) * 3] == (
        "margin 1.34, held back by tokens 1 and 3, dual weights 0.44, 0.11"
    )


def test_the_band_is_as_wide_as_the_margin():
    (slot,) = [
        s for s in data_of(KINDS["support"]())["slots"]
        if any(v.count(" ") == 3 for v in s["values"]) and not s["values"][0].startswith(("M", "t"))
    ]  # fmt: skip
    reach = 1.25 * 1.5
    for given, points in zip(SOLVED, slot["values"], strict=True):
        if isinstance(given, InfeasibleError):
            assert points == ""
            continue
        a, b, c, _ = np.array([[float(x) for x in p.split(",")] for p in points.split()])
        along = (b - a) / np.linalg.norm(b - a)
        offset = c - a
        width = abs(along[0] * offset[1] - along[1] * offset[0]) / 320 * 2 * reach
        assert abs(width - given.margin) < 0.01


def test_a_start_at_an_angle():
    W = figures.row_plane(SVM, 3.0, 60)
    assert abs(float(W.norm()) - 3) < 1e-12
    assert abs(float((W * SVM.weights).sum()) / (3 * SVM.norm) - 0.5) < 1e-12
    runs = starts()
    texts = texts_of(figures.slider_start(SVM, runs, label="x"))
    rows = [run for row in runs.values() for run in row.values()]
    for text, run in zip(texts, rows, strict=True):
        since = int(re.search(r"from step (\d+) on", text).group(1))
        assert (run.gaps[since:] > 0).all()
        assert since == 0 or (run.gaps[since - 1] <= 0).any()
    assert "from step 0 on" in texts[0]


def test_paths_end_at_their_angle():
    runs = paths()
    slots = data_of(figures.slider_paths(runs, label="x"))["slots"]
    starts_, ends = slots[1]["values"], slots[4]["values"]  # dots of steps 0 and 100
    assert starts_ == starts_[:1] * 4  # one start, W = 0
    origin = np.array([float(x) for x in starts_[0].split()[1:3]])
    rows = [run for row in runs.values() for run in row.values()]
    for end, run in zip(ends, rows, strict=True):
        x, y = np.array([float(x) for x in end.split()[1:3]]) - origin
        error = 1 - x / np.hypot(x, y)
        assert abs(error - run.W_alignment_error[-1]) < 0.01


def test_joint_or_separate_shows_both_norms():
    runs = joint()
    data = data_of(figures.slider_normalisation(runs, label="x"))
    last = len(data["controls"][1]) - 1
    run = [runs[way][0.2] for way in runs]
    text = data["text"]["values"][1 * (last + 1) + last]
    assert f"step 100: |W| is {run[0].W_norm[-1]:.2f} and {run[1].W_norm[-1]:.2f}" in text


def test_ticks():
    assert decades(1, 1000) == [1, 10, 100, 1000]
    assert len(decades(1e-12, 2)) <= 6
    assert decades(1e-12, 2)[-1] == 1
    panel = Panel((0, 0, 100, 100), (1, 100), (1e-4, 1), "xy")
    assert panel.line([1, 10, 100], [1, 1e-2, np.nan]) == "0.0,0.0 50.0,50.0"
    assert "10⁻⁴" in panel.frame("x", "y", [1, 100], [1e-4])


def other_sizes():
    runs = paths()
    runs["GD"].pop(0.1)
    return runs


def other_records():
    return {"GD": paths()["GD"], "NGD": paths(record=(0, 1, 10, 50))["NGD"]}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: figures.slider_paths([1], label="x"), DtypeError),
        (lambda: figures.slider_paths({"GD": {1.0: 3}}, label="x"), DtypeError),
        (lambda: figures.slider_paths(other_sizes(), label="x"), RangeError),
        (lambda: figures.slider_paths(other_records(), label="x"), RangeError),
        (lambda: figures.slider_paths(paths(record=(1, 10, 100)), label="x"), RangeError),
        (lambda: figures.slider_paths(paths(rules=(GD,)), label="x"), RangeError),
        (lambda: figures.slider_window(STEP[:9], STEP[:9] ** -1.0, label="x"), RangeError),
        (lambda: figures.slider_window(STEP, -STEP, label="x"), RangeError),
        (lambda: figures.slider_window(STEP, STEP[1:], label="x"), ShapeError),
        (lambda: figures.slider_normalisation(joint(("separate",)), label="x"), RangeError),
        (lambda: figures.slider_normalisation(paths(), label="x"), RangeError),
        (lambda: figures.slider_start(SVM, paths(), label="x"), RangeError),
        (lambda: figures.slider_start(solve_w_svm(DATA.__class__(DATA.X[:1], DATA.y[:1], DATA.u)),
                                      starts(), label="x"), RangeError),
        (lambda: figures.slider_start("svm", starts(), label="x"), DtypeError),
        (lambda: figures.row_plane(SVM, -1.0, 0), RangeError),
        (lambda: figures.row_plane(SVM, 1.0, "east"), DtypeError),
        (lambda: figures.slider_support(TOKENS, 3, PLACES, PLACES, SOLVED, label="x"), RangeError),
        (lambda: figures.slider_support([1.0], 0, PLACES, PLACES, SOLVED, label="x"), RangeError),
        (lambda: figures.slider_support(TOKENS, 1, PLACES, PLACES, SOLVED[1:], label="x"),
         ShapeError),
        (lambda: figures.slider_support(TOKENS, 1, PLACES, PLACES, [1] * 9, label="x"), DtypeError),
        (lambda: figures.slider_support(TOKENS, 1, PLACES, PLACES, SOLVED, start=(3, 0), label="x"),
         RangeError),
        (lambda: Picture([Control("one", ["a"])], (9, 9)), RangeError),
        (lambda: Picture([Control("two", ["a", "b"])], (9, 9)).follow("g", "r", [1]), ShapeError),
        (lambda: Picture([Control("two", ["a", "b"])], (9, 9)).markup("x", ["a"]), ShapeError),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.remedy
