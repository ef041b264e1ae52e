"""What one PTX instruction became, cut out of the machine code of its kernel (hw_capture.kernels.ptx_module).

Every instruction of the kernel has to be accounted for. The frame is known by what it does: it reads the
constants that the kernel without an instruction reads, computes an address (by its stride), loads the
operands and stores the results. The instruction's own part is what the stored values and the guards of the
stores depend on, followed back through the registers, and what is computed from that or from the operands
for nothing (ptxas leaves the upper half of some 64-bit values). What is neither is an error, not a guess;
and where no operand is reached, the compiler computed the result itself and there is nothing to show. NOPs
that only wait are left out.

In code without jumps registers are followed backwards in order; with jumps or calls, without regard to
order. A register pair is followed as both registers. Both can add a dependency that is not there; one that is
missed leaves an instruction unaccounted for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from golden.catalog import sass as tables
from golden.catalog.ptx_forms import Form, PtxList
from golden.catalog.sass import Row, Table
from hw_capture.errors import CompileError, RefusedLines, SassError
from hw_capture.kernels import ptx_module, sass, toolchain
from hw_capture.kernels.ptx_module import LAST_OFFSET, PREDICATE_MARK, RESULTS, STRIDE, Case, offset_of
from hw_capture.kernels.sass import is_label, mnemonic

_REGISTER = re.compile(r"(?<![\w.])(U?R|U?P|B)(\d+)(?!\w)")
_PREDICATE = re.compile(r"U?P(?:\d+|T)")
_FETCH = re.compile(
    r"(?:U?MOV|U?LDC\S*|LDCU\S*|IMAD\.MOV(?:\.U32)?) U?R\d+, (?:U?RZ, U?RZ, )?c\[0x0\]\[0x[0-9a-f]+\]"
)
_CONSTANT = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]")
_OUTSIDE = re.compile(r"\bSR_|\b(?:U?VOTEU?|ELECT|MATCH)\b")
"""What gives a result that depends on no operand: special registers, and what the threads of a warp do."""
_OWN_PLACE = re.compile(r"S2R R\d+, SR_TID\.Y")
_TAIL_COPY = re.compile(r"(?:MOV R\d+, UR\d+|IMAD\.U32 R\d+, RZ, RZ, UR\d+)")
_CONTROL = (
    "BRA",
    "BRX",
    "JMP",
    "JMX",
    "BSSY",
    "BSYNC",
    "BREAK",
    "CALL",
    "RET",
    "WARPSYNC",
    "BMOV",
    "YIELD",
    "EXIT",
)
_NO_RESULT = (
    *_CONTROL,
    "ST",
    "RED",
    "BAR",
    "MEMBAR",
    "FENCE",
    "NANOSLEEP",
    "NOP",
    "CCTL",
    "ERRBAR",
    "DEPBAR",
)
_WRITES_PAIR = re.compile(
    r"\.64\b(?!\.HI)|WIDE|^U?D(?:ADD|MUL|FMA|MNMX)|^(?:F2F|I2F)\.F64|^FRND\.F64|^F2I\S*\.[US]64"
    r"|^(?:FADD|FMUL|FFMA)2\b|^CS2R(?!\.32)|MNMX\.[US]64"
)
_GIVES_PREDICATES = re.compile(r"SETP|^U?PLOP3|^VOTE|^FCHK")
_READS_PAIR = re.compile(r"64|WIDE|^U?D(?:ADD|MUL|FMA|SETP|MNMX|SET)|\.HI\b|^(?:FADD|FMUL|FFMA)2\b")
_ADDRESS = re.compile(r"\+0x([0-9a-f]+)\]")
_SUBROUTINE = re.compile(r"\$?(?:__internal_\d+_)?\$(\S+?)\)?$")


@dataclass(frozen=True)
class Isolated:
    """The part of the machine code that stands for one form.

    names: its mnemonics in the order of the code, calls among them. routines: the instructions of each
        subroutine that it calls. untouched: letters of loaded sources on which the result does not depend.
    """

    names: tuple[str, ...]
    routines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    untouched: str = ""

    @property
    def constant(self) -> bool:
        """Whether the compiler knew the result: it depends on no source at all."""
        return self.untouched == "all"


@dataclass(frozen=True)
class _Line:
    """One instruction: what it reads and writes, as names of registers."""

    text: str
    name: str
    written: frozenset[str]
    read: frozenset[str]
    guarded: bool

    @property
    def control(self) -> bool:
        return self.name.split(".")[0] in _CONTROL


@dataclass(frozen=True)
class Frame:
    """What every kernel of a module reads from the constant bank: `words`, addresses by 4 bytes. The
    parameters that are operands follow behind the last."""

    words: frozenset[int]

    @staticmethod
    def of(listing: Sequence[str]) -> Frame:
        """The frame of a target, from its kernel without an instruction."""
        lines = [_line(text) for text in listing if not is_label(text)]
        return Frame(frozenset(word for line in lines for word in _constants(line)))


def isolate(case: Case, listing: Sequence[str], frame: Frame) -> Isolated:
    """Cuts the form out of its kernel, a listing with labels.

    Raises:
        SassError: an instruction that is neither the frame's nor reached from the results, an operand that is
            not loaded, or a result that is not stored.
    """
    main, routines = _parts(listing)
    lines = [_line(text) for text in main if not is_label(text)]
    called = {name: [_line(text) for text in body if not is_label(text)] for name, body in routines.items()}
    _check_frame(case, lines)
    own = [number for number, line in enumerate(lines) if not _is_frame(line, case, frame)]
    if case.form.has_effect:
        return Isolated(tuple(lines[number].name for number in own), _named(called))
    reached = _reached(lines, [line for body in called.values() for line in body])
    copies = {number for number in own if lines[number].name == "NOP" or _is_tail_copy(case, lines, number)}
    left = [number for number in own if number not in reached and number not in copies]
    strange = [lines[number].text for number in left if number not in _for_nothing(lines, reached, left)]
    if strange:
        raise SassError(f"{case.label}: '{strange[0]}' is not the frame's, and no result depends on it")
    marks = [number for number in own if _holds(lines[number], PREDICATE_MARK)]
    names = tuple(lines[number].name for number in own if number not in copies and number not in marks)
    return Isolated(names, _named(called), _untouched(case, lines, reached, own))


def _parts(listing: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The kernel itself and its subroutines, without what fills the end: a jump to itself and NOPs."""
    main: list[str] = []
    routines: dict[str, list[str]] = {}
    current = main
    for text in listing:
        if text.startswith("$") and is_label(text):
            current = routines.setdefault(_routine_name(text.rstrip(":")), [])
        else:
            current.append(text)
    for body in (main, *routines.values()):
        _strip_end(body)
    return main, routines


def _strip_end(body: list[str]) -> None:
    while body and (body[-1] == "NOP" or is_label(body[-1])):
        body.pop()
    if len(body) > 1 and is_label(body[-2]) and body[-1] == f"BRA `({body[-2].rstrip(':')})":
        del body[-2:]
    while body and is_label(body[-1]):
        body.pop()


def _routine_name(label: str) -> str:
    found = _SUBROUTINE.search(label)
    return found[1] if found else label


def _named(called: dict[str, list[_Line]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(line.name for line in body) for name, body in called.items()}


# One instruction --------------------------------------------------------------------------------------------


def _line(text: str) -> _Line:
    name = mnemonic(text)
    guard = text.split()[0] if text.startswith("@") else ""
    operands = _operands(text.partition(f"{name} ")[2])
    count = 0 if _has_no_result(name) else _results(name, operands)
    pair, pairs = _WRITES_PAIR.search(name) is not None, _READS_PAIR.search(name) is not None
    written = frozenset(reg for one in operands[:count] for reg in _registers(one, pair))
    read = frozenset(reg for one in operands[count:] for reg in _registers(one, pairs))
    own_predicates = frozenset(reg for one in operands[1:count] for reg in _registers(one, False))
    return _Line(
        text, name, written, read | own_predicates | frozenset(_registers(guard, False)), bool(guard)
    )


def _has_no_result(name: str) -> bool:
    base = name.split(".")[0]
    return base in _NO_RESULT or base.startswith("ST")


def _operands(text: str) -> list[str]:
    """Operands; commas within brackets do not part them."""
    parts = re.split(r",\s*(?![^\[(]*[\])])", text.strip())
    return [part for part in parts if part]


def _results(name: str, operands: Sequence[str]) -> int:
    """How many operands at the front are results: one or two predicates of a comparison; predicates and the
    register that follows them; a register and the carries that follow it."""
    leading = 0
    while leading < len(operands) and _PREDICATE.fullmatch(operands[leading]):
        leading += 1
    if leading and _GIVES_PREDICATES.search(name):
        return min(leading, 2)
    count = leading + 1
    while not leading and count < len(operands) - 1 and _PREDICATE.fullmatch(operands[count]):
        count += 1
    return count


def _registers(text: str, wide: bool) -> list[str]:
    found = []
    for kind, number in _REGISTER.findall(text):
        found.append(f"{kind}{number}")
        if wide and kind.endswith("R"):
            found.append(f"{kind}{int(number) + 1}")
    if re.search(r"\bU?PR\b", text):
        found += [f"{'U' if 'UPR' in text else ''}P{number}" for number in range(7)]
    return found


# The frame --------------------------------------------------------------------------------------------------


def _is_frame(line: _Line, case: Case, frame: Frame) -> bool:
    if _is_load(line) or _is_store(line) or line.text == "EXIT" or _OWN_PLACE.fullmatch(line.text):
        return True
    if _holds(line, STRIDE):
        return True
    words = _constants(line)
    if words and words <= frame.words:
        return True
    operand = "u" in case.kinds and words and min(words) > max(frame.words)
    return bool(operand) and _FETCH.fullmatch(line.text) is not None


def _holds(line: _Line, marker: int) -> bool:
    """Whether a number that only the frame uses is an operand."""
    return f"{marker:#x}" in _operands(line.text.partition(f"{line.name} ")[2])


def _constants(line: _Line) -> frozenset[int]:
    """The words of the constant bank that an instruction reads."""
    found = _CONSTANT.search(line.text)
    if found is None:
        return frozenset()
    first = int(found[1], 16)
    return frozenset({first, first + 4} if ".64" in line.name or "WIDE" in line.name else {first})


def _is_load(line: _Line) -> bool:
    return line.name.split(".")[0] == "LDS" and not line.guarded


def _is_store(line: _Line) -> bool:
    return line.name.split(".")[0] == "STS"


def _offset(line: _Line) -> int:
    """Of the operand or result that a load or store is for, each from the first of its kind. (Of an operand
    of which one half matters that half alone may be loaded.)"""
    found = _ADDRESS.search(line.text)
    offset = (int(found[1], 16) if found else 0) - (RESULTS if _is_store(line) else 0)
    return offset - 4 if offset % 16 == 4 else offset


def _check_frame(case: Case, lines: Sequence[_Line]) -> None:
    """Every operand that has to be loaded is, every result is stored, and nothing else."""
    loads = sorted(_offset(line) for line in lines if _is_load(line))
    stores = sorted(_offset(line) for line in lines if _is_store(line))
    wanted = sorted([*(offset_of(place) for place in case.loaded), LAST_OFFSET])
    results = sorted([*(offset_of(place) for place in range(len(case.form.outputs))), LAST_OFFSET])
    never = [offset for place, offset in enumerate(results[:-1]) if case.form.outputs[place] == "pred"]
    lost = [offset for offset in results if offset not in stores]  # a guard that is known to be false
    if loads != wanted or sorted(stores + lost) != results or not set(lost) <= set(never) or not _ends(lines):
        raise SassError(
            f"{case.label}: loads at {loads} and stores at {stores}, expected {wanted} and {results}"
        )


def _ends(lines: Sequence[_Line]) -> bool:
    """One way out, behind which there may be code that is jumped to."""
    exits = [line for line in lines if line.name == "EXIT"]
    return len(exits) == 1 and not exits[0].guarded and lines[-1].control


def _is_tail_copy(case: Case, lines: Sequence[_Line], number: int) -> bool:
    """A result in a uniform register, moved to where the store can have it."""
    line = lines[number]
    if set(case.kinds) != {"u"} or _TAIL_COPY.fullmatch(line.text) is None:
        return False
    users = [later for later in lines[number + 1 :] if later.read & line.written]
    return all(_is_store(later) for later in users)


# Dependencies -----------------------------------------------------------------------------------------------


def _wanted(line: _Line) -> frozenset[str]:
    """What a store of a result asks for: its data and its guard."""
    data = line.text.rpartition(",")[2]
    guard = line.text.split()[0] if line.guarded else ""
    words = 4 if ".128" in line.name else 2 if ".64" in line.name else 1
    registers = _registers(data, words > 1)
    if line.guarded:
        registers = []
    return frozenset(registers + _registers(guard, False))


def _reached(lines: Sequence[_Line], called: Sequence[_Line]) -> set[int]:
    """The numbers of the lines on which the stored results depend."""
    results = {
        number for number, line in enumerate(lines) if _is_store(line) and _offset(line) != LAST_OFFSET
    }
    if called or any(line.control for line in lines[:-1]):
        return _reached_anyhow(lines, called, results)
    found: set[int] = set()
    needed: set[str] = set()
    for number in reversed(range(len(lines))):
        line = lines[number]
        if number in results:
            needed |= _wanted(line)
        elif line.written & needed:
            found.add(number)
            if not line.guarded:
                needed -= line.written
            needed |= line.read
    return found


def _reached_anyhow(lines: Sequence[_Line], called: Sequence[_Line], results: Iterable[int]) -> set[int]:
    """The same without regard to order; jumps and calls are always part of it."""
    needed = {register for number in results for register in _wanted(lines[number])}
    every = [*enumerate(lines), *((-1 - number, line) for number, line in enumerate(called))]
    found: set[int] = set()
    while True:
        more = [
            (number, line)
            for number, line in every
            if number not in found and number not in results and (line.control or line.written & needed)
        ]
        if not more:
            return {number for number in found if number >= 0}
        found |= {number for number, _ in more}
        needed |= {register for _, line in more for register in line.read}


def _for_nothing(lines: Sequence[_Line], reached: set[int], left: Sequence[int]) -> set[int]:
    """The instructions of `left` that compute with operands or with what was computed from them."""
    made = {register for number in reached for register in lines[number].written}
    made |= {register for line in lines if _is_load(line) for register in line.written}
    found: set[int] = set()
    while more := {number for number in left if number not in found and lines[number].read & made}:
        found |= more
        made |= {register for number in more for register in lines[number].written}
    return found


def _untouched(case: Case, lines: Sequence[_Line], reached: set[int], own: Sequence[int]) -> str:
    """The loaded sources that no result depends on; "all" where a result depends on no source at all."""
    used = {_offset(lines[number]) for number in reached if _is_load(lines[number])}
    for number, line in enumerate(lines):  # a loaded value that is stored as it came
        if _is_store(line) and _offset(line) != LAST_OFFSET:
            used |= {
                _offset(before)
                for before in lines[:number]
                if _is_load(before) and before.written & _wanted(line)
            }
    missing = [case.slot(place) for place in case.loaded if offset_of(place) not in used]
    outside = any(_OUTSIDE.search(lines[number].text) for number in own if number in reached)
    if "u" in case.kinds or not case.form.inputs or (outside and not case.loaded):
        return ""
    return "all" if len(missing) == len(case.loaded) else "".join(missing)


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
    frame = Frame.of(listings.get(ptx_module.FRAME, []))
    rows: dict[tuple[str, str], Row] = {}
    routines: dict[str, str] = {}
    for number, case in enumerate(built):
        if f"f{number}" not in listings:
            raise SassError(f"{case.label}: its kernel is missing from the disassembly")
        found = isolate(case, listings[f"f{number}"], frame)
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
