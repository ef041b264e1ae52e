"""Plans in YAML: those of an architecture with names and evidence (spec/plans), and files of one's own;
and plans of kernels without a matrix unit (`fma`, `gemv`)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.catalog.families import fill
from golden.catalog.lookup import instruction, resolve
from golden.catalog.resolver import resolver
from golden.catalog.unit_files import build_instruction
from golden.errors import (
    MmagoldError,
    OperandError,
    SpecError,
    UnknownArithmeticError,
    UnknownNameError,
    nearest,
)
from golden.files.escape import one_line
from golden.kernels.options import KEYS
from golden.kernels.plan import OWN, Fail, Plan, build
from golden.model.instruction import CUSTOM, Evidence, Instruction
from golden.paths import spec_folder
from golden.values import Anything, Choice, Key, Line, Many, Mapping, Table, Text
from golden.yamlfile import Section

KINDS = ("captured", "published", "derived")
PLAN = Mapping(
    (
        Key("plan", Line(), "its name"),
        Key(
            "instruction",
            Text(),
            "architecture:instruction, or the .yaml of a unit, from the folder of this file",
        ),
        Key("title", Text(), "one line", ""),
        Key("source", Text(), "what the plan was derived from", ""),
        *KEYS.values(),
    )
)
"""The file of a plan."""
EVIDENCE = Mapping(
    (
        Key("kind", Choice(KINDS), "how the plan is known"),
        Key("source", Text(), "where from; by default the file's source", None),
    )
)
_TEXT = Anything("text with variables", (str, int, float, bool, list, dict))
NAMED_PLANS = Mapping(
    (
        Key("plan", Text(), "name of the plan, with variables in braces"),
        Key("instruction", Text(), "the instruction, with variables in braces"),
        Key("title", Text(), "one line"),
        Key("seen", Many(Text(), alone=True), "kernels that were seen to do so"),
        Key("evidence", EVIDENCE, "how the plan is known"),
        Key(
            "variants",
            Many(Table(Anything("a word or a number", (str, int)))),
            "variables and their values",
            None,
        ),
        *(replace(key, value=_TEXT, default=None) for key in KEYS.values()),
    )
)
"""One entry of `plans:` in a file of spec/plans: several plans of the same options."""


def plans(architecture: str) -> list[Plan]:
    """The named plans of an architecture: orders of sums that were observed in kernels of libraries.

    Raises:
        UnknownNameError: no such architecture. SpecError: its file is wrong.
    """
    return list(_named(resolver().called(architecture)).values())


def named(architecture: str, name: str) -> Plan | None:
    """The plan of that name, None where there is none. Raises as `plans`."""
    return _named(resolver().called(architecture)).get(name)


def plan(architecture: str | Instruction, instruction: str | None = None, **options: Any) -> Plan:
    """Makes an accumulation plan.

    Args:
        architecture: such as "hopper"; or an Instruction, such as the result of `golden.load_instruction`,
            without `instruction`.
        instruction: a PTX, SASS or AMD name, the .yaml file of a unit, or the name of one of
            `golden.plans(architecture)`. The options given here replace the options of a named plan.
        options: the keys of golden.kernels.options.Options.

    Raises:
        UnknownNameError: no such architecture, instruction or plan.
        UnknownArithmeticError: the architecture has the instruction, but what it computes is not public.
        OperandError: an option is unknown or wrong, or does not go with the others or with the instruction.
    """
    if isinstance(architecture, Instruction):
        if instruction is not None:
            raise OperandError(
                "argument 'instruction' was given together with an Instruction, expected one of them"
            )
        return build(architecture, options)
    if instruction is None:
        raise OperandError(
            f"argument 'instruction' is missing: expected an instruction or a plan of {architecture}"
        )
    found = named(architecture, instruction)
    if found is not None:
        return found.but(**options) if options else found
    try:
        unit = resolve(instruction, architecture)
    except UnknownArithmeticError:
        raise
    except UnknownNameError as error:
        near = nearest(instruction, (one.name for one in plans(architecture)))
        raise UnknownNameError(f"{error}{near.replace('nearest', 'nearest plans', 1)}") from None
    return build(unit, options)


def load_plan(path: str | Path) -> Plan:
    """Reads a plan from a YAML file. Its keys are `plan` (the name), `instruction` (architecture:instruction,
    or the .yaml file of a unit, relative to the folder of the plan), `title`, `source`, and the keys of
    golden.kernels.options.Options.

    Raises:
        SpecError: with file, line, key and what was expected.
    """
    document = yamlfile.read(path)
    given = PLAN.read(document)
    wanted, source = given["instruction"], given["source"]
    if wanted.endswith((".yaml", ".yml")):
        wanted = str(Path(path).parent / wanted)
    try:
        unit = resolve(wanted)
    except SpecError:
        raise
    except MmagoldError as error:
        raise document.error(str(error), "instruction") from None
    evidence = Evidence("derived", source) if source else OWN
    options = {name: given[name] for name in KEYS if name in document}
    return build(
        unit,
        options,
        _fail(document),
        name=given["plan"],
        title=one_line(given["title"]),
        evidence=evidence,
    )


def any_plan(text: str) -> Plan:
    """The plan of a word: the .yaml file of a plan or of a unit (then one chain of it), or
    architecture:instruction, or architecture:plan.

    Raises:
        SpecError, UnknownNameError: of the file or the names. OperandError: the word is none of these.
    """
    if text.endswith((".yaml", ".yml")):
        document = yamlfile.read(text)
        return build(resolve(text), {}) if "unit" in document else load_plan(text)
    architecture, colon, name = text.partition(":")
    chip = None if colon else resolver().meant(text)
    if chip is not None:
        raise OperandError(
            f"'{text}' is a chip with several units, expected one of them: {text}:PLAN "
            f"({', '.join([one.name for one in plans(chip)][:3]) or 'none known'}), or {text}:INSTRUCTION "
            f"(mmagold list {text})"
        )
    if not colon:
        raise OperandError(
            f"plan '{text}' has no architecture, expected architecture:plan, architecture:instruction or a "
            f".yaml file"
        )
    return plan(architecture, name)


def plan_text(plan: Plan) -> str:
    """The plan as such a file.

    Raises:
        SpecError: its instruction is of a file of its own, whose name the plan does not know.
    """
    unit = plan.instruction
    if unit.architecture == CUSTOM:
        raise SpecError(f"the plan's unit {unit.name} is of a file: write its path as 'instruction' yourself")
    lines = [f"plan: {_quoted(plan.name or 'own')}"]
    lines += [f"title: {_quoted(plan.title)}"] if plan.title else []
    lines += [f"source: {_quoted(plan.evidence.source)}"] if plan.evidence != OWN else []
    lines += [f"instruction: {_quoted(plan.full_instruction)}"]
    return "\n".join(lines + [f"{key}: {_value(value)}" for key, value in plan.given.items()]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


@lru_cache(maxsize=32)
def _named(architecture: str) -> dict[str, Plan]:
    path = spec_folder() / "plans" / f"{architecture}.yaml"
    return read_plans(path, architecture) if path.exists() else {}


def read_plans(path: str | Path, architecture: str) -> dict[str, Plan]:
    """The plans of a file that is written like the files of spec/plans, by name.

    Raises:
        SpecError: with file, line, key and what was expected.
    """
    document = yamlfile.read(path)
    if document.take("architecture", str) != architecture:
        raise document.error(
            f"the file is of {document['architecture']}, expected {architecture}", "architecture"
        )
    source = document.take("source", str)
    found: dict[str, Plan] = {}
    for entry in document.take("plans", list):
        if not isinstance(entry, Section):
            raise document.error("each of 'plans' is a mapping with the key 'plan'", "plans")
        for one in _variants(entry, architecture, source):
            if one.name in found:
                raise entry.error(f"plan '{one.name}' stands twice", "plan")
            found[one.name] = one
    document.done()
    return found


def _variants(entry: Section, architecture: str, source: str) -> list[Plan]:
    """The plans of one entry: "{name}" in `plan`, `instruction` and the options stands for a variable."""
    given = NAMED_PLANS.read(entry)
    evidence = Evidence(given["evidence"]["kind"], given["evidence"]["source"] or source)
    options = {key: given[key] for key in KEYS if given[key] is not None}
    made = []
    for variables in given["variants"] or [{}]:
        try:
            name, of = (fill(given[key], variables) for key in ("plan", "instruction"))
            filled = {key: fill(value, variables) for key, value in options.items()}
            unit = instruction(architecture, of)
        except KeyError as error:  # of str.format, or an unknown instruction
            what = str(error) if isinstance(error, MmagoldError) else f"{error} is no variable of 'variants'"
            raise entry.error(what, "instruction") from None
        more = {"title": one_line(given["title"]), "seen": given["seen"], "evidence": evidence}
        made.append(build(unit, filled, _fail(entry), name=name, **more))
    return made


def _fail(document: Section) -> Fail:
    return lambda message, key: document.error(message, key)


_H200 = "PyTorch 2.11, CUDA 13.0, an NVIDIA H200: docs/reports/batch-sizes.md"


@lru_cache(maxsize=8)
def fma(operands: str, sums: str) -> Instruction:
    """One fused multiply-add as a unit: a and b of one format, c and d of the other."""
    text = f"unit: fma.{sums}.{operands}\nshape: {{k: 1}}\n"
    text += f"formats: {{a: {operands}, b: {operands}, c: {sums}, d: {sums}}}\nsteps:\n"
    step = "  - fma: {start: c, to: d, rounding: nearest_even}\n"
    return build_instruction(yamlfile.parse(text + step, "fma"))


def gemv(operands: str, out: str) -> Plan:
    """cuBLAS's gemv2T_kernel_val<..., 128, 16, 2, 4>: of each 256 elements of K, 16 threads take every 16th
    in a chain from zero, which is added to the thread's sum; the 16 sums are added in turn."""
    # Of the matrix-vector kernel: threads that share each stretch of K, and products in each of their chains.
    chains = 16
    options = {"tile_k": chains, "slices": chains, "promote": chains, "out": out}
    return build(fma(operands, "f32"), options, evidence=Evidence("captured", _H200))
