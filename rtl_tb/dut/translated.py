"""SystemVerilog that Icarus Verilog cannot read, as Verilog that it can: Yosys with slang elaborates the unit
with its wrapper, and what it writes is compiled in place of both.

The text keeps X: registers start as X, what nothing drives is X, and a multiplexer whose select is X gives X
where its inputs differ (an `if` in the source would take the second branch). Nothing is optimised, since an
optimisation may choose a value for an X. Delays and assertions are left out, so that a PASS on such a text is
no PASS of the source before `compare_with_source` (rtl_tb/check/initial_values.py) has run the source.
"""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design, literal
from rtl_tb.dut.slang import LENIENT
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.errors import ElaborationError, MachineError, RtlError
from rtl_tb.simulators import translators
from rtl_tb.simulators.simulators import Simulator

_MARK = "// Translated by "
_READ = (
    "--single-unit",  # macros hold for the files behind theirs, as in the simulators
    "--no-synthesis-define",
    "--no-default-translate-off-format",  # the text that the simulators read, not that of synthesis
    "--ignore-timing",
    "--ignore-assertions",
    "-Wno-range-width-oob",  # what lies beyond a vector is X, no error
    *LENIENT,
)
AS_TEXT = ("maccmap -unmap", "techmap t:$bwmux t:$alu t:$fa t:$lcu t:$sop")
"""The commands of Yosys that take apart the cells for which `write_verilog` has no expression: it would write
an instance of a module that no simulator has. A $bwmux becomes a multiplexer for each bit, so that no X gets
lost or made."""
_WRITTEN = (*AS_TEXT, f"write_verilog -noattr -noparallelcase {NAME}.v")


def built_readable(
    dut: Dut,
    simulator: Simulator,
    build: Callable[[Dut, str], Path],
    translate: bool | Literal["always"] = True,
) -> Path:
    """What `build` makes of the DUT and its wrapper, or, where Icarus Verilog refuses them and one may
    `translate`, or where that is "always" done, of a translation.

    Raises:
        ElaborationError: the simulator refuses the design, and it cannot be translated. MachineError: one of
            them broke off.
        Else as wrapper_of and `build`.
    """
    wrapper = wrapper_of(dut)
    if translate == "always":
        return build(_nothing_else(dut), to_verilog(dut, wrapper))
    try:
        return build(dut, wrapper)
    except ElaborationError as refused:
        if simulator.name != "icarus" or not translate:
            raise
        try:
            text = to_verilog(dut, wrapper)
        except MachineError:
            raise
        except RtlError as error:
            raise ElaborationError(f"{refused}; to translate it: {error}") from error
    return build(_nothing_else(dut), text)


def _nothing_else(dut: Dut) -> Dut:
    """The DUT without a text of its own: all of it is in the translation."""
    nothing: dict[str, str] = {}
    return dataclasses.replace(dut, sources=(), include=(), libraries=(), defines=nothing)


def to_verilog(dut: Dut, wrapper: str) -> str:
    """The unit and its wrapper as one module of Verilog-2005.

    Raises:
        SimulatorMissing: there is no Yosys with slang. ElaborationError: it refuses the design.
    """
    yosys = translators.yosys()
    with tempfile.TemporaryDirectory(prefix="mmagold_translate_") as name:
        folder = Path(name)
        elaborated_by(yosys, dut, wrapper, _WRITTEN, folder)
        text = (folder / f"{NAME}.v").read_text(encoding="utf-8")
    return f"{_MARK}{yosys.name}: four states for Icarus Verilog\n{text}"


def elaborated_by(
    yosys: translators.Translator, dut: Dut, wrapper: str, commands: Sequence[str], folder: Path
) -> None:
    """Has Yosys elaborate the unit within its wrapper and run these commands, in a folder.

    Raises:
        ElaborationError: it refuses the design.
    """
    (folder / f"{NAME}.sv").write_text(wrapper, encoding="utf-8")
    sources = (*dut.sources, folder / f"{NAME}.sv")
    design = Design(sources, NAME, dut.include, dut.defines, libraries=dut.libraries)
    read_by(yosys, design, commands, folder, f"the DUT {dut.name}")


def read_by(
    yosys: translators.Translator,
    design: Design,
    commands: Sequence[str],
    folder: Path,
    what: str,
    **limit: float,
) -> None:
    """Has Yosys elaborate a design and run these commands, in a folder; `limit` as for its runs.

    Raises:
        ElaborationError: it refuses the design; the message calls it `what`.
    """
    defines, parameters = design.defines or {}, design.parameters or {}
    lines = [*_READ, f"--top {design.top}"]
    lines += [f"-G {_quoted(f'{key}={literal(value)}')}" for key, value in parameters.items()]
    lines += [f"-D {_quoted(f'{key}={value}' if value else key)}" for key, value in defines.items()]
    lines += [f"-I {_quoted(path)}" for path in design.include]
    lines += [f"-y {_quoted(path)}" for path in design.libraries]
    lines += [
        _quoted(_readable(path, folder / f"{at}_{path.name}")) for at, path in enumerate(design.sources)
    ]
    (folder / "arguments.f").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = ("read_slang -f arguments.f", "proc")
    translators.run_yosys(yosys, [*read, *commands], folder, what, **limit)


def _readable(path: Path, copy: Path) -> Path:
    """A source, or a `copy` of it in which no name begins with $. Such names are in what Yosys wrote itself;
    slang hands them on as they are, and Yosys then gives them to cells of its own. Lines stay."""
    text = path.read_bytes()
    if b"\\$" not in text:
        return path
    copy.write_bytes(text.replace(b"\\$", b"\\_$"))
    return copy


def _quoted(value: object) -> str:
    """A word of slang's command files, in which $ and backslashes mean something."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", str(value)) + '"'


def translator_of(wrapper: Path) -> str:
    """Who translated the design of a build, whose wrapper this is; "" where it is the designer's own text."""
    with wrapper.open(encoding="utf-8") as file:
        first = file.readline()
    return first.removeprefix(_MARK).partition(":")[0] if first.startswith(_MARK) else ""
