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
    Names,
    Registers,
    Rules,
    Target,
    Vocabulary,
    Widths,
    Word,
    declare,
)
from golden.yamlfile import MISSING

MAX_K = 4096
MAX_FRACTION_BITS = 72
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


def _rounding(meaning: str = "how", default: Any = MISSING, **more: Any) -> Any:
    return _choice(keys.ROUNDING, meaning, default, **more)


def _exponent(meaning: str) -> Any:
    return declare(Integer(low=-keys.MOST_EXPONENT, high=keys.MOST_EXPONENT, meaning=meaning), None)


def _flush(meaning: str, **more: Any) -> Any:
    return _choice(keys.FLUSH, meaning, "none", **more)


def _tiny() -> Any:
    return _choice(
        keys.TINY,
        "with `flush` what is flushed, with [`flags`](#flags) what raises underflow: a result that is "
        "subnormal (`subnormal_result`); a number that, rounded as if exponents had no lower bound, is below "
        "the least normal one (`unbounded`, IEEE 754's tininess after rounding); one that is below it "
        "(`before_rounding`)",
        "subnormal_result",
        when=("flush", "signed", "positive"),
        with_flags=True,
    )


def _nan(meaning: str = "the word of a NaN; without it the format's", **more: Any) -> Any:
    return declare(Word(meaning=meaning, **more), None)


def _quieted(key: str) -> Any:
    return declare(
        Flag(
            when=(key,),
            meaning=f"with `{key}`: whether the NaN that is handed on is quieted (its highest fraction bit "
            "is set, as IEEE 754 says); `false`: a signalling NaN is handed on as it is, among formats with "
            "as many fraction bits",
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
        keys.OPERATION, "for b1 and other unsigned integers: what two bits are combined with", "product"
    )
    negate: str = _choice(
        keys.NEGATE,
        "whose sign is turned before anything is rounded: that of every product, of c, of both; the four are "
        "a * b + c, c - a * b, a * b - c and -(a * b) - c",
        "none",
    )
    zero_times_infinity: str = _zero_times_infinity()
    normalize: bool = declare(
        Flag(
            meaning="`true`: every product is shifted to [1, 2), subnormal factors included; `false`: it "
            "keeps exponent e_a + e_b"
        ),
        False,
    )
    overflow_exponent: int | None = _exponent(
        "a product of 2^this or more becomes infinite; without it none does"
    )
    format: Format | None = declare(
        FormatName(
            or_out=False, meaning="the multiplier rounds to it (IEEE 754); without it products are exact"
        ),
        None,
    )
    rounding: str = _rounding("with `format`: how it rounds", "toward_zero", needed=True, when=("format",))
    flush: str = _flush(
        "with `format`: a subnormal product becomes a zero of its sign, or +0", when=("format",)
    )
    tiny: str = _tiny()
    nan: int | None = _nan("with `format`: the word of a NaN; without it the format's", when=("format",))


@hashed_once
@dataclass(frozen=True)
class Scale:
    """Multiplies by the block scales of a and b."""

    op: ClassVar[Literal["scale"]] = "scale"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of(
        "`products`, or `groups` whose size divides the scale block",
        never=("a", "b", "c", "scales", "addends"),
    )


@hashed_once
@dataclass(frozen=True)
class SpecialValues:
    """Ends the operation where a term is a NaN or an infinity; otherwise the next step goes on."""

    op: ClassVar[Literal["special_values"]] = "special_values"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("whose terms are looked at; `scales` too, where a NaN scale matters")
    opposite_infinities: str = _choice(keys.OPPOSITE, _A_FAULT, "nan", fault=True)
    nan: int | None = _nan("the word that the unit answers; without it the format's")
    nans: tuple[tuple[str, int | None], ...] = declare(
        Causes(
            causes=keys.CAUSE.words,
            meaning="words by cause, those that win first: `{factor: 0xFFC00A3D, c: payload}`; causes are a "
            "NaN "
            "in `a`, in `b`, in a `factor` (a or b, k ascending), in `c`; infinity times zero "
            "(`invalid_product`), infinities of both signs among the products (`opposite_products`) or among "
            "all terms (`opposite_infinities`). `payload`: that NaN is handed on. Any other gives "
            "`nan`",
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
    of: tuple[str, ...] = _of("whose numbers", never=("scales", "addends"))
    sign: str = _choice(
        keys.FLUSH,
        "a subnormal number becomes a zero of its sign; or it and every zero +0",
        words=("signed", "positive"),
    )


@hashed_once
@dataclass(frozen=True)
class Align:
    """Terms are shifted to one exponent, the largest; bits that fall off the end are cut."""

    op: ClassVar[Literal["align"]] = "align"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("the terms that are aligned to each other", never=("b", "scales"))
    cut: str = _choice(
        keys.CUT,
        "`sticky_added`: every term gets one more bit, which says whether anything of it was cut and is "
        "added with the others; `sticky_or`: all bits cut of all terms are ORed into one, which stands one "
        "place below the last bit kept, under the magnitude of the sum, as most hardware has it: where the "
        "sum cancels, it moves up with the other bits. The next `align`, `normalize` or `round` of the sum "
        "takes it as its last bit, which is kept or cut like any other; a format that has a place for it "
        "shows it in `d`. Below the sum is where the cut bits belong if they have the sum's sign; a term of"
        " the other sign (an effective subtraction) that was cut toward zero belongs above, and directed "
        "roundings and ties come out wrong. With one term cut, `rounding: down` is right for positive sums,"
        " `up` for negative ones, `to_odd` for both",
        "dropped",
        old=(("sticky", "sticky_added"),),
    )
    zeros: str = _choice(keys.ZEROS, _A_FAULT, "ignored", fault=True)
    sticky_gap: int = _sticky_gap()
    group: tuple[str, int] | None = _group(
        "n neighbours, or every n-th term, are aligned to each other; [one register only](#group)"
    )
    fraction_bits: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=MAX_FRACTION_BITS,
            for_all=True,
            meaning="F: bits kept below the point of the largest exponent; `{products: 24, c: 26}` for each "
            "register its own",
        )
    )
    rounding: str = _rounding(
        "what happens to the bits below: `toward_zero` drops them from the magnitude, `down` from the two's "
        "complement number"
    )
    shift_limit: int | None = declare(Integer(low=0, high=10000, meaning=_A_FAULT, fault=True), None)
    left_out: tuple[tuple[str, str], ...] = declare(
        Rules(vocabulary=keys.LEFT_OUT, meaning=_A_FAULT, fault=True), ()
    )
    floor: int | None = _exponent("the maximum exponent is at least this")
    exponent: int | None = _exponent(
        "all terms are shifted to this exponent, whatever they hold: the register is a fixed-point number"
    )
    maximum: tuple[Candidate, ...] = declare(
        Candidates(
            most=4,
            meaning="the exponent is the largest of these candidates, instead of that of all terms: "
            "`{of: products, exponent: carried}` the exponents of these numbers, `exponent: leading` the "
            "places of their leading ones; `plus` is added, `least` is the least that the candidate is",
        ),
        (),
    )
    spared: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=-keys.MOST_EXPONENT,
            high=keys.MOST_EXPONENT,
            for_all=False,
            meaning="`{c: n}`: a negative number of this register that lies wholly below the last bit kept "
            "becomes zero, however it is rounded, where that bit is worth more than 2^n",
        ),
        (),
    )
    window: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=10000,
            for_all=False,
            meaning="`{register: n}`: terms of this register more than n below the maximum count as zero",
        ),
        (),
    )


@hashed_once
@dataclass(frozen=True)
class Sum:
    """One exact sum of all terms, or of each group of them."""

    op: ClassVar[Literal["sum"]] = "sum"
    of: tuple[str, ...] = _of("what is added; sequential: in this order")
    to: str = _to("where the sum goes; `d` only with a rounding order", also=("d",))
    group: tuple[str, int] | None = _group("one sum for each [group](#group); one register only")
    exponent: int | None = _exponent(
        "exact: the exponent that the sum shows to a later alignment, instead of its terms' largest"
    )
    rounding: str = _rounding("exact: a zero sum of terms of both signs is -0 with `down`", "toward_zero")
    width: int | None = declare(
        Integer(
            low=1,
            high=120,
            meaning="integer bits, sign included, of the two's complement register that holds the sum",
        ),
        None,
    )
    overflow: str = _choice(
        keys.OVERFLOW,
        "with `width`: a sum that the register cannot hold wraps, or becomes its largest or least number",
        "wrap",
        words=("wrap", "saturate"),
        when=("width",),
    )
    complement: str = _choice(
        keys.COMPLEMENT,
        "`c`: terms (zeros, too) whose sign is not that of c are subtracted in one's complement, which is "
        "one "
        "unit of the last place less",
        "none",
    )
    cancelled: str = _choice(keys.CANCELLED, _A_FAULT, "keeps_exponent", fault=True)


@hashed_once
@dataclass(frozen=True)
class Additions:
    """IEEE 754 additions of two terms at a time, each rounded: a `sum` with the order `tree` or
    `sequential`."""

    op: ClassVar[Literal["sum"]] = "sum"
    order: str = _choice(keys.ORDER, "`tree`: halves again and again; `sequential`: one after the other")
    of: tuple[str, ...] = _of("what is added; sequential: in this order")
    to: str = _to("where the sum goes; `d` only with a rounding order", also=("d",))
    group: tuple[str, int] | None = _group("one sum for each [group](#group); one register only")
    format: Format = declare(
        FormatName(or_out=True, meaning="tree, sequential: every addition rounds to it; without it to d's"),
        None,
    )
    rounding: str = _rounding("tree, sequential: of every addition")
    flush: str = _flush("tree, sequential: subnormal sums become zero")
    tiny: str = _tiny()
    nan: int | None = _nan("tree, sequential: the word of a NaN; without it the format's")
    first_nan: bool = declare(
        Flag(meaning="tree, sequential: of two terms the first NaN is handed on, payload included"),
        False,
    )
    quieted: bool = _quieted("first_nan")
    overflow: str = _choice(
        keys.OVERFLOW,
        "tree, sequential: integers wrap (`ieee`; terms that are integers alone), or clamp at every addition",
        "ieee",
        words=("ieee", "saturate"),
    )


@hashed_once
@dataclass(frozen=True)
class Normalize:
    """Shifts numbers so that the leading one stands before the point, and keeps some bits."""

    op: ClassVar[Literal["normalize"]] = "normalize"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("which", never=("b", "scales"))
    fraction_bits: tuple[tuple[str, int], ...] = declare(
        Widths(
            low=0,
            high=MAX_FRACTION_BITS,
            for_all=True,
            meaning="bits kept; `{products: 24, c: 26}` for each register its own",
        )
    )
    rounding: str = _rounding(
        "what happens to the bits below, the sticky bit of `cut: sticky_or` among them: `to_odd` ORs all of "
        "them into the last bit kept, as a normaliser does that hands a sticky bit on; `toward_zero` forgets "
        "them"
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
        FormatName(or_out=True, meaning="every multiply-add rounds to it; without it to d's"), None
    )
    group: tuple[str, int] | None = _group("one chain for each [group](#group)")
    rounding: str = _rounding()
    flush: str = _flush("subnormal results become zero")
    tiny: str = _tiny()
    start: str = _choice(keys.START, "what the chain starts from: c, +0, or the rounded first product", "c")
    zero_times_infinity: str = _zero_times_infinity()
    nan: int | None = _nan("the word of a NaN made from numbers; without it the format's")
    nan_order: tuple[str, ...] = declare(
        Names(
            allowed=("a", "b", "c"),
            meaning="whose NaN is handed on first, payload included; without it none is",
        ),
        (),
    )
    quieted: bool = _quieted("nan_order")


@hashed_once
@dataclass(frozen=True)
class Round:
    """Rounds to a number format: the result, or an earlier register."""

    op: ClassVar[Literal["round"]] = "round"
    to: str = _to("where it goes; without it to `d`", also=("d",), default="d")
    format: Format = declare(
        FormatName(or_out=True, meaning="what it is rounded to; without it d's, and `d` has its own"), None
    )
    of: tuple[str, ...] = _of("what is rounded", most=1)
    rounding: str = _rounding()
    overflow: str = _choice(
        keys.OVERFLOW,
        "floats: `infinity` whatever the rounding; the `largest` number; as IEEE 754 says (`ieee`); the "
        "step's `nan`, whatever the sign. A format without infinities has its largest number for `infinity`"
        " and `ieee`. Integers: `wrap` (totals of integers alone) or `saturate`",
    )
    flush: str = _flush("a subnormal result becomes zero")
    tiny: str = _tiny()
    nan: int | None = _nan()
    zero: str = _choice(
        keys.ZERO_RULE,
        "a zero result is +0, also a flushed one, or keeps its sign; `signed_underflow`: an exact zero is "
        "+0, a number that underflows keeps its sign, also where the rounding sees none of its bits "
        "(`sticky: left_out`)",
    )
    subnormal_carry: str = _choice(keys.CARRY, _A_FAULT, "kept", fault=True)
    sticky: str = _choice(
        keys.STICKY,
        "`left_out`: of what is cut, the rounding sees the highest bit alone",
        "seen",
        fault=True,
    )
    sticky_gap: int = _sticky_gap()
    result_fraction_bits: int | None = declare(
        Integer(name="fraction_bits", low=0, high=52, meaning="keep fewer bits than the format has"), None
    )


@hashed_once
@dataclass(frozen=True)
class HiddenBit:
    """Subnormal numbers get the hidden bit of normal ones: what a multiplier without a check of e = 0
    sees."""

    op: ClassVar[Literal["hidden_bit"]] = "hidden_bit"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = _of("whose subnormal numbers get the hidden bit", never=tuple(_ALL[3:]), most=3)
    zeros: str = _choice(keys.HIDDEN_ZEROS, "`set`: zeros get it, too", "kept")


Step = (
    Flush | Multiply | Scale | SpecialValues | Align | Sum | Additions | Normalize | Fma | Round | HiddenBit
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


def format_of(step: Step) -> Format | None:
    """The format that the step rounds to, if it rounds to one."""
    found: Format | None = getattr(step, "format", None)
    return found
