"""Builds the explorer: the page, its script as one file, the core, the index of every instruction, and a file
of programs for each architecture.

Instructions that differ only in M and N share an entry of the index. Instructions that compute the same share
a unit: thousands of names are some hundred units. `presets` are operands that show something, for the page's
list: rounding as a textbook has it, and the cases of the studies.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from golden import studies
from golden.catalog.architectures import architectures, get_architecture
from golden.catalog.lookup import instructions
from golden.catalog.resolver import resolver
from golden.catalog.type_words import types_of
from golden.errors import DocsError, missing
from golden.explain.program_file import program_file
from golden.files import output
from golden.files.output import put_folder, workplace
from golden.model import registers
from golden.model.engine import SPARSITY
from golden.model.instruction import Instruction
from golden.model.program_text import struct_layouts
from golden.number.formats import get_format
from golden.program.keys import REGISTER, STATUS
from golden.publish.explorer import wasm
from golden.publish.explorer.address import INDEX
from golden.studies import cdna3_rounding, fp8_accumulation, product_overflow, tf32_nan
from golden.studies.study import published

PAGE = Path(__file__).parent / "page"
COLOURS = PAGE.parents[1] / "pictures" / "fragments.css"
MODULES = (
    *("dom", "core", "numbers", "values", "trace", "difference", "library", "link"),
    *("picture", "steps", "errors", "operands", "finder", "main"),
)
"""The script's modules, each after the modules that it imports."""
_IMPORT = re.compile(r'^import (?P<names>\{[^}]*\}) from "\./(?P<module>\w+)\.js";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (?P<name>\w+))", re.M)


def script() -> str:
    """The modules as one classic script, each a function that returns its exports: a browser refuses modules
    and fetch of pages that are opened as files, without a server.

    Raises:
        DocsError: a module imports one that does not stand before it, or in a form that this does not know.
    """
    return '"use strict";\n(() => {\n' + "".join(map(_module, range(len(MODULES)))) + "})();\n"


def _module(number: int) -> str:
    name = MODULES[number]
    text = (PAGE / f"{name}.js").read_text("utf-8")
    late = {found["module"] for found in _IMPORT.finditer(text)} - set(MODULES[:number])
    names = [found["name"] for found in _EXPORT.finditer(text)]
    body = _EXPORT.sub("", _IMPORT.sub(r"const \g<names> = \g<module>_js;", text))
    wrong = re.search(r"^(import|export)\b.*", body, re.M)
    if late or wrong:
        raise DocsError(f"{name}.js: {wrong[0] if wrong else f'imports {min(late)}.js, which comes later'}")
    return f"const {name}_js = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


_NAV = '<nav aria-label="Site"><a href="../index.html">mmagold documentation</a></nav>\n'


def files(in_site: bool = False) -> dict[str, str]:
    """The explorer's files by name; in a site the page leads back to it.

    Raises:
        DocsToolMissing: what compiles the core is not installed.
        DocsError: see `script` and `wasm.compile_core`.
    """
    core = base64.b64encode(wasm.compile_core()).decode()
    index, programs = index_and_programs()
    words = as_json({"core": core, "words": core_words(), "index": index, "presets": presets()})
    return {
        "index.html": (PAGE / "index.html")
        .read_text("utf-8")
        .replace("<!-- nav -->\n", _NAV if in_site else ""),
        "explorer.css": (PAGE / "explorer.css").read_text("utf-8"),
        "colours.css": COLOURS.read_text("utf-8"),
        "explorer.js": script(),
        "data.js": f"globalThis.mmagoldExplorer = {words};\n",
        **{f"programs/{name}.js": _program_script(name, spec) for name, spec in programs.items()},
    }


def _program_script(name: str, programs: object) -> str:
    return f"globalThis.mmagoldExplorer.deliver({as_json(name)}, {as_json(programs)});\n"


def write_into(site: Path) -> None:
    """Writes the explorer into a site; without the compiler a page that says what is missing. Raises
    DocsError as `files`."""
    page = site / INDEX
    if wasm.available():
        _write(page.parent, files(in_site=True))
    else:
        _write(page.parent, {page.name: _absent()})


def _absent() -> str:
    reason = html.escape(str(missing(wasm.COMPILER)))
    text = f"<h1>No explorer</h1><p>This site was built without the explorer: {reason}.</p>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>No explorer</title>{text}</html>\n'


def _write(folder: Path, texts: dict[str, str]) -> list[Path]:
    written = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(path, text)
        written.append(path)
    return written


def build(out: Path) -> list[Path]:
    """Builds the explorer into the folder `out`, which is new, empty or an earlier explorer; returns its
    files.

    Raises:
        DocsError: `out` holds something else; else as `files`. `out` is as it was.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "explorer.js").is_file())):
        raise DocsError(
            f"'{out}' holds something that is no earlier explorer, expected a new or empty folder"
        )
    with workplace(out) as work:
        made = work / "explorer"
        made.mkdir()
        names = [path.relative_to(made) for path in _write(made, files())]
        put_folder(made, out)
    return [out / name for name in names]


_SHAPE = re.compile(r"m\d+n\d+(?=k\d+)")


def core_words() -> dict[str, Any]:
    """What a caller of the core has to know: its structs, and the words behind its numbers."""
    return {
        "structs": struct_layouts(),
        "registers": list(REGISTER.words),
        "moments": list(registers.MOMENTS),
        "not_run": registers.NOT_RUN,
        "status": list(STATUS.words),
        "sparsity": SPARSITY,
    }


def index_and_programs() -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The index, and the document of programs (golden/explain/program_file.py) of each architecture.

    The index has for each architecture its `words` (cards and targets) and its `instructions`: `name`
    (the first), `unit` (its place in the document), and as places in `shared`: `kind` (formats, k, and words
    for the types), `shapes` (the first's, then others of the same name but for M and N), `machine` (SASS
    names), `evidence`. Thousands of instructions share a few of each.
    """
    index, programs = [], {}
    for name in architectures():
        entries, units = _entries(name)
        programs[name] = program_file(units)
        found = get_architecture(name)
        shared: dict[str, int] = {}
        for entry in entries:
            entry["kind"] = _kind(units[entry["unit"]])
            for key in ("kind", "shapes", "machine", "evidence"):
                entry[key] = shared.setdefault(as_json(entry[key]), len(shared))
        index.append(
            {
                "name": name,
                "title": found.title,
                "words": sorted(word for word, chip in resolver().words.items() if chip.name == name),
                "shared": [json.loads(text) for text in shared],
                "instructions": entries,
            }
        )
    return index, programs


def _kind(ins: Instruction) -> dict[str, Any]:
    return {"formats": _names(ins), "k": ins.k, "words": types_of(ins)}


def _names(ins: Instruction) -> dict[str, str]:
    return {operand: fmt.name for operand, fmt in ins.own_formats.items()}


def _entries(architecture: str) -> tuple[list[dict[str, Any]], list[Instruction]]:
    entries: dict[tuple[str, int], dict[str, Any]] = {}
    places: dict[Any, int] = {}
    units: list[Instruction] = []
    for ins in instructions(architecture):
        place = places.setdefault(arithmetic(ins), len(units))
        if place == len(units):
            units.append(ins)
        shape = _SHAPE.search(ins.name)
        key = _SHAPE.sub("", ins.name), place
        entry = entries.setdefault(
            key,
            {
                "name": ins.name,
                "unit": place,
                "machine": ins.sass,
                "evidence": [],
                "shapes": [],
            },
        )
        entry["shapes"] += [shape[0]] if shape else []
        entry["evidence"] = sorted({*entry["evidence"], ins.evidence.kind})
    return list(entries.values()), units


def arithmetic(ins: Instruction) -> Any:
    """All that decides results, and what a dot product takes."""
    operations = tuple(operation.arithmetic for operation in ins.program.operations)
    pattern = ins.pattern and ins.pattern.name
    return operations, tuple(ins.formats.items()), ins.k, pattern, ins.ordered_metadata, ins.scale_block


def as_json(value: Any) -> str:
    """Compact JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def presets() -> list[dict[str, Any]]:
    """The presets; the page offers each for every unit whose formats hold its numbers.

    Each: `name`; `why`, a sentence; `a` and `b`, the first elements as text that the page reads (a number, or
    0x... for a code); `c`; `formats`, operands that need a certain format; `rounded`, whether numbers may be
    rounded to their formats.
    """
    return [*_textbook(), _lost(), *_overflows(), _downward(), *_nans()]


def _preset(name: str, why: str, a: Iterable[Any], b: Iterable[Any], c: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "why": why, "a": [*map(str, a)], "b": [*map(str, b)], "c": str(c)} | more


def _textbook() -> Iterator[dict[str, Any]]:
    """For each format of a result, numbers at its last place."""
    for name in ("f16", "bf16", "f32", "f64"):
        places = get_format(name).fraction_bits
        high, low = (places + 1) // 2, places + 1 - (places + 1) // 2
        half = [f"2^-{high}"], [f"2^-{low}"]
        only = {"formats": {"d": name}}
        yield _preset("Tie, even below", f"1 + 2^-{places + 1} lies halfway; 1 is even.", *half, 1, **only)
        odd = f"{(1 << places) + 1}*2^-{places}"
        why = f"1 + 3*2^-{places + 1} lies halfway between an odd and an even result."
        yield _preset("Tie, even above", why, *half, odd, **only)
        why = "Half a unit in the last place of 1, and a little more in a second product."
        yield _preset("Just above a tie", why, [*half[0], "2^-14"], [*half[1], "2^-14"], 1, **only)
    why = "x - x + y: what is left of a small product when large ones cancel."
    for top, low in ((12, 12), (7, 6), (2, 0)):
        yield _preset(
            f"Cancellation, 2^{2 * top} against 2^{-2 * low}",
            why,
            [f"2^{top}", f"-2^{top}", f"2^{-low}"],
            [f"2^{top}", f"2^{top}", f"2^{-low}"],
            0,
        )
    why = "Small products one after the other onto a large c: each alone is lost, together they are not."
    yield _preset("Swamping", why, ["2^-6"] * 8, ["2^-6"] * 8, "2^12")


def _lost() -> dict[str, Any]:
    """Each small product alone lies below the 13 fraction bits that Hopper and Ada keep for FP8."""
    small = ["2^-7"] * 31
    why = f"{studies.question(fp8_accumulation.NAME)} {studies.source(fp8_accumulation.NAME)}."
    return _preset("1 + 31 * 2^-14", why, [1, *small], [1, *small], 0)


def _overflows() -> Iterator[dict[str, Any]]:
    for name, (a, b, c) in product_overflow.CASES.items():
        why = f"{studies.question(product_overflow.NAME)} {studies.source(product_overflow.NAME)}."
        yield _preset(name, why, map(float.hex, a), map(float.hex, b), c.hex())


def _downward() -> dict[str, Any]:
    case = published(cdna3_rounding.NAME)["case"]
    why = f"{studies.question(cdna3_rounding.NAME)} {studies.source(cdna3_rounding.NAME)}."
    name = "2048 * 2048 - 2048 * 2048 - 0.000001"
    return _preset(name, why, case["a"], case["b"], repr(case["c"]), rounded=True)


def _nans() -> Iterator[dict[str, Any]]:
    for word, what in tf32_nan.WORDS.items():
        why = f"{what[0].upper()}{what[1:]}, times 1. {studies.source(tf32_nan.NAME)}."
        yield _preset(f"TF32 word {word:#010x}", why, [hex(word)], [1], 0, formats={"a": "tf32"})
