"""What the wrapper puts between the bench, which hands over a whole operand word in one transfer, and a
unit that
takes it in another way: operands that stay until the result, a channel for each operand, several valids, a
clear or load in a cycle of its own.

The bench sees one handshake whatever the unit has, and so do all engines. The adapter is described once, in
signals of one bit and in words; `verilog` and `vhdl` write it. Where a unit has a rule ("b counts only
with its valid"), the adapter breaks what the rule leaves open: a channel that is not offered shows other
bits, one valid comes without the others, a channel comes later than another. So a unit that needs more
than its description says fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from golden.program.state import CONTROLS
from golden.vectors.word import RESULTS
from rtl_tb.dut.description import IN_BEATS, Dut

CHANCE = 8
"""One-bit registers of the generator of chance: its period, 255 cycles, is a multiple of no power of two."""
_AHEAD = 9
"""Vectors at most by which one channel runs ahead of another: one more than the usual queue of a channel."""
_COUNT = 16
"""Bits of the counter of what is in flight: more than a pipeline holds."""


@dataclass(frozen=True)
class Register:
    """A register of one bit or of a word; the first rule (condition, value) that holds counts. `reset`: its
    value after a reset, None: it needs none."""

    name: str
    rules: tuple[tuple[str, str], ...]
    reset: str | None = "0"
    word: bool = False


@dataclass(frozen=True)
class Word:
    """A word made of others: `yes` where `condition` holds, else `no`; or `source` with bits `kept`, `added`
    and `inverted`; or its bits from `above` on."""

    name: str
    condition: str = ""
    yes: str = ""
    no: str = ""
    source: str = ""
    kept: int | None = None
    added: int = 0
    inverted: int = 0
    above: int = 0


@dataclass
class Adapter:
    """An adapter.

    Attributes:
        bits: wires by name and what drives them: names, `!`, `&`, `|`, `^`, parentheses, a bit of a word
            x[3].
        registers, words, counted: what else it is made of; `counted` counts what is in flight.
        inputs: wires that the unit drives.
        bus: the word at the ports of each operand.
        free: when the unit is offered operands; "": always.
        valid: what out_valid is, of a unit whose own stays active; "": that of the unit.
        ready: what in_ready is, of a unit that has ready ports; "" where the wrapper knows.
    """

    bits: dict[str, str] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    counted: bool = False
    inputs: list[str] = field(default_factory=list)
    bus: dict[str, str] = field(default_factory=dict)
    free: str = ""
    ready: str = ""
    valid: str = ""

    @property
    def active(self) -> bool:
        """Whether there is anything between the bench and the unit."""
        return bool(self.bits or self.registers or self.words)


def later_word(cycles: int) -> str:
    """The name of the operand word of this many cycles before; "" for that of the same cycle."""
    return f"later_{cycles}" if cycles else ""


def adapter_of(dut: Dut) -> Adapter:
    """The adapter of a unit; one that is not `active` for a unit that takes operands as the bench gives
    them."""
    shake, found = dut.handshake, Adapter()
    fields = {item.name: item for item in dut.layout.operand_fields}
    before = [name for name in CONTROLS if name in dut.ports and dut.ports[name].given == "before_operands"]
    gated = [name for name in CONTROLS if name in dut.ports and dut.ports[name].given == "with_operands"]
    # 1. The word of operands: each stage reads the one before, and `bus` names the last.
    bus = "in_data"
    if shake.hold or shake.level or before or gated or shake.idle_zero:
        found.bits["take"] = "in_valid & in_ready" if shake.kind == "valid_ready" else "accept"
    if shake.hold or shake.level:
        bus = _one_at_a_time(found, dut, bus)
    bus = _load_of_zero(found, dut, bus)
    if gated:
        mask = sum(1 << fields[name].lsb for name in gated)
        found.words.append(Word("quiet_data", source=bus, kept=~mask))
        found.words.append(Word("gated_data", "take", bus, "quiet_data"))
        bus = "gated_data"
    if before:
        bus = _before(found, dut, before, bus)
    if shake.idle_zero:  # the cycle of a clear or load of its own has its control, and c
        shown = [*before, *(["c"] if "load" in before else [])]
        mask = sum(((1 << fields[name].width) - 1) << fields[name].lsb for name in shown)
        found.words.append(Word("none", source=bus, kept=mask if before else 0))
        found.words.append(Word("idle_data", "take", bus, "none"))
        bus = "idle_data"
    inverted = sum(1 << fields[name].lsb for name, at in dut.ports.items() if at.active_low)
    if inverted:
        found.words.append(Word("given_data", source=bus, inverted=inverted))
        bus = "given_data"
    # 2. When the unit is free: none of the stages above holds operands.
    free = [name for name in ("held", "rests", "asked") if name in found.bits or name in _names(found)]
    found.free = " & ".join(f"!{name}" for name in free)
    found.bus = {name: bus for name in dut.fields if name not in RESULTS}
    # 3. The words of earlier cycles; a pipeline that stands still takes them later as well.
    for cycles in range(1, max(max(at.later) for at in dut.ports.values()) + 1):
        goes = "!stall" if shake.enable and not shake.probing else "1"
        rules = ((goes, later_word(cycles - 1) or bus),)
        found.registers.append(Register(later_word(cycles), rules, None, word=True))
    for at in range(1, shake.ahead + 1):  # a valid that comes before its result waits for it
        found.inputs += ["unit_valid"] if at == 1 else []
        found.registers.append(
            Register(f"ahead_{at}", (("1", f"ahead_{at - 1}" if at > 1 else "unit_valid"),))
        )
        found.valid = f"ahead_{at}"
    # 4. The valid of the operands: `base` is the bench's, each rule of the description narrows it, and the
    # last one drives the unit's port, or one port for each channel.
    base = "accept"
    if shake.kind == "valid_ready":
        base = "in_valid"
        if found.free:
            found.bits["offer"] = f"in_valid & {found.free}"
            base = "offer"
            found.ready = f"{found.free} & unit_ready" if shake.in_ready or shake.channels else found.free
            found.inputs += ["unit_ready"] if shake.in_ready else []
    if shake.beats > 1:
        _beats(found, dut, bus)
        return found
    if shake.during:
        found.bits["during"] = f"{base} | held"
    if shake.hold in ("valid", "released"):
        found.bits["shown"] = f"{base} | held"
        base = "shown"
    if shake.out_ready in shake.agreed:
        found.bits["agreed"] = "out_ready & out_valid"
    if shake.in_valid in shake.agreed:
        found.bits["valid_0"] = f"{base} & {'unit_ready' if 'unit_ready' in found.inputs else 'in_ready'}"
    elif shake.more_valids:
        _all_needed(found, dut, base)
    elif shake.channels:
        _channels(found, dut, base, bus)
    elif base != ("in_valid" if shake.kind == "valid_ready" else "accept"):
        found.bits["valid_0"] = base
    return found


def _beats(found: Adapter, dut: Dut, bus: str) -> None:
    """A dot product in several transfers, of which the bench sees the last: until then its operands wait. A
    beat may come late; once it is offered, it stays. In between the ports show other bits, and so may the
    signals of the first and the last beat."""
    shake, count = dut.handshake, dut.handshake.beats
    last = f"beat_{count - 1}"
    _chance(found)
    found.inputs += ["unit_ready"] if shake.in_ready else []
    found.bits["goes"] = "1"
    if shake.in_valid:
        _pause(found, "moved")
        found.bits["goes"] = "offered | (!pause & (chance_0 | chance_1))"
    found.bits["valid_0"] = "in_valid & goes"
    found.bits["moved"] = "valid_0 & unit_ready" if shake.in_ready else "valid_0"
    found.registers.append(Register("offered", (("1", "valid_0 & !moved"),)))
    for at in range(count):
        found.registers.append(
            Register(f"beat_{at}", (("moved", f"beat_{at - 1 if at else count - 1}"),), str(int(not at)))
        )
    marks = (("first_beat", shake.first, "beat_0", 2), ("last_beat", shake.last, last, 3))
    for name, port, beat, bit in marks:
        other = "" if port in shake.quiet else f" | (!valid_0 & chance_{bit})"
        found.bits |= {name: f"(valid_0 & {beat}){other}"} if port else {}
    found.free = f"goes & {last}"
    found.ready = f"{found.free} & unit_ready" if shake.in_ready else found.free
    whole = (1 << dut.layout.operand_width) - 1
    for item in dut.fields.values():
        if item.name in IN_BEATS:
            now = bus
            for at in range(1, count):
                shifted, chosen = f"{item.name}_at_{at}", f"{item.name}_beat_{at}"
                found.words.append(Word(shifted, source=bus, above=at * item.width))
                found.words.append(Word(chosen, f"beat_{at}", shifted, now))
                now = chosen
            found.words.append(Word(f"{item.name}_other", source=now, inverted=whole))
            found.words.append(Word(f"{item.name}_data", "valid_0", now, f"{item.name}_other"))
            found.bus[item.name] = f"{item.name}_data"


def _names(found: Adapter) -> list[str]:
    return [each.name for each in found.registers]


def _one_at_a_time(found: Adapter, dut: Dut, bus: str) -> str:
    """From when operands are taken until their result is, no others are. They may have to stay at the ports;
    and of an output valid that stays active the first cycle counts in which it is so again."""
    found.bits["done"] = "out_valid & out_ready" if dut.can_stall_output else "out_valid"
    found.registers.append(Register("held", (("done", "0"), ("take", "1"))))
    if dut.handshake.during:
        found.inputs.append("unit_valid")
        found.valid = "during & unit_valid"
    if dut.handshake.level:
        found.inputs.append("unit_valid")
        found.registers.append(Register("lowered", (("take", "!unit_valid"), ("!unit_valid", "1"))))
        found.valid = "held & lowered & unit_valid"
    if dut.handshake.hold == "released":  # the unit sees its valid low before the next operands come
        found.registers.append(Register("rests", (("1", "done"),)))
    if not dut.handshake.hold:
        return bus
    found.registers.append(Register("kept_data", (("take", "in_data"),), None, word=True))
    found.words.append(Word("held_data", "held", "kept_data", "in_data"))
    return "held_data"


def _load_of_zero(found: Adapter, dut: Dut, bus: str) -> str:
    """A unit without a port for `clear` is cleared by a load of zero."""
    fields = {item.name: item for item in dut.layout.operand_fields}
    if "clear" not in fields or "clear" in dut.ports:
        return bus
    c = ((1 << fields["c"].width) - 1) << fields["c"].lsb
    found.words.append(Word("zero_data", source=bus, kept=~c, added=1 << fields["load"].lsb))
    found.words.append(Word("load_data", f"{bus}[{fields['clear'].lsb}]", "zero_data", bus))
    return "load_data"


def _before(found: Adapter, dut: Dut, controls: list[str], bus: str) -> str:
    """A clear or load comes in a cycle of its own, when nothing is in flight, and the operands after it.
    Where it comes without products, the operands after it are zero."""
    fields = {item.name: item for item in dut.layout.operand_fields}
    wanted = " | ".join(f"{bus}[{fields[name].lsb}]" for name in controls)
    found.counted = True
    found.bits["asked"] = f"in_valid & !led & ({wanted})"
    found.bits["pulse"] = "asked & idle"
    found.registers.append(Register("led", (("take", "0"), ("pulse", "1"))))
    mask = sum(1 << fields[name].lsb for name in controls)
    found.words.append(Word("after_data", source=bus, kept=~mask))
    alone = [name for name in controls if name in dut.instruction.alone]
    after = "after_data"
    if alone:
        factors = [fields[name] for name in "ab" if name in fields]
        products = sum(((1 << item.width) - 1) << item.lsb for item in factors)
        marks = " | ".join(f"{bus}[{fields[name].lsb}]" for name in alone)
        found.words.append(Word("none_data", source="after_data", kept=~products))
        found.words.append(Word("alone_data", f"led & ({marks})", "none_data", "after_data"))
        after = "alone_data"
    found.words.append(Word("led_data", "pulse", bus, after))
    return "led_data"


def _chance(found: Adapter) -> None:
    """A shift register with feedback, x^8 + x^6 + x^5 + x^4 + 1, that moves by its whole length in a cycle:
    moved by one, each bit would say what its neighbour is a cycle later."""
    if "chance_0" in _names(found):
        return
    bits = [{at} for at in range(CHANCE)]
    for _ in range(CHANCE):
        bits = [bits[7] ^ bits[5] ^ bits[4] ^ bits[3], *bits[:-1]]
    for at, sources in enumerate(bits):
        text = " ^ ".join(f"chance_{source}" for source in sorted(sources))
        found.registers.append(Register(f"chance_{at}", (("1", text),), str(int(not at))))


def _pause(found: Adapter, moved: str) -> None:
    """A register `pause`: after a transfer, once in 255 cycles at most, what may come late waits for longer
    than one bit of chance alone makes it wait: for up to some 120 cycles, each fourth time up to 255."""
    found.bits["round"] = " & ".join(f"chance_{bit}" for bit in range(CHANCE))
    found.registers.append(Register("turn_0", (("round", "!turn_0"),)))
    found.registers.append(Register("turn_1", (("round & turn_0", "!turn_1"),)))
    found.bits["pauses"] = f"armed & {moved} & chance_5 & chance_6 & chance_7"
    found.registers.append(Register("armed", (("pauses", "0"), ("round", "1"))))
    found.bits["resumes"] = (
        "round | (chance_0 & chance_1 & chance_2 & chance_3 & chance_4 & !(turn_0 & turn_1))"
    )
    found.registers.append(Register("pause", (("pauses", "1"), ("resumes", "0"))))


def _all_needed(found: Adapter, dut: Dut, base: str) -> None:
    """Several valids: all with the operands; at other times some, never all, as it falls out."""
    _chance(found)
    count = 1 + len(dut.handshake.more_valids)
    found.bits["every"] = " & ".join(f"chance_{at % CHANCE}" for at in range(count))
    for at in range(count):
        found.bits[f"valid_{at}"] = f"{base} | (chance_{at % CHANCE} & !every)"


def _channels(found: Adapter, dut: Dut, base: str, bus: str) -> None:
    """A channel for each part of the operands, with a queue of its own: the last words of the bench are kept
    once, and each channel counts how many of them it has still to give. So one channel runs ahead of another
    by up to _AHEAD vectors. A part without a ready is taken at once, and nothing says how many of them the
    unit can keep: its channels wait for each other behind every vector."""
    _chance(found)
    channels = dut.handshake.channels
    ahead = _AHEAD if all(channel.ready for channel in channels) else 1
    found.bits["filled"] = f"{base} & unit_ready"
    for at in range(ahead):
        found.registers.append(
            Register(f"kept_{at}", (("filled", f"kept_{at - 1}" if at else bus),), None, True)
        )
    # For 16 vectors on average a channel is offered at once, or comes late: by cycles, or `far`: by as many
    # vectors as its queue holds. Behind the last vector no queue fills any more, so it goes on anyway, in 8
    # of 255 cycles.
    _pause(found, "filled")
    found.bits["turn"] = "filled & chance_0 & chance_1 & chance_2 & chance_4"
    found.registers.append(Register("far", (("turn", "chance_3"),)))
    found.bits["anyway"] = " & ".join(f"chance_{bit}" for bit in range(5))
    for at, channel in enumerate(channels):
        behind = [f"behind_{at}_{count}" for count in range(ahead + 1)]
        found.registers.append(Register(f"late_{at}", (("turn", f"chance_{5 + at % 3}"),)))
        comes = f"(!far & chance_1) | (far & (anyway | {behind[-1]}))" if ahead > 1 else "chance_1"
        waits = f"late_{at} & (pause | !({comes}))"
        found.bits[f"offers_{at}"] = f"!{behind[0]} & (offered_{at} | !({waits}))"
        agreed = channel.valid in dut.handshake.agreed
        found.bits[f"valid_{at}"] = f"offers_{at} & ready_{at}" if agreed else f"offers_{at}"
        found.inputs += [f"ready_{at}"] if channel.ready else []
        found.bits[f"done_{at}"] = f"offers_{at} & ready_{at}" if channel.ready else f"offers_{at}"
        found.registers.append(Register(f"offered_{at}", (("1", f"offers_{at} & !done_{at}"),)))
        for count, name in enumerate(behind):  # one of them is 1: this many are still to be given
            more = behind[count - 1] if count else "0"
            less = behind[count + 1] if count < ahead else "0"
            rules = ((f"filled & !done_{at}", more), (f"done_{at} & !filled", less))
            found.registers.append(Register(name, rules, "0" if count else "1"))
        oldest = bus
        for count in range(ahead, 0, -1):
            found.words.append(Word(f"from_{at}_{count}", behind[count], f"kept_{count - 1}", oldest))
            oldest = f"from_{at}_{count}"
        found.words.append(Word(f"other_{at}", source=oldest, inverted=(1 << dut.layout.operand_width) - 1))
        found.words.append(Word(f"data_{at}", f"valid_{at}", oldest, f"other_{at}"))
        for name in dut.fields:
            if name in channel.operands or name.partition(".")[0] in channel.operands:
                found.bus[name] = f"data_{at}"
    room = [f"(!behind_{at}_{ahead} | done_{at})" for at in range(len(channels))]
    found.bits["unit_ready"] = " & ".join(room)
    found.ready = found.ready or "unit_ready"


# Text -------------------------------------------------------------------------------------------------------


def verilog(found: Adapter, width: int) -> list[str]:
    """The adapter in SystemVerilog that Icarus Verilog 11 reads."""
    if not found.active:
        return []
    lines = ["", "    // What lies between one transfer of all operands and the DUT's own handshake."]
    lines += ["    // verilator lint_off UNUSEDSIGNAL"]
    lines += [f"    wire {name};" for name in (*found.inputs, *found.bits)]
    lines += [f"    wire [{width - 1}:0] {word.name};" for word in found.words]
    lines += [
        f"    reg {f'[{width - 1}:0] ' if register.word else ''}{register.name};"
        for register in found.registers
    ]
    lines += ["    // verilator lint_on UNUSEDSIGNAL"]
    lines += [f"    assign {name} = {_sv(text)};" for name, text in found.bits.items()]
    lines += [f"    assign {word.name} = {_sv_word(word, width)};" for word in found.words]
    for register in found.registers:
        rules = [f"if ({_sv(when)}) {register.name} <= {_sv(to)};" for when, to in register.rules]
        if register.reset is not None:
            rules.insert(0, f"if (!rst_n) {register.name} <= {_sv(register.reset)};")
        lines += [
            "    always @(posedge clk)",
            *(f"        {'else ' * (at > 0)}{rule}" for at, rule in enumerate(rules)),
        ]
    if found.counted:
        lines += [
            "    // What is in flight.",
            f"    reg [{_COUNT - 1}:0] flying;",
            f"    wire idle = flying == {_COUNT}'d0;",
            "    wire leaves = out_valid && out_ready;",
            "    always @(posedge clk)",
            f"        if (!rst_n) flying <= {_COUNT}'d0;",
            f"        else if (take && !leaves) flying <= flying + {_COUNT}'d1;",
            f"        else if (leaves && !take) flying <= flying - {_COUNT}'d1;",
        ]
    return lines


def _sv(text: str) -> str:
    return re.sub(r"(?<![\w'])([01])(?![\w'])", r"1'b\1", text.replace("&", "&&").replace("|", "||"))


def _sv_word(word: Word, width: int) -> str:
    if word.condition:
        return f"{_sv(word.condition)} ? {word.yes} : {word.no}"
    text, whole = word.source, (1 << width) - 1
    if word.above:
        return f"{text} >> {word.above}"
    if word.kept is not None:
        text = f"{text} & {width}'h{word.kept & whole:x}"
    if word.added:
        text = f"({text}) | {width}'h{word.added:x}"
    return f"({text}) ^ {width}'h{word.inverted & whole:x}" if word.inverted else text


_VHDL_NAMES = {
    "in_valid": "given",
    "out_valid": "valid",
    "out_ready": "taken",
    "in_ready": "ready",
    "in_data": "data",
}


def vhdl_name(name: str) -> str:
    """The name of a signal of the wrapper in VHDL."""
    return _VHDL_NAMES.get(name, name)


def vhdl(found: Adapter, width: int, later: str) -> tuple[list[str], list[str]]:
    """The declarations and the statements of the adapter in VHDL-93; registers change `later` than the
    clock's edge."""
    if not found.active:
        return [], []
    names = [*found.inputs, *found.bits, *(each.name for each in found.registers if not each.word)]
    words = [*(word.name for word in found.words), *(each.name for each in found.registers if each.word)]
    declared = [f"signal {', '.join(names)} : std_logic;"] if names else []
    declared += [f"signal {', '.join(words)} : std_logic_vector({width - 1} downto 0);"] if words else []
    lines = [f"{name} <= {bit_text(text)};" for name, text in found.bits.items()]
    lines += [line for word in found.words for line in _vhdl_word(word, width)]
    for register in found.registers:
        lines += ["process (clk) begin", "  if rising_edge(clk) then"]
        rules = [(_condition(when), bit_text(to)) for when, to in register.rules]
        if register.reset is not None:
            rules.insert(0, ("run = '0'", bit_text(register.reset)))
        for at, (when, to) in enumerate(rules):
            lines.append(f"    {'els' * (at > 0)}if {when} then {register.name} <= {to} {later};")
        lines += ["    end if;", "  end if;", "end process;"]
    if found.counted:
        declared += ["signal flying : integer range 0 to 65535 := 0;", "signal idle, leaves : std_logic;"]
        lines += [
            "idle <= '1' when flying = 0 else '0';",
            "leaves <= valid and taken;",
            "process (clk) begin",
            "  if rising_edge(clk) then",
            f"    if run = '0' then flying <= 0 {later};",
            f"    elsif take = '1' and leaves = '0' then flying <= flying + 1 {later};",
            f"    elsif leaves = '1' and take = '0' then flying <= flying - 1 {later};",
            "    end if;",
            "  end if;",
            "end process;",
        ]
    return declared, lines


def _condition(text: str) -> str:
    return "true" if text == "1" else f"({bit_text(text)}) = '1'"


def bit_text(text: str) -> str:
    """An expression of one bit in VHDL; operators of different kinds are in parentheses already, but for
    `!`."""
    text = re.sub(r"(\w+)\[(\d+)\]", r"\1(\2)", text)
    text = re.sub(r"\b[A-Za-z_]\w*", lambda name: vhdl_name(name[0]), text)
    text = re.sub(r"!\(", "not (", re.sub(r"!(\w+)", r"(not \1)", text))
    text = text.replace("&", "and").replace("|", "or").replace("^", "xor")
    return re.sub(r"(?<![\w'(])([01])(?![\w')])", r"'\1'", text)


def _vhdl_word(word: Word, width: int) -> Iterator[str]:
    if word.condition:
        yes, no = vhdl_name(word.yes), vhdl_name(word.no)
        yield f"{word.name} <= {yes} when {_condition(word.condition)} else {no};"
        return
    text, whole = vhdl_name(word.source), (1 << width) - 1
    if word.above:
        zeros = "0" * word.above
        yield f'{word.name} <= "{zeros}" & {text}({width - 1} downto {word.above});'
        return
    if word.kept is not None:
        text = f'({text} and "{word.kept & whole:0{width}b}")'
    if word.added:
        text = f'({text} or "{word.added:0{width}b}")'
    yield f"{word.name} <= " + (
        f'{text} xor "{word.inverted & whole:0{width}b}";' if word.inverted else f"{text};"
    )
