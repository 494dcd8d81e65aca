# headrace: set-up, demo, tests, checks, benchmarks and wheels. Every target does all its own set-up.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
PILLOW ?= 12.3.0
PILLOW_TESTS ?= pixels
# Without its dependencies: they would bring torchvision's, and so a CUDA build of torch. The trainers' bring the others.
TIMM ?= 1.0.31
# The newest that runs beside torch's CPU build: later ones need CUDA's libraries.
TORCHCODEC ?= 0.13.0
DECORD ?= 3.4.0
BENCH ?= --out build/bench.json
NATIVE := $(shell find csrc -type f) CMakeLists.txt pyproject.toml
RELEASE := build/wheel-env/bin
define RELEASE_TOOLS
	$(PYTHON) -m venv build/wheel-env
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check cmake $$($(RELEASE)/python tools/requirements.py release)
endef
# The part of a wheel's name that is its Python's, such as cp312; used once the tools are there.
CP = $$($(RELEASE)/python -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
PYTEST := $(PY) -m pytest -n auto --dist worksteal
# The commit whose speed `make speed` compares with.
BASE ?= HEAD~1

.PHONY: demo quick speed test test-python test-cpp test-portable test-aarch64 test-pillow test-with test-doors test-site check format bench bench-peers sanitize asan tsan build-asan build-tsan fuzz licenses \
  wheel sdist release-rehearsal gpu-check gpu-bench gpu-own docs clean

demo: $(VENV)/.installed
	$(PY) -m headrace demo

test: test-cpp test-python

# SELECT: which tests, as pytest's -m has it.
test-python: $(VENV)/.installed $(VENV)/.tools
	$(PYTEST) $(if $(SELECT),-m "$(SELECT)")

# The inner loop: what an edit breaks most likely, in six minutes on two cores.
quick: $(VENV)/.installed $(VENV)/.tools
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q -m "not slow and not processes and not trainers"

# Fails where this commit lost more than 15% of the speed of BASE, twice in a row. It builds both, in four minutes.
speed: $(VENV)/.installed
	$(PY) -m bench.against $(BASE)

test-cpp: $(VENV)/.system-tests
	cmake --preset dev >/dev/null
	cmake --build --preset dev -j $$(nproc)
	ctest --test-dir build/dev --output-on-failure -j $$(nproc)

# The C++ tests without the functions that only Linux has.
test-portable: $(VENV)/.system-tests
	cmake --preset portable >/dev/null
	cmake --build --preset portable -j $$(nproc)
	ctest --test-dir build/portable --output-on-failure -j $$(nproc)

# The C++ tests and the pipeline for 64-bit Arm, cross-compiled on Debian and run under qemu-user; elsewhere one sentence.
test-aarch64: $(VENV)/.system-tests
	tools/aarch64/check.sh

# The pixels with another Pillow (its order of passes differs), in the same environment.
test-pillow: $(VENV)/.installed $(VENV)/.tools
	test -d build/pillow-$(PILLOW) || $(PIP) --no-deps --target build/pillow-$(PILLOW) pillow==$(PILLOW)
	PYTHONPATH=build/pillow-$(PILLOW) $(PYTEST) -m "$(PILLOW_TESTS)"

# Tests with another version of a library, in the same environment: make test-with LIBRARY=torchvision==0.25.0 TESTS=...
test-with: $(VENV)/.installed $(VENV)/.tools
	test -d build/with-$(LIBRARY) || $(PIP) --no-deps --target build/with-$(LIBRARY) $(LIBRARY)
	PYTHONPATH=build/with-$(LIBRARY) $(PYTEST) -q $(TESTS)

# torchvision.io's and torchcodec's decoders need the build of torch for CUDA, 5.5 GB, and run on the CPU: not part of CI.
DOORS := build/doors-env
test-doors: $(DOORS)/.installed
	PYTHONPATH=tests/python $(DOORS)/bin/python -m pytest -q tests/python/loading/doors tests/python/loading/records

$(DOORS)/.installed: $(NATIVE)
	$(PYTHON) -m venv $(DOORS)
	$(DOORS)/bin/python -m pip install --quiet torch==2.14.1
	$(DOORS)/bin/python -m pip install --quiet --no-deps torchvision==0.29.1 torchcodec==0.16.0
	$(DOORS)/bin/python -m pip install --quiet cmake ninja pytest hypothesis opencv-python-headless av \
	  $$($(DOORS)/bin/python tools/requirements.py build)
	$(DOORS)/bin/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

check: $(VENV)/.installed $(VENV)/.tools
	$(PY) -m ruff check --no-cache .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	git ls-files 'csrc/*.h' 'csrc/*.cpp' 'tests/*.h' 'tests/*.cpp' 'fuzz/*.cpp' 'bench/*.cpp' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(PY) tools/check_words.py
	$(PY) -m pytest -q tests/python/program/test_layers.py tests/python/program/test_types.py::test_every_public_name_has_a_type \
	  tests/python/program/test_face.py::test_the_reference_has_an_entry_for_each_public_name

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
sanitize: asan tsan

build-asan build-tsan: build-%: $(VENV)/.system-tests
	cmake --preset $* >/dev/null
	cmake --build --preset $* -j $$(nproc)

asan tsan: %: build-%
	ctest --test-dir build/$@ --output-on-failure -j $$(nproc)
	for data in python/headrace/_cli/demo/photos ../shared/data/hard_dev; do \
	  if [ -d $$data ]; then build/$@/headrace_corpus $$data 4 || exit 1; fi; \
	done

fuzz:
	fuzz/run.sh

# A wheel of the given Python that holds libjpeg-turbo and libdeflate, in dist/.
wheel: $(VENV)/.system
	$(RELEASE_TOOLS)
	rm -rf build/wheel dist/headrace-*-$(CP)-*.whl
	$(RELEASE)/python -m build --wheel --outdir build/wheel . >build/wheel.log 2>&1 || { tail -20 build/wheel.log; exit 1; }
	PATH=$(CURDIR)/$(RELEASE):$$PATH $(RELEASE)/python -m auditwheel repair --wheel-dir dist build/wheel/*.whl
	$(RELEASE)/python tools/wheel_licenses.py dist/headrace-*.whl
	ls -l dist

# A source distribution that holds the sources of libjpeg-turbo and libdeflate, in dist/: it builds with a compiler alone.
sdist:
	$(RELEASE_TOOLS)
	$(RELEASE)/cmake -D FOLDER=third_party -P cmake/source_archives.cmake
	rm -f dist/headrace-*.tar.gz
	$(RELEASE)/python -m build --sdist --outdir dist .

# What release.yml does, as far as the upload: both files, the checks of their metadata, and each of them installed into
# a bare environment (the wheel without a compiler) and tried there.
release-rehearsal: sdist wheel
	$(RELEASE)/python tools/release/check_files.py dist/headrace-*
	PYTHON=$(PYTHON) tools/release/try_file.sh dist/headrace-*-$(CP)-*.whl
	PYTHON=$(PYTHON) tools/release/try_file.sh dist/headrace-*.tar.gz

# Fails where a package that headrace needs or offers to use has a licence that binds its users' programs, or names none.
licenses: $(VENV)/.installed $(VENV)/.tools
	$(PYTHON) -m venv build/licenses
	build/licenses/bin/python -m pip install --quiet --disable-pip-version-check "pip-licenses>=5,<6"
	build/licenses/bin/pip-licenses --python=$(PY) --partial-match --fail-on="GPL;Proprietary;UNKNOWN" \
	  --packages numpy pillow torch tqdm rich prometheus_client opentelemetry-api fsspec aiohttp s3fs pyarrow shtab

# On a machine with an NVIDIA GPU, with the torch of PYTHON, which must have CUDA: the GPU path's tests, long runs and
# sanitizers (gpu-check), its figures beside its peers' (gpu-bench), tests and figures of datasets of one's own (gpu-own).
# GPU_IMAGES: a folder of JPEG files to time with.
gpu-check:
	PYTHON=$(PYTHON) tools/gpu_check.sh proofs build/gpu-check/result $(GPU_IMAGES)

gpu-bench:
	PYTHON=$(PYTHON) tools/gpu_check.sh figures build/gpu-check/result $(GPU_IMAGES)

gpu-own:
	PYTHON=$(PYTHON) tools/gpu_check.sh own build/gpu-check/result $(GPU_IMAGES)

# The site in a headless browser: its pages at the widths of a desktop and of a phone.
test-site: docs $(VENV)/.tools
	tools/system_packages.sh $(PYTHON) browser
	$(PY) -m pytest tests/python/program/test_site.py

# The site, in build/site, from the sources alone, without torch and headrace: a dead link, or a public name without a
# docstring or an entry in the reference, is an error.
docs: | $(VENV)/.created
	$(PIP) $$($(PY) tools/requirements.py docs)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

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

# What builds the native module without an environment of its own for each build, which would compile everything again.
$(VENV)/.build-tools: pyproject.toml $(VENV)/.torch
	$(PIP) $$($(PY) tools/requirements.py build)
	for tool in cmake ninja; do command -v $$tool >/dev/null || $(PIP) $$tool || exit 1; done
	touch $@

# The names of Python's files, of which the editable install keeps a list.
$(VENV)/.modules: FORCE | $(VENV)/.created
	@find python/headrace -name '*.py' | LC_ALL=C sort | cmp -s - $@ || find python/headrace -name '*.py' | LC_ALL=C sort >$@
FORCE:

# An editable install: Python's files are read in place, and only changed C++ is compiled again.
$(VENV)/.installed: $(NATIVE) $(VENV)/.modules $(VENV)/.build-tools $(VENV)/.system
	$(PIP) --no-build-isolation --editable .
	touch $@

$(VENV)/.tools: pyproject.toml $(VENV)/.torch
	$(PIP) $$($(PY) tools/requirements.py test dev trainers)
	$(PIP) --no-deps timm==$(TIMM) torchcodec==$(TORCHCODEC) decord2==$(DECORD)
	touch $@
