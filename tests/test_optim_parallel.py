"""SNGD and SPS on two gloo processes: the norm and the loss are those of the whole batch."""

import sys
import traceback

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from attnbias.errors import NonFiniteError
from attnbias.nets.optim import SNGD, SPS

# float64; the processes add up halves of a batch in another order.
WHOLE_BATCH = 1e-10
STEPS, BATCH = 12, 8
MAKERS = {
    "SNGD": lambda params: SNGD(params, lr=0.1, momentum=0.5, weight_decay=0.01),
    "SPS": lambda params: SPS(params, max_step=1.0, smoothing=2.0, steps_per_epoch=4),
}
needs_gloo = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="torch without gloo"
)


def network() -> torch.nn.Module:
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    model = model.double()
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(torch.randn(param.shape, generator=generator, dtype=torch.float64))
    return model


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
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def data_parallel(rank: int, name: str) -> dict:
    part = slice(rank * BATCH // 2, (rank + 1) * BATCH // 2)
    model = network()
    optimizer = MAKERS[name](model.parameters())
    run(torch.nn.parallel.DistributedDataParallel(model), optimizer, part)
    alone = network()
    local = SPS(alone.parameters(), max_step=1.0, process_group=False)
    run(torch.nn.parallel.DistributedDataParallel(alone), local, part)
    return {"weights": weights(model), "local": weights(alone)}


def sharded(rank: int, name: str) -> dict:
    """Gradients as DTensors, what fully_shard hands to an optimizer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh, reference = init_device_mesh("cpu", (2,)), network()
    places = [[Shard(0)], [Shard(0)], [Shard(0)], [Replicate()]]
    shards = [
        torch.nn.Parameter(distribute_tensor(p.detach(), mesh, place))
        for p, place in zip(reference.parameters(), places, strict=True)
    ]
    optimizer = MAKERS[name](shards)
    for inputs, targets in batches():
        full = [shard.full_tensor().detach().requires_grad_() for shard in shards]
        names = [name for name, _ in reference.named_parameters()]
        outputs = torch.func.functional_call(reference, dict(zip(names, full, strict=True)), inputs)
        loss = (outputs - targets).square().mean()
        loss.backward()
        for shard, tensor, place in zip(shards, full, places, strict=True):
            shard.grad = distribute_tensor(tensor.grad, mesh, place)
        optimizer.step(loss=loss)
    whole = torch.cat([shard.full_tensor().detach().flatten() for shard in shards])
    return {"weights": whole, "norm": optimizer.last_grad_norm, "local": torch.zeros(1)}


def not_a_number(rank: int, name: str) -> dict:
    """A loss that is NaN in one process stops both."""
    w = torch.nn.Parameter(torch.ones(2))
    w.grad = torch.ones(2)
    try:
        SPS([w]).step(loss=float("nan") if rank else 1.0)
    except NonFiniteError:
        return {"weights": w.detach(), "local": torch.ones(1)}
    return {"weights": w.detach(), "local": torch.zeros(1)}


def _process(rank: int, task, name: str, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    try:
        torch.save(task(rank, name), f"{folder}/{rank}.pt")
    except Exception:
        traceback.print_exc(file=sys.stderr)
        raise
    finally:
        dist.destroy_process_group()


def both(task, name: str, folder) -> list[dict]:
    multiprocessing.spawn(_process, (task, name, str(folder)), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def alone(name: str) -> torch.Tensor:
    model = network()
    run(model, MAKERS[name](model.parameters()))
    return weights(model)


@needs_gloo
@pytest.mark.parametrize("name", MAKERS)
def test_two_processes_are_one(name, tmp_path):
    first, second = both(data_parallel, name, tmp_path)
    torch.testing.assert_close(first["weights"], alone(name), rtol=WHOLE_BATCH, atol=WHOLE_BATCH)
    assert torch.equal(first["weights"], second["weights"])
    # without the exchange each process takes steps of its own, and the weights drift apart
    assert not torch.allclose(first["local"], second["local"], rtol=1e-6, atol=1e-6)


@needs_gloo
@pytest.mark.parametrize("name", MAKERS)
def test_sharded_gradients_have_the_norm_of_all_shards(name, tmp_path):
    first, second = both(sharded, name, tmp_path)
    torch.testing.assert_close(first["weights"], alone(name), rtol=WHOLE_BATCH, atol=WHOLE_BATCH)
    assert torch.equal(first["norm"], second["norm"])


@needs_gloo
def test_a_bad_loss_in_one_process_stops_both(tmp_path):
    for result in both(not_a_number, "SPS", tmp_path):
        assert result["local"].item() == 1
        assert result["weights"].tolist() == [1.0, 1.0]
