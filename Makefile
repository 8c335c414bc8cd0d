# What people and CI run. `make` alone lists the targets. GNU make 3.81 (macOS) is enough.
# Variables: VENV (folder of the virtual environment), PYTHON (which Python makes it), UV (for `make lock`),
#   KEEP=1 (demo: leave everything running), STAGES="unit kube" (test: only these), STRICT=1 (test: nothing left out),
#   ARGS (handed to pytest or the benchmarks), UPGRADE=1 (lock: newest versions).

VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
STAGES ?=
NEEDS_NODE := $(if $(STAGES),$(filter chart e2e,$(STAGES)),all)
NEEDS_KUBERNETES := $(if $(STAGES),$(filter kube chart faults e2e,$(STAGES)),all)
ARGS ?=
export KEEP UV

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench bench-fanout bench-expressions bench-kube bench-peers e2e venv kubernetes node set-up lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | \
		awk -F '\t' '{ printf "  make %-18s %s\n", $$1, $$2 }'

demo: set-up ## apply a workflow on a real Kubernetes and watch it run (KEEP=1 leaves it running)
	@$(PY) -m e2e.demo

test: $(if $(NEEDS_KUBERNETES),set-up,venv) ## run all tests, in stages (STAGES="unit kube" runs only these)
	@$(if $(NEEDS_KUBERNETES),$(PY) -m e2e.cluster prepare-faults)
	@$(if $(NEEDS_NODE),$(PY) -m e2e.cluster prepare-node)
	@$(PY) scripts/run_tests.py $(if $(STRICT),--strict) $(STAGES) $(ARGS)

check: venv ## format, lint, types, layers, and the tests of the repository itself
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/repo

format: venv ## let ruff format the code and sort the imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv ## measure throughput, latency and write volume; one JSON line a figure
	@python=$$(scripts/find-python.sh) && "$$python" scripts/make_venv.py $(VENV) requirements/bench.txt
	@$(PY) -m bench $(ARGS)

bench-fanout: venv ## measure what an item of a loop, a node of a chain, a child and an undo take as runs grow
	@$(PY) -m bench fanout $(ARGS)

bench-expressions: venv ## measure the most hostile expressions, and what a decision can hold up
	@$(PY) -m bench expressions $(ARGS)

bench-kube: set-up ## measure the Kubernetes path: runs a second, start among 10,000 objects, signals
	@$(PY) -m bench kube_path kube_rate kube_scale $(ARGS)

bench-peers: venv ## measure other engines and queues on PostgreSQL beside ours (ARGS="--only pgqueuer,absurd")
	@$(PY) -m bench peers $(ARGS)

e2e: set-up ## run the end-to-end tests alone
	@$(PY) -m e2e.cluster prepare-node
	@$(PY) scripts/run_tests.py $(if $(STRICT),--strict) e2e $(ARGS)

venv: ## make the virtual environment with the pinned dependencies
	@python=$$(scripts/find-python.sh) && "$$python" scripts/make_venv.py $(VENV) requirements/dev.txt

kubernetes: ## build the Kubernetes control plane, unless it is built or a cluster can be had otherwise
	@python=$$(scripts/find-python.sh) && "$$python" -m e2e.cluster prepare

node: venv ## build what a node that runs pods needs, Helm included, unless it is built or kind can be had
	@$(PY) -m e2e.cluster prepare-node

set-up: ## what demo, test and e2e need: both of the above at the same time, since one waits for the network
	@$(MAKE) --no-print-directory -j2 venv kubernetes

lock: ## pin the dependencies of pyproject.toml anew (needs uv)
	@scripts/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## remove the virtual environment and what tests and tools left behind
	rm -rf $(VENV) .state .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
