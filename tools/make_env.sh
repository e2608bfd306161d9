#!/usr/bin/env bash
# Fill a virtual environment: torch first, then the pinned rest, then the library itself.
#
# torch comes first because a plain install on Linux pulls gigabytes of CUDA. In this order:
#   1. a file on disk, wherever pip has been told to look;
#   2. the CPU build, through uv;
#   3. whatever pip finds (on macOS that is a CPU build anyway).
# A torch of the right version that is already there is left alone, so a GPU build can be put in by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=$2
constraints=requirements/constraints.txt  # with the hash of every file that may be installed
torch=$(cat requirements/torch.txt)

say() { printf '%s\n' "-- $*"; }
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
has_torch() { pip list --format freeze 2>/dev/null | grep -E "^$torch(\+|\$)" >/dev/null; }

install_torch() {
    if has_torch; then return; fi
    say "installing $torch"
    if pip install --quiet --no-index --no-deps "$torch" 2>/dev/null; then return; fi
    if [ -x "$venv/bin/uv" ] && [ "$(uname -s)" = Linux ] &&
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps \
            --torch-backend=cpu "$torch"; then return; fi
    pip install --quiet "$torch"  # what comes with it is pinned by the rest
}

install_uv() {
    awk '/^[^ ]/ { wanted = /^uv==/ } wanted' "$constraints" >"$venv/uv.txt"
    pip install --quiet -r "$venv/uv.txt" || say "uv is not to be had; pip does its work"
}

install_rest() {
    say "installing the pinned rest"
    if [ -x "$venv/bin/uv" ] &&
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -r "$constraints"; then return; fi
    pip install --quiet -r "$constraints"
}

if [ ! -x "$venv/bin/python" ]; then
    say "creating $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi
install_uv
install_torch
install_rest
pip install --quiet --no-deps --no-build-isolation -e .
say "ready: $("$venv/bin/python" -c 'import torch; print("torch", torch.__version__)')"
