"""Bad input: refused by a named error, before any work, files untouched.

What each is for: `ROWS` are the refusals whose error and words are promised; `CALLS` times `JUNK`
see in a minute that no argument of the core ends in a bare error; tests/fuzz puts worse junk into
every documented name and damages every kind of file in every way, for hours. A test beside a
function refuses what that function's own reasons forbid.
"""

import dataclasses
import inspect
import json
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW

from attnbias import (
    GD,
    NGD,
    AttnBiasError,
    Check,
    Dataset,
    InfeasibleError,
    Loss,
    Polyak,
    SelfAttention,
    Trace,
    check_assumption1,
    check_assumption2,
    diagnose,
    errors,
    experiments,
    fit_rate,
    load_binary_mnist,
    make_bad_start,
    make_dm,
    make_example1,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
    theorems,
    token_scores,
    train,
)
from attnbias._records import write_npz
from attnbias._validate import require_device
from attnbias.data import make_degenerate, make_score_lock
from attnbias.dynamics.compiled.engine import CompiledEngine
from attnbias.dynamics.loop import Iteration
from attnbias.errors import DeviceError, FileFormatError, MissingFileError
from attnbias.geometry import svm as svm_module
from attnbias.geometry.assumptions import example1_threshold
from attnbias.geometry.coherence import check_coherence, token_coherence
from attnbias.geometry.constants import limit_offset, token_constants
from attnbias.model import attention_map, empirical_risk, predict, risk_gradient

NAN, INF = math.nan, math.inf
DATA = make_example1(n=4, T=3, d=20, seed=1)
OTHER = make_example1(n=4, T=3, d=20, seed=2)
PAIR = make_separation_pair()
BARE = Dataset(DATA.X, DATA.y)  # no decoder
DM = make_dm(n=3, d=100)
ZERO = Dataset(torch.zeros(2, 3, 4).double(), [1, -1], u=torch.ones(4).double())
ZERO_QUERY = Dataset([[[0.0, 0.0], [1.0, 0.0]]], [1], u=[1.0, 0.0])
OPPOSED = Dataset([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]], [1, -1], u=[1.0, 0.0])
REPEATED = Dataset([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], [1], u=[1.0, 0.0])
BOTH_LABELS = Dataset([[[1.0, 0.0], [0.0, 0.0]]] * 2, [1, -1], u=[1.0, 0.0])
LARGE = Dataset([[[1e200, 0.0], [0.0, 1e200]]], [1], u=[1e200, 1.0])
SVM, OTHER_SVM, PAIR_SVM = solve_w_svm(DATA), solve_w_svm(OTHER), solve_w_svm(PAIR)
TURNED_SVM = dataclasses.replace(SVM, point=SVM.point.flip(0))  # of these rows, other weights
PAIR_U_SVM = solve_u_svm(PAIR)
RUN = train(DATA, GD(1.0), 4, svm=SVM)
X, Y = DATA.X, DATA.y
META = torch.zeros(20, device="meta").double()
with warnings.catch_warnings():  # of a prototype; a jagged one takes seconds to import
    warnings.simplefilter("ignore")
    NESTED = torch.nested.nested_tensor([X[0]])
STEP = np.arange(1, 20)
TABLE = pd.DataFrame({"i": [0, 0], "a": [1.0, 2.0], "y": [1, 1]})
OWN_LOSS = Loss("own", log_value=lambda z: -z, log_slope=lambda z: -z)


def with_entry(tensor, value):
    changed = tensor.clone()
    changed.flatten()[1] = value
    return changed


def data_with(**change):
    return Dataset(**({"X": X, "y": Y, "u": DATA.u} | change))


def run_with(**change):
    return train(DATA, GD(1.0), 4, **({"svm": SVM} | change))


def joint_with(rule=None, **change):
    return train(change.pop("data", DM), rule or GD(1.0), 4, train_u=True, **change)


def example(**change):
    return make_example1(**({"n": 4, "T": 3, "d": 20} | change))


def digits(**change):
    return load_binary_mnist(**({"n": 4, "T": 3, "patch": 7} | change))


def fig2(**change):
    return experiments.run(
        "fig2", **({"seeds": 1, "steps": 1000, "n": 4, "T": 3, "d": 20} | change)
    )


def rewrite(source, name, **change):
    """A sealed copy of a file with some arrays replaced, or left out where the change is None."""
    with np.load(source) as stored:
        arrays = dict(stored) | change
    header = json.loads(arrays.pop("attnbias_json").tobytes())
    header.pop("sha256")
    kept = {key: array for key, array in arrays.items() if array is not None}
    write_npz(source.with_name(name + ".npz"), kept, header)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of good, foreign and damaged files; no test may change it."""
    here = tmp_path_factory.mktemp("files")
    trace, run = here / "trace.npz", here / "run.npz"
    DATA.save(here / "data.npz")
    RUN.save(trace)
    run_with(checkpoint=run)
    (here / "folder").mkdir()
    (here / "empty.npz").write_bytes(b"")
    (here / "text.npz").write_text("step,loss\n0,1.0\n")
    (here / "half.npz").write_bytes(trace.read_bytes()[:-200])
    np.save(here / "plain.npy", np.ones(3))
    np.savez(here / "foreign.npz", Z=np.ones(3))
    np.savez(here / "pickled.npz", X=np.array([{"a": 1}], dtype=object), y=np.ones(1))
    np.savez(here / "labels.npz", X=X.numpy(), y=np.array([0, 1, 0, 1]))
    for name, format_ in (("newer", 99), ("unnumbered", "null")):
        header = f'{{"kind": "trace", "format": {format_}}}'.encode()
        np.savez(here / name, attnbias_json=np.frombuffer(header, np.uint8))
    rewrite(trace, "uneven", W_norm=np.ones(2))
    rewrite(trace, "words", u=np.array(["a"]))
    rewrite(trace, "incomplete", W_norm=None)
    rewrite(run, "run_incomplete", recordslog_loss=None)
    rewrite(run, "run_uneven", recordslog_loss=np.ones((2, 2)))
    return here


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Each row: the error, without its last word; a word of its message; the call, given the folder
# `files`.
ROWS = [
    # ---- Dataset: the tokens
    ("Shape", "(n, T, d)", lambda: data_with(X=X[0])),
    ("Shape", "shape", lambda: Dataset(X[:0], [])),
    ("Shape", "T = 1", lambda: data_with(X=X[:, :1])),
    ("NonFinite", "1 NaN", lambda: data_with(X=with_entry(X, NAN))),
    ("Dtype", "int64", lambda: data_with(X=X.long())),
    ("Dtype", "str", lambda: data_with(X="tokens")),
    ("Dtype", "from_sequences", lambda: Dataset([[[1.0], [2.0]], [[1.0]]], [1, 1])),
    ("Dtype", "dense", lambda: data_with(X=X.to_sparse())),
    ("Dtype", "nested", lambda: data_with(X=NESTED)),
    ("Dtype", "mask", lambda: data_with(X=np.ma.masked_less(X.numpy(), 0))),
    ("Device", "meta", lambda: data_with(X=X.to("meta"))),
    # ---- Dataset: labels, decoder, lengths, meta, moves
    ("Label", "{-1, +1}", lambda: data_with(y=[0, 1, 0, 1])),
    ("Label", "nan", lambda: data_with(y=[1.0, NAN, 1.0, 1.0])),
    ("Dtype", "bool", lambda: data_with(y=[True, False, True, False])),
    ("Shape", "(3,)", lambda: data_with(y=Y[:3])),
    ("Device", "y", lambda: data_with(y=Y.to("meta"))),
    ("Shape", "(d,)", lambda: data_with(u=DATA.u[:3])),
    ("NonFinite", "u", lambda: data_with(u=with_entry(DATA.u, INF))),
    ("Shape", "T = 3", lambda: data_with(lengths=[3, 3, 3, 4])),
    ("Shape", "T = 3", lambda: data_with(lengths=np.full(4, 9, "u8"))),
    ("Dtype", "integers", lambda: data_with(lengths=[3.0] * 4)),
    ("Dtype", "mapping", lambda: data_with(meta="made by hand")),
    ("Shape", "query", lambda: data_with(query=torch.zeros(4, 7))),
    ("NonFinite", "query", lambda: data_with(query=torch.full((4, 20), NAN))),
    ("Shape", "key", lambda: data_with(key=torch.zeros(4, 4, 20))),
    ("Device", "'gpu'", lambda: DATA.to("gpu")),
    ("Dtype", "torch.int64", lambda: DATA.to(dtype=torch.int64)),
    # ---- scores, optimal tokens, assumptions
    ("Dtype", "NoneType", lambda: token_scores(None)),
    ("Dtype", "Dataset", lambda: check_assumption1(None)),
    ("MissingDecoder", "with_decoder", lambda: token_scores(BARE)),
    ("Range", "float64", lambda: token_scores(LARGE)),
    ("TiedTokens", "4 sequences", lambda: optimal_tokens(DATA, torch.zeros(20))),
    ("TiedTokens", "repeated", lambda: optimal_tokens(REPEATED)),
    ("TiedTokens", "tie", lambda: check_assumption1(ZERO)),
    ("Range", "phi", lambda: check_assumption1(DATA, phi=1.5)),
    # ---- SVMs
    ("MissingDecoder", "opt", lambda: solve_w_svm(BARE)),
    ("TiedTokens", "tie", lambda: solve_w_svm(ZERO)),
    ("Range", "sequence 0", lambda: solve_w_svm(DATA, [3, 0, 0, 0])),
    ("Range", "padding", lambda: solve_w_svm(data_with(lengths=[2, 3, 3, 3]), [2, 0, 0, 0])),
    ("Label", "2 others, first 2", lambda: data_with(y=torch.full((2,), 2, dtype=torch.uint64))),
    ("Range", "1001 values", lambda: theorems.check_lemma7(DATA, RUN, eps=[0.1] * 1001)),
    ("Device", "meta", lambda: solve_w_svm(DATA, torch.zeros(4, device="meta").long())),
    ("Infeasible", "cancel", lambda: solve_w_svm(ZERO_QUERY)),
    ("Infeasible", "certificate", lambda: solve_w_svm(OPPOSED)),
    ("Infeasible", "decoder", lambda: solve_u_svm(BOTH_LABELS, [0, 0])),
    ("Range", "rescale", lambda: solve_w_svm(LARGE, [0])),
    # ---- diagnose, Check, Loss
    ("Dtype", "Dataset", lambda: diagnose("data.npz")),
    ("MissingDecoder", "decoder", lambda: diagnose(BARE)),
    ("Range", "step_size", lambda: diagnose(DATA, step_size=0)),
    ("Range", "target", lambda: diagnose(DATA, target=2.0)),
    ("Range", "steps", lambda: diagnose(DATA, steps=-1)),
    ("Dtype", "starts", lambda: diagnose(DATA, starts=0.5)),
    ("Dtype", "guarantees", lambda: diagnose(DATA, guarantees=["L3"])),
    ("Range", "sense", lambda: Check("a", 1.0, 2.0, sense="<")),
    ("Dtype", "value", lambda: Check("a", "small", 2.0)),
    ("Dtype", "functions", lambda: Loss("own", "exp", lambda z: -z)),
    # ---- rules
    ("Range", "step_size", lambda: GD(-0.1)),
    ("NonFinite", "NaN", lambda: GD(NAN)),
    ("Range", "inf", lambda: GD(10**400)),
    ("Dtype", "bool", lambda: GD(True)),
    ("NonFinite", "tol", lambda: SVM.is_optimal(NAN)),
    ("MissingDecoder", "decoder", lambda: empirical_risk(BARE, X[0])),
    ("Range", "slope", lambda: make_degenerate(11)),
    ("Range", "gap", lambda: make_score_lock(0)),
    ("NonFinite", "least_gap", lambda: check_coherence(DATA, least_gap=NAN)),
    ("Shape", "equalities", lambda: svm_module.solve(X[0], equalities=0.5)),
    ("Range", "phi", lambda: example1_threshold(3, 2, phi=5e-324)),
    ("Range", "delta", lambda: example1_threshold(3, 2, delta=0.0)),
    ("Dtype", "real number", lambda: GD(np.timedelta64(1, "s"))),
    ("Dtype", "an integer", lambda: example(seed=np.timedelta64(1, "s"))),
    ("Dtype", "target", lambda: token_constants(DATA).log_m1_iterations(0.1, "x")),
    *(
        (kind, "svm", lambda check=check, svm=svm: check(svm))
        for kind, svm in (
            ("Range", OTHER_SVM),
            ("Range", TURNED_SVM),
            ("Dtype", PAIR_SVM),
            ("Dtype", 1.0),
        )
        for check in (
            lambda svm: token_constants(DATA, svm=svm),
            lambda svm: limit_offset(DATA, svm),
        )
    ),
    # ---- the layer as functions
    ("Shape", "(n, T, d)", lambda: attention_map(X[0], torch.eye(20).double())),
    ("Shape", "(d, d)", lambda: predict(X, torch.ones(20, 3), DATA.u)),
    ("Shape", "lengths", lambda: attention_map(PAIR.X, torch.eye(2).double(), [0])),
    ("Shape", "lengths", lambda: predict(PAIR.X, torch.eye(2), PAIR.u, [-1])),
    ("Shape", "query", lambda: attention_map(PAIR.X, torch.eye(2), query=X[0])),
    ("Dtype", "u", lambda: predict(PAIR.X, torch.eye(2), None)),
    ("Device", "meta", lambda: risk_gradient(DATA, META.expand(20, 20))),
    ("Dtype", "Dataset", lambda: empirical_risk(X, torch.eye(20))),
    ("Range", "'logistic'", lambda: risk_gradient(PAIR, torch.eye(2), loss="hinge")),
    ("Range", "rescale", lambda: solve_u_svm(Dataset(1e-160 * X, Y), [0, 0, 0, 0])),
    ("Dtype", "integers", lambda: solve_u_svm(DATA, [True] * 4)),
    ("Shape", "(n,)", lambda: solve_u_svm(DATA, [[0, 1, 0, 0]])),
    ("Dtype", "Tensor", lambda: GD(torch.ones(2))),
    ("Dtype", "Tensor", lambda: GD(META[0])),
    ("Range", "[0, 1)", lambda: NGD(0.1, momentum=1)),
    ("Range", "max_step", lambda: NGD(0.1, max_step=0)),
    ("Range", "'shared'", lambda: NGD(0.1, normalise="both")),
    ("Range", "'shared'", lambda: NGD(0.1, normalise=np.array(["separate", "shared"]))),
    ("Dtype", "(p, q)", lambda: NGD(0.1, decay=0.5)),
    ("Range", "decay q", lambda: NGD(0.1, decay=(0.5, 2))),
    ("Dtype", "loss_floor", lambda: Polyak(loss_floor="0")),
    # ---- makers and loaders of data
    ("Range", "n (T - 1) + 2", lambda: example(d=5)),
    ("Range", "d", lambda: example(d=10**5000)),
    ("Range", "signal", lambda: example(sigma=1.0, signal=1e-17)),
    ("Range", "'random'", lambda: example(position="middle")),
    ("Range", "opt_score", lambda: example(opt_score=-1.0)),
    ("Range", "opt_score", lambda: example(opt_score=1 + 2e-16, other_score=1.0)),
    ("Range", "seed", lambda: example(seed=2**64)),
    ("Range", "source='huggingface'", lambda: digits(n=10**6)),
    ("Range", "patch", lambda: digits(patch=5)),
    ("Dtype", "centre", lambda: digits(centre=1)),
    ("Range", "'bundled'", lambda: digits(source="bundle")),
    ("MissingFile", "path", lambda: digits(source="none/x")),
    ("MissingFile", "four", lambda: digits(source="folder")),
    ("MissingFile", "folder", lambda: digits(source="text.npz")),
    # ---- the layer
    ("Range", "d", lambda: SelfAttention(0)),
    ("Shape", "(2, 2)", lambda: SelfAttention(2, W=torch.ones(2, 3))),
    ("NonFinite", "W", lambda: SelfAttention(1, W=[[NAN]])),
    ("Dtype", "int64", lambda: SelfAttention(2, u=[1, 0])),
    ("Dtype", "float16", lambda: SelfAttention(2, dtype=torch.float16)),
    ("Shape", "(n, T, d)", lambda: SelfAttention(3)(PAIR.X)),
    ("Dtype", "float32", lambda: SelfAttention(2)(PAIR.X.float())),
    ("Device", "on meta", lambda: SelfAttention(2).to("meta")(PAIR.X)),
    ("Shape", "from 1", lambda: SelfAttention(2)(PAIR.X, [0])),
    # ---- train
    ("Dtype", "Dataset", lambda: train(X, GD(1.0), 4)),
    ("MissingDecoder", "decoder", lambda: train(BARE, GD(1.0), 4)),
    ("TiedTokens", "tie", lambda: train(ZERO, GD(1.0), 4)),
    ("Infeasible", "certificate", lambda: train(OPPOSED, GD(1.0), 4)),
    ("Infeasible", "svm=False", lambda: train(OPPOSED, GD(1.0), 4)),
    ("Dtype", "got Tensor", lambda: run_with(svm=SVM.weights)),
    ("Dtype", "Polyak", lambda: train(DATA, "NGD", 4)),
    ("Dtype", "SGD", lambda: train(DATA, torch.optim.SGD([torch.zeros(1)]), 4)),
    ("Range", "at most", lambda: train(DATA, GD(1.0), 2**31)),
    ("Range", "huge int", lambda: train(DATA, GD(1.0), 10**5000)),
    ("Range", "'logistic'", lambda: run_with(loss="hinge")),
    ("Dtype", "function", lambda: run_with(loss=lambda z: -z)),
    ("Shape", "(d, d)", lambda: run_with(W0=torch.zeros(20, 3))),
    ("NonFinite", "W0", lambda: run_with(W0=torch.full((20, 20), NAN))),
    ("Device", "meta", lambda: run_with(W0=META.expand(20, 20))),
    ("Range", "W0", lambda: run_with(W0=torch.full((20, 20), 1e300, dtype=torch.float64))),
    # ---- joint training
    ("Range", "sigma", lambda: make_dm(sigma=0.0)),
    ("Range", "d", lambda: make_dm(span=True, d=20)),
    ("Range", "scale", lambda: make_bad_start(-1.0)),
    ("Range", "not both", lambda: data_with(opt=[0, 0, 0, 0])),
    ("Range", "below the length", lambda: Dataset(X, Y, opt=[0, 0, 0, 3])),
    ("Range", "step_size", lambda: theorems.check_condition1(DM, 0.0)),
    ("Range", "train_u", lambda: run_with(u0=torch.zeros(20))),
    ("MissingDecoder", "trace.selected", lambda: joint_with(data=BARE, svm=SVM)),
    ("Infeasible", "svm=False", lambda: joint_with(data=BOTH_LABELS)),
    ("Range", "momentum", lambda: joint_with(NGD(0.1, momentum=0.9))),
    ("Range", "span", lambda: joint_with(coordinates="factored")),
    ("Range", "loss_floor", lambda: joint_with(Polyak(loss_floor=0.5))),
    ("Shape", "u0", lambda: joint_with(u0=torch.zeros(5))),
    ("Range", "train_u", lambda: train(DATA, NGD(0.1, decay=(0.5, 1)), 4)),
    ("Range", "train_u", lambda: train(DATA, NGD(0.1, normalise="shared"), 4)),
    ("Dtype", "train_u", lambda: run_with(train_u=torch.ones(2))),
    ("Dtype", "progress", lambda: run_with(progress="yes")),
    ("Range", "'span'", lambda: run_with(coordinates="polar")),
    ("Range", "'torch'", lambda: run_with(engine="cuda")),
    ("Range", "'auto'", lambda: run_with(coordinates="factored", engine="torch")),
    ("Range", "'auto'", lambda: run_with(engine="compiled", loss=OWN_LOSS)),
    ("Range", "steps = 4", lambda: run_with(record=[0, 5])),
    ("Range", "record", lambda: run_with(record=[-1, 2])),
    ("Dtype", "integers", lambda: run_with(record=[0.0, 2.0])),
    ("Dtype", "non-empty", lambda: run_with(record=[])),
    ("Range", "record", lambda: run_with(record=10**20)),
    ("Range", "loss_floor", lambda: train(DATA, Polyak(loss_floor=10.0), 4)),
    ("Dtype", "8 dual", lambda: run_with(svm=PAIR_SVM)),
    ("Range", "svm", lambda: run_with(svm=OTHER_SVM)),
    ("Range", "svm", lambda: train(PAIR, GD(1.0), 4, svm=PAIR_U_SVM)),
    ("Range", "L*", lambda: train(DATA, Polyak(loss_floor=10.0), 4, svm=SVM)),
    ("Dtype", "path", lambda: run_with(checkpoint=3)),
    ("FileAccess", "folder", lambda: run_with(checkpoint="folder")),
    ("MissingFile", "folder", lambda: run_with(checkpoint="none/run.npz")),
    (
        "FileFormat",
        "another run",
        lambda: train(OTHER, GD(1.0), 4, svm=OTHER_SVM, checkpoint="run.npz"),
    ),
    (
        "FileFormat",
        "another run",
        lambda: train(DATA, GD(0.5), 4, svm=SVM, checkpoint="run.npz"),
    ),
    ("FileFormat", "kind 'trace'", lambda: run_with(checkpoint="trace.npz")),
    ("FileFormat", "npz", lambda: run_with(checkpoint="half.npz")),
    ("FileFormat", "records", lambda: run_with(checkpoint="run_incomplete.npz")),
    ("FileFormat", "records", lambda: run_with(checkpoint="run_uneven.npz")),
    ("NonFinite", "checkpoint_seconds", lambda: run_with(checkpoint_seconds=NAN)),
    # ---- rates
    ("Shape", "(18,)", lambda: fit_rate(STEP, STEP[1:])),
    ("Shape", "value", lambda: fit_rate(X[0], X[0])),
    ("Dtype", "complex", lambda: fit_rate(STEP, STEP * 1j)),
    ("Dtype", "value", lambda: fit_rate(STEP, torch.ones(19, requires_grad=True))),
    ("NonFinite", "value", lambda: fit_rate(STEP, np.full(19, NAN))),
    ("Range", "positive", lambda: fit_rate(STEP, -STEP)),
    ("Range", "8 records", lambda: fit_rate(STEP, STEP, (1, 4))),
    ("Range", "first < last", lambda: fit_rate(STEP, STEP, (9, 1))),
    ("NonFinite", "window", lambda: fit_rate(STEP, STEP, (NAN, 19))),
    # ---- files
    ("MissingFile", "check the path", lambda: Trace.load("none.npz")),
    ("MissingFile", "path", lambda: Trace.load("data.npz/x")),
    ("FileAccess", "folder", lambda: Trace.load("folder")),
    ("Dtype", "path", lambda: Trace.load(3)),
    ("FileAccess", "name", lambda: Trace.load("a" * 5000)),
    ("FileAccess", "null", lambda: Trace.load("run\0.npz")),
    ("FileAccess", "too long", lambda: experiments.load("fig2", "a" * 300)),
    ("FileFormat", "npz", lambda: Trace.load("empty.npz")),
    ("FileFormat", "npy", lambda: Trace.load("plain.npy")),
    ("FileFormat", "half-written", lambda: Trace.load("half.npz")),
    ("FileFormat", "pickle", lambda: Trace.load("pickled.npz")),
    ("FileFormat", "no attnbias header", lambda: Trace.load("foreign.npz")),
    ("FileFormat", "'dataset'", lambda: Trace.load("data.npz")),
    ("FileFormat", "'checkpoint'", lambda: Trace.load("run.npz")),
    ("FileFormat", "format 99", lambda: Trace.load("newer.npz")),
    ("FileFormat", "format None", lambda: Trace.load("unnumbered.npz")),
    ("FileFormat", "W_norm", lambda: Trace.load("uneven.npz")),
    ("FileFormat", "type of u", lambda: Trace.load("words.npz")),
    ("FileFormat", "without W_norm", lambda: Trace.load("incomplete.npz")),
    ("FileAccess", "folder", lambda: RUN.save("folder")),
    ("MissingFile", "make the folder", lambda: RUN.save("none/trace.npz")),
    ("MissingFile", "path", lambda: Dataset.load("none.npz")),
    ("FileFormat", "'trace'", lambda: Dataset.load("trace.npz")),
    ("FileFormat", "only Z", lambda: Dataset.load("foreign.npz")),
    ("FileFormat", "pickle", lambda: Dataset.load("pickled.npz")),
    ("Label", "{-1, +1}", lambda: Dataset.load("labels.npz")),
    ("MissingFile", "folder", lambda: DATA.save("data.npz/x.npz")),
    ("FileAccess", "name", lambda: DATA.save("a" * 5000)),
    ("Dtype", "json", lambda: data_with(meta={"maker": object()}).save("data.npz")),
    # ---- experiments
    ("Range", "'fig2'", lambda: experiments.run("fig33")),
    ("Range", "seeds", lambda: fig2(seed=1)),
    ("Range", "1000", lambda: fig2(steps=10)),
    ("Dtype", "seeds", lambda: fig2(seeds=[])),
    ("Range", "seeds", lambda: fig2(seeds=10**20)),
    ("Range", "d", lambda: fig2(d=5)),
    ("Device", "'gpu'", lambda: fig2(device="gpu")),
    ("Range", "loss", lambda: fig2(loss="hinge")),
    ("Range", "record", lambda: fig2(record=[-1])),
    ("FileFormat", "'trace'", lambda: experiments.load("fig2", "trace.npz")),
]


@pytest.fixture
def no_work(monkeypatch, request):
    """Solving and training fail, except where the solver itself is to find the fault."""

    def worked(*arguments, **options):
        raise AssertionError("work began before the input was checked")

    if request.node.callspec.params["row"][0] != "Infeasible":
        monkeypatch.setattr(svm_module, "solve_dual", worked)
    for engine in (CompiledEngine, Iteration):
        monkeypatch.setattr(engine, "run", worked)


@pytest.mark.parametrize("row", ROWS, ids=[f"{kind}: {word}" for kind, word, _ in ROWS])
@pytest.mark.filterwarnings("error")
def test_refused_by_a_named_error_before_any_work(row, files, no_work, monkeypatch):
    monkeypatch.chdir(files)
    kind, word, call = row
    error, before = getattr(errors, f"{kind}Error"), content(files)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert issubclass(error, AttnBiasError)
    assert any(base.__module__ == "builtins" for base in error.__mro__[1:-3])
    message = str(caught.value)
    assert re.fullmatch(r".+: expected .+; got .+\. \S.+[.!]", message, re.DOTALL), message
    assert word.lower() in message.lower()
    assert len(message) < 900
    assert content(files) == before


def test_a_tensor_on_another_device_is_refused():
    with pytest.raises(DeviceError, match=r"u: expected a tensor on cuda:1; got one on cpu\. Move"):
        require_device("u", torch.zeros(1), torch.device("cuda:1"))


def test_no_message_holds_a_terminal_escape():
    with pytest.raises(MissingFileError) as caught:
        Dataset.load("\x1b[31m\x9b\u202e\udc80.npz")
    assert "\\x1b[31m\\x9b\\u202e\\udc80.npz" in str(caught.value)
    assert Dataset(PAIR.X, PAIR.y, name="a\x1b[2J\nb").name == "a\\x1b[2J\nb"


def test_duplicate_records_are_one():
    assert run_with(record=[2, 0, 2]).step.tolist() == [0, 2]


def test_errors_cross_processes():
    """A pool's worker pickles what it raises; the default would fail on keyword arguments."""
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(OPPOSED)
    for error in (MissingFileError("a", expected="b", got="c", remedy="d"), caught.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
    assert torch.equal(again.certificate, caught.value.certificate)


# ---- nothing but named errors, whatever comes --------------------------------------------------

JUNK = [
    None,
    True,
    "word",
    "",
    b"bytes",
    NAN,
    -INF,
    -1,
    -1.5,
    0,
    0.5,
    10**400,
    1j,
    [],
    [None],
    [[1.0], [1.0, 2.0]],
    {},
    {1, 2},
    object(),
    len,
    np.array(["a", "b"]),
    np.array(1.0),
    np.array([NAN]),
    torch.zeros(0),
    torch.ones(2),
    torch.tensor(1j),
    torch.zeros(2, device="meta"),
    torch.tensor(True),
    torch.eye(2).to_sparse(),
]
TRACE = train(DATA, NGD(0.1), 20, record=5)
JOINT_TRACE = train(DM, NGD(0.1, decay=(0.5, 1)), 20, train_u=True, record=5)
JOB = {"data": DATA, "rule": GD(1.0), "steps": 2}
JOINT = {"data": DM, "rule": NGD(0.1, decay=(0.5, 1)), "steps": 2, "train_u": True}
# A good call of each; what it leaves at its default is attacked as well.
CALLS = [
    (GD, {"step_size": 0.1}),
    (NGD, {"step_size": 0.5}),
    (Polyak, {"max_step": 1.0, "loss_floor": 0.0}),
    (make_example1, {"n": 4, "T": 3, "d": 20}),
    (load_binary_mnist, {"n": 4, "T": 3, "patch": 7}),
    (make_dm, {"n": 3, "d": 20}),
    (make_bad_start, {}),
    (make_degenerate, {}),
    (make_score_lock, {}),
    (Dataset, {"X": X, "y": Y, "u": DATA.u, "lengths": [3, 3, 2, 2]}),
    (Dataset, {"X": X, "y": Y, "opt": [0, 1, 2, 0]}),
    (Dataset.from_sequences, {"sequences": X, "y": Y}),
    (Dataset.from_frame, {"frame": TABLE, "by": "i", "features": ["a"], "label": "y", "u": [1.0]}),
    (Dataset.concat, {"parts": [DATA]}),
    (DATA.__getitem__, {"index": 0}),
    (DATA.to, {}),
    (DATA.with_decoder, {"u": DATA.u}),
    (Dataset.load, {"path": "none"}),
    (Trace.load, {"path": "none"}),
    (DATA.save, {"path": "data.npz"}),
    (RUN.save, {"path": "trace.npz"}),
    (RUN.alignment_with, {"direction": SVM.weights}),
    *(
        (function, {"data": DATA})
        for function in (
            token_scores,
            optimal_tokens,
            check_assumption1,
            check_assumption2,
            check_coherence,
            token_coherence,
            solve_w_svm,
            solve_u_svm,
            theorems.check_lemma6,
        )
    ),
    (theorems.check_lemma2, {"data": DATA, "W0": torch.zeros(20, 20), "omega": 0.1}),
    (svm_module.solve, {"rows": [[1.0]]}),
    (limit_offset, {"data": DATA, "svm": SVM}),
    (diagnose, {"data": PAIR, "steps": 2}),
    (SelfAttention, {"d": 2}),
    (SelfAttention(2).forward, {"X": PAIR.X}),
    (Loss, {"name": "own", "log_value": len, "log_slope": len}),
    (train, JOB | {"svm": SVM}),
    (train, JOINT),
    (example1_threshold, {"n": 3, "T": 2}),
    (SVM.is_optimal, {}),
    *(
        (check, {"data": DM, "step_size": 0.1, "decay": (0.5, 1)})
        for check in (theorems.check_condition1, theorems.check_condition2)
    ),
    (theorems.check_lemma9, {"data": DM}),
    *(
        (check, {"data": DATA, "trace": TRACE})
        for check in (
            theorems.check_lemma1,
            theorems.check_lemma3,
            theorems.check_lemma4,
            theorems.check_lemma7,
            theorems.check_theorem1,
            theorems.check_theorem6,
            theorems.check_theorem7,
            theorems.check_rate,
            theorems.check_fast_rate,
            theorems.check_unequal_scores,
            theorems.check_lock,
            theorems.check_rate_lower_bound,
        )
    ),
    *(
        (check, {"data": DM, "trace": JOINT_TRACE})
        for check in (
            theorems.check_lemma10,
            theorems.check_lemma11,
            theorems.check_lemma12,
            theorems.check_lemma13,
            theorems.check_theorem2,
            theorems.check_theorem3,
            theorems.check_theorem4,
            theorems.check_decoder_direction,
        )
    ),
    (fit_rate, {"step": STEP, "value": STEP}),
    (experiments.run, {"name": "fig2", "steps": 1}),
    (experiments.load, {"name": "fig2"}),
    (experiments.describe, {"name": "fig2"}),
]


ARGUMENTS = [
    (call, good, name)
    for call, good in CALLS
    for name in good | inspect.signature(call).parameters
    if name != "callback"  # whose own errors are its owner's
]


@pytest.mark.parametrize(
    ("call", "good", "name"),
    ARGUMENTS,
    ids=[f"{call.__qualname__} {name}" for call, _, name in ARGUMENTS],
)
def test_no_argument_leads_to_a_bare_error(call, good, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a word is a good file name
    monkeypatch.setattr(experiments.fig2, "run", lambda: None)
    for junk in JUNK:
        try:
            call(**(good | {name: junk}))
        except AttnBiasError as error:
            assert error.expected and error.got and error.remedy
        except Exception as error:
            pytest.fail(f"{name}={type(junk).__name__} {str(junk)[:40]}: {error!r}")


numbers = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.complex_numbers(),
    st.fractions(),
    st.decimals(),
    st.lists(st.floats(), max_size=2),
    st.floats().map(torch.tensor),
    st.floats(width=32).map(np.float32),
    st.floats().map(np.array),
)


@FEW
@given(numbers, numbers, numbers, numbers)
def test_rules_take_a_number_or_refuse_it(step_size, momentum, cap, floor):
    for call in (
        lambda: GD(step_size),
        lambda: NGD(step_size),
        lambda: NGD(0.1, momentum, decay=(cap, floor)),
        lambda: Polyak(cap, floor),
    ):
        try:
            rule = call()
        except AttnBiasError:
            continue
        assert -746 < rule.log_scale < 710
        assert 0 <= rule.momentum < 1
        assert rule.log_max_step > -746
        assert repr(rule) == rule.name


@given(
    st.sampled_from(["sigma", "signal", "opt_score", "other_score", "seed", "n", "T", "position"]),
    numbers,
)
def test_example1_is_right_or_refused(name, value):
    try:
        data = example(**{name: value})
    except AttnBiasError:
        return
    settings = data.meta
    scores = token_scores(data).sort(dim=1).values
    gap = settings["opt_score"] - settings["other_score"]
    assert (scores[:, -1] - settings["opt_score"]).abs().max() <= 1e-5 * gap
    assert (scores[:, :-1] - settings["other_score"]).abs().max() <= 1e-5 * gap


@pytest.fixture(scope="module")
def stored(files):
    return {name: (files / f"{name}.npz").read_bytes() for name in ("data", "trace", "run")}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "file.npz"


def read(name, path):
    if name == "run":
        return run_with(checkpoint=path)
    return (Dataset if name == "data" else Trace).load(path)


starts = st.sampled_from([b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\x80\x04"])


@given(
    st.sampled_from(["data", "trace", "run"]),
    st.one_of(st.floats(0, 0.95), st.tuples(starts, st.binary(max_size=200))),
)
@pytest.mark.filterwarnings("ignore")
def test_truncated_files_and_random_bytes_are_refused_and_left_alone(stored, scratch, name, made):
    truncated = isinstance(made, float)
    blob = stored[name][: int(made * len(stored[name]))] if truncated else b"".join(made)
    scratch.write_bytes(blob)
    with pytest.raises(FileFormatError, match="expected .*; got "):
        read(name, scratch)
    assert scratch.read_bytes() == blob


@given(
    st.sampled_from(["data", "trace", "run"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_are_read_or_refused(stored, scratch, name, changes, near_the_end):
    """Flipped bytes anywhere, or in the last fifth, where a zip file keeps its directory."""
    blob = bytearray(stored[name])
    for place, byte in changes:
        low = len(blob) * 4 // 5 if near_the_end else 0
        blob[low + int(place * (len(blob) - 1 - low))] = byte
    scratch.write_bytes(blob)
    try:
        read(name, scratch)
    except AttnBiasError as error:
        assert isinstance(error, FileFormatError)


MANY = torch.arange(2000.0).reshape(2, 1000)
SHAPES = {
    "tensor": MANY,
    "array": MANY.numpy(),
    "frame": pd.DataFrame(MANY.numpy()),
    "list of tensors": [MANY] * 9,
    "dict": {"a": MANY},
    "scalar": MANY.sum(),
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(("call", "given"), CALLS, ids=[call.__qualname__ for call, _ in CALLS])
def test_no_message_prints_a_tensor(call, given, kind):
    """A few lines at most: what came is a type, a shape or a short word."""
    for name in inspect.signature(call).parameters:
        try:
            call(**given | {name: SHAPES[kind]})
        except AttnBiasError as error:
            text = str(error)
            assert len(text) < 500 and not re.search(r"tensor\(|array\(\[|\n", text), text
