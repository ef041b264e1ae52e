"""The keys of a dut.yaml: one declaration for the reader (rtl_tb/dut/description.py), its messages, the JSON
Schema for editors and the tables of docs/dut.md."""

from __future__ import annotations

import re

from golden.values import (
    Anything,
    Choice,
    Either,
    Flag,
    Integer,
    Key,
    Many,
    Mapping,
    Table,
    Text,
    Variants,
)
from golden.vectors.word import LEVELS
from rtl_tb.dut.policy import NAN_POLICIES, ZERO_POLICIES
from rtl_tb.dut.vhdl import STANDARDS

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
TYPE = re.compile(
    rf"(?:{IDENTIFIER.pattern}::)*{IDENTIFIER.pattern}(?: +(?:signed|unsigned))?(?: *\[[\w: +*-]+\])*"
)
"""A named type, or a built-in one with its ranges: logic [15:0]."""
PORT_NAME = re.compile(rf"{IDENTIFIER.pattern}(\.{IDENTIFIER.pattern})*")
"""A port, or a field of one."""
MAX_CYCLES = 100_000
"""Clock cycles of a reset, a latency or an interval: a hundred times those of a divider that takes a bit a
cycle."""
MAX_BITS = 1 << 20
"""Bits of a port: a tile of 256 by 256 elements of 16 bits."""
MAX_CONSTANT = (1 << 1024) - 1
"""Of a port that is tied."""
ORDERS = ("ascending", "descending")
ARRAYS = ("packed", "unpacked")
GIVEN = ("freely", "with_operands", "before_operands")
"""When a clear or load may be active: whenever (a unit heeds its valid), only in a cycle in which operands
are taken (it acts without valid), or only in a cycle of its own before them."""
UNUSED = ("any", "zero", "sign")
"""What bits of a port have that carry no element of a result."""
HOLDS = ("operands", "valid", "released")
"""What stays as it is until the result: the operands, or the valid as well."""
_LEVEL = Choice(("low", "high"))
_FILES = Many(Text(), alone=True)
_NAME = Text(IDENTIFIER.pattern, "a Verilog identifier")
_PORT = Text(PORT_NAME.pattern, "a port or port.field")
_COUNT = Integer(1, MAX_CYCLES)

# Handshake --------------------------------------------------------------------------------------------------

_SIGNAL_KEYS = (
    Key("port", _PORT, "the port"),
    Key("active", _LEVEL, "`low` for a port that is active at 0", "high"),
)


def _signal(*more: Key) -> Either:
    """A port of the handshake: its name, or a mapping that says more."""
    return Either(_PORT, Mapping((*_SIGNAL_KEYS, *more)))


def _only_if(other: str) -> Key:
    return Key(
        "only_if",
        Choice((other,)),
        f"the signal may be active only while {other} is, as a method of Bluespec is called only when it is "
        f"ready",
        None,
    )


_IN_VALID = Key(
    "valid",
    Either(*_signal(_only_if("ready")).kinds, Many(_PORT, 1, different=True)),
    "the input's valid; a list if several must be active together",
)
_IN_READY = Key("ready", _signal(), "the input's ready", None)
_HOLD = Key(
    "hold",
    Choice(HOLDS),
    "`operands`: the operands stay at the ports until the result is there; `valid`: valid stays, too; "
    "`released`: as `valid`, and then valid is low for a cycle",
    None,
)
MAX_AHEAD = 16
"""Cycles by which a valid may come before its result: one is usual."""
MOST_BEATS = 64
"""Transfers of one dot product: the adapter has a register and a word for each."""
_AT_A_BEAT = _signal(
    Key(
        "given",
        Choice(("freely", "with_operands")),
        "`with_operands`: low while valid is low; else it has any value then",
        "freely",
    )
)
_BEATS = (
    Key(
        "beats",
        Integer(1, MOST_BEATS),
        "transfers that bring the elements of a and b, the lowest first; c comes with each",
        1,
        excludes=("hold",),
    ),
    Key("first", _AT_A_BEAT, "a port that is active in the first beat", None, needs=("beats",)),
    Key("last", _AT_A_BEAT, "a port that is active in the last beat", None, needs=("beats",)),
)
CHANNEL = Mapping(
    (
        Key("operands", _FILES, "the operands that come by this handshake"),
        Key("valid", _signal(_only_if("ready")), "its valid"),
        Key("ready", _signal(), "its ready", None),
    )
)
_OUT_VALID = Key(
    "valid",
    _signal(
        Key("level", Flag(), "whether it stays active until the next operands", False),
        Key(
            "ahead",
            Integer(0, MAX_AHEAD),
            "clock cycles by which it comes before its result; for outputs without a ready",
            0,
            excludes=("level",),
        ),
        Key(
            "only_if",
            Choice(("operands",)),
            "it counts only while operands are at the ports, from the cycle on in which they are taken",
            None,
            excludes=("level",),
        ),
    ),
    "the output's valid",
)
_INTERVAL = Key("interval", _COUNT, "least number of cycles from one set of operands to the next", 1)
HANDSHAKE = Variants(
    "kind",
    "how operands go in and results come out",
    {
        "valid_ready": Mapping(
            (
                Key(
                    "input",
                    Either(Mapping((_IN_VALID, _IN_READY, _HOLD, *_BEATS)), Many(CHANNEL, 2)),
                    "valid and ready of the operands; a list of channels if operands have several handshakes",
                ),
                Key(
                    "output",
                    Mapping(
                        (_OUT_VALID, Key("ready", _signal(_only_if("valid")), "the output's ready", None))
                    ),
                    "valid and ready of the result",
                ),
            )
        ),
        "valid": Mapping(
            (
                Key("input", Mapping((_IN_VALID, _HOLD, *_BEATS)), "valid of the operands"),
                Key("output", Mapping((_OUT_VALID,)), "valid of the result"),
                _INTERVAL,
            )
        ),
        "latency": Mapping(
            (
                Key(
                    "input",
                    Mapping((Key("valid", _IN_VALID.value, _IN_VALID.meaning, None), _HOLD, *_BEATS)),
                    "valid of the operands",
                    None,
                ),
                Key(
                    "latency",
                    Either(Integer(0, MAX_CYCLES), Choice(("measure",))),
                    "clock edges from the operands to the result; `measure`: the check finds it",
                ),
                Key("enable", _signal(), "a port that stops the whole pipeline", None),
                _INTERVAL,
                Key(
                    "idle",
                    Choice(("zero",)),
                    "of an accumulator that adds in every cycle: a and b are zero in cycles without a vector",
                    None,
                    excludes=("input",),
                ),
            )
        ),
        "combinational": Mapping(()),
    },
)

# Ports ------------------------------------------------------------------------------------------------------

PORTS = Many(Text(), 1, alone=True)
"""A port, or a list of ports with one word in each."""
PLACE = Mapping(
    (
        Key("port", PORTS, "the port, or a list of ports with one word in each"),
        Key(
            "array",
            Choice(ARRAYS),
            "`packed` (`[15:0][15:0] a`) or `unpacked` (`[15:0] a [0:15]`): word i is the entry with the "
            "i-th lowest index",
            None,
        ),
        Key(
            "order",
            Choice(ORDERS),
            "`descending`: word 0 in the most significant bits, the highest index or the last port",
            "ascending",
        ),
        Key(
            "lsb",
            Integer(0, MAX_BITS),
            "lowest bit of the first word, in the vector, in each entry or in each listed port",
            0,
        ),
        Key(
            "stride",
            Integer(1, MAX_BITS),
            "bits from one word to the next in a vector; gaps are driven 0",
            None,
            excludes=("array",),
            instead="width of a word",
        ),
        Key(
            "word",
            Mapping(
                (
                    Key("elements", Integer(1, MAX_BITS), "elements of a word"),
                    Key("stride", Integer(1, MAX_BITS), "bits from one element to the next", None),
                    Key("bits", Integer(1, MAX_BITS), "bits of the word", None),
                    Key("order", Choice(ORDERS), "where element 0 lies", "ascending"),
                )
            ),
            "`{elements: 2, bits: 32, order: descending, stride: 16}`: several elements in a word",
            None,
            instead="one element",
        ),
        Key("first", Integer(0, MAX_BITS), "entry of an array that holds word 0", 0, needs=("array",)),
        Key(
            "major",
            Choice(("row", "column")),
            "level tile: `column` if the matrix is stored column by column",
            "row",
        ),
        Key(
            "partial",
            Flag(),
            "`true` permits unused bits in the port; they are driven 0, or as `unused` says",
            False,
        ),
        Key(
            "bits",
            Many(Integer(1, MAX_BITS), 2),
            "for one element in several ports: the number of bits in each port, the lowest first",
            None,
            excludes=("array", "stride", "word"),
        ),
        Key(
            "later",
            Many(Integer(0, 256), 1, alone=True),  # the rows of a systolic array
            "for operands: how many clock cycles after the first operand it comes; a list: for each word",
            0,
        ),
        Key(
            "unused",
            Choice(UNUSED),
            "with `partial`: the value of the unused bits. `zero`; `sign`: the highest bit of the element "
            "below them; `any`: not compared. Unused bits of an operand are driven with it, or with 0",
            "any",
        ),
        Key("active", _LEVEL, "for clear and load: `low` for a port that is active at 0", "high"),
        Key(
            "given",
            Choice(GIVEN),
            "for clear and load: when they [may be active](#clear-and-load-without-valid)",
            "freely",
        ),
    )
)
PORT = Either(PORTS, PLACE)
"""Where an operand or a result lies."""

# The file ---------------------------------------------------------------------------------------------------

RESET = Mapping(
    (
        Key("port", _PORT, "the port"),
        Key("active", _LEVEL, "the level at which it resets"),
        Key("synchronous", Flag(), "`false`: it may change anywhere in a cycle", True),
        Key("cycles", _COUNT, "how many clock cycles it must last", 4),
    ),
    what="a mapping such as {port: rst_n, active: low}",
)
VHDL = Mapping(
    (
        Key("standard", Choice((*map(int, STANDARDS), *STANDARDS)), "the year of the standard", 2008),
        Key(
            "libraries",
            Table(Many(Text(), 1, alone=True), _NAME),
            "the files of libraries other than work, by the library's name",
            {},
        ),
    )
)
_ANY = {"type": "object", "properties": {"mode": {}}}
"""The fields of `mode` may have ports of their own, which the reader knows from the unit."""
COMPARE = Mapping(
    (
        Key("nan", Choice(NAN_POLICIES), "which NaN words are accepted", "exact"),
        Key("zero", Choice(ZERO_POLICIES), "whether +0 and -0 differ", "strict"),
    )
)
CLASSES = Many(Either(Text(), Integer(0, MAX_CONSTANT)), 1, different=True, alone=True)
"""Classes of codes, or codes."""
ANSWER = Either(
    Text(),
    Mapping((*_SIGNAL_KEYS, Key("d", Choice(("anything", "nan")), "what d then is", "anything"))),
)
"""What a unit answers to an excluded vector: a word, or the output that says so."""
CASE = Mapping(
    (
        Key("where", Anything("a mapping", (dict,), {"type": "object"}), "conditions that all hold"),
        Key("answer", ANSWER, "what the unit answers", "anything"),
    )
)
EXCLUDE = Either(Anything("a mapping", (dict,), {"type": "object"}), Many(CASE, 1))
"""A mapping of classes by operand, each of them by itself, or a list of cases."""
DUT = Mapping(
    (
        Key("top", _NAME, "the top module"),
        Key(
            "dut",
            Text(r"[\w+-][\w.+-]*", "a name of letters, digits, '_', '-', '+' and '.'"),
            "its name in reports; default: the top module's",
            None,
        ),
        Key("instruction", Text(), "what it must compute, such as hopper:HMMA.16816.F32"),
        Key("unit", Text(), "the file of a unit of your own, instead of an instruction"),
        Key("sources", _FILES, "files and patterns, relative to this file", ()),
        Key("filelist", _FILES, "file lists of a simulator (-f), relative to this file", ()),
        Key("include", _FILES, "folders of include files", ()),
        Key("defines", Table(Either(Text(), Integer()), _NAME, ""), "macros and their values", {}),
        Key(
            "parameters",
            Table(Either(Integer(), Text(), Flag()), _PORT),
            "parameters of the top module, or generics",
            {},
        ),
        Key(
            "types",
            Table(Text(TYPE.pattern, "a type such as bus_pkg::request_t"), _PORT),
            "parameters that are types",
            {},
        ),
        Key("vhdl", VHDL, "settings of a unit in VHDL", None),
        Key(
            "constants",
            Table(Either(Integer(0, MAX_CONSTANT), Text()), _PORT),
            "input ports that are tied: a number, in every entry of an array, or a name of the port's "
            "enumeration",
            {},
        ),
        Key("level", Choice(LEVELS), "one dot product at a time, or the whole matrices", "dot"),
        Key("clock", _PORT, "the clock; not needed for kind combinational", None),
        Key("reset", RESET, "the reset; leave it out if there is none", None),
        Key("handshake", HANDSHAKE, "[how operands go in and results come out](#handshake)"),
        Key(
            "ports",
            Anything(
                "a mapping",
                (dict,),
                {"type": "object", "properties": {"mode": {}}, "additionalProperties": PORT.schema()},
            ),
            "[where the operands and results lie](#where-the-elements-lie), by operand",
        ),
        Key(
            "exclude",
            EXCLUDE,
            "[operands that do not count](#operands-that-do-not-count), and what the unit answers then",
            None,
        ),
        Key("compare", COMPARE, "what counts as equal", None),
        Key(
            "cut_points",
            Table(_FILES),
            "signals that hold registers of the specification, [for proofs](proving.md#cut-points)",
            {},
        ),
    ),
    one_of=(("instruction", "unit"),),
)
"""A dut.yaml."""
