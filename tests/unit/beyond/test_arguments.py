"""What several rooms check in one place: refused by a named error, whatever comes."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from instances import not_optimal

from attnbias import (
    NGD,
    Dataset,
    experiments,
    make_example1,
    make_separation_pair,
    solve_u_svm,
    solve_w_svm,
)
from attnbias._validate import as_numbers
from attnbias.beyond.common.arguments import listed
from attnbias.beyond.depth.checks import check_longest_leads, check_two_layers
from attnbias.beyond.depth.data import make_token_pairs
from attnbias.beyond.depth.dynamics import train_two_layers
from attnbias.beyond.depth.geometry import expected_gap, layer_potential, pair_coordinates
from attnbias.beyond.depth.queries import query_margins
from attnbias.beyond.exponents.geometry import SlackLaw, triple_bracket
from attnbias.beyond.exponents.transient import offset_parts
from attnbias.beyond.heads.checks import check_heads, gap_invariant
from attnbias.beyond.heads.columns import column
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.joint.exponents import joint_exponents
from attnbias.beyond.local.checks import trap_level
from attnbias.beyond.local.data import make_score_trap
from attnbias.beyond.local.geometry import check_locally_optimal, score_margins
from attnbias.beyond.multi_token.checks import best_mixture, predict_mixture, predict_settled
from attnbias.beyond.multi_token.data import QuadraticHead, ReluHead, TorchHead
from attnbias.beyond.multi_token.dynamics import train_nonlinear
from attnbias.beyond.multi_token.geometry import solve_several_svm
from attnbias.beyond.next_token.checks import check_retrieval
from attnbias.beyond.next_token.data import NextTokenData, make_priorities
from attnbias.beyond.next_token.dynamics import train_next_token
from attnbias.beyond.next_token.geometry import priority_rows, solve_graph_svm
from attnbias.beyond.next_token.ties import soft_solution
from attnbias.beyond.norms.dynamics import train_adam
from attnbias.beyond.norms.geometry import norm_margin
from attnbias.beyond.norms.matrices import train_matrices
from attnbias.beyond.norms.nuclear import polish_nuclear
from attnbias.beyond.overparam.data import drop_signal_feature
from attnbias.beyond.overparam.geometry import check_independent_rows, wendel_share
from attnbias.beyond.prompt.data import prompt_keys, prompt_of, prompt_queries
from attnbias.beyond.prompt.paths import query_images, sequence_scores
from attnbias.beyond.ranks.claims import mean_ranks
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.beyond.ranks.geometry import frobenius_rank, nuclear_bounds
from attnbias.errors import (
    DeviceError,
    DtypeError,
    FileAccessError,
    FileFormatError,
    NonFiniteError,
    RangeError,
    ShapeError,
)
from attnbias.geometry.tokens import gap_rows

PAIR, DATA, TRAP = make_separation_pair(), make_example1(2, 3, 12, seed=0), make_score_trap(0.3)
SVM, OTHER_SVM = solve_w_svm(DATA), solve_w_svm(make_example1(2, 3, 12, seed=1))
TOKENS = make_token_pairs(1, 2.0)
LAYERS = train_two_layers(TOKENS, NGD(0.5), 3)
U = torch.stack([DATA.u, DATA.u])
HEADS = train_heads(DATA, U, NGD(0.1), 3)
WORDS, OTHERS = make_priorities(5, n=6, T=3, seed=1), make_priorities(5, n=6, T=3, seed=2)
READ = train_next_token(WORDS, NGD(0.5), 3)
ONE = Dataset(torch.eye(3)[None].double(), [1])
BEST = predict_mixture(ONE, [1.0, 0.5, 0.0], 0.5)
LAW = SlackLaw(0.1, 1.0, 0.0, 1.0, 0.5, 0.0, 2)
CONSTANT = TorchHead(lambda o: torch.ones(len(o)))
RANKS = [*"nTd", *(f"{norm}_{what}" for norm in "FN" for what in ("status", "lower", "upper"))]
HEAD_ROW = dict.fromkeys(("layer", "head", "margin", "cosine_span"), 1)
FORM = experiments.module_of("heads").FORM
TABLE = experiments.ExperimentResult(FORM, {"rows": (HEAD_ROW,), "random": ()}, {})
META = torch.ones(1, dtype=torch.float64, device="meta")
NUMBERS = [
    None,
    "x",
    b"x",
    1j,
    {},
    [[1], [1, 2]],
    object(),
    10**5000,
    np.ma.masked_array([1.0], [1]),
]


@pytest.mark.parametrize("junk", NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "function",
    [
        gap_invariant,
        lambda x: layer_potential(x, 1.0, 1.0),
        lambda x: layer_potential(0.0, x, 1.0),
        lambda x: expected_gap(TOKENS, 1, x),
        lambda x: trap_level(0.3, x, 0.0),
        LAW.offset,
        LAW.exponent,
        lambda x: offset_parts(SVM, x),
        QuadraticHead([1.0], 1.0).value,
        lambda x: ReluHead([[1.0]]).gradient(x),
        CONSTANT.value,
    ],
)
def test_numbers_of_any_shape_are_numbers(function, junk):
    with pytest.raises(DtypeError):
        function(junk)


WITH_SVM = {
    "independent rows": lambda svm: check_independent_rows(DATA, svm=svm),
    "locally optimal": lambda svm: check_locally_optimal(DATA, DATA.opt, svm=svm),
}


@pytest.mark.parametrize("kind", ["longer", "random"])
@pytest.mark.parametrize("check", WITH_SVM)
def test_a_solution_that_is_not_optimal_is_refused(check, kind):
    with pytest.raises(RangeError, match="svm: expected an optimal solution"):
        WITH_SVM[check](not_optimal(SVM, kind))
    WITH_SVM[check](SVM)


def test_a_graph_solution_that_is_not_optimal_is_refused():
    with pytest.raises(RangeError, match="svm: expected an optimal solution"):
        check_retrieval(WORDS, READ, not_optimal(solve_graph_svm(WORDS), "longer"))


def test_numbers_of_every_kind_are_taken():
    assert gap_invariant(1) == gap_invariant(np.float32(1)) == gap_invariant(torch.tensor(1.0))
    assert gap_invariant([0, 0]).tolist() == [0.0, 0.0] and math.isnan(gap_invariant(math.nan))
    assert as_numbers("x", np.ones(2, dtype=">f4"), dtype=float).tolist() == [1.0, 1.0]
    assert listed("x", np.array([1, 2]), lambda name, value: value) == [1, 2]
    assert listed("x", 3, lambda name, value: value) == [3]
    assert wendel_share(9, 4) == sum(math.comb(8, k) for k in range(4)) / 2**8


REFUSED = {
    "trace of other tokens": (ShapeError, lambda: check_two_layers(make_token_pairs(2), LAYERS)),
    "trace of more tokens": (ShapeError, lambda: check_longest_leads(DATA, LAYERS)),
    "trace of other heads": (ShapeError, lambda: check_heads(DATA, U[:1], HEADS)),
    "one decoder": (ShapeError, lambda: check_heads(DATA, DATA.u, HEADS)),
    "no trace": (DtypeError, lambda: sequence_scores(DATA, None)),
    "no data": (DtypeError, lambda: query_images(None, HEADS)),
    "bound": (DtypeError, lambda: check_two_layers(TOKENS, LAYERS, "x")),
    "zero query": (
        RangeError,
        lambda: expected_gap(Dataset([[[0.0, 0], [0, 1]]], [1], u=[0.0, 1]), 1, 1.0),
    ),
    "norm 0": (RangeError, lambda: expected_gap(TOKENS, 1, 0.0)),
    "ragged W": (DtypeError, lambda: pair_coordinates(TOKENS, [[1], [1, 2]])),
    "SVM None": (DtypeError, lambda: query_margins(DATA, None, [0, 0])),
    "SVM of other data": (RangeError, lambda: WITH_SVM["independent rows"](OTHER_SVM)),
    "SVM of a pair": (DtypeError, lambda: WITH_SVM["independent rows"](solve_w_svm(PAIR))),
    "SVM a number": (DtypeError, lambda: WITH_SVM["independent rows"](1.0)),
    "SVM of u": (DtypeError, lambda: query_margins(DATA, solve_u_svm(DATA), [0, 0])),
    "SVM of tokens": (RangeError, lambda: score_margins(TRAP, [2], svm=solve_w_svm(TRAP, [1]))),
    "SVM a word": (DtypeError, lambda: score_margins(TRAP, [2], svm="x")),
    "SVM of W": (DtypeError, lambda: check_retrieval(WORDS, READ, SVM)),
    "SVM of others": (
        ShapeError,
        lambda: check_retrieval(WORDS, READ, solve_graph_svm(make_priorities(4, n=6, T=3, seed=1))),
    ),
    "SVM of rows": (DtypeError, lambda: predict_settled(ONE, BEST, SVM)),
    "SVM of sets": (
        RangeError,
        lambda: predict_settled(ONE, BEST, solve_several_svm(ONE, [[True, False, False]])),
    ),
    "mixture": (DtypeError, lambda: predict_settled(ONE, None, solve_several_svm(ONE, BEST.sets))),
    "SVM to polish": (DtypeError, lambda: polish_nuclear(gap_rows(DATA), None)),
    "rows to polish": (DtypeError, lambda: polish_nuclear(None, SVM)),
    "SVM to bound": (DtypeError, lambda: nuclear_bounds(gap_rows(DATA), SVM)),
    "rows": (DtypeError, lambda: soft_solution(WORDS, SVM.rows)),
    "rows of others": (RangeError, lambda: soft_solution(WORDS, priority_rows(OTHERS))),
    "split of others": (
        RangeError,
        lambda: train_next_token(WORDS, NGD(0.5), 1, split=priority_rows(OTHERS)),
    ),
    "head of others": (
        ShapeError,
        lambda: train_nonlinear(ONE, QuadraticHead([1.0, 1.0], 0.5), NGD(0.5), 1),
    ),
    "heads for two": (
        ShapeError,
        lambda: train_nonlinear(ONE, ReluHead(torch.ones(2, 1, 3).double()), NGD(0.5), 1),
    ),
    "constant head": (DtypeError, lambda: CONSTANT.gradient(np.ones((1, 2)))),
    "vector": (ShapeError, lambda: QuadraticHead([1.0], 1.0).value(np.ones((1, 2)))),
    "units": (DtypeError, lambda: ReluHead([[1], [1, 2]])),
    "curvature": (RangeError, lambda: best_mixture([[1.0, 0.0]], [[5e-324, 5e-324]])),
    "factors of no data": (DtypeError, lambda: train_factors(None, *make_factors(2, 2), 0.1, 1)),
    "one beta": (RangeError, lambda: train_adam(PAIR, 0.1, 1, betas=0.9)),
    "betas": (DtypeError, lambda: train_adam(PAIR, 0.1, 1, betas=None)),
    "steps None": (DtypeError, lambda: train_matrices(PAIR, NGD(0.1), None)),
    "no rule": (DtypeError, lambda: train_matrices(PAIR, None, [1])),
    "W a list": (DtypeError, lambda: norm_margin(PAIR, None, "max")),
    "W NaN": (NonFiniteError, lambda: norm_margin(PAIR, np.full((2, 2), np.nan), "max")),
    "no signal": (DtypeError, lambda: drop_signal_feature(None)),
    "prompt": (ShapeError, lambda: prompt_of(torch.ones(2))),
    "short prompt": (ShapeError, lambda: prompt_queries(DATA, torch.ones(11))),
    "W elsewhere": (DeviceError, lambda: prompt_keys(DATA, META.expand(12, 12))),
    "prompt of": (DtypeError, lambda: prompt_of("x")),
    "tiny slack": (RangeError, lambda: triple_bracket(5e-324, 0.1)),
    "tiny step": (RangeError, lambda: LAW.ngd_step(5e-324)),
    "law": (DtypeError, lambda: SlackLaw("x", 1.0, 0.0, 1.0, 0.5, 0.0, 2)),
    "table": (RangeError, lambda: joint_exponents(None)),
    "columns": (
        DtypeError,
        lambda: joint_exponents(
            pd.DataFrame(
                {
                    name: ["x"] * 9
                    for name in (
                        "run",
                        "step",
                        "log_loss",
                        "u_norm",
                        "W_norm",
                        "u_alignment_error",
                        "W_alignment_error",
                    )
                }
            )
        ),
    ),
    "T": (DtypeError, lambda: mean_ranks(pd.DataFrame(1, [0], RANKS), "5")),
    "tol": (DtypeError, lambda: frobenius_rank(DATA).numerical_rank("x")),
    "column": (RangeError, lambda: column(TABLE, "x")),
    "random": (
        DtypeError,
        lambda: column(TABLE, "margin", random="no"),
    ),
    "folder": (
        FileAccessError,
        lambda: experiments.run("ranks", seeds=1, sizes=[(5, 5)], d=[1], out="a\0b"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    error, call = REFUSED[case]
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("name", ["exponents", "ranks"])
def test_a_foreign_table_is_refused_on_reading(name, tmp_path):
    form = experiments.module_of(name).FORM
    result = experiments.ExperimentResult(form, {"table": pd.DataFrame({"a": [1]})}, {}, [])
    result.save(tmp_path / form.file)
    with pytest.raises(FileFormatError, match=name):
        experiments.load(name, tmp_path)


def test_names_are_texts():
    data = NextTokenData(torch.eye(3).double(), [[0, 1, 2]], [0], name=np.ones(2))
    assert isinstance(data.name, str) and "of shape (2,)" in repr(data)
