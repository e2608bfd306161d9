"""What is written of a data set for Rocq is true of its float64 tokens, and nothing wrong is."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from proved_instances import WRONG, exactly, gaussian, nearly_orthogonal, repeated, tampered

from attnbias import (
    AttnBiasError,
    Dataset,
    InfeasibleError,
    load_binary_mnist,
    make_separation_pair,
    solve_u_svm,
    solve_w_svm,
)
from attnbias.cli import main
from attnbias.errors import MissingExtraError, MissingFileError, QueryError, RangeError, SolverError
from attnbias.geometry.coherence import token_coherence
from attnbias.geometry.rocq import coqc, rational
from attnbias.geometry.rocq import text as rocq
from attnbias.geometry.rocq.proof import prove_infeasible
from attnbias.geometry.rocq.rate import exp_below, rate_of
from attnbias.geometry.tokens import known

SETS = {
    "gaussian": gaussian,
    "digits": lambda: load_binary_mnist(n=3, T=3, patch=4),
    "pair": make_separation_pair,
    "twins": lambda: Dataset(gaussian().X[[0, 0, 1]], gaussian().y[[0, 0, 1]], gaussian().u),
}


def fractions(values):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values))


@pytest.mark.parametrize("name", SETS)
def test_the_fractions_satisfy_the_optimality_conditions_of_the_tokens_themselves(name):
    """A second form: from the tokens as Fractions of floats, by the definition of the rows."""
    data = SETS[name]()
    found = exactly(data)
    X, opt = fractions(data.X), found.data.opt
    over = found.denominator * found.data.scale**2
    W = fractions(found.numerators) / over
    total = 0 * W
    for i, sequence in enumerate(X):
        for t, token in enumerate(sequence):
            row, a = sequence[opt[i]] - token, Fraction(found.weights[i][t], found.denominator)
            total = total + a * np.outer(row, sequence[0])
            gap = row @ W @ sequence[0]
            assert a == 0 if t == opt[i] else a >= 0 and (gap == 1 if a else gap >= 1)
    assert (total == W).all() and (W * W).sum() == found.square
    assert np.abs(W.astype(float) - solve_w_svm(data).weights.numpy()).max() < 1e-9
    low, places = rocq.twelve_digits(found)
    assert low**2 * found.square <= 100**places < (low + 1) ** 2 * found.square


@pytest.mark.parametrize("name", WRONG)
def test_wrong_fractions_are_refused_by_what_fails(name):
    found = exactly(gaussian())
    assert found.refusals() == []
    wrong = tampered(found, name)
    assert any(line.startswith(WRONG[name]) for line in wrong.refusals())
    with pytest.raises(SolverError, match="optimality conditions"):
        wrong.require_optimal()


@pytest.mark.parametrize("name", ["sign", "left out", "entry", "other data", "margin", "u-SVM"])
def test_a_wrong_solution_writes_no_file(name, tmp_path):
    data = gaussian()
    svm, path = solve_w_svm(data), tmp_path / "wrong.v"
    k, dual, point = int(svm.support[0]), svm.dual.clone(), svm.point.clone()
    if name == "sign":
        dual[k] *= -1
    elif name == "left out":
        dual[k] = 0
    elif name == "entry":
        point[1, 2] += 2.0**-18  # what float64's certificate sees; the fractions see 2^-50
    wrong = replace(svm, dual=dual, point=point, norm=svm.norm * (1 - 1e-5 * (name == "margin")))
    wrong = solve_u_svm(data) if name == "u-SVM" else wrong
    with pytest.raises(AttnBiasError):
        wrong.prove(path, gaussian(seed=1) if name == "other data" else data)
    assert not path.exists()
    svm.prove(path, data)
    assert path.exists()


def test_a_row_that_is_active_without_a_weight_may_join_but_not_one_with_a_gap():
    found = exactly(gaussian())
    dual = [float(found.weights[i][t]) for i, t in found.data.rows]
    least = min(k for k, a in enumerate(dual) if a)
    fewer = [a * (k != least) for k, a in enumerate(dual)]
    idle = [k == least for k in range(len(dual))]
    assert rational.solve_rationally(found.data, fewer, idle) == found
    with pytest.raises(SolverError):
        rational.solve_rationally(found.data, fewer, [False] * len(dual))


def read(text, name):
    """A table of integers back from a Rocq file."""
    body = re.search(rf"Definition {name} : [^=]*:= (.*?)%", text, re.S)[1]
    return eval(body.replace(";", ","))


def test_the_file_has_the_tokens_and_the_solution_to_the_last_bit(tmp_path):
    data = gaussian()
    proof = solve_w_svm(data).prove(tmp_path / "g.v", data)
    text, found = proof.path.read_text(), exactly(data)
    scale = eval(read_scale(text))
    assert (fractions(read(text, "tokens")) / scale == fractions(data.X)).all()
    assert (fractions(read(text, "decoder")) / scale == fractions(data.u)).all()
    assert read(text, "numerators") == found.numerators and read(text, "weights") == found.weights
    theorems = re.findall(r"^Theorem (\w+)", text, re.M)
    assert theorems == [*proof.theorems] == re.findall(r"^Print Assumptions (\w+)\.", text, re.M)
    assert "not checked" in str(proof) and proof.seconds is None


def read_scale(text):
    return re.search(r"Definition scale : Z := \((.*?)\)%Z", text)[1].replace("^", "**")


def test_without_a_decoder_no_token_is_said_to_be_optimal(tmp_path):
    data = gaussian()
    proof = solve_w_svm(data).prove(tmp_path / "a.v")
    assert "tokens_optimal" not in proof.theorems and "decoder" in proof.missing
    worst = known(data).scores.argmin(dim=1)  # the user's choice, not that of Definition 1
    svm = solve_w_svm(gaussian(2, 2, 9), known(gaussian(2, 2, 9)).scores.argmin(dim=1))
    assert len(worst) == 3 and "tokens_optimal" not in svm.prove(tmp_path / "b.v").theorems


def test_rows_that_cancel_give_gordans_certificate_in_integers(tmp_path):
    data = repeated()
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(data)
    rows, certificate = known(data).rows(), caught.value.certificate
    proof = prove_infeasible(rows, certificate, tmp_path / "no.v", data)
    assert [*proof.theorems] == ["tokens_optimal", "infeasible"]
    weights = fractions(read(proof.path.read_text(), "weights"))
    X, opt = fractions(data.X), rows.opt.tolist()
    pairs = [(x[o] - t, x[0]) for x, o in zip(X, opt, strict=True) for t in x]
    total = sum(a * np.outer(*p) for a, p in zip(weights.ravel(), pairs, strict=True))
    assert (total == 0).all() and min(weights.ravel()) >= 0 and weights.sum() > 0
    moved = data.X.clone()
    moved[1, 0] += torch.tensor([2.0**-40, -(2.0**-41)])  # cancels no more
    with pytest.raises(SolverError, match="cancel"):
        near = Dataset(moved, data.y, data.u)
        prove_infeasible(known(near).rows(), certificate, tmp_path / "near.v", near)
    assert not (tmp_path / "near.v").exists()


@pytest.mark.parametrize("x", [-90.0, -3.7, -1e-9, 0.0, 0.3, 7.0, 90.0])
def test_a_power_bounds_exp_from_below_and_closely(x):
    share = math.log(exp_below(Fraction(x))) - x
    assert -(x**2) / 256 - 256 / 2**15 <= share <= 1e-12  # second order, and 256 times the grid


@pytest.mark.parametrize("how", [{}, {"n": 3, "noise": 0.004}, {"n": 1}, {"scores": (1.0, 1.9)}])
def test_the_rate_has_the_constants_that_float64_finds(how):
    """A second form: nu, w, kappa, S_1 and the longest step of `token_coherence`."""
    data = nearly_orthogonal(**how)
    found, c = exactly(data), token_coherence(data)
    margin = solve_w_svm(data).margin
    rate, unit = rate_of(found, Fraction(margin)), found.data.scale**2
    assert rate["znu"] / unit**2 == pytest.approx(c.across, rel=1e-9)
    assert rate["zw"] / unit**2 == pytest.approx(c.w, rel=1e-12)
    assert rate["bb"] / found.data.scale == pytest.approx(c.B, rel=1e-12)
    kappa = math.log(rate["high"] / rate["low"])
    assert 0 <= kappa - c.log_kappa < 0.1
    assert 0.9 < rate["en"] / 10 ** rate["places"] / min(c.largest_step, 1) <= 1
    settled = c.settling_path * math.exp(kappa - c.log_kappa)
    assert 2 * settled <= rate["path"] < 2.2 * settled
    Lambda = rate["la"] / 16
    rows = data.n * (data.X.shape[1] - 1)
    assert Lambda * math.exp(Lambda + 1) >= 4 * rows * math.exp(kappa)
    # from t1 = path/2 on, M1 with |P| <= eta t1, and S_t - S_(t1) at least half of S_t
    half = rate["path"] / 2 + rate["en"] / 10 ** rate["places"] + 2 * Lambda / margin
    assert 1 <= rate["cost"] / (4 * (c.B**2 / margin) ** 2 * half) < 1.01


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"longer": 1.0}, "no token is longer"),
        ({"noise": 0.1}, "C1 fails"),
        ({"n": 4}, "C2 fails"),
        ({"scores": (-300.0, -299.0)}, "at most 250"),
    ],
)
def test_a_condition_that_fails_is_named_and_the_rest_is_proved(how, says, tmp_path):
    data = nearly_orthogonal(**how)
    proof = solve_w_svm(data).prove(tmp_path / "a.v", data)
    assert says in proof.missing and says in str(proof)
    assert "W_mm_solves" in proof.theorems and "NGD_turns" not in proof.path.read_text()


def test_the_file_states_the_rate_and_its_square_where_it_is_strict(tmp_path):
    data = nearly_orthogonal()
    proof = solve_w_svm(data).prove(tmp_path / "near.v", data)
    text, rate = proof.path.read_text(), rate_of(exactly(data), Fraction(1))
    assert proof.missing is None and "NGD_turns_faster" in proof.theorems
    assert re.findall(r"^Theorem (\w+)", text, re.M) == [*proof.theorems]
    assert f"{rate['path']} <= eta * INR t" in text and "0 < eta <= 1.0" in text
    idle = Dataset([[[1.0, 0.0], [0, 0], [0, -1]]], [1], [1.0, 0.0])  # a tight gap without weight
    other = solve_w_svm(idle).prove(tmp_path / "idle.v", idle)
    assert "NGD_turns" in other.theorems and "NGD_turns_faster" not in other.theorems


def test_sizes_paddings_and_queries_that_are_not_covered_are_named(tmp_path):
    large = gaussian(8, 3, 80)
    with pytest.raises(RangeError, match="Rocq checks in 600 s"):
        solve_w_svm(large).prove(tmp_path / "x.v", large)
    ragged = Dataset.from_sequences([np.eye(3), np.eye(3)[:2]], [1, 1], [1.0, 0.0, 0.0])
    with pytest.raises(RangeError, match="one length"):
        solve_w_svm(ragged).prove(tmp_path / "x.v", ragged)
    svm = solve_w_svm(gaussian())
    with pytest.raises(QueryError, match="no tokens"):
        replace(svm, rows=replace(svm.rows, keys=None)).prove(tmp_path / "x.v")
    with pytest.raises(QueryError, match="others"):
        replace(svm, rows=replace(svm.rows, keys=svm.rows.keys.flip(1))).prove(tmp_path / "x.v")
    assert not [*tmp_path.iterdir()]


def test_the_files_imports_are_found_in_their_order(tmp_path):
    for name, imports in {"A": "", "B": "A", "C": "A\n  B", "Other": "C"}.items():
        line = (
            f"From attnbias Require Import {imports}.\n" if imports else "Require Import Reals.\n"
        )
        (tmp_path / f"{name}.v").write_text(line)
    assert coqc.needed(tmp_path, "From attnbias Require Import C.") == ["A", "B", "C"]
    assert coqc.needed(coqc.sources(), "From attnbias Require Import Instance.")[-1] == "Instance"
    with pytest.raises(MissingFileError, match="--proofs"):
        coqc.sources(tmp_path)


def test_a_missing_compiler_is_named_after_the_file_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="package coq"):
        solve_w_svm(gaussian()).prove(tmp_path / "g.v", check=True)
    assert (tmp_path / "g.v").exists()


@pytest.mark.parametrize(("make", "says"), [(gaussian, "W_mm_solves"), (repeated, "infeasible")])
def test_the_command_writes_beside_the_tokens(make, says, tmp_path, capsys):
    data = make()
    path = tmp_path / "my-tokens.npz"
    np.savez(path, X=data.X, y=data.y, u=data.u)
    assert main(["prove", str(path)]) == 0
    assert says in capsys.readouterr().out
    assert f"Theorem {says}" in (tmp_path / "my_tokens.v").read_text()


def test_rocqs_refusal_and_its_axioms_are_read(tmp_path, monkeypatch):
    """With a stand-in for coqc: what it prints is read, what it refuses is an error."""
    fake = tmp_path / "coqc"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake.write_text("#!/bin/sh\necho 'Axioms:'\necho 'cheat.it : False'\necho '  forall x'\n")
    fake.chmod(0o755)
    (tmp_path / "Instance.v").write_text("Require Import Reals.\n")
    text = "From attnbias Require Import Instance.\n"
    assert coqc.check(text, tmp_path)[1] == ("cheat.it",)
    fake.write_text('#!/bin/sh\n[ "$1" = --print-version ] || { echo bad >&2; exit 1; }\n')
    with pytest.raises(SolverError, match="bad"):
        coqc.check(text, tmp_path)


def test_a_torch_tensor_of_single_precision_is_taken_as_the_numbers_it_holds():
    X = torch.tensor([[[0.1, 0.2], [0.3, -0.7]]], dtype=torch.float32)
    data = rational.as_integers(X.double(), torch.ones(1), torch.zeros(2), torch.tensor([0]))
    assert Fraction(data.tokens[0][0][0], data.scale) == Fraction(float(X[0, 0, 0]))
