"""What the engines that compile a DUT themselves share: options, the digest of a build, the text of a failure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rtl_tb.dut import Dut
from rtl_tb.engines.job import FAILURE_KINDS, ProtocolFailure

KINDS = ("timeout", "extra_result", "unstable_output", "valid_dropped", "stale_after_reset", "x_on_handshake")
"""FAILURE_KINDS in the order of the numbers that fast_harness.cpp and mmagold_tb.sv give them."""
PINS = ("in_valid", "in_ready", "out_valid", "out_ready")
_OF_NO_VECTOR = ("extra_result", "stale_after_reset")
_INCLUDABLE = {".v", ".sv", ".vh", ".svh", ".svi", ".inc", ".h", ".mem", ".hex"}


def design_options(dut: Dut) -> list[str]:
    """Include folders and macros, in the spelling that Verilator and Icarus share."""
    macros = [f"-D{name}={value}" if value else f"-D{name}" for name, value in dut.defines.items()]
    return [f"-I{path}" for path in dut.include] + macros


def digest(dut: Dut, generated: Iterable[Path], options: object) -> str:
    """Names a build by all that it depends on: the design, the generated files, the options and the tool.

    Parameters and latency stand in the generated wrapper.
    """
    included = (path for folder in dut.include for path in sorted(folder.rglob("*")) if path.suffix in _INCLUDABLE)
    found = hashlib.sha256(repr((options, design_options(dut))).encode())
    for path in (*dut.sources, *generated, *included):
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def failure(kind: int, cycle: int, vector: int, pins: Iterable[str], in_flight: int) -> ProtocolFailure:
    """A failure with the state of the handshake in its text; `kind` indexes KINDS, `pins` are the states of PINS."""
    name = KINDS[kind]
    states = ", ".join(f"{pin} {state}" for pin, state in zip(PINS, pins, strict=True))
    where = "" if name in _OF_NO_VECTOR else f" at vector {vector}"
    text = f"{FAILURE_KINDS[name]}{where}, in cycle {cycle}: {states}; {in_flight} in flight"
    return ProtocolFailure(name, cycle, vector if where else None, text)
