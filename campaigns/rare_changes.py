"""Changes of instructions that the default vectors hardly show: what a fault could hide in.

    .venv/bin/python campaigns/rare_changes.py [--count 200000] [NAME ...]
    .venv/bin/python campaigns/rare_changes.py --random 500 --each 10 --seed 1 --out rare.json [NAME ...]
    .venv/bin/python campaigns/rare_changes.py --comparisons 20 --seed 1 --out bits.json [NAME ...]

First form: every change that the diagnosis knows (golden/identify/diagnose/mutations) is made to one
instruction of each of twelve families, or to the instructions that are named. Where fewer than LEAST results
show a change, operands of every kind, aimed at the instruction and at the changed one, decide whether it can
be seen at all. A change that can be seen and hardly is seen is printed: stimuli should aim there.

Second form: no list of changes. Programs are drawn by a seed from all architectures (one of each combination
of steps, formats and K), or the named programs take turns. Each becomes its circuit
(golden/circuit/specification.py), and one word of that is changed at random: another operation, another
operand, a constant that is one off, a bit that is stuck. The default vectors run through both, chunk by
chunk, until LEAST results differ. Where fewer differ, the prover (golden/proof) proves the change equivalent,
or operands that show it are found, or it stays open: a person looks at the last two.

Third form: every comparison of two words for equality in the circuits of some programs (is a fraction zero,
is anything cut, is the upper half of a sum empty). A comparison that overlooks one bit is wrong only where
the words differ only in this bit, so these are the rarest faults of a datapath. Of each bit the results that
show it are counted. Bits that fewer than LEAST show are written; many of them decide nothing.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import runner

import golden
from golden import stimuli
from golden.catalog.lookup import resolve
from golden.circuit.specification import Circuit, circuit_of
from golden.circuit.words import NATIVE, CircuitError, Values, Word, Words, compute, order
from golden.errors import MmagoldError
from golden.identify.diagnose.mutations import of_program
from golden.model.instruction import Instruction
from golden.proof.problem import VECTORS, Problem
from golden.proof.solver import again
from golden.proof.sweep import OPEN, PROVED, Sweep
from golden.proof.verdict import verdict_of
from golden.vectors.vectorset import VectorSet, default_set

LEAST = 20
"""Results that a change has to show in: with a twentieth of the vectors one still does."""
MMA = "mma.sync.aligned.m16n8k"
NAMES = (
    ("volta", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"),
    ("hopper", f"{MMA}16.row.col.f32.f16.f16.f32"),
    ("hopper", f"{MMA}16.row.col.f16.f16.f16.f16"),
    ("ampere", f"{MMA}8.row.col.f32.bf16.bf16.f32"),
    ("ampere", f"{MMA}4.row.col.f32.tf32.tf32.f32"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
    ("cdna3", "v_mfma_f32_16x16x32_bf8_fp8"),
    ("rdna3", "v_wmma_f32_16x16x16_f16_w32"),
    (
        "rtx_blackwell",
        f"{MMA}64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
)


# Changes that the diagnosis knows ---------------------------------------------------------------------------


def showing(one: Instruction, changed: Instruction) -> Counter[str]:
    """By kind, results that differ."""
    found: Counter[str] = Counter()
    for kind in stimuli.KINDS:
        for aimed in (one, changed):
            # Operands of each kind, aimed at either, for a change that the vectors hardly show.
            each = 2000
            operands = stimuli.generate(aimed, kind, each, np.random.default_rng(3))
            found[kind] += int((changed.dot(**operands) != one.dot(**operands)).sum())
    return +found


def examine(ins: Instruction, count: int) -> tuple[int, int]:
    """How many changes were made, and how many of them are rare and can be seen; prints these."""
    vectors = default_set(ins, count, seed=1)
    made = hidden = 0
    for change in of_program(ins):
        try:
            changed = change.program(ins) if change.program is not None else None
        except MmagoldError:
            continue
        if changed is None:
            continue
        made += 1
        shown = int((changed.dot(**vectors.operands) != vectors.d).sum())
        if shown < LEAST and (kinds := showing(ins, changed)):
            hidden += 1
            print(f"  {change.slug}: {shown} of {count:,}; {dict(kinds.most_common(3))}", flush=True)
    return made, hidden


# Random changes of a circuit --------------------------------------------------------------------------------


def programs() -> list[list[str]]:
    """Instructions without twins, of all architectures, in groups of the same kinds of steps and operands."""
    groups: dict[Any, dict[Any, str]] = defaultdict(dict)
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            pattern = ins.pattern and ins.pattern.name
            integer = not ins.formats["a"].is_float
            kinds = {type(step).__name__ for step in ins.program.operations[0].steps}
            several = len(ins.program.operations) > 1
            shape = *sorted(kinds), several, integer, pattern, ins.scale_block is not None
            own = repr(ins.program), *ins.formats.items(), pattern, ins.ordered_metadata, ins.scale_block
            groups[shape].setdefault(own, f"{architecture}:{ins.name}")
    return [[*group.values()] for group in groups.values()]


def circuit(ins: Instruction) -> tuple[Circuit, dict[str, tuple[str, int]]]:
    """The circuit of an instruction whose variables are the elements of its operands, and for each variable
    the operand and the place in it."""
    words, inputs, places = Words(), {}, {}
    for name, shape in ins.operand_shapes(matrices=False).items():
        bits = ins.code_format(name).bits
        elements = []
        for at in range(shape[0] if shape else 1):
            elements.append(words.variable(f"{name}[{at}]", bits))
            places[f"{name}[{at}]"] = name, at
        inputs[name] = words.concat(*reversed(elements))
    return circuit_of(ins, words, inputs), places


def changed_words(
    words: Words, word: Word, live: int, near: Sequence[Word], rng: random.Random
) -> Iterator[tuple[str, Word]]:
    """What a word may be in its place: its operation on other operands (also the words in `near`), another
    operation, a stuck bit."""
    ones = (1 << word.width) - 1
    for place, arg in enumerate(word.args if word.op != "extract" else ()):
        for what, other in _changed_operands(words, place, arg, near, rng):
            yield what, again(words, word, [*word.args[:place], other, *word.args[place + 1 :]])
    bit = words.constant(1 << rng.choice([at for at in range(word.width) if live >> at & 1]), word.width)
    yield "a bit is 0", words.both(word, words.invert(bit))
    yield "a bit is 1", words.either(word, bit)
    yield "a bit is turned", words.differ(word, bit)
    args = word.args
    one = words.constant(1, word.width)
    if word.op in ("add", "sub"):
        swapped = {"add": words.sub, "sub": words.add}[word.op]
        yield "add and subtract", swapped(*args)
        yield "one more", words.add(word, one)
        yield "one less", words.sub(word, one)
    if word.op == "sub":
        yield "the other way round", words.sub(args[1], args[0])
    if word.op == "add":
        yield "or for the sum", words.either(*args)
    if word.op in ("add", "sub", "mul", "and", "or", "xor"):
        yield "the first operand alone", args[0]
        yield "the second operand alone", args[1]
    for op, instead in (("and", words.both), ("or", words.either), ("xor", words.differ)):
        if word.op in ("and", "or", "xor") and word.op != op:
            yield f"{op} for {word.op}", instead(*args)
    if word.op in ("not", "neg"):
        yield "the operand itself", args[0]
    if word.op == "neg":
        yield "one's complement", words.invert(args[0])
    if word.op in ("shl", "lshr", "ashr"):
        yield "not shifted", args[0]
        for what, by in (("one more", 1), ("one less", ones)):
            amount = words.add(args[1], words.constant(by, args[1].width))
            yield f"shifted by {what}", again(words, word, [args[0], amount])
    if word.op == "lshr":
        yield "signed", words.shift_right_signed(*args)
    if word.op == "ashr":
        yield "unsigned", words.shift_right(*args)
    if word.op in ("ult", "slt"):
        less, rest = (words.less, words.less_signed) if word.op == "ult" else (words.less_signed, words.less)
        yield "or equal", words.invert(less(args[1], args[0]))
        yield "greater", less(args[1], args[0])
        yield "signed or not", rest(*args)
    if word.op == "ite":
        yield "the other way round", words.choose(args[0], args[2], args[1])
        yield "always the first", args[1]
        yield "always the second", args[2]
    if word.op == "sext":
        yield "no sign", words.extend(args[0], word.width)
    if word.op == "extract":
        low, whole = int(word.value or 0), args[0]
        for by in (-1, 1):
            if low + by >= 0 and low + by + word.width <= whole.width:
                yield f"{by:+} bit", words.extract(whole, low + by, word.width)


def _changed_operands(
    words: Words, place: int, arg: Word, near: Sequence[Word], rng: random.Random
) -> Iterator[tuple[str, Word]]:
    """Other operands for one place of an operation."""
    bit = words.constant(1 << rng.randrange(arg.width), arg.width)
    if arg.constant is not None:
        yield "a constant is one more", words.constant(arg.constant + 1, arg.width)
        yield "a constant is one less", words.constant(arg.constant - 1, arg.width)
    yield f"operand {place}: a bit is turned", words.differ(arg, bit)
    yield f"operand {place}: a bit is 0", words.both(arg, words.invert(bit))
    yield f"operand {place}: a bit is 1", words.either(arg, bit)
    others = [one for one in near if one.width == arg.width and one is not arg]
    if others:
        yield f"operand {place}: another signal", rng.choice(others)


def live_bits(root: Word) -> dict[Word, int]:
    """Of each word the bits that the root may depend on, as a mask."""
    live: dict[Word, int] = defaultdict(int)
    live[root] = (1 << root.width) - 1
    for word in reversed(order([root])):
        mask = live[word]
        for place, arg in enumerate(word.args):
            ones = (1 << arg.width) - 1
            match word.op:
                case "extract":
                    own = mask << int(word.value or 0)
                case "concat":
                    own = mask >> word.args[1].width if place == 0 else mask
                case "and" | "or" | "xor" | "not":
                    own = mask
                case "ite" if place:
                    own = mask
                case "add" | "sub" | "mul" | "neg":
                    own = (1 << mask.bit_length()) - 1
                case _:
                    own = ones if mask else 0
            live[arg] |= own & ones
    return live


def with_change(words: Words, root: Word, word: Word, instead: Word) -> Word:
    """The root with a word in the place of another."""
    made = {word: instead}
    for one in order([root]):
        if one not in made:
            args = [made.get(arg, arg) for arg in one.args]
            if any(new is not old for new, old in zip(args, one.args, strict=True)):
                made[one] = again(words, one, args)
    return made.get(root, root)


class Change:
    """One changed word: the result with it, in how many vectors the word differs, and in how many of them the
    result."""

    def __init__(self, words: Words, root: Word, word: Word, instead: Word, what: str) -> None:
        self.word, self.instead, self.what = word, instead, what
        self.root = with_change(words, root, word, instead)
        self.met = self.shown = 0
        known = set(order([root]))
        first = [one for one in order([instead]) if one not in known]
        seen = known | set(first)
        self.first, self.rest = first, [one for one in order([self.root]) if one not in seen]

    def run(self, base: Mapping[Word, Values], root: Word, size: int) -> None:
        """Counts the results of a chunk that differ, of whose words `base` has the numbers."""
        here = dict(base)
        for one in self.first:
            here[one] = _value(one, here, {}, slice(0, size))
        rows = np.flatnonzero(here[self.instead] != here[self.word])
        if not len(rows):
            return
        self.met += len(rows)
        part: dict[Word, Values] = {self.word: here[self.instead][rows]}

        def of(one: Word) -> Values:
            if one not in part:
                part[one] = here[one][rows]
            return part[one]

        for one in self.rest:
            for arg in one.args:
                of(arg)
            part[one] = _value(one, part, {}, slice(0, len(rows)))
        self.shown += int(np.count_nonzero(of(self.root) != base[root][rows]))


def _value(one: Word, known: Mapping[Word, Values], columns: Mapping[str, Values], rows: slice) -> Values:
    """The numbers of a word, of whose operands they are known."""
    if one.op == "var":
        return columns[str(one.value)][rows]
    if one.op == "const":
        return np.full(rows.stop - rows.start, one.value, np.uint64 if one.width <= NATIVE else object)
    return compute(one.op, one.width, [known[arg] for arg in one.args], one.args, one.value)


def draw(words: Words, root: Word, count: int, rng: random.Random) -> list[Change]:
    """Changes of words that the root is made of: a kind of word is drawn first (its operation, its width, its
    operands'), then one of that kind, so that k equal multipliers are no more likely than one rounding."""
    kinds: dict[Any, list[Word]] = defaultdict(list)
    own, live = order([root]), live_bits(root)
    at = {word: place for place, word in enumerate(own)}
    for word in own:
        if word.op not in ("var", "const") and live[word]:
            kinds[word.op, word.width, *(arg.op for arg in word.args)].append(word)
    names = list(kinds)
    found: list[Change] = []
    while len(found) < count:
        word = rng.choice(kinds[rng.choice(names)])
        # Another signal: one that was made not long before.
        near = own[max(at[word] - 60, 0) : at[word]]
        what, instead = rng.choice(list(changed_words(words, word, live[word], near, rng)))
        if instead is word:
            continue
        change = Change(words, root, word, instead, what)
        if change.root is not root:
            found.append(change)
    return found


class Drawn:
    """The circuit of an instruction with its default vectors: what both examinations of it begin with.

    Raises:
        CircuitError: it has none.
    """

    def __init__(self, name: str, count: int) -> None:
        self.ins = resolve(name).stateless
        self.made, self.places = circuit(self.ins)
        self.root = self.made.outputs["d"]
        self.own = order([self.root])
        self.points = {word: label for label, word in self.made.points.items()}
        self.vectors = default_set(self.ins, count, seed=1)
        self.columns = columns_of(self.vectors, self.places)

    def values(self, start: int, end: int) -> dict[Word, Values]:
        """The numbers of every word for a chunk of the vectors."""
        base: dict[Word, Values] = {}
        for word in self.own:
            base[word] = _value(word, base, self.columns, slice(start, end))
        return base


def examine_random(name: str, each: int, seed: str, count: int, prove: float) -> list[dict[str, Any]]:
    """Random changes of one instruction, a row each."""
    try:
        drawn = Drawn(name, count)
    except CircuitError as error:
        return [{"name": name, "state": "no circuit", "why": str(error)}]
    root = drawn.root
    changes = draw(drawn.made.words, root, each, random.Random(f"{name} {seed}"))
    # Few vectors first: most changes are seen by them.
    edges = [0, *(edge for edge in (2000, *range(20_000, count, 20_000)) if edge < count), count]
    for start, end in pairwise(edges):
        open_ = [change for change in changes if change.shown < LEAST]
        if not open_ or start >= end:
            break
        base = drawn.values(start, end)
        if (base[root] != drawn.vectors.d[start:end]).any():
            return [{"name": name, "state": "the circuit is not the model"}]
        for change in open_:
            change.run(base, root, end - start)
    rows = []
    for change in changes:
        row = {"name": name, "word": repr(change.word), "what": change.what, "met": change.met}
        row |= {"shown": change.shown, "draw": seed}
        row["made of"] = _text(change.word, drawn.points)
        if change.shown < LEAST:
            row |= settled(drawn, change, prove)
        rows.append(row)
    return rows


def settled(drawn: Drawn, change: Change, seconds: float) -> dict[str, Any]:
    """Whether a change that is hardly seen can be seen at all."""
    start, made = time.monotonic(), drawn.made
    problem = Problem(
        made.words, made.points, made.facts, drawn.root, change.root, made.assumed,
        {name: [int(code) for code in column[:VECTORS]] for name, column in drawn.columns.items()},
        {name: drawn.ins.code_format(operand).bits for name, (operand, _) in drawn.places.items()},
        made.codes,
    )  # fmt: skip
    verdict, values = verdict_of(Sweep(problem, start + seconds)) if seconds else (OPEN, None)
    row: dict[str, Any] = {"verdict": verdict, "seconds": round(time.monotonic() - start, 1)}
    if values is not None:
        row["operands"] = {name: hex(code) for name, code in values.items() if code}
    return row


def single_bits(different: Values) -> tuple[Values, Values]:
    """The rows of (n,) words that are one bit, and which bit."""
    if different.dtype != object:
        words = different.astype(np.uint64)
        rows = np.flatnonzero((words != 0) & (words & (words - np.uint64(1)) == 0))
        return rows, np.log2(words[rows].astype(np.float64)).astype(int)  # exact: powers of two
    rows = np.array([at for at, word in enumerate(different) if word and not word & (word - 1)], int)
    return rows, np.array([int(different[at]).bit_length() - 1 for at in rows], int)


def examine_comparisons(name: str, count: int) -> list[dict[str, Any]]:
    """The bits of a program's comparisons that fewer than LEAST of the default vectors decide, a row each; in
    front of them how many bits there are."""
    try:
        drawn = Drawn(name, count)
    except CircuitError as error:
        return [{"name": name, "state": "no circuit", "why": str(error)}]
    root, own, live = drawn.root, drawn.own, live_bits(drawn.root)
    # What follows a word: all that is computed again where it changes.
    users: dict[Word, list[Word]] = defaultdict(list)
    for word in own:
        for arg in set(word.args):
            users[arg].append(word)
    compared = [word for word in own if word.op == "eq" and live[word]]
    follows: dict[Word, list[Word]] = {}
    for word in compared:
        seen, todo = {word}, [word]
        while todo:
            new = [user for user in users[todo.pop()] if user not in seen]
            seen.update(new)
            todo += new
        follows[word] = [other for other in own if other in seen and other is not word]
    met: dict[Word, Counter[int]] = {word: Counter() for word in compared}
    shown: dict[Word, Counter[int]] = {word: Counter() for word in compared}
    for start in range(0, count, 20_000):
        end = min(start + 20_000, count)
        base = drawn.values(start, end)
        for word in compared:
            first, second = (base[arg] for arg in word.args)
            if first.dtype != second.dtype:
                first, second = first.astype(object), second.astype(object)
            rows, bits = single_bits(first ^ second)
            open_ = np.array([shown[word][bit] < LEAST for bit in bits.tolist()], bool)
            rows, bits = rows[open_], bits[open_]
            met[word].update(bits.tolist())
            # The comparison says the opposite there, and the program goes on.
            part = {word: (1 - base[word][rows]).astype(base[word].dtype)}
            for other in follows[word]:
                part |= {arg: base[arg][rows] for arg in other.args if arg not in part}
                part[other] = _value(other, part, {}, slice(0, len(rows)))
            shown[word].update(bits[part[root] != base[root][rows]].tolist())
    found: list[dict[str, Any]] = [
        {"name": name, "bits": sum(word.args[0].width for word in compared), "state": "compared"}
    ]
    for word in compared:
        for bit in range(word.args[0].width):
            if shown[word][bit] < LEAST:
                row = {"name": name, "word": _text(word, drawn.points), "bit": bit}
                found.append(row | {"met": met[word][bit], "shown": shown[word][bit]})
    return found


def columns_of(drawn: VectorSet, places: Mapping[str, tuple[str, int]]) -> dict[str, Values]:
    """The codes (count,) of each element of the operands."""
    return {
        label: (codes[:, at] if codes.ndim == 2 else codes).astype(np.uint64)
        for label, (operand, at) in places.items()
        for codes in [drawn.operands[operand]]
    }


def _text(word: Word, points: Mapping[Word, str], depth: int = 2) -> str:
    """A word by the names of what it is made of."""
    if word in points:
        return points[word]
    if word.op in ("var", "const"):
        return str(word.value)
    if not depth:
        return repr(word)
    return f"{word.op}({', '.join(_text(arg, points, depth - 1) for arg in word.args)})"


def turns(given: argparse.Namespace, count: int) -> list[str]:
    """Programs drawn from the groups in turn, or the named ones."""
    rng = random.Random(given.seed)
    groups = [[name] for name in given.names] or programs()
    return [rng.choice(groups[n % len(groups)]) for n in range(count)]


def campaign(given: argparse.Namespace) -> None:
    """Draws programs and changes them until there are enough changes; prints the changes that hardly show."""
    names = turns(given, -(-given.random // given.each))
    tasks = (
        (name, given.each, f"{given.seed} {n}", given.count, given.prove) for n, name in enumerate(names)
    )
    rows: list[dict[str, Any]] = []
    for _, found in runner.results(examine_random, tasks, given.jobs, seconds=given.seconds):
        rows += found
        for row in found:
            if row.get("shown", 0) < LEAST and row.get("verdict") != PROVED:
                print(row, flush=True)
        print(f"{len(rows)}: {found[0]['name']}", flush=True)
        runner.write(given.out, rows)
    states = Counter(row.get("state", row.get("verdict", "seen")) for row in rows)
    print(f"{len(rows):,} changes of {len({row['name'] for row in rows})} programs: {dict(states)}")


def compare(given: argparse.Namespace) -> None:
    """Examines the comparisons of some programs; prints how many of their bits are hardly seen."""
    rows: list[dict[str, Any]] = []
    tasks = ((name, given.count) for name in turns(given, given.comparisons))
    for _, found in runner.results(examine_comparisons, tasks, given.jobs, seconds=given.seconds):
        rows += found
        never = sum(row.get("shown") == 0 for row in found)
        print(f"{found[0]}: {len(found) - 1} bits by fewer than {LEAST}, {never} by none", flush=True)
        runner.write(given.out, rows)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="instructions or unit files in place of the twelve, or of all"
    )
    parser.add_argument("--count", type=int, default=200_000, help="vectors of the default set")
    parser.add_argument("--random", type=int, default=0, help="random changes of circuits")
    parser.add_argument("--comparisons", type=int, default=0, help="programs whose comparisons are examined")
    parser.add_argument("--each", type=int, default=10, help="of each program that is drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prove", type=float, default=20, help="seconds of a proof")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="after which no further program begins"
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    given = parser.parse_args()
    if given.random:
        campaign(given)
        return
    if given.comparisons:
        compare(given)
        return
    sums = np.zeros(2, int)
    names: Sequence[str] = given.names or [f"{architecture}:{name}" for architecture, name in NAMES]
    for name in names:
        found = examine(resolve(name), given.count)
        print(f"{name}: {found[0]} changes, {found[1]} rare", flush=True)
        sums += found
    print(f"{sums[0]:,} changes of {len(names)} instructions, {sums[1]} of them rare")


if __name__ == "__main__":
    main()
