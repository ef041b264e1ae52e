"""Families say what nobody reads out of a name; the next vendor is YAML alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from long_run import long_after

from golden import yamlfile
from golden.catalog.architectures import architectures, get_architecture
from golden.catalog.families import SHARED, families, read_families
from golden.catalog.lookup import instruction
from golden.errors import SpecError
from golden.paths import spec_folder

ROOT = Path(__file__).parents[3]
TEXT = """\
source: a manual
vendor: NVIDIA
lanes: 32
families:
  toy:
    name: "toy.{shape}.{a}{rnd}{size}"
    title: "toy {shapes}"
    formats: {a: "{a}", b: f16, c: f32, d: f32}
    layout: mma
    sparse: "2:4"
    metadata_order: {variable: size, values: {"": any, .big: ascending}}
    scale_block: {variable: size, values: {"": 16, .big: 32}}
    places: {a: [registers, shared], b: shared}
    order: {a: col}
    plain: {rnd: ""}
    toolkit: "13.1"
    variants:
      - {shape: m16n8k16, a: [f16, bf16], rnd: ["", .rz], size: ["", .big]}
      - {shape: "m16n{n}k16", n: {from: 8, to: 24, step: 8}, a: f16, rnd: .rn, size: ""}
"""


def read(text: str = TEXT) -> object:
    return read_families(yamlfile.parse(text, "toy.yaml"))["toy"]


def test_traits_of_variants() -> None:
    family = read_families(yamlfile.parse(TEXT))["toy"]
    first, last = family.variants[1], family.variants[-1]
    assert family.spellings(first) == ("toy.m16n8k16.f16.big",)
    traits = family.traits(first)
    assert (traits.lanes, traits.toolkit, traits.swept, traits.kernel) == (32, "13.1", True, None)
    assert traits.places_of("a") == ("registers", "shared") and traits.places_of("b") == ("shared",)
    assert traits.places_of("c") == ("registers",)
    assert [traits.by_column(operand) for operand in "abcd"] == [True, True, False, False]
    assert family.ordered(first) and not family.ordered(last)
    assert family.traits(family.variants[2]).modifiers == ("rz",) and family.traits(last).modifiers == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lanes: 32", "lanes: 0x", r"toy\.yaml:3: key 'lanes' is '0x', expected an integer"),
        ("lanes: 32\n", "", r"key 'lanes' is missing"),
        ("lanes: 32", "lane: 32", r"toy\.yaml:3: unknown key 'lane', expected one of .*nearest: lanes"),
        ("vendor: NVIDIA", "vendor: NVIDA", r"toy\.yaml:2: .*'NVIDA', expected one of .*nearest: NVIDIA"),
        (".{a}{rnd}", ".{aa}{rnd}", r"toy\.yaml:6: key 'name' .*'aa' is no variable of family toy"),
        ("{shapes}", "{shaped}", r"toy\.yaml:7: key 'title' .*'shaped'.*nearest: shape"),
        ('a: "{a}"', 'a: "{b}"', r"toy\.yaml:8: key 'formats' .*'b' is no variable"),
        ("layout: mma", "layout: mna", r"toy\.yaml:9: key 'layout' is 'mna', expected one of .*nearest: mma"),
        ('sparse: "2:4"', "sparse: true", r"toy\.yaml:10: key 'sparse' is True, expected one of"),
        ('sparse: "2:4"', 'sparse: "4:2"', r"toy\.yaml:10: key 'sparse' is '4:2', expected one of 2:4"),
        ("any, ", "anything, ", r"toy\.yaml:11: key 'metadata_order' holds 'anything'"),
        ('variable: size, values: {"": 16', 'variable: sise, values: {"": 16', r"toy\.yaml:12: 'sise' is no"),
        ('"": 16, ', "", r"toy\.yaml:12: no value for size = ''"),
        ("b: shared", "b: shard", r"toy\.yaml:13: key 'b' is 'shard', expected one of .*"),
        ("b: shared", "e: shared", r"toy\.yaml:13: key 'e', expected one of a, b, c, d"),
        ("a: col", "a: column", r"toy\.yaml:14: key 'a' gives 'column', expected row or col"),
        ('rnd: ""', 'rdn: ""', r"toy\.yaml:15: unknown key 'rdn', expected one of .*nearest: rnd"),
        ('["", .rz]', '["", .rx]', r"variable 'rnd' is '\.rx', and 'modifiers' of NVIDIA .* has '', '\.rn'"),
        (
            "toolkit:",
            "toolkits:",
            r"toy\.yaml:16: unknown key 'toolkits', expected one of .*nearest: toolkit",
        ),
    ],
)
def test_mistakes_say_where_and_what(old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(SpecError, match=words) as caught:
        read(TEXT.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_the_page_lists_every_key() -> None:
    """docs/add-an-architecture.md: the table of keys is that of the reader, stars and all."""
    page = (ROOT / "docs" / "add-an-architecture.md").read_text("utf-8")
    table = page[page.index("keys: family") : page.index("## Check it")]
    rows = dict(re.findall(r"^\| `(\w+)` (\*?) *\|", table, re.M))
    with pytest.raises(SpecError) as caught:
        read(TEXT.replace("plain:", "unknown_key: 1\n    plain:"))
    known = re.search(r"expected one of (.*?)(;|$| \()", str(caught.value))
    assert known is not None and set(known[1].split(", ")) == rows.keys()
    assert {key for key, star in rows.items() if star} == set(SHARED)


@pytest.mark.parametrize("architecture", architectures())
def test_layouts_have_the_lanes_of_the_families(architecture: str) -> None:
    names = get_architecture(architecture).names()
    for entry in get_architecture(architecture).entries:
        name = next(name for name, (listed, _) in names.items() if listed is entry)
        assert (instruction(architecture, name).fragments is not None) == (entry.layout is not None)


def test_no_code_branches_on_a_name() -> None:
    """A vendor's, an architecture's or a family's name decides nothing. (The generators of hw_capture have
    names: the key `kernel`; so have its tables of timings: groups.)"""
    names = {*families(), *architectures(), "NVIDIA", "AMD", "v_mfma", "wgmma", "wmma", "tcgen05", "mfma"}
    words = "|".join(sorted(names))
    pattern = re.compile(rf"""(?:startswith\(|[=!]= *|\bin *)\(?["'](?:{words})[."'_]""")
    found = [
        f"{path}:{number}"
        for folder in ("golden", "hw_capture", "rtl_tb")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "studies" not in path.parts
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line) and not re.search(r"\b(traits\.kernel|group|opaque)\b", line)
    ]
    assert not found


# A vendor that nobody has heard of --------------------------------------------------------------------------

NEW = {
    "vendors/acme.yaml": """\
vendor: ACME
source: its manual
labels: {lane: [W, work item], register: [q, tile row]}
modifiers: {sat: {"": "", s: saturating}}
constants: {integers: [{from: 1, to: 2, first: 0, step: 1}], floats: {3: 0x3F800000}}
""",
    "layouts/acme_wave.yaml": """\
layout: acme_wave
title: wave fragments
source: its manual
evidence: {kind: published}
lanes: 16
operands:
  a: &factor
    - {when: "m == 16", shape: [m, k], registers: "k // W", row: "L", col: "i"}
  b:
    - {when: "n == 16", shape: [k, n], registers: "k // W", row: "i", col: "L"}
  c: &sum
    - {when: "n == 16", shape: [m, n], registers: "m // W", row: "i", col: "L"}
  d: *sum
""",
    "families/acme.yaml": """\
source: its manual
vendor: ACME
families:
  acme_tile:
    name: "tdp{a}ps"
    title: "tile dot products {shapes}"
    formats: {a: "{a}", b: "{a}", c: f32, d: f32}
    lanes: 1
    in_place: true
    places: {a: tiles, b: tiles, c: tiles, d: tiles}
    placement: Operands lie in tile registers of 16 rows of 64 bytes.
    variants: [{shape: 16x16x32, a: [bf16, f16]}]
  acme_wave:
    name: "w_dot_{shape}{sat}_w{wave}"
    also_named: ["w_dot{sat}_{shape}_w{wave}"]
    title: "w_dot {shapes}"
    formats: {a: s8, b: s8, c: s32, d: s32}
    layout: acme_wave
    lanes: {variable: wave}
    variants: [{shape: 16x16x16, wave: 16, sat: ["", s]}]
""",
    "architectures/acme1.yaml": """\
architecture: acme1
title: ACME One
vendor: ACME
order: 50
targets: [acme1]
devices: [One]
source: its manual
programs:
  chain: [{sfma: {nan_order: []}}]
  sum: [{integer_dot_add: {overflow: {variable: sat, values: {"": wrap, s: saturate}}}}]
instructions:
  - {family: acme_tile, program: chain, evidence: {kind: published, source: its manual}}
  - {family: acme_wave, program: sum, evidence: {kind: published, source: its manual}}
""",
}
SCRIPT = """
import json, numpy as np, golden
from golden.catalog.architectures import get_architecture
from golden.publish import architecture_page, families, instruction_page
from golden.publish.pictures import fragments
from hw_capture.kernels import kernels

tile = golden.instruction("acme1", "tdpbf16ps")
wave = golden.instruction("acme1", "w_dots_16x16x16_w16")
rng = np.random.default_rng(1)
a, b = rng.integers(-128, 128, (2, 16, 16)).astype(np.int8).view(np.uint8)
layout = wave.fragments.a
groups = {group.slug: group for group in families.groups("acme1")}
print(json.dumps({
    "short": get_architecture("acme1").short_title,
    "one": hex(int(tile.dot(np.full(32, 0x3F80, np.uint16), np.full(32, 0x3F80, np.uint16), np.uint32(0)))),
    "same": wave.name == golden.instruction("acme1", "w_dot_16x16x16s_w16").name,
    "exact": bool((wave(a, b, np.zeros((16, 16), np.uint32)).view(np.int32)
                   == a.view(np.int8).astype(int) @ b.view(np.int8).astype(int)).all()),
    "modifiers": wave.traits.modifiers, "lanes": [tile.traits.lanes, wave.traits.lanes],
    "packed": bool((layout.unpack(layout.pack(a)) == a).all()), "tile": tile.fragments is None,
    "slugs": sorted(groups), "titles": [group.title for group in groups.values()],
    "kernel": kernels.supported(tile) or kernels.supported(wave),
    "page": architecture_page.markdown("acme1"), "index": architecture_page.index(),
    "tile page": instruction_page.markdown(groups["acme_tile-f32"]),
    "legend": fragments.matrix(wave, "a", "x"),
}))
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the spec with the new vendor's files, and nothing else changed."""
    folder = tmp_path_factory.mktemp("acme") / "spec"
    shutil.copytree(spec_folder(), folder)
    for name, text in NEW.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def run(acme: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"MMAGOLD_SPEC": str(acme)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_a_new_vendor_needs_no_code(acme: Path) -> None:
    said = json.loads(run(acme, "-c", SCRIPT))
    assert said["short"] == "One" and said["one"] == "0x42000000" and said["same"] and said["exact"]
    assert said["modifiers"] == ["saturating"] and said["lanes"] == [1, 16]
    assert said["packed"] and said["tile"] and not said["kernel"]
    assert said["slugs"] == ["acme_tile-f32", "acme_wave-s32", "acme_wave-s32-saturating"]
    assert "tile dot products m16n16k32: bf16 x bf16 or f16 x f16 + f32" in said["titles"]
    assert "| Instructions | ACME name |" in said["page"] and "`tdpbf16ps`" in said["page"]
    lines = ("AMD CDNA", "AMD RDNA", "Intel", "Arm", "RISC-V", "ACME")
    assert ", then ".join(f"{line} by age" for line in lines) in said["index"]
    assert "tile registers of 16 rows of 64 bytes" in said["tile page"]
    assert "work item" in said["legend"] and "tile row" in said["legend"]


def test_commands_know_the_new_vendor(acme: Path) -> None:
    assert "ok: 4 instructions of acme1 compile" in run(
        acme, "-m", "mmagold", "spec", "check", str(acme / "architectures" / "acme1.yaml")
    )
    assert "sfma" in run(acme, "-m", "mmagold", "show", "acme1:tdpf16ps")


VENDOR, FAMILIES, CHIP = "vendors/acme.yaml", "families/acme.yaml", "architectures/acme1.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    long_after(
        4,
        [
            (
                VENDOR,
                "[W, work item]",
                "W",
                r"acme\.yaml:3: key 'lane' must be a letter and what it stands for",
            ),
            (VENDOR, "labels:", "lables:", r"acme\.yaml:1: key 'labels' is missing.*nearest: lables"),
            (
                VENDOR,
                "integers: [",
                "integers: [5, ",
                r"acme\.yaml:5: key 'integers' holds 5, expected {from, to",
            ),
            (
                VENDOR,
                "floats: {3:",
                "floats: {x:",
                r"acme\.yaml:5: key 'x' is no selector, expected 0 to 511",
            ),
            (CHIP, "vendor: ACME", "vendor: ACNE", r"acme1\.yaml:3: key 'vendor' is 'ACNE'.*nearest: ACME"),
            (FAMILIES, "layout: acme_wave", "layout: mma", r"layout 'mma' is one of 32 lanes, .* has 16"),
            (
                CHIP,
                "acme_tile,",
                'acme_tile, sass: ["X.{E}"],',
                r"acme1\.yaml:12: key 'sass' holds '\{E\}', .* A, B",
            ),
        ],
    ),
)
def test_mistakes_of_a_new_vendor(
    acme: Path, tmp_path: Path, file: str, old: str, new: str, words: str
) -> None:
    shutil.copytree(acme, tmp_path / "spec")
    path = tmp_path / "spec" / file
    assert old in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    command = "import golden; [ins.fragments for ins in golden.instructions('acme1')]"
    done = subprocess.run(
        [sys.executable, "-c", command],
        env=os.environ | {"MMAGOLD_SPEC": str(tmp_path / "spec")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert re.search(words, done.stderr.splitlines()[-1]), done.stderr
