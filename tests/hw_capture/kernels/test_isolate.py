"""Cutting a PTX instruction out of its kernel: written machine code with every way to be fooled."""

import pytest

from golden.catalog.ptx_forms import Form
from hw_capture.errors import SassError
from hw_capture.kernels.isolate import Frame, Isolated, isolate
from hw_capture.kernels.ptx_module import PREDICATE_MARK, STRIDE, Case, width

ADD = Form("add.u32", "", ("u32",), ("u32", "u32"), "add.u32 $d, $a, $b", ("rr",), ("7", "7"))
SETP = Form("setp.ne.u32", "", ("pred",), ("u32", "u32"), "setp.ne.u32 $d, $a, $b", ("rr",), ("7", "7"))
SELP = Form("selp.b32", "", ("b32",), ("b32", "pred"), "", ("rr",), ("7", ""))
BAR = Form("bar.warp.sync", "", (), ("b32",), "bar.warp.sync $a", ("i",), ("1",))
HEAD = ["MOV R1, c[0x0][0x28]", "S2R R0, SR_TID.Y", f"IMAD R0, R0, {STRIDE:#x}, RZ", "LDS R9, [R0+0xf0]"]
END = ["STS [R0+0x1f0], R9", ".L_x_1:", "EXIT", ".L_x_0:", "BRA `(.L_x_0)", "NOP", "NOP", ".L_x_2:"]
FRAME = Frame.of([*HEAD, *END])
LOADS = ["LDS R2, [R0]", "LDS R3, [R0+0x10]"]
STORE = "STS [R0+0x100], R4"


def _cut(form: Form, *body: str, kinds: str = "rr") -> Isolated:
    return isolate(Case(form, kinds), [*HEAD, *body, *END], FRAME)


def test_the_instruction_is_what_the_result_depends_on() -> None:
    found = _cut(ADD, *LOADS, "IADD3 R4, R2, R3, RZ", STORE)
    assert found == Isolated(("IADD3",)) and not found.constant


def test_several_instructions_stand_in_their_order() -> None:
    body = ("LOP3.LUT R5, R2, 0xffff, RZ, 0xc0, !PT", "IMAD R4, R5, R3, RZ")
    assert _cut(ADD, *LOADS, *body, STORE).names == ("LOP3.LUT", "IMAD")


def test_one_that_is_folded_away_is_nothing_and_no_constant() -> None:
    found = _cut(ADD, *LOADS, "STS [R0+0x100], R2")
    assert found.names == () and found.untouched == "b" and not found.constant


@pytest.mark.parametrize(
    "body",
    [("MOV R4, 0x7", STORE), ("STS [R0+0x100], RZ",), ("MOV R5, 0x3", "IADD3 R4, R5, 0x4, RZ", STORE)],
)
def test_a_result_that_the_compiler_knew_is_a_constant(body: tuple[str, ...]) -> None:
    """Loads that nothing uses are there all the same, because they are volatile."""
    assert _cut(ADD, *LOADS, *body).constant


def test_a_register_that_was_written_again_is_not_the_operand() -> None:
    assert _cut(ADD, *LOADS, "MOV R2, 0x7", "IADD3 R4, R2, 0x1, RZ", STORE).constant


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ((*LOADS, "MOV R6, 0x1", "IADD3 R4, R2, R3, RZ", STORE), "'MOV R6, 0x1' is not the frame's"),
        (
            (*LOADS, "S2R R6, SR_LANEID", "IADD3 R4, R2, R3, RZ", STORE),
            "'S2R R6, SR_LANEID' is not the frame's",
        ),
        (
            (LOADS[0], "IADD3 R4, R2, R2, RZ", STORE),
            r"loads at \[0, 240\] and stores at \[0, 240\], expected \[0, 16",
        ),
        ((*LOADS, "IADD3 R4, R2, R3, RZ"), r"loads at .* stores at \[240\], expected"),
        ((*LOADS, STORE, STORE, "IADD3 R4, R2, R3, RZ"), r"loads at .* stores at \[0, 0, 240\], expected"),
        ((*LOADS, "@P0 EXIT", "IADD3 R4, R2, R3, RZ", STORE), "loads at"),
    ],
)
def test_what_is_not_accounted_for_is_an_error(body: tuple[str, ...], said: str) -> None:
    with pytest.raises(SassError, match=rf"add.u32 \(rr\): {said}"):
        _cut(ADD, *body)


def test_what_is_computed_from_operands_for_nothing_counts() -> None:
    body = ("IADD.64 R4, R2, R2", "IADD3.X R7, PT, PT, RZ, ~R5, RZ, P1, !PT")
    assert _cut(ADD, *LOADS, *body, STORE).names == ("IADD.64", "IADD3.X")


def test_pairs_of_registers_are_followed_as_both() -> None:
    form = Form("mul.wide.u32", "", ("u64",), ("u32", "u32"), "", ("rr",), ("7", "7"))
    body = ("IMAD.WIDE.U32 R4, R2, R3, RZ", "IADD3 R7, R5, 0x1, RZ", "MOV R6, R4", "STS.64 [R0+0x100], R6")
    assert _cut(form, *LOADS, *body).names == ("IMAD.WIDE.U32", "IADD3", "MOV")


def test_a_predicate_result_guards_its_store() -> None:
    body = ("ISETP.NE.AND P0, PT, R2, R3, PT", "@P0 STS [R0+0x100], R9")
    assert _cut(SETP, *LOADS, *body).names == ("ISETP.NE.AND",)
    assert _cut(SETP, *LOADS, "STS [R0+0x100], R9").constant  # always true
    assert _cut(SETP, *LOADS).constant  # never


def test_the_comparison_that_makes_a_predicate_is_the_frames() -> None:
    mark = f"ISETP.NE.U32.AND P0, PT, R3, {PREDICATE_MARK:#x}, PT"
    assert _cut(SELP, *LOADS, mark, "SEL R4, R2, RZ, P0", STORE).names == ("SEL",)
    assert _cut(SELP, *LOADS, mark, "STS [R0+0x100], R2").untouched == "b"


def test_a_subroutine_is_reported_with_its_length() -> None:
    listing = [
        *HEAD,
        *LOADS,
        "MOV R8, 0xf0",
        "CALL.REL.NOINC `($__internal_3_$__cuda_sm20_div_u64)",
        STORE,
        "STS [R0+0x1f0], R9",
        "EXIT",
        "$__internal_3_$__cuda_sm20_div_u64:",
        "IMAD R4, R2, R3, RZ",
        ".L_x_7:",
        "RET.REL.NODEC R8 `(f0)",
        ".L_x_0:",
        "BRA `(.L_x_0)",
        "NOP",
    ]
    with pytest.raises(
        SassError, match="loads at"
    ):  # behind the way out there is nothing but what is jumped to
        isolate(Case(ADD, "rr"), [*listing[:8], *listing[9:]], FRAME)
    found = isolate(Case(ADD, "rr"), listing, FRAME)
    assert found.names == ("MOV", "CALL.REL.NOINC")
    assert found.routines == {"__cuda_sm20_div_u64": ("IMAD", "RET.REL.NODEC")}


def test_kernel_parameters_are_operands_and_other_constants_are_not() -> None:
    fetched = ("ULDC UR4, c[0x0][0x160]", "ULDC UR5, c[0x0][0x164]")
    body = (*fetched, "UIADD3 UR4, UR4, UR5, URZ", "MOV R4, UR4", STORE)
    assert _cut(ADD, *body, kinds="uu").names == ("UIADD3",)
    folded = ("ULDC UR4, c[0x0][0x160]", "MOV R5, UR4", "IADD3 R4, R5, c[0x0][0x164], RZ", STORE)
    assert _cut(ADD, *folded, kinds="uu").names == ("MOV", "IADD3")
    special = Form("mov.u32 %nctaid.x", "", ("u32",), (), "", ("",), ())
    assert _cut(special, "MOV R4, c[0x0][0xc]", STORE, kinds="").names == ("MOV",)


def test_what_the_warp_decides_is_no_constant() -> None:
    elect = Form("elect.sync", "", ("b32",), ("b32",), "", ("i",), ("0xffffffff",))
    assert _cut(elect, "ELECT P0, UR4, PT", "MOV R4, UR4", STORE, kinds="i").names == ("ELECT", "MOV")
    assert not _cut(elect, "S2R R4, SR_LANEID", STORE, kinds="i").constant
    assert _cut(elect, "MOV R4, 0x1", STORE, kinds="i").constant


def test_an_effect_is_all_that_is_not_the_frames() -> None:
    assert _cut(BAR, "NOP", kinds="i").names == ("NOP",)
    assert _cut(ADD, *LOADS, "NOP", "IADD3 R4, R2, R3, RZ", STORE).names == ("IADD3",)


@pytest.mark.parametrize(
    ("type_", "bits"),
    [("u8", 16), ("f16", 16), ("bf16x2", 32), ("f32x2", 64), ("e4m3x2", 16), ("e4m3x4", 32), ("e2m1x2", 8)],
)
def test_register_of_a_type(type_: str, bits: int) -> None:
    assert width(type_) == bits
    with pytest.raises(ValueError, match="'e9' is no type of PTX"):
        width("e9")
