"""What ptxas makes of scalar PTX: the recorded tables, what reads them, and the comparison with the paper."""

import re
import shutil
from pathlib import Path

import pytest

from golden.catalog import ptx_forms, sass, sass_published
from golden.errors import SpecError, UnknownNameError

TARGETS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a"]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for suffix in ("csv", "yaml"):
        shutil.copy(sass.folder() / f"sm_90a.{suffix}", tmp_path)
    return tmp_path


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_holds_the_forms_of_the_list_and_no_others(target: str) -> None:
    forms = {form.name: form for form in ptx_forms.load().forms}
    table = sass.load(target)
    assert sass.targets() == TARGETS
    for (name, operands), row in table.rows.items():
        assert operands in forms[name].kinds and name not in table.refused
        assert sass.counted(part for part, n in row.counts.items() for _ in range(n)) == row.sass
        assert all(routine in table.routines for routine, _ in row.calls)
    assert set(table.refused) <= set(forms)
    loaded = {name for name, operands in table.rows if set(operands) <= {"r", "i"}}
    constants = {"mov.f32; neg.f32", "mov.f32; abs.f32"}
    assert loaded | constants | set(table.refused) == set(forms)  # nothing else is computed by the compiler


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_folded_and_what_is_computed_is_what_can_be(target: str) -> None:
    """A shuffle of a value that all threads share once went as nothing, an election as a constant."""
    table = sass.load(target)
    for form in ptx_forms.load().forms:
        for operands in form.kinds:
            row = table.row(form.name, operands)
            if row is None and form.name not in table.refused:
                assert "z" in operands or form.name in ("mov.f32; neg.f32", "mov.f32; abs.f32")
            left_out = target == "sm_75" and re.match(r"cvt[.]r[nz][.]satfinite[.]f16[.]f32", form.name)
            if row is not None and row.sass == sass.NONE and "z" not in operands and not left_out:
                assert re.match(r"mov[.]|cvta[.]|cvt[.]\w+[.]\w+$|(and|or|xor|not)[.]pred", form.name)


def test_every_form_is_an_instruction_of_some_target() -> None:
    refused = [set(sass.load(target).refused) for target in TARGETS]
    assert set.intersection(*refused) == set()


@pytest.mark.parametrize(
    ("ptx", "operands", "target", "machine"),
    [  # public knowledge: CUDA's binary utilities list these instructions, Table V of the paper the pairs
        ("mad.lo.u32", "rrr", "sm_75", "IMAD"),
        ("fma.rn.f32", "rrr", "sm_120a", "FFMA"),
        ("fma.rn.f64", "rrr", "sm_80", "DFMA"),
        ("dp4a.u32.u32", "rrr", "sm_86", "IDP.4A.U8.U8"),
        ("tanh.approx.f32", "r", "sm_89", "MUFU.TANH"),
        ("bfind.u32", "r", "sm_80", "FLO.U32"),
        ("min.s32", "rr", "sm_80", "IMNMX"),
        ("min.s32", "rr", "sm_90a", "VIMNMX"),
        ("bar.warp.sync", "i", "sm_80", "NOP"),
        ("shfl.sync.idx.b32", "riii", "sm_90a", "SHFL.IDX"),
        ("add.u32", "rz", "sm_90a", "none"),
    ],
)
def test_some_rows_that_are_known(ptx: str, operands: str, target: str, machine: str) -> None:
    row = sass.load(target).row(ptx, operands)
    assert row is not None and row.sass == machine


def test_what_the_compiler_computes_has_no_row() -> None:
    for target in TARGETS:
        assert sass.load(target).row("mul.lo.u32", "rz") is None  # x times 0
        assert sass.load(target).row("neg.f32", "z") is None


def test_a_division_calls_a_subroutine() -> None:
    row = sass.load("sm_90a").row("div.u64", "rr")
    assert row is not None
    ((name, length),) = row.calls
    routine = sass.parse(sass.load("sm_90a").routines[name])
    assert name == "__cuda_sm20_div_u64" and length > 50
    assert routine["MUFU.RCP"] == 1 and "CALL.REL.NOINC" in row.counts


@pytest.mark.parametrize("text", ["", "IMAD+", "2*", "IMAD+IMAD", "imad", "x*IMAD", "IMAD FFMA"])
def test_text_that_is_no_machine_code(text: str) -> None:
    with pytest.raises(ValueError, match="is no mnemonic with its number"):
        sass.parse(text)


def test_find() -> None:
    assert [form.name for form in sass.find("mad.lo.u32")] == ["mad.lo.u32"]
    assert {form.name for form in sass.find("lop3.b32")} >= {"lop3.b32 0x80", "lop3.b32 0x96"}
    assert len(sass.find("testp")) == 12
    for carried in ("add.cc.u32", "addc.u32"):
        assert [form.name for form in sass.find(carried)] == [
            "add.cc.u32; addc.u32",
            "add.cc.u32; addc.cc.u32; addc.u32",
        ]
    assert [form.name for form in sass.find("neg.f32")] == ["neg.f32"]  # no sequence where it is one itself
    with pytest.raises(
        UnknownNameError, match=r"no scalar PTX instruction 'mad\.lo\.u31'; nearest: mad\.lo\.u32"
    ):
        sass.find("mad.lo.u31")


def test_targets() -> None:
    assert sass.targets_of("hopper") == ["sm_90a"] and sass.targets_of("ampere") == ["sm_80", "sm_86"]
    with pytest.raises(
        UnknownNameError, match=r"no SASS recorded for 'sm_90', expected one of sm_75, .*; nearest"
    ):
        sass.targets_of("sm_90")
    with pytest.raises(UnknownNameError, match="no SASS recorded for 'volta'"):
        sass.targets_of("volta")
    assert sass.targets_text(["sm_75", "sm_80", "sm_86"], TARGETS) == "sm_75 to sm_86"
    assert sass.targets_text(["sm_75", "sm_86"], TARGETS) == "sm_75, sm_86"
    assert sass.targets_text(["sm_75", "sm_80", "sm_86", "sm_120a"], TARGETS) == "sm_75 to sm_86, sm_120a"
    assert sass.targets_text(TARGETS, TARGETS) == "all"


def test_a_written_table_is_read_as_it_was(copied: Path) -> None:
    table = sass.load("sm_90a")
    sass.write(table, copied / "again")
    assert sass.load("sm_90a", copied / "again") == sass.load("sm_90a")
    for suffix in ("csv", "yaml"):
        name = f"sm_90a.{suffix}"
        assert (copied / "again" / name).read_text("utf-8") == (sass.folder() / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ptx,operands", "ptx,operand", "csv:1: expected the columns ptx, operands, sass, calls"),
        ("mad.lo.u32,rrr,IMAD,", "mad.lo.u32,rrr,imad,", "csv:[0-9]+: 'imad' in 'imad' is no mnemonic"),
        ("mad.lo.u32,rrr,IMAD,", "mad.lo.u32,rrr,IMAD", "csv:[0-9]+: not enough values"),
        (
            "mad.lo.u32,rri,",
            "mad.lo.u32,rrr,",
            "csv:[0-9]+: 'mad.lo.u32' with operands 'rrr' stands there twice",
        ),
        ("mad.lo.u32,rrr,IMAD,", "mad.lo.u32,rrr,IMAD,f", "csv:[0-9]+: 'f' is no subroutine"),
    ],
)
def test_a_damaged_table_says_where(copied: Path, old: str, new: str, said: str) -> None:
    path = copied / "sm_90a.csv"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(SpecError, match=said):
        sass.load("sm_90a", copied)


def test_a_change_of_one_row_is_the_difference(copied: Path) -> None:
    path = copied / "sm_90a.csv"
    changed = path.read_text("utf-8").replace("mad.lo.u32,rrr,IMAD,", "mad.lo.u32,rrr,FFMA,")
    path.write_text(re.sub(r"(?m)^popc\.b32,r,.*\n", "", changed), "utf-8")
    sass.load.cache_clear()
    differences = sass.differences(sass.load("sm_90a"), sass.load("sm_90a", copied))
    assert differences == [
        "mad.lo.u32 (rrr): IMAD was recorded, now FFMA",
        "popc.b32 (r): POPC was recorded, now no row",
    ]
    assert sass.differences(sass.load("sm_90a"), sass.load("sm_90a")) == []


# The paper --------------------------------------------------------------------------------------------------


def test_every_row_of_table_v_is_judged() -> None:
    rows = sass_published.table_v()
    assert len(rows) == 110 and {row.verdict for row in rows} == set(sass_published.VERDICTS)
    assert all(row.operands or not row.ours.startswith("none") for row in rows)
    by_name = {row.ptx: row for row in rows}
    assert by_name["mul.rn.f32"].verdict == sass_published.SAME
    assert by_name["add.u64"].verdict == sass_published.SAME and by_name["add.u64"].operands == "uu"
    assert by_name["mad.lo.u32"].verdict == sass_published.OTHER  # FFMA is printed for an integer instruction
    assert by_name["sqrt.rn.f32"].verdict == sass_published.SEVERAL


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        ("2*LOP3.LUT+IMAD", "2*LOP3.LUT+IMAD", sass_published.SAME),
        ("FADD or IMAD.MOV.U32 *", "FADD", sass_published.SAME),
        ("DADD+(UMOV)", "DADD", sass_published.SAME),
        ("UIADD3", "IADD3", sass_published.ALIKE),
        ("IMAD.MOV.U32+IDP.4A.U8.U8", "HFMA2.MMA+IDP.4A.U8.U8", sass_published.ALIKE),
        ("IMAD", "IMAD+IADD3", sass_published.OTHER),
        ("FFMA", "none", sass_published.OTHER),
        ("multiple instructions", "FADD+FMUL", sass_published.SEVERAL),
        ("multiple instructions", "FADD", sass_published.OTHER),
        ("[multiple instrs including MUFU.RSQ]", "FADD+MUFU.RSQ64H", sass_published.SEVERAL),
        ("[multiple instrs including MUFU.RSQ]", "FADD+MUFU.RCP", sass_published.OTHER),
    ],
)
def test_verdicts(printed: str, ours: str, verdict: str) -> None:
    assert sass_published._verdict(printed, sass.Row("x", "r", ours)) == verdict


def test_a_half_addition_is_no_move() -> None:
    """HFMA2.MMA writes constants where no half is computed, and is the instruction itself where one is."""
    assert sass_published.operation("HFMA2.MMA", "dp4a.u32.u32") == "MOV"
    assert sass_published.operation("HFMA2.MMA", "add.f16x2") == "HFMA2.MMA"
    assert sass_published.operation("UIADD3.X", "add.u64") == "IADD3"


def test_insights_are_looked_up_for_every_target() -> None:
    found = sass_published.insights()
    assert [one.number for one in found] == [1, 2, 3, 4, 5, 6]
    assert all(list(one.found) == TARGETS for one in found)
    assert all("mad.lo.u32: IMAD;" in text for text in found[0].found.values())
    assert all("constant: computed by the compiler" in text for text in found[2].found.values())
    pairs = {row.ptx: signed.ptx for row, signed in sass_published.twins(sass.load("sm_80"))}
    assert pairs["bfind.u32"] == "bfind.s32" and pairs["cvt.rn.f32.u64"] == "cvt.rn.f32.s64"
    assert "add.f32" not in pairs and "popc.b32" not in pairs
