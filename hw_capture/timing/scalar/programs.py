"""Which kernels time an instruction, and which chain of it holds what it should.

Two compilations: the first has every link of a chain and the instruction alone, and says which link is right;
the second has that link's kernels, by rounds and by independent chains (ILP), and the short sequences that
Abdelkhalik et al. time without a loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hw_capture.errors import HwError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing import loops
from hw_capture.timing.loops import Code
from hw_capture.timing.scalar import chains, checking
from hw_capture.timing.scalar.checking import MOVES, Round
from hw_capture.timing.scalar.instructions import PREDICATE, Operation

TRIAL = (4, 8)
"""Rounds of the two kernels by which a link is chosen."""
TABLE_ONE = "add.u32"
"""The instruction that is also timed by how many of it there are, and by a clock of 32 bits."""
COUNTS = tuple(range(1, 9))


@dataclass(frozen=True)
class Plan:
    """How an instruction is timed: its link, the rounds of the two kernels of every ILP, another link to hold
    next to it, and the kernels without a loop: name to (link, dependent instructions, independent ones, bits
    of the clock)."""

    link: str
    rounds: tuple[int, int]
    ilps: tuple[int, ...]
    other: str = ""
    straight: dict[str, tuple[str, int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """An instruction's kernels, what it compiles to alone and in a round of its chain, and which of the
    sequences without a loop hold it as often as they should, with their SASS from one clock read to the
    other.

    stored: the registers that a thread of the chain writes at its end. changed: what the compiler made of the
    sequences that do not hold it.
    """

    operation: Operation
    plan: Plan
    cubin: bytes
    alone: dict[str, int]
    round: Round
    straight: dict[str, list[str]]
    stored: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """The register that one chain runs through, or ""."""
        return chains.STATE if chains.STATE in self.stored else ""


def build(operation: Operation, target: str) -> Built:
    """Compiles an instruction, chooses its link and checks every kernel.

    Raises:
        SassError: no link holds it: what the compiler made of the first. CompileError: ptxas refuses it.
    """
    codes = _compiled(_trial(operation), target)[1]
    once = _alone(operation, codes)
    link, *others = _links(operation, codes, once)
    plan = _plan(operation, link, others, sum(once.values()))
    cubin, codes = _compiled(_kernels(operation, plan), target)
    rounds = {ilp: _held(operation, codes, once, plan, ilp) for ilp in plan.ilps}
    first = rounds[1]
    if isinstance(first, SassError):
        raise first
    other = _held(operation, codes, once, plan, 1, plan.other) if plan.other else first
    plan = replace(
        plan,
        ilps=tuple(ilp for ilp, found in rounds.items() if isinstance(found, Round)),
        other=plan.other if isinstance(other, Round) else "",
    )
    judged = {name: _changed(operation, plan, name, codes[name], once) for name in plan.straight}
    changed = {name: why for name, why in judged.items() if why}
    straight = {name: checking.between_clocks(codes[name]) for name in judged if name not in changed}
    stored = tuple(chains.chain(operation, plan.link, plan.rounds[1], 1, "i1").stores)
    return Built(operation, plan, cubin, once, first, straight, stored, changed)


def _held(
    operation: Operation, codes: dict[str, Code], once: dict[str, int], plan: Plan, ilp: int, link: str = ""
) -> Round | SassError:
    """A round of the kernels of one ILP, or why they do not hold the instruction: two chains that are packed
    into one, for example."""
    names = tuple(f"{link or 'i'}{ilp}_{n}" for n in plan.rounds)
    rounds = (plan.rounds[0] * ilp, plan.rounds[1] * ilp)
    try:
        return _checked(operation, codes, once, link or plan.link, (names[0], names[1]), rounds)
    except SassError as error:
        return error


def width(operation: Operation) -> int:
    """Width of the operand that the chain runs through."""
    return operation.sources[operation.through] if operation.sources else operation.result


def _compiled(kernels: list[chains.Kernel], target: str) -> tuple[bytes, dict[str, Code]]:
    cubin = toolchain.assemble(chains.source(kernels, target), target)
    return cubin, loops.kernels(toolchain.disassemble(cubin))


def _trial(operation: Operation) -> list[chains.Kernel]:
    links = [link for link in chains.LINKS if chains.usable(operation, link)]
    return [
        chains.single(operation),
        chains.nothing(operation),
        *(chains.chain(operation, link, n, 1, f"{link}_{n}") for link in links for n in TRIAL),
    ]


def _alone(operation: Operation, codes: dict[str, Code]) -> dict[str, int]:
    once = checking.alone(codes, operation.result == PREDICATE)
    if PREDICATE in operation.sources:  # made before the chain
        once.pop("ISETP", None)
    return once


def _links(operation: Operation, codes: dict[str, Code], once: dict[str, int]) -> list[str]:
    """The first link that holds the instruction, and where that is one of BETWEEN, the others of them."""
    found: list[str] = []
    first: SassError | None = None
    for link in (link for link in chains.LINKS if chains.usable(operation, link)):
        if found and not (found[0] in chains.BETWEEN and link in chains.BETWEEN):
            continue
        try:
            _checked(operation, codes, once, link, (f"{link}_{TRIAL[0]}", f"{link}_{TRIAL[1]}"), TRIAL)
            found.append(link)
        except SassError as error:
            first = first or error
    if not found:
        raise first or SassError("it cannot be chained")
    return found


def _checked(
    operation: Operation,
    codes: dict[str, Code],
    once: dict[str, int],
    link: str,
    names: tuple[str, str],
    rounds: tuple[int, int],
) -> Round:
    found = checking.per_round(codes[names[0]], codes[names[1]], rounds)
    wide = width(operation)
    fitted = operation.result != wide or (link in chains.BETWEEN and wide == 16)
    return checking.check(found, once, chains.adds(operation, link), fitted, 16 in (operation.result, wide))


def _plan(operation: Operation, link: str, others: list[str], size: int) -> Plan:
    # By the most instructions of one execution: rounds of the two kernels, and ILP.
    ladder = ((6, (16, 32), (1, 2, 3, 4, 5, 6)), (20, (8, 16), (1, 2, 3, 4)), (10_000, (2, 4), (1, 2)))
    rounds, ilps = next((rounds, ilps) for most, rounds, ilps in ladder if size <= most)
    straight = {"independent_3": ("direct", 1, 3, 64)}
    if link in ("direct", "crossed"):
        straight["dependent_3"] = (link, 3, 1, 64)
    if operation.name == TABLE_ONE:
        straight |= {f"independent_{n}": ("direct", 1, n, 64) for n in COUNTS}
        straight |= {f"clock32_{n}": ("direct", 1, n, 32) for n in COUNTS}
        straight |= {f"dependent_{n}": (link, n, 1, 64) for n in COUNTS}
    return Plan(link, rounds, ilps, others[0] if others else "", straight)


def _kernels(operation: Operation, plan: Plan) -> list[chains.Kernel]:
    empty = [chains.straight(operation, "direct", 0, 0, f"clock{bits}", bits) for bits in (64, 32)]
    other = [chains.chain(operation, plan.other or "direct", n, 1, f"{plan.other}1_{n}") for n in plan.rounds]
    return [
        *empty,
        *(other if plan.other else []),
        *(
            chains.chain(operation, plan.link, n, ilp, f"i{ilp}_{n}")
            for ilp in plan.ilps
            for n in plan.rounds
        ),
        *(
            chains.straight(operation, link, rounds, ilp, name, clock)
            for name, (link, rounds, ilp, clock) in plan.straight.items()
        ),
    ]


def _changed(operation: Operation, plan: Plan, name: str, code: Code, once: dict[str, int]) -> str:
    """What the compiler made of a sequence without a loop; "" where it holds the instruction, and nothing
    else but moves and what fits operands."""
    link, rounds, ilp, _ = plan.straight[name]
    try:
        found = checking.kinds(checking.timed(code))
    except HwError as error:
        return f"changed by the compiler: {error}"
    allowed = checking.FITTING | checking.NARROW | {MOVES, *chains.adds(operation, link)}
    wanted = {kind: n * rounds * ilp for kind, n in once.items() if kind != MOVES}
    if all(found[kind] == n for kind, n in wanted.items()) and set(found) <= set(wanted) | allowed:
        return ""
    texts = (checking.in_words(counts) for counts in (found, wanted))
    return f"changed by the compiler: {next(texts)} between the clock reads, expected {next(texts)}"
