"""Instructions by name: an architecture and a PTX, SASS or AMD name make an `Instruction`."""

from __future__ import annotations

from collections.abc import Iterable

from golden.catalog import architectures, machine_code, words
from golden.catalog.families import Variables, fill, shape_of
from golden.catalog.unit_files import load_instruction
from golden.errors import UnknownArithmeticError, UnknownNameError, nearest
from golden.model.instruction import Evidence, Instruction
from golden.number.formats import get_format
from golden.program.compiling import compile_program
from golden.program.program import OperandFormats, Program
from golden.program.signature import SCALES

_cache: dict[tuple[str, str], Instruction] = {}
_programs: dict[tuple[object, ...], Program] = {}


def _build(architecture: str, name: str, entry: architectures.Entry, variables: Variables) -> Instruction:
    key = (architecture, name)
    if key not in _cache:
        _cache[key] = _build_uncached(architecture, name, entry, variables)
    return _cache[key]


def _build_uncached(
    architecture: str, name: str, entry: architectures.Entry, variables: Variables
) -> Instruction:
    family = entry.family
    m, n, k = shape_of(variables, entry.section)
    formats = {operand: get_format(fill(text, variables)) for operand, text in family.formats.items()}
    scales = {name: fmt for name, fmt in formats.items() if name in SCALES}
    stored_k, scale_block = k // 2 if family.sparse else k, fill(family.scale_block, variables)
    operands = OperandFormats(
        formats["a"],
        formats["b"],
        formats["c"],
        formats["d"],
        stored_k,
        scales=scales,
        scale_block=None if scale_block is None else scale_block * stored_k // k,
    )
    return Instruction(
        name,
        m,
        n,
        k,
        formats,
        family.pattern,
        family.ordered(variables),
        scale_block,
        architecture=architecture,
        program=_program(entry, variables, operands),
        evidence=_evidence(architecture, name, entry),
        sass=machine_code.names(entry, variables),
        emulated=entry.emulated,
        layout=entry.layout,
        blocks=int(fill(family.blocks, variables)),
        family=family.name,
        source=family.source,
        variables=variables,
        traits=family.traits(variables),
    )


def _program(entry: architectures.Entry, variables: dict[str, str], operands: OperandFormats) -> Program:
    """The compiled program; the thousands of instructions that differ in M and N alone share one."""
    items = fill(entry.program, variables)
    formats = (operands.a, operands.b, operands.c, operands.d, *operands.scales.items())
    key = entry.section.file, repr(items), operands.k, operands.scale_block, formats
    if key not in _programs:
        _programs[key] = compile_program(items, entry.section, operands)
    return _programs[key]


def _evidence(architecture: str, name: str, entry: architectures.Entry) -> Evidence:
    """Captured where vectors of exactly this instruction are committed, else what the architecture's file
    says."""
    captured = architectures.captures(architecture)
    if name not in captured.vectors:
        return Evidence(**entry.evidence)
    return Evidence(
        "captured",
        f"recorded on an {captured.device}; rule: {entry.evidence['source']}",
        captured.vectors[name],
        captured.device,
    )


def instruction(architecture: str, name: str | None = None) -> Instruction:
    """Returns the instruction of that PTX, SASS or AMD name on `architecture`: its own name (hopper), that of
    a card (h100, RTX 5090) or of a target (sm_90). One argument is `architecture:instruction`.

    Types of operands (nvfp4) are a name where one instruction has them.

    Raises:
        UnknownNameError: no such architecture or instruction (the message names near ones), or a name that
            stands for several instructions.
        UnknownArithmeticError: the architecture has it, but what it computes is not public.
    """
    if name is None:
        return resolve(architecture)
    cached = _cache.get((architecture, name))
    if cached is not None:
        return cached
    architecture = architectures.called(architecture)
    found = _find(architecture, name)
    if found is None:
        raise UnknownNameError(f"unknown instruction '{name}' on {architecture}{_hint(architecture, name)}")
    return found


def _find(architecture: str, name: str) -> Instruction | None:
    """As `instruction`; None where the architecture has no such name."""
    names = architectures.get_architecture(architecture).names()
    listed = architectures.get_architecture(architecture).spelled(name)
    if listed is not None:
        return _build(architecture, listed, *names[listed])
    _refuse_unknown(architecture, name)
    found = machine_code.named(architecture, name)
    if not found and words.are_types(name):
        found = list(words.matches(architecture, name))
        if len(found) == 1 and not words.has_types(instruction(architecture, found[0]), name):
            found = []  # a part of its name, as f16 in bf16
    if len(found) == 1:
        return instruction(architecture, found[0])
    if found:
        some = _some(found, 6)
        more = some.count(", ") + 1 < len(found)
        where = f"; mmagold list {architecture} {name} lists them" if more else ""
        raise UnknownNameError(f"'{name}' names {len(found)} instructions of {architecture}: {some}{where}")
    return None


def _refuse_unknown(architecture: str, name: str) -> None:
    """Raises UnknownArithmeticError for a name whose arithmetic is not public, also as an assembler has it:
    without the types or the wave that end the names here."""
    described = architectures.get_architecture(architecture)
    unknown, stem = described.unknown_names(), name.lower()
    longer = (f"{stem}.", f"{stem}_w")
    found = [full for full in unknown if full == stem or full.startswith(longer)]
    if found and not any(full.startswith(longer) for full in described.names()):
        several = f" (here {_some(found)})" if found != [stem] else ""
        raise UnknownArithmeticError(
            f"{architecture} has the instruction '{name}'{several}, but its arithmetic is unknown: "
            f"{unknown[found[0]]}; who has the chip finds it with mmagold dissect"
        )


def _hint(architecture: str, name: str) -> str:
    """The end of a message: where an unknown name is known, what has it as a part, or what is near."""
    every = architectures.architectures()
    prefix, _, rest = name.partition(":")
    if rest and architectures.meant(prefix) not in (None, architecture):
        return f"; '{prefix}' is another architecture"
    elsewhere = [other for other in every if architectures.get_architecture(other).spelled(name)]
    if elsewhere:
        return f" (it exists on {', '.join(elsewhere)})"
    return _listed(name, [architecture]) or _listed(name, every) or nearest(name, known_names(architecture))


def _some(names: Iterable[str], count: int = 3) -> str:
    """The first few, one of each sweep over N."""
    some = list({words.but_for_n(name): name for name in reversed(list(names))}.values())[::-1]
    return ", ".join(some[:count]) + (", ..." if len(some) > count else "")


def _near(name: str) -> str:
    """The end of a message: the instructions that `mmagold list NAME` shows, else the names that are near."""
    every = architectures.architectures()
    return _listed(name, every) or nearest(name, (full for one in every for full in known_names(one)))


def search_hint(text: str, architecture: str | None = None) -> str:
    """The end of the message of a search that found nothing: a word that no instruction has, with what is
    near it; or where the instructions are that have all the words, if not where they were looked for."""
    chips = {word: architectures.meant(word) for word in words.split(text)}
    rest = [word for word, chip in chips.items() if chip is None and architectures.meant(text) is None]
    for word in rest:
        if not _having(word):
            return f"; '{word}' is in no name or type{nearest(word, words.known()) or _near(word)}"
    asked = {chip for chip in (*chips.values(), architecture and architectures.called(architecture)) if chip}
    where = _having(" ".join(rest)) if rest and asked else []
    if not where or asked & set(where):
        return ""
    return f"; '{' '.join(rest)}' is on {', '.join(where)}"


def _having(text: str) -> list[str]:
    """The architectures with an instruction that every word fits."""
    return [one for one in architectures.architectures() if any(words.matches(one, text))]


def _listed(name: str, among: list[str]) -> str:
    """The instructions that `mmagold list NAME` shows; empty where it shows none."""
    chip = architectures.meant(name)
    if chip is not None:
        return f"; '{name}' is {chip}, an architecture: mmagold list {name} lists its instructions"
    found = [(one, list(words.matches(one, name))) for one in among if name.strip()]
    count = sum(len(names) for _, names in found)
    if count == 0:
        return ""
    several = len(among) > 1
    some = [
        f"{one}:{full}" if several else full
        for one, names in found
        for full in names[: 1 if several else None]
    ]
    return f"; '{name}' is in the names or types of {count}, such as {_some(some)}"


def known_names(architecture: str) -> list[str]:
    """The full names of an architecture's instructions, then the SASS names that can stand for one."""
    found = architectures.get_architecture(architecture)
    native = (entry for entry in found.entries if len(entry.sass) == 1 and not entry.emulated)
    return [*found.names(), *(mnemonic for entry in native for mnemonic in machine_code.first_names(entry))]


def instructions(architecture: str) -> list[Instruction]:
    """Returns every instruction of an architecture (see `instruction` for its names), in the order of its
    spec."""
    architecture = architectures.called(architecture)
    return [
        _build(architecture, name, *found)
        for name, found in architectures.get_architecture(architecture).names().items()
    ]


def resolve(name: str, arch: str | None = None) -> Instruction:
    """Finds the instruction that a command's or a document's NAME argument means.

    Accepts `architecture:instruction` (see `instruction`), an instruction with `arch`, an instruction that
    only one architecture has, and the path of a custom unit (.yaml or .yml).

    Raises:
        UnknownNameError: no such thing, or several; the message names candidates.
        SpecError: the custom unit's file is wrong.
    """
    if name.endswith((".yaml", ".yml")):
        return load_instruction(name)
    if arch is not None:
        return instruction(arch, name.removeprefix(f"{arch}:"))
    prefix, colon, rest = name.partition(":")
    if colon and not rest.startswith(":"):
        return instruction(prefix, rest)
    if words.are_types(name):
        raise UnknownNameError(
            f"'{name}' is no instruction (expected architecture:instruction or a .yaml file){_near(name)}"
        )
    found, untold = [], None
    for candidate in architectures.architectures():
        try:
            if (ins := _find(candidate, name)) is not None:
                found.append(ins)
        except UnknownArithmeticError as error:
            untold = error
        except UnknownNameError:
            continue
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(
            f"'{name}' exists on {', '.join(ins.architecture for ins in found)}; say which, as "
            f"{found[0].architecture}:{name}"
        )
    if untold is not None:
        raise untold
    raise UnknownNameError(
        f"unknown instruction '{name}' (expected architecture:instruction or a .yaml file){_near(name)}"
    )
