"""What the registers of a unit say of its control signals: whether a reset is asynchronous and with which
value it acts, whether an input stops the whole pipeline or travels through it as a valid.

Yosys with slang elaborates the unit alone. Inputs are then assumed to have a value, and its netlist is
resolved bit by bit: each becomes a constant, or the bit that it is a copy of, or stays what it is.
"""

from __future__ import annotations

import json
import operator
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rtl_tb.dut.port_fields import places
from rtl_tb.dut.ports import Design, Port
from rtl_tb.dut.translated import read_by
from rtl_tb.dut.vhdl import Vhdl
from rtl_tb.dut.vhdl_synthesis import to_verilog
from rtl_tb.errors import RtlError
from rtl_tb.simulators import translators

Bit = int | str
"""A bit of a netlist: its number, or "0", "1", "x", "z"."""
Values = dict[Bit, Bit]
"""What each bit is under an assumption: a constant, or a bit that it is a copy of."""
_FILE = "structure.json"
_NUMBER_BITS = 256
"""Bits of sums and products of which each bit is looked at on its own: a product of two doubles and more."""
_WORDS = 32
"""Words of an array that is taken for so many registers: a delay line, no memory."""
_RESET_CYCLES = 4
"""Cycles of reset that are followed: a synchroniser of two registers, and one more."""
_COMMANDS = (
    "flatten",
    *("memory_collect", f"memory_map r:SIZE<={_WORDS}", "opt_expr", "opt_clean"),
    *("memory -nomap -nordff", "opt_clean"),
    f"write_json {_FILE}",
)


@dataclass(frozen=True)
class Reset:
    """How a reset acts.

    Attributes:
        active_low: whether it acts with 0. synchronous: whether it acts at an edge of the clock alone.
    """

    active_low: bool
    synchronous: bool


@dataclass(frozen=True)
class _Register:
    """A register, a latch or a memory: what it gives, takes, and needs to take it.

    Attributes:
        q, d: its bits, in the same order where it is no memory.
        enables: groups of bits of which one must have the value behind it for it to change: its clock, its
            enable, the enables of the writes of a memory.
        loads: a bit with which it is set or reset at once, and the value with which that acts.
        latch: whether it is a latch, which a cell that gates a clock has before its gate.
        clock: the bit at whose edges it takes; nothing for a latch.
        loaded: the bits that an asynchronous reset makes it; nothing without one.
    """

    q: tuple[Bit, ...]
    d: tuple[Bit, ...]
    enables: tuple[tuple[tuple[Bit, ...], str], ...]
    loads: tuple[tuple[Bit, str], ...]
    memory: bool = False
    latch: bool = False
    clock: tuple[Bit, ...] = ()
    loaded: tuple[Bit, ...] = ()

    @property
    def before(self) -> list[Bit]:
        """The bits of the netlist that decide what it takes."""
        enables = (bit for group, _ in self.enables for bit in group)
        return [bit for bit in (*self.d, *enables) if isinstance(bit, int)]


def structure_of(design: Design, vhdl: Vhdl | None = None) -> Structure | str:
    """The structure of a design's top module, of `vhdl` that of GHDL's synthesis; where there is no Yosys
    with slang, or one of them refuses the design, the reason."""
    if design.types or design.top is None:
        return "it has parameters that are types"
    seconds = 60.0  # for Yosys and GHDL each: a draft does not wait longer; names decide then
    try:
        with tempfile.TemporaryDirectory(prefix="mmagold_structure_") as name:
            what = f"the module {design.top}"
            if vhdl is not None:
                design = to_verilog(design, vhdl, Path(name), what, seconds)
            read_by(translators.yosys(), design, _COMMANDS, Path(name), what, limit=seconds)
            modules = json.loads((Path(name) / _FILE).read_text(encoding="utf-8"))["modules"]
    except RtlError as error:
        return " ".join(str(error).split())
    module = modules.get(design.top)
    return Structure(module) if module is not None else f"its netlist has no module {design.top}"


_EDGE = r"\b(pos|neg)edge\s+{0}\b"
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def reset_by_text(sources: Iterable[Path], name: str) -> Reset | None:
    """How a reset acts, as the processes say it that wait for its edge; None where none does, or where they
    differ. For a text that Yosys does not read."""
    texts = [_COMMENTS.sub(" ", path.read_text(encoding="utf-8", errors="replace")) for path in sources]
    each = re.compile(_EDGE.format(re.escape(name)))
    edges = {edge for text in texts for edge in each.findall(text)}
    return Reset(edges == {"neg"}, False) if len(edges) == 1 else None


class Structure:
    """A netlist of one module, as Yosys writes it."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        self._ports: Mapping[str, Any] = module["ports"]
        cells = list(module["cells"].values())
        self._registers = [_register(cell) for cell in cells if _is_register(cell)]
        self._of: dict[Bit, int] = {
            bit: at for at, each in enumerate(self._registers) for bit in each.q if isinstance(bit, int)
        }
        self._driver: dict[Bit, Mapping[str, Any]] = {}
        self._inputs: dict[Bit, Sequence[Bit]] = {}
        for cell in cells:
            if not _is_register(cell):
                self._driver.update(dict.fromkeys(_side(cell, "output"), cell))
                self._inputs |= _inputs(cell)
        self._order = self._sorted(cells)
        self._first: Values = {}
        for net in module.get("netnames", {}).values():
            initial = reversed(str(net.get("attributes", {}).get("init", "")))
            self._first |= {bit: at for bit, at in zip(net["bits"], initial, strict=False) if at in "01"}

    @property
    def cells(self) -> int:
        """How many cells it has, other than registers."""
        return len(self._order)

    @property
    def has_registers(self) -> bool:
        """Whether it holds anything."""
        return bool(self._registers)

    def bits(self, port: Port | None) -> tuple[Bit, ...]:
        """The bits of a port, or of a field of one; nothing where the netlist does not have them one by
        one."""
        if port is None:
            return ()
        found: list[Bit] = []
        alone = self._ports.get(port.name.replace(".", "_")) if "." in port.name else None
        if alone is not None:  # GHDL's synthesis makes a port of each field
            return tuple(dict.fromkeys(alone["bits"]))
        at, width = places(port)
        for name, index, lsb in at:
            whole = self._ports.get(name, {}).get("bits", ())
            found += whole if index is not None else whole[lsb : lsb + width]
        return tuple(dict.fromkeys(found))

    def clocked(self, port: Port) -> int:
        """How many registers an input clocks, also behind gates."""
        bits = set(self.bits(port))
        return sum(bool(bits & self._cone(each.clock, False)[0]) for each in self._registers)

    def set_at_once(self, port: Port) -> int:
        """How many registers an input sets without an edge of the clock, with either value."""
        bits = self.bits(port)
        return max(self._set_by(bits[0], value)[0] for value in "01") if len(bits) == 1 else 0

    def sets(self, port: Port) -> int:
        """How many registers an input sets to constants, at once or within a few cycles, with that value with
        which it sets more."""
        bits = self.bits(port)
        return max(sum(self._set_by(bits[0], value)) for value in "01") if len(bits) == 1 else 0

    def reset(self, port: Port) -> Reset | None:
        """How a reset acts; None where no register shows it."""
        bits = self.bits(port)
        if len(bits) != 1:
            return None
        at_once, at_edges = zip(*(self._set_by(bits[0], value) for value in "01"), strict=True)
        active = [once + edges for once, edges in zip(at_once, at_edges, strict=True)]
        if active[0] == active[1]:
            return None
        low = active[0] > active[1]
        return Reset(low, not at_once[0 if low else 1])

    def stops(
        self,
        control: Port,
        outputs: Sequence[Port],
        reset: Port | None,
        low: bool,
        assumed: Mapping[str, Sequence[Port]] = MappingProxyType({}),
    ) -> str:
        """The value with which an input stops every register before these outputs while the reset is inactive
        and ports have `assumed` values; "" where none does, there is no register, or nothing is known."""
        bits = self.bits(control)
        ends = [bit for port in outputs for bit in self.bits(port)]
        if len(bits) != 1 or not ends:
            return ""
        before = [self._registers[at] for at in self._registers_before(ends)]
        if not before:
            return ""
        idle: Values = dict.fromkeys(self.bits(reset), "1" if low else "0")
        for value, ports in assumed.items():
            idle |= {bit: value for port in ports for bit in self.bits(port)}
        for value in "01":
            values = self._behind_latches({**idle, bits[0]: value})
            if all(each.latch or _is_constant(each, values) for each in before):
                return value
        return ""

    def set_to_constants(self, assumed: Mapping[str, Sequence[Port]]) -> set[int]:
        """The registers that take a constant at the next edge where these ports have these values; none where
        one of the ports is not known."""
        known: Values = {}
        for value, ports in assumed.items():
            for port in ports:
                bits = self.bits(port)
                if not bits:
                    return set()
                known |= dict.fromkeys(bits, value)
        values = self._resolved(known)
        return {
            at
            for at, each in enumerate(self._registers)
            if not each.memory and all(values.get(d, d) in ("0", "1") for d in each.d)
        }

    def registers_at(self, outputs: Sequence[Port]) -> set[int]:
        """The registers that outputs show as they are."""
        return {self._of[bit] for port in outputs for bit in self.bits(port) if bit in self._of}

    def reaches(self, source: Port, output: Port, through_registers: bool = True) -> bool:
        """Whether an output depends on any bit of an input."""
        found, _ = self._cone(self.bits(output), through_registers)
        return bool(found & set(self.bits(source)))

    def reached(self, sources: Sequence[Port], output: Port, lowest: bool = False) -> int:
        """On how many bits of these inputs an output depends, or its lowest bit alone."""
        ends = self.bits(output)[:1] if lowest else self.bits(output)
        return len(self._cone(ends, True)[0] & {bit for port in sources for bit in self.bits(port)})

    def multiplies(self, a: Sequence[Port], b: Sequence[Port]) -> bool:
        """Whether a multiplier has a factor that depends on `a` and one that depends on `b`."""
        wanted = [{bit for port in ports for bit in self.bits(port)} for ports in (a, b)]
        for cell in self._order:
            if cell["type"] == "$mul":
                one, other = (self._cone(cell["connections"][pin], True)[0] for pin in "AB")
                if any(x & one and y & other for x, y in (wanted, wanted[::-1])):
                    return True
        return False

    def reaches_later(self, source: Port, output: Port) -> bool:
        """Whether an output depends on an input of earlier cycles."""
        _, last = self._cone(self.bits(output), False)
        before = [bit for at in last for bit in self._registers[at].before]
        return bool(self._cone(before, True)[0] & set(self.bits(source)))

    def distance(self, source: Port, outputs: Sequence[Port]) -> int | None:
        """The fewest registers on the way from an input to these outputs; None where there is no way, or
        where it may lead through a memory, which may be several registers."""
        wanted, seen = set(self.bits(source)), set[int]()
        ends: list[Bit] = [bit for port in outputs for bit in self.bits(port)]
        count = 0
        while ends:
            found, registers = self._cone(ends, False)
            if found & wanted:
                return count
            if any(self._registers[at].memory for at in registers):
                return None
            ends = [bit for at in registers - seen for bit in self._registers[at].d]
            seen |= registers
            count += 1
        return None

    def loads(
        self,
        controls: Sequence[Port],
        sources: Sequence[Port],
        reset: Port | None = None,
        low: bool = False,
        behind: int = 1,
    ) -> dict[str, str]:
        """The inputs of one bit that let registers take what comes from these sources, and the value with
        which they do; with the other these registers keep what they have, or are cleared. The reset is
        inactive. What an
        input does not decide alone it may decide while the other ones are 0: either of two moves a weight on.
        Of an input with which some take and others keep, the value with which a register next to the sources
        takes, behind EITHER."""
        wanted, takes = {bit for port in sources for bit in self.bits(port)}, list[_Register]()
        before = [(register, self._cone(register.d, False)[0]) for register in self._registers]
        for _ in range(1 + behind):  # the registers of the sources, and those behind them
            more = [each for each, bits in before if not each.latch and wanted & bits and each not in takes]
            takes += more
            wanted |= {bit for register in more for bit in register.q}
        idle: Values = dict.fromkeys(self.bits(reset), "1" if low else "0")
        zeros: Values = idle | {bit: "0" for port in controls for bit in self.bits(port)}
        found: dict[str, str] = {}
        for port in controls:
            bits = self.bits(port)
            for others in (idle, zeros) if len(bits) == 1 else ():
                zero, one = (self._resolved({**others, bits[0]: value}) for value in "01")
                keep = [(_takes_nothing(each, zero), _takes_nothing(each, one)) for each in takes]
                changes = [value for change, value in _TAKES_WITH.items() if change in keep]
                if changes:
                    first = next(_TAKES_WITH[change] for change in keep if change in _TAKES_WITH)
                    found[port.name] = changes[0] if len(changes) == 1 else f"{EITHER}{first}"
                    break
        return found

    def stages(self, outputs: Sequence[Port]) -> int:
        """1 where no register before these outputs takes what another one gives, 2 where one does, 0 without
        registers."""
        before = self._registers_before([bit for port in outputs for bit in self.bits(port)])
        for at in before:
            found, _ = self._cone(self._registers[at].d, False)
            if any(self._of.get(bit, at) != at for bit in found):
                return 2
        return min(len(before), 1)

    # Cycle by cycle -----------------------------------------------------------------------------------------

    def behind_reset(self, reset: Port | None, low: bool) -> Values:
        """The constants that registers have behind the reset, or at the start."""
        on: Values = dict.fromkeys(self.bits(reset), "0" if low else "1")
        state = dict(self._first)
        for _ in range(_RESET_CYCLES if on else 0):
            state = self.next(state, self._resolved({**state, **on}))
        return state

    def cycles(self, state: Values, inputs: Iterable[Mapping[str, Sequence[Port]]]) -> Iterator[Values]:
        """What each bit is in each cycle from a state of the registers on, while inputs have these values and
        all others any: constants, or bits of the same cycle."""
        for given in inputs:
            now = {bit: value for value, ports in given.items() for port in ports for bit in self.bits(port)}
            values = self._resolved({**state, **now})
            yield values
            state = self.next(state, values)

    def settled(self, state: Values, given: Mapping[str, Sequence[Port]], most: int) -> Values:
        """The constants of registers once they stay as they are with these inputs, or after `most` cycles."""
        for values in self.cycles(state, [given] * most):
            before, state = state, self.next(state, values)
            if state == before:
                break
        return state

    def next(self, state: Values, values: Values) -> Values:
        """The constants of registers after an edge of the clock."""
        found: Values = {}
        for each in self._registers:
            if each.memory or each.latch:
                continue
            loads = [(values.get(load, load), active) for load, active in each.loads]
            enables = [values.get(bit, bit) for group, on in each.enables if on for bit in group]
            if any(now == active for now, active in loads):
                taken = [values.get(bit, bit) for bit in each.loaded]
            elif _is_constant(each, values):
                taken = [state.get(q, q) for q in each.q]
            else:
                taken = [values.get(d, d) for d in each.d]
            known = all(now in ("0", "1") for now, _ in loads) and all(now in ("0", "1") for now in enables)
            pairs = zip(each.q, taken, strict=False) if known else ()
            found |= {q: bit for q, bit in pairs if bit in ("0", "1")}
        return found

    def passed_on(self, reached: set[Bit], values: Values) -> set[Bit]:
        """The bits of registers that, after an edge of the clock, depend on bits reached before it."""
        found, shown = set[Bit](), self._shown(reached, values)
        for each in self._registers:
            if _is_constant(each, values):
                found |= reached & set(each.q)
            elif any(values.get(bit, bit) in shown for bit in each.before):
                found |= set(each.q)
        return found

    def show(self, outputs: Sequence[Port], reached: set[Bit], values: Values) -> bool:
        """Whether outputs depend on any of these bits in a cycle."""
        shown = self._shown(reached, values)
        return any(values.get(bit, bit) in shown for port in outputs for bit in self.bits(port))

    def _shown(self, reached: set[Bit], values: Values) -> set[Bit]:
        """The bits of a cycle that depend on any of these."""
        found = {bit for bit in reached if isinstance(values.get(bit, bit), int)}
        for cell in self._order:
            for bit in _side(cell, "output"):
                if values.get(bit, bit) == bit and bit not in found:
                    found |= {bit} if any(values.get(b, b) in found for b in self._inputs[bit]) else set()
        return found

    def feeding_themselves(self, outputs: Sequence[Port]) -> set[Bit]:
        """The registers before outputs of which a bit takes what another bit of the same one gives, without a
        register between them: sums, counts, words that shift. All of their bits."""
        found = set[Bit]()
        for at in self._registers_before([bit for port in outputs for bit in self.bits(port)]):
            each = self._registers[at]
            own = set(each.q) if not each.memory else set()
            if any(
                self._cone([d], False)[0] & own - {q} for q, d in zip(each.q, each.d, strict=False) if own
            ):
                found |= own
        return found

    # The netlist --------------------------------------------------------------------------------------------

    def _registers_before(self, ends: Iterable[Bit]) -> Collection[int]:
        return self._cone(ends, True)[1]

    def _cone(self, ends: Iterable[Bit], through_registers: bool) -> tuple[set[Bit], set[int]]:
        """The bits on which these depend, and the registers among them."""
        found, registers = set[Bit](), set[int]()
        left: list[Bit] = [bit for bit in ends if isinstance(bit, int)]
        while left:
            bit = left.pop()
            if bit in found:
                continue
            found.add(bit)
            if bit in self._of:
                at = self._of[bit]
                if through_registers and at not in registers:
                    left += self._registers[at].before
                registers.add(at)
            else:
                left += [each for each in self._inputs.get(bit, ()) if isinstance(each, int)]
        return found, registers

    def _set_by(self, bit: Bit, value: str) -> tuple[int, int]:
        """The registers that a value of an input sets at once, and those that it sets at the next edge."""
        known: Values = {bit: value}
        at_once, at_edges = set[int](), set[int]()
        for _ in range(_RESET_CYCLES):
            values = self._resolved(known)
            for at, each in enumerate(self._registers):
                if each.memory:
                    continue
                if any(values.get(load, load) == active for load, active in each.loads):
                    at_once.add(at)
                elif all((now := values.get(d, d)) in ("0", "1") and now != d for d in each.d):
                    at_edges.add(at)
                    known |= {q: values.get(d, d) for q, d in zip(each.q, each.d, strict=True)}
        return len(at_once), len(at_edges - at_once)

    def _behind_latches(self, known: Values) -> Values:
        """What each bit is once latches show what they are given, where that is a constant."""
        shown: Values = {}
        most = 8  # latches that are looked through: the gates of a few clocks
        for each in [one for one in self._registers if one.latch][:most]:
            opened: Values = {bit: active for group, active in each.enables for bit in group}
            values = self._resolved({**opened, **known})
            now = {q: values.get(d, d) for q, d in zip(each.q, each.d, strict=True)}
            shown |= {q: bit for q, bit in now.items() if bit in ("0", "1")}
        return self._resolved({**shown, **known})

    def _resolved(self, known: Values) -> Values:
        """What each bit is where some are known."""
        values = dict(known)
        for cell in self._order:
            # A bit of which nothing is known stands for itself, also by being left out.
            for bit, now in zip(cell["connections"].get("Y", ()), _outputs(cell, values), strict=False):
                values.setdefault(bit, bit if now is None else now)
        return values

    def _sorted(self, cells: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The cells without registers, each behind those that feed it; in a loop, in any order."""
        order: list[Mapping[str, Any]] = []
        begun = set[int]()
        for first in cells:
            stack = [(first, False)]
            while stack:
                cell, done = stack.pop()
                if done:
                    order.append(cell)
                elif id(cell) not in begun and not _is_register(cell):
                    begun.add(id(cell))
                    stack.append((cell, True))
                    feeding = (self._driver.get(bit) for bit in _side(cell, "input"))
                    stack += [(each, False) for each in feeding if each is not None]
        return order


def _side(cell: Mapping[str, Any], direction: str) -> list[Bit]:
    """The bits at the inputs or the outputs of a cell."""
    pins = cell["port_directions"]
    return [bit for pin, bits in cell["connections"].items() if pins[pin] == direction for bit in bits]


def _inputs(cell: Mapping[str, Any]) -> dict[Bit, Sequence[Bit]]:
    """The bits on which each bit at the output of a cell depends: of a multiplexer or a gate those at the
    same place, so that the words of an array that one multiplexer moves stay apart; of a sum or a product
    those at the same place and below."""
    pins, ends = cell["connections"], _side(cell, "output")
    kind = cell["type"].strip("$_").lower()
    width, signed = len(ends), str(cell["parameters"].get("A_SIGNED", "0"))[-1] == "1"
    sides = [pins.get(side, []) for side in "AB"]  # of a $pmux, B has a word for each bit of S
    if kind in ("add", "sub", "mul") and width <= _NUMBER_BITS:
        rows = [_extended(side, width, signed) for side in sides]
        return {bit: [*rows[0][: at + 1], *rows[1][: at + 1]] for at, bit in enumerate(ends)}
    if kind not in ("mux", "pmux", "and", "or", "xor", "xnor", "not", "pos", "buf"):
        return dict.fromkeys(ends, _side(cell, "input"))
    words = [side[at : at + width] for side in sides for at in range(0, len(side), width)]
    columns = zip(*(_extended(word, width, signed) for word in words), strict=True)
    return {bit: [*pins.get("S", []), *column] for bit, column in zip(ends, columns, strict=True)}


def _is_register(cell: Mapping[str, Any]) -> bool:
    return {"D", "Q"} <= cell["connections"].keys() or cell["type"] in ("$mem", "$mem_v2")


def _register(cell: Mapping[str, Any]) -> _Register:
    pins = {pin: tuple(bits) for pin, bits in cell["connections"].items()}
    if "Q" not in pins:
        d = (*pins["WR_DATA"], *pins["WR_ADDR"], *pins["RD_ADDR"])
        clock = (*pins.get("WR_CLK", ()), *pins.get("RD_CLK", ()))
        return _Register(pins["RD_DATA"], d, ((pins["WR_EN"], "1"),), (), memory=True, clock=clock)

    def active(pin: str) -> str:
        return str(cell["parameters"].get(f"{pin}_POLARITY", "1"))[-1]

    loads = [(bit, active(pin)) for pin in ("ARST", "ALOAD", "SET", "CLR") for bit in pins.get(pin, ())]
    enables = [(pins[pin], active(pin)) for pin in ("EN",) if pin in pins]
    # A clock that stands still, whichever edge it is that counts, changes nothing either.
    enables += [(pins["CLK"], "")] if "CLK" in pins else []
    latch = cell["type"].startswith(("$dlatch", "$adlatch"))
    loaded = pins.get("AD") or tuple(reversed(str(cell["parameters"].get("ARST_VALUE", ""))))
    return _Register(
        pins["Q"], pins["D"], tuple(enables), tuple(loads), False, latch, pins.get("CLK", ()), loaded
    )


EITHER = "either "
"""Before the value of an input with which one register takes what comes while others keep what they have."""
_TAKES_WITH = {(True, False): "1", (False, True): "0"}
"""The value of an input with which a register takes what comes, by whether it takes nothing with 0 and 1."""


def _is_constant(register: _Register, values: Values) -> bool:
    """Whether a register keeps what it has, at every edge."""
    for bits, active in register.enables:
        if all((now := values.get(bit, bit)) in ("0", "1") and now != active for bit in bits):
            return True
    return not register.memory and all(
        values.get(d, d) == q for q, d in zip(register.q, register.d, strict=True)
    )


def _takes_nothing(register: _Register, values: Values) -> bool:
    """Whether a register keeps what it has, or becomes a constant."""
    return _is_constant(register, values) or (
        not register.memory and all(values.get(d, d) in ("0", "1") for d in register.d)
    )


# One cell ---------------------------------------------------------------------------------------------------


def _outputs(cell: Mapping[str, Any], values: Values) -> Sequence[Bit | None]:
    """What each bit of a cell's output is; None: nothing that is known before."""
    pins = {pin: [values.get(bit, bit) for bit in bits] for pin, bits in cell["connections"].items()}
    kind, width = cell["type"].strip("$_").lower(), len(pins.get("Y", ()))
    a, b = pins.get("A", []), pins.get("B", [])
    signed = [str(cell["parameters"].get(f"{side}_SIGNED", "0"))[-1] == "1" for side in "AB"]
    if kind == "mux":
        return [_chosen(pins["S"][0], *each) for each in zip(a, b, strict=True)]
    if kind == "bwmux":
        return [_chosen(*each) for each in zip(pins["S"], a, b, strict=True)]
    if kind == "pmux":
        return _one_of(pins["S"], a, [b[at : at + width] for at in range(0, len(b), width)])
    if kind in ("pos", "buf"):
        return _extended(a, width, signed[0])
    if kind in ("and", "or", "not", "xor", "xnor"):
        rows = [_extended(side, width, all(signed)) for side in ((a, b) if b else (a,))]
        return [_bitwise(kind, each) for each in zip(*rows, strict=True)]
    if kind in _ARITHMETIC and all(bit in ("0", "1") for bit in (*a, *b)):
        number = _ARITHMETIC[kind](*map(_number, (a, b), (all(signed),) * 2))
        return [str(number >> at & 1) for at in range(width)]
    if kind in ("add", "sub", "mul"):
        return _with_zero(kind, [_extended(side, width, all(signed)) for side in (a, b)])
    if kind in _SHIFTS and all(bit in ("0", "1") for bit in b):
        by = _number(b, kind.startswith("shift") and signed[1]) * _SHIFTS[kind]
        whole = _extended(a, max(width, len(a)), signed[0])
        fill = whole[-1:] if kind == "sshr" and signed[0] else ["0"]
        return [whole[at] if 0 <= at < len(whole) else fill[0] for at in range(by, by + width)]
    first: Bit | None = None
    if kind in ("logic_not", "logic_and", "logic_or"):
        truths = [_any(side) for side in ((a, b) if b else (a,))]
        first = _bitwise(kind.removeprefix("logic_"), truths)
    elif kind in ("reduce_or", "reduce_bool"):
        first = _any(a)
    elif kind == "reduce_and":
        first = "0" if "0" in a else "1" if set(a) == {"1"} else None
    elif kind in ("eq", "ne", "eqx", "nex"):
        first = _equal(a, b, all(signed), kind.startswith("n"))
    return [first, *["0"] * (width - 1)]


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_SHIFTS = {"shl": -1, "sshl": -1, "shr": 1, "sshr": 1, "shift": 1, "shiftx": 1}
"""Cells that shift A by B, and the sign of a shift towards bit 0."""


def _number(bits: Sequence[Bit], signed: bool) -> int:
    """What constant bits mean."""
    value = sum((bit == "1") << at for at, bit in enumerate(bits))
    return value - (1 << len(bits)) if signed and bits and bits[-1] == "1" else value


def _extended(bits: Sequence[Bit], width: int, signed: bool) -> list[Bit]:
    fill: Bit = bits[-1] if signed and bits else "0"
    return [*bits, *[fill] * (width - len(bits))][:width]


def _with_zero(kind: str, sides: Sequence[Sequence[Bit]]) -> Sequence[Bit | None]:
    """A sum, a difference or a product of which one side is zero."""
    none = [set(side) == {"0"} for side in sides]
    if kind == "mul":
        return sides[none.index(True)] if any(none) else []
    if none[1]:
        return sides[0]
    return sides[1] if none[0] and kind == "add" else []


def _chosen(select: Bit, zero: Bit, one: Bit) -> Bit | None:
    if "x" in (zero, one):  # Yosys' own, of a side that an outer multiplexer leaves out
        return one if zero == "x" else zero
    return zero if select == "0" or zero == one else one if select == "1" else None


def _one_of(selects: Sequence[Bit], none: Sequence[Bit], words: Sequence[Sequence[Bit]]) -> list[Bit | None]:
    """Each bit of the words that may be chosen, where all of them have the same."""
    may = [word for select, word in zip(selects, words, strict=True) if select != "0"]
    if "1" not in selects:
        may.append(none)
    return [column[0] if len(set(column)) == 1 else None for column in zip(*may, strict=True)]


def _bitwise(kind: str, bits: Sequence[Bit | None]) -> Bit | None:
    """A gate: the constant that it gives in any case, or the bit that it lets through."""
    if kind == "not":
        return {"0": "1", "1": "0"}.get(str(bits[0])) if isinstance(bits[0], str) else None
    if kind in ("xor", "xnor"):
        known = set(bits) <= {"0", "1"}
        return str((bits.count("1") + (kind == "xnor")) % 2) if known else None
    wins, yields = ("0", "1") if kind == "and" else ("1", "0")
    left = {bit for bit in bits if bit != yields}
    if wins in left:
        return wins
    return yields if not left else left.pop() if len(left) == 1 else None


def _any(bits: Sequence[Bit]) -> Bit | None:
    """Whether any bit is 1: a constant, or the one bit that says it."""
    return _bitwise("or", bits)


def _equal(a: Sequence[Bit], b: Sequence[Bit], signed: bool, inverted: bool) -> Bit | None:
    width = max(len(a), len(b))
    pairs = list(zip(_extended(a, width, signed), _extended(b, width, signed), strict=True))
    if any({one, other} == {"0", "1"} for one, other in pairs):
        return "1" if inverted else "0"
    return ("0" if inverted else "1") if all(one == other != "x" for one, other in pairs) else None
