#!/usr/bin/env bash
# Fill a virtual environment: torch first, then the pinned rest, then the library itself.
#
# torch comes first because a plain install on Linux pulls gigabytes of CUDA. In this order:
#   1. a file on disk, wherever pip has been told to look;
#   2. the CPU build, through uv;
#   3. PyPI's build, with the CUDA packages that it asks for on Linux (on macOS it is a CPU build).
# Whatever comes must have one of the hashes in requirements/; a file that has none ends it. A torch of the right version that is
# already there is left alone, so a GPU build can be put in by hand.
#
# With a third argument, lowest-direct or highest, nothing is pinned: the library and what its tests
# need come in the lowest versions that pyproject.toml allows, or in the newest.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=$2
ends=${3:-}
constraints=requirements/constraints.txt
torch=$(grep -oE '^torch==[0-9.]+' requirements/torch.txt)
hashed=(--no-deps --require-hashes -r)  # each of these lists is whole

say() { printf '%s\n' "-- $*"; }
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
uv() { [ -x "$venv/bin/uv" ] && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }
has_torch() { pip list --format freeze 2>/dev/null | grep -E "^$torch(\+|\$)" >/dev/null; }

# Run an installation that may find nothing; a file of another hash ends everything.
unless_forged() {
    if "$@" 2>"$venv/why.txt"; then return; fi
    if grep -qiE "do not match the hashes|hash mismatch" "$venv/why.txt"; then
        cat "$venv/why.txt"
        say "The torch that was found is not installed: its hash is none of those in requirements/."
        say "One that you trust can be put into $venv by hand; a torch of version ${torch#*==} is left alone."
        exit 1
    fi
    return 1
}

install_torch() {
    if has_torch; then return; fi
    say "installing $torch"
    if unless_forged pip install --quiet --no-index "${hashed[@]}" requirements/torch.txt; then return; fi
    if [ "$(uname -s)" = Linux ] &&
        unless_forged uv --torch-backend=cpu "${hashed[@]}" requirements/torch.txt; then return; fi
    if unless_forged pip install --quiet "${hashed[@]}" requirements/torch-pypi.txt; then return; fi
    cat "$venv/why.txt"
    exit 1
}

install_uv() {
    awk '/^[^ ]/ { wanted = /^uv==/ } wanted' "$constraints" >"$venv/uv.txt"
    pip install --quiet -r "$venv/uv.txt" || say "uv is not to be had; pip does its work"
}

install_rest() {
    say "installing the pinned rest"
    if uv "${hashed[@]}" "$constraints"; then return; fi
    pip install --quiet "${hashed[@]}" "$constraints"
}

install_ends() {
    say "installing the $ends versions that pyproject.toml allows"
    local wanted=(--resolution "$ends" --upgrade -e ".[test]")
    if uv --torch-backend=cpu "${wanted[@]}"; then return; fi
    uv "${wanted[@]}"
}

if [ ! -x "$venv/bin/python" ]; then
    say "creating $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi
install_uv
if [ -n "$ends" ]; then
    install_ends
else
    install_torch
    install_rest
    pip install --quiet --no-deps --no-build-isolation -e .
fi
say "ready: $("$venv/bin/python" -c 'import torch; print("torch", torch.__version__)')"
