# Each target does its own set-up in .venv; you need Python 3.11 to 3.14 and make.
PYTHON ?= python3
SCALE  ?= quick
BIN := .venv/bin
SKIPPED := $(CURDIR)/build/skipped
SHELL := bash

.PHONY: help install reproduce test check soak docs journal archive release readme refresh lab lock hooks clean
help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: .venv/run ## crate_nb and the command crate-nb, in .venv, by uv or else pip (LOCKED=1: only files whose hashes are in requirements.lock)

reproduce: .venv/run ## the paper's figures, tables and verdicts, from nothing (SCALE=quick); the report is figures/quick/report.html
	$(BIN)/crate-nb reproduce --scale $(SCALE)

# Checks that need what is not here, such as a browser, add a line to this file: the end of the output.
NOTE_SKIPPED = mkdir -p build; : > $(SKIPPED); export CRATE_NB_SKIPPED=$(SKIPPED) PATH="$(CURDIR)/$(BIN):$$PATH"
TELL_SKIPPED = status=$$?; sort -u $(SKIPPED); exit $$status
# Ctrl-C ends a test and all that it has started; otherwise it would only interrupt the current cells.
UNTIL_CTRL_C = alone() { set -m; "$$@" & set +m; trap "kill -TERM -- -$$!" INT; wait $$!; }; alone

test: .venv/dev ## the notebooks as tests, the slowest named at the end (FAST=1: those that changed, and what imports them in the library)
ifdef FAST
	@$(NOTE_SKIPPED); $(BIN)/python .ci/test.py --changed; $(TELL_SKIPPED)
else
	@$(NOTE_SKIPPED) OMP_NUM_THREADS=1; $(UNTIL_CTRL_C) $(BIN)/nbdev_test --timing; $(TELL_SKIPPED) # a notebook a core
endif

check: .venv/dev ## the notebooks that make test leaves out: results from nothing at a tiny scale, a wheel, killed processes, a sweep on SLURM
	@$(NOTE_SKIPPED); $(UNTIL_CTRL_C) $(BIN)/python .ci/test.py --slow; $(TELL_SKIPPED)

soak: .venv/dev ## faults by the thousand, about an hour; counts go to data/soak
	CRATE_NB_SOAK=full $(BIN)/python .ci/test.py tests/soak tests/damaged_files

docs: .venv/docs ## the book, from the notebooks as they are, nothing executed; open _docs/index.html
	rm -rf _docs build/doctrees
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -j 2 -W --keep-going -q -c docs -d build/doctrees nbs _docs
	rm -rf jupyter_execute
	$(BIN)/python docs/check.py _docs

journal: .venv/journal ## the papers for JOSS and TMLR as PDFs with the recorded numbers, in build/journal
	$(BIN)/python .ci/journal.py

archive: .venv/archive ## the last commit as an RO-Crate for Zenodo, in build/archive; its check fetches a context from w3id.org once
	$(BIN)/python .ci/archive.py
	$(BIN)/rocrate-validator -y validate --no-paging --cache-path build/context -p provenance-run-crate build/archive/*/

release: .venv/release ## sdist, wheel and release note in dist/, checked, and tried in a new environment of each Python here
	.ci/release

readme: .venv/dev ## README.md from nbs/index.ipynb
	$(BIN)/python .ci/readme.py > README.md

refresh: .venv/dev ## export the modules and save fresh outputs in all notebooks of the library and the guides
	$(BIN)/nbdev_export
	$(BIN)/python .ci/refresh.py; status=$$?; $(BIN)/nbdev_clean; exit $$status
	$(MAKE) readme

ROOT = $(if $(filter 0,$(shell id -u)),--allow-root) # in a container, the only user is often root
lab: .venv/dev hooks ## JupyterLab with the project's kernel; saved notebooks are clean, as git wants them
	PATH="$(CURDIR)/$(BIN):$$PATH" jupyter lab $(ROOT) --LabApp.default_url=/lab/tree/nbs --ContentsManager.pre_save_hook=nbdev.clean.clean_jupyter

lock: ## requirements.lock, the versions of make install with their hashes, by uv
	uv pip compile pyproject.toml --extra paper -c constraints.txt -o requirements.lock --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command "make lock"

hooks: .venv/dev ## git cleans notebooks as they are committed, and merges them cell by cell
	git config --local include.path ../.gitconfig

clean: ## remove what can be made again: the environment, downloads, quick results
	rm -rf .venv _docs build jupyter_execute dist *.egg-info data/downloads data/cache data/runs/quick data/runs/smoke data/weights/quick data/weights/smoke figures/quick figures/smoke

# Bytecode is made where a module is first imported, at the end of the installation, even where the
# environment forbids it: pip makes that of everything, which takes as long as all the rest.
unexport PYTHONDONTWRITEBYTECODE
# pip is silent, or prints hundreds of lines. Of these, one for each large package is shown.
# compat: else a Python beside the clone takes the folder crate_nb for an empty package.
# uv, where it is, installs the same versions; LOCKED=1 takes no file whose hash is not in the lock.
UV := $(shell command -v uv)
INSTALL = $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install --no-compile --disable-pip-version-check)
PIP = $(INSTALL) -c constraints.txt --config-settings editable_mode=compat -e
SHOW = | sed -nE -e 's/^ *(Downloading|Using cached) ([^ ]*\/)?([^-/]*)-.* (\([0-9.]+ [MG]B\)).*/  \3 \4/p' \
  -e 's/^Installing collected packages.*/  installing; this takes the longest/p'

.venv/run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else f"Python 3.11 to 3.14 is needed, this is {v[0]}.{v[1]}; name another with: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { rm -rf .venv; echo 'no virtual environment could be made; on Debian: apt-get install python3-venv' >&2; exit 1; }
	@echo 'installing crate_nb and what it needs, PyTorch above all: one to five minutes'
	@set -o pipefail; $(if $(LOCKED),$(INSTALL) --require-hashes -r requirements.lock $(SHOW) &&) $(PIP) '.[paper]' $(SHOW)
	@$(BIN)/python -c 'import crate_nb.cli, crate_nb.study.reproduce'
	@touch $@

.venv/%: .venv/run
	@echo 'installing what make $* needs: half a minute'
	@set -o pipefail; $(PIP) '.[$*]' $(SHOW)
	touch $@
