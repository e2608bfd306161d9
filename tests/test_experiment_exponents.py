"""The study of exponents: what it reads off a curve, its file, and what it refuses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from room_tests import refusals
from tolerances import ASYMPTOTIC, CLOSED_FORM

from attnbias import experiments, solve_w_svm
from attnbias.beyond.exponents.claims import claims
from attnbias.beyond.exponents.experiments import local_exponents, noisy_means, planted, recorded
from attnbias.beyond.exponents.plots import plot_exponent_map, plot_settled_steps, plot_settling
from attnbias.errors import AttnBiasError, FileFormatError, MissingFileError
from attnbias.geometry.slack import least_slack
from book.plots import plot_groups


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder, options = tmp_path_factory.mktemp("exponents"), {"seeds": 2, "steps": 20_000}
    options |= {"d": [60, 240], "noise": [3.0], "slack": [0.1, 0.03, 0.0]}
    return experiments.run("exponents", out=folder, **options), folder


def test_rows_and_parts(small):
    result, _ = small
    assert result.table.groupby("part").size().to_dict() == {"map": 2 * 2 * 6, "margins": 3 * 2 * 4}
    assert (result.table["status"] == "completed").all()
    assert {"exponent_1", "exponent_3", "norm_3"} <= set(result.table)
    assert "exponent_4" not in result.table  # its decade would end beyond the run
    steady = result.table.query("rule == 'NGD(0.5)' and d == 240")
    assert (steady["exponent_3"] + 2).abs().max() < ASYMPTOTIC


def test_a_power_law_is_read_off_exactly():
    step = np.array([0, *np.unique(np.geomspace(1, 1e4, 61).round())])
    middle, slope, at = local_exponents(step, 3.0 / np.maximum(step, 1) ** 1.5, 0.1 * step)
    np.testing.assert_allclose(slope, -1.5, rtol=CLOSED_FORM)
    np.testing.assert_allclose(at, 0.1 * middle, rtol=CLOSED_FORM)
    steps = np.array(recorded(10**6))
    assert steps[0] == 0 and steps[-1] == 10**6
    counts = np.histogram(steps, 10.0 ** np.arange(2, 7))[0]
    assert counts.tolist() == [15, 15, 15, 16]  # the last step is in the last decade


def test_data_are_what_they_say():
    data = noisy_means(n=6, T=3, d=4000, noise=2.0, seed=1)
    norms = data.X.norm(dim=2)
    noise = norms[norms.sub(2**0.5).abs() > 0.1]
    assert abs(float(noise.mean()) / (2 * 2**0.5) - 1) < ASYMPTOTIC
    assert abs(least_slack(planted(5, 4, 120, 2.0, 0.03, seed=0)) - 0.03) < CLOSED_FORM


def test_saved_and_judged_anew(small):
    result, folder = small
    assert sorted(path.name for path in folder.iterdir()) == ["exponents.parquet"]
    again = experiments.load("exponents", folder)
    assert again.table.equals(result.table) and again.settings == result.settings
    assert [check.verdict for check in again.claims] == [check.verdict for check in result.claims]
    assert {"command", "commit", "date"} <= again.provenance[0].keys()
    assert "24 runs of the map" in repr(again)


def test_claims_can_fail(small):
    """Tampered curves are found out, one claim at a time."""
    table = small[0].table
    held = {check.statement.partition(":")[0] for check in claims(table) if check.holds}
    assert {"NGD", "Polyak", "GD"} <= held
    for rule, wrong_exponent in (("Polyak", -1.5), ("GD", -2.0), ("NGD", -2.2)):
        wrong = table.copy()
        wrong.loc[wrong["rule_name"] == rule, "exponent_3"] = wrong_exponent
        first = {}
        for check in claims(wrong):
            first.setdefault(check.statement.partition(":")[0], check.verdict)
        assert first[rule] == "fails"
        assert all(first[other] == "holds" for other in {"Polyak", "GD", "NGD"} - {rule})
    wrong = table.assign(law_settled=2 * table["law_settled"], law_limit=1.2 * table["law_limit"])
    assert sum("law" in check.statement and not check.holds for check in claims(wrong)) == 2


def test_a_law_is_that_of_the_planted_row(small):
    runs = small[0].table.query("part == 'margins' and slack > 0 and rule == 'NGD(0.1)'")
    one_idle = runs[runs["rows"] - runs["support"] == 1]
    assert len(one_idle) and one_idle["law_settled"].notna().all()
    assert runs[runs["rows"] - runs["support"] > 1]["law_settled"].isna().all()
    first = one_idle.iloc[0]
    data = planted(5, 4, 120, 2.0, first.slack, int(first.seed))
    assert abs(first.margin / solve_w_svm(data).margin - 1) < CLOSED_FORM


SETTINGS = {"seeds": 1, "steps": 10_000, "d": [60], "noise": [1.0], "slack": [0.1]}
test_bad_settings_are_refused = refusals(
    *(partial(experiments.run, "exponents", **SETTINGS | {name: bad}) for name, bad in (
        ("steps", 100), ("seeds", 0), ("d", []), ("d", [10]), ("noise", [-1.0]),
        ("slack", [-0.1]), ("noise", ["loud"]), ("workers", 0))),
)  # fmt: skip


def test_files_are_refused(tmp_path):
    with pytest.raises(MissingFileError):
        experiments.load("exponents", tmp_path)
    (tmp_path / "exponents.parquet").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        experiments.load("exponents", tmp_path)


def test_figures(small):
    table = small[0].table
    grid = table[table["part"] == "map"]
    cells = plot_exponent_map(grid, 3)
    assert len([axis for axis in cells.axes if axis.get_title("left")]) == 6
    texts = [text.get_text() for text in cells.axes[0].texts]
    assert len(texts) == 2 and all(float(text) <= 0 for text in texts)
    margins = table[(table["part"] == "margins") & (table["slack"] > 0)]
    dots = plot_settling(margins, [2, 3]).axes[0].lines
    assert len(dots) == 4 and len(dots[0].get_xdata()) == 2 * 4 and (dots[0].get_xdata() > 0).all()
    lines = plot_settled_steps(margins[margins["rule"] == "NGD(0.1)"]).axes[0].lines
    np.testing.assert_allclose(lines[0].get_xdata(), [0.03, 0.1])
    line = plot_groups(grid, "d", "margin", "T").axes[0].lines[0]  # medians over seeds
    expected = grid.groupby("d")["margin"].median()
    np.testing.assert_allclose(line.get_ydata().astype(float), expected)
    with pytest.raises(AttnBiasError, match="column"):
        plot_groups(grid, "d", "margins", "T")
