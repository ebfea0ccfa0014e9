# A thin front for the CMake presets (CMakePresets.json). Everything is built below build/.
.PHONY: help build docs quickstart test test-clang test-gpu test-hosts test-install wheel sdist deb bench bench-gpu bench-optimize peers sanitize torture laws fuzz format lint clean

FUZZ_SECONDS ?= 60
# Kernels for the GPU: AUTO compiles them where nvcc and a driver are, ON where nvcc is.
CUDA ?= AUTO
# Tests of what runs on several threads.
THREADED = ^(ThreadPool|Run|Recorder|DrawBatches|Ranks|Auto|Stepper|Mmd|DiagnoseVariables|LogPartition|RbmTrainerTest|Marginals|OtherModes|BitGibbs|LaneGibbs|Reproduce.Networks)

help:
	@echo "make quickstart   install packages, build, segment a noisy image by sampling"
	@echo "make test         install packages, build, run all tests"
	@echo "make test-clang   the C++ tests, built by clang"
	@echo "make test-gpu     the tests that need a GPU (CUDA 12)"
	@echo "make bench-gpu    speed on a GPU; build/gpu.json and build/gpu.svg"
	@echo "make build        the program only: build/release/poise"
	@echo "make test-hosts   runs on two hosts: network namespaces, Open MPI over TCP between them; needs root"
	@echo "make wheel        wheels with the package and the program, for Python 3.11 and for 3.12 and later, each tried"
	@echo "make sdist        the source archive of the Python package"
	@echo "make deb          Debian packages of the program and of the library, in dist/"
	@echo "make test-install  wheels and packages in bare roots of Debian 12 and 13, without compiler and network; needs root"
	@echo "make bench        benchmarks; numbers as JSON in build/bench.json"
	@echo "make peers        Gibbs of Poise beside thrml and dwave-samplers (from PyPI), on one core"
	@echo "make bench-optimize  poise optimize beside dwave-samplers and OpenJij: GRAPHS=FOLDER, FULL=1"
	@echo "make sanitize     the tests under address, undefined-behaviour and thread sanitizers"
	@echo "make torture      runs that are killed KILLS (default 1000) times at random and resumed"
	@echo "make laws         random models against enumeration, by every sampler: SECONDS (default 600), SEED (default 1)"
	@echo "make fuzz         every fuzz target for FUZZ_SECONDS (default 60) seconds"
	@echo "make docs         the documentation site, in build/docs/html"
	@echo "make format lint  clang-format; clang-tidy and the rule about includes"

build:
	@tools/install-packages build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

quickstart: build
	@tools/quickstart

# Python's packages are fetched while the program is built.
test:
	@tools/install-packages build test clang python report
	@tools/python-environment build/python & python=$$!; \
	  cmake --preset release -DPOISE_CUDA=$(CUDA) >/dev/null && cmake --build --preset release && wait $$python
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev
	@ctest --test-dir build/release --output-on-failure --parallel 2

test-clang:
	@tools/install-packages build test clang
	@cmake --preset clang >/dev/null
	@cmake --build --preset clang
	@ctest --test-dir build/clang --output-on-failure --parallel 2

test-hosts:
	@tools/install-packages build hosts
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@tools/test-hosts build/release/poise

wheel:
	@tools/install-packages build python
	@cmake --preset release -DPOISE_CUDA=$(if $(shell command -v nvcc),ON,OFF) >/dev/null
	@cmake --build --preset release
	@tools/make-wheels build/release dist

sdist:
	@tools/install-packages build python
	@tools/make-sdist dist

deb:
	@tools/install-packages build deb
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@cd build/release && cpack -G DEB -B $(CURDIR)/dist >/dev/null
	@ls dist/*.deb

test-install: deb wheel
	@tools/install-packages install
	@tools/test-install dist build/install-wheels

bench:
	@tools/install-packages build bench
	@cmake --preset bench >/dev/null
	@cmake --build --preset bench --target poise_bench
	@build/release/bench/poise_bench --benchmark_repetitions=3 --benchmark_display_aggregates_only=true --benchmark_out=build/bench.json --benchmark_out_format=json
	@tools/bench-ratios build/bench.json

peers:
	@tools/install-packages build python
	@tools/python-environment build/python
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev --target _core
	@bench/peers.py

bench-optimize:
	@tools/install-packages build python
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@bench/optimize.py $(GRAPHS)

sanitize:
	@tools/install-packages build test
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan
	@ctest --test-dir build/asan --output-on-failure --parallel 2
	@cmake --preset tsan >/dev/null
	@cmake --build --preset tsan
	@ctest --test-dir build/tsan --output-on-failure --parallel 2 --tests-regex '$(THREADED)'

test-gpu:
	@tools/install-packages build test
	@cmake --preset release -DPOISE_TESTS=ON -DPOISE_CUDA=ON >/dev/null
	@cmake --build --preset release --target poise_tests
	@build/release/tests/poise_tests --gtest_filter='OnGpu*:Cuda*'

bench-gpu:
	@tools/install-packages build bench
	@cmake --preset bench -DPOISE_CUDA=ON >/dev/null
	@cmake --build --preset bench --target poise_bench_gpu
	@build/release/bench/poise_bench_gpu build/gpu.json build/gpu.svg

KILLS ?= 1000
torture:
	@tools/install-packages build test
	@cmake --preset release -DPOISE_TESTS=ON >/dev/null
	@cmake --build --preset release --target poise_tests
	@tools/torture build/release/tests/poise_tests $(KILLS)

SECONDS ?= 600
SEED ?= 1
laws:
	@tools/install-packages build test
	@cmake --preset release -DPOISE_TESTS=ON >/dev/null
	@cmake --build --preset release --target poise_laws poise_app
	@build/release/tests/poise_laws --seconds $(SECONDS) --seed $(SEED) --program build/release/poise --json build/laws.json

fuzz:
	@tools/install-packages build clang
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz
	@tools/fuzz-all build/fuzz $(FUZZ_SECONDS)

# The reference is made from the program, the Python module and the headers.
docs:
	@tools/install-packages build python docs
	@tools/python-environment build/python
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev --target poise_app _core
	@tools/make-docs build/release/poise build/release/python

format:
	@tools/install-packages lint
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format -i

# Most of what clang-tidy does is in headers, again for every file that includes them; so it is given the batches of the
# unity build, which include .cpp files, and reports what it finds in any file of the project. One flag of the Python module is
# unknown to it, and the files of nanobind are not the project's.
lint:
	@tools/install-packages build test python bench lint
	@tools/python-environment build/python
	@cmake --preset lint >/dev/null
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format --dry-run -Werror
	@tools/check-includes
	@sed -i 's/-mtls-dialect=gnu2//g' build/lint/compile_commands.json
	@run-clang-tidy -quiet -p build/lint -j 2 -checks=-bugprone-suspicious-include '^$(CURDIR)/(?!build/python/).*\.c(pp|xx)$$'

clean:
	@rm -rf build quickstart
