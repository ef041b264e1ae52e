"""A circuit as synthesizable SystemVerilog: one module, a section a step, a signal for every named point.

    text = module(golden.instruction("hopper", "HMMA.16816.F32"), "hmma", pipeline=("align", "sum"))

Everything comes from the words of golden/circuit/specification.py, so that nothing is said twice. Points
whose names differ in an index alone are one array; where their expressions differ in indices alone, too, they
are one generate loop. Anonymous words that are used more than once are named after the signal that needs
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from golden.circuit.specification import HELD, Circuit, circuit_of
from golden.circuit.words import CircuitError, Word, Words, order
from golden.errors import nearest
from golden.files.escape import SYSTEMVERILOG
from golden.files.output import write_folder
from golden.model.instruction import Instruction
from golden.program.steps import STEPS
from golden.program.words import step_text
from golden.program.writing import Hex, step_keys

WIDTH = 110
"""Columns of the text."""
_RESERVED = ("clk", "rst_n", "in_valid", "out_valid", "valid", "unused", "d", "flags")
"""Names that no point may have."""

Index = tuple[str, int]
"""A piece of text that is an index: marked, so that loops can say it with their own variable."""
Text = list["str | Index"]


@dataclass
class Signal:
    """One name of the module.

    Attributes:
        name: the identifier.
        words: what it holds: one word, or the words of an array.
        array: whether it is one.
        stage: registers before it.
        order: of its section.
        element: of an operand of several elements, the bits of one.
        used: bits that something reads, by delay and element.
    """

    name: str
    words: list[Word]
    array: bool
    stage: int
    order: int
    element: int = 0
    used: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def width(self) -> int:
        """Bits of one element."""
        return self.words[0].width


@dataclass(frozen=True)
class Place:
    """Where a word has a name: which element of a signal, or which bits of an operand."""

    signal: Signal
    index: int | None


def module(instruction: Instruction, name: str, pipeline: Sequence[str] = ()) -> str:
    """The text of the module.

    Args:
        pipeline: kinds of steps, as YAML names them, after each of which there is a register.

    Raises:
        CircuitError: a step that the instruction does not have, or registers in a unit that keeps its
            accumulator; what has no circuit.
    """
    return _Module(instruction, name, tuple(pipeline)).text()


def write(
    instruction: Instruction, folder: Path, name: str, pipeline: Sequence[str] = (), unit: Path | None = None
) -> list[Path]:
    """Writes the module and the dut.yaml by which `mmagold rtl check` runs it.

    Args:
        unit: the file of a unit of one's own, which is copied.

    Raises:
        CircuitError: see `module`; the name is no identifier. FileFormatError: the folder cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise CircuitError(f"prefix is '{name}', expected letters, digits and '_'")
    if name in SYSTEMVERILOG:
        raise CircuitError(f"prefix is '{name}', a keyword of SystemVerilog; expected the name of a module")
    made = _Module(instruction, name, tuple(pipeline))
    what = (
        "unit: unit.yaml"
        if unit is not None
        else f'instruction: "{instruction.architecture}:{instruction.name}"'
    )
    lines = [f"dut: {name}", f"top: {name}", f"sources: [{name}.sv]", what]
    if made.clocked:
        lines += ["clock: clk", "reset: {port: rst_n, active: low}", "handshake:", "  kind: valid"]
        lines += ["  input: {valid: in_valid}", "  output: {valid: out_valid}"]
    else:
        lines.append("handshake: {kind: combinational}")
    lines += ["ports:"] + [
        f"  {port}: {port}" for port in (*made.circuit.inputs, *made.circuit.outputs) if port != HELD
    ]
    texts = {f"{name}.sv": made.text(), "dut.yaml": "\n".join(lines) + "\n"}
    if unit is not None:
        texts["unit.yaml"] = unit.read_text(encoding="utf-8")
    return write_folder(folder, texts)


class _Module:
    """Everything that one module is made of."""

    def __init__(self, instruction: Instruction, name: str, pipeline: tuple[str, ...]) -> None:
        self.instruction, self.name = instruction, name
        self.circuit: Circuit = circuit_of(instruction, Words())
        self.units: dict[int | None, Instruction] = {None: instruction}
        if instruction.modes is not None:
            self.units = dict(instruction.mode_units.items())
        known = {step.op for unit in self.units.values() for o in unit.program.operations for step in o.steps}
        for word in pipeline:
            if word not in known:
                expected = ", ".join(op for op in STEPS if op in known)
                raise CircuitError(
                    f"pipeline names '{word}', expected steps of {instruction.name}: {expected}"
                    f"{nearest(word, known)}"
                )
        if pipeline and instruction.state:
            raise CircuitError(
                "pipeline: a unit that keeps its accumulator needs its result in the next cycle"
            )
        self.cuts = {code: self._cuts(unit, pipeline) for code, unit in self.units.items()}
        self.cycles = max(len(cuts) for cuts in self.cuts.values())
        self.clocked = bool(self.cycles or instruction.state)
        self.signals: list[Signal] = []
        self.places: dict[int, Place] = {}
        self.taken: Counter[str] = Counter()
        self.pieces: dict[int, list[tuple[int, Word]]] = {}
        self.functions: set[int] = set()
        self.partly: list[str] = []
        self.registers: list[str] = []
        self._name_everything()

    def _cuts(self, unit: Instruction, pipeline: tuple[str, ...]) -> list[tuple[int, int]]:
        """The steps of a unit after which there is a register."""
        return [
            (index, at)
            for index, operation in enumerate(unit.program.operations)
            for at, step in enumerate(operation.steps)
            if step.op in pipeline
        ]

    # Names --------------------------------------------------------------------------------------------------

    def _name_everything(self) -> None:
        """Signals of all operands and points."""
        self.taken.update(_RESERVED)
        for name, word in self.circuit.inputs.items():
            self.taken[name] += 1
            fmt = self.instruction.code_format(name)
            element = 0 if name == HELD or word.width == fmt.bits else fmt.bits
            self.signals.append(Signal(name, [word], False, 0, -1, element))
            self.places[word.number] = Place(self.signals[-1], None)
        found: dict[str, tuple[str, list[str]]] = {}
        for point in self.circuit.points:
            array = re.fullmatch(r"(.*)\[((?:[\w.]*\.)?)(\d+)\](.*)", point)
            base = point if array is None else f"{array[1]}.{array[2]}{array[4]}"
            found.setdefault(base, (base, []))[1].append(point)
        for base, points in found.values():
            self._name_group(base, points)
        self.signals.sort(key=lambda one: one.order)

    def _name_group(self, base: str, points: list[str]) -> None:
        """One array of points that have the same name but for an index, or a signal each."""
        words = [self.circuit.points[point] for point in points]
        regular = (
            len(points) > 1
            and len({word.width for word in words}) == 1
            and len({self._order(point) for point in points}) == 1
            and all(f"[{i}]" in point or f".{i}]" in point for i, point in enumerate(points))
        )
        if regular:
            self._add(base, points[0], words, True)
            return
        for point, word in zip(points, words, strict=True):
            self._add(point, point, [word], False)

    def _add(self, name: str, point: str, words: list[Word], array: bool) -> None:
        identifier = re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_")
        if identifier in self.taken:
            self.taken[identifier] += 1
            identifier = f"{identifier}_{self.taken[identifier]}"
        self.taken[identifier] += 1
        signal = Signal(identifier, words, array, self._stage(point), self._order(point))
        self.signals.append(signal)
        for i, word in enumerate(words):
            self.places[word.number] = Place(signal, i if array else None)
            if word.op == "extract" and isinstance(word.value, int):
                self.pieces.setdefault(word.args[0].number, []).append((word.value, word))

    def prefix(self, name: str) -> str:
        """The start of the names of what has none: a name that no other has."""
        found = name if f"{name}_t" not in self.taken else f"{name}_{self.taken[f'{name}_t'] + 1}"
        self.taken[f"{name}_t"] += 1
        return found

    def _mode(self, point: str) -> int | None:
        found = re.match(r"mode(\d+)\.", point)
        return int(found[1]) if found else None

    def _stage(self, point: str) -> int:
        """Registers between the operands and a point."""
        return sum(cut < self.circuit.places[point] for cut in self.cuts[self._mode(point)])

    def _order(self, point: str) -> int:
        """Sections follow one another by mode, operation and step."""
        operation, step = self.circuit.places[point]
        modes = list(self.units)
        return (modes.index(self._mode(point)) << 24) + (operation << 12) + step + 1

    # The module ---------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The whole file."""
        sections = []
        if self.instruction.state:
            sections.append(f"    logic {_range(self.circuit.inputs[HELD].width)}{HELD};\n")
        orders = sorted({signal.order for signal in self.signals if signal.order >= 0})
        for at in orders:
            signals = [signal for signal in self.signals if signal.order == at]
            sections.append(self._heading(at) + self._section(signals, at))
        results = self._results()
        delays = self._delays()
        body = "\n".join(
            [
                *map(self._function, sorted(self.functions)),
                "\n".join(self.registers),
                *sections,
                results,
                delays,
                self._unused(),
            ]
        )
        lines = [
            line for text in (self._head() + body.rstrip() + "\n\nendmodule\n",) for line in text.splitlines()
        ]
        broken = [part for line in lines for part in _broken(line)]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(broken)) + "\n"

    def _function(self, width: int) -> str:
        """The larger of two exponents, the second where they are unequal alone."""
        size = _range(width)
        return (
            f"    function automatic logic {size}larger_{width}(input logic {size}x, input logic {size}y);\n"
            f"        larger_{width} = ($signed(x) < $signed(y)) ? y : x;\n    endfunction\n"
        )

    def _head(self) -> str:
        ins = self.instruction
        lines = [
            f"// {self.name}: {ins.architecture} {ins.name}",
            "//",
            f"// One dot product of {ins.k} products; {', '.join(ins.program.algorithms)}.",
            "// Every signal with a name of its own is an intermediate result of the specification; the",
            "// sections are its steps. Element 0 of an operand is the one in the lowest bits.",
        ]
        formats = ", ".join(f"{name} {fmt.name}" for name, fmt in ins.own_formats.items())
        lines.append(f"// Formats: {formats}.")
        if self.circuit.assumed:
            lines.append("// Assumed of the operands:")
            lines += [f"//   {name}" for name, _ in self.circuit.assumed]
        if self.cycles:
            lines.append(f"// {self.cycles} clock cycles from operands to result, one dot product a cycle.")
        elif ins.state:
            lines.append("// The result is the accumulator: it changes at the clock edge after in_valid.")
        lines += ["", f"module {self.name} ("]
        ports = []
        if self.clocked:
            ports += ["input  logic clk", "input  logic rst_n", "input  logic in_valid"]
        for name, word in self.circuit.inputs.items():
            if name != HELD:
                ports.append(f"input  logic {self._packed(name, word.width)}{name}")
        if self.clocked:
            ports.append("output logic out_valid")
        ports += [f"output logic {_range(word.width)}{name}" for name, word in self.circuit.outputs.items()]
        lines += ["    " + port + "," for port in ports[:-1]] + ["    " + ports[-1], ");", ""]
        return "\n".join(lines) + "\n"

    def _packed(self, name: str, width: int) -> str:
        """The dimensions of an operand: its elements, and the bits of one."""
        element = self.instruction.code_format(name).bits
        return _range(width // element) + _range(element, True) if width > element else _range(width)

    def _heading(self, at: int) -> str:
        modes = list(self.units)
        code, operation, step = modes[at >> 24], at >> 12 & 0xFFF, at % (1 << 12) - 1
        unit = self.units[code]
        many = len(unit.program.operations) > 1
        where = "" if code is None else f"mode {code:#x}, "
        where += f"operation {operation}, " if many else ""
        if step < 0:
            title, keys = f"{where}operands", "The fields of every operand."
        else:
            one = unit.program.operations[operation].steps[step]
            title = f"{where}step {step + 1}: {one.op}"
            shown = yaml.dump(
                {one.op: _plain(step_keys(one, bool(unit.status)))},
                default_flow_style=True,
                sort_keys=False,
                width=1000,
            ).strip()
            shown = re.sub(r"'(0x[0-9A-F]+)'", r"\1", shown[1:-1])
            keys = step_text(one, unit.is_integer) + "\n" + shown
        rule = f"    // {title} ".ljust(WIDTH, "-")
        lines = ["", rule, "    //"]
        for paragraph in keys.splitlines():
            lines += _wrapped(paragraph)
        return "\n".join(lines) + "\n"

    def _section(self, signals: list[Signal], at: int) -> str:
        """Declarations and assignments of one step."""
        lines = [
            f"    logic {_range(len(s.words), bool(s.array))}{_range(s.width)}{s.name}{_split(s)};"
            for s in signals
        ]
        lines.append("")
        # Arrays of one length whose elements can be said in one loop stand in one loop.
        waiting: list[Signal] = []

        def flush() -> None:
            if waiting:
                lines.extend(self._loop(list(waiting)))
                waiting.clear()

        for signal in signals:
            if signal.array and (not waiting or len(waiting[0].words) == len(signal.words)):
                waiting.append(signal)
                continue
            if signal.array:
                flush()
                waiting.append(signal)
                continue
            flush()
            lines.extend(self._assignments([signal], None, "    "))
        flush()
        return "\n".join(lines) + "\n"

    def _loop(self, signals: list[Signal]) -> list[str]:
        """The elements of arrays in one generate loop; what does not fit into one is written element by
        element."""
        count = len(signals[0].words)
        used = [(signal, signal.used.copy()) for signal in self.signals]
        for first in (0, 1):  # in a chain, the first element begins with something else than an element
            for signal, before in used:
                signal.used = before.copy()
            bodies = [self._body(signals, k) for k in range(first, count)]
            lines = [_merged(one, first) for one in zip(*bodies, strict=True)] if _alike(bodies) else [None]
            if count - first > 1 and None not in lines:
                head = f"    for (genvar k = {first}; k < {count}; k = k + 1) begin : g_{signals[0].name}"
                alone = [line for one in signals if first for line in self._assignments([one], 0, "    ")]
                return [*alone, head, *(f"        {line}" for line in lines), "    end", ""]
        for signal, before in used:
            signal.used = before
        if len(signals) > 1:
            return [line for signal in signals for line in self._loop([signal])]
        return [line for k in range(count) for line in self._assignments(signals, k, "    ")]

    def _body(self, signals: list[Signal], k: int) -> list[Text]:
        printer = _Printer(
            self, [signal.words[k] for signal in signals], signals[0].stage, signals[0].order, ""
        )
        lines = printer.temporaries()
        for signal in signals:
            lines.append([f"assign {signal.name}[", ("i", k), "] = ", *printer.top(signal.words[k]), ";"])
        if printer.partly:
            lines.append(["wire unused = &{1'b0, " + ", ".join(printer.partly) + "};"])
        return lines

    def _assignments(self, signals: list[Signal], k: int | None, indent: str) -> list[str]:
        found = []
        for signal in signals:
            word = signal.words[k or 0]
            prefix = signal.name if k is None else f"{signal.name}_{k}"
            printer = _Printer(self, [word], signal.stage, signal.order, prefix)
            found += [indent + _plain_text(line) for line in printer.temporaries()]
            target = signal.name if k is None else f"{signal.name}[{k}]"
            found.append(f"{indent}assign {target} = {_plain_text(printer.top(word))};")
            self.partly += printer.partly
        return [*found, ""] if len(found) > 1 and k is None else found

    def _results(self) -> str:
        rule = "    // results ".ljust(WIDTH, "-")
        lines = ["", rule, ""]
        names = list(self.circuit.outputs)
        last = 1 << 40
        printer = _Printer(self, [self.circuit.outputs[name] for name in names], self.cycles, last, "result")
        temporaries = ["    " + _plain_text(line) for line in printer.temporaries()]
        texts = {name: _plain_text(printer.top(self.circuit.outputs[name])) for name in names}
        lines += temporaries
        self.partly += printer.partly
        if not self.instruction.state:
            lines += [f"    assign {name} = {text};" for name, text in texts.items()]
            return "\n".join(lines) + "\n"
        # The unit keeps d: it is what it holds.
        lines += [f"    logic {_range(self.circuit.outputs[name].width)}{name}_next;" for name in names]
        lines += [f"    assign {name}_next = {text};" for name, text in texts.items()]
        lines += [
            "    always_ff @(posedge clk) begin",
            "        out_valid <= rst_n & in_valid;",
            "        if (!rst_n) begin",
        ]
        lines += [f"            {name} <= '0;" for name in names]
        lines += ["        end else if (in_valid) begin"]
        lines += [f"            {name} <= {name}_next;" for name in names]
        lines += ["        end", "    end", f"    assign {HELD} = d;"]
        return "\n".join(lines) + "\n"

    def _delays(self) -> str:
        """The registers of the pipeline."""
        if not self.cycles:
            return ""
        lines = ["", "    // registers ".ljust(WIDTH, "-"), ""]
        chains = [(signal, max((delay for delay, _ in signal.used), default=0)) for signal in self.signals]
        kept = [(signal, most) for signal, most in chains if most > 0]
        for signal, most in kept:
            size = _range(len(signal.words), signal.array) + _range(signal.width)
            if signal.element:
                size = self._packed(signal.name, signal.width)
            self.registers += [f"    logic {size}{signal.name}_q{n};" for n in range(1, most + 1)]
        lines.append(f"    logic {_range(self.cycles)}valid;")
        lines += ["", "    always_ff @(posedge clk) begin"]
        if self.cycles == 1:
            lines.append("        valid <= rst_n & in_valid;")
        else:
            lines.append(f"        valid <= rst_n ? {{valid[{self.cycles - 2}:0], in_valid}} : '0;")
        for signal, most in kept:
            for n in range(1, most + 1):
                before = signal.name if n == 1 else f"{signal.name}_q{n - 1}"
                lines.append(f"        {signal.name}_q{n} <= {before};")
                for k in range(len(signal.words)):  # the register reads all of it
                    signal.used[n - 1, k] = (1 << signal.width) - 1
        lines += ["    end", ""]
        lines.append(f"    assign out_valid = valid{'' if self.cycles == 1 else f'[{self.cycles - 1}]'};")
        return "\n".join(lines) + "\n"

    def _unused(self) -> str:
        """A wire that reads the bits that nothing else does: rounding cuts them, or a format ignores them."""
        pieces = list(self.partly)
        for signal in self.signals:
            if signal.name == HELD and not signal.used:
                continue
            for delay in range(max((delay for delay, _ in signal.used), default=0) + 1):
                name = signal.name + (f"_q{delay}" if delay else "")
                for k in range(len(signal.words)):
                    bits = ~signal.used[delay, k] & ((1 << signal.width) - 1)
                    pieces += self._slices(signal, name, k, bits)
        if not pieces:
            return ""
        lines, line = [], "    wire unused = &{1'b0"
        for piece in pieces:
            if len(line) + len(piece) > WIDTH - 4:
                lines.append(line + ",")
                line = "        " + piece
            else:
                line += ", " + piece
        return "\n    // Bits that nothing reads.\n" + "\n".join([*lines, line + "};"]) + "\n"

    def _slices(self, signal: Signal, name: str, k: int, bits: int) -> list[str]:
        """Some bits of one element of a signal."""
        if signal.element and not signal.array:  # an operand of several elements
            size = signal.element
            parts = [(f"[{i}]", bits >> i * size & ((1 << size) - 1)) for i in range(signal.width // size)]
        else:
            size, parts = signal.width, [(f"[{k}]" if signal.array else "", bits)]
        found = []
        for index, own in parts:
            for low, high in _runs(own):
                part = "" if high - low + 1 == size else f"[{low}]" if low == high else f"[{high}:{low}]"
                found.append(name + index + part)
        return found


class _Printer:
    """Expressions of words over what has a name."""

    def __init__(self, owner: _Module, targets: list[Word], stage: int, section: int, prefix: str) -> None:
        self.owner, self.targets, self.stage, self.section = owner, targets, stage, section
        self.prefix = owner.prefix(prefix) if prefix else ""
        self.names: dict[int, str] = {}
        self.order: list[Word] = []
        self.partly: list[str] = []
        """Names of which something reads a part."""
        self._share()

    def _place(self, word: Word) -> Place | None:
        """The name of a word that was written before, unless it is what is being written."""
        place = self.owner.places.get(word.number)
        if place is None or place.signal.order > self.section or place.signal.stage > self.stage:
            return None
        return place

    def _share(self) -> None:
        """Which anonymous words are read more than once, or nest too deep, and get a name."""
        ends = {target.number for target in self.targets}
        uses: Counter[int] = Counter()
        cone: dict[int, Word] = {}
        open_ = list(self.targets)
        while open_:
            word = open_.pop()
            if word.number in cone:
                continue
            cone[word.number] = word
            for arg in _parts(word):
                uses[arg.number] += 1
                if arg.number not in ends and self._place(arg) is None and arg.constant is None:
                    open_.append(arg)
        depth: dict[int, int] = {}
        for number in sorted(cone):
            word = cone[number]
            own = 1 + max((depth.get(arg.number, 0) for arg in _parts(word)), default=0)
            cheap = word.op in ("extract", "const", "var", "not") or (
                word.op == "concat" and word.args[0].constant == 0
            )
            if cheap:
                own = max(own - 1, 0)
            anonymous = number not in ends and self._place(word) is None
            # Operations that an expression nests before a part of it gets a name.
            deep = 6
            if anonymous and ((uses[number] > 1 and own > 0) or own >= deep):
                self.names[number] = f"{self.prefix}_t{len(self.order)}".lstrip("_")
                self.order.append(word)
                own = 0
            depth[number] = own
        self.ends = ends

    def temporaries(self) -> list[Text]:
        """Declarations of the shared words, arguments first."""
        used = [(signal, signal.used.copy()) for signal in self.owner.signals]
        lines = {self.names[word.number]: self.top(word) for word in self.order}
        # A larger pattern may have taken a word in, so that nothing reads its name.
        read = set(re.findall(r"\w+", " ".join(_plain_text(self.top(target)) for target in self.targets)))
        for name, text in reversed(lines.items()):
            if name in read:
                read |= set(re.findall(r"\w+", _plain_text(text)))
        for signal, before in used:  # what is not written reads nothing
            signal.used = before
        self.partly = []
        self.order = [word for word in self.order if self.names[word.number] in read]
        return [
            [f"wire {_range(word.width)}{self.names[word.number]} = ", *self.top(word), ";"]
            for word in self.order
        ]

    def top(self, word: Word) -> Text:
        """The expression of a word, whatever its name."""
        return _bare(self._made(word))

    def read(self, word: Word) -> Text:
        """A word where it is read."""
        if word.number in self.names:
            return [self.names[word.number]]
        place = self._place(word)
        if place is not None:
            return self._named(place, 0, word.width)
        return self._made(word)

    def _named(self, place: Place, low: int, width: int) -> Text:
        """Bits of a signal, delayed to the stage in which they are read."""
        signal = place.signal
        delay = self.stage - signal.stage
        signal.used[delay, place.index or 0] |= ((1 << width) - 1) << low
        name: Text = [signal.name + (f"_q{delay}" if delay else "")]
        if place.index is not None:
            name += ["[", ("i", place.index), "]"]
        if width == signal.width:
            return name
        if signal.element and place.index is None:  # an operand: its elements, where the bits are of one
            index, low = divmod(low, signal.element)
            if low + width > signal.element:
                return [f"{width}'(", *name, f" >> {index * signal.element + low})"]
            name += ["[", ("i", index), "]"]
            if width == signal.element:
                return name
        return [*name, f"[{low}]" if width == 1 else f"[{low + width - 1}:{low}]"]

    def _made(self, word: Word) -> Text:
        args, op = word.args, word.op
        if op == "var":
            return self._named(self.owner.places[word.number], 0, word.width)
        if word.constant is not None:
            return [_constant(word, False)]
        match op:
            case "add" | "sub":
                return self._sum(word)
            case "mul" | "and" | "or" | "xor":
                sign = {"mul": "*", "and": "&", "or": "|", "xor": "^"}[op]
                return self._chain(word, sign)
            case "eq" | "ult":
                return self._compared(word, "==" if op == "eq" else "<")
            case "slt":
                return [
                    "($signed(",
                    *_bare(self.read(args[0])),
                    ") < $signed(",
                    *_bare(self.read(args[1])),
                    "))",
                ]
            case "not":
                return self._inverted(word)
            case "neg":
                return ["(-", *self.read(args[0]), ")"]
            case "shl" | "lshr":
                return ["(", *self.read(args[0]), " << " if op == "shl" else " >> ", *self.read(args[1]), ")"]
            case "ashr":
                return ["$unsigned($signed(", *_bare(self.read(args[0])), ") >>> ", *self.read(args[1]), ")"]
            case "ite" if _is_larger(word):
                self.owner.functions.add(word.width)
                first, second = (_bare(self.read(one)) for one in _parts(word))
                return [f"larger_{word.width}(", *first, ", ", *second, ")"]
            case "ite":
                return ["(", *self.read(args[0]), " ? ", *self.read(args[1]), " : ", *self.read(args[2]), ")"]
            case "sext":
                return [f"$unsigned({word.width}'($signed(", *_bare(self.read(args[0])), ")))"]
            case "concat":
                return self._joined(word)
            case "extract":
                return self._cut(word)
        raise CircuitError(f"no text for operation {op!r}")

    def _sorted(self, texts: list[Text]) -> list[Text]:
        """Operands in an order that indices do not decide, so that elements of an array read alike."""
        return sorted(texts, key=_key)

    def _chain(self, word: Word, sign: str) -> Text:
        """Operands of one associative operation side by side, where none of them has a name."""
        found: list[Text] = []
        open_ = list(word.args)
        while open_:
            one = open_.pop(0)
            if (
                one.op == word.op
                and one.number not in self.names
                and self._place(one) is None
                and one.number not in self.ends
            ):
                open_ = [*one.args, *open_]
            else:
                found.append(self.read(one))
        if sign in "|&" and word.width == 1:
            found = self._reduced(found, sign)
        text: Text = ["("]
        for i, piece in enumerate(self._sorted(found)):
            text += [f" {sign} "] * (i > 0) + piece
        return [*text, ")"] if len(found) > 1 else text[1:]

    def _reduced(self, texts: list[Text], sign: str) -> list[Text]:
        """Operands that differ in the element of arrays alone as one reduction of the arrays."""
        alike: dict[str, list[Text]] = {}
        for text in texts:
            alike.setdefault(_key(text)[0], []).append(text)
        found: list[Text] = []
        arrays = {s.name: len(s.words) for s in self.owner.signals if s.array and s.width == 1}
        for group in alike.values():
            merged = _merged(sorted(group, key=_key)) if len(group) > 2 else None
            names = re.findall(r"(\w+)\[k\]", merged or "")
            plain = re.sub(r"\w+\[k\]", "", merged or "")
            whole = names and all(arrays.get(re.sub(r"_q\d+$", "", name)) == len(group) for name in names)
            if merged is not None and whole and re.fullmatch(r"[ ~&|()]*", plain):
                body = _bare([merged.replace("[k]", "")])
                found.append(
                    [
                        f"({sign}",
                        *([body[0]] if re.fullmatch(r"\w+", str(body[0])) else ["(", *body, ")"]),
                        ")",
                    ]
                )
            else:
                found += group
        return found

    def _sum(self, word: Word) -> Text:
        first, second = word.args
        if word.op == "add" and first.constant is not None:
            first, second = second, first
        if (
            second.constant is not None
            and word.op == "add"
            and second.constant >> (second.width - 1)
            and second.width > 1
        ):
            less = (1 << second.width) - second.constant
            return ["(", *self.read(first), f" - {second.width}'d{less})"]
        if word.op == "add":
            texts = [self.read(first), self.read(second)]
            texts = texts if second.constant is not None else self._sorted(texts)
            return ["(", *texts[0], " + ", *texts[1], ")"]
        return ["(", *self.read(first), " - ", *self.read(second), ")"]

    def _compared(self, word: Word, sign: str) -> Text:
        first, second = word.args
        if word.op == "eq" and first.constant is not None:
            first, second = second, first
        if word.op == "eq" and second.constant is None:
            texts = self._sorted([self.read(first), self.read(second)])
            return ["(", *texts[0], f" {sign} ", *texts[1], ")"]
        return ["(", *self.read(first), f" {sign} ", *self.read(second), ")"]

    def _inverted(self, word: Word) -> Text:
        inner = word.args[0]
        if inner.op == "eq" and inner.number not in self.names and self._place(inner) is None:
            return self._compared(inner, "!=")
        return ["~", *self.read(inner)]

    def _joined(self, word: Word) -> Text:
        high, low = word.args
        if high.constant == 0:
            inside = _bare(self.read(low))
            if re.fullmatch(r"\w+(\[[^\[\]]*\])*|\{[^{}]*\}|\w+\([^()]*\)", _plain_text(inside)):
                return [f"{word.width}'(", *inside, ")"]
            # A cast would let the operators inside work in its width: brackets of a concatenation do not.
            return ["{", f"{high.width}'d0, ", *inside, "}"]
        pieces: list[Text] = []
        one = word
        while True:
            pieces.append(_bare(self.read(one.args[0])))
            one = one.args[1]
            if (
                one.op != "concat"
                or one.number in self.names
                or self._place(one) is not None
                or one.args[0].constant == 0
            ):
                break
        pieces.append(_bare(self.read(one)))
        text: Text = ["{"]
        for i, piece in enumerate(pieces):
            text += [", "] * (i > 0) + piece
        return [*text, "}"]

    def _cut(self, word: Word) -> Text:
        inner, low = word.args[0], word.value
        assert isinstance(low, int)
        place = self._place(inner) if inner.op != "var" else self.owner.places[inner.number]
        if place is not None and inner.number not in self.names:
            return self._named(place, low, word.width)
        for start, named in self.owner.pieces.get(inner.number, ()):
            place = self._place(named)
            covers = start <= low and low + word.width <= start + named.width
            if place is not None and covers and named.number not in self.ends:
                return self._named(place, low - start, word.width)
        # Of a word without a name: moved down and cut.
        text = self.read(inner)
        if inner.number in self.names and self.names[inner.number] not in self.partly:
            self.partly.append(self.names[inner.number])
        moved = text if low == 0 else ["(", *text, f" >> {low})"]
        return [f"{word.width}'(", *_bare(moved), ")"]


def _is_larger(word: Word) -> bool:
    """Whether a word is the larger one of two exponents, see Builder.larger."""
    chosen = word.args if word.op == "ite" else ()
    return bool(chosen) and chosen[0].op == "slt" and chosen[0].args == (chosen[2], chosen[1])


def _parts(word: Word) -> tuple[Word, ...]:
    """What the text of a word reads."""
    return (word.args[2], word.args[1]) if _is_larger(word) else word.args


# Text -------------------------------------------------------------------------------------------------------


def _split(signal: Signal) -> str:
    """A remark for Verilator at an array whose elements are made of each other: without it, the array is one
    signal there that is made of itself, a loop."""
    last = max(signal.words, key=lambda word: word.number)
    below = {*order([last])} - {last}
    return " /* verilator split_var */" if signal.array and not below.isdisjoint(signal.words) else ""


def _range(width: int, always: bool = False) -> str:
    """A dimension; of one bit none, unless it is one of an array."""
    return f"[{width - 1}:0] " if width > 1 or always else ""


def _constant(word: Word, signed: bool) -> str:
    value, width = word.constant, word.width
    assert value is not None
    if 8 < width <= 20 and value >> (width - 1) and (1 << width) - value < 1 << (width - 2):
        return f"-{width}'d{(1 << width) - value}"
    return f"{width}'d{value}" if value < 10 else f"{width}'h{value:x}"


def _bare(text: Text) -> Text:
    """Without the brackets around the whole."""
    if not text or not isinstance(text[0], str) or not text[0].startswith("("):
        return text
    level = 0
    flat = _plain_text(text)
    for i, letter in enumerate(flat):
        level += (letter == "(") - (letter == ")")
        if level == 0:
            if i != len(flat) - 1:
                return text
            break
    first, last = text[0], text[-1]
    assert isinstance(first, str) and isinstance(last, str)
    if len(text) == 1:
        return [first[1:-1]]
    return [first[1:], *text[1:-1], last[:-1]]


def _plain_text(text: Iterable[str | Index]) -> str:
    return "".join(piece if isinstance(piece, str) else str(piece[1]) for piece in text)


def _key(text: Text) -> tuple[str, list[int]]:
    """Sorts by the text, then by its numbers."""
    marked = "".join(piece if isinstance(piece, str) else "#" for piece in text)
    return re.sub(r"\d+", "#", marked), [int(number) for number in re.findall(r"\d+", _plain_text(text))]


def _merged(lines: Sequence[Text], start: int = 0) -> str | None:
    """One line for all elements with `k` for the element; None where they differ in more than indices."""
    shapes = {tuple(piece if isinstance(piece, str) else "#" for piece in _glued(line)) for line in lines}
    if len(shapes) != 1:
        return None
    found = []
    for pieces in zip(*(_glued(line) for line in lines), strict=True):
        if isinstance(pieces[0], str):
            found.append(pieces[0])
            continue
        text = _index([piece[1] for piece in pieces if not isinstance(piece, str)], start)
        if text is None:
            return None
        found.append(text)
    return "".join(found)


def _glued(line: Text) -> Text:
    """Neighbouring pieces of text as one."""
    found: Text = []
    for piece in line:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def _index(values: Sequence[int], start: int) -> str | None:
    """An index in terms of k, which begins at `start`: a constant, k times a number and another, or k
    divided."""
    step = values[1] - values[0] if len(values) > 1 else 0
    first = values[0] - step * start
    if all(value == first + step * k for k, value in enumerate(values, start)):
        if step == 0:
            return str(first)
        more = f" + {first}" if first > 0 else f" - {-first}" if first else ""
        return ("k" if step == 1 else f"{step} * k") + more
    for size in range(2, len(values) + 1):
        if all(value == k // size for k, value in enumerate(values, start)):
            return f"k / {size}"
    return None


def _alike(bodies: Sequence[Sequence[Text]]) -> bool:
    """Whether all have equally many lines."""
    return len({len(body) for body in bodies}) == 1


def _runs(bits: int) -> list[tuple[int, int]]:
    """The runs of ones of a number: lowest and highest bit of each."""
    found, at = [], 0
    while bits >> at:
        if bits >> at & 1:
            end = at
            while bits >> (end + 1) & 1:
                end += 1
            found.append((at, end))
            at = end
        at += 1
    return found


def _wrapped(text: str) -> list[str]:
    lines, line = [], "    //"
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH:
            lines.append(line)
            line = "    //"
        line += " " + word
    return [*lines, line]


def _broken(line: str, again: bool = False) -> list[str]:
    """A line that is too long, as several."""
    if len(line) <= WIDTH or line.lstrip().startswith("//"):
        return [line]
    own = len(line) - len(line.lstrip())
    indent = " " * (own if again else own + 4)
    cut = max(line.rfind(sign, 0, WIDTH) for sign in (" | ", " & ", " + ", " ? ", " : ", ", "))
    if cut <= len(indent):
        return [line]
    cut += 1 if line[cut] == "," else 0
    return [line[:cut], *_broken(indent + line[cut:].lstrip(), True)]


def _plain(value: object) -> object:
    """Values that YAML writes without tags."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Hex):
        return f"0x{int(value):X}"
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
