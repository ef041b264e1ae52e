"""README.md, CONTRIBUTING.md and the pages of docs/: their code runs, their links exist, their tables are
what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, PageError, PageRun, blocks, check_command, check_python

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import DocsError, SpecError
from golden.number.formats import build_format, get_format
from golden.number.rounding import MODES
from golden.program import compiling, keys, reading, steps
from golden.program.algorithms import algorithms
from golden.publish.explorer.address import address

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
SLOW = {
    "read-a-mismatch-report",
    "gemm",
    "write-a-spec",
    "dissect",
    "regress",
    "check-my-unit",
    "capture-a-gpu",
    "add-an-architecture",
    "sass",
    "timing",
    "c-header",
    "getting-started",
    "vectors",
    "uvm",
}
"""Pages whose commands take longest; the tests of the commands run in the short run, too."""
# What the site builder makes; a code host does not have it.
GENERATED = (
    *("architectures/", "formats/", "studies/", "instructions/", "api/", "explorer/", "sass/"),
    "comparison.md",
)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long) if page.stem in SLOW else page for page in PAGES],
    ids=[page.stem for page in PAGES],
)
def test_code_of_page_runs(page: Path, tmp_path: Path) -> None:
    PageRun(str(page.relative_to(ROOT)), page.read_text("utf-8"), tmp_path, page.stem in SLOW).run()


@pytest.mark.long
def test_all_code_of_the_first_page_runs(tmp_path: Path) -> None:
    PageRun("README.md", PAGES[0].read_text("utf-8"), tmp_path).run()


def test_the_views_of_a_step_are_those_that_the_page_lists() -> None:
    """Every `match` over all kinds of steps ends in assert_never; add-a-step.md names their modules."""
    page = section((DOCS / "add-a-step.md").read_text("utf-8"), "A new kind")
    listed = {word for _, modules in rows(page) for word in words(modules)}
    matched = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "golden").rglob("*.py")
        if re.search(r"^ +assert_never\(step\)$", path.read_text("utf-8"), re.M)
    }
    assert listed == matched


# Links ------------------------------------------------------------------------------------------------------


def prose(page: Path) -> str:
    """The page without its code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", lambda code: re.sub(r"[^`\w -]", "", code[0]), text)


def slug(heading: str) -> str:
    """The anchor that code hosts and MyST give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#{1,6} (.+)$", text, re.M)}


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_of_page_exist(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        assert not target.startswith("site:"), "generated pages alone use site:"
        assert not path.startswith(GENERATED), f"{page.name}: [{target}], expected <!-- site: ... -->"
        file = page if not path else (page.parent / path).resolve()
        assert file.exists(), f"{page.name}: [{target}]"
        if anchor:
            assert anchor in anchors(file), (
                f"{page.name}: [{target}], there are {', '.join(sorted(anchors(file)))}"
            )


def test_commands_of_the_cheat_sheet_exist() -> None:
    """With an instruction and a plan in place of its placeholders."""
    stands_for = {
        "NAME2": "ampere:HMMA.16816.F32",
        "NAME": "hopper:HMMA.16816.F32",
        "PLAN": "hopper:cublas_f64",
    }
    found = re.findall(r"`(mmagold [^`]+)`", (DOCS / "cheat-sheet.md").read_text("utf-8"))
    assert len(found) > 30
    for command in found:
        check_command(re.sub("|".join(stands_for), lambda name: stands_for[name[0]], command))


def test_every_page_can_be_reached_from_the_start() -> None:
    reached, found = set(), [DOCS / "index.md"]
    while found:
        page = found.pop()
        if page in reached or page.suffix != ".md" or page.parent != DOCS or not page.exists():
            continue
        reached.add(page)
        found += [
            (DOCS / target.partition("#")[0]).resolve()
            for target in LINK.findall(prose(page))
            if ":" not in target
        ]
    assert reached == set(DOCS.glob("*.md"))


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == DOCS], ids=lambda page: page.stem)
def test_page_begins_with_a_title_and_a_sentence(page: Path) -> None:
    """And has one heading of the first level, and no code without a fence, which no test would run."""
    text = prose(page)
    assert re.match(r"# [^\n]+\n\n[A-Za-z`\[][^\n]{20,}", text)
    assert len(re.findall(r"^# ", text, re.M)) == 1
    assert not re.search(r"\n\n {4,}\S", text)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_block_that_does_not_run_says_why(page: Path) -> None:
    """The paragraph above it says what it needs, or that the tests do not run it: a fence is not shown."""
    text = page.read_text("utf-8")
    for block in re.finditer(r"^ *```\w+ no-run.*$", text, re.M):
        above = text[: block.start()].rstrip().rpartition("\n\n")[2]
        assert re.search(r"\bneeds?\b|\bdo(es)? not\s+run\b", above), (
            f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}: {above[-200:]}"
        )


# Tables -----------------------------------------------------------------------------------------------------


def test_table_of_architectures_is_the_catalog() -> None:
    """Names in order, with the number of instructions of each."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert rows == [(name, str(len(golden.instructions(name)))) for name in golden.architectures()]


def test_the_two_answers_on_the_start_page_are_those_of_the_models() -> None:
    """Every number of its table stands in the reference's trace, and its link opens these operands."""
    page = (DOCS / "index.md").read_text("utf-8")
    a, b = (golden.from_float("f16", [2.0**exponent] * 4 + [0] * 12) for exponent in (-12, -13))
    operands = {"a": a, "b": b, "c": golden.from_float("f32", 1.0)}
    units = [golden.instruction(name, "HMMA.16816.F32") for name in ("hopper", "ampere")]
    assert f" {address(units[0], operands, units[1])} " in page
    table = [row for row in rows(section(page, "A small example")) if "`" in row[1]]
    assert len(table) == 8
    for name, ins in zip(("Hopper", "Ampere"), units, strict=True):
        held = {cell.removesuffix(f", {name}"): words(value) for cell, value in table if cell.endswith(name)}
        assert held.keys() == {"c", "product", "sum", "d"}
        assert held.pop("d") == {f"{int(ins.dot(**operands)):#010x}"}
        assert not set().union(*held.values()) - set(str(ins.trace(**operands)).split())


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next one of any level."""
    match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert match, heading
    return match[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


SPEC_PAGE = (DOCS / "spec-schema.md").read_text("utf-8")
FAULTS = rows(section((DOCS / "diagnosis.md").read_text("utf-8"), "The same faults in a unit of your own"))


def fault_keys(op: str) -> set[str]:
    """The keys of a step in diagnosis.md."""
    return {
        key for ops, keys, *_ in FAULTS if op in words(ops) for key in re.findall(r"`(\w+): [^`]*`", keys)
    }


_UNIT = "unit: dot4\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\n"
_CHAIN = "steps: [{fma: {to: d, rounding: nearest_even}}]"
_SCALED = (
    "unit: scaled\nshape: {k: 4}\nscale_block: 2\n"
    "formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}\n"
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {special_values: {of: [products, c]}}, "
    "{align: {of: [products, c], fraction_bits: 24, rounding: toward_zero}}, "
    "{sum: {of: [products, c], to: total}}, "
    "{round: {of: total, rounding: toward_zero, overflow: ieee, zero: positive}}]"
)
FILES = {
    "neither `steps` nor `program`": _UNIT,
    "`steps` and `program`": f"{_UNIT}program: []\n{_CHAIN}",
    "`scale_block: 2` without `scale_a`": f"{_UNIT}scale_block: 2\n{_CHAIN}",
    "`scale_block: 3` with `k: 4`": _SCALED.replace("scale_block: 2", "scale_block: 3"),
    "`{fma: {to: d, rounding: up}}` behind a step that writes d": _UNIT
    + f"{_CHAIN[:-1]}, {{fma: {{to: d, rounding: up}}}}]",
    "`modes: {rnd: [up]}` without `$rnd`": f"{_UNIT}modes: {{rnd: [up]}}\n{_CHAIN}",
    "`accumulator: state` with c in f32 and d in f16": _UNIT.replace("d: f32", "d: f16")
    + f"accumulator: state\n{_CHAIN}",
    "`accumulator: state` and no step that reads c": f"{_UNIT}accumulator: state\n"
    + _CHAIN.replace("nearest_even", "nearest_even, start: zero"),
}
"""Files that the page describes in words; what it shows as YAML is put into a small unit."""


def refusals() -> list[tuple[str, str, str]]:
    """The rows "Refused" of the page with the heading above each."""
    heading, found = "", []
    for line in SPEC_PAGE.splitlines():
        heading = line.lstrip("# ") if line.startswith("#") else heading
        if (row := re.match(r"\| (.*?`.*?) \| (.*) \|$", line)) and heading in _FRAMES:
            found.append((heading, row[1], re.sub(r"\\([_*|])", r"\1", row[2])))
    return [row for row in found if row[1].count("`") > 2 or row[1].strip("`") not in keys_shown(row[0])]


def _file(text: str) -> object:
    plain = text.strip("`")
    computes = "" if plain.startswith(("steps", "program")) else _CHAIN
    return unit_files.build_instruction(yamlfile.parse(FILES.get(text) or f"{_UNIT}{plain}\n{computes}"))


def _step(op: str, text: str) -> object:
    return reading.StepReader(op, yamlfile.parse(text), get_format("f32"), {}).read()


def _operation(text: str) -> object:
    return unit_files.build_instruction(yamlfile.parse(f"{_UNIT}program:\n  - {text.strip('`')}"))


_FRAMES: dict[str, Any] = {
    "The file": _file,
    "A number format of your own": lambda text: build_format("mine", yamlfile.parse(text.strip("`"))),
    "An operation": _operation,
    "`k`": _operation,
    "`group`": lambda text: _step("sum", text.strip("`")),
    **{f"`{op}`": lambda text, op=op: _step(op, text.strip("`")) for op in steps.STEPS},
}


def test_what_the_schema_page_calls_refused_is_refused_with_that_message() -> None:
    rows = refusals()
    assert len(rows) > 35
    for heading, text, said in rows:
        with pytest.raises(SpecError) as refused:
            _FRAMES[heading](text)
        message = str(refused.value)
        assert re.sub(r"^[^:]*:\d+: ", "", message) == said, (heading, text, message)


def test_examples_of_steps_on_the_schema_page_load() -> None:
    examples = re.findall(r"^- (\w+): (\{.*\})$", SPEC_PAGE, re.M)
    assert {op for op, _ in examples} == set(steps.STEPS)
    for op, text in examples:
        _step(op, text)


def keys_shown(heading: str) -> set[str]:
    """The keys in the first column of the first table below a heading of spec-schema.md."""
    table = section(SPEC_PAGE, heading).partition("<!-- end of the keys -->")[0]
    return {word for key, *_ in rows(table) for word in words(key)}


def test_schema_page_holds_every_key() -> None:
    """The keys that reading spec/examples asks for, and keys of operations by their list in the loader."""
    examples = [yamlfile.read(path) for path in sorted((ROOT / "spec" / "examples").glob("*.yaml"))]
    for example in examples:
        unit_files.build_instruction(example)
    local = [table for example in examples for table in example.get("define_formats", {}).values()]
    assert {key for example in examples for key in example._taken} == keys_shown("The file")
    assert {key for table in local for key in table._taken} | {"bits"} == keys_shown(
        "A number format of your own"
    )
    assert keys_shown("An operation") == set(compiling.OPERATION_KEYS)
    assert set(keys.REGISTER.words) == words(section(SPEC_PAGE, "Registers"))
    assert set(MODES) <= words(section(SPEC_PAGE, "Every step"))


@pytest.mark.parametrize("op", steps.STEPS)
def test_schema_page_holds_every_key_of_a_step(op: str) -> None:
    """Every step of spec/ knows no key that the page lacks."""
    shown = keys_shown(f"`{op}`")
    used = [step[op] for one in algorithms().values() for step in one.steps if op in step]
    assert {key for step in used for key in step} <= shown


@pytest.mark.parametrize("op", steps.STEPS)
def test_faults_of_a_step_are_those_of_diagnosis(op: str) -> None:
    """Keys that the schema calls faults stand in diagnosis.md, and the other way round; sound units set
    `overflow` and `zero`, too."""
    table = section(SPEC_PAGE, f"`{op}`").partition("<!-- end of the keys -->")[0]
    reported = {next(iter(words(key))) for key, *_, meaning in rows(table) if "diagnosis.md" in meaning}
    assert reported == (fault_keys(op) - {"overflow", "zero"} if op != "hidden_bit" else set())
    assert fault_keys(op) <= keys_shown(f"`{op}`")


def test_glossary_is_in_order_and_used() -> None:
    """Terms in alphabetical order, each once, each linked from its own page or another,
    or named on another."""
    text = (DOCS / "glossary.md").read_text("utf-8")
    terms = re.findall(r"^## (.+)$", text, re.M)
    assert terms == sorted(set(terms), key=str.lower) and len(terms) > 40
    others = " ".join(page.read_text("utf-8").lower() for page in PAGES if page.name != "glossary.md")
    assert [term for term in terms if re.split(r" \(|,", term.lower())[0] not in others] == []


# The machinery itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "prints"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python no-run\nfrom golden.dut import load\n```\n", "golden.dut"),
        ("```console\n$ echo 1\n2\n```\n", "prints"),
        ("```console\n$ false\n```\n", "status 1"),
        ("```console\n$ mmagold spec check absent.yaml\n```\n", "status 2"),
        ("```console\nmmagold list\n```\n", "begins with"),
        ("```console no-run\n$ mmagold capture --arhc hopper\n```\n", "--arhc"),
        ("```console no-run\n$ mmagold rtl chek x.yaml\n```\n", "chek"),
        ("```console no-run\n$ mmagold campaign --dots many\n```\n", "--dots"),
        ("```console no-run\n$ make demonstration\n```\n", "no target"),
        ("```console no-run\n$ pip install 'mmagold[cpu]'\n```\n", "no extra"),
        ("```console no-run\n$ frobnicate\n```\n", "frobnicate"),
        ("```cosnole\n$ true\n```\n", "cosnole"),
        ("```\ntext\n```\n", "a block of ''"),
        ("```text\n", "no end"),
    ],
)
def test_a_page_that_is_wrong_fails(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises((DocsError, PageError, ImportError), match=re.escape(problem)):
        PageRun("page.md", text, tmp_path).run()


def test_blocks_build_on_each_other(tmp_path: Path) -> None:
    text = (
        "```yaml file=x.yaml\nkey: 1\n```\n```python\nfrom pathlib import Path\nx = "
        "Path('x.yaml').read_text()\n```\n"
        "- in a list\n\n  ```python\n  print(x)\n  ```\n\n  ```text\n  key: ...\n  ```\n"
        "```console\n$ cat \\\n    x.yaml\nkey: 1\n```\n"
    )
    assert [block.language for block in blocks(text)] == ["yaml", "python", "python", "text", "console"]
    PageRun("page.md", text, tmp_path).run()


def test_commands_that_are_right_pass() -> None:
    check_command("mmagold campaign 'wgmma*' --dots 1e9 --out x.json   # a remark")
    check_command("make -C rtl_tb/examples/own_unit SIM=icarus")
    check_python("import golden\nfrom rtl_tb import DotProductTB\nfrom golden.publish import site\n")


@pytest.mark.long
@pytest.mark.parametrize(
    "terminal",
    [
        {"FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        {"COLUMNS": "20"},
    ],
    ids=str,
)
def test_pages_run_in_any_terminal(
    terminal: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in terminal.items():
        monkeypatch.setenv(name, value)
    study = (
        "The TF32 NaN that becomes infinity MMA-Sim (arXiv 2511.10909), sections IV-C and IV-F, "
        "...\n...\n \u2022 ...\n..."
    )
    text = (
        f"```console\n$ mmagold study tf32-nan --samples 100\n{study}\n$ mmagold formats\nformat "
        "...\n...\n```\n"
    )
    PageRun("page.md", text, tmp_path).run()
