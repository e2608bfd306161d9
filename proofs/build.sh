#!/usr/bin/env bash
# Checks the proofs: compiles the files of _CoqProject in their order, one after the other, and
# prints what each theorem assumes. With --check a second program, coqchk, then goes over all that was
# compiled, and prints what it rests on. It installs nothing.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v coqc >/dev/null; then
  echo "coqc is missing: install Debian's or Ubuntu's package coq (sudo apt-get install coq)," >&2
  echo "or coq 8.16 or newer from https://rocq-prover.org/install" >&2
  exit 1
fi

for file in $(grep '\.v$' _CoqProject); do
  echo "== $file"
  coqc -Q . attnbias "$file"
done

if [ "${1:-}" = --check ]; then
  coqchk -silent -o -Q . attnbias $(sed -n 's/\.v$//p' _CoqProject | sed 's/^/attnbias./')
fi
