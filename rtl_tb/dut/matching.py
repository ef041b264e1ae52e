"""Matches the ports of a module to the roles that a unit has: its operands and results, clock, reset,
handshake.

Names are split into words (`s_axis_a_tvalid`: s, axis, a, t, valid), and each word speaks for some roles
and against others. Direction and, where the instruction is known, width decide with them: `score` adds it
all up. Pairs of port and role are then taken in the order of their scores. A role whose port scores low,
or hardly more than another port, is not sure, and says which the other candidates are. Nothing depends on
more than the ports and the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from golden.vectors.word import RESULTS, Field
from rtl_tb.dut.ports import Module, Port

SURE = 6
"""Score from which a name says what a port is: one plain word of the field's own."""
CONTROL_ROLES = ("clock", "reset", "enable", "in_valid", "in_ready", "out_valid", "out_ready")
MAIN = ("a", "b", "c")
"""The operands that may be named by a mere order: x and y, op1 and op2, lhs and rhs."""
_OUTPUTS = (*RESULTS, "in_ready", "out_valid")
_ANY_WIDTH = -4
"""Of one bit where the width is not known: most such ports are signals of control."""
_FITS, _WIDER, _NARROWER = 4, -2, -6
"""Of a port as wide as its field: as good as half a name. One that is too narrow cannot hold it."""
_NEVER = -100


def _words(*lines: str) -> set[str]:
    return {word for line in lines for word in line.split()}


def _points(lines: Mapping[int, str]) -> dict[str, int]:
    """The points of each word, from lines with the words of equal points."""
    return {word: points for points, line in lines.items() for word in line.split()}


_WORDS = {
    "clock": _points({9: "clk clock aclk clki", 7: "ck", 6: "cp"}),
    "reset": _points({9: "rst reset rstn resetn aresetn areset arst arstn nrst nreset srst"}),
    "enable": _points({8: "clken", 7: "en ena enable ce cen", 3: "stall hold"}),
    "in_valid": _points(
        {9: "valid vld dv nvalid nvld", 8: "start stb strobe go", 7: "v push val nd", 6: "begin fire req"}
        | {4: "request", 3: "en ena enable", 2: "ce"}
    ),
    "out_valid": _points(
        {9: "valid vld dv done finish finished nvalid nvld", 8: "stb strobe drdy", 7: "v complete val"}
        | {4: "end", 3: "ready rdy"}
    ),
    "in_ready": _points({9: "ready rdy nready nrdy", 8: "ack", 6: "busy", 5: "accept idle"}),
    "out_ready": _points({9: "ready rdy nready nrdy", 8: "ack yumi", 7: "pop", 5: "accept"}),
    "a": _points({8: "a lhs", 7: "multiplicand", 6: "x left act activation activations"}),
    "b": _points({8: "b rhs", 7: "multiplier", 6: "y right w wgt weight weights"}),
    "c": _points(
        {10: "sum", 8: "c addend psum", 7: "acc accum accumulator bias", 5: "z partial accumulate"}
        | {4: "add", 3: "s"}
    ),
    "d": _points(
        {
            9: "result",
            8: "res sum product prod",
            7: "dot",
            6: "d z acc accum accumulator psum mac answer total",
        }
        | {5: "out output r y q p c rd fma", 4: "s", 3: "o value", 2: "data bits"}
    ),
    "flags": _points({9: "flags fflags", 8: "flag exception exceptions exc status"}),
    "clear": _points({9: "clear clr", 6: "first init", 4: "zero flush", 3: "new"}),
    "load": _points({9: "load ld preload", 3: "set"}),
    "mode": _points(
        {8: "rm rnd round rounding rmode", 7: "mode", 6: "opcode func function", 5: "ctrl control", 3: "op"}
    ),
    "metadata": _points({9: "metadata meta", 8: "sparsity", 5: "e idx index", 4: "sel"}),
    "scale_a": _points({12: "sfa", 9: "sa", 6: "scale sf", 4: "a", 3: "x"}),
    "scale_b": _points({12: "sfb", 9: "sb", 6: "scale sf", 4: "b", 3: "y w"}),
}
"""The words that speak for each role. Words of SURE points say it alone. Chosen by hand, not measured."""
_NO_DATA = _points(
    {-9: "valid vld ready rdy stb ack clk clock rst reset busy done tag en"}
    | {-6: "keep strb user mode round rounding rnd rm ctrl control scale sf enable idx index addr address"}
) | _points({-6: "id last"})
"""What no operand and no result is called."""
_NO_RESULT = _points({-8: "flags flag status exception exceptions overflow underflow inexact invalid zero"})
_NO_RESULT |= _points({-8: "nan inf extension error a b"})
_AGAINST = {
    "a": _NO_DATA | _points({-5: "b c y rhs acc psum bias addend"}),
    "b": _NO_DATA | _points({-5: "a c x lhs acc psum bias addend"}),
    "c": _NO_DATA | _points({-5: "a b x lhs rhs"}),
    "d": _NO_DATA | _NO_RESULT,
    "flags": _NO_DATA | _points({-3: "result sum out"}),
    "scale_a": _points({-8: "b y"}),
    "scale_b": _points({-8: "a x"}),
    # A one-bit output that says that the result is ready is its valid.
    "in_ready": _points({-5: "result res done", -2: "out output"}),
    "out_valid": _points({-4: "in input busy"}),
    "in_valid": _points({-4: "out output result tag last"}),
    "out_ready": _points({-4: "in input"}),
    "clock": _points({-9: "en enable ena"}),
    "enable": _points({-3: "acc clear load"}),
}
"""The words that speak against each role."""
_TOWARDS = {"out_valid": _points({3: "out output result res"})}
"""Words that add to a word of `_WORDS` and say nothing alone."""
_ORDINAL = {"a": 0, "x": 0, "lhs": 0, "left": 0, "b": 1, "y": 1, "rhs": 1, "right": 1, "c": 2, "z": 2}
"""Words that say which operand in the order of a, b, c it is."""
_COUNTED = _words(
    "op opnd operand opr in input src data din num number arg i io val value fp float n t term",
    "addend factor rs port",
)
"""Words behind which a number says which operand it is; behind another it is an element."""
_PLAIN = _words(
    "i o in out input output io s m t n p d q axi axis slave master data tdata bits op operand operands",
    "req rsp resp src value num",
)
"""Words that say no more than that a port carries something."""
_VOCABULARY = {word for words in (*_WORDS.values(), *_AGAINST.values()) for word in words} | _PLAIN | _COUNTED
_ENDS = set("abcdeinoprqstxyz")
"""Letters that may stand glued before or behind a word: ivalid, opa, tdata, rstn."""
_CLOCK = re.compile(r"(?P<which>[a-z]+)(?P<clock>clk|clock)")
"""A clock with the word that says which one; `clk` and `clock` end no other word."""
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@lru_cache(maxsize=4096)
def _path_words(name: str) -> tuple[str, ...]:
    """The words of the structure or interface in which a field lies: they say to which operand its valid
    belongs."""
    path = name.rpartition(".")[0]
    return words_of(path) if path and words_of(path) != words_of(name)[: len(words_of(path))] else ()


def words_of(name: str) -> tuple[str, ...]:
    """The words of a port's name, in small letters; of a field of a structure those of the field, with
    those of the structure before them where the field says no more than that it is one."""
    *path, last = name.split(".")
    words = tuple(piece for word in _WORD.findall(last) for piece in _pieces(word.lower()))
    if path and not set(words) - _PLAIN:
        return (*words_of(path[-1]), *words)
    return words


def _pieces(word: str) -> list[str]:
    """A word, or what it is glued together of: known words, of which one letter may stand at either end."""
    if word in _VOCABULARY or word.isdigit():
        return [word]
    if clock := _CLOCK.fullmatch(word):  # mclk, sysclk, refclock
        return [clock["which"], clock["clock"]]
    best: list[list[str] | None] = [[]] + [None] * len(word)
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, piece = best[start], word[start:end]
            known = (
                piece in _VOCABULARY
                if end - start > 1
                else piece in _ENDS and (start == 0 or end == len(word))
            )
            if before is not None and known and (best[end] is None or len(before) + 1 < len(best[end] or ())):
                best[end] = [*before, piece]
    found = best[-1]
    # Of two letters both may be ends; that is no word: "ab".
    return found if found and any(len(piece) > 1 for piece in found) else [word]


@dataclass(frozen=True)
class Candidate:
    """Ports that can have a role together: one, or numbered ones with an element each.

    words: of the name, without what a method of Bluespec adds. number: which of counted operands, or None.
    """

    ports: tuple[str, ...]
    direction: str
    width: int
    words: tuple[str, ...]
    number: int | None = None
    method: str | None = None
    """Of a signal EN_m or RDY_m of Bluespec, the role that it has."""
    header: bool = False
    """Whether it is a port of an interface, which the wrapper can connect by its name."""


@dataclass
class Match:
    """What was found: the candidate of each role, and of roles that are not sure the others that may be
    it, or another remark; controls that have no role, with what they are; and of signals of which registers
    show the polarity whether they are active low."""

    roles: dict[str, Candidate] = field(default_factory=dict)
    doubts: dict[str, list[str]] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)
    low: dict[str, bool] = field(default_factory=dict)


def match(module: Module, fields: Mapping[str, Field] | None, state: bool = False) -> Match:
    """Matches ports to roles.

    Args:
        fields: the fields of the unit's words by name; None: not known, then a, b, c, d and whatever is
            named.
        state: the unit keeps its accumulator, so that some input must say which cycles count.
    """
    candidates = [each for each in _candidates(module, fields) if each.width]
    wanted = [*CONTROL_ROLES, *(fields if fields is not None else ("a", "b", "c", "d", "flags"))]
    order = [role for role in MAIN if role in wanted]
    place = {name: at for at, name in enumerate(module.ports)}  # of what is alike the first port is taken
    scored = sorted(
        ((score(each, role, fields, order), role, each) for role in wanted for each in candidates),
        key=lambda row: (-row[0], wanted.index(row[1]), place[row[2].ports[0]], row[2].ports),
    )
    found, taken = Match(), set[str]()
    for points, role, each in scored:
        least = 1 if fields is not None and role in fields else SURE if role not in MAIN else 4
        if role in found.roles or taken & set(each.ports) or points < least:
            continue
        if role == "enable" and state and "in_valid" not in found.roles and points:
            role = "in_valid"  # what lets an accumulator add
        found.roles[role], found.scores[role] = each, points
        taken |= set(each.ports)
    _doubt(found, scored, taken)
    ready = found.roles.get("in_ready")
    answers = ready is not None and {"ready", "rdy", "ack"} & set(ready.words)
    if "out_valid" not in found.roles and answers:
        # The only signal that the unit gives says more probably when it answers than when it takes operands.
        found.roles["out_valid"] = found.roles.pop("in_ready")
        found.doubts["out_valid"] = ["the input's ready"]
    return found


def _doubt(found: Match, scored: Iterable[tuple[int, str, Candidate]], taken: set[str]) -> None:
    for points, role, each in scored:
        best = found.scores.get(role)
        if best is None or taken & set(each.ports):
            continue
        # A port must lead the best port without a role: less than a word decides nothing.
        margin = 3
        if points > max(best - margin, 0):
            found.doubts.setdefault(role, []).extend(each.ports)
    for role, best in found.scores.items():
        if best < SURE:
            found.doubts.setdefault(role, [])


def score(each: Candidate, role: str, fields: Mapping[str, Field] | None, order: Sequence[str]) -> int:
    """How much speaks for a candidate in a role; _NEVER where it cannot have it."""
    if each.direction != ("output" if role in _OUTPUTS else "input"):
        return _NEVER
    if role in CONTROL_ROLES:
        if each.width != 1 or (each.method is not None and each.method != role):
            return _NEVER
        return 14 + len(each.words) if each.method == role else _of_words(each, role) - each.header
    if each.method is not None:
        return _NEVER
    known = fields.get(role) if fields is not None else None
    points = _of_words(each, role)
    if known is None:
        points += _ANY_WIDTH if each.width == 1 and role not in ("clear", "load") else 0
    elif known.width == 1 and each.width > 1:
        return _NEVER
    else:
        points += _FITS if each.width == known.width else _WIDER if each.width > known.width else _NARROWER
    if role in MAIN:
        points += _of_order(each, role, order)
    return points


def _of_words(each: Candidate, role: str) -> int:
    speaks, against, towards = _WORDS.get(role, {}), _AGAINST.get(role, {}), _TOWARDS.get(role, {})
    best = sorted((speaks.get(word, 0) for word in set(each.words)), reverse=True)[:2]
    both = sum(best) if role.startswith("scale") else best[0] + (best[1] > 0) if len(best) > 1 else sum(best)
    more = sum(against.get(word, 0) + towards.get(word, 0) for word in set(each.words))
    return both + more if both or role in MAIN or role == "d" else min(more, 0)


def _of_order(each: Candidate, role: str, order: Sequence[str]) -> int:
    """What the order of the operands says: of an adder, which has a and c, the second is c."""
    hints = {_ORDINAL[word] for word in each.words if word in _ORDINAL}
    if each.number is not None and not hints:
        hints = {each.number}
    if len(hints) != 1:
        return 0
    (at,) = hints
    if role not in order or at >= len(order) or order[at] != role:
        return 0
    if each.number is not None or MAIN[at] != role:  # no word of its own, or one that speaks for another
        own = _AGAINST[role]
        return SURE + 1 - sum(own[word] for word in each.words if word in _ORDINAL and word in own)
    return 3  # points of the operand that is next where ports are counted: more than no word, less than any


# Candidates -------------------------------------------------------------------------------------------------


def _candidates(module: Module, fields: Mapping[str, Field] | None) -> list[Candidate]:
    methods, signals = _methods(module)
    spoken = _spoken(module)
    singles = [_single(name, port, methods, signals, spoken) for name, port in module.ports.items()]
    singles = _lettered(singles)
    groups: dict[tuple[tuple[str, ...], str, int], list[tuple[int, Candidate]]] = {}
    for each in singles:
        numbers = [at for at, word in enumerate(each.words) if word.isdigit()]
        if len(numbers) == 1 and each.method is None:
            at = numbers[0]
            stem = (*each.words[:at], "#", *each.words[at + 1 :])
            groups.setdefault((stem, each.direction, each.width), []).append((int(each.words[at]), each))
    found = {each.ports: each for each in singles}
    for (stem, direction, width), members in groups.items():
        members.sort(key=lambda row: (row[0], row[1].ports))
        words = tuple(word for word in stem if word != "#")
        if len(members) < 2 or (width == 1 and set(words) & set(_NO_DATA)):
            continue
        if _counts(words, members, fields):
            for rank, (_, each) in enumerate(members):
                found[each.ports] = Candidate(each.ports, direction, width, each.words, rank)
            continue
        ports = tuple(each.ports[0] for _, each in members)
        for name in ports:
            del found[(name,)]
        found[ports] = Candidate(ports, direction, width * len(ports), words)
    return list(found.values())


def _lettered(singles: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, with a word of its own for the last letter of names that differ in it alone: i_multa
    and i_multb are the operands a and b, as i_mult_a and i_mult_b are."""
    groups: dict[tuple[tuple[str, ...], str, int], dict[str, tuple[int, int]]] = {}
    for number, each in enumerate(singles):
        for at, word in enumerate(each.words):
            if len(word) > 1 and word[-1] in _ORDINAL and word not in _VOCABULARY:
                stem = (*each.words[:at], f"{word[:-1]}?", *each.words[at + 1 :])
                groups.setdefault((stem, each.direction, each.width), {})[word[-1]] = number, at
    found = list(singles)
    for letters in groups.values():
        for number, at in letters.values() if len(letters) > 1 else ():
            words = list(singles[number].words)
            words[at : at + 1] = words[at][:-1], words[at][-1]
            found[number] = replace(singles[number], words=tuple(words))
    return found


def _counts(
    words: Sequence[str], members: Sequence[tuple[int, Candidate]], fields: Mapping[str, Field] | None
) -> bool:
    """Whether numbers count operands, and not the elements of one."""
    named = set(words) & set(_ORDINAL) or not set(words) <= (_PLAIN | _COUNTED)
    if fields is not None and members[0][1].direction == "input":
        widths = {fields[role].width for role in MAIN if role in fields}
        whole, one = sum(each.width for _, each in members), members[0][1].width
        if (whole in widths) != (one in widths):
            return one in widths
    return not named and len(members) <= len(MAIN)


def _single(
    name: str,
    port: Port,
    methods: Mapping[str, str],
    signals: Mapping[str, str],
    spoken: Mapping[str, str],
) -> Candidate:
    own = spoken.get(name, name)
    if name not in signals:  # an argument of a method
        own = next((name[len(m) + 1 :] for m in methods if name.startswith(f"{m}_")), own)
    return Candidate((name,), port.direction, port.width, words_of(own), None, signals.get(name), port.header)


_HLS = {
    "_z": {"input": {"_vz": "valid", "_lz": "ready"}, "output": {"_lz": "valid", "_vz": "ready"}},
    "_dat": {each: {"_vld": "valid", "_rdy": "ready"} for each in ("input", "output")},
}
"""Ends of the names that Catapult gives the data of a channel, and by the direction of the data its valid and
its ready: x_rsc_z, x_rsc_vz, x_rsc_lz, where v comes from outside, and x_rsc_dat, x_rsc_vld, x_rsc_rdy."""


def _spoken(module: Module) -> dict[str, str]:
    """The ports of Catapult's channels with names that say what they are."""
    found: dict[str, str] = {}
    for name, port in module.ports.items():
        for end, sides in _HLS.items():
            stem = name.removesuffix(end)
            fellows = {f"{stem}{other}": word for other, word in sides.get(port.direction, {}).items()}
            if stem != name and fellows.keys() & module.ports.keys():
                found |= {each: f"{stem}_{word}" for each, word in fellows.items()} | {name: stem}
    return found


def _methods(module: Module) -> tuple[dict[str, str], dict[str, str]]:
    """The methods of a module that Bluespec wrote, the longest name first (one that is always ready has
    EN_m alone), and the roles of their signals: of one with arguments EN_m is a valid and RDY_m a ready,
    of one with a result RDY_m is the valid and EN_m the ready."""
    inputs = [name for name, port in module.ports.items() if port.direction == "input"]
    outputs = [name for name, port in module.ports.items() if port.direction == "output"]
    names = {name[len("RDY_") :] for name in outputs if name.startswith("RDY_")}
    names |= {name[len("EN_") :] for name in inputs if name.startswith("EN_")}
    sides, signals = {}, {}
    for name in sorted(names, key=lambda each: (-len(each), each)):
        takes, gives = (
            any(each == name or each.startswith(f"{name}_") for each in ports) for ports in (inputs, outputs)
        )
        if not takes and not gives:
            continue
        sides[name] = "in" if takes else "out"
        if f"RDY_{name}" in outputs:
            signals[f"RDY_{name}"] = "in_ready" if takes else "out_valid"
        if f"EN_{name}" in inputs:
            signals[f"EN_{name}"] = "in_valid" if takes else "out_ready"
    return sides, signals


# What init asks of names ------------------------------------------------------------------------------------


def operand_by_name(name: str, direction: str) -> str | None:
    """The operand or result that a port is by its name alone; None where no word of it says so."""
    each = Candidate((name,), direction, 2, words_of(name))
    roles = [role for role in (*MAIN, "d") if score(each, role, None, MAIN) >= SURE]
    return roles[0] if roles else None


def several_valids(
    module: Module, found: Match, missing: Sequence[str] = ()
) -> list[tuple[str, str | None, list[str]]]:
    """The valids of the operands, where they are several: each with its ready, or None, and its operands;
    without operands where they are no channels of their own.

    A channel is known by the words that its valid shares with the ports of an operand: input_a_stb, input_a.
    Operands for which no port was found, `missing`, belong to the channels that are left, one to each.
    """
    if "in_valid" not in found.roles:
        return []
    if found.roles["in_valid"].method is not None:
        return _channels_of_methods(module, found, missing)
    others = {
        name
        for role, each in found.roles.items()
        if role not in ("in_valid", "in_ready")
        for name in each.ports
    }

    spoken = _spoken(module)

    def alike(role: str, direction: str) -> list[Candidate]:
        best = found.scores.get(role, _NEVER)
        ports = [(name, port) for name, port in module.ports.items() if name not in others]
        each = [
            Candidate((name,), port.direction, port.width, words_of(spoken.get(name, name)))
            for name, port in ports
        ]
        each = [one for one in each if one.direction == direction]
        fits = [one for one in each if score(one, role, None, MAIN) >= max(best - 1, SURE + 1)]
        return [replace(one, words=(*_path_words(one.ports[0]), *one.words)) for one in fits]

    # 1. Free ports whose names say nearly as clearly that they are a valid, or a ready, as the best one.
    valids, readies = alike("in_valid", "input"), alike("in_ready", "output")
    if len(valids) < 2:
        return []
    alike_names = [each.ports[0] for each in valids]
    operands = [role for role in found.roles if role not in CONTROL_ROLES and role not in RESULTS]
    if not missing:
        valids = _of_operands(valids, [found.roles[role].words for role in operands])
    if len(valids) == 1:
        found.roles["in_valid"] = valids[0]
        found.doubts["in_valid"] = [name for name in alike_names if name != valids[0].ports[0]]
        return []
    # 2. Each operand goes to the valid that shares most words with it. Afterwards every operand with a port
    # has exactly one valid; a valid may have none.
    keys = [_key(each, "in_valid") for each in valids]
    own: list[list[str]] = [[] for _ in valids]
    for role in operands:
        each = found.roles[role]
        words = set(_key(each, role)) | {role} | {word for word in each.words if word in _ORDINAL}
        shared = [len(words & set(key)) for key in keys]
        # A valid without a word of its own is that of the operand that no other one is named after.
        named = [_stem(one) == each.words for one in valids]
        fits = list(zip(shared, named, (not key for key in keys), strict=True))
        own[fits.index(max(fits))].append(role)
    # 3. Operands without a port go to the valids without an operand, if they are equally many.
    left = [roles for roles in own if not roles]
    if left and len(left) == len(missing):
        for roles, role in zip(left, missing, strict=True):
            roles.append(role)
    # 4. They are channels only if every valid has operands and words of its own.
    apart = all(own) and len(set(keys)) == len(keys)
    channels: list[tuple[str, str | None, list[str]]] = []
    for valid, key, roles in zip(valids, keys, own, strict=True):
        ready = next((one.ports[0] for one in readies if _key(one, "in_ready") == key), None)
        channels.append((valid.ports[0], ready, roles if apart else []))
    return channels


def _channels_of_methods(
    module: Module, found: Match, missing: Sequence[str]
) -> list[tuple[str, str | None, list[str]]]:
    """As `several_valids`, of a module of Bluespec that takes its operands by several methods: the arguments
    of a method belong to its EN and RDY."""
    sides, _ = _methods(module)
    own: dict[str, list[str]] = {name: [] for name, side in sides.items() if side == "in"}
    for role, each in found.roles.items():
        if role not in CONTROL_ROLES and role not in RESULTS:
            of = next((name for name in own if f"{each.ports[0]}_".startswith(f"{name}_")), None)
            if of is not None:
                own[of].append(role)
    left = [roles for roles in own.values() if not roles]
    for roles, role in zip(left, missing, strict=False):
        roles.append(role)
    methods = [name for name, roles in own.items() if roles]
    methods.sort(key=lambda name: own[name])
    if len(methods) < 2 or not all(f"EN_{name}" in module.ports for name in methods):
        return []
    readies = {name: f"RDY_{name}" for name in methods if f"RDY_{name}" in module.ports}
    return [(f"EN_{name}", readies.get(name), own[name]) for name in methods]


def _of_operands(valids: list[Candidate], operands: Sequence[tuple[str, ...]]) -> list[Candidate]:
    """The valids without those whose names say something else than the names of the operands, unless all do:
    of s0_vld and fma_vld for opa and opb the second belongs to no operand."""
    said = {word for words in operands for word in words} | _ORDINAL.keys()
    own = [
        each
        for each in valids
        if not (key := _key(each, "in_valid")) or any(word.isdigit() or word in said for word in key)
    ]
    return own or valids


def _stem(valid: Candidate) -> tuple[str, ...]:
    """The words of a valid without those that say that it is one."""
    return tuple(word for word in valid.words if word not in _WORDS["in_valid"])


def _key(each: Candidate, role: str) -> frozenset[str]:
    """The words that say which operand it belongs to."""
    return frozenset(
        word
        for word in each.words
        if word not in _PLAIN and not (role in CONTROL_ROLES and word in _WORDS[role])
    )
