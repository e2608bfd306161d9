"""The door of all figures: what they are given is refused by name, and a bug keeps its cause."""

import matplotlib as mpl
import pytest
from drawn import figures_of, require_door

from attnbias import Check, plots
from attnbias.errors import DtypeError, RangeError, ShapeError
from attnbias.plots.series import text
from attnbias.plots.theme import styled

CHECK = Check.along("norm", [1, 10], [1, 8], [1, 10])


def test_every_figure_refuses_junk_by_name_and_takes_axes():
    figures = figures_of("attnbias.plots")
    assert len(figures) > 5
    require_door(figures)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (DtypeError, "^logs of plot_check", lambda: plots.plot_check(CHECK, logs="x")),
        (DtypeError, "^ylabel of plot_check", lambda: plots.plot_check(CHECK, ylabel=3)),
        (DtypeError, "^title of plot_runs", lambda: plots.plot_runs({}, title=3)),
        (DtypeError, "^guides of", lambda: plots.plot_alignment_rates({}, guides=["x"])),
        (RangeError, "^guides of", lambda: plots.plot_alignment_rates({}, guides=range(101))),
        (ShapeError, "^window of", lambda: plots.plot_alignment_rates({}, window=[1])),
        (DtypeError, "^label", lambda: plots.rule_style(3)),
    ],
)
def test_a_figure_names_the_argument_and_itself(error, words, call):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, MemoryError, RangeError])
def test_a_bug_in_a_figure_is_let_through_as_what_it_is(error):
    @styled(what=text)
    def plot_broken(what):
        raise error(what, expected="a", got="b", remedy="c") if error is RangeError else error(what)

    before = dict(mpl.rcParams)
    with pytest.raises(error) as caught:
        plot_broken("inside")
    assert caught.type is error and dict(mpl.rcParams) == before
