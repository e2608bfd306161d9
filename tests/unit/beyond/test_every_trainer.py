"""The trainers of all rooms take the same, give a Trace, and run a rule of one's own."""

import numpy as np
import pytest
import torch
from instances import random_data
from own_rules import Remembering, Sign

from attnbias import NGD, Dataset, Trace
from attnbias.beyond.depth.dynamics import train_two_layers
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.momentum.dynamics import train_accelerated
from attnbias.beyond.multi_token.data import QuadraticHead
from attnbias.beyond.multi_token.dynamics import train_nonlinear
from attnbias.beyond.next_token.data import NextTokenData
from attnbias.beyond.next_token.dynamics import train_next_token
from attnbias.beyond.norms.dynamics import train_adam, train_steepest
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.errors import RangeError

DATA = random_data(3, 4, 6, seed=0)
HEAD = QuadraticHead([1.0, 0.5, 0.0], 0.5)
ROW = Dataset(torch.eye(3)[None].double(), [1])
WORDS = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
TWO = torch.stack([DATA.u, DATA.u.flip(0)])
PLAIN = NGD(0.1)
TRAINERS = {
    "heads": lambda rule=PLAIN, steps=20, **o: train_heads(DATA, TWO, rule, steps, **o),
    "layers": lambda rule=PLAIN, steps=20, **o: train_two_layers(DATA, rule, steps, **o),
    "next token": lambda rule=PLAIN, steps=20, **o: train_next_token(WORDS, rule, steps, **o),
    "nonlinear": lambda rule=PLAIN, steps=20, **o: train_nonlinear(ROW, HEAD, rule, steps, **o),
    "steepest": lambda **o: train_steepest(DATA, "max", 0.1, 20, **o),
    "adam": lambda **o: train_adam(DATA, 0.1, 20, **o),
    "factors": lambda **o: train_factors(DATA, *make_factors(6, 2), 0.1, 20, **o),
    "accelerated": lambda **o: train_accelerated(DATA, 0.1, 20, **o),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_all_take_the_same_and_give_a_trace(name, tmp_path, capsys):
    run, path = TRAINERS[name], tmp_path / "state.npz"
    trace = run(record=[0, 5, 20], progress=True)
    assert "20" in capsys.readouterr().err
    assert isinstance(trace, Trace) and trace.step.tolist() == [0, 5, 20]
    assert run(record=1).step.tolist() == [0, 1, 20]
    again = Trace.load(trace.save(tmp_path / "run.npz"))
    assert again.series.keys() == trace.series.keys() and again.status == "completed"
    for key, values in trace.series.items():
        np.testing.assert_array_equal(again.series[key], values)
    assert again.W.tolist() == trace.W.tolist()
    assert len(trace.to_dataframe()) == 3 and "20, completed" in repr(trace)
    for kept in (run(record=[0, 5, 20], checkpoint=path), run(record=[0, 5, 20], checkpoint=path)):
        assert kept.W.tolist() == trace.W.tolist()
    assert (trace.W_norm[-1] > 0).all()
    np.testing.assert_allclose(trace.grad_norm, np.exp(trace.log_grad_norm))
    with pytest.raises(AttributeError, match="no series 'nothing'"):
        trace.nothing  # noqa: B018
    for bad in ({"record": 0}, {"record": [21]}):
        with pytest.raises(RangeError):
            run(**bad)


@pytest.mark.parametrize("name", ["heads", "layers", "next token", "nonlinear"])
@pytest.mark.parametrize("rule", [Sign(), Remembering()], ids=repr)
def test_every_room_runs_a_rule_of_ones_own(name, rule):
    trace = TRAINERS[name](rule, 3)
    assert trace.status == "completed" and bool(torch.isfinite(trace.W).all())
    assert np.linalg.norm(trace.W_norm[-1]) > 0
