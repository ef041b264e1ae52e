"""Compiles the list of scalar PTX instructions for a target and cuts out what each became.

    table = ptx_to_sass.translate(ptx_forms.load(), "sm_90a")      # a golden.catalog.sass.Table

Forms that ptxas refuses for the target are left out with its reason; what it refuses for any other reason
than the target is an error of the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from golden.catalog import sass as tables
from golden.catalog.ptx_forms import Form, PtxList
from golden.catalog.sass import Row, Table
from hw_capture.errors import CompileError, RefusedLines, SassError
from hw_capture.kernels import isolate, ptx_module, sass, toolchain
from hw_capture.kernels.ptx_module import Case

_OF_THE_TARGET = re.compile(r"requires (?:at least )?\.target|not supported (?:on|for) \.target")
_OWN_TARGET = re.compile(r" (?:on|for) \.target '\w+'")


def translate(listed: PtxList, target: str, forms: Sequence[Form] | None = None) -> Table:
    """Returns what ptxas makes of the forms (default: the whole list) for a target such as "sm_90a".

    Raises:
        CompileError: ptxas refuses a form that it knows, or fails.
        SassError: the machine code of a form cannot be separated from its frame.
        ToolMissing: no ptxas, or no nvdisasm.
    """
    ptxas, disassembler = toolchain.require("ptxas"), toolchain.require("nvdisasm")
    chosen = ptx_module.cases(listed.forms if forms is None else forms)
    built, refused, cubin = _assembled(chosen, listed.isa, target)
    listings = sass.listings(toolchain.disassemble(cubin)) if built else {}
    frame = isolate.Frame.of(listings.get(ptx_module.FRAME, []))
    rows: dict[tuple[str, str], Row] = {}
    routines: dict[str, str] = {}
    for number, case in enumerate(built):
        if f"f{number}" not in listings:
            raise SassError(f"{case.label}: its kernel is missing from the disassembly")
        found = isolate.isolate(case, listings[f"f{number}"], frame)
        if found.constant:
            continue
        calls = tuple((name, len(names)) for name, names in found.routines.items())
        rows[case.form.name, case.kinds] = Row(case.form.name, case.kinds, tables.counted(found.names), calls)
        for name, names in found.routines.items():
            routines.setdefault(name, tables.counted(names))
    version = f"nvdisasm {toolchain.version(disassembler)}"
    return Table(target, toolchain.version(ptxas), version, rows, refused, routines)


def _assembled(chosen: Sequence[Case], isa: str, target: str) -> tuple[list[Case], dict[str, str], bytes]:
    """The cases that the target has, the reason by name for the missing ones, and the cubin."""
    left, refused = list(chosen), dict[str, str]()
    # ptxas reports some errors only when others are gone: six rounds are enough for the whole list.
    for _ in range(6):
        if not left:
            return [], refused, b""
        lines = list(ptx_module.lines(left, isa, target))
        try:
            return left, refused, toolchain.assemble("".join(text for text, _ in lines), target)
        except RefusedLines as error:
            for line, reason in error.lines.items():
                number = lines[line - 1][1]
                if number < 0 or not _OF_THE_TARGET.search(reason):
                    name = "the module" if number < 0 else left[number].label
                    raise CompileError(f"{name}: ptxas for {target}: {reason}") from None
                refused[left[number].form.name] = _OWN_TARGET.sub("", reason)
        left = [case for case in left if case.form.name not in refused]
    raise CompileError(f"ptxas for {target} refuses more forms each time")
