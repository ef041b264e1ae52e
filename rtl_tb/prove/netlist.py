"""A unit as words of a circuit: what its result is of the operands of one transaction after a reset.

    read = transaction(dut, words, operands)
    read.result, read.latency

Yosys with slang elaborates the unit in its wrapper (rtl_tb/dut/wrapper.py), which gives every unit the same
ports. Its netlist is unrolled over the cycles: registers hold anything at first, the reset is applied as
dut.yaml says, the operands are valid in one cycle, the result is taken at once. What the language leaves
undefined (x, what nothing drives) is a variable of its own in each cycle, so that nothing is proved by a
value that silicon need not have. What cannot be read so is refused in one line.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from golden.circuit.words import Word, Words, evaluate, order
from golden.errors import counted, nearest
from rtl_tb.check.source_text import of_text, other_readings
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import write
from rtl_tb.dut.translated import elaborated_by
from rtl_tb.dut.wrapper import INSTANCE, wrapper_of
from rtl_tb.errors import RtlError
from rtl_tb.prove.readings import two_readings
from rtl_tb.simulators import translators

_FILE = "netlist.json"
_COMMANDS = ("flatten", "memory -nordff", "opt_clean", f"write_json {_FILE}")
_PIECE = re.compile(r"(.*)\[(\d+)(?::(\d+))?\]")
"""Bits of a signal: name[high:low], or name[bit]."""
_NEVER = 1 << 30
"""A cycle that no netlist is read in."""
_STEADY = ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "$adff", "$adffe", "$aldff", "$aldffe")
"""Registers that are read: of one clock, with an enable, and a reset or load of either kind."""


class Unreadable(RtlError):
    """The unit is no function of the operands of one transaction, as far as its netlist says it."""


@dataclass(frozen=True)
class Transaction:
    """What the unit answers.

    Attributes:
        result: the result word, of the variables of the operands, and of x.
        latency: cycles from taking the operands to the result.
        waited: cycles from the end of the reset to taking the operands.
        undefined: whether x is in it.
        held: whether it is made of what registers held or of operands of other cycles, though no case showed
            that it depends on them.
        steady: whether the unit takes operands in any cycle and any state that it can be in, and has the same
            result of them, whatever it takes before and after: what holds of one transaction holds in traffic
            without stalls.
        registers: what its registers hold in the cycles of the transaction, by signal and cycle.
        signals: words that the wanted signals hold in these cycles, by name.
    """

    result: Word
    latency: int
    waited: int
    undefined: bool
    held: bool
    steady: bool
    registers: Mapping[str, Word]
    signals: Mapping[str, Sequence[Word]]


def transaction(
    dut: Dut, words: Words, operands: Word, label: str = "", signals: Sequence[str] = ()
) -> Transaction:
    """Reads a unit's answer to an operand word, one transaction after a reset.

    Args:
        label: of the variables of what registers hold at first: two units in one table share none.
        signals: names of signals within the unit, perhaps with bits (u_sum.total[31:0]), of which the words
            are wanted, too.

    Raises:
        SimulatorMissing: there is no Yosys with slang. ElaborationError: it refuses the unit.
        Unreadable: it is no such function; the message says why.
    """
    if dut.vhdl is not None:
        raise Unreadable(f"{dut.name} is VHDL, which `rtl prove` does not read; `mmagold rtl check` runs it")
    if dut.handshake.kind == "latency" and dut.handshake.latency is None:
        raise Unreadable(f"{dut.name}: its latency is to be measured; give it in cycles")
    if dut.handshake.beats > 1:
        raise Unreadable(f"{dut.name}: its operands come in several transfers; `mmagold rtl check` runs it")
    module = read(dut)
    _check_one_reading(dut, module)
    reset = dut.reset.cycles if dut.reset else 1  # the wrapper has registers of its own
    # Cycles after the reset in which the unit must take operands.
    patience = 64
    # 1. When does it take operands? The first cycle after the reset in which it is ready for certain.
    for waited in range(patience):
        netlist = Netlist(module, words, operands, reset, reset + waited, label)
        if netlist.port("in_ready", netlist.taken).constant == 1:
            break
    else:
        raise Unreadable(f"{dut.name}: it takes no operands in {patience} cycles after the reset")
    # Cycles from the operands to the result at most: twice the latency that rtl check measures.
    longest = 512
    # 2. When is the result there? Whether it is must not depend on operands: then the latency is fixed.
    for latency in range(longest):
        valid = netlist.port("out_valid", netlist.taken + latency)
        if valid.constant is None:
            raise Unreadable(
                f"{dut.name}: no fixed latency: {counted(latency, 'cycle')} after the operands its valid "
                f"depends on {_source(valid)}"
            )
        if valid.constant:
            break
    else:
        raise Unreadable(f"{dut.name}: no result in {longest} cycles after the operands")
    result = netlist.port("out_data", netlist.taken + latency)
    # One transaction has one result: with the valid of a second one the unit is wrong, whatever its data.
    pulse = dut.handshake.kind != "latency" and not dut.handshake.level
    for more in range(1, patience + 1) if pulse else ():
        if netlist.port("out_valid", netlist.taken + latency + more).constant != 0:
            raise Unreadable(
                f"{dut.name}: its valid is not 0 {counted(more, 'cycle')} after the result of one "
                "transaction; `mmagold rtl check` shows what that does"
            )
    # 3. The result is of these operands alone, neither of another cycle's nor of what a register held: as far
    #    as cases show it here. What may differ is a variable, and the proof shows that it does not.
    variables = [each for each in order([result]) if each.op == "var"]
    held = [each for each in variables if str(each.value).startswith(("in_data@", "start."))]
    for each in held:
        if _depends_on(result, variables, each):
            raise Unreadable(
                f"{dut.name}: state that dut.yaml does not declare: its result depends on "
                f"{_readable(str(each.value))}"
            )
    undefined = any(str(each.value).startswith(("x.", "open.")) for each in variables)
    wanted = {name: netlist.signal(name, result, latency) for name in signals}
    # 4. Does it depend on other transactions?
    try:
        steady = (
            _same_in_any_traffic(netlist, {}, latency, result)
            or _same_in_any_traffic(netlist, _reached(netlist), latency, result)
            or _returns(netlist, latency, result)
        )
    except Unreadable:
        steady = False
    registers = netlist.registers(result)
    return Transaction(result, latency, waited, undefined, bool(held), steady, registers, wanted)


def _same_in_any_traffic(netlist: Netlist, state: Mapping[str, Word], latency: int, result: Word) -> bool:
    """Whether operands are taken in any cycle and any such state and have the same result, and a result is
    there for these operands alone."""
    free, taking = netlist.from_state(state, _NEVER), netlist.from_state(state, 0)
    return (
        free.port("in_ready", 0).constant == 1
        and free.port("out_valid", latency) is free.input("in_valid", 0)
        and taking.port("out_data", latency) is result
    )


def _reached(netlist: Netlist) -> dict[str, Word]:
    """What registers hold in each cycle of any traffic without a stall, by cell: bits that never change have
    their constant, and bits that always hold the same level share a variable, as the valid bits of two
    pipelines that move together do. All others hold anything.

    By induction over the cycles since the reset. In the first one, bits that hold the same constant are
    alike. Then a step is taken from any state in which they are: bits that differ after it are no longer
    assumed to be, nor a constant that changes. That is repeated until a step changes nothing.
    """
    words, cells = netlist.words, netlist.module["cells"].items()
    start = {name: netlist.cell(name, netlist.reset) for name, cell in cells if cell["type"] in _STEADY}
    alike: dict[tuple[str, int], tuple[int, ...]] = {}
    for name, whole in start.items():
        for at in range(whole.width):
            if (level := words.bit(whole, at).constant) is not None:
                alike[name, at] = (level,)
    while True:
        # Classes of bits; one of a single number holds its level in each cycle.
        state = {
            name: words.concat(
                *(
                    _level(words, alike.get((name, at)), f"{name}.{at}", netlist.label)
                    for at in reversed(range(whole.width))
                )
            )
            for name, whole in start.items()
            if any((name, at) in alike for at in range(whole.width))
        }
        step = netlist.from_state(state, _NEVER)
        after = {(name, at): words.bit(step.cell(name, 1), at) for name, at in alike}
        number: dict[tuple[object, ...], int] = {}
        parted: dict[tuple[str, int], tuple[int, ...]] = {
            bit: known
            if len(known) == 1 and after[bit].constant == known[0]
            else (known[0], number.setdefault((*known, after[bit]), len(number)))
            for bit, known in alike.items()
        }
        size = Counter(parted.values())
        parted = {bit: each for bit, each in parted.items() if len(each) == 1 or size[each] > 1}
        same_constants = [len(parted.get(bit, ())) == len(known) for bit, known in alike.items()]
        if all(same_constants) and len({*parted.values()}) == len({*alike.values()}):
            return state
        alike = parted


def _level(words: Words, known: tuple[int, ...] | None, name: str, label: str) -> Word:
    """What a bit of a register holds: a constant, the variable of its class, or anything."""
    if known is None:
        return words.variable(f"start.{name}{label}", 1)
    if len(known) == 1:
        return words.constant(known[0], 1)
    return words.variable(f"start.{known}{label}", 1)


def _returns(netlist: Netlist, latency: int, result: Word) -> bool:
    """Whether each transaction leaves a unit as it was before: the first after the reset then stands for all.

    By induction over the cycles in which the unit is ready. What holds in each of them is that some registers
    have the constants that they had at the first; all others hold anything. From there, with operands or
    without, the unit must come to such a state again, and give the same result of the operands meanwhile,
    once.
    """

    def ready(one: Netlist) -> int | None:
        """The next cycle in which it is ready; None: in some cycle before, that is not certain."""
        for at in range(1, latency + patience):
            if (level := one.port("in_ready", at).constant) != 0:
                return at if level else None
        return None

    # Cycles after the result in which a unit must be ready again.
    patience = 64
    start = netlist.held_at(netlist.taken)
    while True:
        runs = [netlist.from_state(start, taken) for taken in (0, -1)]
        ends = [ready(one) for one in runs]
        if None in ends or any(one.port("in_ready", 0).constant != 1 for one in runs):
            return False
        states = [one.held_at(end) for one, end in zip(runs, ends, strict=True) if end is not None]
        kept = {
            name: value for name, value in start.items() if all(each.get(name) == value for each in states)
        }
        if kept == start:
            break
        start = kept
    busy, idle = runs
    valids = [busy.port("out_valid", at).constant for at in range(ends[0] or 0)]
    return (
        valids == [int(at == latency) for at in range(len(valids))]
        and latency < len(valids)
        and ends[1] == 1
        and idle.port("out_valid", 0).constant == 0
        and busy.port("out_data", latency) is result
    )


def _check_one_reading(dut: Dut, module: Mapping[str, Any]) -> None:
    """The netlist is what simulators run and what synthesis reads.

    Raises:
        Unreadable: it may not be; names the place.
    """
    if (why := two_readings(dut)) is not None:
        raise Unreadable(f"{dut.name}: {why}")
    with tempfile.TemporaryDirectory(prefix="mmagold_readings_") as name:
        file = Path(name) / "unit.sv"
        for where, text in other_readings(dut):
            write(file, text.text)
            if _without_names(read(of_text(dut, file))) != _without_names(module):
                raise Unreadable(f"{dut.name}: its netlist is another one from {where}; a proof is of one")


def _without_names(module: Mapping[str, Any]) -> Any:
    """A netlist as it is whatever its text looks like: bits are numbered as they come."""
    numbers: dict[Any, int] = {}

    def numbered(bits: Sequence[Any]) -> list[Any]:
        return [each if isinstance(each, str) else numbers.setdefault(each, len(numbers)) for each in bits]

    ports = {name: numbered(port["bits"]) for name, port in module["ports"].items()}
    cells = [
        (
            cell["type"],
            cell["parameters"],
            {port: numbered(bits) for port, bits in cell["connections"].items()},
        )
        for cell in module["cells"].values()
    ]
    return ports, cells


def _depends_on(result: Word, variables: Sequence[Word], one: Word) -> bool:
    """Whether a result is seen to change with a variable alone."""
    rng = random.Random(1)
    # Operands on which it is looked whether a result depends on more than them.
    cases = 64
    columns = {str(each.value): [rng.getrandbits(each.width) for _ in range(cases)] for each in variables}
    before = evaluate([result], columns)[result]
    columns[str(one.value)] = [rng.getrandbits(one.width) for _ in range(cases)]
    return bool((evaluate([result], columns)[result] != before).any())


def _source(word: Word) -> str:
    """What a word depends on, in words of the field."""
    return _readable(next(str(each.value) for each in order([word]) if each.op == "var"))


def _readable(name: str) -> str:
    if name.startswith("start."):
        return f"register {name.removeprefix('start.')}, which no reset sets"
    return "operands of another cycle" if name.startswith("in_data@") else f"operand {name}"


def read(dut: Dut) -> dict[str, Any]:
    """The netlist of a unit within its wrapper, as Yosys writes it.

    Raises:
        SimulatorMissing: Yosys is not installed. ElaborationError: it refuses the design.
    """
    with tempfile.TemporaryDirectory(prefix="mmagold_netlist_") as name:
        elaborated_by(translators.yosys(), dut, wrapper_of(dut), _COMMANDS, Path(name))
        found: dict[str, Any] = json.loads((Path(name) / _FILE).read_text(encoding="utf-8"))
    return dict(found["modules"][NAME])


class Netlist:
    """A netlist as words, cycle by cycle: reset until cycle `reset`, operands in cycle `taken`, and results
    always taken.

    Args:
        module: as Yosys writes it.
        operands: the operand word of that cycle; in any other cycle it is anything.
        label: of variables that another netlist in the same table must not share.
        traffic: whether operands may be valid in other cycles, too; else they are not.
        state: what registers hold in cycle 0, by cell; all others hold anything.
    """

    def __init__(
        self,
        module: Mapping[str, Any],
        words: Words,
        operands: Word,
        reset: int,
        taken: int,
        label: str = "",
        traffic: bool = False,
        state: Mapping[str, Word] | None = None,
    ) -> None:
        self.label, self.traffic, self.state = label, traffic, state or {}
        self.idle = False
        self.module, self.words, self.operands, self.reset, self.taken = module, words, operands, reset, taken
        self._drivers: dict[int, tuple[str, str, int]] = {}
        self._cells: dict[tuple[str, int], Word | None] = {}
        self._reading = [("a port", taken, count())]
        """Cells that are being read, with the cycle, and the number of the next x in each."""
        # Calls within calls that Python allows: a cell is read by the cells that it feeds.
        deep = 1_000_000
        sys.setrecursionlimit(max(sys.getrecursionlimit(), deep))
        self._clock = module["ports"]["clk"]["bits"][0]
        for name, cell in module["cells"].items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    for at, bit in enumerate(bits):
                        if bit in self._drivers:
                            raise Unreadable(f"two drivers of one bit: {self._drivers[bit][1]} and {name}")
                        self._drivers[bit] = ("cell", name, at)
        for name, port in module["ports"].items():
            if port["direction"] == "input":
                self._drivers.update({bit: ("port", name, at) for at, bit in enumerate(port["bits"])})

    def from_state(self, state: Mapping[str, Word], taken: int) -> Netlist:
        """The same netlist without a reset, whose registers hold this in cycle 0, in any traffic but that
        operands are taken in cycle `taken`; -1: in cycle 0 none are valid."""
        one = Netlist(self.module, self.words, self.operands, 0, taken, self.label, True, state)
        one.idle = taken < 0
        return one

    def held_at(self, at: int) -> dict[str, Word]:
        """The registers that hold a constant in a cycle, by cell."""
        cells = self.module["cells"].items()
        held = {name: self.cell(name, at) for name, cell in cells if cell["type"] in _STEADY}
        return {name: word for name, word in held.items() if word.constant is not None}

    def port(self, name: str, at: int) -> Word:
        """What an output port shows in a cycle."""
        return self.bits(self.module["ports"][name]["bits"], at)

    def registers(self, result: Word) -> dict[str, Word]:
        """What registers hold of which a result is made, by a signal's name and the cycles since the
        operands were taken."""
        reached = set(order([result]))
        nets = {tuple(net["bits"]): name for name, net in self.module["netnames"].items() if "$" not in name}
        found = {}
        for (name, at), word in self._cells.items():
            cell = self.module["cells"][name]
            if word in reached and cell["type"] in _STEADY and word.op not in ("const", "var"):
                signal = nets.get(tuple(cell["connections"]["Q"]), name)
                found[f"{signal}@{at - self.taken}"] = word
        return found

    def signal(self, name: str, result: Word, latency: int) -> list[Word]:
        """The words that a signal of the unit holds from the cycle of the operands to that of the result, as
        far as the result is made of them.

        Raises:
            Unreadable: the unit has no such signal, or not these bits of it.
        """
        inside = f"{INSTANCE}."
        nets = {net.removeprefix(inside): net for net in self.module["netnames"] if net.startswith(inside)}
        whole, low, high = name, 0, None
        if name not in nets and (piece := _PIECE.fullmatch(name)) is not None:
            whole, high, low = piece[1], int(piece[2]), int(piece[3] or piece[2])
        if whole not in nets:
            raise Unreadable(f"cut_points: no signal '{whole}' in the netlist{nearest(whole, nets)}")
        bits = self.module["netnames"][nets[whole]]["bits"]
        high = len(bits) - 1 if high is None else high
        if not 0 <= low <= high < len(bits):
            raise Unreadable(f"cut_points: '{name}' is of a signal of {len(bits)} bits")
        reached = set(order([result]))
        cycles = range(self.taken, self.taken + latency + 1)
        found = (self.bits(bits[low : high + 1], at) for at in cycles)
        return [word for word in dict.fromkeys(found) if word in reached]

    def bits(self, bits: Sequence[Any], at: int) -> Word:
        """The word of some bits, lowest first, made of pieces as long as can be."""
        pieces: list[Word] = []
        place = 0
        while place < len(bits):
            end = place + 1
            if isinstance(bits[place], str):
                while end < len(bits) and bits[end] == bits[place]:
                    end += 1
                pieces.append(self.literal(bits[place] * (end - place)))
            elif pieces and bits[place] == bits[place - 1]:  # a bit again and again: a sign's extension
                while end < len(bits) and bits[end] == bits[place]:
                    end += 1
                pieces[-1] = self.words.extend_signed(pieces[-1], pieces[-1].width + end - place)
            elif (driver := self._drivers.get(bits[place])) is None:
                pieces.append(self._undefined(f"open.{bits[place]}", at))
            else:
                kind, name, first = driver
                while end < len(bits) and self._drivers.get(bits[end]) == (kind, name, first + end - place):
                    end += 1
                whole = self.input(name, at) if kind == "port" else self.cell(name, at)
                pieces.append(self.words.extract(whole, first, end - place))
            place = end
        return self.words.concat(*reversed(pieces))

    def literal(self, text: str) -> Word:
        """The word of a literal, its highest bit first; each x is a variable that nothing else is."""
        if "z" in text:
            raise Unreadable("a driver that lets go of its net (z); tristate is not read")
        if set(text) <= {"0", "1"}:
            return self.words.constant(int(text, 2), len(text))
        return self.words.concat(
            *(
                self.words.constant(int(bit), 1) if bit in "01" else self._undefined(*self._place_of_x())
                for bit in text
            )
        )

    def _place_of_x(self) -> tuple[str, int]:
        """A name and a cycle that no other x has: the cell that is being read, and how many it has so far."""
        name, at, seen = self._reading[-1]
        return f"x.{name}.{next(seen)}", at

    def _undefined(self, name: str, at: int) -> Word:
        """A bit that may be anything. Its name counts from the cycle of the operands, so that the same bit of
        another transaction is the same word."""
        return self.words.variable(f"{name}@{at - self.taken}{self.label}", 1)

    def input(self, name: str, at: int) -> Word:
        one = self.words.constant
        match name:
            case "rst_n":
                return one(int(at >= self.reset), 1)
            case "in_valid" if self.idle and at == 0:
                return one(0, 1)
            case "in_valid" if self.traffic and at != self.taken:
                return self.words.variable(f"in_valid@{at}", 1)
            case "in_valid":
                return one(int(at == self.taken), 1)
            case "out_ready":
                return one(1, 1)
            case "in_data":
                if at == self.taken:
                    return self.operands
                return self.words.variable(f"in_data@{at}", self.operands.width)
        raise Unreadable(f"a result that depends on the level of {name}")

    def cell(self, name: str, at: int) -> Word:
        """The output of a cell in a cycle."""
        key = (name, at)
        if key not in self._cells:
            self._cells[key] = None  # being read: a cell that comes to itself within a cycle is a loop
            cell = self.module["cells"][name]
            self._reading.append((name, at, count()))
            self._cells[key] = _Cell(self, cell, at, name).word()
            self._reading.pop()
        if (found := self._cells[key]) is None:
            raise Unreadable(f"a combinational loop through {name}")
        return found


class _Cell:
    """One cell in one cycle."""

    def __init__(self, netlist: Netlist, cell: Mapping[str, Any], at: int, name: str) -> None:
        self.netlist, self.cell, self.at, self.name = netlist, cell, at, name
        self.words, self.kind = netlist.words, str(cell["type"])

    def word(self) -> Word:
        if self.kind in _STEADY:
            return self._register()
        for kinds, look in _TABLE:
            if self.kind in kinds:
                return look(self, kinds[self.kind])
        what = "a latch" if "latch" in self.kind or self.kind == "$sr" else f"a cell {self.kind}"
        raise Unreadable(f"{what}, {self.name}, which is not read")

    def number(self, key: str) -> int:
        return int(self.cell["parameters"].get(key, "0"), 2)

    def input(self, port: str, before: int = 0) -> Word:
        return self.netlist.bits(self.cell["connections"][port], self.at - before)

    @property
    def width(self) -> int:
        return self.number("Y_WIDTH") or self.number("WIDTH")

    def sized(self, word: Word, width: int, signed: bool) -> Word:
        return self.words.extend_signed(word, width) if signed else self.words.extend(word, width)

    def operands(self, width: int) -> tuple[Word, Word]:
        """A and B as wide as wanted, extended by their signs where both have one."""
        signed = bool(self.number("A_SIGNED") and self.number("B_SIGNED"))
        return self.sized(self.input("A"), width, signed), self.sized(self.input("B"), width, signed)

    def binary(self, kind: str) -> Word:
        one, other = self.operands(self.width)  # modulo 2^width also where that is less than the operands'
        words = self.words
        if kind == "xnor":
            return words.invert(words.differ(one, other))
        operation = {"add": words.add, "sub": words.sub, "mul": words.mul} | {
            "and": words.both, "or": words.either, "xor": words.differ
        }  # fmt: skip
        return operation[kind](one, other)

    def unary(self, kind: str) -> Word:
        one = self.sized(self.input("A"), self.width, bool(self.number("A_SIGNED")))
        return {"not": self.words.invert, "neg": self.words.neg}.get(kind, lambda word: word)(one)

    def comparison(self, kind: str) -> Word:
        one, other = self.operands(max(len(self.cell["connections"][port]) for port in "AB"))
        words = self.words
        signed = self.number("A_SIGNED") and self.number("B_SIGNED")
        less = words.less_signed if signed else words.less
        found = {
            "eq": lambda: words.equal(one, other),
            "ne": lambda: words.invert(words.equal(one, other)),
            "lt": lambda: less(one, other),
            "gt": lambda: less(other, one),
            "le": lambda: words.invert(less(other, one)),
            "ge": lambda: words.invert(less(one, other)),
        }[kind]()
        return words.extend(found, self.width)

    def truth(self, kind: str) -> Word:
        words, one = self.words, self.words.nonzero(self.input("A"))
        if kind in ("and", "or"):
            other = words.nonzero(self.input("B"))
            one = words.both(one, other) if kind == "and" else words.either(one, other)
        return words.extend(words.invert(one) if kind == "not" else one, self.width)

    def reduction(self, kind: str) -> Word:
        words, whole = self.words, self.input("A")
        if kind == "and":
            found = words.equal(whole, words.constant(-1, whole.width))
        elif kind == "or":
            found = words.nonzero(whole)
        else:
            found = words.bit(whole, 0)
            for place in range(1, whole.width):
                found = words.differ(found, words.bit(whole, place))
            found = words.invert(found) if kind == "xnor" else found
        return words.extend(found, self.width)

    def multiplexer(self, kind: str) -> Word:
        """What a constant does not select is not read: a register that takes a word forgets the one before
        it."""
        words, select, width = self.words, self.input("S"), self.width
        if kind == "bmux":
            whole = self.input("A")
            items = [words.extract(whole, low, width) for low in range(0, whole.width, width)]
            for place in range(select.width):
                pairs = zip(items[1::2], items[::2], strict=True)
                items = [words.choose(words.bit(select, place), one, other) for one, other in pairs]
            return items[0]
        chosen = [words.bit(select, place) for place in range(select.width)]
        live = [place for place, each in enumerate(chosen) if each.constant != 0]
        always = [place for place in live if chosen[place].constant]
        found = self._choice(always[-1]) if always else self.input("A")
        for place in live:
            if chosen[place].constant is None:
                found = words.choose(chosen[place], self._choice(place), found)
        if kind == "mux" or len(live) < 2 or _exclusive([chosen[place] for place in live]):
            return found
        # Of a selector of which several lines are active the result is x.
        before = words.constant(0, 1)
        several = words.constant(0, 1)
        for place in live:
            several = words.either(several, words.both(before, chosen[place]))
            before = words.either(before, chosen[place])
        return words.choose(several, self.netlist.literal("x" * width), found)

    def _choice(self, place: int) -> Word:
        width = self.width
        return self.netlist.bits(self.cell["connections"]["B"][place * width : (place + 1) * width], self.at)

    def shift(self, kind: str) -> Word:
        words, amount, width = self.words, self.input("B"), self.width
        signed, whole = bool(self.number("A_SIGNED")), self.input("A")
        if self.number("B_SIGNED"):
            return self._two_ways(whole, amount, signed)
        if kind == "shl":
            return words.shift_left(self.sized(whole, width, signed), amount)
        last = whole.width - width
        whole = self.sized(whole, max(whole.width, width), signed)
        shifted = words.shift_right_signed if kind == "ashr" and signed else words.shift_right
        found = words.extract(shifted(whole, amount), 0, width)
        if self.kind != "$shiftx":
            return found
        # Beyond the word is x: a variable wherever a bit of the piece lies there.
        if last < 0:
            return self.netlist.literal("x" * width)
        room = max(amount.width, whole.width.bit_length()) + 1
        inside = words.invert(words.less(words.constant(last, room), words.extend(amount, room)))
        if inside.constant == 1:
            return found
        return words.choose(inside, found, self.netlist.literal("x" * width))

    def _two_ways(self, whole: Word, amount: Word, signed: bool) -> Word:
        """A shift right by a signed amount ($shift, $shiftx), left where that is negative."""
        if self.kind not in ("$shift", "$shiftx"):
            raise Unreadable(f"a shift by a signed amount: {self.name}")
        words, width = self.words, max(whole.width, self.width)
        wide, room = self.sized(whole, width, signed), amount.width + 1
        back = words.neg(words.extend_signed(amount, room))
        right = words.shift_right(wide, amount)
        found = words.choose(words.bit(amount, amount.width - 1), words.shift_left(wide, back), right)
        found = words.extract(found, 0, self.width)
        if self.kind == "$shift":
            return found
        if whole.width < self.width:
            return self.netlist.literal("x" * self.width)
        room = max(amount.width, whole.width.bit_length()) + 1
        far = words.less(words.constant(whole.width - self.width, room), words.extend_signed(amount, room))
        return words.choose(far, self.netlist.literal("x" * self.width), found)

    # Registers ----------------------------------------------------------------------------------------------

    def _register(self) -> Word:
        """What a register holds in a cycle: what an asynchronous reset sets, else what the edge before it
        took."""
        words = self.words
        if self.cell["connections"]["CLK"] != [self.netlist._clock] or not self.number("CLK_POLARITY"):
            raise Unreadable(f"a register at another edge than the clock's rising one: {self.name}")
        # A reset that ends after an edge was active at this edge, too: the register took nothing else.
        for before in range(min(self.at, 1) + 1):
            for control, value in (("ARST", None), ("ALOAD", "AD")):
                if control in self.cell["connections"]:
                    active = self._active(control, before)
                    if active.constant is None:
                        raise Unreadable(f"an asynchronous reset by more than the reset: {self.name}")
                    if active.constant:
                        return self.input(value, before) if value else self._reset_value("ARST_VALUE")
        if self.at == 0 and self.name in self.netlist.state:
            return self.netlist.state[self.name]
        if self.at == 0:
            return words.variable(f"start.{self.name}{self.netlist.label}", self.width)
        enable = self._active("EN", 1) if "EN" in self.cell["connections"] else words.constant(1, 1)
        reset = self._active("SRST", 1) if "SRST" in self.cell["connections"] else words.constant(0, 1)
        if self.kind == "$sdffce":
            reset = words.both(reset, enable)
        if reset.constant == 1:
            return self._reset_value("SRST_VALUE")
        if enable.constant == 0:
            found = self.netlist.cell(self.name, self.at - 1)
        else:
            found = self.input("D", 1)
            if enable.constant is None:
                found = words.choose(enable, found, self.netlist.cell(self.name, self.at - 1))
        return found if reset.constant == 0 else words.choose(reset, self._reset_value("SRST_VALUE"), found)

    def _reset_value(self, key: str) -> Word:
        return self.netlist.literal(self.cell["parameters"][key].lower())

    def _active(self, port: str, before: int) -> Word:
        level = self.input(port, before)
        return level if self.number(f"{port}_POLARITY") else self.words.invert(level)


def _exclusive(lines: Sequence[Word]) -> bool:
    """Whether at most one of some lines can be active, as far as it is plain: each holds one word against a
    constant of its own."""
    pairs = [sorted(each.args, key=lambda arg: arg.constant is None) for each in lines if each.op == "eq"]
    constants = {pair[0].constant for pair in pairs}
    return (
        len(pairs) == len(constants) == len(lines)
        and None not in constants
        and len({pair[1].number for pair in pairs}) == 1
    )


_Kinds = Mapping[str, str]
_TABLE: tuple[tuple[_Kinds, Callable[[_Cell, str], Word]], ...] = (
    ({f"${kind}": kind for kind in ("add", "sub", "mul", "and", "or", "xor", "xnor")}, _Cell.binary),
    ({"$not": "not", "$neg": "neg", "$pos": "pos", "$buf": "pos"}, _Cell.unary),
    (
        {f"${kind}": kind for kind in ("eq", "ne", "lt", "le", "gt", "ge")} | {"$eqx": "eq", "$nex": "ne"},
        _Cell.comparison,
    ),
    ({"$logic_and": "and", "$logic_or": "or", "$logic_not": "not"}, _Cell.truth),
    (
        {"$reduce_and": "and", "$reduce_or": "or", "$reduce_bool": "or", "$reduce_xor": "xor"}
        | {"$reduce_xnor": "xnor"},
        _Cell.reduction,
    ),
    ({"$mux": "mux", "$pmux": "pmux", "$bmux": "bmux"}, _Cell.multiplexer),
    (
        {"$shl": "shl", "$sshl": "shl", "$shr": "lshr", "$sshr": "ashr", "$shift": "lshr", "$shiftx": "lshr"},
        _Cell.shift,
    ),
)
"""By type of a cell its operation, and how it is read."""
