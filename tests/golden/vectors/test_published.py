"""Words that others recorded on hardware, through both models: not one bit may differ."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after

import golden
from golden.catalog.source_modifiers import inline_constant
from golden.errors import FileFormatError, SpecError, UnknownNameError
from golden.registers.layouts import Layout
from golden.vectors import published

WORDS = {
    "rdna3": {
        "v_dot2_f32_f16": 50,
        "v_dot2_f32_bf16": 53,
        "v_wmma_f32": 512,
        "v_wmma_f16": 3584,
        "v_wmma_bf16": 3584,
    },
    "rdna4": {
        "v_dot2_f32_f16": 50,
        "v_dot2_f32_bf16": 71,
        "v_wmma_f32": 48,
        "v_wmma_f16": 3584,
        "v_wmma_bf16": 3584,
    },
    "tensix_wormhole": {"mvmul.f32.bf16.bf16": 647, "mvmul.bf16.bf16.bf16": 228},
    "tensix_blackhole": {"mvmul.f32.bf16.bf16": 650, "mvmul.bf16.bf16.bf16": 228},
    "blackwell": {
        "tcgen05.mma.cta_group::1.kind::tf32": 9,
        "tcgen05.mma.cta_group::1.kind::f16": 17,
        "tcgen05.mma.cta_group::1.kind::f8f6f4": 20,
        "tcgen05.mma.cta_group::1.kind::i8": 8,
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4": 2,
        "tcgen05.mma.cta_group::1.kind::mxf4.": 1,
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4": 6,
    },
}
ORIGIN = {
    "blac": ("MIT", "sf-tensor"),
    "rdna": ("MIT", "rocm-systems"),
    "tens": ("Apache-2.0", "tenstorrent/ttsim 1.10.0"),
}


@pytest.mark.parametrize("architecture", WORDS)
def test_recorded_words(architecture: str) -> None:
    counts = dict.fromkeys(WORDS[architecture], 0)
    for vector in published.load(architecture):
        ins = golden.instruction(architecture, vector.name)
        got = ins(**vector.operands) if vector.whole else ins.dot(**vector.operands)
        assert np.array_equal(got, vector.d), vector.name
        for place in by_the_reference(vector):
            assert ins.reference_dot(**operands_of(vector, place)) == vector.d[place], (vector.name, place)
        counts[next(name for name in counts if vector.name.startswith(name))] += vector.d.size
        licence, source = ORIGIN[architecture[:4]]
        assert licence in vector.licence and source in vector.source
    assert counts == WORDS[architecture]


def by_the_reference(vector: published.Published) -> list[tuple[int, ...]]:
    """Every third dot product; of a whole product five elements, each of another row and column."""
    return (
        [(i, (3 * i + 1) % 16) for i in range(0, 15, 3)]
        if vector.whole
        else [(i,) for i in range(0, len(vector.d), 3)]
    )


def operands_of(vector: published.Published, place: tuple[int, ...]) -> dict[str, np.ndarray]:
    if not vector.whole:
        return {name: codes[place] for name, codes in vector.operands.items()}
    row, column = place
    codes = vector.operands
    return {"a": codes["a"][row], "b": codes["b"][:, column], "c": codes["c"][row, column]}


def test_they_distinguish_wormhole_from_blackhole() -> None:
    """A sum of exactly -1 unit, with Dst of 32 bits: 2^27 times as much, so -2^(e - 23) is -2^(e + 4)."""
    counts = {}
    for vector in published.load("tensix_wormhole"):
        other = golden.instruction("tensix_blackhole", vector.name).dot(**vector.operands)
        differ = other != vector.d
        counts[vector.name.removeprefix("mvmul.")] = int(differ.sum())
        if vector.name == "mvmul.f32.bf16.bf16.lofi":
            assert (vector.d[differ] - other[differ] == 27 << 23).all() and (
                vector.d[differ] >> 31 == 1
            ).all()
    single = {"lofi": 30, "phase1": 5, "phase2": 7, "phase3": 9, "hifi4": 30}
    narrow = {"bf16.bf16.bf16.lofi": 0, "bf16.bf16.bf16.hifi4": 0}
    assert counts == {f"f32.bf16.bf16.{name}": count for name, count in single.items()} | narrow


def test_they_distinguish_the_two_waves_of_rdna4() -> None:
    """Each order of k fails on the words of the other."""
    differ: dict[str, int] = {}
    for vector in published.load("rdna4"):
        if "_w32" in vector.name and "v_wmma" in vector.name:
            other = golden.instruction("rdna4", vector.name.replace("_w32", "_w64"))
            got = other(**vector.operands) if vector.whole else other.dot(**vector.operands)
            differ[vector.name] = differ.get(vector.name, 0) + int((got != vector.d).sum())
    assert len(differ) == 4 and all(differ.values()), differ


def test_recorded_digests_of_integers() -> None:
    """98,304 words of gfx1201, many of them clamped twice: registers in, a digest of registers out."""
    checked, name, sample = 0, "", 0
    for line in (published.vectors_folder() / "published/rdna4_integer_digests.txt").read_text().splitlines():
        if line.startswith(("#", "v_")):
            name, sample = line, 0
            continue
        operands, c = recorded_registers(sample)
        for modifiers, digest in enumerate(line.split()):
            fields = golden.Modifiers(neg_lo=modifiers & 3, clamp=bool(modifiers & 4))
            ins = golden.modified(golden.instruction("rdna4", name), fields).instruction
            held, count = ins.fragments, ins.fragments.a.registers
            tiles = (
                held.a.unpack(operands[:, :count]),
                held.b.unpack(operands[:, 2 : 2 + count]),
                held.c.unpack(c),
            )
            assert fnv1a(held.d.pack(ins(*tiles)).T) == int(digest, 16), (ins.name, sample)
            checked += 1
        sample += 1
    assert checked == 3 * 16 * 8


def recorded_registers(sample: int) -> tuple[np.ndarray, np.ndarray]:
    """What the recording ran on, (lanes, registers): words of xorshift32, c near the limits."""
    state = 0xA3987412 + sample

    def word() -> int:
        nonlocal state
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        return state

    near = (0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFF80, 0x80000080)
    operands = [[word() for _ in range(32)] for _ in range(6)]
    c = [[near[word() % 6] for _ in range(32)] for _ in range(8)]
    return np.array(operands, np.uint32).T, np.array(c, np.uint32).T


def fnv1a(words: np.ndarray) -> int:
    digest = 0xCBF29CE484222325
    for byte in np.ascontiguousarray(words, "<u4").tobytes():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


@pytest.mark.parametrize(
    ("architecture", "wave"), long_after(2, [("rdna3", 32), ("rdna4", 64), ("rdna3", 64), ("rdna4", 32)])
)
def test_recorded_encodings(architecture: str, wave: int) -> None:
    """NEG, NEG_HI, OPSEL, OPSEL_HI, CLAMP and inline constants: registers in, registers out."""
    encodings = list(published.encodings(architecture))
    for one in encodings:
        assert replayed(architecture, wave, one) == {one.after}, [hex(word) for word in one.words]
        assert "MIT" in one.licence and "rocm-systems" in one.source
    assert len(encodings) == 440 and len(list(published.encodings("hopper"))) == 0


def replayed(architecture: str, wave: int, one: published.Encoding) -> set[int]:
    """The words in the registers of D afterwards."""
    ins = golden.instruction(architecture, f"{one.name}_w{wave}")
    unit = golden.modified(ins, golden.Modifiers.decode(*one.words))
    held = ins.fragments
    a, b = (layout.unpack(filled(layout, word)) for layout, word in ((held.a, one.a), (held.b, one.b)))
    read, written = unit.half(held.c), unit.half(held.d)
    c = read.unpack(filled(read, one.c))
    if one.constant is not None:
        c[:] = inline_constant(ins, "c", one.constant)
    kept = filled(written, one.before) & ~written.pack(np.full((16, 16), 0xFFFF, np.uint16))
    return set((kept | written.pack(unit(a, b, c))).ravel().tolist())


def filled(layout: Layout, word: int) -> np.ndarray:
    return np.full((layout.lanes, layout.registers), word, np.uint32)


def test_the_recorded_encodings_are_all_of_their_fields() -> None:
    """What the replay would not see of a slip in copying: every combination of signs and of selections."""
    recorded = list(published.encodings("rdna3"))
    assert len({(one.name, one.a, one.b, one.c, one.constant is None) for one in recorded}) == 4
    words = [(one.name, *one.words) for one in recorded]
    assert {(low & 0xFF8000FF, high & 0x3FFFF) for _, low, high in words} == {(0xCC000018, 0x21100)}
    for name in {name for name, _, _ in words}:
        mine = [(low & 0xFF00, high) for one, low, high in words if one == name]
        signs = [
            (neg_hi << 8 | half << 13 | 1 << 14, neg << 29 | 0x1C421100)
            for half in (0, 1)
            for neg_hi in range(8)
            for neg in range(8)
        ]
        selections = [
            (op_sel << 11 | high << 14, chosen << 27 | 0x04421100)
            for op_sel in range(8)
            for high in (0, 1)
            for chosen in range(4)
        ]
        selectors = [128, 129, 144, 192, 193, 208, 240, 241, 242, 243, 244, 246, 248]
        constants = [
            (half << 13 | 1 << 14, selector << 18 | 0x18021100) for half in (0, 1) for selector in selectors
        ]
        clamped = [(half << 13 | 3 << 14, 0x1C421100) for half in (0, 1)]
        assert sorted(mine) == sorted(signs + selections + constants + clamped), name


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1a021100 |", "1a02110 |", "expected words of eight digits: low high | a | b | c | d | d"),
        ("cc424018 1a021100 |", "cc444018 1a021100 |", "operation 44 is not in 'operations'"),
    ],
)
def test_damaged_encodings(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage("modifiers/packed_operands.yaml", old, new, tmp_path, monkeypatch)
    with pytest.raises(FileFormatError, match=message.replace("|", r"\|")):
        list(published.encodings("rdna4"))


def test_architectures_and_unknown_ones() -> None:
    assert published.architectures() == sorted(WORDS)
    with pytest.raises(UnknownNameError, match=r"no published words of 'rdna2'.*nearest: rdna"):
        next(published.load("rdna2"))


def damage(name: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the words be read from a copy, one of whose files says `new` once where it said `old`."""
    folder = tmp_path / "published"
    shutil.copytree(published.vectors_folder() / "published", folder)
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    monkeypatch.setattr(published, "vectors_folder", lambda: tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4200 4800 |", "4200 |", "1 codes in a row, expected 2"),
        ("4200 4800 |", "4200 480 |", "code '480', expected 4 hexadecimal digits"),
        ("4200 4800 |", "4200 48g0 |", "no hexadecimal number"),
        ("| 425c0001", "", "expected 4 fields: a | b | c | d"),
    ],
)
def test_a_damaged_file(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage("rdna3.yaml", old, new, tmp_path, monkeypatch)
    with pytest.raises(FileFormatError, match=message.replace("|", r"\|")):
        list(published.load("rdna3"))


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("5e3c e595 6036", "5e3c 6036", FileFormatError, "w32: f16_0: 15 codes in a row, expected 16"),
        ("380b cc95", "380b c95", FileFormatError, "code 'c95', expected 4 hexadecimal digits"),
        ("        f16_0: |", "        f16_9: |", SpecError, "key 'f16_9' is missing"),
        ("    device: AMD", "    devise: AMD", SpecError, "key 'device' is missing; nearest: devise"),
    ],
)
def test_damaged_matrices(
    old: str, new: str, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage("matrices/packed_wmma.yaml", old, new, tmp_path, monkeypatch)
    with pytest.raises(error, match=message):
        list(published.load("rdna3"))
