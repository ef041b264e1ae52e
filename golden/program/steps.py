"""The kinds of steps: what arithmetic is made of. One frozen class for each kind.

A step reads registers of exact numbers and writes others; nothing is rounded unless a step says so. A field
declares how YAML writes it (golden/program/keys.py). Every view of a step is one `match` that ends in
`assert_never`: golden/model/reference.py and golden/core compute it, words.py puts it into words,
bounds.py bounds it, golden/cover counts it, golden/publish/pictures draws it. docs/add-a-step.md says what a
new kind needs.

Sources: MMA-Sim (arXiv 2511.10909) sections IV-B to IV-F for the shipped algorithms; IEEE 754-2019 for the
steps that round at every operation; docs/diagnosis.md for the keys that only faults set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from golden.number.formats import Format
from golden.number.frozen import hashed_once
from golden.program import keys
from golden.program.keys import (
    TARGETS,
    Candidate,
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Modes,
    Names,
    Registers,
    Roundings,
    Rules,
    Target,
    Vocabulary,
    Widths,
    Word,
    declare,
    modes_of,
)
from golden.yamlfile import MISSING

MAX_K = 4096  # products of an operation
MAX_FRACTION_BITS = 72  # that an alignment or a normalisation keeps
MOST_RANDOM_BITS = 16  # that a stochastic rounding adds
MOST_UNITS = (1 << 31) - 1
"""Bound of a value that a step replaces, in units of a last place: an int32_t of the core."""
_ALL = keys.REGISTER.words


def _of(meaning: str, never: tuple[str, ...] = (), most: int = 4) -> Any:
    return declare(Registers(meaning=meaning, most=most, allowed=tuple(n for n in _ALL if n not in never)))


def _to(meaning: str, also: tuple[str, ...] = (), default: Any = MISSING) -> Any:
    return declare(Target(meaning=meaning, allowed=(*TARGETS, *also)), default)


def _choice(
    vocabulary: Vocabulary,
    meaning: str,
    default: Any = MISSING,
    words: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    return declare(
        Choice(vocabulary=vocabulary, words=words or vocabulary.words, meaning=meaning, **more), default
    )


def _rounding(meaning: str = "the rounding", default: Any = MISSING, **more: Any) -> Any:
    return _choice(keys.ROUNDING, meaning, default, **more)


def _exponent(meaning: str) -> Any:
    return declare(Integer(low=-keys.MOST_EXPONENT, high=keys.MOST_EXPONENT, meaning=meaning), None)


def _flush(meaning: str, **more: Any) -> Any:
    return _choice(keys.FLUSH, meaning, "none", **more)


def _tiny() -> Any:
    return _choice(
        keys.TINY,
        "which results are tiny: `flush` flushes them, [`flags`](#flags) raise underflow for them. "
        "`subnormal_result`: the result is subnormal; `unbounded`: the number, rounded with an unbounded "
        "exponent, is below the least normal number (IEEE 754's tininess after rounding); "
        "`before_rounding`: the unrounded number is below it",
        "subnormal_result",
        when=("flush", "signed", "positive"),
        with_flags=True,
    )


def _nan(meaning: str = "the NaN word; default: the format's", **more: Any) -> Any:
    return declare(Word(meaning=meaning, **more), None)


def _quieted(key: str) -> Any:
    return declare(
        Flag(
            when=(key,),
            meaning=f"with `{key}`: whether a returned NaN is quieted (its highest fraction bit is set, as "
            "IEEE 754 says); `false`: a signalling NaN is returned unchanged, between formats with equally "
            "many fraction bits",
        ),
        True,
    )


def _group(meaning: str) -> Any:
    return declare(Grouping(high=MAX_K, meaning=meaning), None)


_A_FAULT = "[a fault](diagnosis.md#the-same-faults-in-a-unit-of-your-own)"


def _zero_times_infinity() -> Any:
    return _choice(keys.ZERO_TIMES_INFINITY, _A_FAULT, "nan", fault=True)


def _sticky_gap() -> Any:
    return declare(Integer(low=0, high=64, meaning=_A_FAULT, fault=True), 0)


@hashed_once
@dataclass(frozen=True)
class Multiply:
    """a times b, for every k."""

    op: ClassVar[Literal["multiply"]] = "multiply"
    of: ClassVar[tuple[str, ...]] = ("a", "b")
    to: str = _to("where the products go")
    operation: str = _choice(
        keys.OPERATION, "for b1 and other unsigned integers: how two bits are combined", "product"
    )
    negate: str = _choice(
        keys.NEGATE,
        "what is negated before any rounding: nothing, every product, c, or both; in this order a * b + c, "
        "c - a * b, a * b - c and -(a * b) - c",
        "none",
    )
    zero_times_infinity: str = _zero_times_infinity()
    normalize: bool = declare(
        Flag(
            meaning="`true`: every product is shifted to [1, 2), also with subnormal factors; `false`: it "
            "keeps the exponent e_a + e_b"
        ),
        False,
    )
    overflow_exponent: int | None = _exponent(
        "a product of 2 to this power or more becomes infinite; default: no limit"
    )
    format: Format | None = declare(
        FormatName(
            or_out=False,
            meaning="the multiplier rounds to this format (IEEE 754); default: products are exact",
        ),
        None,
    )
    rounding: str = _rounding("with `format`: how it rounds", "toward_zero", needed=True, when=("format",))
    flush: str = _flush(
        "with `format`: a subnormal product becomes a zero of its sign, or +0", when=("format",)
    )
    tiny: str = _tiny()
    nan: int | None = _nan("with `format`: the NaN word; default: the format's", when=("format",))


@hashed_once
@dataclass(frozen=True)
class Scale:
    """Multiplies by the block scales of a and b, or of one of them, or by a power of two."""

    op: ClassVar[Literal["scale"]] = "scale"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of(
        "what is scaled: `products`, or `groups` whose size divides the scale block; with `power` also a, c "
        "or a sum",
        never=("b", "scales", "addends"),
    )
    by: str = _choice(
        keys.SIDE,
        "whose scale is the factor: the product of `both`, or that of `a` or `b` alone. Where each side has "
        "a step of its own, a `round` between them rounds after each factor",
        "both",
    )
    power: int | None = _exponent(
        "the factor is 2 to this power instead of the block scales, exact: -15 shifts right by 15, and a "
        "later `round` to an integer cuts what is then below the point ([fixed point](#fixed-point))"
    )


@hashed_once
@dataclass(frozen=True)
class SpecialValues:
    """Ends the operation if a term is a NaN or an infinity. All other terms continue with the next step."""

    op: ClassVar[Literal["special_values"]] = "special_values"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the registers that are examined; include `scales` if a NaN scale matters")
    opposite_infinities: str = _choice(keys.OPPOSITE, _A_FAULT, "nan", fault=True)
    nan: int | None = _nan("the NaN word that the unit returns; default: the format's")
    nans: tuple[tuple[str, int | None], ...] = declare(
        Causes(
            causes=keys.CAUSE.words,
            meaning="NaN words by cause, in order of priority: `{factor: 0xFFC00A3D, c: payload}`. Causes: "
            "a NaN in `a`, in `b`, in a `factor` (a or b, k ascending), in `c`; infinity times zero "
            "(`invalid_product`); infinities of both signs among the products (`opposite_products`) or "
            "among all terms (`opposite_infinities`). `payload` returns the NaN of the operand. Other "
            "causes return `nan`",
        ),
        (),
    )
    quieted: bool = _quieted("nans")


@hashed_once
@dataclass(frozen=True)
class Flush:
    """Subnormal numbers become zeros."""

    op: ClassVar[Literal["flush"]] = "flush"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the registers", never=("scales", "addends"))
    sign: str = _choice(
        keys.FLUSH,
        "`signed`: a subnormal number becomes a zero of its sign; `positive`: subnormal numbers and zeros "
        "become +0",
        words=("signed", "positive"),
    )


@hashed_once
@dataclass(frozen=True)
class Align:
    """Terms are shifted to one exponent, the largest; bits that fall off the end are cut."""

    op: ClassVar[Literal["align"]] = "align"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the registers whose terms are aligned together", never=("b", "scales"))
    cut: str = _choice(
        keys.CUT,
        "`dropped`: cut bits are lost. `sticky_added`: every term gets one more bit, set if any of its "
        "bits was cut, which is added with the others. `sticky_or`: all cut bits of all terms are ORed "
        "into one bit below the last kept bit of the sum's magnitude, as in most hardware; [how it "
        "counts](#the-sticky-bit-of-sticky_or)",
        "dropped",
        old=(("sticky", "sticky_added"),),
    )
    zeros: str = _choice(keys.ZEROS, _A_FAULT, "ignored", fault=True)
    sticky_gap: int = _sticky_gap()
    group: tuple[str, int] | None = _group(
        "align n neighbours, or every n-th term, separately; [one register only](#group)"
    )
    fraction_bits: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=MAX_FRACTION_BITS,
            for_all=True,
            meaning="F: the number of bits kept below the point of the largest exponent; `{products: 24, "
            "c: 26}` sets it for each register",
        )
    )
    rounding: Modes = declare(
        Roundings(
            meaning="how the lower bits are rounded: `toward_zero` cuts the magnitude, `down` cuts the two's "
            "complement number; `{groups: nearest_up, c: nearest_away}` sets it for each register"
        )
    )
    shift_limit: int | None = declare(Integer(low=0, high=10000, meaning=_A_FAULT, fault=True), None)
    left_out: tuple[tuple[str, str], ...] = declare(
        Rules(vocabulary=keys.LEFT_OUT, meaning=_A_FAULT, fault=True), ()
    )
    floor: int | None = _exponent("the least value of the maximum exponent")
    exponent: int | None = _exponent(
        "all terms are shifted to this exponent instead of the maximum: the register is a fixed-point number"
    )
    underflow_exponent: int | None = _exponent(
        "if the maximum exponent is this or less, all terms become zero, and stay at that exponent"
    )
    maximum: tuple[Candidate, ...] = declare(
        Candidates(
            most=4,
            meaning="candidates for the maximum exponent, instead of all terms. `{of: products, exponent: "
            "carried}` takes the exponents of these numbers, `exponent: leading` the positions of their "
            "leading ones; `plus` is added, and `least` is the candidate's least value",
        ),
        (),
    )
    spared: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=-keys.MOST_EXPONENT,
            high=keys.MOST_EXPONENT,
            for_all=False,
            meaning="`{c: n}`: a negative number of this register that is entirely below the last kept bit "
            "becomes zero, with any rounding, if that bit is worth more than 2^n",
        ),
        (),
    )
    window: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=10000,
            for_all=False,
            meaning="`{register: n}`: a term of this register more than n below the maximum counts as zero",
        ),
        (),
    )


@hashed_once
@dataclass(frozen=True)
class Sum:
    """One exact sum of all terms, or of each group of them."""

    op: ClassVar[Literal["sum"]] = "sum"
    of: tuple[str, ...] = _of("the registers that are added; sequential: in this order")
    to: str = _to("where the sum goes; `d` only with a rounding order", also=("d",))
    group: tuple[str, int] | None = _group("one sum for each [group](#group); one register only")
    exponent: int | None = _exponent(
        "exact: the exponent of the sum in a later alignment; default: the largest of its terms"
    )
    rounding: str = _rounding(
        "exact: only the sign of zero: a zero sum of terms of both signs is -0 with `down`", "toward_zero"
    )
    width: int | None = declare(
        Integer(
            low=1,
            high=120,
            meaning="integer bits, with the sign, of the two's complement register that holds the sum",
        ),
        None,
    )
    overflow: str = _choice(
        keys.OVERFLOW,
        "with `width`: a sum that does not fit wraps, or becomes the register's largest or least number",
        "wrap",
        words=("wrap", "saturate"),
        when=("width",),
    )
    complement: str = _choice(
        keys.COMPLEMENT,
        "`c`: terms (and zeros) with the opposite sign of c are subtracted in one's complement, one unit "
        "of the last place too low",
        "none",
    )
    cancelled: str = _choice(keys.CANCELLED, _A_FAULT, "keeps_exponent", fault=True)


@hashed_once
@dataclass(frozen=True)
class Additions:
    """IEEE 754 additions of two terms at a time, each rounded: a `sum` with the order `tree` or
    `sequential`."""

    op: ClassVar[Literal["sum"]] = "sum"
    order: str = _choice(
        keys.ORDER,
        "`exact`: one fixed-point sum; `tree`: recursive halves; `sequential`: one after the other",
    )
    of: tuple[str, ...] = _of("the registers that are added; sequential: in this order")
    to: str = _to("where the sum goes; `d` only with a rounding order", also=("d",))
    group: tuple[str, int] | None = _group("one sum for each [group](#group); one register only")
    format: Format = declare(
        FormatName(
            or_out=True, meaning="tree, sequential: every addition rounds to this format; default: d's"
        ),
        None,
    )
    rounding: str = _rounding("tree, sequential: the rounding of every addition")
    flush: str = _flush("tree, sequential: subnormal sums become zero")
    tiny: str = _tiny()
    nan: int | None = _nan("tree, sequential: the NaN word; default: the format's")
    first_nan: bool = declare(
        Flag(meaning="tree, sequential: the first NaN of two terms is returned with its payload"),
        False,
    )
    quieted: bool = _quieted("first_nan")
    overflow: str = _choice(
        keys.OVERFLOW,
        "tree, sequential: integers wrap (`ieee`, only if all terms are integers), or saturate at every "
        "addition",
        "ieee",
        words=("ieee", "saturate"),
    )


@hashed_once
@dataclass(frozen=True)
class Normalize:
    """Shifts numbers so that the leading one stands before the point, and keeps some bits."""

    op: ClassVar[Literal["normalize"]] = "normalize"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the registers", never=("b", "scales"))
    fraction_bits: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=MAX_FRACTION_BITS,
            for_all=True,
            meaning="the number of bits kept; `{products: 24, c: 26}` sets it for each register",
        )
    )
    rounding: str = _rounding(
        "how the lower bits are rounded, with the sticky bit of `cut: sticky_or`: `to_odd` ORs them into "
        "the last kept bit, like a normaliser that passes a sticky bit on; `toward_zero` drops them"
    )
    min_exponent: int | None = _exponent("no number is shifted left beyond this exponent")


@hashed_once
@dataclass(frozen=True)
class Fma:
    """A chain of fused multiply-adds of IEEE 754, k ascending."""

    op: ClassVar[Literal["fma"]] = "fma"
    of: ClassVar[tuple[str, ...]] = ("a", "b")
    to: str = _to("where the result goes", also=("d",))
    format: Format = declare(
        FormatName(or_out=True, meaning="every multiply-add rounds to this format; default: d's"), None
    )
    group: tuple[str, int] | None = _group("one chain for each [group](#group)")
    rounding: str = _rounding()
    flush: str = _flush("subnormal results become zero")
    tiny: str = _tiny()
    start: str = _choice(keys.START, "the start of the chain: c, +0, or the rounded first product", "c")
    zero_times_infinity: str = _zero_times_infinity()
    nan: int | None = _nan("the word of a NaN that numbers produce; default: the format's")
    nan_order: tuple[str, ...] = declare(
        Names(
            allowed=("a", "b", "c"),
            meaning="the priority of operands whose NaN is returned with its payload; default: none is",
        ),
        (),
    )
    quieted: bool = _quieted("nan_order")


@hashed_once
@dataclass(frozen=True)
class Round:
    """Rounds to a number format: the result, or an earlier register."""

    op: ClassVar[Literal["round"]] = "round"
    to: str = _to("where the result goes", also=("d",), default="d")
    format: Format = declare(
        FormatName(or_out=True, meaning="the target format; default: d's; `d` always has its own"), None
    )
    of: tuple[str, ...] = _of("the register that is rounded", most=1)
    rounding: str = _rounding()
    overflow: str = _choice(
        keys.OVERFLOW,
        "floats: always `infinity`; the `largest` number; IEEE 754's rule (`ieee`); or the step's `nan`, "
        "for both signs. In a format without infinities, `infinity` and `ieee` give the largest number. "
        "Integers: `wrap` (only totals of integers) or `saturate`",
    )
    flush: str = _flush("a subnormal result becomes zero")
    tiny: str = _tiny()
    nan: int | None = _nan()
    zero: str = _choice(
        keys.ZERO_RULE,
        "`positive`: a zero result, also a flushed one, is +0; `signed`: it keeps its sign; "
        "`signed_underflow`: an exact zero is +0, and a number that underflows keeps its sign, even if the "
        "rounding sees none of its bits (`sticky: left_out`)",
    )
    subnormal_carry: str = _choice(keys.CARRY, _A_FAULT, "kept", fault=True)
    sticky: str = _choice(
        keys.STICKY,
        "`left_out`: the rounding sees only the highest cut bit",
        "seen",
        fault=True,
    )
    sticky_gap: int = _sticky_gap()
    random_bits: int | None = declare(
        Integer(
            low=1,
            high=MOST_RANDOM_BITS,
            meaning="stochastic rounding: `random` is added to this many of the highest bits below the last "
            "place, and the sum is cut. Lower bits are not seen",
        ),
        None,
    )
    random: int = declare(
        Integer(
            low=0,
            high=(1 << MOST_RANDOM_BITS) - 1,
            needed=True,
            when=("random_bits",),
            meaning="with `random_bits`: the random number, less than 2^`random_bits`; a field of "
            "[`modes`](#modes) makes it an operand",
        ),
        0,
    )
    result_fraction_bits: int | None = declare(
        Integer(
            name="fraction_bits", low=0, high=52, meaning="keeps fewer fraction bits than the format has"
        ),
        None,
    )


@hashed_once
@dataclass(frozen=True)
class HiddenBit:
    """Subnormal numbers get the hidden bit of normal ones: what a multiplier without a check of e = 0
    sees."""

    op: ClassVar[Literal["hidden_bit"]] = "hidden_bit"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of(
        "the operands whose subnormal numbers get the hidden bit", never=tuple(_ALL[3:]), most=3
    )
    zeros: str = _choice(keys.HIDDEN_ZEROS, "`set`: zeros get it too", "kept")


@hashed_once
@dataclass(frozen=True)
class Part:
    """The operand is read in part: some neighbouring bits of its significand, at their own weight."""

    op: ClassVar[Literal["part"]] = "part"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the operands of which a part is read", never=tuple(_ALL[2:]), most=2)
    first: int = declare(
        Integer(
            low=-63,
            high=MAX_FRACTION_BITS,
            meaning="the highest place of the part. Place n is worth 2^-n: the hidden bit is place 0, the "
            "highest fraction bit place 1; the lowest bit of an integer is place 0, that above it -1",
        ),
        0,
    )
    bits: int = declare(
        Integer(
            low=1,
            high=56,  # of a significand of f64 and three more; the core's product of two parts has 112
            meaning="how many bits the part has. It is a number of the exponent e - `first`, also where all "
            "of its bits are 0",
        )
    )


@hashed_once
@dataclass(frozen=True)
class Replace:
    """One value becomes another: an exception that no other step describes, such as a fault of a chip."""

    op: ClassVar[Literal["replace"]] = "replace"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of(
        "the registers whose numbers are looked at", never=("a", "b", "c", "scales", "addends", "d")
    )
    places: int = declare(
        Integer(
            low=0,
            high=MAX_FRACTION_BITS,
            meaning="the unit of `value` and `by`: 2^(e - `places`), where e is the number's exponent",
        )
    )
    value: int = declare(
        Integer(low=-MOST_UNITS, high=MOST_UNITS, meaning="the value that is replaced, in these units; not 0")
    )
    by: int = declare(
        Integer(
            low=-MOST_UNITS, high=MOST_UNITS, meaning="what it becomes, in the same units and with the same e"
        )
    )


Step = (
    Flush
    | Multiply
    | Scale
    | SpecialValues
    | Align
    | Sum
    | Additions
    | Normalize
    | Fma
    | Round
    | HiddenBit
    | Part
    | Replace
)
IeeeStep = Multiply | Additions | Fma
"""Steps that round every result by IEEE 754 (a multiply where it has a format)."""
FinalStep = Additions | Fma | Round
"""Steps that can write d."""
RoundingStep = IeeeStep | Round
KINDS: tuple[type[Step], ...] = get_args(Step)
"""In the order of the C core's enum mg_step_kind."""
STEPS = tuple(dict.fromkeys(kind.op for kind in KINDS))
"""The words of YAML."""


def variants(op: str) -> tuple[type[Step], ...]:
    """The classes that one word of YAML stands for."""
    return tuple(kind for kind in KINDS if kind.op == op)


def overflow_of(step: Round) -> str:
    """What overflow comes to in the step's format: `largest` instead of an infinity that it does not have."""
    lacks = step.format.is_float and step.format.infinity is None
    return "largest" if lacks and step.overflow in ("infinity", "ieee") else step.overflow


def grouping(step: Step) -> tuple[str, int] | None:
    """How the step divides its terms, if it does."""
    found: tuple[str, int] | None = getattr(step, "group", None)
    return found


def factor_of(step: Scale) -> str:
    """The register of the scales that a step multiplies by; scales of one side have no name in YAML. A power
    of two is in none: then it is what is scaled."""
    if step.power is not None:
        return step.of[0]
    return "scales" if step.by == "both" else f"scale_{step.by}"


def rounding_of(step: Align, register: str) -> str:
    """How the step rounds the numbers of one of its registers."""
    return dict(modes_of(step.rounding, step.of))[register]


def format_of(step: Step) -> Format | None:
    """The format that the step rounds to, if it rounds to one."""
    found: Format | None = getattr(step, "format", None)
    return found
