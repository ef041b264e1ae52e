"""PTX of a chain of one instruction: each waits for the result of the one before.

ptxas folds plain chains: `x + b + c` becomes one IADD3, `min(min(x, b), b)` one min. So an instruction has
several links, and the first whose SASS holds it in every round is timed:

- `direct`: the result is the next operand; the other operands alternate between two registers;
- `crossed`: x = op(x, y), then y = op(y, x): every result is read twice, so that nothing can be folded away;
- `both`: a mad makes the other operands from the result, so that their preparation cannot leave the loop;
- `prmt`, `mad`, `lop3`, `add`: one such instruction between two rounds, with operands that ptxas does not
  know; `halves`: a prmt in each half of 64 bits. Its latency is subtracted later; in throughput it runs in
  parallel.

An instruction that waits for an instruction of another pipeline waits one cycle longer, so both prmt (the
ALU's) and mad (the FMA's) are timed between, and the lower latency counts.

Where possible, a chain of floats stays in the range of its format: the next factor undoes the one before, and
all quotients have one dividend.

A result that is narrower than the next operand becomes its low bits. Of a wider result the low bits are
taken. A predicate chooses between two registers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from golden.files.templates import template_of
from hw_capture.timing.scalar.instructions import PREDICATE, Operation

_LOOP = Path(__file__).resolve().parent / "templates" / "loop.ptx"
LINKS = ("direct", "crossed", "prmt", "mad", "lop3", "add", "both", "halves")
BETWEEN = ("prmt", "mad")
"""Links with an instruction between; the two run on different pipelines."""
_BETWEEN = {
    "prmt": "prmt.b32 {x}, {x}, {k}, {m};",
    "mad": "mad.lo.u32 {x}, {x}, {k}, {m};",
    "lop3": "lop3.b32 {x}, {x}, {k}, {m}, 0x96;",
    "add": "add.u32 {x}, {x}, {k};",
    "halves": "prmt.b32 {x}, {x}, {k}, {m};",
}
STATE = "x0"
"""The register that the first chain runs through."""
THREADS = 1024  # of the largest block
INVERSES = 8 * THREADS * 64
"""Where the reciprocals of the operands begin, in bytes: behind the 64 registers that a kernel can load, 8
bytes for each of THREADS."""
_VERSIONS = {  # that of the newest instruction which the target has: of 8.9, conversions to e4m3
    "75": "8.0",
    "80": "8.0",
    "86": "8.0",
    "87": "8.0",
    "89": "8.1",
    "90": "8.0",
    "100": "8.6",
    "120": "8.7",
}


@dataclass
class Kernel:
    """What `loop.ptx` writes: registers by name and width, which of them are loaded (from which offset) and
    stored, what is prepared before (by register), the lines of one turn, whether they are timed, once
    instead of in a loop (straight), and by which clock (64 or 32 bits)."""

    name: str
    title: str
    timed: bool = True
    straight: bool = False
    clock: int = 64
    registers: dict[str, int] = field(default_factory=dict)
    loads: dict[str, int] = field(default_factory=dict)
    stores: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    prepare: dict[str, str] = field(default_factory=dict)

    def loaded(self, register: str, width: int, like: str = "", inverse: bool = False) -> str:
        """Declares a register with a value that the compiler does not know; returns its name.

        like: another such register, whose value it has, too, or with `inverse` one divided by it.
        """
        if register not in self.registers:
            place = self.loads[like] if like else 8 * THREADS * len(self.loads)
            self.loads[register] = place + inverse * INVERSES
        return self.declared(register, width)

    def declared(self, register: str, width: int) -> str:
        """Declares a register; returns its name."""
        self.registers.setdefault(register, width)
        return register

    def stored(self, register: str) -> None:
        """Has a register written at the end."""
        if register not in self.stores:
            self.stores.append(register)


def adds(operation: Operation, link: str) -> dict[str, int]:
    """What the link of a chain adds to each round, by kinds of SASS."""
    if link == "halves":
        return {"PRMT": 2}
    kinds = {"prmt": "PRMT", "mad": "IMAD", "lop3": "LOP3", "add": "IADD3"}
    if link == "both":
        return {"IMAD": len(operation.sources) - 1}
    return {kinds[link]: 1} if link in kinds else {}


def usable(operation: Operation, link: str) -> bool:
    """Whether an instruction can be chained in this way."""
    if not operation.result:
        return link == "direct"
    if not operation.sources:
        return link == "direct"
    if link == "both":
        return operation.result == 32 and len(operation.sources) > 1 and set(operation.sources) == {32}
    if link == "halves":
        return operation.sources[operation.through] == 64
    pair = operation.sources[:2]
    same = operation.result == operation.sources[0] and len(pair) == 2 and pair[0] == pair[1]
    return link != "crossed" or same


def chain(operation: Operation, link: str, rounds: int, ilp: int, name: str) -> Kernel:
    """The kernel of `rounds` rounds of `ilp` independent chains."""
    kernel = Kernel(name, f"{operation.name}, link {link}: {ilp} chains, {rounds} rounds to one turn")
    for turn in range(rounds):
        for i in range(ilp):
            _round(kernel, operation, link, turn, i)
    return kernel


def straight(operation: Operation, link: str, rounds: int, ilp: int, name: str, clock: int = 64) -> Kernel:
    """The same without a loop around it, as Abdelkhalik et al. time instructions."""
    kernel = chain(operation, link, rounds, ilp, name)
    kernel.straight, kernel.clock = True, clock
    return kernel


def single(operation: Operation) -> Kernel:
    """The kernel that executes an instruction once."""
    kernel = Kernel("single", operation.name, timed=False)
    sources, target = _sources(kernel, operation, 0, 0), _result(kernel, operation, 0)
    if operation.result == PREDICATE:
        kernel.declared("x0", 32)
        choice = _chosen(kernel, target, "x0", 32, 0)
        _apply(kernel, operation, sources, target)
        kernel.steps.append(choice)
        kernel.stored("x0")
    else:
        _apply(kernel, operation, sources, target)
        if target:
            kernel.stored(target)
    return kernel


def nothing(operation: Operation) -> Kernel:
    """The same kernel without the instruction: what is left of `single`."""
    kernel = single(operation)
    kernel.name, kernel.title, kernel.steps = "nothing", f"what stands around {operation.name}", []
    if kernel.stores:
        first = next((name for name in kernel.loads if kernel.registers[name] == _stored(kernel)), "")
        kernel.stores = [first or kernel.loaded("same", _stored(kernel))]
    return kernel


def _stored(kernel: Kernel) -> int:
    """Width of what a kernel stores."""
    return kernel.registers[kernel.stores[0]]


def _round(kernel: Kernel, operation: Operation, link: str, turn: int, i: int) -> None:
    # Without a result or a source there is no chain: the instruction stands alone.
    if not operation.result or not operation.sources:
        target = kernel.declared(f"t{i}", operation.result) if operation.result else ""
        _apply(kernel, operation, [], target)
        if target:
            kernel.stored(target)
        return
    width = operation.sources[operation.through]
    # The chain: the result of a round is the source of the next one.
    state = kernel.loaded(STATE if i == 0 else f"x{i}", width)
    sources = _sources(kernel, operation, i, turn)
    sources[operation.through] = state
    kernel.stored(state)
    # Two states that change places: every result is read twice, so that nothing can be folded away.
    if link == "crossed":
        other = kernel.loaded(f"y{i}", width)
        kernel.stored(other)
        pair = (state, other) if turn % 2 == 0 else (other, state)
        _apply(kernel, operation, [*pair, *sources[2:]], pair[0])
        return
    if link == "both":
        _made(kernel, sources, operation.through, i, turn)
    # A result of another width is fitted to the source before the next round.
    same = operation.result == width
    target = state if same else _result(kernel, operation, i)
    _apply(kernel, operation, sources, target)
    if not same:
        kernel.steps.append(_fitted(kernel, operation.result, width, target, state, link == "halves", turn))
    if link in _BETWEEN:
        kernel.steps += _between(kernel, link, width, state, i, turn)


def _made(kernel: Kernel, sources: list[str], through: int, i: int, turn: int) -> None:
    """Makes the other operands of the chain's own."""
    for place in range(len(sources)):
        if place != through:
            new = kernel.declared(f"made{place}_{i}", 32)
            factor, more = (kernel.loaded(f"{name}{place}_{turn % 2}", 32) for name in ("factor", "more"))
            kernel.steps.append(f"mad.lo.u32 {new}, {sources[through]}, {factor}, {more};")
            sources[place] = new


def _sources(kernel: Kernel, operation: Operation, i: int, turn: int) -> list[str]:
    """Registers for all operands: each of two, by turns, shared by all chains."""
    found = []
    for place, width in enumerate(operation.sources):
        name = f"s{place}_{turn % 2}"
        if place == operation.through and kernel.timed:
            found.append("")
        elif width == PREDICATE:
            word = kernel.loaded(f"w{place}_{turn % 2}", 32)
            predicate = f"%ps{turn % 2}"
            kernel.prepare.setdefault(predicate, f"setp.ne.u32 {predicate}, {word}, 0;")
            found.append(predicate)
        else:
            first = f"s{place}_0" if turn % 2 else ""
            if first and place == operation.factor:
                kernel.loaded(name, width, first, inverse=True)
            elif first and place == operation.dividend:
                kernel.loaded(name, width, first)
            found.append(kernel.loaded(name, width))
    return found


def _result(kernel: Kernel, operation: Operation, i: int) -> str:
    if not operation.result:
        return ""
    if operation.result == PREDICATE:
        return f"%pt{i}"
    return kernel.declared(f"t{i}", operation.result)


def _apply(kernel: Kernel, operation: Operation, sources: list[str], target: str) -> None:
    names = dict(zip("abce", sources, strict=False))
    spare = kernel.declared("spare", 32) if "{t}" in operation.text else ""
    kernel.steps.append(operation.text.format(d=target, t=spare, **names))


def _fitted(kernel: Kernel, given: int, wanted: int, target: str, state: str, twice: bool, turn: int) -> str:
    """PTX that makes the next operand of a result of another width."""
    if given == PREDICATE:
        return _chosen(kernel, target, state, wanted, turn)
    if given > wanted:
        parts = given // wanted
        rest = [kernel.declared(f"rest{n}_{wanted}", wanted) for n in range(1, parts)]
        return f"mov.b{given} {{{', '.join([state, *rest])}}}, {target};"
    parts = wanted // given
    rest = [target if twice else kernel.loaded(f"fill{n}_{given}", given) for n in range(1, parts)]
    return f"mov.b{wanted} {state}, {{{', '.join([target, *rest])}}};"


def _chosen(kernel: Kernel, predicate: str, state: str, width: int, turn: int) -> str:
    first, second = (kernel.loaded(f"choice{n}_{turn % 2}_{width}", width) for n in range(2))
    return f"selp.b{width} {state}, {first}, {second}, {predicate};"


def _between(kernel: Kernel, link: str, width: int, state: str, i: int, turn: int) -> list[str]:
    """The instruction between two of the chain, on the low 32 bits."""
    names = {"k": kernel.loaded(f"k{turn % 2}", 32), "m": kernel.loaded(f"m{turn % 2}", 32)}
    if width == 32:
        return [_BETWEEN[link].format(x=state, **names)]
    low = kernel.declared(f"low{i}", 32)
    middle = _BETWEEN[link].format(x=low, **names)
    if link == "halves":
        high = kernel.declared(f"high{i}", 32)
        names2 = {"k": kernel.loaded(f"k{2 + turn % 2}", 32), "m": kernel.loaded(f"m{2 + turn % 2}", 32)}
        second = _BETWEEN[link].format(x=high, **names2)
        return [
            f"mov.b64 {{{low}, {high}}}, {state};",
            middle,
            second,
            f"mov.b64 {state}, {{{low}, {high}}};",
        ]
    if width == 64:
        high = kernel.declared(f"high{i}", 32)
        return [f"mov.b64 {{{low}, {high}}}, {state};", middle, f"mov.b64 {state}, {{{low}, {high}}};"]
    fill, rest = kernel.loaded("fill1_16", 16), kernel.declared("rest1_16", 16)
    return [f"mov.b32 {low}, {{{state}, {fill}}};", middle, f"mov.b32 {{{state}, {rest}}}, {low};"]


def source(kernels: list[Kernel], target: str) -> str:
    """One compilation unit in PTX for a target such as "sm_90a"."""
    number = "".join(c for c in target if c.isdigit())
    return template_of(_LOOP, trimmed=False).render(
        kernels=kernels, target=target, version=_VERSIONS.get(number, "9.0")
    )
