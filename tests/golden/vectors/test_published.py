"""Words that others recorded on hardware, through both models: not one bit may differ."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import golden
from golden.errors import FileFormatError, UnknownNameError
from golden.vectors import published

WORDS = {
    "rdna3": {
        "v_dot2_f32_f16": 50,
        "v_dot2_f32_bf16": 53,
        "v_wmma_f32": 512,
        "v_wmma_f16": 384,
        "v_wmma_bf16": 112,
    },
    "rdna4": {
        "v_dot2_f32_f16": 50,
        "v_dot2_f32_bf16": 71,
        "v_wmma_f32": 48,
        "v_wmma_f16": 384,
        "v_wmma_bf16": 128,
    },
}


@pytest.mark.parametrize("architecture", WORDS)
def test_recorded_words(architecture: str) -> None:
    counts = dict.fromkeys(WORDS[architecture], 0)
    for vector in published.load(architecture):
        ins = golden.instruction(architecture, vector.name)
        got = ins(**vector.operands) if vector.whole else ins.dot(**vector.operands)
        assert np.array_equal(got, vector.d), vector.name
        for i in range(0, 0 if vector.whole else len(vector.d), 3):
            operands = {name: codes[i] for name, codes in vector.operands.items()}
            assert ins.reference_dot(**operands) == vector.d[i], (vector.name, i)
        counts[next(name for name in counts if vector.name.startswith(name))] += vector.d.size
        assert "MIT" in vector.licence and "rocm-systems" in vector.source
    assert counts == WORDS[architecture]


def test_they_tell_the_two_waves_of_rdna4_apart() -> None:
    """Each order of k fails on the words of the other."""
    for vector in published.load("rdna4"):
        if "_w32" in vector.name and "v_wmma" in vector.name:
            other = golden.instruction("rdna4", vector.name.replace("_w32", "_w64"))
            assert not np.array_equal(other.dot(**vector.operands), vector.d)


def test_recorded_digests_of_integers() -> None:
    """98,304 words of gfx1201, many of them clamped twice: registers in, a digest of registers out."""
    checked, name, sample = 0, "", 0
    for line in (published.vectors_folder() / "published/rdna4_integer_digests.txt").read_text().splitlines():
        if line.startswith(("#", "v_")):
            name, sample = line, 0
            continue
        operands, c = recorded_registers(sample)
        for modifiers, digest in enumerate(line.split()):
            ins = golden.instruction("rdna4", modified(name, modifiers))
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


def modified(name: str, modifiers: int) -> str:
    bits = "4" if "iu4" in name else "8"
    signs = f".{'us'[modifiers & 1]}{bits}.{'us'[modifiers >> 1 & 1]}{bits}" if modifiers & 3 else ""
    return name + signs + (".clamp" if modifiers & 4 else "")


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


def test_architectures_and_unknown_ones() -> None:
    assert published.architectures() == sorted(WORDS)
    with pytest.raises(UnknownNameError, match=r"no published words of 'rdna2'.*nearest: rdna"):
        next(published.load("rdna2"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4200 4800 |", "4200 |", "1 codes in a row, expected 2"),
        ("4200 4800 |", "4200 480 |", "code '480', expected 4 hexadecimal digits"),
        ("4200 4800 |", "4200 48g0 |", "no hexadecimal number"),
        ("| 425c0001", "", "expected four fields: a | b | c | d"),
    ],
)
def test_a_damaged_file(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "published"
    shutil.copytree(published.vectors_folder() / "published", folder)
    file = folder / "rdna3.yaml"
    file.write_text(file.read_text().replace(old, new, 1))
    monkeypatch.setattr(published, "vectors_folder", lambda: tmp_path)
    with pytest.raises(FileFormatError, match=message.replace("|", r"\|")):
        list(published.load("rdna3"))
