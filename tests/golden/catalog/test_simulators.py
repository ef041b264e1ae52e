"""Cycle counts as simulators read them."""

import pytest

from golden.catalog import sass, simulators, timing
from golden.catalog.simulators import fragment, get_simulator
from golden.catalog.timing import Figure, Key
from golden.errors import UnknownNameError

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
UNITS = {
    "int": ("IADD3", "IMAD", "IMNMX", "VIMNMX"),
    "sp": ("FADD", "FMUL", "FFMA", "FMNMX"),
    "fp": ("FADD", "FMUL", "FFMA", "FMNMX"),
    "dp": ("DADD", "DMUL", "DFMA"),
    "sfu": ("MUFU",),
}
"""The opcodes of Accel-Sim's units, from its ISA_Def/ampere_opcode.h (VIMNMX is Hopper's IMNMX)."""


def _figure(instruction: str, quantity: str, value: float, variant: str = "") -> Figure:
    return Figure(
        Key(instruction, variant, quantity), value, value, "cycles", "a GPU", "hopper", "a test", "x"
    )


def test_an_option_has_the_figures_of_its_instructions_in_their_order() -> None:
    figures = [
        _figure("fma.rn.f32", "completion_latency", 4.03),
        _figure("fma.rn.f32", "completion_latency", 99.0),  # a later file does not count
        _figure("fma.rn.f32", "issue_interval", 2.01),
        _figure(MMA, "completion_latency", 31.9, "A"),
        _figure(MMA, "completion_latency", 24.05),
        _figure(MMA, "issue_interval", 0.4),
    ]
    made = fragment("accel-sim", figures)
    lines = [line for line in made.text.splitlines() if not line.startswith("#")]
    assert lines == [
        "-trace_opcode_latency_initiation_sp 4,2",
        "-trace_opcode_latency_initiation_tensor 24,1",
        "-trace_opcode_latency_initiation_spec_op_3 24,1",
    ]
    assert made.written == 3 and len(made.missing) == 3
    assert "# -trace_opcode_latency_initiation_int: no completion latency of mad.lo.u32" in made.text


@pytest.mark.parametrize("name", simulators.simulators())
def test_both_boards_have_every_option_and_the_same_whole_numbers(name: str) -> None:
    made = [
        fragment(name, [figure for part in ("", "_scalar") for figure in timing.load(f"{board}{part}")])
        for board in ("hopper_h100", "hopper_h200")
    ]
    lines = [[line for line in one.text.splitlines() if not line.startswith("#")] for one in made]
    assert lines[0] == lines[1] and not any(one.missing for one in made)
    assert made[0].written == len(get_simulator(name).options)


def test_one_missing_figure_leaves_out_its_option() -> None:
    names = ["add.s32", "max.s32", "mul.lo.s32", "mad.lo.s32", "div.u32"]
    figures = [_figure(name, "completion_latency", 4 + n) for n, name in enumerate(names)]
    assert "\n-ptx_opcode_latency_int 4,5,6,7,8\n" in fragment("gpgpu-sim", figures).text
    assert "\n-ptx_opcode_latency_int" not in fragment("gpgpu-sim", figures[:-1]).text


@pytest.mark.parametrize("name", simulators.simulators())
def test_every_instruction_is_one_of_its_unit(name: str) -> None:
    """What stands for a unit runs there, and alone; divisions are several, as the simulators say of them."""
    for option in get_simulator(name).options:
        unit = next((unit for unit in UNITS if option.name.endswith(f"_{unit}")), None)
        for instruction in option.instructions:
            if instruction == MMA or instruction.startswith("div") or instruction == "max.f64":
                continue
            row = sass.load("sm_90a").row(instruction, "r" * len(sass.find(instruction)[0].inputs))
            assert row is not None and unit is not None
            ((opcode, count),) = row.counts.items()
            assert opcode.split(".")[0] in UNITS[unit] and count == 1


def test_an_interval_follows_from_the_highest_throughput() -> None:
    """Of the published A100: 24.7 cycles; 4 * 2048 products at 1004.2 a cycle are one every 8.16 cycles."""
    made = fragment("accel-sim", timing.load("sun_a100"))
    lines = [line for line in made.text.splitlines() if not line.startswith("#")]
    assert lines == [
        "-trace_opcode_latency_initiation_tensor 25,8",
        "-trace_opcode_latency_initiation_spec_op_3 25,8",
    ]
    assert f"# the interval of {MMA}: 4 sub-cores * 2048 FMA / 1004.2 FMA/clk/SM" in made.text
    assert [line.split(":")[0].rsplit("_", 1)[-1] for line in made.missing] == ["int", "sp", "dp", "sfu"]


def test_an_interval_that_was_measured_comes_first() -> None:
    rate = Figure(Key(MMA, "", "throughput"), 512.0, 512.0, "FMA/clk/SM", "a GPU", "hopper", "a test", "x")
    figures = [_figure(MMA, "completion_latency", 24), rate]
    assert "\n-trace_opcode_latency_initiation_tensor 24,16\n" in fragment("accel-sim", figures).text
    text = fragment("accel-sim", [*figures, _figure(MMA, "issue_interval", 9)]).text
    assert "\n-trace_opcode_latency_initiation_tensor 24,9\n" in text and "sub-cores" not in text


def test_a_simulator_that_is_not_there() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown simulator 'acel-sim', .*; nearest: accel-sim"):
        fragment("acel-sim", [])
