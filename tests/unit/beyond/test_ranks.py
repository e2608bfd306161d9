"""Bounds on ranks: closed forms, a second solver, distances they must cover, broken pairs."""

import dataclasses
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from room_tests import normal, refusals, two_orthogonal
from tolerances import CLOSED_FORM, RANK_SECOND_SOLVER, SVM_EQUIVALENT

from attnbias import NGD, Dataset, check_assumption2, experiments, solve_w_svm, token_scores, train
from attnbias.beyond.norms.geometry import matrix_norm, solve_norm_svm
from attnbias.beyond.norms.nuclear import polish_nuclear
from attnbias.beyond.ranks import experiments as ranks
from attnbias.beyond.ranks import geometry as rank_geometry
from attnbias.beyond.ranks.claims import mean_ranks
from attnbias.beyond.ranks.data import make_free_queries, with_unit_values
from attnbias.beyond.ranks.geometry import frobenius_rank, nuclear_bounds, nuclear_rank
from attnbias.beyond.ranks.plots import plot_left_over, plot_ranks
from attnbias.errors import (
    FileFormatError,
    InfeasibleError,
)
from attnbias.geometry.solution import certify
from attnbias.geometry.tokens import gap_rows


def one_row():
    return Dataset([[[1.0, 0, 0], [0, 0, 0]]], [1], opt=[0], query=[[0, 2.0, 0]])


def test_closed_forms():
    for found in (frobenius_rank(one_row()), nuclear_rank(one_row())):
        assert found.rank == 1 and found.decided and found.rows == found.sequences == 1
        assert abs(float(found.values[0]) - 0.5) < CLOSED_FORM  # W = e1 e2' / 2
    found = frobenius_rank(two_orthogonal())
    assert found.rank == 2 and found.error < CLOSED_FORM
    free = nuclear_rank(two_orthogonal())  # solutions of rank 1 and of rank 2: nothing to decide
    assert (free.lower, free.upper, free.rank) == (1, 2, None) and free.error > 1
    for c in (-1.0, 0.0, 1.0):
        W = torch.zeros(3, 3).double()
        W[:2, :2] = torch.tensor([[1.0, c], [c, 1.0]])
        proof = certify(gap_rows(two_orthogonal()), torch.ones(2).double(), W, norm="nuclear")
        assert proof.duality_gap < CLOSED_FORM
    # queries that depend bound the rank
    data = make_free_queries(4, 3, 10, seed=1, opt=True)
    same = dataclasses.replace(data, query=data.query[:1].expand(4, 10))
    assert frobenius_rank(data).rank == 4
    with_one = frobenius_rank(dataclasses.replace(same, y=abs(data.y), opt=data.opt))
    assert int((with_one.values > 1e-9).sum()) == 1 and with_one.lower == 1
    assert not with_one.decided or with_one.rank == 1


@pytest.mark.parametrize("seed", range(3))
def test_ranks_are_those_of_a_semidefinite_program(seed):
    """|W|_nuc = min (tr A + tr B)/2 over [[A, W], [W', B]] >= 0, whose rank is that of W."""
    cvxpy = pytest.importorskip("cvxpy")
    data = make_free_queries(4, 4, 5, seed, opt=True)
    rows = gap_rows(data)
    P = cvxpy.Variable((10, 10), PSD=True)
    W = P[:5, 5:]
    D, Z = rows.differences.numpy(), rows.queries[rows.sequence].numpy()
    margins = cvxpy.sum(cvxpy.multiply(D @ W, Z), axis=1) >= 1
    cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(P) / 2), [margins]).solve(solver="CLARABEL")
    values = np.linalg.eigvalsh(P.value)
    assert nuclear_rank(data).rank == int((values > RANK_SECOND_SOLVER * values[-1]).sum())


@pytest.mark.parametrize("seed", range(4))
def test_polishing_keeps_the_solution_and_closes_the_gap(seed):
    data = make_free_queries(5, 5, 7, seed, opt=True)
    rows, raw = gap_rows(data), solve_norm_svm(data, "nuclear")
    fine = polish_nuclear(rows, raw)
    assert fine.duality_gap < 1e-12 and fine.duality_gap <= raw.duality_gap
    assert abs(fine.bounds.upper / raw.bounds.upper - 1) < 1e-6
    G = rows.combine(fine.dual)
    assert abs(matrix_norm(G, "spectral") - 1) < SVM_EQUIVALENT


@given(seed=st.integers(0, 30), size=st.floats(-9, -2))
@settings(max_examples=30, deadline=None)
def test_bounds_cover_the_distance_from_the_solution(seed, size):
    """A pair spoilt by noise is farther from optimal, and its bounds say so."""
    data = make_free_queries(4, 4, 6, seed, opt=True)
    rows = gap_rows(data)
    fine = polish_nuclear(rows, solve_norm_svm(data, "nuclear"))
    truth = nuclear_bounds(rows, fine)
    draw = torch.Generator().manual_seed(seed)
    noise = 10**size * torch.randn(6, 6, generator=draw, dtype=torch.float64)
    factors = 1 + 10**size * torch.randn(len(fine.dual), generator=draw).double()
    spoilt = certify(rows, fine.dual * factors.abs(), fine.weights + noise, norm="nuclear")
    found = nuclear_bounds(rows, spoilt)
    assert found.error >= float((spoilt.weights - fine.weights).norm()) - truth.error
    G, H = (rows.combine(each.dual) for each in (spoilt, fine))
    moved = G / matrix_norm(G, "spectral") - H / matrix_norm(H, "spectral")
    assert found.dual_error >= matrix_norm(moved, "spectral") - truth.dual_error
    assert found.lower <= truth.upper and found.upper >= truth.lower


@given(seed=st.integers(0, 200))
@settings(max_examples=20, deadline=None)
def test_frobenius_rank_is_at_most_the_support_and_the_features(seed):
    data = make_free_queries(4, 3, 4 + seed % 5, seed, opt=True)
    found, svm = frobenius_rank(data), solve_w_svm(data)
    sequences = len(set(svm.constraints[svm.support, 0].tolist()))
    assert found.lower <= found.upper <= min(sequences, data.d)
    assert int((found.values > found.error).sum()) == found.lower


def test_a_wrong_support_is_not_proved():
    svm = solve_w_svm(make_free_queries(5, 5, 6, seed=0, opt=True))
    _, error, proved = rank_geometry._proved_support(svm)
    assert proved and error < 1e-9
    missing, spare = svm.support[0], (svm.dual == 0).nonzero()[0]
    for row, weight in ((missing, 0.0), (spare, 0.5 * svm.dual.max())):
        dual = svm.dual.index_fill(0, row.reshape(1), float(weight))
        assert not rank_geometry._proved_support(certify(svm.rows, dual, svm.weights))[2]


FEW_d = [make_free_queries(5, 5, d, seed=1, opt=True) for d in (1, 2)]
SQUARE = make_free_queries(4, 3, 5, opt=True)
RANKS = pd.DataFrame({"n": [5, 5, 9], "d": [1, 2, 1], "Frobenius": [1, 2, 1], "nuclear": 1})
STUDY = {"seeds": 1, "sizes": [(5, 5)], "d": [2]}
BOUNDS = pd.DataFrame(
    1, [0], [*"nTd", *(f"{norm}_{end}" for norm in "FN" for end in ("lower", "upper"))]
)
test_refusals = refusals(
    *((InfeasibleError, partial(f, X)) for f in (frobenius_rank, nuclear_rank) for X in FEW_d),
    lambda: nuclear_rank(SQUARE, solution=solve_w_svm(SQUARE)),
    lambda: nuclear_rank(SQUARE, solution=solve_norm_svm(SQUARE, "frobenius")),
    *(
        partial(make_free_queries, **{name: bad})
        for name, bad in (("n", 0), ("T", 1), ("d", 0), ("seed", -1), ("d", 2.5))
    ),
    *(
        partial(experiments.run, "ranks", **STUDY | {name: bad})
        for name, bad in (
            ("seeds", 0),
            ("seeds", [3, 3]),
            ("sizes", []),
            ("sizes", [5]),
            ("sizes", [(5, 1)]),
            ("d", []),
            ("d", [0]),
            ("nuclear", 0),
            ("progress", 1),
        )
    ),
    lambda: plot_ranks(RANKS.drop(columns="nuclear")),
    lambda: plot_left_over({}),
    MissingDecoderError=[
        lambda: with_unit_values(Dataset(SQUARE.X, SQUARE.y)),
    ],
    DtypeError=[
        lambda: polish_nuclear(gap_rows(SQUARE), None),
        lambda: polish_nuclear(None, solve_w_svm(SQUARE)),
        lambda: nuclear_bounds(gap_rows(SQUARE), solve_w_svm(SQUARE)),
        lambda: mean_ranks(BOUNDS, "5"),
    ],
    FileAccessError=[
        lambda: experiments.run("ranks", **STUDY, out="a\0b"),
    ],
)


@pytest.mark.parametrize("name", ["exponents", "ranks"])
def test_a_foreign_table_is_refused_on_reading(name, tmp_path):
    form = experiments.module_of(name).FORM
    result = experiments.ExperimentResult(form, {"table": pd.DataFrame({"a": [1]})}, {}, [])
    result.save(tmp_path / form.file)
    with pytest.raises(FileFormatError, match=name):
        experiments.load(name, tmp_path)


def test_unit_values_can_be_trained_on_and_keep_the_svm():
    data = make_free_queries(4, 4, 6, seed=2, opt=True)
    valued = with_unit_values(data)
    scores = token_scores(valued)
    assert scores.argmax(dim=1).tolist() == data.opt.tolist() and float(scores.sum()) == 4
    assert torch.equal(solve_w_svm(valued).weights, solve_w_svm(data).weights)
    assert train(valued, NGD(0.2), 3000).W_alignment_error[-1] < 1e-2
    assert check_assumption2(valued).all_hold and not data.X.equal(valued.X)
    # from zero the rank is at most that of the queries
    data = with_unit_values(make_free_queries(3, 4, 8, seed=0, opt=True))
    for W0, most in ((None, 3), (normal(8, 8), 8)):
        W = train(data, NGD(0.2), 500, W0=W0).W
        assert int((torch.linalg.svdvals(W) > 1e-9).sum()) == most


SETTINGS = {"seeds": 3, "nuclear": 2, "sizes": [(5, 5), (6, 4)], "d": [1, 4, 8]}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return experiments.run("ranks", out=folder, **SETTINGS), folder


def test_study_rows(small):
    result, folder = small
    table = result.table
    assert len(table) == 2 * 3 * 3 and (table.query("d == 1")["F_status"] == "infeasible").all()
    assert (table["N_status"] == "not asked").sum() == 6
    assert result.claims.all_hold and "of 18 solved" in repr(result)
    assert sorted(path.name for path in folder.iterdir()) == ["ranks.parquet"]
    again = experiments.load("ranks", folder)
    assert again.table.equals(table) and again.provenance == result.provenance


def test_study_goes_on(small, tmp_path, monkeypatch):
    real, calls = ranks.instance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(ranks, "instance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiments.run("ranks", out=tmp_path, **SETTINGS)
    assert len(list((tmp_path / "ranks").iterdir())) == 2  # two settings of three seeds are kept
    result = experiments.run("ranks", out=tmp_path, **SETTINGS)
    assert len(calls) == 8 + 18 - 6 and result.table.equals(small[0].table)


@pytest.mark.parametrize("change", ["moved", "other seeds"])
def test_a_part_of_another_setting_or_study_is_refused(tmp_path, monkeypatch, change):
    options = {"seeds": [0, 1], "sizes": [(5, 5)], "d": [10, 12]}

    def stopping(n, T, d, seed, nuclear):
        if d == 12:
            raise KeyboardInterrupt
        return {"n": n, "T": T, "d": d, "seed": seed}

    monkeypatch.setattr(ranks, "instance", stopping)
    with pytest.raises(KeyboardInterrupt):
        experiments.run("ranks", out=tmp_path, **options)
    (part,) = (tmp_path / "ranks").iterdir()
    before = part.read_bytes()
    if change == "moved":
        shutil.copy(part, part.with_name("5_5_12.parquet"))
    else:
        options["seeds"] = [0, 2]
    with pytest.raises(FileFormatError, match="another's"):
        experiments.run("ranks", out=tmp_path, **options)
    assert part.read_bytes() == before


def test_study_claims_can_fail(small):
    table = small[0].table
    for column, value in (
        ("F_sequences", 1.0),
        ("N_rows", 1.0),
        ("N_upper", 9.0),
        ("F_status", "undecided"),
    ):
        wrong = table.copy()
        chosen = wrong["N_status"] == "solved"
        wrong.loc[chosen, column] = value
        if column == "N_rows":
            wrong.loc[chosen, ["N_lower", "N_upper"]] = 3.0
        assert not small[0].with_data(table=wrong).claims.all_hold


def test_the_figure_has_its_lines():
    assert len(plot_ranks(RANKS, RANKS).axes[0].lines) == 4
