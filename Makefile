# `make test` and `make book` are all that a fresh clone needs; each makes .venv first.
# Keep bytecode: without it each of over a hundred kernels compiles pandas, numba and matplotlib anew.
unexport PYTHONDONTWRITEBYTECODE
# Idle threads of torch sleep: spinning, two processes on two cores ran up to six times slower.
export OMP_WAIT_POLICY := passive
SHELL := bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; \
	done)
VENV ?= .venv
PORT ?= 8000
DEVICE ?= cuda
# A Python that is named has its own torch: `make gpu` takes it as it is.
GIVEN := $(if $(filter command environment,$(origin PYTHON)),$(PYTHON))

READY := $(VENV)/.ready
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest -p no:cacheprovider

.PHONY: help env check test proofs shake book pdf serve lab links lint format bench gpu fuzz mutants evaluate reproduce notebooks ledger constraints clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

$(READY): pyproject.toml $(wildcard requirements/*.txt) tools/make_env.sh Makefile
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python"; exit 1; }
	bash tools/make_env.sh "$(VENV)" "$(PYTHON)" $(RESOLUTION)
	@touch $@

env: $(READY)  ## make .venv: torch for the CPU, the pinned rest, the library (VENV=../ends RESOLUTION=lowest-direct, or highest: unpinned)

check: $(READY)  ## unit tests and doctests without the slow ones, about two minutes
	$(PYTEST) -m "not site and not slow" --doctest-modules -n 2 --dist loadscope \
		--ignore=tests/site tests attnbias book/_ext book/claims book/plots book/studies book/widgets

test: $(READY)  ## every unit test and doctest, then the notebooks against their recorded outputs under two arithmetics
	$(RUN) -m tools.run_tests

proofs:  ## check the proofs by Rocq: Debian's package coq, three minutes (ARGS=--check: by coqchk as well)
	bash proofs/build.sh $(ARGS)

shake: $(READY)  ## run chapters under twelve arithmetics and name every number that moves (CHAPTERS="tokens" for some)
	$(RUN) -m tools.shake $(CHAPTERS)

book: $(READY)  ## build the book into _build/html and walk every page of it
	$(RUN) -m tools.build_book
	$(PYTEST) -m site -n 2 --dist worksteal tests/site
	@echo "The book is in _build/html/index.html: make serve shows it, make pdf prints it."

pdf: $(READY)  ## print the book into _build/attnbias.pdf, its talk into _build/slides.pdf (a browser is fetched where there is none)
	bash tools/get_browser.sh $(VENV)
	$(RUN) -m tools.build_book
	$(RUN) -m tools.make_pdf

serve:  ## open the built book, served on this machine
	@test -f _build/html/index.html || { echo "nothing built yet: run make book"; exit 1; }
	@$(RUN) -c "import socket; socket.create_server(('127.0.0.1', $(PORT))).close()" 2>/dev/null || \
		{ echo "port $(PORT) is taken: make serve PORT=8001, say"; exit 1; }
	@echo "http://localhost:$(PORT)/  (Ctrl-C ends it)"
	@(sleep 1; $(RUN) -m webbrowser -t "http://localhost:$(PORT)/" >/dev/null 2>&1 || true) &
	@$(RUN) -m tools.serve $(PORT)

lab: $(READY)  ## the chapters in JupyterLab; saving a notebook writes its .md as well
	$(VENV)/bin/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/book \
		$(if $(filter 0,$(shell id -u)),--allow-root)  # in a container one is often root

links: $(READY)  ## try every link of the built book that leads out (needs the network)
	$(VENV)/bin/jupyter-book build . --builder linkcheck

lint: $(READY)  ## style of the Python files, which way imports go, types of the whole library, and the workflows
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/mypy
	$(RUN) -m tools.workflows

format: $(READY)  ## put the Python files in that style
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(READY)  ## the speed ratios
	$(RUN) -m benchmarks

evaluate: $(READY)  ## does this machine find what the book says? A sample, in ten minutes (ARGS=--all: coq as well)
	$(RUN) -m tools.evaluate $(ARGS)

reproduce: $(READY)  ## list the recorded results, how each is made and how long it takes (ARGS=forecast makes that one)
	$(RUN) -m tools.reproduce $(ARGS)

gpu: $(if $(GIVEN),,$(READY))  ## what a GPU alone can say, in 40 minutes and without a network (DEVICE=cpu tries it; PYTHON=python3 installs nothing)
	$(or $(GIVEN),$(RUN)) -m benchmarks.gpu --device $(DEVICE) $(ARGS)

fuzz: $(READY)  ## attack the library: junk, damaged files, kills; hours (ARGS="--kinds 10 --flips 100 --kills 5" for less)
	$(RUN) -m tests.fuzz $(ARGS)

mutants: $(READY)  ## change the core in a hundred places: which changes does no near test notice? under an hour (ARGS="--seed 2" for others)
	$(RUN) -m tools.mutants $(ARGS)

notebooks: $(READY)  ## execute the chapters and write the .ipynb beside each (CHAPTERS="tokens figure2" for some)
	$(RUN) -m tools.sync_notebooks $(CHAPTERS)

ledger: $(READY)  ## judge every claim of the paper anew and write the ledger's page
	$(RUN) -m book.claims --write book

constraints: $(READY)  ## resolve the pinned versions anew
	bash tools/update_constraints.sh $(VENV)/bin/uv

clean:  ## remove what the commands made
	rm -rf _build $(VENV) attnbias.egg-info .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
