"""The numbers of the instruction pages against the C core, the manifests,
the timing files and rational arithmetic."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import exact
import numpy as np
import pytest
import yaml
from long_run import long_after

import golden
from golden import stimuli
from golden.publish import document, instruction_page, variants
from golden.publish.explorer.address import INDEX
from golden.publish.families import Group, groups
from golden.publish.templating import Page
from golden.vectors import operand_files

ROOT = Path(__file__).parents[3]
PAGES = [
    "hopper/mma_f16-f32",
    "hopper/wgmma_fp8-f32",
    "hopper/mma_s8-s32-satfinite",
    "hopper/mma_fp8-f32",
    "ampere/mma_f16-f32",
    "volta/mma_m8n8k4_f16-f16",
    "ampere/mma_sp_tf32-f32",
    "rtx_blackwell/mma_sp_mxf4-f32",
    "blackwell/tcgen05_f8f6f4-f16",
    "cdna1/mfma_old-f32-from-f16-bf16",
    "cdna2/mfma_old-f64-from-f64",
    "cdna3/mfma_fp8-f32",
]


def group(path: str) -> Group:
    architecture, slug = path.split("/")
    return next(found for found in groups(architecture) if found.slug == slug)


@cache
def text(path: str) -> str:
    return instruction_page.write(*path.split("/"))


def section(path: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text(path), re.S | re.M)
    assert found is not None, (path, title)
    return found[1]


def rows(part: str) -> list[list[str]]:
    """The cells of every table row but heads and rules."""
    lines = [line for line in part.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [
        row
        for row, after in zip(cells, [*cells[1:], None], strict=True)
        if not _rule(row) and not (after and _rule(after))
    ]


def _rule(row: list[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)


def from_command(line: str) -> tuple[golden.Instruction, dict[str, Any]]:
    """The instruction and the operands of a `mmagold explain` line, read as the command line reads them."""
    words = shlex.split(line)
    assert words[:2] == ["mmagold", "explain"]
    ins = golden.instruction(*words[2].split(":", 1))
    given = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in zip(words[3::2], words[4::2], strict=True)
    }
    return ins, operand_files.from_text(
        ins, {**dict.fromkeys(operand_files.NAMES), "a": "", "b": "", "c": "0", **given}
    )


def test_every_name_is_on_exactly_one_page() -> None:
    listed = [page.path for page in instruction_page.pages()]
    assert len(listed) == len(set(listed)) > 340 and all(
        isinstance(page, Page) for page in instruction_page.pages()
    )
    total = 0
    for architecture in golden.architectures():
        known = {ins.name for ins in golden.instructions(architecture)}
        found = Counter(
            name
            for each in groups(architecture)
            for name in known & set(re.findall(r"[^\s|`]+", variants.variants(each)))
        )
        assert found == Counter(known), "a name is missing, or stands on two pages"
        total += len(known)
    assert total > 9000


@pytest.mark.parametrize("path", long_after(1, PAGES))
def test_sections_and_markdown(path: str) -> None:
    page = text(path)
    assert page.startswith(f"# {group(path).title}\n") and page.endswith("\n") and not page.endswith("\n\n")
    titles = re.findall(r"^## (.*)$", page, re.M)
    wanted = [
        "Variants",
        "Formats",
        "Computation",
        "Datapath",
        "Special values",
        "Example",
        "Against IEEE 754",
        "Fragments",
    ]
    assert titles[:8] == wanted and titles[-1] == "Evidence" and "Other architectures" in titles
    prose = re.sub(r"```.*?```|<figure.*?</figure>|None, all but one", "", page, flags=re.S)
    assert not re.search(r"\bNone\b|\bnan\b\.|[{}]|Fraction\(|dict_", prose)
    assert page.count("<svg") == page.count("</svg>") == page.count("<figcaption>")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "ids of two pictures collide"
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


@pytest.mark.parametrize("path", PAGES)
def test_special_values_are_what_the_core_answers(path: str) -> None:
    ins = group(path).representative
    found = rows(section(path, "Special values"))
    assert len(found) >= 4
    for row in found:
        operands = _operands(ins, row[1].strip("`"))
        code = int(re.match(r"`(0x[0-9a-f]+)`", row[2])[1], 16)  # type: ignore[index]
        assert int(ins.dot(**operands)) == code, row


def _operands(ins: golden.Instruction, reported: str) -> dict[str, Any]:
    """Reads a cell such as "a = 0x3c00, 0xbc00; b = 0x3c00 (16 times); c = 0x0"."""
    shapes = ins.operand_shapes(matrices=False)
    filled = {"metadata": 4} | {
        name: stimuli.one(ins.formats[name]) for name in shapes if name.startswith("scale")
    }
    given = {
        name: np.full(shape, filled.get(name, 0), np.uint8 if name == "metadata" else ins.formats[name].dtype)
        for name, shape in shapes.items()
    }
    for part in reported.split("; ") if reported != "all zero" else []:
        name, _, value = part.partition(" = ")
        if " at " in value:
            for code, places in re.findall(r"(0x[0-9a-f]+) at ([\d, -]+?)(?=, 0x|$)", value):
                for low, _, high in (place.partition("-") for place in places.split(", ")):
                    given[name][int(low) : int(high or low) + 1] = int(code, 16)
        elif (times := re.fullmatch(r"(0x[0-9a-f]+) \((\d+) times\)", value)) is not None:
            assert int(times[2]) == given[name].size
            given[name][:] = int(times[1], 16)
        else:
            codes = [int(code, 16) for code in value.split(", ")]
            if name == "c":
                given[name][...] = codes[0]
            else:
                given[name][: len(codes)] = codes
    return given


@pytest.mark.parametrize("path", PAGES)
def test_the_example_is_executed(path: str) -> None:
    """The command of the example gives the d of the trace above it, by the core;
    and it is the example's instruction."""
    part = section(path, "Example")
    ins, operands = from_command(re.search(r"^mmagold explain .*$", part, re.M)[0])  # type: ignore[index]
    reported = re.search(r"^d +(0x[0-9a-f]+)", part, re.M)
    assert ins is group(path).representative and reported is not None
    assert int(ins.dot(**operands)) == int(reported[1], 16)
    stored = operands["a"].shape[-1]
    products = np.count_nonzero(operands["a"]) if stored != operands["b"].shape[-1] else 0
    if not products:
        products = np.count_nonzero((operands["a"] != 0) & (operands["b"] != 0))
    assert products <= 4, "a telling example is short"


FLOAT_PAGES = [path for path in PAGES if "s32" not in path and "bf16" not in path and "sp_" not in path]


@pytest.mark.parametrize("path", FLOAT_PAGES)
def test_worst_errors_in_rationals(path: str) -> None:
    """Both printed errors recomputed from the printed commands without anything of the package but the
    answer d."""
    part = section(path, "Against IEEE 754")
    found = re.findall(r"^# (.*) ULP of (.*)\n(mmagold explain .*)$", part, re.M)
    assert len(found) == 2
    for reported, unit, line in found:
        ins, operands = from_command(line)
        fa, fb, fc, fd = (ins.formats[name].name for name in "abcd")
        products = [
            exact.decode(fa, int(x)).x * exact.decode(fb, int(y)).x
            for x, y in zip(operands["a"], operands["b"], strict=True)
        ]
        terms = [*products, exact.decode(fc, int(operands["c"])).x]
        total = sum(terms, Fraction(0))
        size = total if unit == "the exact sum" else max(abs(term) for term in terms)
        _, fraction_bits, bias, _ = exact.FLOATS[fd]
        ulp = exact.two(max(exact.log2_floor(size), 1 - bias) - fraction_bits)
        error = (exact.decode(fd, int(ins.dot(**operands))).x - total) / ulp
        if reported.startswith("about"):
            assert re.fullmatch(r"about [+-]2\^\d+", reported) and reported[6] == ("-" if error < 0 else "+")
            assert abs(exact.log2_floor(error) - int(reported.partition("^")[2])) <= 1
        else:
            assert float(reported.replace(",", "")) == pytest.approx(
                float(error), rel=6e-4, abs=0.5 if abs(error) > 10_000 else 0
            )


def test_evidence_is_the_manifest() -> None:
    manifest = json.loads((ROOT / "vectors" / "hopper" / "manifest.json").read_text())["instructions"]
    for path in ("hopper/wgmma_fp8-f32", "hopper/mma_f16-f32"):
        entries = {ins.name: manifest[ins.name] for ins in group(path).variants}
        part = section(path, "Evidence")
        total = sum(entry["dots"] for entry in entries.values())
        assert f"{total:,} results in {len(entries)} files" in part
        reported = {
            row[0].partition("](")[0].strip("[`"): row[1:] for row in rows(part) if row[0].startswith("[`")
        }
        assert reported.keys() == {entry["file"] for entry in entries.values()}
        for entry in entries.values():
            assert reported[entry["file"]] == [
                f"{entry['tiles']:,}",
                f"{entry['dots']:,}",
                f"`{entry['sha256']}`",
            ]
            assert f"(site:vectors/hopper/{entry['file']})" in part
    file = ROOT / "vectors" / "hopper" / "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.npz"
    assert hashlib.sha256(file.read_bytes()).hexdigest() in text("hopper/mma_f16-f32")


def test_campaigns_are_the_report() -> None:
    files = [
        ROOT / "docs" / "campaigns" / f"{name}.json" for name in ("hopper_h200", "hopper_h100_both_signs")
    ]
    names = {ins.name for ins in group("hopper/mma_f16-f32").variants}
    every = (campaign for path in files for campaign in json.loads(path.read_text())["campaigns"])
    mine = [campaign for campaign in every if campaign["instruction"] in names]
    total, wrong = (sum(campaign[key] for campaign in mine) for key in ("dots", "mismatches"))
    reported = f"compared on the device itself with the model's arithmetic, with {wrong:,} mismatches"
    assert f"{total:,} further dot products were {reported}" in text("hopper/mma_f16-f32")


@pytest.mark.parametrize("path", ["ampere/mma_f16-f32", "cdna3/mfma_fp8-f32", "blackwell/tcgen05_f8f6f4-f16"])
def test_only_hopper_claims_captured_results(path: str) -> None:
    part = section(path, "Evidence")
    assert "Captured vectors" not in part and "site:vectors" not in text(path)
    assert {row[0] for row in rows(part)} <= {"published", "derived"}
    assert "no vectors of this architecture are in this repository" in part


def test_timing_is_the_file() -> None:
    name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    lines = (ROOT / "spec" / "timing" / "hopper_h200.yaml").read_text().splitlines()
    # The rest of the file is large.
    mine = yaml.safe_load("\n".join(line for line in lines if f'"{name}"' in line))
    row = next(row for row in mine if "points" in row)
    best = max(row["points"], key=lambda point: point[3])
    part = rows(section("hopper/mma_f16-f32", "Timing"))
    reported = next(cells for cells in part if name in cells[0] and cells[1] == "NVIDIA H200")
    assert reported[2:4] == [f"{row['completion']:g}", f"{row['interval']:g}"]
    assert reported[4].startswith(f"{best[3]:,.1f} ") and reported[5] == f"{best[0]} warps, ILP {best[1]}"


def test_other_architectures_by_execution() -> None:
    """Where the page says "the same", both give the same bits; where it says "differs", some operands tell
    them apart."""
    checked = Counter[str]()
    for path in ("ampere/mma_f16-f32", "hopper/mma_f16-f32", "hopper/mma_fp8-f32", "turing/mma_s8-s32"):
        name, mine = group(path).representative.name, group(path).representative
        for row in rows(section(path, "Other architectures")):
            other = re.search(r"architectures/(\w+)\.md", row[0])
            if row[2] != "same name" or other is None:
                continue
            ins = (
                golden.instruction(other[1], name)
                if name in {i.name for i in golden.instructions(other[1])}
                else None
            )
            if ins is None:
                continue
            equal = all(
                np.array_equal(mine.dot(**operands), ins.dot(**operands))
                for kind in stimuli.SEARCH_KINDS
                for operands in [stimuli.generate(mine, kind, 200, np.random.default_rng(5))]
            )
            assert equal == row[4].startswith("the same"), (path, row)
            checked[row[4].split()[0].rstrip(":")] += 1
    assert checked["the"] >= 3 and checked["differs"] >= 4


def test_parameters_are_the_spec_s() -> None:
    table = {
        row[0].strip("`"): row[2]
        for row in rows(section("hopper/mma_f16-f32", "Computation"))
        if row[0].startswith("`")
    }
    assert table["fraction_bits"] == "25" and table["exponent_floor"] == "-133"
    meanings = [
        row[3] for path in PAGES for row in rows(section(path, "Computation")) if row[0].startswith("`")
    ]
    assert meanings and all(meanings), "a parameter without a meaning"


@pytest.mark.parametrize("path", long_after(3, PAGES))
def test_links_lead_to_pages_of_the_site(path: str) -> None:
    known = {page.path for page in instruction_page.pages()}
    group = next(one for one in groups(path.split("/")[0]) if one.path.endswith(f"{path}.md"))
    known.update(name for name, _ in document.files(group))
    for target in re.findall(r"\(site:([^)#]+)", text(path)):
        folder = target.split("/")[0]
        if folder == "instructions":
            assert target in known
        else:
            assert folder in ("architectures", "formats", "vectors") or target in (
                "timing.md",
                "campaign.md",
                "glossary.md",
                str(INDEX),
            ), target


def test_split_of_products_by_type() -> None:
    # MMA-Sim 2, E-FDPA: 4 products of f16 and 2 of bf16 for each rounding; K of both types is 4 and 8
    summary = text("cdna1/mfma_old-f32-from-f16-bf16").split("## Variants")[0]
    assert "f16: 8 products in 2 operations of 4;" in summary
    assert "bf16: 8 products in 4 operations of 2;" in summary
    assert "16 products in 2 operations of 8; 8 products in 1 operation of 8." in text("ampere/mma_f16-f32")


def test_amd_has_no_sass() -> None:
    assert "SASS" not in section("cdna3/mfma_fp8-f32", "Variants")
    assert "SASS" in section("hopper/mma_f16-f32", "Variants")


def test_emulated_fp8_differs_in_more_than_parameters() -> None:
    # c is added last by an IEEE addition; k mod 4 in 0, 1 comes before 2, 3
    found = {row[0]: row[-1] for row in rows(section("hopper/mma_fp8-f32", "Other architectures"))}
    for name in ("NVIDIA Ada Lovelace", "NVIDIA RTX Blackwell"):
        cell = next(value for key, value in found.items() if name + "]" in key)
        assert cell.startswith("differs") and "FDA of 16 (k = 2-3, 6-7, ..), then ieee add" in cell, cell


def test_widths_of_every_operand_type() -> None:
    # NVFP4: two significands of 4 bits scale the group, and 4 x 16 x 36 x (15/8)^2 + 2 < 2^13; ue8m0 scales
    # need 12 bits
    pages = ("rtx_blackwell/mma_sp_mxf4-f32", "rtx_blackwell/mma_sp_mxf4-f32-ue4m3-32")
    parts = [section(page, "Datapath") for page in pages]
    totals = [next(row for row in rows(part) if row[:2] == ["sum", "total"]) for part in parts]
    assert [row[4] for row in totals] == ["12", "13"]
    assert "As wide as any" not in section("hopper/mma_f16-f32", "Datapath")


def test_metadata_codes_are_those_of_the_ptx_text() -> None:
    assert "one of 0x4, 0x8, 0x9, 0xc, 0xd, 0xe; the two" in text("rtx_blackwell/mma_sp_mxf4-f32")
    assert "0x4: the first is stored, 0xe: the second; it is one of 0x4, 0xe." in text(
        "ampere/mma_sp_tf32-f32"
    )
    assert "drawn for sparsity selector 0" in text("ampere/mma_sp_tf32-f32")
    assert "drawn for byte-id 0 and thread-id 0" in text("rtx_blackwell/mma_sp_mxf4-f32")


def test_fragments_are_of_the_instruction_of_the_page() -> None:
    for page in ("hopper/mma_fp8-f32", "ampere/mma_bf16-f32", "cdna1/mfma_old-f32-from-f16-bf16"):
        assert f"The registers of `{group(page).representative.name}`" in section(page, "Fragments")


def test_an_installation_without_vectors_does_not_say_that_none_were_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hopper, volta = golden.instruction("hopper:HMMA.16816.F32"), golden.instruction("volta:HMMA.884.F32.F32")
    assert variants.captured_cell([hopper]).startswith("[3,968]")
    monkeypatch.setattr(variants, "checkout", lambda: None)
    monkeypatch.setattr(variants, "manifest", lambda _: {})
    assert variants.captured_cell([hopper]) == "not in this installation"
    assert variants.captured_cell([volta]) == "none"
