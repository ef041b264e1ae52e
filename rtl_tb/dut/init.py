"""Writes the first draft of a dut.yaml from the ports of a designer's module; guesses are marked GUESS.

Ports are read with a simulator's front end (rtl_tb/dut/ports.py, for VHDL rtl_tb/dut/vhdl.py). Roles come
from names and directions (an input called *valid* belongs to the operands, an output to the result),
arrangement from dimensions and widths.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from golden.catalog import architectures
from golden.catalog.json_schema import editor_line
from golden.catalog.lookup import instruction as find_instruction
from golden.catalog.unit_files import load_instruction
from golden.errors import SpecError
from golden.instruction import Instruction
from golden.vectors.word import RESULTS, Field, WordLayout
from rtl_tb.dut.fit import entries, entry_width
from rtl_tb.dut.parts import leaves
from rtl_tb.dut.ports import Design, Module, Port, read_ports
from rtl_tb.dut.sources import Sources, check_sizes, in_vhdl, packages_first, read_list
from rtl_tb.dut.vhdl import Vhdl, read_entity

GUESS = "  # GUESS"
_CLOCK = re.compile(r"(i_|s_)?a?(clk|clock|ck|cp)(_i|_in|in)?$", re.I)
_RESET = re.compile(r"(i_)?(n|a|s)?(rst|reset)(_?n|_ni|_i|_b)?(_i|_in)?$", re.I)
_RESET_LOW = re.compile(r"(^n(rst|reset))|((rst|reset)(_?n|_ni|_b)(_i|_in)?$)", re.I)
_ENABLE = re.compile(r"(i_)?(en|ena|enable|ce|clk_en|clken)(_?n)?(_i|i)?$", re.I)
_LOW = re.compile(
    r"(^|_)n_?(valid|vld|ready|rdy)|(valid|vld|ready|rdy|en|ena|enable|ce)_?n(i|o|_i|_o|_in|_out)?$", re.I
)
_AFFIXES = re.compile(
    r"^(i_|o_|in_|out_|req_|rsp_|resp_|din_|dout_|op_|operand_|src_|mat_|vec_|data_|s_|m_)|(_i|_o|_in|_out|_op|_vec|_mat|_data|_bits|_q|_reg)$",
    re.I,
)
_ALIASES = {
    "a": ("a", "opa", "operanda", "lhs", "x", "act", "activations"),
    "b": ("b", "opb", "operandb", "rhs", "w", "wgt", "weights", "y"),
    "c": ("c", "opc", "operandc", "acc", "accum", "accumulator", "addend", "psum", "bias", "z"),
    "d": ("d", "out", "result", "res", "sum", "dot", "y", "z", "q"),
    "metadata": ("metadata", "meta", "e", "sparsity", "sel"),
    "scale_a": ("scalea", "ascale", "sa", "sfa"),
    "scale_b": ("scaleb", "bscale", "sb", "sfb"),
    "flags": ("flags", "fflags", "status", "exceptions", "exc"),
    "clear": ("clear", "clr", "accclear", "accclr", "clearacc", "first", "init"),
    "load": ("load", "ld", "accload", "accld", "loadacc", "ldacc"),
    "mode": ("mode", "rm", "rnd", "round", "rounding", "opcode", "func", "function", "ctrl"),
}


_NOTHING_GIVEN = {
    False: "# include: [folder]    defines: {NAME: value}    parameters: {NAME: value}",
    True: "# parameters: {generic: value}    vhdl: {standard: 2008, libraries: {name: [file.vhd]}}",
}
"""What a draft says of more keys, in Verilog and in VHDL."""


@dataclass
class _Roles:
    """What each port seems to be for; `left` are inputs that no rule knows."""

    clock: str | None = None
    reset: str | None = None
    enable: str | None = None
    in_valid: str | None = None
    in_ready: str | None = None
    out_valid: str | None = None
    out_ready: str | None = None
    operands: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Given:
    """What a design needs beside its sources."""

    filelists: Sequence[Path] = ()
    include: Sequence[Path] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)

    def design(self, files: Sequence[Path], top: str | None) -> Design:
        """The whole design; raises SpecError where a file list is wrong, or a source is no file."""
        found = Sources()
        for name in self.filelists:
            found.add(read_list(name))
        for file in files:
            if not Path(file).is_file():
                raise SpecError(f"source '{file}' is no file; looked for it at {Path(file).absolute()}")
        found.files |= dict.fromkeys(Path(file).absolute() for file in files)
        check_sizes(found.files)
        include = [*found.include, *(path.absolute() for path in self.include)]
        defines = found.defines | dict(self.defines)
        if in_vhdl(found.files):
            if include or defines or found.libraries or self.types:
                raise SpecError("include folders, macros, types and -y mean nothing in VHDL")
            return Design(tuple(found.files), top, parameters=self.parameters)
        ordered = packages_first(found.files)
        libraries = tuple(found.libraries)
        return Design(ordered, top, include, defines, self.parameters, libraries, self.types)

    def lines(self, folder: Path) -> list[str]:
        """The same as keys of a dut.yaml."""
        lines = [f"filelist: {_paths(self.filelists, folder)}"] if self.filelists else []
        lines += [f"include: {_paths(self.include, folder)}"] if self.include else []
        given = {"defines": self.defines, "parameters": self.parameters, "types": self.types}
        for key, table in given.items():
            words = [  # "4" is a text of one letter
                f"{name}: {_scalar(value) if isinstance(value, str) else value}"
                for name, value in table.items()
            ]
            lines += [f"{key}: {{{', '.join(words)}}}"] if words else []
        return lines


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
    folder = folder or Path()
    given = given or Given()
    design = given.design(sources, top)
    vhdl = in_vhdl(design.sources)
    module = _taken_apart(read_entity(design, Vhdl()) if vhdl else read_ports(design))
    roles = _roles(module)
    candidates = [instruction] if instruction else _candidates(module, roles)
    unit = _instruction(candidates[0]) if candidates else None
    layout = WordLayout.of(unit) if unit else None
    modes = _mode_ports(unit, module, roles) if unit else {}
    lines = [
        editor_line("dut").rstrip(),
        f"# First draft for {module.name}, from its ports. Check what is marked GUESS; docs/dut.md explains "
        "every key.",
        f"dut: {_scalar(module.name)}",
        f"top: {_scalar(module.name)}",
        *([f"sources: {_paths(sources, folder)}"] if sources else []),
        *(given.lines(folder) or [_NOTHING_GIVEN[vhdl]]),
        "",
        *(_given(instruction, folder) if instruction else _guessed(candidates, module, roles)),
        "",
        *_timing(module, roles),
        "",
        *_ports(module, roles, layout, modes),
        *_rest(roles, module),
        "# nan: exact | canonical | any      zero: strict | any",
        "compare: {nan: exact, zero: strict}",
    ]
    return "\n".join(lines) + "\n"


def _paths(paths: Iterable[Path], folder: Path) -> str:
    return f"[{', '.join(_scalar(os.path.relpath(path, folder)) for path in paths)}]"


def _scalar(text: str) -> str:
    """A text as a value in YAML, also inside brackets: quoted where it would mean something else (on, 1e3,
    "a, b.sv")."""
    plain = re.fullmatch(r"[\w./$+-]+( [\w./$+-]+)*", text, re.ASCII) and yaml.safe_load(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)


_NUMBER = re.compile(r"(?:\d+\s*)?'([bodh])([\da-f][\da-f_]*)", re.IGNORECASE)
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


def parameter_value(text: str) -> int | str:
    """The value of a parameter as a command line gives it: a number, also as SystemVerilog writes it (8'h3f),
    or a text, in quotes or not."""
    if re.fullmatch(r"[+-]?\d+(_\d+)*", text, re.ASCII):
        return int(text)
    number = _NUMBER.fullmatch(text)
    if number is not None:
        try:
            return int(number[2], _BASES[number[1].lower()])
        except ValueError:  # a digit that the base has not
            return text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _instruction(name: str) -> Instruction:
    if name.endswith((".yaml", ".yml")):
        return load_instruction(name)
    architecture, _, rest = name.partition(":")
    return find_instruction(architecture, rest)


# Roles ------------------------------------------------------------------------------------------------------


def _taken_apart(module: Module) -> Module:
    """The module as if the fields of its structures were ports, but for structures that are one operand; of a
    union the first field stands for all."""
    parts = [part for port in module.ports.values() for part in leaves(_without_unions(port), _is_operand)]
    return replace(module, ports={part.name: part for part in parts})


def _without_unions(port: Port) -> Port:
    at: dict[int, Port] = {}
    for lsb, member in port.members:
        at.setdefault(lsb, _without_unions(member))
    return replace(port, members=tuple(at.items()))


def _is_operand(port: Port) -> bool:
    """Whether a structure is one number, with a sign, an exponent and a fraction, and no bus."""
    names = [member.name for _, member in port.members]
    several = {_operand(name, port.direction)[0] for name in names} & {"a", "b", "c", "d"}
    handshake = any(re.search(r"valid|vld|ready|rdy", name, re.I) for name in names)
    return _operand(port.name, port.direction)[0] is not None and not several and not handshake


def _roles(module: Module) -> _Roles:
    roles = _Roles()
    for name, port in module.ports.items():
        control = _control(name, port) if port.width == 1 else None
        operand, _ = _operand(name, port.direction)
        if control and getattr(roles, control) is None:
            setattr(roles, control, name)
        elif port.header and name.rpartition(".")[2] in (roles.clock, roles.reset):
            continue  # the wrapper connects it
        elif operand:
            roles.operands.setdefault(operand, []).append(name)
        elif port.direction == "output":
            roles.open.append(name)
        else:
            roles.left.append(name)
    for operand, names in roles.operands.items():
        roles.operands[operand] = _one_or_list(operand, names, roles)
    if "d" not in roles.operands and roles.open:
        widest = max(roles.open, key=lambda name: module.ports[name].width)
        roles.operands["d"] = [widest]
        roles.open.remove(widest)
    return roles


def _control(name: str, port: Port) -> str | None:
    """The attribute of _Roles that a one-bit port fills, by its name and direction."""
    given, name = port.direction == "input", name.rpartition(".")[2]
    if re.search(r"valid|vld|start|push|strobe|stb|^go(_i)?$" + ("" if given else r"|(^|_)done"), name, re.I):
        return "in_valid" if given else "out_valid"
    if re.search(r"ready|rdy", name, re.I):
        return "out_ready" if given else "in_ready"
    for role, pattern in (("clock", _CLOCK), ("reset", _RESET), ("enable", _ENABLE)):
        if given and pattern.match(name):
            return role
    return None


def _operand(name: str, direction: str) -> tuple[str | None, int | None]:
    """(operand, number) of a port: "a_i" is ("a", None), "a3" is ("a", 3); (None, None) for a name that no
    rule knows."""
    name = name.rpartition(".")[2]
    match = re.fullmatch(r"(.*?)_?(\d+)?", _plain(name))
    stem = match[1].replace("_", "") if match else ""
    for operand, aliases in _ALIASES.items():
        if stem in aliases and (direction == "output") == (operand in RESULTS):
            return operand, int(match[2]) if match and match[2] else None
    # "data_out" and "in_a": an affix may have eaten all but another affix.
    if direction == "output" and name.lower() in ("out", "data_out", "out_data", "o_data", "m_data"):
        return "d", None
    return None, None


def _one_or_list(operand: str, names: list[str], roles: _Roles) -> list[str]:
    """Several ports of one operand are a list if they are numbered; otherwise the first counts."""
    direction = "output" if operand in RESULTS else "input"
    numbers = {name: _operand(name, direction)[1] for name in names}
    if len(names) == 1 or all(number is not None for number in numbers.values()):
        return sorted(names, key=lambda name: numbers[name] or 0)
    (roles.open if operand in RESULTS else roles.left).extend(names[1:])
    return names[:1]


# The instruction --------------------------------------------------------------------------------------------


def _candidates(module: Module, roles: _Roles) -> list[str]:
    """Hopper's instructions with names of their own, one of each kind, whose dot product has exactly the
    widths of the ports, plainest first."""
    if not {"a", "b", "c", "d"} <= set(roles.operands):
        return []
    widths = {
        operand: sum(module.ports[name].width for name in names)
        for operand, names in roles.operands.items()
        if operand != "flags"  # no instruction has any
    }
    found = []
    for name, (entry, variables) in architectures.get_architecture("hopper").names().items():
        if entry.family.is_plain(variables):
            layout = WordLayout.of(find_instruction("hopper", name))
            if {field.name: field.width for field in layout.fields} == widths:
                found.append(f"hopper:{name}")
    return sorted(found, key=lambda name: (re.search(r"\.[sub]\d+\.", name) is not None, "satfinite" in name))


def _given(name: str, folder: Path) -> list[str]:
    is_unit = name.endswith((".yaml", ".yml"))
    return [f"unit: {_scalar(os.path.relpath(name, folder))}" if is_unit else f"instruction: {name}"]


def _guessed(candidates: list[str], module: Module, roles: _Roles) -> list[str]:
    widths = ", ".join(
        f"{key} {sum(module.ports[n].width for n in names)}" for key, names in sorted(roles.operands.items())
    )
    if not candidates:
        return [
            f"# Bits: {widths}. No instruction of Hopper has these; see `mmagold list`, or describe your "
            "own unit in a YAML file",
            "# of your own and write `unit: my_unit.yaml` instead.",
            "instruction: architecture:name" + GUESS,
        ]
    others = [f"#   {name}" for name in candidates[1:6]]
    more = (
        [f"# Bits: {widths}. The same on Hopper (other architectures: `mmagold list`):", *others]
        if others
        else []
    )
    return [*more, f"instruction: {candidates[0]}{GUESS}: it has the widths of the ports"]


# Clock, reset, handshake ------------------------------------------------------------------------------------


def _timing(module: Module, roles: _Roles) -> list[str]:
    lines = [f"clock: {_scalar(roles.clock)}"] if roles.clock else ["# clock: clk"]
    if roles.reset:
        active = "low" if _RESET_LOW.search(roles.reset) else "high"
        lines.append(
            f"reset: {{port: {_scalar(roles.reset)}, active: {active}, synchronous: true, cycles: "
            f"4}}{GUESS}: polarity by name"
        )
    lines.append("handshake:")
    if roles.in_valid and roles.out_valid:
        ready = bool(roles.in_ready or roles.out_ready)
        lines.append(f"  kind: {'valid_ready' if ready else 'valid'}")
        lines += [
            _side("input", roles.in_valid, roles.in_ready),
            _side("output", roles.out_valid, roles.out_ready),
        ]
        lines += [] if ready else ["  # interval: 1    # cycles from one set of operands to the next"]
    elif roles.clock:
        lines += [
            f"  kind: latency{GUESS}: there is no pair of valid ports",
            "  latency: measure    # or the number of cycles",
        ]
        lines += [_side("input", roles.in_valid, None)] if roles.in_valid else []
        lines += [_by_name(f"  enable: {_signal(roles.enable)}")] if roles.enable else []
        lines += ["  # interval: 1    # cycles from one set of operands to the next"]
    else:
        lines.append(f"  kind: combinational{GUESS}: there is no clock")
    return lines


def _side(side: str, valid: str, ready: str | None) -> str:
    signals = {"valid": valid} | ({"ready": ready} if ready else {})
    words = ", ".join(f"{role}: {_signal(name)}" for role, name in signals.items())
    return _by_name(f"  {side}: {{{words}}}")


def _signal(name: str) -> str:
    """A signal of the handshake; active low where its name says so."""
    low = _LOW.search(name.rpartition(".")[2])
    return f"{{port: {_scalar(name)}, active: low}}" if low else _scalar(name)


def _by_name(line: str) -> str:
    """A line of the handshake, marked where a polarity is guessed."""
    return f"{line}{GUESS}: polarity by name" if "active: low" in line else line


# Ports ------------------------------------------------------------------------------------------------------


def _mode_ports(unit: Instruction, module: Module, roles: _Roles) -> dict[str, str]:
    """The port of each field of `mode`, where every one has an input of its name; takes them from the
    rest."""
    names = [part.name for part in unit.modes.fields] if unit.modes else []
    inputs = [name for name, port in module.ports.items() if port.direction == "input"]
    found = {
        name: port
        for name in names
        for port in inputs
        if _plain(port) == name.lower() and port != roles.clock
    }
    if len(found) < len(names):
        return {}
    roles.left = [name for name in roles.left if name not in found.values()]
    for operand, ports in list(roles.operands.items()):
        if set(ports) & set(found.values()):
            del roles.operands[operand]
    return found


def _plain(name: str) -> str:
    """A port's name in small letters without what only says that it is one."""
    plain = name.rpartition(".")[2]
    while (shorter := _AFFIXES.sub("", plain)) != plain and shorter:
        plain = shorter
    return plain.lower()


def _ports(module: Module, roles: _Roles, layout: WordLayout | None, modes: Mapping[str, str]) -> list[str]:
    fields = {item.name: item for item in layout.fields} if layout else {}
    lines = ["# Element 0 in the least significant bits, unless order: descending.", "ports:"]
    for operand in fields or ("a", "b", "c", "d"):
        names = roles.operands.get(operand)
        if operand == "mode" and modes:
            inside = ", ".join(f"{name}: {_scalar(port)}" for name, port in modes.items())
            lines.append(f"  mode: {{{inside}}}")
        elif names is None:
            lines.append(f"  {operand}: {operand}{GUESS}: no port looks like it")
        else:
            lines.append(f"  {operand}: {_arrangement(names, module, fields.get(operand))}")
    for operand in set(roles.operands) - set(fields) if fields else ():
        lines.append(
            f"  # {operand}: {', '.join(roles.operands[operand])}, but the instruction has no such operand"
        )
    return lines


def _arrangement(names: list[str], module: Module, item: Field | None) -> str:
    port = module.ports[names[0]]
    array = "unpacked" if port.unpacked else "packed" if port.packed else None
    array = array if len(names) == 1 else None
    width = entry_width(port, array)
    count = entries(port, array) if array else len(names)
    ports = _scalar(names[0]) if len(names) == 1 else f"[{', '.join(map(_scalar, names))}]"
    if item and count > 1 and width > item.bits and width % item.bits == 0 and count * width == item.width:
        elements = f", word: {{elements: {width // item.bits}}}"
        return (
            f"{{port: {ports}"
            + (f", array: {array}" if array else "")
            + elements
            + "}"
            + GUESS
            + ": words of several elements"
        )
    text = f"{{port: {ports}, array: {array}}}" if array else ports
    if item and count * width != item.width:
        text += f"{GUESS}: {count * width} bits, but the operand has {item.elements} x {item.bits}"
    return text


def _rest(roles: _Roles, module: Module) -> list[str]:
    lines = []
    left = [*roles.left, *_unused_controls(roles)]
    if left:
        lines += [
            "# Inputs of unknown purpose, tied for now.",
            "constants:",
            *(f"  {_scalar(name)}: {_tied(module.ports[name])}" for name in left),
        ]
    if roles.open:
        lines.append(f"# Outputs left open: {', '.join(roles.open)}")
    return [*lines, ""]


def _tied(port: Port) -> str:
    """The value of an input that is tied: a name where its type has names."""
    if not port.items:
        return f"0{GUESS}"
    names = list(port.items)
    return f"{names[0]}{GUESS}: one of {', '.join(names)}"


def _unused_controls(roles: _Roles) -> Iterable[str]:
    """Control inputs that the chosen kind of handshake does not name."""
    if roles.in_valid and roles.out_valid:
        return [roles.enable] if roles.enable else []
    unused = [roles.out_ready, None if roles.clock else roles.in_valid, None if roles.clock else roles.enable]
    return [name for name in unused if name]
