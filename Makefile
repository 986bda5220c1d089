# The two commands of the README, and their set-up.
PYTHON ?= python3
VENV ?= .venv
SNAKEMAKE := $(VENV)/bin/snakemake
# It installs uv, which takes a quarter of its time, and all the rest where uv fails: that does not
# know pip's settings, such as a mirror.
PIP_INSTALL := $(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: demo golden test lint smoke coverage release setup

golden: setup ## Compare what shipped campaigns render to with tests/golden.txt.
	$(VENV)/bin/python tests/golden.py

demo: setup ## Measure what being an MoE does to drafting; write paper and page.
	$(SNAKEMAKE) paper page --configfile config/demo.yaml

test: lint ## Lint, then run every test, with a real llama.cpp.
	$(VENV)/bin/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

lint: setup ## Check style, types and rules.
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile rules workflow/Snakefile
	$(VENV)/bin/mypy workflow/scripts/specmoe
	$(SNAKEMAKE) --lint

smoke: setup ## Plan the study and render a shipped campaign, to try a Python.
	$(SNAKEMAKE) -n
	scratch=$$(mktemp -d) && \
	$(SNAKEMAKE) tables --directory "$$scratch" \
	    --configfile resources/campaigns/demo/campaign.yaml && \
	rm -r "$$scratch"

coverage: setup ## Say which lines and branches of the package the tests run.
	$(VENV)/bin/coverage erase
	$(VENV)/bin/coverage run -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report --skip-covered

release: setup ## Check that a release is whole (CI_PASSED=COMMIT: without the tests); print how to tag it.
	PYTHONPATH=workflow/scripts $(VENV)/bin/python .ci/check_release.py $(if $(CI_PASSED),--ci-passed $(CI_PASSED))

setup: $(VENV)/installed

# The programs of a virtual environment name its folder: in a moved checkout it is made anew.
ifneq ($(shell cd "$(VENV)" 2>&1 && pwd | cmp - installed 2>&1),)
.PHONY: $(VENV)/installed
endif

$(VENV)/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "specmoe needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import os, sys; sys.exit(any(one in os.path.abspath("$(VENV)") for one in "\"$$`\\\n") and "programs of a virtual environment run what a path with one of \" $$ ` \\ names; rename the folder, or try: make VENV=/another/folder ...")'
	$(PYTHON) -m venv --clear $(VENV)
	sed -n '/^uv==/,/ via /p' requirements.txt >$(VENV)/uv.txt
	$(PIP_INSTALL) --only-binary :all: --requirement $(VENV)/uv.txt && \
	$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --require-hashes --requirement requirements.txt || \
	$(PIP_INSTALL) --use-pep517 --requirement requirements.txt
	cd $(VENV) && pwd >installed
