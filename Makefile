# Each target does its own set-up in .venv; you need Python 3.11 to 3.13 and make.
PYTHON ?= python3
SCALE  ?= quick
BIN := .venv/bin

.PHONY: help install reproduce test soak docs readme refresh lab hooks clean
help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: .venv/run ## crate_nb and the command crate-nb, in .venv

reproduce: .venv/run ## every figure, table and verdict, from nothing (SCALE=quick); the report is figures/quick/report.html
	$(BIN)/crate-nb reproduce --scale $(SCALE)

test: .venv/dev ## all notebooks as tests, and the checks of the house (plain nbdev_test)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/nbdev_test --timing

soak: .venv/dev ## faults by the thousand, about an hour; counts go to data/soak
	CRATE_NB_SOAK=full $(BIN)/python .ci/test.py checks/soak checks/damaged_files

docs: .venv/docs ## the book, from notebooks and records, nothing executed; open _docs/index.html
	rm -rf _docs
	$(BIN)/python docs/stage.py
	$(BIN)/sphinx-build -W --keep-going -q -c docs -d build/doctrees build/docs _docs
	rm -rf jupyter_execute
	rm -f _docs/_static/mathjax/*svg*.js _docs/_static/mathjax/mml-*.js _docs/_static/mathjax/*-full*.js # pages load another bundle
	$(BIN)/python docs/check.py _docs

readme: .venv/dev ## README.md from nbs/index.ipynb
	$(BIN)/python .ci/readme.py > README.md

refresh: .venv/dev ## export the modules and save fresh outputs in all notebooks of the library and the guides
	$(BIN)/nbdev_export
	$(BIN)/python .ci/refresh.py; status=$$?; $(BIN)/nbdev_clean; exit $$status
	$(MAKE) readme

lab: .venv/dev hooks ## JupyterLab with the project's kernel
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab --notebook-dir nbs

hooks: .venv/dev ## git cleans notebooks as they are committed, and merges them cell by cell
	git config --local include.path ../.gitconfig

clean: ## remove what can be made again: the environment, downloads, quick results
	rm -rf .venv _docs build jupyter_execute dist *.egg-info data/downloads data/cache data/runs/quick data/runs/smoke data/weights/quick data/weights/smoke data/trials/quick data/trials/smoke figures/quick figures/smoke

.venv/run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else f"Python 3.11 to 3.13 is needed, this is {v[0]}.{v[1]}; name another with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { rm -rf .venv; echo 'no virtual environment could be made; on Debian: apt-get install python3-venv' >&2; exit 1; }
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

.venv/dev: .venv/run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

.venv/docs: .venv/run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@
