#!/usr/bin/env bash
# Resolve pyproject.toml anew and write requirements/constraints.txt: every package but torch, with one
# version each for all supported Pythons and systems and the hashes of its files, without which nothing
# is installed. torch stays out, and with it the CUDA packages its Linux files ask for, because
# tools/make_env.sh installs a CPU build first.
set -euo pipefail
cd "$(dirname "$0")/.."
uv="${1:-.venv/bin/uv}"
"$uv" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --all-extras \
    --generate-hashes --no-header --no-annotate --no-emit-package torch --no-emit-package attnbias \
    pyproject.toml requirements/tools.in requirements/torch.txt |
    awk '/^[^ ]/ { wanted = !/^(nvidia|cuda|triton)/ } wanted' >requirements/constraints.txt
