"""Figures that a reader moves: what they hold is what the library computes."""

import math
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import torch
from read_back import data_of

from attnbias import (
    GD,
    NGD,
    Check,
    CheckTable,
    Dataset,
    InfeasibleError,
    Trace,
    diagnose,
    experiments,
    fit_rate,
    solve_w_svm,
    train,
)
from attnbias.data import make_bad_start, make_dm, make_example1
from attnbias.diagnosis.render import html_page
from attnbias.errors import DtypeError, RangeError, ShapeError
from book import widgets
from book.studies.snapshots import attention_snapshots
from book.widgets.frames import slider_attention, slider_html
from book.widgets.hands import slider_hands
from book.widgets.panel import Panel, decades
from book.widgets.picture import Control, Picture
from book.widgets.runs import slider_normalisation, slider_paths
from book.widgets.scale import slider_scale
from book.widgets.start import row_plane, slider_start
from book.widgets.support import slider_support
from book.widgets.window import slider_window, windows_of
from tools.files import ROOT

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
SVM, ONE = solve_w_svm(BAD), solve_w_svm(Dataset(DATA.X[:1], DATA.y[:1], DATA.u))
STEP = np.unique(np.geomspace(10, 10**4, 150).round())


def paths(record=(0, 1, 10, 100), sizes=(0.1, 1.0), rules=(GD, NGD)):
    return {
        r.__name__: {s: train(DATA, r(s), record[-1], record=record) for s in sizes} for r in rules
    }


def starts(angles=(0, 90, 180)):
    return {
        rule.__name__: {
            a: train(BAD, rule(0.5), 200, W0=row_plane(SVM, 2.0, a), record=range(201))
            for a in angles
        }
        for rule in (GD, NGD)
    }


def hands(**angles):
    """Two runs, one of them with these angles with W_mm, in degrees."""
    rules = GD(1.0), NGD(1.0)
    runs = {rule.name: train(DATA, rule, 100, record=[0, 1, 10, 100]) for rule in rules}
    for rule, given in angles.items():
        runs[rule] = replace(runs["GD(1)"], W_alignment_error=1 - np.cos(np.radians(given)))
    return runs


def joint(ways=("separate", "shared")):
    data = make_dm(4, 2, 40, alpha=3.0, seed=0)
    return {
        way: {
            eta: train(data, NGD(eta, normalise=way), 100, train_u=True, record=40)
            for eta in (0.05, 0.2)
        }
        for way in ways
    }


@cache
def shots():
    data, W0 = experiments.fig2.instance(seed=0, n=4, T=3, d=20)
    return attention_snapshots(data, NGD(0.1), [0, 3, 10, 30, 100, 300], W0=W0)


@cache
def scales(most=3):
    """Of the bad start: R = 1, 2, 4, or R = 1 to `most`."""
    given = [1, 2, 4] if most == 3 else range(1, most + 1)
    return experiments.run("fig8", scales=given, steps=1000)


def frames(label="A <frame>", **options):
    pictures = [f"<svg viewBox='0 0 9 9'><circle r='{k}'/></svg>" for k in range(4)]
    return slider_html(pictures, label, **options)


def attention():
    numbers = {"1 - cosine": shots().W_alignment_error, "|W|": shots().W_norm}
    return slider_attention(
        shots().step, shots().attention, opt=shots().opt, numbers=numbers, label="A <map>"
    )


KINDS = {
    "paths": lambda: slider_paths(paths(), label="A <path>"),
    "support": lambda: slider_support(
        TOKENS, 1, PLACES, PLACES, SOLVED, start=(1, 0), label="A <token>"
    ),
    "start": lambda: slider_start(SVM, starts(), label="A <start>"),
    "window": lambda: slider_window(STEP, STEP**-1.5, label="A <window>"),
    "normalisation": lambda: slider_normalisation(joint(), label="A <norm>"),
    "hands": lambda: slider_hands(hands(), label="A <hand>"),
    "frames": frames,
    "attention": attention,
    "scale": lambda: slider_scale(scales(), label="A <scale>"),
    "ten scales": lambda: slider_scale(scales(10), label="A <scale>"),
}


class Tags(HTMLParser):
    """All tags, and whether each that opens is closed in order."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("input", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def texts_of(markup):
    return data_of(markup)["text"]["values"]


@pytest.mark.parametrize("kind", KINDS)
def test_stands_alone_is_accessible_and_shows_its_first_picture_without_the_script(kind):
    markup = KINDS[kind]()
    page, data = Tags(markup), data_of(markup)
    assert page.open == []
    for forbidden in ("http", "src=", "href=", "@import", "url(", "<style", "nan", "inf"):
        assert forbidden not in re.sub("infinit", "", markup)
    assert "A &lt;" in markup
    assert len(page.named("input")) == len(page.named("label")) == len(data["controls"])
    for control, values in zip(page.named("input"), data["controls"], strict=True):
        assert (control["type"], control["max"]) == ("range", str(len(values) - 1))
    assert len(page.named("output")) == len(page.named("script")) == 1
    assert markup.index("<label>") < markup.index("<input") < markup.index("</label>")
    assert len(markup) < (100_000 if len(data["controls"]) > 1 else 60_000)
    assert markup == KINDS[kind]()
    drawn = [a for _, a in page.tags if "data-set" in a]
    assert len(drawn) == len(data["slots"])
    for attributes, slot in zip(drawn, data["slots"], strict=True):
        assert attributes[attributes["data-set"]] == slot["values"][place(slot["on"], data)]
    text = data["text"]["values"][place(data["text"]["on"], data)]
    assert f"<output>{text}</output>" in markup.replace("&gt;", ">")


def named(text, runs):
    return {f"{text} {k}": row for k, row in enumerate(runs.values())}


# Whatever returns markup, with a text in the place of each text that it takes.
MARKUP = {
    "attended_words": lambda t: widgets.attended_words({t: [widgets.Sentence(t, [t], [0.5])]}),
    "slider_html": lambda t: slider_html(["0", "1"], t, captions=[t, t], name=t),
    "slider_attention": lambda t: slider_attention(
        [0, 1], np.ones((2, 1, 1)), numbers={t: [1, 2]}, label=t, name=t
    ),
    "slider_hands": lambda t: slider_hands({t: hands()["NGD(1)"]}, label=t, name=t),
    "slider_normalisation": lambda t: slider_normalisation(named(t, joint()), label=t, name=t),
    "slider_paths": lambda t: slider_paths(named(t, paths()), label=t, name=t),
    "slider_scale": lambda t: slider_scale(scales(), label=t, name=t),
    "slider_start": lambda t: slider_start(SVM, named(t, starts()), label=t, name=t),
    "slider_support": lambda t: slider_support(TOKENS, 1, PLACES, PLACES, SOLVED, label=t, name=t),
    "slider_window": lambda t: slider_window(STEP, STEP**-1.5, label=t, series=t, name=t),
    "sortable_table": lambda t: widgets.sortable_table(pd.DataFrame({t: [t]}, [t]), label=t),
    "checks.py": lambda t: CheckTable([Check(t, 1.0, 2.0, "<=", t, "d", reason=t)])._repr_html_(),
    "trace.py": lambda t: Trace(np.array([0]), torch.zeros(1, 1), status=t)._repr_html_(),
    "render.py": lambda t: html_page(
        t, diagnose(Dataset(DATA.X, DATA.y, DATA.u, name=t))._repr_html_()
    ),
}


@pytest.mark.parametrize("name", MARKUP)
def test_every_text_that_reaches_a_page_is_escaped(name):
    markup = MARKUP[name]('<img src="x" onerror=alert(1)>W_mm & <')
    assert "<img" not in markup and "&lt;img" in markup
    assert not any("onerror" in attributes for _, attributes in Tags(markup).tags)


def test_whatever_returns_markup_is_tried():
    files = {p.name for p in ROOT.glob("attnbias/**/*.py") if re.search("</[a-z]", p.read_text())}
    assert files | set(widgets.__all__) - {"row_plane", "Sentence"} == set(MARKUP)


def test_tokens_far_away_have_few_ticks_and_none_at_infinity():
    far = slider_support(TOKENS, 1, (-400.0, 0.0, 900.0), PLACES, SOLVED, label="x")
    assert 10 < far.count('<path d="M30 ') <= 41 and ">1000</text>" in far
    for places in ([1e300, 1e300], [0.0, np.inf], [0.0, np.nan]):
        with pytest.raises(RangeError, match="xs and ys"):
            slider_support(TOKENS, 1, places, PLACES, SOLVED[:6], label="x")


def test_a_hand_goes_from_mark_to_mark_as_the_angle_falls_by_ten():
    markup = slider_hands(hands(four=[90.0, 10.0, 1.0, 0.1], back=[120, 90, 45, 90]), label="x")
    _, _, four, back = (
        [float(re.search(r"[-\d.]+", style)[0]) for style in slot["values"]]
        for slot in data_of(markup)["slots"]
    )
    assert four[0] == 0 and four[3] - four[2] == pytest.approx(four[2] - four[1], abs=0.11)
    assert four[3] > 100 and back[0] < 0 == back[1] == back[3] < back[2]
    assert texts_of(markup)[-1].endswith("four 0.1°, back 90°")
    marks = re.findall(r"<text [^>]*>([\d.]+)°</text>", markup)
    assert marks[:4] == ["90", "10", "1", "0.1"]
    line = re.search(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"[^>]*/><text [^>]*>1°', markup)
    x0, y0, x1, y1 = map(float, line.groups())  # a mark points to the hub, and lies under the hand
    turn = math.degrees(math.atan2(y0 - y1, x0 - x1))
    assert turn == pytest.approx(four[2], abs=0.6)


def place(on, data):
    k = 0
    for c in on:
        k = k * len(data["controls"][c]) + data["start"][c]
    return k


def test_every_window_shows_fit_rate():
    value = STEP**-1.5 * (1 + 20 / STEP)
    windows, begins, lengths = windows_of(STEP)
    texts = texts_of(slider_window(STEP, value, label="x"))
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
        s
        for s in data_of(KINDS["support"]())["slots"]
        if any(v.count(" ") == 3 for v in s["values"]) and not s["values"][0].startswith(("M", "t"))
    ]
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
    W = row_plane(SVM, 3.0, 60)
    assert abs(float(W.norm()) - 3) < 1e-12
    assert abs(float((W * SVM.weights).sum()) / (3 * SVM.norm) - 0.5) < 1e-12
    runs = starts()
    texts = texts_of(slider_start(SVM, runs, label="x"))
    rows = [run for row in runs.values() for run in row.values()]
    for text, run in zip(texts, rows, strict=True):
        since = int(re.search(r"from step (\d+) on", text).group(1))
        assert (run.gaps[since:] > 0).all()
        assert since == 0 or (run.gaps[since - 1] <= 0).any()
    assert "from step 0 on" in texts[0]


def test_paths_end_at_their_angle():
    runs = paths()
    slots = data_of(slider_paths(runs, label="x"))["slots"]
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
    text = texts_of(slider_normalisation(runs, label="x"))[-1]
    run = [runs[way][0.2] for way in runs]
    assert f"step 100: |W| is {run[0].W_norm[-1]:.2f} and {run[1].W_norm[-1]:.2f}" in text


def test_ticks():
    assert decades(1, 1000) == [1, 10, 100, 1000]
    assert len(decades(1e-12, 2)) <= 6
    assert decades(1e-12, 2)[-1] == 1
    panel = Panel((0, 0, 100, 100), (1, 100), (1e-4, 1), "xy")
    assert panel.line([1, 10, 100], [1, 1e-2, np.nan]) == "0.0,0.0 50.0,50.0"
    assert '10<tspan font-size="11" dy="-5">−4</tspan></text>' in panel.frame(
        "x", "y", [1, 100], [1e-4]
    )


def other_runs(**options):
    """Runs of NGD that do not go with those of GD."""
    return {"GD": paths()["GD"], "NGD": paths(**options)["NGD"]}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: slider_paths([1], label="x"), DtypeError),
        (lambda: slider_paths({"GD": {1.0: 3}}, label="x"), DtypeError),
        (lambda: slider_paths(other_runs(sizes=(1.0,)), label="x"), RangeError),
        (lambda: slider_paths(other_runs(record=(0, 1, 10, 50)), label="x"), RangeError),
        (lambda: slider_paths(paths(record=(1, 10, 100)), label="x"), RangeError),
        (lambda: slider_paths(paths(rules=(GD,)), label="x"), RangeError),
        (lambda: slider_window(STEP[:9], STEP[:9] ** -1.0, label="x"), RangeError),
        (lambda: slider_window(STEP, -STEP, label="x"), RangeError),
        (lambda: slider_window(STEP, STEP[1:], label="x"), ShapeError),
        (lambda: slider_normalisation(joint(("separate",)), label="x"), RangeError),
        (lambda: slider_normalisation(paths(), label="x"), RangeError),
        (lambda: slider_start(SVM, paths(), label="x"), RangeError),
        (lambda: slider_start(ONE, starts(), label="x"), RangeError),
        (lambda: slider_start("svm", starts(), label="x"), DtypeError),
        (lambda: row_plane(SVM, -1.0, 0), RangeError),
        (lambda: row_plane(SVM, 1.0, "east"), DtypeError),
        (lambda: slider_support(TOKENS, 3, PLACES, PLACES, SOLVED, label="x"), RangeError),
        (lambda: slider_support([1.0], 0, PLACES, PLACES, SOLVED, label="x"), RangeError),
        (lambda: slider_support(TOKENS, 1, PLACES, PLACES, SOLVED[1:], label="x"), ShapeError),
        (lambda: slider_support(TOKENS, 1, PLACES, PLACES, [1] * 9, label="x"), DtypeError),
        (
            lambda: slider_support(TOKENS, 1, PLACES, PLACES, SOLVED, start=(3, 0), label="x"),
            RangeError,
        ),
        (lambda: slider_hands([1], label="x"), DtypeError),
        (lambda: slider_hands({"GD": 1}, label="x"), DtypeError),
        (lambda: slider_hands({}, label="x"), DtypeError),
        (lambda: slider_html("one", "x"), DtypeError),
        (lambda: slider_html(["one"], "x"), RangeError),
        (lambda: frames(captions=["a"]), RangeError),
        (lambda: frames(start=4), RangeError),
        (lambda: slider_attention([0], np.ones((1, 2, 2)), label="x"), RangeError),
        (lambda: slider_attention([0], np.ones((2, 2, 2)), label="x"), RangeError),
        (lambda: slider_attention([0, 1], np.ones((2, 2)), label="x"), ShapeError),
        (lambda: Picture([Control("one", ["a"])], (9, 9)), RangeError),
        (lambda: Picture([Control("two", ["a", "b"])], (9, 9)).follow("g", "r", [1]), ShapeError),
        (lambda: Picture([Control("two", ["a", "b"])], (9, 9)).markup("x", ["a"]), ShapeError),
    ],
)
def test_bad_input_is_named(call, error):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.remedy


def test_a_run_opens_at_its_beginning_and_without_scripts_its_end_stands():
    page = Tags(frames())
    hidden = ["hidden" in attributes for attributes in page.named("div")]
    assert hidden == [True, True, True, False, True]  # four frames, and the control
    cells = [each for each in Tags(attention()).named("rect") if "data-set" in each]
    shown = np.array([float(cell["fill-opacity"]) for cell in cells])
    assert np.allclose(shown, shots().attention[-1].ravel(), atol=0.005 + 1e-9)
    for markup in (frames(), attention(), slider_normalisation(joint(), label="x")):
        control = Tags(markup).named("input")[-1]
        assert control["value"] == "0" and data_of(markup)["start"][-1] == int(control["max"])
    assert Tags(frames(start=1)).named("input")[0]["value"] == "1"  # as asked for


def test_labels_of_the_attention_slider_keep_their_size():
    for tokens in (1, 3, 6, 12):
        maps = np.full((2, 5, tokens), 1 / tokens)
        (drawing,) = Tags(slider_attention([0, 1], maps, label="Map")).named("svg")
        width = float(drawing["viewbox"].split()[2])
        assert 400 <= width <= 800  # stretched to 640 pixels by the page, 13 units become 10 to 21


def test_the_attention_slider_holds_every_map():
    data = data_of(attention())
    maps = np.array([slot["values"] for slot in data["slots"]], dtype=float).T
    assert np.allclose(maps, shots().attention.reshape(len(maps), -1), atol=0.005 + 1e-9)
    texts = data["text"]["values"]
    assert [text.split(",")[0] for text in texts] == [f"step {step}" for step in shots().step]
    assert f"1 - cosine {shots().W_alignment_error[-1]:.2g}" in texts[-1]


def test_ids_can_be_chosen_and_captions_cannot_leave_the_script():
    assert 'id="slider-along-the-run"' in frames("Along the run")
    assert 'id="mine"' in frames(name="mine")
    markup = frames(captions=["</script><b>", "b", "c", "<i>"])
    assert markup.count("</script>") == 1
    assert "<i>" not in markup


def test_the_slider_over_scales_says_its_numbers():
    markup = slider_scale(scales(), label="Softmax over the scale", name="scale")
    page = Tags(markup)
    assert len(page.named("svg")) == 3
    assert len(page.named("polyline")) == 12
    end = scales().traces["GD, R = 4"][0].W_alignment_error[-1]
    said = "R = 4: past one half after 7 steps of GD, 21 of NGD; 1 - cosine at the end"
    assert f"{said} {end:.2g}" in markup
    # it opens in the middle, with and without its script
    assert page.named("input")[0]["value"] == "1"
    assert [("hidden" in frame) for frame in page.named("div")[:3]] == [True, False, True]
    assert "<output>R = 2: past one half" in markup
    # the curves cross one half where the count says
    last = page.named("polyline")[8]["points"]
    points = np.array([[float(x) for x in pair.split(",")] for pair in last.split()])
    half = (points[:, 1].min() + points[:, 1].max()) / 2
    crossing = np.interp(-half, -points[:, 1], points[:, 0])
    steps = np.expm1((crossing - 44) / 360 * np.log1p(1000))
    assert 5 < steps < 8


def test_a_slider_needs_the_gaps(tmp_path):
    back = experiments.load("fig8", scales().save(tmp_path / "fig8.npz"))
    with pytest.raises(DtypeError, match="weights=True"):
        slider_scale(back, label="x")
