"""SNGD and SPS on two gloo processes: the norm and the loss are those of the whole batch."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from attnbias.errors import NonFiniteError
from attnbias.optim import SNGD, SPS

# float64; the processes add up halves of a batch in another order.
WHOLE_BATCH = 1e-10
STEPS, BATCH = 12, 8
MAKERS = {
    "SNGD": lambda params: SNGD(params, lr=0.1, momentum=0.5, weight_decay=0.01),
    "SPS": lambda params: SPS(params, lr=1.0, smoothing=2.0, steps_per_epoch=4),
}
pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="torch without gloo"
)


def network() -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        layers = torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)
        return torch.nn.Sequential(*layers).double()


def batches():
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, 4, generator=generator, dtype=torch.float64)
        yield inputs, inputs[:, :2] * 0.5


def run(model, optimizer, part=slice(None)) -> None:
    for inputs, targets in batches():
        optimizer.zero_grad()
        loss = (model(inputs[part]) - targets[part]).square().mean()
        loss.backward()
        optimizer.step(lambda loss=loss: loss)


def weights(model) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def data_parallel(rank: int, make) -> torch.Tensor:
    model = torch.nn.parallel.DistributedDataParallel(network())
    run(model, make(model.parameters()), slice(rank * BATCH // 2, (rank + 1) * BATCH // 2))
    return weights(model)


def sharded(rank: int, make) -> torch.Tensor:
    """Gradients as DTensors, what fully_shard hands to an optimizer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh, model = init_device_mesh("cpu", (2,)), network()
    places = [[Shard(0)], [Shard(0)], [Shard(0)], [Replicate()]]
    shards = [
        torch.nn.Parameter(distribute_tensor(p.detach(), mesh, place))
        for p, place in zip(model.parameters(), places, strict=True)
    ]
    optimizer = make(shards)
    for inputs, targets in batches():
        model.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        for shard, p, place in zip(shards, model.parameters(), places, strict=True):
            shard.grad = distribute_tensor(p.grad, mesh, place)
        optimizer.step(loss=loss)
        with torch.no_grad():
            for shard, p in zip(shards, model.parameters(), strict=True):
                p.copy_(shard.full_tensor())
    return weights(model)


def not_a_number(rank: int, make) -> torch.Tensor:
    """A loss that is NaN in one process stops both."""
    w = torch.nn.Parameter(torch.ones(2))
    w.grad = torch.ones(2)
    with pytest.raises(NonFiniteError, match="loss"):
        make([w]).step(loss=float("nan") if rank else 1.0)
    return w.detach()


TASKS = {
    "SNGD": (data_parallel, MAKERS["SNGD"]),
    "SPS": (data_parallel, MAKERS["SPS"]),
    "SPS apart": (data_parallel, lambda p: SPS(p, lr=1.0, process_group=False)),
    "SNGD sharded": (sharded, MAKERS["SNGD"]),
    "SPS sharded": (sharded, MAKERS["SPS"]),
    "NaN": (not_a_number, SPS),
}


def _process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    ends = {name: task(rank, make).numpy() for name, (task, make) in TASKS.items()}
    dist.destroy_process_group()
    np.savez(f"{folder}/{rank}.npz", **ends)


@pytest.fixture(scope="module")
def ends(tmp_path_factory) -> list[dict]:
    """Where each task ends in either process; both are started once, for all tasks."""
    folder = str(tmp_path_factory.mktemp("gloo"))
    multiprocessing.spawn(_process, (folder,), nprocs=2)
    return [dict(np.load(f"{folder}/{rank}.npz")) for rank in range(2)]


@pytest.mark.parametrize("name", ["SNGD", "SPS", "SNGD sharded", "SPS sharded"])
def test_two_processes_take_the_steps_of_one(name, ends):
    model = network()
    run(model, TASKS[name][1](model.parameters()))
    for end in ends:
        np.testing.assert_allclose(end[name], weights(model), rtol=WHOLE_BATCH, atol=WHOLE_BATCH)


def test_the_exchange_is_needed_and_stops_both_at_a_bad_loss(ends):
    assert np.abs(ends[0]["SPS apart"] - ends[1]["SPS apart"]).max() > 1e-6
    for end in ends:
        assert end["NaN"].tolist() == [1.0, 1.0]
