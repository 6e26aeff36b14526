# One name for each thing a developer does here; continuous integration calls the same names.
# PYTHON is only used to make .venv; everything afterwards runs in it.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
STUBS := $(patsubst %.proto,%,$(wildcard protos/*.proto))
PROTOC = $(BIN)/python -m grpc_tools.protoc -I . --python_out=$(1) --pyi_out=$(1) --grpc_python_out=$(1) $(wildcard protos/*.proto)

.PHONY: help setup demo test test-real-hosts test-frameworks test-specs test-clients test-gpus mutants lint format protos bench docs sim package lock clean

help:
	@echo "make setup    a virtual environment in .venv with exact versions"
	@echo "make demo     three hosts on this machine, three jobs, everything checked and taken down"
	@echo "make test     all tests this machine can run (TESTS=path to choose)"
	@echo "make test-real-hosts  docs/howto/real-hosts.md, word by word, and every command, on booted hosts (root; minutes)"
	@echo "make test-specs  every job file of other systems in ../shared/specs, with stand-ins for its programs (root; minutes)"
	@echo "make test-frameworks  TensorFlow, MindSpore, Ray, Horovod, JAX ... themselves in jobs (FRAMEWORKS=names to choose; root)"
	@echo "make test-clients  programs made for LSF, unmodified, from ../shared/clients, as an ordinary user (root; minutes)"
	@echo "make test-gpus  the use of GPUs by jobs on this machine's own cards (root, an NVIDIA driver)"
	@echo "make mutants  plants known bugs in a copy and shows that the tests see each"
	@echo "make acceptance  those with real daemons, kills and cut-off hosts, in full size (about two hours)"
	@echo "make lint     format, lint, types, import contracts, generated code"
	@echo "make format   rewrite the sources in the one format"
	@echo "make protos   generate the wire's stubs"
	@echo "make bench    the figures, kept as JSON"
	@echo "make docs     the documentation as a site in build/site"
	@echo "make sim      replay a trace in virtual time"
	@echo "make package  a wheel in dist, with manual pages and the completion of shells"
	@echo "make lock     write requirements.lock anew from the newest versions"
	@echo "make clean    remove what the other targets made"

setup: $(READY)

$(READY): requirements.lock setup.cfg pyproject.toml packaging/setup.sh packaging/stub.sh lavactl/served/stub.c
	@packaging/setup.sh $(PYTHON)

demo: $(READY)
	@$(BIN)/python -m examples.demo

# Each worker reads all test modules, which pytest rewrites for its assertions: 27 s of a processor each, where 6 do once
# the bytecode has been kept. Two processes write it beforehand, each for a half of the tests.
HALF := tests/core tests/lavactl tests/store tests/api tests/properties tests/config
COLLECT := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -q
PREPARE = $(COLLECT) $(HALF) >/dev/null & $(COLLECT) $(HALF:%=--ignore=%) >/dev/null; wait

# Most of a run is waiting for real processes, so that four at a time keep two processors busy. Files in their order:
# by number of tests, the default, those with one test of minutes come last, and run on alone.
# Meanwhile PyTorch is installed, for the tests of that name, which come late.
WORKERS ?= 4
test: $(READY)
	@packaging/test-prerequisites.sh
	@$(if $(TESTS),:,$(PREPARE))
	@mkdir -p .cache; $(if $(TESTS),:,$(BIN)/python -m tests.frameworks.environments torch >.cache/torch.log 2>&1) & \
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS); \
	code=$$?; kill $$! 2>/dev/null; exit $$code

test-real-hosts: $(READY)
	@packaging/real-hosts-prerequisites.sh
	@LAVA_REAL_HOSTS=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n 2 --dist loadfile tests/real_hosts

# Each in a virtual environment of its own under .cache, made at the first run: about 8 GB for all, and half an hour to
# build Horovod. What cannot be had is named at the end.
FRAMEWORKS ?= torch tensorflow mindspore ray horovod jax lightning deepspeed
test-specs: $(READY)
	@packaging/test-prerequisites.sh
	@LAVA_SPEC_FILES= $(BIN)/python -m pytest -s tests/specs

test-frameworks: $(READY)
	@LAVA_FRAMEWORKS="$(FRAMEWORKS)" $(BIN)/python -m pytest -s -o faulthandler_timeout=3600 tests/frameworks

test-clients: $(READY)
	@packaging/test-prerequisites.sh
	@LAVA_CLIENTS=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 tests/clients

test-gpus: $(READY)
	@LAVA_REAL_GPUS=1 $(BIN)/python -m pytest -rs tests/real_gpus

mutants: $(READY)
	@$(BIN)/python -m tests.mutants.run $(ARGS)

# The sizes that `make test` has no time for. A test that takes minutes is not a hanging one.
acceptance: $(READY)
	@packaging/test-prerequisites.sh
	@LAVA_GANG_ROUNDS=50 LAVA_KILL_JOBS=500 LAVA_KILLS=20 LAVA_CRASH_HITS=5 LAVA_RUN_LIMIT_S=60 \
	LAVA_ROLLING_RESTARTS=10 LAVA_NETWORK_SECONDS=5,20,60,300 LAVA_NETWORK_ROUNDS=5 \
	LAVA_NETWORK_LAUNCHERS=openmpi4,mpich4,openmpi5,mpich5,blaunch LAVA_MOVED_JOBS=100000 LAVA_MOVED_RUNNING=50 \
	LAVA_ACCOUNTED_JOBS=1000 LAVA_FAULT_JOBS=500 LAVA_FAULT_PAUSE_S=20 LAVA_FAULTS=all FAULT_SEEDS=1000 LAVA_EXAMPLES=10 \
	    $(BIN)/python -m pytest -o faulthandler_timeout=3000 --durations=0 --durations-min=1 \
	    tests/acceptance tests/found tests/mpi tests/properties tests/simulation

lint: $(READY)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@mkdir -p .cache && $(BIN)/lint-imports --no-cache >.cache/imports 2>&1 || { cat .cache/imports; exit 1; }
	@rm -rf .cache/protos && mkdir -p .cache/protos && $(call PROTOC,.cache/protos)
	@for stub in $(STUBS); do for end in _pb2.py _pb2.pyi _pb2_grpc.py; do \
	    cmp -s $$stub$$end .cache/protos/$$stub$$end || { echo "$$stub$$end is not what its .proto generates: run make protos"; exit 1; }; \
	done; done
	@PYTHONPATH=. $(BIN)/python packaging/wire_fields.py --check
	@echo "lint: nothing to complain about"

format: $(READY)
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

protos: $(READY)
	@$(call PROTOC,.)
	@PYTHONPATH=. $(BIN)/python packaging/wire_fields.py

bench: $(READY)
	@$(BIN)/python -m benchmarks

docs: $(READY)
	@$(BIN)/python packaging/lifecycle_page.py
	@$(BIN)/python packaging/configuration_page.py
	@PYTHONPATH=. $(BIN)/python packaging/job_file_page.py
	@PYTHONPATH=. $(BIN)/python packaging/slurm_page.py
	@PYTHONPATH=. $(BIN)/python packaging/kinds_pages.py
	@PYTHONPATH=. $(BIN)/python packaging/commands_page.py
	@packaging/docs.sh

sim: $(READY)
	@$(BIN)/python -m lavad.simulator $(ARGS)

package: $(READY)
	@packaging/stub.sh
	@rm -rf build/share; $(BIN)/python -m lavactl.manuals build/share
	@rm -rf dist && $(BIN)/python -m pip wheel -qq --no-deps --no-build-isolation --wheel-dir dist . && ls dist

lock:
	@packaging/lock.sh $(PYTHON)

clean:
	rm -rf .venv .cache build dist .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
