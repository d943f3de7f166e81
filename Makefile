# The two commands: `make up` runs everything, `make test` tests everything. GNU make 3.81 or newer.
# ARGS goes to the tool: make test ARGS="-k decide"

PYTHON_ENV = .venv/bin
RUNTIME = @sh deploy/make-venv.sh requirements.txt
DEVELOPMENT = @sh deploy/make-venv.sh requirements-dev.txt

.PHONY: up reset test ci lint types contracts migrations-check format vendor screenshots bench big fuzz load explore simulate

up:
	$(RUNTIME)
	@exec $(PYTHON_ENV)/python manage.py up

reset:
	$(RUNTIME)
	@$(PYTHON_ENV)/python manage.py drop_data

test:
	$(DEVELOPMENT)
	@sh deploy/ensure-chromium.sh
	@sh deploy/ensure-rabbitmq.sh
	@$(PYTHON_ENV)/python -m pytest -n 2 $(ARGS)

ci: lint types contracts migrations-check test

lint:
	$(DEVELOPMENT)
	$(PYTHON_ENV)/ruff check
	$(PYTHON_ENV)/ruff format --check

format:
	$(DEVELOPMENT)
	$(PYTHON_ENV)/ruff check --fix
	$(PYTHON_ENV)/ruff format

types:
	$(DEVELOPMENT)
	$(PYTHON_ENV)/mypy

contracts:
	$(DEVELOPMENT)
	$(PYTHON_ENV)/lint-imports

# No database is needed: Django only warns that it cannot compare with one.
migrations-check:
	$(DEVELOPMENT)
	$(PYTHON_ENV)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

# Copies htmx and axe-core out of their npm packages; needed only to change their versions.
vendor:
	sh deploy/vendor.sh

# Steps a second beside what PostgreSQL alone can do here; docs/benchmark.md explains the figures.
bench:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m bench

# Submissions over HTTP while clients hang up and a web process is killed; counts that none is lost or doubled.
load:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m bench.load
# Many requests, right ones and wrong ones, for every operation of the API; other ones in each run.
fuzz:
	$(DEVELOPMENT)
	@CHECKPOINT_API_EXAMPLES=$${CHECKPOINT_API_EXAMPLES:-50} $(PYTHON_ENV)/python -m pytest -n 0 --timeout 3600 tests/test_api_fuzzed.py

# The server time of every console page over a million workflows: make big, or BIG_WORKFLOWS=100000 make big.
big:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m bench.big

# Kills a worker at every durable boundary and every pair of them; docs/proof.md says what that covers.
explore:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m tests.proof.explore $(ARGS)

# Histories of many workers under faults, each from one seed: make simulate SEEDS=2000
simulate:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m tests.proof.simulate --seeds $(or $(SEEDS),2000)

# The pictures in docs/.
screenshots:
	$(DEVELOPMENT)
	@$(PYTHON_ENV)/python -m pytest -q tests/browser/screenshots.py
