"""What plots are given: runs without labels, runs that lack a series, axes of the caller's own."""

import re

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnbias import GD, NGD, Check, Trace, make_example1, plots, train
from attnbias.errors import DtypeError, RangeError

DATA = make_example1(n=4, T=3, d=20)
RUN, OTHER = (train(DATA, rule, 100) for rule in (NGD(0.1), GD(0.5)))
STEP = np.arange(9)
FALLING = np.exp(-STEP.astype(float))


def own(**series) -> Trace:
    """A run of the caller's own, with what it chose to record."""
    return Trace(STEP, torch.eye(2), series=series)


def legend(fig) -> list[str]:
    return [each.get_text() for each in fig.legends[0].texts]


def shown(fig) -> list[str]:
    return [re.sub(r" .*", "", axis.get_ylabel()) for axis in fig.axes]


@pytest.mark.parametrize("plot", [plots.plot_runs, plots.plot_alignment_rates])
def test_runs_without_labels_are_named_by_their_rules(plot):
    assert legend(plot(RUN)) == ["NGD(0.1)"]
    assert legend(plot([RUN, OTHER, RUN])) == ["NGD(0.1)", "GD(0.5)", "NGD(0.1), no. 2"]
    assert legend(plot((OTHER,))) == ["GD(0.5)"]
    assert legend(plot({"mine": RUN})) == ["mine"]


@pytest.mark.parametrize("given", [[], [RUN, 3], {"a": []}, [[RUN]], {"a": {"b": RUN}}])
def test_what_is_no_run_is_refused(given):
    with pytest.raises(DtypeError, match="^runs"):
        plots.plot_runs(given)


def test_a_series_is_drawn_from_what_was_recorded_its_logarithm_or_itself():
    for name in ("loss", "loss_gap", "grad_norm", "step_size"):
        runs = own(**{name: FALLING}), own(**{f"log_{name}": -STEP.astype(float)})
        lines = [plots.plot_runs(run, name).axes[0].lines[0].get_ydata() for run in runs]
        np.testing.assert_allclose(*lines, rtol=1e-12)  # a logarithm taken twice
    assert shown(plots.plot_runs(own(loss=FALLING))) == ["train"]
    assert shown(plots.plot_runs(own(log_W_norm=1.0 * STEP, nonopt_score=FALLING))) == ["norm", "1"]


def test_default_panels_that_a_run_lacks_are_left_out():
    nothing = np.full(9, np.nan)
    assert shown(
        plots.plot_runs(own(loss=FALLING, W_norm=1.0 * STEP, W_alignment_error=nothing))
    ) == ["train", "norm"]
    both = plots.plot_runs({"own": own(loss=FALLING), "train": RUN})
    assert shown(both) == ["loss", "train", "norm", "1", "1"]
    assert [len(axis.lines) for axis in both.axes] == [1, 2, 1, 1, 1]
    assert both.axes[0].lines[0].get_color() == both.axes[1].lines[1].get_color()  # one look a run


def test_a_run_of_several_matrices_is_drawn():
    assert shown(plots.plot_runs(own(loss=FALLING, W_norm=np.ones((9, 2))))) == ["train"]


@pytest.mark.parametrize("name", ["alignment", "nonopt", "u_norm", "step_size"])
def test_a_series_that_a_run_lacks_is_named_with_those_it_has(name):
    with pytest.raises(RangeError, match=f"^series: .*'{name}', which .*; it has loss, W_norm[.]$"):
        plots.plot_runs([own(loss=FALLING, W_norm=1.0 + STEP)], ["loss", name])
    with pytest.raises(RangeError, match="it has none"):
        plots.plot_runs(own(retrieved=np.ones((9, 3))))


def on(count: int):
    """Axes of a figure of the caller's own."""
    fig = Figure()
    return fig, np.ravel(fig.subplots(1, count, squeeze=False))


def test_panels_are_drawn_on_axes_of_the_callers_own_whose_look_stays():
    (fig, axes), (other, (axis,)) = on(2), on(1)
    assert plots.plot_runs([RUN, OTHER], ["loss", "W_norm"], "two", ax=axes) is fig
    assert shown(fig) == ["train", "norm"] and axes[0].get_title() == "two" and not fig.legends
    assert [each.get_text() for each in axes[0].get_legend().texts] == ["NGD(0.1)", "GD(0.5)"]
    assert plots.plot_alignment_rates(RUN, ax=axis) is other and len(other.axes) == 1
    assert axis.spines["top"].get_visible() and axis.lines[0].get_linewidth() == 1.5  # theirs
    check = Check.along("norm", [1, 10], [1, 8], [1, 10])
    assert plots.plot_check(check, ax=list(on(1)[1])).axes[0].get_xlabel() == "step t"


def test_axes_of_another_number_or_kind_are_refused():
    for ax in (on(1)[1], on(3)[1], on(1)[1][0]):
        with pytest.raises(RangeError, match="^ax: expected one a panel, 2"):
            plots.plot_runs(RUN, ["loss", "W_norm"], ax=ax)
    for ax in (3, "x", [], [None], Figure(), np.array(1.0)):
        with pytest.raises(DtypeError, match="^ax: expected Axes of matplotlib"):
            plots.plot_runs(RUN, "loss", ax=ax)


@pytest.mark.parametrize("kind", ["pdf", "eps"])
def test_words_stay_words_in_a_pdf_and_matplotlibs_settings_what_they_were(tmp_path, kind):
    before, fig = dict(mpl.rcParams), plots.plot_runs(RUN, "loss")
    fig.savefig(tmp_path / f"own.{kind}")
    Figure.savefig(fig, tmp_path / f"other.{kind}")
    own, other = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("own", "other"))
    assert re.search(rb"(Subtype|FontType) */?(Type3|3)", other)
    assert not re.search(rb"(Subtype|FontType) */?(Type3|3)", own)
    assert dict(mpl.rcParams) == before


def test_pages_of_one_pdf_keep_the_fonts_that_it_ends_with(tmp_path):
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(tmp_path / "pages.pdf") as pages:
        pages.savefig(plots.plot_runs(RUN, "loss"))
    assert (tmp_path / "pages.pdf").read_bytes().count(b"/Type3")  # its own, all through
