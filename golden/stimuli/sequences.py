"""Dot products in order of time: what each shares with the one before it, and for units that keep their
accumulator how long their sequences are, and where c is zero.

The kinds draw dot products one by one, each with the c that it would need. A unit that holds operands (a
matrix that stays, a register that saves power) or its accumulator answers by the dot products before, too.

`reuse` makes the dot products before some of them out of their operands, so that the later ones, which stay
as they were drawn, meet each way in which two can be alike. `arrange` puts dot products into sequences: short
ones and some long ones, many of them begun by a dot product that makes, as nearly as one can, the c of the
next; and a few that grow, each beyond another power of two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import to_float
from golden.program.program import ONE
from golden.program.signature import SCALES, Signature
from golden.stimuli.codes import Bits, encode, highest_exponent, negate, one, tiniest_exponent
from golden.stimuli.draw import Draw

Flags = npt.NDArray[np.bool_]
_LENGTHS = ((1, 1), (2, 2), (3, 8), (16, 40))
_RAMP, _RAMP_SHARE = 1024, 8
"""Dot products of one sign and the largest size in a row, at most an eighth of the vectors: they fill an
integer accumulator ten bits beyond the largest dot product."""
_GROWING = tuple((5 << n, (1 << n) + (1 << n) // 4) for n in range(5, 11))
"""Sequences that pass 2**n dot products: where each begins in the vectors that are drawn at once, and how
long it is. A short run, too, has sequences up to a fifth of its length. The longest ends before _RAMP
begins."""
_RUNS, _RUN_SHARES = (1, 2, 3, 5, 8, 17), (0.6, 0.16, 0.1, 0.08, 0.04, 0.02)
"""How many do, and how often."""
_STAY, _STAY_SHARE, _STAY_FROM = 300, 32, 8
"""Dot products in a row of which one operand is the same, more than an 8-bit counter counts; they are a 32nd
of all at most, and begin behind an eighth of these: short runs have operands of all sorts instead."""
_ONE, _OTHERS, _LANE, _TURNS, _ALL = range(5)
_SHARED, _SHARED_SHARES = (_ONE, _OTHERS, _LANE, _TURNS, _ALL), (0.4, 0.3, 0.12, 0.12, 0.06)
"""What they share with the last: one operand, all but one, all but one element or one bit of one, all in turn
with the one before it, all."""


def reuse(operands: dict[str, Bits], rng: np.random.Generator, turn: int = 0) -> dict[str, Bits]:
    """Dot products, or tiles, (count, ...) in order, of which some now share operands with one behind them,
    which is as it was. Only dot products of one mode share. One operand stays for up to _STAY of them, as
    weights do; `turn` says which, b first."""
    count = len(operands["a"])
    last, style, operand, distance = _runs(count, len(operands), rng)
    mode = operands.get("mode")
    if mode is not None:
        own = mode[last] == mode
        last = np.where(own, last, np.arange(count))
    at = np.flatnonzero(last != np.arange(count))
    end, style, operand = last[at], style[at], operand[at]
    other = np.where((style == _TURNS) & (distance[at] % 2 == 1), end - 1, end)
    found = {}
    for number, (name, codes) in enumerate(operands.items()):
        shared = (style >= _LANE) | ((style == _ONE) == (operand == number)) | (name == "mode")
        source = np.where(shared, other, at)
        moved = codes.copy()
        moved[at] = codes[source]
        lane = at[(style == _LANE) & (operand == number)]
        flat, own_flat = moved.reshape(count, -1), codes.reshape(count, -1)
        if name != "mode" and len(lane):
            element = rng.integers(0, flat.shape[1], len(lane))
            # One bit alone for every other one: what compares operands without it takes them for the same.
            bit = rng.integers(0, max(int(codes.max()).bit_length(), 1), len(lane)).astype(codes.dtype)
            near = flat[lane, element] ^ (codes.dtype.type(1) << bit)
            whole = (np.arange(len(lane)) % 2 == 0) | (name == "metadata")  # of which not every code is one
            flat[lane, element] = np.where(whole, own_flat[lane, element], near)
        found[name] = flat.reshape(codes.shape)
    names = [name for name in operands if name != "mode"]
    held = found[names[(turn + 1) % len(names)]]
    length = min(_STAY, count // _STAY_SHARE)
    first = count // _STAY_FROM + int(rng.integers(length + 1))
    stay = np.arange(first, first + length)
    if mode is not None and len(stay):
        stay = stay[mode[stay] == mode[first]]
    held[stay] = held[stay[:1]]
    return found


def _runs(count: int, names: int, rng: np.random.Generator) -> tuple[Bits, Bits, Bits, Bits]:
    """For each of `count` places the last of the run that it is in (itself outside of one), what the dot
    products of the run share with it, the operand concerned, and how far from it it is."""
    # Dot products before which some share their operands.
    share = 0.08
    ends = np.flatnonzero(rng.random(count) < share)
    lengths = rng.choice(_RUNS, len(ends), p=_RUN_SHARES)
    room = np.diff(ends, prepend=-1) - 1  # the last of the run before stays as it is
    lengths = np.minimum(lengths, room)
    places_ = np.arange(count)
    after = np.searchsorted(ends, places_)  # the run that ends here or next
    inside = after < len(ends)
    run = np.where(inside, after, 0)
    none = np.zeros(max(len(ends), 1), np.int64)
    ends, lengths = (np.append(each, none[:1]) for each in (ends, lengths))
    distance = np.where(inside, ends[run] - places_, 0)
    member = inside & (distance <= lengths[run])
    style = rng.choice(_SHARED, len(ends), p=_SHARED_SHARES)[run]
    operand = rng.integers(0, names, len(ends))[run]
    return np.where(member, ends[run], places_), style, operand, distance


def arrange(
    takes: Signature, operands: dict[str, Bits], rng: np.random.Generator
) -> tuple[dict[str, Bits], npt.NDArray[np.int64]]:
    """Puts dot products of `takes.stateless`, (count, ...), into sequences; the first starts at once.

    Returns:
        The operands as `takes.dot` takes them, and for each dot product which of the given ones it is, or (of
        one that makes a c) which it is made for.
    """
    count = len(operands["a"])
    starts, lengths = _plan(count, rng)
    origin = np.arange(count)
    # Long sequences get dot products of moderate size: one infinity would hide all that follow it.
    # Dot products of a sequence that is kept finite: infinities and NaNs would stay in it to its end.
    long = 16
    long_ones = np.repeat(lengths >= long, lengths)
    tame = _tame(takes, operands)
    wild = np.flatnonzero(long_ones & ~tame)
    if tame.any():
        origin[wild] = rng.choice(np.flatnonzero(tame), len(wild))
    # Some sequences hold dot products of one size, which all meet in the sum.
    growing = _growing(takes, operands, rng, count)
    for at, chosen in growing:
        origin[at : at + len(chosen)] = chosen
    behind = int("clear" in takes.alone)  # its products do not count
    # Sequences that begin with a dot product that makes a c.
    share = 0.6
    makers = (starts + behind)[(lengths > 1 + behind) & (rng.random(len(starts)) < share)]
    for at, chosen in growing:
        # A growing sequence stays as it is: nothing in it is exchanged.
        makers = makers[(makers < at - 1) | (makers >= at + len(chosen))]
    origin[makers] = origin[makers + 1]
    # The operands in their order; the makers get products that sum to the c that comes next.
    placed = {name: codes[origin] for name, codes in operands.items()}
    for name, codes in operands_for_results(takes, placed, placed["c"][makers], makers, rng).items():
        placed[name][makers] = codes
    # `clear` begins each sequence; a growing one has no other clear within it.
    clear = np.zeros(count, np.uint8)
    clear[starts] = 1
    for at, chosen in growing:
        clear[at : at + len(chosen) + 1] = 0
        clear[at] = 1
        clear[at + len(chosen) : at + len(chosen) + 1] = 1
    if takes.load:
        if "load" in takes.alone:  # the next one is to meet it
            placed["c"] = np.roll(placed["c"], -1)
        placed["load"] = _loads(takes, placed["c"], clear, long_ones, rng)
        finite = np.isfinite(to_float(takes.formats["c"], placed["c"]))
        for at, chosen in growing:
            end = at + len(chosen)
            placed["load"][at:end] = 0
            if rng.random() < 0.5 and end < count and finite[end]:  # a load ends the sum, not a clear
                placed["load"][end], clear[end] = 1, 0
    else:
        del placed["c"]
    if _grows(takes):
        _ramp(takes, placed, clear, rng)
    return placed | {"clear": clear}, origin


def _loads(
    takes: Signature, c: Bits, clear: Bits, long_ones: Flags, rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Where a unit takes c in: never with `clear`, and in long sequences no infinity and no NaN. Where it
    does not, it is given a c that must not matter."""
    # Share of the dot products that do not clear with which a unit that can takes c in.
    loaded = 0.3
    share = np.where(long_ones, loaded / 4, loaded)
    fit = np.isfinite(to_float(takes.formats["c"], c)) | ~long_ones
    return np.asarray((rng.random(len(c)) < share) & (clear == 0) & fit, np.uint8)


def vectors_needed(takes: Signature) -> int:
    """Vectors that have to be drawn at once for the longest sequence to be among them."""
    return _RAMP * _RAMP_SHARE if _grows(takes) else _LENGTHS[-1][1]


def _growing(
    takes: Signature, operands: dict[str, Bits], rng: np.random.Generator, count: int
) -> list[tuple[int, Bits]]:
    """Where the sequences of _GROWING begin, and the dot products of each, all of a size to meet in its sum;
    none where sizes are those of a mode."""
    total = _totals(takes, operands)
    if takes.modes is not None:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log2(total)
    # Bits that such a total leaves free below the largest number: the sum stays finite.
    headroom = 12
    limit = highest_exponent(takes.formats["d"]) - headroom
    fit = np.isfinite(exponent) & (exponent < limit)
    if not fit.any():
        return []
    usual = float(np.median(exponent[fit]))
    # Exponents to either side of the usual one: these totals all meet in the sum of the sequence.
    width = 12.0
    near = np.flatnonzero(fit & (np.abs(exponent - usual) <= width))
    places = [(at, length) for at, length in _GROWING if at + length <= count]
    # A reset within a sequence sends it again, so that the longest would leave a third of the resets: a third
    # of the blocks have it, some eight of 200,000 vectors, and all others the one of half its length.
    share = 1 / 3
    if places == list(_GROWING):
        del places[-2 if rng.random() < share else -1]
    return [(at, rng.choice(near, length)) for at, length in places]


def _grows(takes: Signature) -> bool:
    """Whether the vectors end in a sequence that grows all the way."""
    return not takes.formats["d"].is_float and takes.modes is None


def _ramp(takes: Signature, operands: dict[str, Bits], clear: Bits, rng: np.random.Generator) -> None:
    """Makes the last dot products one sequence that grows all the way."""
    length = min(_RAMP, len(clear) // _RAMP_SHARE)
    if not length:
        return
    for name in ("a", "b"):
        if name in operands:
            fmt = takes.formats[name]
            ends = [
                fmt.largest,
                1 << (fmt.integer_bits - 1) if not fmt.is_float and fmt.signed else fmt.largest,
            ]
            operands[name][-length:] = rng.choice(ends)
    clear[-length:] = 0
    clear[-length] = 1
    if "load" in operands:
        operands["load"][-length:] = 0


def _plan(count: int, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """Where sequences start and how long they are, without gaps up to `count`."""
    # How long sequences are, from and to, and the share of each in the number of sequences.
    shares = (0.25, 0.45, 0.26, 0.04)
    kinds = rng.choice(len(shares), count, p=shares)
    low, high = np.array(_LENGTHS).T
    ends = np.cumsum(rng.integers(low[kinds], high[kinds] + 1))
    starts = np.concatenate([[0], ends])[:-1] if count else ends
    starts = starts[starts < count]
    return starts, np.diff(starts, append=count)


def _tame(takes: Signature, operands: dict[str, Bits]) -> Flags:
    """Which dot products leave a sum finite, with room for more."""
    return np.asarray(_totals(takes, operands) < 2.0 ** (highest_exponent(takes.formats["d"]) - 8))


def _totals(takes: Signature, operands: dict[str, Bits]) -> npt.NDArray[np.float64]:
    """What dot products add at most: the sum of the sizes of their products. Zeros where sizes are those of a
    mode."""
    sizes = [np.abs(to_float(takes.formats["a"], operands["a"]))] if takes.modes is None else []
    sizes += [
        np.abs(to_float(takes.formats["b"], operands["b"]))
        for _ in "b"
        if "b" in operands and takes.modes is None
    ]
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.prod(sizes, axis=0).sum(axis=-1) if sizes else np.zeros(len(operands["a"]))
        for name in SCALES:
            if name in operands:
                total = total * np.abs(to_float(takes.formats[name], operands[name])).max(axis=-1)
    return np.asarray(total, np.float64)


def operands_for_results(
    takes: Signature, operands: dict[str, Bits], c: Bits, where: Bits, rng: np.random.Generator
) -> dict[str, Bits]:
    """Operands of dot products that give the codes `c` (n,) from zero, as nearly as their products reach; in
    the mode of the operands at `where`."""
    if takes.modes is None:
        return _making(takes, c, rng)
    found = {name: codes[where].copy() for name, codes in operands.items() if name != "c"}
    for code in np.unique(found["mode"]).tolist():
        here = np.flatnonzero(found["mode"] == code)
        for name, codes in _making(takes.of_mode(code), c[here], rng).items():
            found[name][here] = codes
    return found


def _making(takes: Signature, c: Bits, rng: np.random.Generator) -> dict[str, Bits]:
    draw = Draw(takes, len(c), rng)
    a, b = np.zeros(draw.shape, draw.a.dtype), np.zeros(draw.shape, draw.b.dtype)
    value = to_float(draw.c, c)
    rest = np.where(np.isfinite(value), value, 0.0)
    # Together a few products hold the bits of an f32 in f16 or more.
    most = 4
    for slot in range(min(draw.k, most)):
        a[:, slot], b[:, slot], product = _nearest_product(draw, rest)
        rest = rest - product
    special = ~np.isfinite(value)
    a[special, 0] = _specials(draw, value[special])
    b[special, 0] = one(draw.b)
    zero = value == 0
    minus = zero & np.signbit(value)
    a[minus], b[zero] = negate(draw.a, np.zeros_like(a[minus])), one(draw.b)
    a, b = draw.shuffle(a, b)
    operands = draw.finish(a, b, c)
    return {name: codes for name, codes in operands.items() if name not in (*takes.absent, "c")}


def _nearest_product(draw: Draw, value: Bits) -> tuple[Bits, Bits, Bits]:
    """a, b and a * b for one product each: the value cut to a's fraction, times a power of two."""
    fraction, exponent = np.frexp(np.abs(value))
    target = exponent.astype(np.int64) - 1
    ea, eb = draw.split(target, draw.a, draw.b)
    eb = np.where(target < ea + eb, np.maximum(target - ea, tiniest_exponent(draw.b)), eb)
    ea = np.where(target < ea + eb, np.maximum(target - eb, tiniest_exponent(draw.a)), ea)
    bits = ((2 * fraction - 1).clip(0) * 2.0**53).astype(np.uint64) << np.uint64(11)
    a = encode(draw.a, np.signbit(value).astype(np.uint64), ea, bits)
    b = draw.powers(draw.b, eb)
    unreached = (value == 0) | (target < ea + eb)
    a = np.where(unreached, draw.a.dtype.type(0), a)
    factor = np.ones(len(a)) if draw.b == ONE else to_float(draw.b, b)
    return a, b, to_float(draw.a, a) * factor


def _specials(draw: Draw, value: Bits) -> Bits:
    """The a that makes a NaN or an infinity: the same of a's format, or its largest number."""
    fmt = draw.a
    infinity = fmt.largest if fmt.infinity is None else fmt.infinity
    nan = infinity if fmt.nan is None else fmt.nan
    codes = np.where(np.isnan(value), nan, infinity).astype(fmt.dtype)
    return np.where(np.signbit(value) & ~np.isnan(value), negate(fmt, codes), codes)
