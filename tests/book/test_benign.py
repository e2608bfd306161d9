"""Label noise at the limit: the recipe, the forecast where it is exact, and the record."""

import json

import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias import Dataset, InfeasibleError, solve_w_svm
from attnbias._records import read_json
from attnbias.beyond.norms.geometry import solve_norm_svm
from attnbias.beyond.prompt.data import prompt_keys, prompt_of
from book.studies.benign import (
    ENDS,
    RECORD,
    SEEDS,
    WEAK,
    accuracy,
    draw,
    fittable,
    forecast,
    forecast_max,
    grid,
    length,
    limits,
    pull,
    recorded,
    recorded_runs,
    right,
    spectral_ends,
)
from scripts.benign import kept, key

INTERIOR = 1e-6  # relative: an interior point's gap, as the tests of the norms take it
# Of an accuracy, fixed before the record was read: the forecast leaves out cosines of random noise.
OFF = 0.12
HOPELESS = [  # points with one sequence all of whose tokens have scores of the other sign
    ("matrix", 0.0, 0.2, 2, 6 * [0.9]),
    ("matrix", 0.0, 0.2, 4, 6 * [0.9]),
    ("matrix", 0.0, 0.4, 2, 6 * [0.9]),
    ("matrix", 0.2, 0.2, 2, 6 * [0.9]),
    ("matrix", 0.2, 0.2, 4, 6 * [0.9]),
    ("matrix", 0.2, 0.2, 5, 6 * [0.9]),
    ("matrix", 0.2, 0.4, 2, 6 * [0.9]),
    ("prompt", 0.0, 0.05, 3, 4 * [0.95]),
]
KEYS = ["kind", "T", "dim", "n", "noise", "snr", "seed"]


def orthogonal(n, T, snr, noise):
    """Tokens with orthogonal noise, and the prompt data of their best tokens."""
    dim = n * T + 2
    X = torch.zeros(n, T, dim, dtype=torch.float64)
    X.view(n * T, dim)[:, 2:] = dim**0.5 * torch.eye(n * T).double()
    half, wrong = torch.arange(n) // (n // 2), torch.arange(n) % (n // 2) < round(noise * n / 2)
    X[torch.arange(n), 0, half] = snr * dim**0.5
    y = (1 - 2.0 * half) * (1 - 2.0 * wrong)
    return prompt_keys(Dataset(X, y, opt=torch.where(wrong, T - 1, 0)))


@pytest.mark.parametrize("noise", [0.0, 1 / 3])
@pytest.mark.parametrize("snr", [0.2, 1.0])
def test_pull_and_length_are_those_of_the_svm_for_orthogonal_noise(noise, snr):
    n, T = 6, 4
    data = orthogonal(n, T, snr, noise)
    p = prompt_of(solve_w_svm(data).weights)
    pulled = pull(n, noise, snr, T)
    assert (p[:2] * snr * data.d**0.5 - pulled).abs().max() < CLOSED_FORM
    assert abs(float(p.norm()) - length(n, noise, snr, data.d, T)) < CLOSED_FORM
    # other counts of wrong labels give other numbers, and so does p without its signals
    assert abs(pull(n, 2 / 3, snr, T) - pulled) > 0.01
    assert abs(length(n, 2 / 3, snr, data.d, T) / float(p.norm()) - 1) > 0.01
    assert float(p.norm() / p[2:].norm()) > 1.001


def test_a_fresh_tokens_logit_has_the_length_as_its_deviation():
    """Fresh noise has a part along the signals as well, which the logit of a token sees."""
    data = orthogonal(6, 4, 0.2, 0.0)
    p = prompt_of(solve_w_svm(data).weights)
    noise = torch.randn(200_000, data.d, generator=torch.Generator().manual_seed(0)).double()
    assert abs(float((noise @ p).std()) / length(6, 0.0, 0.2, data.d, 4) - 1) < 0.01
    assert abs(float((noise[:, 2:] @ p[2:]).std()) / length(6, 0.0, 0.2, data.d, 4) - 1) > 0.02


def test_accuracies_of_leads_that_are_known():
    assert abs(right(0.0, 0.0, 500, 8) - 0.5) < CLOSED_FORM  # a guess
    assert abs(right(0.0, 50.0, 500, 8) - (1 / 8 + 7 / 16)) < 1e-6  # one of eight, and a guess
    assert abs(right(30.0, 50.0, 500, 8) - 1) < CLOSED_FORM
    assert forecast(20, 0.2, 0.2, 2000) > forecast(20, 0.2, 0.2, 500) > forecast(20, 0.4, 0.2, 500)


def test_the_recipe_adds_its_signals_and_turns_the_labels_asked_for():
    plain, marked = (draw(10, 4, 12, snr, 0.4, seed=3) for snr in (0.0, 2.0))
    added = (marked.keys - plain.keys).double()
    size = 2 * 12**0.5
    for i, (mine, other) in enumerate([(0, 1)] * 5 + [(1, 0)] * 5):
        wanted = torch.zeros(4, 12).double()
        wanted[0, mine], wanted[1, mine], wanted[2, other] = size, WEAK * size, WEAK * size
        assert (added[i] - wanted).abs().max() < CLOSED_FORM
    assert marked.y.tolist() == [-1, -1, 1, 1, 1, 1, 1, -1, -1, -1]
    assert (draw(10, 4, 12, 2.0, 0.0, seed=3).y != marked.y).sum() == 4
    own = draw(10, 4, 12, 2.0, 0.4, seed=3, own=True)
    assert torch.equal(own.X, marked.X) and len(own.queries.unique(dim=0)) == 10


def test_a_prompt_has_one_margin_in_three_norms_and_queries_of_their_own_have_three():
    prompt, own = (draw(4, 3, 20, 0.5, 0.5, seed=0, own=own) for own in (False, True))
    for norm, svm in limits(prompt).items():
        assert abs(solve_norm_svm(prompt, norm).margin / svm.margin - 1) < INTERIOR
        assert svm.duality_gap < INTERIOR
    shared = [limits(data) for data in (prompt, own)]
    ratios = [each["spectral"].margin / each["nuclear"].margin for each in shared]
    assert abs(ratios[0] - 1) < INTERIOR and ratios[1] > 1.5


@pytest.mark.parametrize(("seed", "full"), [(2, True), (3, False)])
def test_the_spectral_solution_is_one_where_the_dual_matrix_has_full_rank(seed, full):
    svm = solve_norm_svm(draw(6, 3, 20, 0.2, 0.5, seed, own=True), "spectral")
    values = torch.linalg.svdvals(svm.rows.combine(svm.dual))
    assert bool(values[5] > 1e-3 * values[0]) == full  # of six queries
    ends = spectral_ends(svm)
    assert max(end.duality_gap for end in ends.values()) < INTERIOR
    least, most = (end.weights for end in ends.values())
    sums = [float(W[:2].sum()) for W in (least, svm.weights, most)]
    assert sums == sorted(sums)
    # the root of the solver's room is 7e-4
    assert (float((most - least).norm() / most.norm()) < 0.01) == full


def test_a_label_is_left_unfitted_only_where_no_token_has_its_sign():
    hopeless = {row[:4]: row[4][0] for row in HOPELESS}
    for point in grid():
        kind, T, dim, n, *key = point.values()
        if kind == "matrix" or (kind == "prompt" and n == 20 and point["snr"] < 0.1):
            data = draw(n, T, dim, point["snr"], point["noise"], point["seed"])
            assert fittable(data) == hopeless.get((kind, *key), 1.0), point


def test_the_limit_fits_wrong_labels_and_its_opposite_does_not():
    data = draw(10, 8, 200, 0.1, 0.4, seed=0)
    W = solve_w_svm(data).weights
    assert accuracy(data, W) == 1 > accuracy(data, -W)


def test_one_sequence_with_both_labels_has_no_limit():
    data = draw(10, 8, 200, 0.1, 0.4, seed=0)
    X, y = data.X[:2].clone(), torch.tensor([1.0, -1.0], dtype=torch.float64)
    solve_w_svm(prompt_keys(Dataset(X, y, data.u)))
    X[1] = X[0]
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(prompt_keys(Dataset(X, y, data.u)))
    share = caught.value.certificate / caught.value.certificate.max()
    assert int((share > 1e-6).sum()) == 2  # what other kernels leave on the rest is far smaller


def unfitted(rows) -> list[tuple]:
    """Points of which some label is not fitted, with the share that is in each norm."""
    found = rows[rows.fitted < 1].groupby(["kind", "noise", "snr", "seed"]).fitted.agg(list)
    return [(*key, norms) for key, norms in found.items()]


def faults(rows) -> list[str]:
    """What a record of the limits lacks."""
    wanted = [
        (*(point[key] for key in KEYS), norm)
        for point in grid()
        if point["kind"] != "run"
        for norm in ("frobenius", "max", "spectral", "nuclear", *ENDS)
        if (point["kind"] != "dimension" or norm == "frobenius")
        and (point["kind"] == "matrix" or norm not in ENDS)
    ]
    found = list(rows[[*KEYS, "norm"]].itertuples(index=False, name=None))
    same = rows[(rows.kind == "prompt") & (rows.norm != "max")].groupby(KEYS).margin
    checks = {
        "points": sorted(found) == sorted(wanted),
        "certificates": bool(rows.gap.between(-CLOSED_FORM, INTERIOR).all()),
        "three norms": bool((same.max() / same.min() - 1 < INTERIOR).all()),
        "labels": unfitted(rows) == HOPELESS,
    }
    return [name for name, holds in checks.items() if not holds]


def test_the_record_is_whole_certified_and_from_a_clean_clone():
    rows, made = recorded(), read_json(RECORD, "benign")["provenance"]
    assert faults(rows) == [] and 0 not in SEEDS
    assert made["commit"] and not made["commit"].endswith("-dirty")
    runs = recorded_runs()
    assert len(runs) == 3 * sum(point["kind"] == "run" for point in grid())
    assert runs.cosine.abs().max() <= 1 + CLOSED_FORM


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [("gap", 1e-3, "certificates"), ("margin", 1.0, "three norms"), ("fitted", 0.9, "labels")],
)
def test_a_damaged_record_is_noticed(column, value, fault):
    rows = recorded()
    assert faults(rows.iloc[1:])[0] == "points"
    rows.loc[0, column] = value
    assert faults(rows) == [fault]


def test_the_forecasts_meet_the_record_and_each_others_do_not():
    rows = recorded().query("kind != 'matrix' and norm in ('frobenius', 'max')")
    means = rows.groupby(["norm", "n", "noise", "snr", "dim"]).accuracy.mean()

    def beyond(of, norm) -> list:
        return [key for key, value in means[norm].items() if not abs(of(*key) - value) < OFF]

    def flat(_n, _noise, snr, dim):
        return forecast_max(snr, dim)

    assert beyond(forecast, "frobenius") == [] == beyond(flat, "max")
    assert min(len(beyond(flat, "frobenius")), len(beyond(forecast, "max"))) > 20


def test_a_run_that_was_broken_off_goes_on_and_a_damaged_one_is_refused(tmp_path):
    parts, rows = tmp_path / "parts.jsonl", [point | {"commit": "a"} for point in grid()[:3]]
    assert kept(parts, "a") == {}
    whole = "".join(json.dumps(row) + "\n" for row in rows)
    parts.write_text(whole + '{"kind": "pro')
    assert kept(parts, "a") == {key(row): row for row in rows} and parts.read_text() == whole
    with pytest.raises(SystemExit, match="of commit a"):
        kept(parts, "b")
    for broken in ("{\n", "[1, 2]\n", '{"kind": "prompt"}\n'):
        parts.write_text(whole + broken)
        with pytest.raises(SystemExit, match="no point"):
            kept(parts, "a")
        assert parts.read_text() == whole + broken
