"""Words that people use for cards and types: each means what its source says, and none means two things."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
import yaml

import golden
from golden.catalog import architectures
from golden.catalog.lookup import resolve
from golden.catalog.resolver import Resolver, resolver
from golden.errors import SpecError, UnknownNameError
from golden.number.format_words import format_word, format_words, plain_word

SPEC = Path(__file__).parents[3] / "spec"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


@pytest.mark.parametrize("name", golden.architectures())
def test_targets_and_devices_mean_their_architecture(name: str) -> None:
    document = yaml.safe_load((SPEC / "architectures" / f"{name}.yaml").read_text("utf-8"))
    for word in (
        name,
        document["title"],
        *document["targets"],
        *document["devices"],
        *document.get("also_named", []),
    ):
        for spelt in (word, word.upper(), word.replace(" ", "-"), word.replace(" ", "").lower()):
            assert resolver().meant(spelt) == name, spelt


@pytest.mark.parametrize(
    ("card", "name"),
    [
        ("h100", "hopper"),
        ("RTX 5090", "rtx_blackwell"),
        ("sm_90", "hopper"),
        ("b200", "blackwell"),
        ("mi300x", "cdna3"),
        ("a100", "ampere"),
        ("l4", "ada"),
        ("v100", "volta"),
        ("t4", "turing"),
    ],
)
def test_cards_in_python(card: str, name: str) -> None:
    first = golden.instructions(name)[0]
    assert golden.instruction(card, first.name) is first
    assert golden.instructions(card)[0].architecture == name
    assert resolve(f"{card}:{first.name}") is resolve(first.name, card) is first


def test_a_card_that_nobody_named_is_refused_with_what_is_near() -> None:
    for ask in (lambda: golden.instruction("b300", NVFP4), lambda: golden.instructions("b300")):
        with pytest.raises(UnknownNameError, match=r"unknown architecture 'b300'.*nearest: b200"):
            ask()
    with pytest.raises(UnknownNameError, match=r"expected one of .*hopper"):
        architectures.get_architecture("h100")  # below the door names are names


@pytest.mark.parametrize(
    ("word", "parts", "others"),
    [  # what stands in the names of all that a word finds, and what in none
        ("nvfp4", ("e2m1", "scale_vec::4X", "ue4m3"), ("e4m3.f32", "ue8m0")),
        ("mxfp4", ("e2m1", "ue8m0"), ("4X", "ue4m3")),  # 4X: one scale for 16, which no MX type has
        ("mxfp8", ("ue8m0", "mxf8f6f4"), ("4X", "kind::mxf4")),
        ("binary", ("b1",), ()),
    ],
)
def test_types_of_block_scales(word: str, parts: tuple[str, ...], others: tuple[str, ...]) -> None:
    for name in ("blackwell", "rtx_blackwell", "turing"):
        found = list(resolver().search(name, word))
        assert bool(found) == (word == "binary") or (name != "turing" and found)
        assert all(part in full for full in found for part in parts), word
        assert not any(part in full for full in found for part in others), word


def test_fp8_is_that_of_the_vendor() -> None:
    for card in ("h100", "mi300x"):
        found = [golden.instruction(card, full) for full in resolver().search(resolver().called(card), "fp8")]
        types = {ins.formats[operand].name for ins in found for operand in "ab"}
        assert types == ({"e4m3", "e5m2"} if card == "h100" else {"e4m3fnuz", "e5m2fnuz"})


def test_several_words_have_to_fit_together() -> None:
    assert list(resolver().search("hopper", "16816.f32 h200 fp16 hmma.sp")) == [
        name for name in resolver().search("hopper", "HMMA.SP.16816.F32") if ".f16.f16." in name
    ]
    assert list(resolver().search("ampere", "h200 fp16")) == []
    assert resolver().split("b200:nvfp4 kind::mxf4") == ["b200", "nvfp4", "kind::mxf4"]


def test_types_are_a_name_only_where_one_instruction_has_them() -> None:
    assert golden.instruction("granite_rapids", "half").name == "tdpfp16ps"
    with pytest.raises(
        UnknownNameError, match=r"'nvfp4' names 2 instructions of rtx_blackwell: mma\.sync.*mma\.sp[^;]*$"
    ):
        golden.instruction("rtx5090", "nvfp4")
    many = r"'nvfp4' names 48 instructions of blackwell: tcgen05.*; mmagold list blackwell nvfp4 lists them$"
    with pytest.raises(UnknownNameError, match=many):
        golden.instruction("b200", "nvfp4")
    with pytest.raises(UnknownNameError, match=r"names or types of 6, such as mma\.sync.*mxf4nvf4"):
        golden.instruction("rtx5090", "mxf4nvf4")  # a part of a name names nothing, however few have it
    with pytest.raises(
        UnknownNameError, match=r"is no instruction .* such as .*granite_rapids:|such as volta:"
    ):
        resolve("half")  # one architecture has a single instruction of that type; others have more


def test_words_of_types() -> None:
    assert format_word("FP-16") == format_word("half") == format_word("float16") == format_word("f16")
    assert format_word("float8_e4m3fn").formats == ("e4m3",)  # type: ignore[union-attr]
    assert format_word("bfloat16").formats == ("bf16",) and format_word("h100") is None  # type: ignore[union-attr]
    with pytest.raises(UnknownNameError, match="unknown format 'half', here it is called f16"):
        golden.get_format("half")
    assert not {plain_word(word) for word in format_words()} & {
        plain_word(word)
        for name in golden.architectures()
        for word in architectures.get_architecture(name).words
    }, "a word that means a card and a type"


@pytest.mark.parametrize(
    ("file", "old", "new", "reported"),
    [
        ("architectures/ada.yaml", "also_named: [", "also_named: [h100, ", "'h100' means ada as well"),
        ("formats/words.yaml", "half:        {", "bf16:        {", "'bf16' is a format"),
        ("formats/words.yaml", "half:        {formats: [f16]}", "half: {formats: [f61]}", "'f61'"),
        ("formats/words.yaml", "scales: ue4m3, block", "block", "needs both of 'scales' and 'block'"),
        ("formats/words.yaml", "scales: ue4m3", "scale: ue4m3", "scale"),
    ],
)
def test_wrong_words_are_reported_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, reported: str
) -> None:
    import shutil

    shutil.copytree(SPEC, tmp_path / "spec")
    path = tmp_path / "spec" / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    monkeypatch.setenv("MMAGOLD_SPEC", str(tmp_path / "spec"))
    # fresh caches, not emptied ones: names and instructions hold entries of what was read before
    for one in (architectures._document, architectures._files, architectures.get_architecture):
        monkeypatch.setattr(architectures, one.__name__, lru_cache(one.__wrapped__))
    format_words.cache_clear()
    try:
        with pytest.raises(SpecError, match=reported):
            fresh: Resolver = Resolver()
            list(fresh.search(fresh.called("ada"), "nvfp4"))
            fresh.called("sm_999")
    except UnknownNameError as error:
        pytest.fail(str(error))
    finally:
        monkeypatch.undo()
        format_words.cache_clear()


@pytest.mark.parametrize("word", ["nvfp4", "mxfp4", "fp8", "e4m3"])
def test_a_type_in_the_place_of_an_architecture_says_how_to_list_it(word: str) -> None:
    """It was taken for a misspelt chip: nvfp4 for navi48."""
    with pytest.raises(UnknownNameError) as caught:
        golden.instructions(word)
    assert str(caught.value).endswith(
        f"'{word}' is a type of operands: mmagold list {word} lists the instructions that have it"
    )


def test_an_architecture_in_the_place_of_an_instruction_says_how_to_list_it() -> None:
    listed = "'b200' is blackwell, an architecture: mmagold list b200"
    with pytest.raises(UnknownNameError, match=listed):
        resolve("b200")
    with pytest.raises(UnknownNameError, match=listed):
        golden.instruction("hopper", "b200")
    with pytest.raises(UnknownNameError, match="'b200' is another architecture"):
        golden.instruction("hopper", f"b200:{NVFP4}")
