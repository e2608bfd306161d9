#!/usr/bin/env bash
# Resolve pyproject.toml anew: one version of each package for all supported Pythons and systems, with the
# hashes of its files, without which nothing is installed. requirements/constraints.txt has every package but
# torch; requirements/torch-pypi.txt has torch as PyPI has it and the CUDA packages that its Linux files ask for.
# They are apart because tools/make_env.sh looks for a CPU build first, that of requirements/torch.txt.
# Where torch's own index is reached, its hashes are written anew too.
set -euo pipefail
cd "$(dirname "$0")/.."
uv="${1:-.venv/bin/uv}"
torch=$(grep -oE '^torch==[0-9.]+' requirements/torch.txt)
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
compile() {
    "$uv" pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate "$@"
}

compile --universal --fork-strategy fewest --all-extras --no-emit-package attnbias \
    pyproject.toml requirements/tools.in - <<<"$torch" >"$folder/all"
apart='^(torch|nvidia|cuda|triton)'
awk "/^[^ ]/ { wanted = !/$apart/ } wanted" "$folder/all" >requirements/constraints.txt
awk "/^[^ ]/ { wanted = /$apart/ } wanted" "$folder/all" >requirements/torch-pypi.txt
compile - <<<"cyclonedx-bom" >requirements/release/bom.txt

if compile --torch-backend=cpu --no-deps - <<<"$torch+cpu" >"$folder/torch"; then
    { grep '^#' requirements/torch.txt && cat "$folder/torch"; } >"$folder/torch.txt"
    mv "$folder/torch.txt" requirements/torch.txt
else
    echo "-- torch's own index is not reached: requirements/torch.txt stays as it is"
fi
