"""Writes the first draft of a dut.yaml from the ports of a designer's module; guesses are marked GUESS.

Ports are read with a simulator's front end (rtl_tb/dut/ports.py, for VHDL rtl_tb/dut/vhdl.py). Roles come
from rtl_tb/dut/roles.py, and rtl_tb/dut/draft_text.py writes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from golden.catalog import architectures
from golden.catalog.lookup import instruction as find_instruction
from golden.catalog.unit_files import load_instruction
from golden.model.instruction import Instruction
from golden.vectors.word import WordLayout
from rtl_tb.dut.description import PLACEHOLDER
from rtl_tb.dut.draft_text import GUESS, lines_of_the_rest, port_lines, timing_lines
from rtl_tb.dut.given import Given, paths_from
from rtl_tb.dut.headers import tops
from rtl_tb.dut.matching import CONTROL_ROLES
from rtl_tb.dut.port_check import check_parameters
from rtl_tb.dut.ports import Module
from rtl_tb.dut.readings import elaborated, shortened_message
from rtl_tb.dut.roles import Roles, complete, find_roles, layout_of, taken_apart
from rtl_tb.dut.sources import in_vhdl
from rtl_tb.dut.structure import Structure, reset_by_text, structure_of
from rtl_tb.dut.yaml_text import flow, scalar

_NOTHING_GIVEN = {
    False: "# include: [folder]    defines: {NAME: value}    parameters: {NAME: value}",
    True: "# parameters: {generic: value}    vhdl: {standard: 2008, libraries: {name: [file.vhd]}}",
}
"""What a draft says of more keys, in Verilog and in VHDL."""


def draft(
    sources: Sequence[Path],
    top: str | None = None,
    instruction: str | None = None,
    folder: Path | None = None,
    given: Given | None = None,
) -> str:
    """Returns the text of a dut.yaml for the module in `sources`.

    Args:
        sources: the designer's files, in compile order.
        top: the top module; may be left out where only one module is nobody's child.
        instruction: "architecture:name" or the .yaml file of a unit; None guesses one from the widths.
        folder: where the file will lie, by default the working directory;
            paths in it are relative to this folder.
        given: file lists, include folders, macros and parameters.

    Raises:
        ElaborationError: no simulator takes the sources.
        UnknownNameError, SpecError: there is no such instruction, the unit's file is wrong, or a source is no
            file.
    """
    # 1. The top module with its ports, from the first tool that takes the sources.
    folder = folder or Path()
    given = given or Given()
    design = given.design(sources, top)
    vhdl = in_vhdl(design.sources)
    units = tops(design) if top is None and not vhdl else []
    design = replace(design, top=units[0]) if len(units) == 1 else design
    asked = design
    top_module, design, edition, remark = elaborated(design, given.vhdl if vhdl else None)
    if not vhdl:  # GHDL refuses a generic that the entity lacks
        check_parameters("-G", given.parameters, top_module)
    sources = sources if design is asked or given.filelists else design.sources
    standard = "" if edition is None or edition.standard == given.vhdl.standard else edition.standard
    module = taken_apart(top_module)
    # 2. The unit: the one that is named, or one whose operands are as wide as the ports.
    candidates = [instruction] if instruction else _candidates(module, find_roles(module, None))
    unit = _instruction(candidates[0]) if candidates else None
    layout = layout_of(module, unit) if unit else None
    # 3. The role of each port; without known registers names alone decide, and the draft says so.
    read = structure_of(replace(design, top=module.name), edition)
    structure = read if isinstance(read, Structure) else None
    roles = find_roles(module, unit, structure)
    if structure is None and (reset := roles.port("reset")) is not None:
        roles.reset = reset_by_text(design.sources, reset)
    # 4. What still lacks a port gets one that is left; from here on `layout` is that of one transfer.
    if unit is not None and layout is not None:
        layout = complete(roles, module, unit, layout)
    unread = shortened_message(read) if isinstance(read, str) else ""
    lines = [
        f"# First draft for {module.name}, from its ports. Check what is marked GUESS; docs/dut.md explains "
        "every key.",
        *remark,
        *([f"# Its registers are not known, and names decide: {unread}"] if unread else []),
        f"dut: {scalar(module.name)}",
        f"top: {scalar(module.name)}",
        *([f"sources: {flow(paths_from(sources, folder))}"] if sources else []),
        *(given.lines(folder, standard) or [_NOTHING_GIVEN[vhdl]]),
        "",
        *(_given(instruction, folder) if instruction else _guessed(candidates, roles)),
        *(["level: tile"] if layout and layout.level == "tile" else []),
        "",
        *timing_lines(roles, unit),
        "",
        *port_lines(module, roles, layout, unit),
        *lines_of_the_rest(roles, module, unit),
        "# nan: exact | canonical | any      zero: strict | any",
        "compare: {nan: exact, zero: strict}",
    ]
    return "\n".join(lines) + "\n"


def _instruction(name: str) -> Instruction:
    if name.endswith((".yaml", ".yml")):
        return load_instruction(name)
    architecture, _, rest = name.partition(":")
    return find_instruction(architecture, rest)


def _candidates(module: Module, roles: Roles) -> list[str]:
    """Hopper's instructions with names of their own, one of each kind, whose dot product has exactly the
    widths of the ports, plainest first."""
    widths = {
        role: roles.found.roles[role].width for role in ("a", "b", "c", "d") if role in roles.found.roles
    }
    if len(widths) < 4:
        return []
    found = []
    for name, (entry, variables) in architectures.get_architecture("hopper").names().items():
        if entry.family.is_plain(variables):
            layout = WordLayout.of(find_instruction("hopper", name))
            if {field.name: field.width for field in layout.fields} == widths:
                found.append(f"hopper:{name}")
    return sorted(found, key=lambda name: (re.search(r"\.[sub]\d+\.", name) is not None, "satfinite" in name))


def _given(name: str, folder: Path) -> list[str]:
    is_unit = name.endswith((".yaml", ".yml"))
    return [f"unit: {scalar(os.path.relpath(name, folder))}" if is_unit else f"instruction: {name}"]


def _guessed(candidates: list[str], roles: Roles) -> list[str]:
    bits = {role: each.width for role, each in roles.found.roles.items() if role not in CONTROL_ROLES}
    widths = ", ".join(f"{role} {width}" for role, width in sorted(bits.items()))
    if not candidates:
        return [
            f"# Bits: {widths}. No instruction of Hopper has these; see `mmagold list`, or describe your "
            "own unit in a YAML file",
            "# of your own and write `unit: my_unit.yaml` instead.",
            f"instruction: {PLACEHOLDER}{GUESS}",
        ]
    others = [f"#   {name}" for name in candidates[1:6]]
    more = (
        [f"# Bits: {widths}. The same on Hopper (other architectures: `mmagold list`):", *others]
        if others
        else []
    )
    return [*more, f"instruction: {candidates[0]}{GUESS}: it has the widths of the ports"]
