# Everything that is installed goes into .venv. `make help` lists the targets: the lines below with "##".

PYTHON ?= python3
CC ?= cc
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py $(wildcard csrc/*.[ch] localsvm/*.p[yx][xd] localsvm/*/*.pyx)
PYTEST := $(BIN)/python -m pytest -q -n auto --dist worksteal
EVERY := whole or not whole
STRICT := -std=gnu99 -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Werror

.PHONY: help demo demo-spark spark build test test-all accidents pytest lint check-c sanitize count-instructions check-instructions
.PHONY: fuzz sdist wheel test-pythons test-lowest
.PHONY: reproduce-vp reproduce-l3 reproduce-svml reproduce-mtl reproduce-mllkm reproduce-tabular reproduce-tables reproduce-values reproduce-coverage reproduce-detection reproduce-held-out reproduce-novelties peers bench bench-quick bench-linear bench-probabilities bench-values clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## environment, build, a small data set; train, predict, accuracy
	mkdir -p demo
	$(BIN)/python scripts/develop/make_demo_data.py demo
	$(BIN)/lsvm-train --force demo/banana.train.libsvm
	$(BIN)/lsvm-predict --force demo/banana.test.libsvm demo/banana.train.model.h5 demo/predictions.txt

demo-spark: build spark ## train on a standalone Spark cluster of two workers, and predict
	mkdir -p demo
	$(BIN)/python scripts/develop/make_demo_data.py demo
	PYTHON=$(BIN)/python scripts/develop/spark-cluster.sh start
	$(BIN)/lsvm-train --force --backend spark --master spark://127.0.0.1:7077 -P voronoi -c 500 --coarse-size 1000 \
	    demo/banana.train.libsvm demo/spark.model.h5 && \
	$(BIN)/lsvm-predict --force --backend spark --master spark://127.0.0.1:7077 \
	    demo/banana.test.libsvm demo/spark.model.h5 demo/predictions.txt || failed=1; \
	scripts/develop/spark-cluster.sh stop; test -z "$$failed"

# Needs Python 3.11 or newer with venv, a C compiler, and pip's package index once.
build: $(VENV)/.built ## the environment in .venv, and the extensions

$(VENV)/.environment: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' 'cython>=3.0.11'
	touch $@

# editable: Python files are used where they lie, the extensions and the bytecode are made beside them. Where Python may
# not write bytecode, a command would else compile the files at each start, in a third of a second
$(VENV)/.built: $(VENV)/.environment $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[test,plot]'
	$(BIN)/python -m compileall -q localsvm
	touch $@

spark: $(VENV)/.spark ## PySpark, for --backend spark and its tests; Java 17 has to be there

$(VENV)/.spark: $(VENV)/.environment
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$($(BIN)/python -c 'import tomllib; \
	    print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["spark"])')"
	touch $@

# LOCALSVM_DEV: compiled modules that are older than their sources are refused
test: export LOCALSVM_DEV = 1
test: build check-c lint pytest ## lint, types, C warnings, and the tests that tell most mistakes: minutes

test-all: export LOCALSVM_DEV = 1
test-all: build ## all other tests, fuzzing, instructions, sanitizers: half an hour
	$(MAKE) -j 2 fuzz check-instructions
	$(MAKE) sanitize
	$(PYTEST) -m whole

pytest: build ## [TESTS=tests/cli] the fast tests
	$(PYTEST) $(TESTS)

# An environment of its own beside .venv; the extensions are built in a copy, so that the usual ones stay as they are.
LOWEST := build/lowest

test-lowest: ## the tests with the lowest version of each library that pyproject.toml allows
	rm -rf $(LOWEST)/source && mkdir -p $(LOWEST)/source
	$(PYTHON) scripts/develop/lowest_versions.py > $(LOWEST)/constraints.txt
	$(PYTHON) -m venv $(LOWEST)/venv
	git ls-files -z | xargs -0 cp --parents -t $(LOWEST)/source
	$(LOWEST)/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt \
	    --editable '$(LOWEST)/source[test]'
	cd $(LOWEST)/source && ../venv/bin/python -m pytest -q -n auto -p no:cacheprovider -m '$(EVERY)'

lint: build ## style of Python and C, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror csrc/*.[ch] scripts/develop/*.[ch] tests/fuzz/*.[ch]
	$(BIN)/mypy

accidents: build ## 25 killed runs, and runs in which one of 40 writes, syncs, allocations, forks or threads fails; all resumed
	LOCALSVM_KILLS=25 LOCALSVM_FAULTS=40 $(PYTEST) -m whole tests/cli/test_accidents.py

check-c: ## the C code under strict warnings
	$(CC) -fsyntax-only $(STRICT) -Icsrc csrc/*.c scripts/develop/*.c tests/fuzz/*.c

# Neither needs the environment. Without valgrind or AVX2, or with another compiler than that of the file, a message says
# so and nothing fails. An increase that is meant is accepted by committing the file.
count-instructions: ## write the instructions of the C kernels, under callgrind at the AVX2 level, into tests/golden
	CC="$(CC)" $(PYTHON) scripts/develop/count_instructions.py

check-instructions: ## fails where a kernel takes over 5 % more than tests/golden/instructions.txt says
	CC="$(CC)" $(PYTHON) scripts/develop/count_instructions.py --check

# A build of its own, so that the usual one stays as it is. Python itself leaks by design, hence no leak check; and the
# tests that bound the memory of a process would count the sanitizer's own. Of the damaged models that Python refuses, a
# fourth is enough here.
SANITIZED := build/sanitize
OTHER_PARTS := (strangers and (part_1 or part_2 or part_3))
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g
PRELOAD = $(shell $(CC) -print-file-name=libasan.so) $(shell $(CC) -print-file-name=libstdc++.so)

C_TESTS := tests/test_strangers.py tests/test_smo.py tests/test_smo_terms.py tests/test_linear.py tests/test_linear_losses.py tests/test_ml3_solver.py tests/test_blocks.py tests/test_kernels.py tests/test_reading.py tests/test_quick_reading.py tests/test_core.py tests/test_ridge.py tests/test_least_squares.py tests/test_mtl.py tests/test_lasvm.py tests/test_average_gradient.py tests/test_local_maps.py tests/test_delimited.py
CHECKED = LD_PRELOAD="$(PRELOAD)" ASAN_OPTIONS=detect_leaks=0 PYTHONSAFEPATH=1 PYTHONPATH=$(SANITIZED)/lib $(PYTEST) \
    -p no:cacheprovider

sanitize: build ## the tests of the C code under the sanitizers, with every index of Cython checked
	LOCALSVM_BOUNDSCHECK=1 CFLAGS="$(SANITIZERS)" LDFLAGS="$(SANITIZERS)" $(BIN)/python setup.py --quiet build \
	    --build-base $(SANITIZED)/temporary --build-lib $(SANITIZED)/lib
	$(CHECKED) -m '$(EVERY)' -k 'not private_memory and not $(OTHER_PARTS)' $(C_TESTS)
	$(CHECKED) tests/test_edges.py

# Inputs follow from SEED; how many there are, from SECONDS. What was found lies in build/fuzz.
SECONDS := 30
SEED := 0
FUZZ := build/fuzz

fuzz: build ## [SECONDS=30] [SEED=0] random changes of texts, tables, compressed files, journals, models and partitions
	mkdir -p $(FUZZ)
	for name in libsvm_text libsvm_count csv_text; do \
	    $(CC) $(STRICT) $(SANITIZERS) -O2 -fsanitize-coverage=trace-pc -Icsrc -c csrc/$$name.c \
	        -o $(FUZZ)/$$name.o || exit 1; done
	$(CC) $(STRICT) $(SANITIZERS) -O2 -Icsrc tests/fuzz/fuzz_text.c $(FUZZ)/libsvm_text.o $(FUZZ)/libsvm_count.o -lm \
	    -o $(FUZZ)/fuzz_text
	$(CC) $(STRICT) $(SANITIZERS) -O2 -Icsrc tests/fuzz/fuzz_csv.c $(FUZZ)/csv_text.o $(FUZZ)/libsvm_text.o -lm \
	    -o $(FUZZ)/fuzz_csv
	$(FUZZ)/fuzz_text $$(( $(SECONDS) / 3 )) $(SEED) $(FUZZ)/found tests/fuzz/text
	$(FUZZ)/fuzz_csv $$(( $(SECONDS) / 3 )) $(SEED) $(FUZZ)/found tests/fuzz/tables
	$(BIN)/python tests/fuzz/fuzz_files.py $$(( $(SECONDS) / 3 )) $(SEED) $(FUZZ)/files

# The experiments keep finished runs, so each of the following can be interrupted and goes on.
reproduce-vp: build ## DATA=folder [QUICK=1] tables and pictures of local SVMs, into docs/results; quick: minutes
	@test -n "$(DATA)" || { echo "make reproduce-vp DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(if $(QUICK),,$(BIN)/python scripts/reproduce/vp.py "$(DATA)")
	$(BIN)/python scripts/reproduce/vp_toy.py $(if $(QUICK),--quick)
	$(BIN)/python scripts/reproduce/vp_sizes.py "$(DATA)" $(if $(QUICK),--quick)

reproduce-l3: build ## DATA=folder [QUICK=1] tables and figures of the L3-SVM paper, into docs/results/l3
	@test -n "$(DATA)" || { echo "make reproduce-l3 DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/l3.py $(if $(QUICK),--quick) "$(DATA)"
	$(BIN)/python scripts/reproduce/l3_figures.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-svml: build ## DATA=folder [QUICK=1] tables and figures of the SVML paper, into docs/results/svml
	@test -n "$(DATA)" || { echo "make reproduce-svml DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/svml_figures.py "$(DATA)"
	$(BIN)/python scripts/reproduce/svml.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-mllkm: build ## DATA=folder [QUICK=1] Table 2 and the figures of the MLLKM paper, and larger sets; into docs/results/mllkm
	@test -n "$(DATA)" || { echo "make reproduce-mllkm DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/mllkm.py $(if $(QUICK),--quick) "$(DATA)"
	$(BIN)/python scripts/reproduce/mllkm_figures.py $(if $(QUICK),--quick) "$(DATA)"
	$(BIN)/python scripts/reproduce/mllkm_large.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-mtl: build ## DATA=folder [QUICK=1] table and figures of the LSVM-MTL paper, into docs/results/mtl
	@test -n "$(DATA)" || { echo "make reproduce-mtl DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/mtl_figures.py $(if $(QUICK),--quick) "$(DATA)"
	$(BIN)/python scripts/reproduce/mtl.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-tabular: build peers ## DATA=folder [QUICK=1] error and time beside boosted trees, forests and SVMs, into docs/results
	@test -n "$(DATA)" || { echo "make reproduce-tabular DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/tabular.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-tables: build peers ## TABLES=folder [QUICK=1] error and time on tables as CSV, beside libraries of trees, into docs/results
	@test -n "$(TABLES)" || { echo "make reproduce-tables TABLES=folder-of-the-tables" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/tables.py $(if $(QUICK),--quick) "$(TABLES)"

# VALUES_OPTIONS="--sets abalone,pol --methods localsvm,CatBoost": a part of it
VALUES_OPTIONS :=

reproduce-values: build peers ## TABLES=folder [QUICK=1] [VALUES_OPTIONS=...] error and time of values in tables, beside peers, into docs/results
	@test -n "$(TABLES)" || { echo "make reproduce-values TABLES=folder-of-the-tables" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/values.py $(if $(QUICK),--quick) $(VALUES_OPTIONS) "$(TABLES)"

# COVERAGE_OPTIONS="--sets adult,letter --methods localsvm,LightGBM": a part of it
COVERAGE_OPTIONS :=

reproduce-coverage: build peers ## TABLES=folder [DATA=folder] [QUICK=1] [COVERAGE_OPTIONS=...] what intervals and sets hold, beside peers, into docs/results
	@test -n "$(TABLES)" || { echo "make reproduce-coverage TABLES=folder-of-the-tables" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/coverage.py $(if $(QUICK),--quick) $(if $(DATA),--libsvm "$(DATA)") $(COVERAGE_OPTIONS) "$(TABLES)"

reproduce-detection: build ## DATA=folder [QUICK=1] whether false alarms stay below their bound, into docs/results
	@test -n "$(DATA)" || { echo "make reproduce-detection DATA=folder-of-the-data-sets" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/detection.py $(if $(QUICK),--quick) "$(DATA)"

reproduce-novelties: build ## [DATA=folder] [QUICK=1] novelties that are found, beside scikit-learn's detectors, into docs/results
	$(BIN)/python scripts/reproduce/novelties.py $(if $(QUICK),--quick) $(if $(DATA),"$(DATA)")

reproduce-held-out: build ## TABLES=folder [QUICK=1] what the cross-validated error promises with groups and blocks, into docs/results
	@test -n "$(TABLES)" || { echo "make reproduce-held-out TABLES=folder-of-the-tables" >&2; exit 2; }
	$(BIN)/python scripts/reproduce/held_out.py $(if $(QUICK),--quick) "$(TABLES)"

# The wheel is made from the sdist, so that nothing comes along that an earlier build left in build/.
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' localsvm/__init__.py)
SDIST = dist/localsvm-$(VERSION).tar.gz

sdist: build ## dist/localsvm-VERSION.tar.gz, from which make demo and make test run
	$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' > /dev/null
	@ls -l $(SDIST)

wheel: sdist ## dist/localsvm-VERSION-*.whl for this Python
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist $(SDIST)
	@ls -l dist/localsvm-$(VERSION)-*.whl

# Each in a copy of the sdist and an environment of its own, below build/pythons.
PYTHONS := python3.11 python3.12 python3.13 python3.14
TESTS :=

test-pythons: sdist ## [PYTHONS="python3.13 ..."] [TESTS=tests/cli] the tests under each of these that is installed
	@failed=; for python in $(PYTHONS); do \
	    folder=build/pythons/$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) \
	        || { echo "$$python: not installed, not tested" >&2; continue; }; \
	    mkdir -p $$folder && tar -xzf $(SDIST) -C $$folder --strip-components=1; \
	    $(MAKE) -C $$folder pytest PYTHON="$$python" TESTS="$(TESTS)" || failed="$$failed $$python"; \
	done; test -z "$$failed" || { echo "failed under:$$failed" >&2; exit 1; }

# Each peer by itself: one that cannot be installed is reported by the benchmarks and does not stop the rest.
PEERS = $(shell $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench"])')
BENCHMARKS := read read_tables cell run predict scale
BENCH_OPTIONS :=

peers: $(VENV)/.peers ## the other libraries, for the benchmarks

$(VENV)/.peers: $(VENV)/.built
	@for peer in $(PEERS); do \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check "$$peer" || echo "not installed: $$peer" >&2; \
	done
	touch $@

bench-linear: build ## [DATA=folder] linear SVMs against LIBLINEAR; into docs/results/bench
	$(BIN)/python scripts/bench/linear.py $(BENCH_OPTIONS) $(DATA)

bench-probabilities: build ## [DATA=folder] probabilities against scikit-learn's CalibratedClassifierCV; into docs/results/bench
	$(BIN)/python scripts/bench/probabilities.py $(BENCH_OPTIONS) $(DATA)

bench-values: build peers ## TABLES=folder values in cells against liquidSVM's ls, qt and ex; into docs/results/bench
	@test -n "$(TABLES)" || { echo "make bench-values TABLES=folder-of-the-tables" >&2; exit 2; }
	$(BIN)/python scripts/bench/values.py $(BENCH_OPTIONS) "$(TABLES)"

bench: ## [DATA=folder] the tables of docs/results/bench: hours
bench-quick: ## [DATA=folder] the small end of the same, in build/bench/quick: about three minutes

bench bench-quick: build peers
	@failed=0; for name in $(BENCHMARKS); do \
	    $(BIN)/python scripts/bench/$$name.py $(if $(filter %-quick,$@),--quick) $(BENCH_OPTIONS) $(DATA) || failed=1; \
	done; exit $$failed

clean: ## remove all that was built or installed here
	rm -rf $(VENV) build demo dist localsvm.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find localsvm -name '*.so' -delete
	find localsvm -name '_*.c' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
