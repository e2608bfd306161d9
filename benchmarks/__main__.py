"""`make bench`: each figure beside its target. One thread, versions interleaved."""

from __future__ import annotations

import argparse
import itertools
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy and torch read them

import torch  # noqa: E402

from . import dynamics, joint, optimizers, svm  # noqa: E402


def _line(name: str, value: float, target: float, at_least: bool, unit: str = "") -> None:
    met = value >= target if at_least else value <= target
    sign = ">=" if at_least else "<="
    verdict = "met" if met else "NOT MET"
    print(f"{name:58s} {value:10.4g}{unit}  target {sign} {target:g}{unit}  {verdict}", flush=True)


def _against_autograd(title: str, module, targets: dict) -> None:
    print(title)
    for size, target in targets.items():
        row = module.against_autograd(*size)
        detail = f"n,T,d={size}: {row['autograd']:.0f} / {row[row['choice']]:.3g} {row['choice']}"
        _line(detail, row["ratio"], target, True, "x")
        _line("    automatic choice over the best form", row["choice/best"], 1.25, False, "x")


def fixed_rows() -> None:
    title = "Training loop over batched autograd, four records every iteration (us an iteration)"
    _against_autograd(title, dynamics, dynamics.TARGETS)


def joint_rows() -> None:
    title = "Joint training over batched autograd, six records every iteration"
    _against_autograd(title, joint, joint.TARGETS)


def hostile_rows() -> None:
    _against_autograd("Twelve sizes chosen to hurt", dynamics, dict.fromkeys(dynamics.HOSTILE, 1))


def form_rows() -> None:
    print("Forms")
    for N in (500, 900, 1500):
        name = f"span step over a bare product (numpy), N' = {N}"
        _line(name, dynamics.span_against_product(N), 1.2, False, "x")
    for size in ((5, 3, 50), (20, 10, 500), (100, 10, 1000)):
        name = f"stable over plain softmax, n,T,d={size}"
        _line(name, dynamics.stable_against_plain(*size), 1.15, False, "x")
    time, finite = dynamics.million_iterations()
    _line(f"10^6 NGD iterations at n = 5, all finite: {finite}", time, 1, False, " s")


def svm_rows() -> None:
    print("Hard-margin SVM")
    theirs, ours, gap = svm.primal_ratio()
    _line(
        f"cvxpy primal {theirs:.2f} s / {1e3 * ours:.2f} ms at (20,10,50)",
        theirs / ours,
        2000,
        True,
        "x",
    )
    _line("    relative duality gap", gap, 1e-12, False)
    time, gap = svm.large()
    _line(f"N' = 3000, gap {gap:.1e}", time, 1, False, " s")


def optimizer_rows() -> None:
    print("One step of an optimizer over another's")
    for (size, make), threads in itertools.product(optimizers.SIZES.items(), (1, 2)):
        table = optimizers.ratios(make(), threads)
        for (ours, other), target in optimizers.TARGETS.items():
            if "loop" in other or size[-1] == "M":  # small tensors: against loops alone
                name = f"{ours} / {other}, {size}, {threads} thread{'s' * (threads > 1)}"
                _line(name, table[ours, other], target, False, "x")


ROWS = {
    "fixed": fixed_rows,
    "joint": joint_rows,
    "hostile": hostile_rows,
    "forms": form_rows,
    "svm": svm_rows,
    "optimizers": optimizer_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="*", help="of " + ", ".join(ROWS) + "; all by default")
    chosen = parser.parse_args().rows
    unknown = [name for name in chosen if name not in ROWS]
    if unknown:
        parser.error(f"rows: expected some of {', '.join(ROWS)}; got {', '.join(unknown)}")
    torch.set_num_threads(1)
    for name in chosen or ROWS:
        ROWS[name]()


if __name__ == "__main__":
    main()
