"""What one run did to each sequence, rebuilt from its trace: softmax scores and images W_t x_1."""

import dataclasses

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM, FORMS

from attnbias import GD, NGD, Dataset, make_bad_start, make_example1, train
from attnbias.beyond.prompt.paths import query_images, sequence_scores
from attnbias.errors import DtypeError, ShapeError
from attnbias.model import attention_map


def test_sequence_scores_are_the_attention_at_the_optimal_tokens():
    data = make_example1(n=4, T=3, d=20, seed=2)
    trace = train(data, NGD(0.1), 30, record=[0, 30])
    scores = sequence_scores(data, trace)
    last = attention_map(data.X, trace.W, data.lengths)
    opt = torch.as_tensor((data.X @ data.u * data.y[:, None]).argmax(dim=1))
    assert np.allclose(scores[0], 1 / 3, rtol=CLOSED_FORM)
    assert np.allclose(scores[-1], last[torch.arange(4), opt].numpy(), rtol=FORMS)


@pytest.mark.parametrize("rule", [GD(1.0), NGD(0.1)], ids=str)
def test_images_of_the_queries_are_those_of_the_last_iterate(rule):
    for data, W0 in ((make_bad_start(4.0)), (make_example1(n=4, T=3, d=20), None)):
        trace = train(data, rule, 200, W0=W0, record=[0, 10, 200])
        images = query_images(data, trace, W0)
        first = torch.zeros(data.d, data.d).double() if W0 is None else W0
        for W, image in ((first, images[0]), (trace.W, images[-1])):
            expected = (data.X[:, 0] @ W.T).numpy()
            assert np.allclose(image, expected, rtol=0, atol=FORMS * float(trace.W_norm[-1]))


def test_dependent_rows_leave_the_images_defined():
    """Two equal sequences: a singular Gram matrix, one motion."""
    data, W0 = make_bad_start(2.0)
    twice = Dataset.concat([data, data])
    trace = train(twice, NGD(0.1), 50, W0=W0, record=[0, 50])
    expected = (twice.X[:, 0] @ trace.W.T).numpy()
    assert np.allclose(query_images(twice, trace, W0)[-1], expected, rtol=0, atol=1e-9)


def test_traces_of_other_data_or_without_gaps_are_refused():
    data, W0 = make_bad_start(2.0)
    trace = train(data, NGD(0.1), 10, W0=W0)
    other, bare = make_example1(n=4, T=3, d=20), dataclasses.replace(trace, gaps=None)
    for call in (lambda: sequence_scores(other, trace), lambda: query_images(data, bare, W0)):
        with pytest.raises(ShapeError, match="trace"):
            call()
    for call in (lambda: sequence_scores(data, None), lambda: query_images(None, trace)):
        with pytest.raises(DtypeError):
            call()
