"""`make bench`: each figure beside its target. One thread, versions interleaved."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy and torch read them

import torch  # noqa: E402

from attnbias.errors import AttnBiasError  # noqa: E402

from . import dynamics, joint, optimizers, product, svm, sweeps  # noqa: E402
from .record import Row, read, write_group  # noqa: E402


def _against_autograd(module, targets: dict) -> Iterator[Row]:
    for size, target in targets.items():
        found = module.against_autograd(*size)
        times = {f"{key} us": found[key] for key in ("autograd", found["choice"])}
        name = f"n,T,d={size}"
        yield Row(f"{name}: autograd over ours", found["ratio"], target, True, "x", times)
        name += ": automatic choice over the best form"
        yield Row(name, found["choice/best"], 1.25, False, "x", {"choice": found["choice"]})


def fixed_rows() -> Iterator[Row]:
    """Training loop over batched autograd, four records every iteration"""
    return _against_autograd(dynamics, dynamics.TARGETS)


def joint_rows() -> Iterator[Row]:
    """Joint training over batched autograd, six records every iteration"""
    return _against_autograd(joint, joint.TARGETS)


def hostile_rows() -> Iterator[Row]:
    """Twelve sizes chosen to hurt"""
    return _against_autograd(dynamics, dict.fromkeys(dynamics.HOSTILE, 1))


def form_rows() -> Iterator[Row]:
    """Forms"""
    for N in (500, 900, 1500):
        name = f"span step over a bare product (numpy), N' = {N}"
        yield Row(name, dynamics.span_against_product(N), 1.2, False, "x")
    for size in ((5, 3, 50), (20, 10, 500), (100, 10, 1000)):
        name = f"stable over plain softmax, n,T,d={size}"
        yield Row(name, dynamics.stable_against_plain(*size), 1.15, False, "x")
    time, finite = dynamics.million_iterations()
    yield Row("10^6 NGD iterations at n = 5", time, 1, False, " s", {"all finite": finite})


def svm_rows() -> Iterator[Row]:
    """Hard-margin SVM"""
    theirs, ours, gap = svm.primal_ratio()
    times = {"cvxpy s": theirs, "ours s": ours}
    yield Row("cvxpy primal over ours, n,T,d=(20, 10, 50)", theirs / ours, 2000, True, "x", times)
    yield Row("relative duality gap, n,T,d=(20, 10, 50)", gap, 1e-12, False)
    time, gap = svm.large()
    yield Row("solve at N' = 3000", time, 1, False, " s", {"gap": gap})
    for (name, ratio), target in zip(svm.first_over_again().items(), (3, 1.5, 1.05), strict=True):
        yield Row(f"{name}, first over again, n,T,d=(5, 3, 50)", ratio, target, True, "x")
    found = svm.beside_a_busy_core()
    ratio = found["2 mean ms"] / found["1 mean ms"]
    name = "beside a busy core, two threads over one, n,T,d=(20, 10, 50)"
    yield Row(name, ratio, 2, False, "x", found)


def optimizer_rows() -> Iterator[Row]:
    """One step of an optimizer over another's"""
    for (size, make), threads in itertools.product(optimizers.SIZES.items(), (1, 2)):
        table = optimizers.ratios(make(), threads)
        for (ours, other), target in optimizers.TARGETS.items():
            if "loop" in other or size[-1] == "M":  # small tensors: against loops alone
                name = f"{ours} / {other}, {size}, {threads} thread{'s' * (threads > 1)}"
                yield Row(name, table[ours, other], target, False, "x")


GROUPS = {
    "fixed": fixed_rows,
    "joint": joint_rows,
    "hostile": hostile_rows,
    "forms": form_rows,
    "svm": svm_rows,
    "optimizers": optimizer_rows,
    "product": product.product_rows,
    "cores": sweeps.cores_rows,
    "memory": sweeps.memory_rows,
    "late": sweeps.late_rows,
    "batched": sweeps.batched_rows,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", help="of " + ", ".join(GROUPS) + "; all by default")
    parser.add_argument("--write", metavar="FILE", help="json; groups not run stay as they are")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.groups if name not in GROUPS]
    if unknown:
        parser.error(f"groups: expected some of {', '.join(GROUPS)}; got {', '.join(unknown)}")
    try:
        run(asked.groups or list(GROUPS), asked.write)
    except AttnBiasError as error:
        parser.error(str(error))


def run(names: list[str], path: str | None) -> None:
    """Measure and print these groups, and write each as soon as it is finished."""
    if path is not None and os.path.exists(path):
        read(path)  # a file that is none of ours is refused before an hour of work
    torch.set_num_threads(1)
    for name in names:
        print(GROUPS[name].__doc__, flush=True)
        rows = []
        for row in GROUPS[name]():
            print(row, flush=True)
            rows.append(row)
        if path is not None:
            write_group(path, name, rows)


if __name__ == "__main__":
    main()
