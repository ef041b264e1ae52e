"""The explorer in a browser against the Python models: every number of a trace, values as people type them,
the first difference, errors by F; the page by keyboard, link and pasted unit."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from explorer_page import API, ExplorerPage, as_hex
from long_run import long_after

from golden import stimuli
from golden.catalog.architectures import architectures
from golden.catalog.lookup import instruction, instructions, load_instruction
from golden.errors import DocsError, DocsToolMissing
from golden.explain.first_difference import first_difference
from golden.explain.program_file import program_file
from golden.explain.trace import exact_terms, ulp_exponent
from golden.model import core_build
from golden.model.instruction import Instruction
from golden.model.program_text import CORE
from golden.number.formats import Format, Kind
from golden.number.rounding import encode_fraction
from golden.paths import spec_folder
from golden.program.program import Program
from golden.program.steps import Align
from golden.publish import answers
from golden.publish.explorer import build, wasm
from golden.publish.explorer.address import INDEX, address
from golden.publish.explorer.build import presets
from golden.publish.families import group_of
from golden.publish.links import Links

HMMA = "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "hopper:wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
TCGEN05 = "blackwell:tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3"
SPARSE = "hopper:mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = TCGEN05.replace(
    "f8f6f4.m64n8k32.f32.e4m3.e4m3", "mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3"
)
TRACED = """async (cases) => {
  const traces = [];
  for (const [architecture, name, operands] of cases) {
    const unit = await mmagoldExplorer.api.library().unit(architecture, name);
    const codes = Object.fromEntries(Object.entries(operands).map(([n, some]) => [n, some.map(BigInt)]));
    const { events, code, exactValue, ...rest } = mmagoldExplorer.api.trace(unit, codes);
    traces.push(JSON.stringify(rest));
  }
  return traces;
}"""
EXAMPLES = spec_folder() / "examples"
_CORE_BITS = 96
"""Longer sums the core holds with the rest as a sticky bit, the reference to the last bit."""


@pytest.fixture(scope="module")
def page(browser: Browser, explorer: Path) -> ExplorerPage:
    opened = ExplorerPage(browser, explorer)
    opened.open()
    return opened


def link(name: str, operands: dict[str, list[int]], other: str | None = None) -> str:
    """What stands behind the # for instructions with the first codes of operands."""
    pair = [instruction(*one.split(":", 1)) for one in (name, other) if one is not None]
    return address(pair[0], operands, *pair[1:]).partition("#")[2]


def units() -> Iterator[Instruction]:
    """Every arithmetic of every architecture, once in each."""
    for name in architectures():
        seen = set()
        for ins in instructions(name):
            key = build.arithmetic(ins)
            if key not in seen:
                seen.add(key)
                yield ins


def as_json(document: dict[str, Any]) -> dict[str, Any]:
    """A trace as JSON has it, without what the core and the reference hold differently: the bits of sums that
    are longer than the core's integers, and zeros behind the last one."""
    plain: dict[str, Any] = json.loads(json.dumps(document))
    if plain["error_ulp"] is not None:
        plain["error_ulp"] = float(plain["error_ulp"])  # JavaScript writes doubles as integers up to 10^21
    for step in plain["steps"]:
        step.pop("raised", None)
        for row in step["rows"]:
            digits = row["significand"].rstrip("0") if "." in row["significand"] else row["significand"]
            row["significand"] = digits[:_CORE_BITS].rstrip(".")
    return plain


def compare_traces(page: ExplorerPage, chosen: list[Instruction], each: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    kinds = list(stimuli.KINDS)
    cases, wanted = [], []
    for ins in chosen:
        for kind in rng.choice(kinds, each):
            drawn = stimuli.generate(ins, str(kind), 1, rng)
            operands = {name: codes[0] for name, codes in drawn.items()}
            cases.append((ins.architecture, ins.name, as_hex(operands)))
            wanted.append(ins.trace(**operands).as_dict())
    for case, ours, theirs in zip(cases, wanted, page.ask(TRACED, cases), strict=True):
        assert as_json(json.loads(theirs)) == as_json(ours), case
    return len(cases)


@pytest.mark.long
def test_traces_are_those_of_the_reference(page: ExplorerPage) -> None:
    chosen = list(units())[::6]
    assert compare_traces(page, chosen, 3, 1) > 200


@pytest.mark.long
@pytest.mark.parametrize("architecture", architectures())
def test_thousands_of_traces_are_those_of_the_reference(page: ExplorerPage, architecture: str) -> None:
    chosen = [ins for ins in units() if ins.architecture == architecture]
    for seed in range(2):
        compare_traces(page, chosen, max(5, 60 // len(chosen)), seed + 2)


def test_a_fault_in_the_core_would_be_found(page: ExplorerPage) -> None:
    """The comparison can fail: another unit's trace is not this one's."""
    ins, other = (instruction(*name.split(":", 1)) for name in (WGMMA, TCGEN05))
    operands = {"a": [0x38, 0x08, 0x01], "b": [0x38, 0x08, 0x01]}
    given = {name: np.array(codes + [0] * 29, np.uint8) for name, codes in operands.items()}
    given["c"] = np.uint32(0x3F800000)
    (text,) = page.ask(TRACED, [(other.architecture, other.name, as_hex(given))])
    assert as_json(json.loads(text)) == as_json(other.trace(**given).as_dict())
    assert as_json(json.loads(text))["steps"] != as_json(ins.trace(**given).as_dict())["steps"]


ALLOCATED = """async () => {
  const { exports } = mmagoldExplorer.api.library().core;
  const before = exports.memory.buffer.byteLength;
  const held = [];
  for (let i = 0; i < 20000; i++) {
    if (held.length < 100 && i % 7 < 4) held.push([exports.malloc(i * 37 % 5000), i * 37 % 5000]);
    else if (held.length) exports.free(held.splice(i * 13 % held.length, 1)[0][0]);
  }
  held.sort((one, other) => one[0] - other[0]);
  const apart = held.every(([at, size], i) => at % 16 === 0 && (!i || held[i - 1][0] + held[i - 1][1] <= at));
  held.forEach(([at]) => exports.free(at));
  const grown = exports.memory.buffer.byteLength - before;
  return { apart, count: held.length, grown, none: exports.malloc(2 ** 31) };
}"""


def test_blocks_of_memory_lie_apart_and_are_used_again(page: ExplorerPage) -> None:
    """Also the largest, which there is no memory for, is refused."""
    found = page.ask(ALLOCATED)
    assert found["apart"] and found["count"] > 10 and found["grown"] < 1 << 21 and found["none"] == 0


ENCODED = """async (architecture, name, operand, texts) => {
  const { encode, parse, library } = mmagoldExplorer.api;
  const unit = await library().unit(architecture, name);
  return texts.map((text) => {
    try { return encode(unit.core, unit.format(operand), parse(text)).code.toString(16); }
    catch (error) { if (error instanceof RangeError) return "none"; throw error; }
  });
}"""


@pytest.mark.parametrize(
    "name", ("f16", "bf16", "tf32", "f64", "e4m3", "e5m2", "e2m1", "e3m2", "e4m3fnuz", "s8")
)
def test_typed_numbers_become_the_nearest_codes(page: ExplorerPage, name: str) -> None:
    ins = next(ins for ins in units() if ins.formats["a"].name == name)
    fmt, rng = ins.formats["a"], np.random.default_rng(5)
    values = [Fraction(float(x)) for x in rng.standard_normal(12) * 2.0 ** rng.integers(-12, 8, 12)]
    values += ties(fmt, rng)
    texts = [f"{value.numerator}/{value.denominator}" for value in values]
    found = page.ask(ENCODED, ins.architecture, ins.name, "a", texts)
    for value, text in zip(values, found, strict=True):
        assert text == nearest_code(fmt, value), (name, str(value))


def ties(fmt: Format, rng: np.random.Generator) -> list[Fraction]:
    """Numbers halfway between two codes that follow each other."""
    step = 1 << fmt.ignored_low
    codes = [int(rng.integers(0, fmt.largest // step)) * step for _ in range(12)]
    pairs = [(fmt.decode(code).value, fmt.decode(code + step).value) for code in codes]
    return [(low + high) / 2 for low, high in pairs]


def nearest_code(fmt: Format, value: Fraction) -> str:
    """By brute comparison where the codes are few, else by the package's rounding."""
    if not fmt.is_float:
        whole = round(value)
        low, high = -(1 << (fmt.bits - 1)), fmt.largest
        return f"{whole % (1 << fmt.bits):x}" if low <= whole <= high else "none"
    if fmt.bits <= 8:
        decoded = [(code, fmt.decode(code)) for code in range(1 << fmt.bits)]
        finite = [(abs(n.value - value), code & 1, code) for code, n in decoded if n.kind <= Kind.FINITE]
        distance, _, code = min(finite, key=lambda one: (one[0], one[1], one[2]))
        if abs(value) <= fmt.decode(fmt.largest).value and distance != abs(value):
            return f"{code:x}"
    return f"{encode_fraction(fmt, value):x}"


TYPED = {
    **{"1.5": "3e00", "-2^-7": "a000", "3*2^-2": "3a00", "3*2**-2": "3a00"},
    **{"0x1.8p3": "4a00", "1/3": "3555", "-0": "8000"},
    **{"inf": "7c00", "-inf": "fc00", "nan": "7e00", "0x3c00": "3c00", "0x10000": "none"},
    **{"65519.99": "7bff", "65520": "7c00", "1e-8": "0", "\N{MINUS SIGN}1": "bc00"},
}


@pytest.mark.parametrize(("text", "code"), TYPED.items())
def test_texts_that_people_type(page: ExplorerPage, text: str, code: str) -> None:
    assert page.ask(ENCODED, *HMMA.split(":", 1), "a", [text]) == [code]


STEPPED = """async (architecture, name, codes) => {
  const unit = await mmagoldExplorer.api.library().unit(architecture, name);
  const { step } = mmagoldExplorer.api;
  const next = (code, way) => Number(step(unit.core, unit.format("a"), BigInt(code), way));
  return codes.map((code) => [next(code, 1), next(code, -1)]);
}"""


@pytest.mark.parametrize("name", ("e4m3", "e5m2", "e2m1", "e4m3fnuz", "s8"))
def test_stepping_reaches_the_next_number(page: ExplorerPage, name: str) -> None:
    ins = next(ins for ins in units() if ins.formats["a"].name == name)
    fmt = ins.formats["a"]
    codes = [c for c in range(1 << fmt.bits) if fmt.decode(c).kind <= Kind.FINITE]
    values = sorted({fmt.decode(code).value for code in codes})
    for code, (up, down) in zip(codes, page.ask(STEPPED, ins.architecture, ins.name, codes), strict=True):
        at = values.index(fmt.decode(code).value)
        for found, wanted in ((up, at + 1), (down, at - 1)):
            number = fmt.decode(found)
            if 0 <= wanted < len(values):
                assert number.value == values[wanted], (code, found)
            else:
                assert number.kind == Kind.INFINITY or found == code, (code, found)


PARTED = """async (first, second, operands) => {
  const codes = Object.fromEntries(Object.entries(operands).map(([name, some]) => [name, some.map(BigInt)]));
  const both = [];
  for (const name of [first, second]) {
    const [architecture, ...rest] = name.split(":");
    const unit = await mmagoldExplorer.api.library().unit(architecture, rest.join(":"));
    both.push({ unit, numbers: unit.observe(codes).numbers });
  }
  return mmagoldExplorer.api.firstDifference(...both);
}"""
PAIRS = (
    (WGMMA, TCGEN05, True),
    (
        HMMA.replace("hopper", "turing").replace("m16n8k16", "m16n8k8"),
        HMMA.replace("m16n8k16", "m16n8k8"),
        True,
    ),
    (HMMA, HMMA.replace("hopper", "rtx_blackwell"), False),  # the same steps
    ("cdna2:v_mfma_f32_16x16x16f16", "cdna3:v_mfma_f32_16x16x16_f16", False),  # steps of other kinds
)


@pytest.mark.parametrize(("first", "second", "differ"), PAIRS)
def test_the_first_difference_is_that_of_python(
    page: ExplorerPage, first: str, second: str, differ: bool
) -> None:
    ins, other = (instruction(*name.split(":", 1)) for name in (first, second))
    rng, differences = np.random.default_rng(3), 0
    for kind in ("narrow", "cancelling", "alignment_edge", "special_values"):
        for codes in _rows(stimuli.generate(ins, kind, 3, rng)):
            wanted = first_difference(ins, other, codes)
            found = page.ask(PARTED, first, second, as_hex(codes))
            if wanted is None:
                assert found is None
                continue
            differences += 1
            assert (found["operation"], found["step"], found["op"]) == (
                wanted.operation,
                wanted.step,
                wanted.op,
            )
            assert (found["register"], found["index"]) == (wanted.register, wanted.index)
    assert bool(differences) == differ


def _rows(operands: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for i in range(len(operands["c"])):
        yield {name: codes[i] for name, codes in operands.items()}


SPREAD = """async (architecture, name, many) => {
  const unit = await mmagoldExplorer.api.library().unit(architecture, name);
  const codes = (operands) =>
    Object.fromEntries(Object.entries(operands).map(([n, some]) => [n, some.map(BigInt)]));
  return mmagoldExplorer.api.errorsByBits(unit, many.map(codes), () => {});
}"""


def test_errors_by_f_are_those_of_the_model(page: ExplorerPage) -> None:
    ins = instruction(*WGMMA.split(":", 1))
    many = list(_rows(stimuli.generate(ins, "narrow", 20, np.random.default_rng(8))))
    found = {
        row["bits"]: row["errors"] for row in page.ask(SPREAD, *WGMMA.split(":", 1), list(map(as_hex, many)))
    }
    for bits in (8, 13, 25):
        changed = with_bits(ins, bits)
        wanted = sorted(abs(error(changed, operands)) for operands in many)
        assert found[bits] == pytest.approx(wanted, rel=1e-12), bits


def with_bits(ins: Instruction, bits: int) -> Instruction:
    (operation,) = ins.program.operations
    steps = [
        dataclasses.replace(step, fraction_bits=tuple((name, bits) for name, _ in step.fraction_bits))
        if isinstance(step, Align)
        else step
        for step in operation.steps
    ]
    return dataclasses.replace(ins, program=Program((operation.with_steps(steps),)))


def error(ins: Instruction, operands: dict[str, Any]) -> float:
    terms = exact_terms(ins, operands)
    assert terms is not None
    exact, d = sum(terms, Fraction(0)), ins.formats["d"]
    return float(
        (d.decode(ins.reference_dot(**operands)).value - exact) / Fraction(2) ** ulp_exponent(exact, d)
    )


# The page ---------------------------------------------------------------------------------------------------


def test_an_operand_is_typed_and_stepped_by_keyboard_alone(page: ExplorerPage) -> None:
    page.open(link(HMMA, {"a": [0x3C00], "b": [0x3C00]}))
    assert page.text(".card .big") == "0x3f800000"
    page.focus('[data-cell="a-0"]')
    page.type("1.5")
    page.press("Enter", text="\r")
    page.wait("document.querySelector('.card .big').textContent === '0x3fc00000'")
    page.press("ArrowUp", alt=True)
    page.wait("document.querySelector('.card .big').textContent === '0x3fc02000'")
    page.press("ArrowDown")
    assert page.browser.evaluate("document.activeElement.dataset.cell") == "a-1"
    page.focus('[data-edit="bit15"]')
    page.press(" ", text=" ")
    assert page.browser.evaluate("document.activeElement.dataset.edit") == "bit15"  # the focus stays
    assert page.text('[data-edit="bit15"]') == "1"
    page.press("ArrowRight")
    assert page.browser.evaluate("document.activeElement.dataset.edit") == "bit14"
    assert page.browser.errors == []


def test_an_instruction_is_found_by_keyboard_alone(page: ExplorerPage) -> None:
    page.open()
    page.focus("#choose-first")
    page.press("Enter", text="\r")
    page.wait("document.activeElement.id === 'search'")
    page.type("b200 nvfp4")
    page.press("ArrowDown")
    assert "mxf4nvf4" in page.browser.evaluate("document.activeElement.textContent")
    page.press("Enter", text="\r")
    page.wait("document.title.includes('mxf4nvf4')")
    assert "ue4m3" in page.text("#first-name")
    assert page.browser.errors == []


def test_a_link_holds_everything(page: ExplorerPage) -> None:
    sparse = next(ins for ins in instructions("hopper") if ins.sparse and ins.formats["a"].name == "f16")
    page.open(
        link(f"hopper:{sparse.name}", {"a": [0x3C00, 0xBC00], "b": [1, 2, 3, 4], "c": [7], "metadata": [0xE]})
    )
    before = page.browser.evaluate(f"Object.values({API}.state.operands).map(String).join(';')")
    page.wait("location.hash.includes('metadata=')")
    there = page.browser.evaluate("location.hash")
    page.open(there[1:])
    assert page.browser.evaluate(f"Object.values({API}.state.operands).map(String).join(';')") == before
    assert page.browser.errors == []


@pytest.mark.parametrize("bad", ("i=hopper:nothing", "i=", "i=HMMA", "i=hopper:mma&unit=AAAA"))
def test_a_wrong_link_is_reported(page: ExplorerPage, bad: str) -> None:
    page.open(bad)
    assert page.complaint
    assert HMMA in page.text("#first-name")  # and the page works
    page.browser.evaluate("document.getElementById('random').click()")
    assert page.text(".card .big") and not page.browser.errors


def paste(page: ExplorerPage, text: str) -> None:
    page.browser.evaluate(f"document.getElementById('paste').value = {json.dumps(text)}")
    page.browser.evaluate("document.getElementById('load-unit').click()")


@pytest.mark.parametrize(
    "name",
    ("rdna3_dot2", "fixed_point", "block_scaled", "fma_modes", "ieee_add", "accumulator", "ieee_fma_flags"),
)
def test_a_pasted_unit_answers_like_the_model(page: ExplorerPage, name: str) -> None:
    unit = load_instruction(EXAMPLES / f"{name}.yaml")
    page.open()
    paste(page, json.dumps(program_file([unit])))
    page.wait(f"document.title.startsWith({json.dumps(unit.name)})")
    first, name_there = unit.plain, program_file([unit])["units"][0]["name"]
    rng = np.random.default_rng(2)
    for kind in ("narrow", "special_values", "near_overflow", "subnormal_result"):
        for operands in _rows(stimuli.generate(first, kind, 2, rng)):
            (text,) = page.ask(TRACED, [("custom", name_there, as_hex(operands))])
            wanted = first.trace(**operands).as_dict() | {"instruction": name_there}
            assert as_json(json.loads(text)) == as_json(wanted)
    there = page.browser.evaluate("location.hash")
    assert "unit=" in there
    page.open(there[1:])
    assert page.text("#first-name").startswith(f"custom:{unit.name}") and not page.complaint


DAMAGED = (
    ("mmagold_program", 2, "no compiled program"),
    ("units/0/program/k", 10**9, "k is 1000000000"),
    ("units/0/program/operations/0/k_index/0", 99, "k of operation 0"),
    ("units/0/program/operations/0/seed", 5, "adds a later result"),
    ("units/0/program/operations/0/steps/0/colour", 1, "no member 'colour'"),
    ("units/0/formats/a", "f32", "two formats of a"),
    ("formats", {}, "does not say what it is"),
)


@pytest.mark.parametrize(("path", "value", "complaint"), DAMAGED)
def test_a_damaged_program_is_refused(page: ExplorerPage, path: str, value: Any, complaint: str) -> None:
    document = program_file([instruction(*HMMA.split(":", 1))])
    *inside, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    place: Any = document
    for key in inside:
        place = place[key]
    place[last] = value
    page.open()
    paste(page, json.dumps(document))
    page.wait("!document.getElementById('complaint').hidden")
    assert complaint in page.complaint


@pytest.mark.parametrize(("text", "words"), [("formats: {a: f16}", "mmagold export"), ("{a", "no JSON")])
def test_text_that_is_no_json_is_refused(page: ExplorerPage, text: str, words: str) -> None:
    page.open()
    paste(page, text)
    page.wait("!document.getElementById('complaint').hidden")
    assert words in page.complaint


def test_every_control_has_a_name(page: ExplorerPage) -> None:
    page.open()
    page.browser.call("Accessibility.enable")
    nodes = page.browser.call("Accessibility.getFullAXTree")["nodes"]
    controls = ("button", "textbox", "searchbox", "combobox", "image", "DisclosureTriangle")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in controls
    ]
    assert len(named) > 60
    assert [role for role, name in named if not name.strip()] == []


def test_the_core_of_the_browser_is_whole(tmp_path: Path) -> None:
    """Its sources without all others, by the compiler of this machine: zig needs a minute at first."""
    compiler, library = core_build.compiler(), tmp_path / "core.so"
    assert compiler is not None
    flags = ["-O0", "-fPIC", "-shared", "-Wl,--no-undefined", "-DMG_GENERAL_ONLY", '-DMG_DIGEST="x"']
    command = [*compiler, *flags, *wasm.SOURCES, "-lm", "-o", str(library)]
    done = subprocess.run(command, cwd=CORE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    core = ctypes.CDLL(str(library))
    assert all(hasattr(core, name) for name in wasm.EXPORTS)


def test_the_first_load_is_light(explorer: Path) -> None:
    first = ["index.html", "explorer.css", "colours.css", "explorer.js", "data.js", "programs/hopper.js"]
    assert sum((explorer / name).stat().st_size for name in first) < 1_000_000


# What it is made of -----------------------------------------------------------------------------------------


OFFERING = (
    HMMA,
    WGMMA,
    HMMA.replace("f16", "bf16"),
    "hopper:mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "hopper:mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "hopper:mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "rdna3:v_wmma_bf16_16x16x16_bf16_w32",
)


def test_every_preset_is_held_by_some_unit(page: ExplorerPage) -> None:
    page.open()
    offered = set()
    for name in OFFERING:
        page.open(link(name, {"a": [0]}))
        names = "[...document.querySelectorAll('#preset option')].map(o => o.textContent)"
        offered |= set(page.browser.evaluate(names))
    assert {preset["name"] for preset in presets()} <= offered


def test_the_bundle_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in build.MODULES:
        shutil.copy(build.PAGE / f"{name}.js", tmp_path)
    monkeypatch.setattr(build, "PAGE", tmp_path)
    assert build.script()
    for text in ('import x from "./core.js";\n', "export default 3;\n", 'import { h } from "./main.js";\n'):
        (tmp_path / "dom.js").write_text(text)
        with pytest.raises(DocsError, match=r"dom\.js: "):
            build.script()


def test_the_page_of_a_site_leads_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(wasm, "available", lambda: True)
    monkeypatch.setattr(wasm, "compile_core", lambda: b"")
    monkeypatch.setattr(build, "index_and_programs", lambda: ([], {}))
    build.write_into(tmp_path)
    assert 'href="../index.html"' in (tmp_path / INDEX).read_text()
    assert 'href="../index.html"' not in build.files()["index.html"]


def test_without_the_compiler_the_site_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(wasm, "available", lambda: False)
    build.write_into(tmp_path)
    assert "built without the explorer" in (tmp_path / INDEX).read_text()
    with pytest.raises(DocsToolMissing, match="ziglang"):
        build.build(tmp_path / "alone")
    assert not (tmp_path / "alone").exists()


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DocsError, match="no earlier explorer"):
        build.build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_pages_can_link_to_it() -> None:
    text = Links(frozenset({"explorer.md"})).relink(
        "[go](explorer/index.html)", "explorer.md", hand_written=True
    )
    assert text == '<a href="explorer/index.html">go</a>'


@pytest.mark.parametrize("name", long_after(1, (HMMA, SPARSE, SCALED)))
def test_the_example_of_an_instructions_page_opens_there(page: ExplorerPage, name: str) -> None:
    group = group_of(instruction(*name.split(":", 1)))
    text = Links(frozenset({group.path})).relink(answers.example(group), group.path)
    (there,) = re.findall(r'href="../../explorer/index.html#([^"]+)"', text)
    (d,) = re.findall(r"^d +(0x\w+) ", text, re.M)
    page.open(there)
    assert page.text(".card .big") == d and not page.complaint


@pytest.mark.long
def test_a_unit_with_modes_is_a_unit_in_each() -> None:
    unit = load_instruction(EXAMPLES / "fma_modes.yaml")
    found = program_file([unit])["units"]
    assert len(found) == len(unit.mode_units) > 1
    assert len({one["name"] for one in found}) == len(found)
    assert all(one["name"].startswith(f"{unit.name}, mode 0x") for one in found)
