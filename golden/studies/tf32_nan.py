"""TF32 NaNs that become infinity: the unit drops 13 bits before it looks whether an operand is a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog import architectures
from golden.catalog.lookup import instructions
from golden.model.instruction import Instruction
from golden.number.formats import from_float, get_format
from golden.studies.study import Progress, Study, Table, findings, percent
from golden.studies.units import Subject

NAME = "tf32-nan"

PAPER_WORD, PAPER_RESULT = 0x7F800001, 0x7F800000
"""The paper's example, section IV-C: this NaN will be converted to this infinity."""
ONE = 0x3F800000
"""1.0 as f32."""
WORDS = {
    0x7F800001: "NaN, payload in the dropped bits (the paper's example)",
    0x7F801FFF: "NaN, all dropped bits set",
    0xFF800001: "NaN with a sign, payload in the dropped bits",
    0x7F802000: "NaN, payload in the lowest kept bit",
    0x7FC00000: "the usual quiet NaN",
    0x7FFFFFFF: "the NaN that NVIDIA's units make",
    0x7F800000: "infinity",
    0x3F801FFF: "a number just below 1 + 2^-10",
    0x00001FFF: "a subnormal number of dropped bits alone",
}


@dataclass(frozen=True)
class Answer:
    """What the instructions of an architecture with TF32 operands answer to the paper's word in a, in b
    and in c."""

    architecture: str
    names: tuple[str, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]


def times_one(ins: Instruction, words: npt.ArrayLike) -> npt.NDArray[Any]:
    """word * 1 + 0 for words in the first element of a, raw."""
    codes = np.asarray(words, dtype=np.uint32)
    a, b = np.zeros((codes.size, ins.k), np.uint32), np.zeros((codes.size, ins.k), np.uint32)
    a[:, 0], b[:, 0] = codes, ONE
    return ins.dot(a, b, np.zeros(codes.size, np.uint32))


def tf32_instructions(architecture: str) -> list[Instruction]:
    """The instructions with TF32 operands, one N of each."""
    found: dict[tuple[Any, ...], Instruction] = {}
    for ins in instructions(architecture):
        if ins.formats["a"].name == "tf32":
            found.setdefault((ins.family, ins.k, ins.sparse, ins.ordered_metadata, ins.program), ins)
    return list(found.values())


def answer_to(ins: Instruction, operand: str, word: int) -> int:
    """The result when every element of one operand is the word, the other factor 1 (and c 0, or the
    products 0)."""
    a, b = np.full(ins.stored_k, ONE, np.uint32), np.full(ins.k, ONE, np.uint32)
    c = np.uint32(0)
    metadata = None
    if ins.pattern is not None:
        legal = ins.pattern.legal(ins.ordered_metadata)[0]
        metadata = np.full(ins.k // ins.pattern.chunk, legal, np.uint8)
    if operand == "a":
        a[:] = word
    elif operand == "b":
        b[:] = word
    else:
        a[:], c = 0, np.uint32(word)
    return int(ins.dot(a, b, c, metadata=metadata))


@lru_cache(maxsize=1)
def answers() -> tuple[Answer, ...]:
    """Every instruction with TF32 operands on every architecture that has one,
    tried with the paper's word."""
    found = []
    for architecture in architectures.architectures():
        known = tf32_instructions(architecture)
        if known:
            results = {
                operand: tuple(answer_to(ins, operand, PAPER_WORD) for ins in known) for operand in "abc"
            }
            found.append(Answer(architecture, tuple(ins.name for ins in known), **results))
    return tuple(found)


def plainest(architecture: str) -> Instruction:
    """The architecture's dense TF32 instruction with the largest K."""
    return max((ins for ins in tf32_instructions(architecture) if not ins.sparse), key=lambda ins: ins.k)


def is_nan(words: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which f32 words are NaN."""
    return np.asarray((words & 0x7FFFFFFF) > 0x7F800000)


def doomed() -> npt.NDArray[np.uint32]:
    """The NaN words without any bit that TF32 keeps."""
    low = np.arange(1, 1 << get_format("tf32").ignored_low, dtype=np.uint32) | np.uint32(0x7F800000)
    return np.concatenate([low, low | np.uint32(0x80000000)])


def random_nans(samples: int) -> npt.NDArray[np.uint32]:
    """Random NaN words, of which each is as likely as every other."""
    rng = np.random.default_rng(5)
    fraction = rng.integers(1, 1 << 23, size=samples, dtype=np.uint32)
    return (
        fraction
        | np.uint32(0x7F800000)
        | (rng.integers(0, 2, size=samples, dtype=np.uint32) << np.uint32(31))
    )


def run(samples: int = 200_000, progress: Progress = lambda done, total: None) -> Study:
    """Asks every instruction with the paper's word, and one of each architecture with all words that turn
    and random others."""
    counts = []
    found = answers()
    for step, answer in enumerate(found):
        ins = plainest(answer.architecture)
        turned, words = times_one(ins, doomed()), random_nans(samples)
        kept = is_nan(times_one(ins, words))
        odd = int((kept == np.isin(words, doomed())).sum())
        counts.append(
            (Subject(ins.architecture, ins.name), int((~is_nan(turned)).sum()), int((~kept).sum()), odd)
        )
        progress(step + 1, len(found))
    return Study(
        NAME,
        samples,
        _findings(counts, samples),
        [_word_table(), _where_table(), _count_table(counts, samples), _conversion_table(), _other_table()],
        [],
        {
            "paper": {"word": PAPER_WORD, "result": PAPER_RESULT},
            "answers": {
                answer.architecture: dict(zip(answer.names, answer.a, strict=True)) for answer in found
            },
            "turned": {unit.label: turned for unit, turned, _, _ in counts},
        },
        units=tuple(unit for unit, *_ in counts),
    )


def _hex(word: int) -> str:
    return f"`0x{word:08X}`"


def meaning(word: int) -> str:
    """What an f32 word is."""
    value = np.uint32(word).view(np.float32)
    return "NaN" if np.isnan(value) else f"{value:g}"


def _word_table() -> Table:
    nvidia, amd = plainest("hopper"), plainest("cdna3")
    rows = []
    for word, what in WORDS.items():
        results = [int(times_one(ins, [word])[0]) for ins in (nvidia, amd)]
        rows.append(
            (_hex(word), what, meaning(word), *(f"{_hex(result)} ({meaning(result)})" for result in results))
        )
    head = ("operand", "what it is", "as f32", "times 1 on Hopper", "times 1 on CDNA3")
    return Table("words", f"Words as a TF32 operand, executed ({nvidia.name}; {amd.name})", head, rows)


def _where_table() -> Table:
    rows = []
    for answer in answers():
        for place in range(len(answer.names)):
            cells = [meaning(column[place]) for column in (answer.a, answer.b, answer.c)]
            rows.append(
                (Subject(answer.architecture, answer.names[place]).chip, f"`{answer.names[place]}`", *cells)
            )
    caption = (
        f"Where it happens: the result with {_hex(PAPER_WORD)} in a, in b and in c, one N of each instruction"
    )
    return Table("where", caption, ("chip", "instruction", "in a", "in b", "in c (f32)"), rows)


def _count_table(counts: list[tuple[Subject, int, int, int]], samples: int) -> Table:
    rows = [
        (unit.chip, f"`{unit.name}`", f"{turned:,} of {len(doomed()):,}", some, odd)
        for unit, turned, some, odd in counts
    ]
    head = (
        "chip",
        "instruction",
        "words without a kept bit that turn",
        f"turned among {samples:,} random NaNs",
        "other than the rule",
    )
    return Table("counts", "All NaN words that can turn, and random ones", head, rows)


def conversions() -> dict[str, Any]:
    """Ways to bring an f32 to a TF32 operand, each a function of words."""

    def nearest(words: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
        with np.errstate(invalid="ignore"):
            return from_float("tf32", words.view(np.float32))

    def integer(words: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
        return (words + np.uint32(0x1000)) & np.uint32(0xFFFFE000)

    return {
        "none: the f32 word goes to the unit": lambda words: words,
        "rounded to nearest, NaN made quiet (golden.from_float)": nearest,
        "rounded as an integer: (word + 0x1000) & ~0x1FFF": integer,
    }


def _conversion_table() -> Table:
    ins, words = plainest("hopper"), np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    rows = []
    for what, convert in conversions().items():
        results = times_one(ins, convert(words))
        rows.append((what, *(f"{_hex(int(result))} ({meaning(int(result))})" for result in results)))
    caption = f"What the conversion before the instruction does to a NaN ({ins.architecture}, {ins.name})"
    return Table("conversions", caption, ("conversion", *(_hex(int(word)) for word in words)), rows)


def _other_table() -> Table:
    """Formats whose operands keep all their bits: the NaN with the least payload stays NaN."""
    cases = [
        Subject("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        Subject("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        Subject("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2"),
        Subject("cdna3", "v_mfma_f32_32x32x8_bf16"),
        Subject("cdna3", "v_mfma_f32_32x32x2_f32"),
    ]
    rows = []
    for unit in cases:
        fmt = unit.ins.formats["a"]
        assert fmt.infinity is not None
        a, b = np.zeros(unit.ins.k, fmt.dtype), np.zeros(unit.ins.k, fmt.dtype)
        a[0], b[0] = fmt.infinity + 1, from_float(fmt, [1.0])[0]
        result = int(unit.ins.dot(a, b, np.uint32(0)))
        rows.append(
            (unit.chip, f"`{unit.name}`", f"`0x{fmt.infinity + 1:0{fmt.storage // 4}X}`", meaning(result))
        )
    return Table("others", "Formats that drop no bits", ("chip", "instruction", "least NaN", "times 1"), rows)


def _findings(counts: list[tuple[Subject, int, int, int]], samples: int) -> str:
    found = answers()
    total = sum(len(answer.names) for answer in found)
    every = 2 * ((1 << 23) - 1)
    integer = list(conversions().values())[-1]
    return findings(
        NAME,
        word=_hex(PAPER_WORD),
        result=_hex(PAPER_RESULT),
        infinite=sum(result == PAPER_RESULT for answer in found for result in (*answer.a, *answer.b)),
        tries=2 * total,
        total=total,
        chips=", ".join(unit.chip for unit, *_ in counts),
        doomed=len(doomed()),
        every=every,
        share=percent(len(doomed()) / every),
        bits=get_format("tf32").ignored_low,
        random=len(counts) * samples,
        odd=sum(row[3] for row in counts),
        lost=meaning(int(times_one(plainest("hopper"), integer(np.array([0x7FFFFFFF], np.uint32)))[0])),
    )
