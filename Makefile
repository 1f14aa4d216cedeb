# Everything a fresh machine needs is Python 3.11 to 3.13 and this file. PYTHON chooses the interpreter.
PYTHON ?= $(shell for v in python3.13 python3.12 python3.11 python3; do \
	command -v $$v >/dev/null 2>&1 && $$v -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && { echo $$v; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out/demo
# Processes that share the tests, file by file; more than one for each processor makes brokers and browsers late.
JOBS ?= 2
# Tests start hundreds of processes: what one compiled, the next one need not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo live up down test test-live test-observe soak check bench lock clean examples
.DEFAULT_GOAL := demo

$(VENV)/.installed: requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "stream_validator needs Python 3.11, 3.12 or 3.13 (set PYTHON=...)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

# Replays the bundled archive against the bundled register; ends by printing where the report is.
demo: $(VENV)/.installed
	rm -rf $(OUT)
	@$(BIN)/stream-validator replay examples/data/archive.zip --registry examples/data/registry.ndjson --out $(OUT); \
	code=$$?; test $$code -eq 0 -o $$code -eq 3 || exit $$code

# The live pipeline without Docker: a real broker (Java 17 and Maven), a worker, the example archive, alerts arriving.
live: $(VENV)/.installed
	@$(BIN)/python -m examples.live $(if $(KEEP),--keep) $(if $(EVERY),--every)

# The live pipeline in containers.
up:
	docker compose up -d --build

down:
	docker compose down

# Every test. Real components where they are: Apache Kafka (Java 17 and Maven; the jars are fetched once), Prometheus,
# Chromium; the last lines say which took part, and what is missing is skipped by name. A test that ends its process
# ends the run. One process: make test JOBS=0.
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 15

# The live pipeline alone.
test-live: $(VENV)/.installed
	$(BIN)/python -m pytest tests/stream tests/kafka

# Metrics, dashboards and alert rules alone.
test-observe: $(VENV)/.installed
	$(BIN)/python -m pytest tests/observe

# Half an hour: 5 000 documents through everything that happens to workers and brokers, and 200 000 documents.
soak: $(VENV)/.installed
	$(BIN)/python -m pytest -m soak -s

# What CI asks besides the tests: format, lint, types, one-way imports, the law's lock.
check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/stream-validator rules lock --check

# The core and the replay, then the live pipeline (Java 17, Maven).
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.stream

# Pins every package with its hashes, for all supported Pythons: what runs, and what also tests and builds.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --no-header --all-extras pyproject.toml
lock: $(VENV)/.installed
	$(COMPILE) -o requirements.txt
	$(COMPILE) --group dev -c requirements.txt -o requirements-dev.txt

examples: $(VENV)/.installed
	$(BIN)/python -m examples.generate --documents 1130 --seed 7 --out examples/data

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
