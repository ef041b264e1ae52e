"""What the engines that compile a DUT themselves share: options, the digest of a build, the text of a failure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rtl_tb.dut import Dut
from rtl_tb.engines.job import FAILURE_KINDS, ProtocolFailure

KINDS = ("timeout", "extra_result", "unstable_output", "valid_dropped", "stale_after_reset", "x_on_handshake")
"""FAILURE_KINDS in the order of the numbers that fast_harness.cpp and mmagold_tb.sv give them."""
PINS = ("in_valid", "in_ready", "out_valid", "out_ready")
_OF_NO_VECTOR = ("extra_result", "stale_after_reset")
_NAMED_FILES = re.compile(rb'(?:`include\s*|\$readmem[hb]\s*\(\s*)["<]([^">\n]+)[">]')
"""Other files that RTL names: headers and the contents of memories."""
_COMPLAINT = re.compile(
    r"^ERROR: .*\$readmem[hb]: Unable to open (?P<opened>.+?) for reading"
    r"|^%Warning: (?P<read>.+?):\d+: \$readmem file not found"
    r"|^(?:ERROR|\[\d+\] %Error): *(?P<error>.*)",
    re.MULTILINE,
)


def design_options(dut: Dut) -> list[str]:
    """Include folders and macros, in the spelling that Verilator and Icarus share."""
    macros = [f"-D{name}={value}" if value else f"-D{name}" for name, value in dut.defines.items()]
    return [f"-I{path}" for path in dut.include] + macros


def random_start(seed: int) -> list[str]:
    """Arguments of a verilated program: registers without a reset start as random bits of this seed (not 0, which means none)."""
    return ["+verilator+rand+reset+2", f"+verilator+seed+{max(seed & 0x7FFFFFFF, 1)}"]


def digest(dut: Dut, generated: Sequence[Path], options: object) -> str:
    """Names a build by all that it depends on: the design, the generated files, the options and the tool.

    Parameters and latency stand in the generated wrapper, which is `generated[0]` and lies in <build folder>/<engine>/.
    """
    found = hashlib.sha256(repr((options, design_options(dut))).encode())
    for path in _design_files(dut, generated):
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def _design_files(dut: Dut, generated: Sequence[Path]) -> Iterator[Path]:
    """Sources, generated files, everything in the include folders, and what these name, each once.

    The include folders are taken whole, whatever the suffixes: a macro may hold the name of a header. Only hidden files and
    the build folder itself are left out.
    """
    build = generated[0].absolute().parent.parent
    folders = [path.absolute() for path in dut.include]
    included = (path for folder in folders for path in sorted(folder.rglob("*")) if _is_input(path, folder, build))
    waiting = [path.absolute() for path in (*dut.sources, *generated, *included)]
    seen = set(waiting)
    for path in waiting:  # grows while it is walked
        yield path
        if path.is_file():
            for named in _named_files(path, folders):
                if named not in seen:
                    seen.add(named)
                    waiting.append(named)


def _is_input(path: Path, folder: Path, build: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and not path.is_relative_to(build)


def _named_files(path: Path, folders: Iterable[Path]) -> Iterator[Path]:
    """The existing files that a source names, in every place where a simulator may look for them."""
    for raw in _NAMED_FILES.findall(path.read_bytes()):
        name = raw.decode(errors="replace")
        for folder in (path.parent, *folders, Path.cwd()):
            candidate = (folder / name).resolve()
            if candidate.is_file():
                yield candidate


def complaint(log: str) -> str | None:
    """What the RTL complained of in a simulator's output, or None: $error, a failed assertion, a missing $readmem file.

    Icarus Verilog goes on after each of them; Verilator only after the last.
    """
    found = _COMPLAINT.search(log)
    if found is None:
        return None
    name = found["opened"] or found["read"]
    if name is None:
        return found["error"].strip()
    return f"$readmem did not find {name}; it is looked for in a temporary folder, so write an absolute path"


def failure(kind: int, cycle: int, vector: int, pins: Iterable[str], in_flight: int) -> ProtocolFailure:
    """A failure with the state of the handshake in its text; `kind` indexes KINDS, `pins` are the states of PINS."""
    name = KINDS[kind]
    states = ", ".join(f"{pin} {state}" for pin, state in zip(PINS, pins, strict=True))
    where = "" if name in _OF_NO_VECTOR else f" at vector {vector}"
    text = f"{FAILURE_KINDS[name]}{where}, in cycle {cycle}: {states}; {in_flight} in flight"
    return ProtocolFailure(name, cycle, vector if where else None, text)
