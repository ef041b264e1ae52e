"""Sums, IEEE additions and fused multiply-adds in a circuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from golden.circuit.numbers import Builder, Number, refuse
from golden.circuit.rounding import Rule, jammed, to_code
from golden.circuit.words import Word
from golden.number.formats import Format
from golden.program.bounds import Bounds, Registers, follow, groups_of, power
from golden.program.steps import Additions, Fma, IeeeStep, Sum


def ieee_rule(step: IeeeStep, fmt: Format) -> Rule:
    """How a step that rounds at every operation does it."""
    overflow = step.overflow if isinstance(step, Additions) else "ieee"
    return Rule(fmt, step.rounding, overflow, fmt.fraction_bits, step.flush, step.tiny, step.nan)


# Exact sums -------------------------------------------------------------------------------------------------


def sums(
    build: Builder, step: Sum, terms: Sequence[tuple[str, Number]], c: Number | None, bounds: Registers
) -> list[Number]:
    """The exact sum of each group."""
    after = follow(step, bounds)[step.to]
    groups = groups_of(step, len(terms))
    found = []
    for at, group in enumerate(groups):
        name = step.to if len(groups) == 1 else f"{step.to}[{at}]"
        found.append(_sum(build, step, terms[group], name, c, bounds, after))
    return found


def _sum(
    build: Builder,
    step: Sum,
    terms: Sequence[tuple[str, Number]],
    name: str,
    c: Number | None,
    bounds: Registers,
    after: Bounds,
) -> Number:
    words, numbers = build.words, [number for _, number in terms]
    special = _propagated(build, numbers)
    first = numbers[0]
    if all(number.base is first.base for number in numbers):
        base, offset, reach = first.base, min(number.offset for number in numbers), first.reach
        width = _sum_width(numbers, offset, after, base, step)
        placed = [build.signed(number, width, offset) for number in numbers]
    else:
        # Each term has an exponent of its own: they meet in one fixed-point register, whose last place is
        # that of the finest bit that a term can have.
        lowest = min([after.lsb] + [number.reach[0] + number.offset for number in numbers])
        largest = max(-after.least, after.greatest) * power(-lowest)
        width = min(max(after.size - lowest, 0) + 2, max(int(-(-largest // 1)).bit_length(), 1) + 1)
        base, offset, reach = build.exponent(0), lowest, (0, 0)
        placed = []
        for label, number in terms:
            wide = words.extend(number.magnitude, width)
            moved = words.shift_left(wide, build.plus(number.base, number.offset - lowest))
            moved = build.mark(f"placed[{label}]", moved)
            placed.append(words.choose(number.sign, words.neg(moved), moved))
    placed = [build.mark(f"term[{label}]", word) for (label, _), word in zip(terms, placed, strict=True)]
    total = words.total(placed)
    shown, finite = _shown(build, numbers, step)
    if step.complement == "c":
        # Where every term is a zero, nothing is subtracted.
        complemented = _complemented(build, numbers, c, total, offset)
        total = words.choose(finite, complemented, words.constant(0, complemented.width))
    if step.width is not None:
        total = _in_register(build, step, numbers, total, base, offset, shown)
    build.mark(f"sum[{name}]" if name != "total" else "sum", total)
    negative = words.bit(total, total.width - 1)
    magnitude = words.extend(words.choose(negative, words.neg(total), total), max(total.width - 1, 1))
    if step.width is not None or step.complement == "c":  # the least number of a register has no negative
        magnitude = words.choose(negative, words.neg(total), total)
    sticky, last = _carried(build, numbers)
    zero_sign = words.choose(special[1], special[2], _zero_sign(build, numbers, step.rounding))
    zero = words.invert(finite)
    if step.cancelled == "zero":
        empty = words.invert(words.nonzero(total))
        if sticky is not None:
            empty = words.both(empty, words.invert(sticky))
        zero = words.either(zero, empty)
    return Number(
        special[0], special[1], zero, words.choose(special[1], special[2], negative), magnitude, base, offset,
        shown, reach, zero_sign=zero_sign, twos=total, sticky=sticky, last=last,
    )  # fmt: skip


def _sum_width(numbers: Sequence[Number], offset: int, after: Bounds, base: Word, step: Sum) -> int:
    """Bits of a two's complement register that holds the sum of terms in one frame: as many as the widths of
    the terms need, or fewer where golden/program/bounds.py knows better."""
    most = sum(((1 << number.width) - 1) << (number.offset - offset) for number in numbers)
    width = most.bit_length() + 1
    aligned = all(number.exponent is base for number in numbers) and step.exponent is None
    if (aligned or base.constant is not None) and step.width is None and step.complement == "none":
        if base.constant is not None:
            place = base.constant - (base.constant >> (base.width - 1) << base.width) + offset
            ends = after.least, after.greatest
        else:
            place, ends = offset, after.significands
        largest = max(-ends[0], ends[1]) * power(-place)
        width = min(width, max(int(-(-largest // 1)).bit_length(), 1) + 1)
    return width


def _propagated(build: Builder, numbers: Sequence[Number]) -> tuple[Word, Word, Word]:
    """Whether the sum is a NaN, whether it is an infinity, and its sign."""
    words = build.words
    positive = build.any_of(words.both(one.infinity, words.invert(one.sign)) for one in numbers)
    negative = build.any_of(words.both(one.infinity, one.sign) for one in numbers)
    opposite = words.both(positive, negative)
    build.raise_flag("invalid", opposite)
    nan = build.any_of([opposite, *(one.nan for one in numbers)])
    return nan, words.both(words.invert(nan), words.either(positive, negative)), negative


def _shown(build: Builder, numbers: Sequence[Number], step: Sum) -> tuple[Word, Word]:
    """The exponent that a sum shows to a later alignment, and whether a term is finite."""
    words = build.words
    finite = [build.finite(number) for number in numbers]
    some = build.any_of(finite)
    if step.exponent is not None:
        return build.exponent(step.exponent), some
    first = numbers[0].exponent
    if all(number.exponent is first for number in numbers):
        return first, some
    lowest = build.exponent(-(1 << (build.exponent_bits - 1)))
    shown = build.largest(
        [words.choose(own, number.exponent, lowest) for own, number in zip(finite, numbers, strict=True)]
    )
    if build.reads_zeros:
        shown = words.choose(some, shown, build.largest([number.exponent for number in numbers]))
    return shown, some


def _zero_sign(build: Builder, numbers: Sequence[Number], rounding: str) -> Word:
    """The sign of a zero sum: one that all terms share where all are zeros; else +, rounding down -."""
    words = build.words
    signs = [build.sign_of(number) for number in numbers]
    zeros = [words.invert(words.nonzero(number.magnitude)) for number in numbers]
    if rounding == "down":
        return words.invert(build.all_of([*zeros, *(words.invert(sign) for sign in signs)]))
    return build.all_of([*zeros, *signs])


def _complemented(
    build: Builder, numbers: Sequence[Number], c: Number | None, total: Word, offset: int
) -> Word:
    """One unit of the last place less, in the sign of c, for every term of the other sign."""
    words = build.words
    if c is None or any(number.base is not numbers[0].base or number.offset != offset for number in numbers):
        raise refuse("the terms have different last places", "sum", "complement")
    frame = build.sign_of(c)
    width = total.width + len(numbers).bit_length()
    others = words.total(
        [words.extend(words.differ(build.sign_of(number), frame), width) for number in numbers]
    )
    wide = words.extend_signed(total, width)
    return words.choose(frame, words.add(wide, others), words.sub(wide, others))


def _in_register(
    build: Builder, step: Sum, numbers: Sequence[Number], total: Word, base: Word, offset: int, shown: Word
) -> Word:
    """The sum as a two's complement register with this many integer bits holds it."""
    words = build.words
    assert step.width is not None
    if step.overflow == "saturate" and len({number.last_place for number in numbers}) > 1:
        raise refuse("the terms have different last places", "sum", "overflow")
    # Its highest bit stands `width` places above the exponent that the sum shows. What lies above is cut by a
    # shift to the left and a signed one back, so that the sign is that of the highest bit kept.
    width = total.width
    above = words.sub(build.plus(base, width + offset - step.width), shown)
    fits_all = words.less_signed(above, build.exponent(0))
    above = words.choose(fits_all, build.exponent(0), above)
    wrapped = words.shift_right_signed(words.shift_left(total, above), above)
    if step.overflow == "wrap":
        return wrapped
    largest = words.shift_right(words.constant((1 << (width - 1)) - 1, width), above)
    limit = words.choose(words.bit(total, width - 1), words.invert(largest), largest)
    none = words.less_signed(build.exponent(width - 1), above)  # the register has no bit of the sum
    limit = words.choose(none, words.constant(0, width), limit)
    return words.choose(words.equal(wrapped, total), total, limit)


def _carried(build: Builder, numbers: Sequence[Number]) -> tuple[Word | None, tuple[Word, int] | None]:
    """The sticky bit of a sum, and the last place that it lies below; None: no term can have one."""
    bits = [
        build.words.both(number.sticky, build.finite(number))
        for number in numbers
        if number.sticky is not None
    ]
    return (build.any_of(bits), _last(build, numbers)) if bits else (None, None)


def _last(build: Builder, numbers: Sequence[Number]) -> tuple[Word, int] | None:
    """The last place of a sum: the lowest last place of its finite terms."""
    words, first = build.words, numbers[0].last_place
    if all(number.last_place == first for number in numbers):
        return first
    highest = build.exponent((1 << (build.exponent_bits - 1)) - 1)
    places = []
    for number in numbers:
        base, offset = number.last_place
        places.append(words.choose(build.finite(number), build.plus(base, offset), highest))
    lowest = places[0]
    for place in places[1:]:
        lowest = words.choose(words.less_signed(place, lowest), place, lowest)
    return lowest, 0


# Two terms, rounded -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """The sum of two terms in one register.

    Attributes:
        magnitude, negative: of the sum; `twos`: the register, where it is one of two's complement.
        base, offset, reach: as a Number has them.
    """

    magnitude: Word
    negative: Word
    base: Word
    offset: int
    reach: tuple[int, int]
    twos: Word | None = None


def added(build: Builder, x: Number, y: Number, step: Additions | Fma, window: Window) -> Number:
    """The sum of two terms as a rounding sees it, of their window."""
    words = build.words
    nan, infinity, sign = _propagated(build, (x, y))
    zero_sign = words.choose(infinity, sign, _zero_sign(build, (x, y), step.rounding))
    sticky, last = _carried(build, (x, y))
    build.mark("absolute", window.magnitude)
    zero = words.both(x.zero, y.zero)
    return Number(
        nan, infinity, zero, words.choose(infinity, sign, window.negative), window.magnitude, window.base,
        window.offset, window.base, window.reach, zero_sign=zero_sign, twos=window.twos, sticky=sticky,
        last=last,
    )  # fmt: skip


def met(build: Builder, x: Number, y: Number, fmt: Format) -> Window:
    """The window of two terms: their own frame, the larger one's, or one below the higher of their highest
    bits. That is so long that only a term far below the other one is cut, and then one bit for all of it
    decides a rounding to `fmt`."""
    words = build.words
    if x.base is y.base:
        offset = min(x.offset, y.offset)
        width = max(one.width + one.offset - offset for one in (x, y)) + 2
        own = build.signed(x, width, offset), build.signed(y, width, offset)
        return _in_twos(build, own, x.base, offset, x.reach)
    if x.code is not None and y.code is not None and x.code[0] == y.code[0] and fmt.is_float:
        return _met_at_larger(build, x, y, fmt)
    kept = (fmt.fraction_bits if fmt.is_float else fmt.integer_bits + 2) + 4
    size = max(one.width + max(kept, other.width + 1) for one, other in ((x, y), (y, x)))
    lowest = build.exponent(-(1 << (build.exponent_bits - 1)))
    tops = [_top(build, one) for one in (x, y)]
    live = [words.nonzero(one.magnitude) for one in (x, y)]
    base = build.largest([words.choose(own, top, lowest) for own, top in zip(live, tops, strict=True)])
    _, last = _carried(build, (x, y))
    if last is not None:  # nothing but a sticky bit is left: it lies below the last place
        base = words.choose(build.any_of(live), base, build.plus(*last))
    moved = (
        jammed(build, build.pad(one.magnitude, size - one.width), words.sub(base, top))
        for one, top in zip((x, y), tops, strict=True)
    )
    one, other = (
        _with_sign(build, sign.sign, word, size + 3) for sign, word in zip((x, y), moved, strict=True)
    )
    ends = [_top_reach(one) for one in (x, y)]
    reach = min(low for low, _ in ends), max(high for _, high in ends)
    return _in_twos(build, (one, other), base, -size - 1, reach)


def _in_twos(
    build: Builder, placed: tuple[Word, Word], base: Word, offset: int, reach: tuple[int, int]
) -> Window:
    """The window of two terms in two's complement, which leave its two highest bits free."""
    words = build.words
    total = build.mark("sum", words.add(*placed))
    negative = words.bit(total, total.width - 1)
    magnitude = words.extend(words.choose(negative, words.neg(total), total), total.width - 1)
    return Window(magnitude, negative, base, offset, reach, total)


def _met_at_larger(build: Builder, x: Number, y: Number, fmt: Format) -> Window:
    """The window of two numbers of one format: that of the larger one, with a carry above it, and some places
    and one bit for all that is cut below it.

    The larger one has its highest bit, or the least exponent: then the other one has it, too, and does not
    move. What moves by one place loses nothing; of what moves farther, a difference is at most one place
    lower than the larger one.
    """
    words = build.words
    turned = words.less_signed(*(words.concat(one.base, one.magnitude) for one in (x, y)))
    pairs = [(getattr(x, of), getattr(y, of)) for of in ("magnitude", "base", "sign")]
    larger, base, sign = (words.choose(turned, other, one) for one, other in pairs)
    smaller, low, other = (words.choose(turned, one, other) for one, other in pairs)
    extra = max(_seen_below_leading(fmt) - (x.width - 1), 1)
    width = x.width + extra + 2
    distance = build.mark("distance", words.sub(base, low))
    moved = build.mark("addend", jammed(build, build.pad(smaller, extra), distance))
    fixed, wide = words.extend(build.pad(larger, extra + 1), width), words.extend(moved, width)
    magnitude = words.choose(words.differ(sign, other), words.sub(fixed, wide), words.add(fixed, wide))
    return Window(magnitude, sign, base, x.offset - extra - 1, x.reach)


def _seen_below_leading(fmt: Format) -> int:
    """Places below the leading one of the larger term that a rounding to a format sees, of a difference that
    may begin one place lower: its fraction and the round bit. One bit more stands for all below them."""
    return fmt.fraction_bits + 2


def met_at_product(
    build: Builder, factors: tuple[Number, Number], product: Number, c: Number, fmt: Format
) -> Window:
    """The window of a product and c in which the product stays where it is, and c moves:

        | c | gap | product | extra | one bit for all of c below |

    A c that belongs farther to the left stays at the left edge: the product is then less than the rounding of
    c to `fmt` sees, and decides only as not zero. c loses bits to the right only where the rounding of the
    product does not see them. Multiply-adders are built so: one shifter, and one adder.
    """
    words = build.words
    gap, extra = _margins(factors, c, fmt)
    size = c.width + gap + product.width + extra
    edge, own = build.plus(_top(build, product), gap + c.width), _top(build, c)
    distance = build.mark("distance", words.sub(edge, own))
    live = words.nonzero(c.magnitude)
    beyond = words.both(live, words.less_signed(distance, build.exponent(0)))
    at_edge = build.mark("at_edge", words.either(words.invert(words.nonzero(product.magnitude)), beyond))
    amount = words.choose(at_edge, build.exponent(0), distance)
    moved = build.mark("addend", jammed(build, build.pad(c.magnitude, size - c.width), amount))
    fixed = build.pad(product.magnitude, extra + 1)
    placed = (
        _with_sign(build, product.sign, fixed, size + 3),
        _with_sign(build, c.sign, moved, size + 3),
    )
    base = words.choose(at_edge, own, edge)
    low, high = _top_reach(product)
    ends = [_top_reach(c), (low + gap + c.width, high + gap + c.width)]
    reach = min(low for low, _ in ends), max(high for _, high in ends)
    return _in_twos(build, placed, base, -size - 1, reach)


def _margins(factors: tuple[Number, Number], c: Number, fmt: Format) -> tuple[int, int]:
    """Places between c at the left edge and the product, and below the product, of a window.

    Of what is decoded the highest bit is 1, but in subnormal numbers.
    """
    seen, lowest = _seen_below_leading(fmt), c.reach[0] + c.offset
    # c, where it is the larger one: if it is subnormal, a result in `fmt` has to have places as low as its
    # lowest one, or lower bits are looked at.
    whole = c.code is not None and fmt.min_exponent - fmt.fraction_bits >= lowest
    gap = max(seen - (c.width - 1 if whole else 0), 1)
    # The product, where c has bits below it: then not both factors are subnormal, unless their product has
    # places above the lowest one of c.
    leading = 0
    least = sum(one.reach[0] + one.offset for one in factors)
    if all(one.code is not None for one in factors) and least <= lowest:
        leading = min(one.width for one in factors) - 1
    # A c that is cut is below half of the product's leading one: what is left of it has that place or the
    # next one.
    return gap, max(seen - leading, c.width - leading, 0)


def _top(build: Builder, one: Number) -> Word:
    """The exponent of the place above the highest bit."""
    return build.plus(one.base, one.offset + one.width)


def _top_reach(one: Number) -> tuple[int, int]:
    above = one.offset + one.width
    return one.reach[0] + above, one.reach[1] + above


def _with_sign(build: Builder, sign: Word, magnitude: Word, width: int) -> Word:
    """(-1)**sign * magnitude in two's complement."""
    wide = build.words.extend(magnitude, width)
    return build.words.choose(sign, build.words.neg(wide), wide)


def ieee(build: Builder, exact: Number, step: IeeeStep, name: str) -> Number:
    """The number rounded to the step's format and decoded again."""
    fmt = step.format
    assert fmt is not None, "a multiply is rounded only where it has a format"
    with build.inside(name):
        code = to_code(build, build.with_sticky(exact), ieee_rule(step, fmt))
    return build.decode(fmt, build.code(name, code))


def _named(build: Builder, number: Number, name: str) -> Number:
    """A result, its parts named: the next operation begins with them."""
    for what in ("nan", "infinity", "zero", "sign", "exponent", "payload"):
        if (word := getattr(number, what)) is not None:
            build.mark(
                f"{name}.is_{what}" if what in ("nan", "infinity", "zero") else f"{name}.d_{what}", word
            )
    build.mark(f"{name}.d_magnitude", number.magnitude)
    return number


def _of_numbers(build: Builder, exact: Number, step: IeeeStep, name: str) -> Number:
    """The number rounded where it is none of NaN, which the step makes or hands on itself."""
    first = len(build.raised)
    rounded = ieee(build, replace(exact, nan=build.no), step, name)
    _only_without(build, exact.nan, first)
    return rounded


def _only_without(build: Builder, nan: Word, first: int) -> None:
    """Keeps a NaN from raising the flags that numbers have raised since."""
    words = build.words
    build.raised[first:] = [
        (flag, words.both(condition, words.invert(nan))) for flag, condition in build.raised[first:]
    ]


def additions(build: Builder, step: Additions, terms: Sequence[tuple[str, Number]]) -> list[Number]:
    """The rounded sums of each group, two terms at a time."""
    numbers = [number for _, number in terms]
    groups = groups_of(step, len(terms))
    found = []
    for at, group in enumerate(groups):
        where = "sum" if len(groups) == 1 else f"sum[{at}]."

        def add(x: Number, y: Number, place: str, where: str = where) -> Number:
            return _added_and_rounded(build, step, x, y, where + place)

        found.append(_reduced(numbers[group], step.order, add, single=len(groups) == 1))
    return found


def _added_and_rounded(build: Builder, step: Additions, x: Number, y: Number, name: str) -> Number:
    words = build.words
    first = len(build.raised)
    with build.inside(name):
        exact = added(build, x, y, step, met(build, x, y, step.format))
    if not step.first_nan:
        return _named(build, ieee(build, exact, step, name), name)
    from_nan = words.either(x.nan, y.nan)
    rounded = _of_numbers(build, exact, step, name)
    _only_without(build, from_nan, first)
    made = _generated_nan(build, step, rounded)
    found = build.chosen(exact.nan, made, rounded)
    for one in (y, x):
        found = build.chosen(one.nan, _handed(build, one, step.quieted, found), found)
    return _named(build, found, name)


def _reduced(
    terms: Sequence[Number],
    order: str,
    add: Callable[[Number, Number, str], Number],
    single: bool,
    first: int = 0,
) -> Number:
    """The sum by additions of two terms; each gets its place, an index where it is of the only group."""
    if len(terms) == 1:
        return terms[0]
    if order == "tree":
        half = len(terms) // 2
        left = _reduced(terms[:half], order, add, single, first)
        right = _reduced(terms[half:], order, add, single, first + half)
        level, at = (len(terms) - 1).bit_length(), first // len(terms)
        return add(left, right, f".level{level}[{at}]" if single else f"level{level}.{at}")
    total = terms[0]
    for at, term in enumerate(terms[1:]):
        total = add(total, term, f"[{at}]" if single else f"{at}")
    return total


def _generated_nan(build: Builder, step: Additions | Fma, like: Number) -> Number:
    """A NaN that comes of numbers."""
    if step.nan is None:
        return _as_nan(build, like, build.no, None)
    number = build.decode(step.format, build.words.constant(step.nan, step.format.bits))
    return _as_nan(build, like, number.sign, number.payload)


def _handed(build: Builder, nan: Number, quieted: bool, like: Number) -> Number:
    """A NaN as a step hands it on."""
    payload = nan.payload
    if quieted and payload is not None:
        payload = build.words.either(payload, build.words.constant(1 << (payload.width - 1), payload.width))
    return _as_nan(build, like, build.sign_of(nan), payload)


def _as_nan(build: Builder, like: Number, sign: Word, payload: Word | None) -> Number:
    return replace(
        like,
        nan=build.yes,
        infinity=build.no,
        zero=build.no,
        sign=sign,
        zero_sign=None,
        payload=payload,
        code=None,
    )


# Fused multiply-adds ----------------------------------------------------------------------------------------


def fma(build: Builder, step: Fma, pairs: Sequence[tuple[Number, Number]], c: Number | None) -> list[Number]:
    """The result of each chain of multiply-adds."""
    groups = groups_of(step, len(pairs))
    found = []
    for group in groups:
        index = range(*group.indices(len(pairs)))
        total: Number | None = None
        if step.start == "c":
            total = c
        elif step.start == "zero":
            point = build.exponent(0)
            none = build.words.constant(0, 1)
            total = Number(build.no, build.no, build.yes, build.no, none, point, 0, point, (0, 0))
        for i in index:
            total = _multiply_add(build, step, *pairs[i], total, f"fma[{i}]")
        assert total is not None, "a group has a pair"
        found.append(total)
    return found


def _multiply_add(build: Builder, step: Fma, a: Number, b: Number, c: Number | None, name: str) -> Number:
    operands = {"a": a, "b": b, "c": c}
    product = build.product(a, b, step.zero_times_infinity)
    build.mark(name.replace("fma", "product"), product.magnitude)
    first = len(build.raised)
    exact = product
    if c is not None:
        moves = step.format.is_float and product.base is not c.base and c.sticky is product.sticky is None
        with build.inside(name):
            window = (
                met_at_product(build, (a, b), product, c, step.format)
                if moves
                else met(build, product, c, step.format)
            )
            exact = added(build, product, c, step, window)
    rounded = _of_numbers(build, exact, step, name)
    handed = [operands[one] for one in step.nan_order]
    from_nan = build.any_of(one.nan for one in handed if one is not None)
    _only_without(build, from_nan, first)
    made = _generated_nan(build, step, rounded) if step.nan_order else _plain_nan(build, rounded)
    found = build.chosen(exact.nan, made, rounded)
    for one in reversed(handed):
        if one is not None:
            found = build.chosen(one.nan, _handed(build, one, step.quieted, found), found)
    return _named(build, _packed(build, found, step, f"{name}.d"), name)


def _packed(build: Builder, number: Number, step: Additions | Fma, name: str) -> Number:
    """A result as the code of its format, NaNs included: one word, which a unit that hands codes on has, too.

    Only formats whose codes say all that the number does are packed.
    """
    fmt = step.format
    if not fmt.is_float or fmt.specials != "ieee" or fmt.ignored:
        return number
    return build.decode(fmt, build.code(name, written(build, number, step, fmt)))


def _plain_nan(build: Builder, like: Number) -> Number:
    return replace(
        like,
        nan=build.yes,
        infinity=build.no,
        zero=build.no,
        zero_sign=None,
        sign=build.no,
        payload=None,
        code=None,
    )


def written(build: Builder, number: Number, step: Additions | Fma, fmt: Format) -> Word:
    """The code that a step writes to d."""
    words = build.words
    hands_on = bool(step.nan_order) if isinstance(step, Fma) else step.first_nan
    known = number.code is not None and number.code[0] == fmt and not fmt.ignored
    if known and number.code is not None and (not fmt.is_float or fmt.infinity is not None):
        code = number.code[1]  # it is a number of the format already
    else:
        code = to_code(build, build.with_sticky(number), replace(ieee_rule(step, fmt), flush="none"))
    of_nan = build.special_code(fmt, replace(number, nan=build.yes), step.nan)
    if hands_on and number.payload is not None:
        paid = words.nonzero(number.payload)
        of_nan = words.choose(paid, build.nan_code(fmt, number, False), of_nan)
    return words.choose(number.nan, of_nan, code)
