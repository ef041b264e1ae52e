"""Units in VHDL behind the cocotb engine, in GHDL: sound ones pass, and faults and attempts to pass do
not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.cli.app import app
from rtl_tb import engines
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.errors import RtlError

UNITS = Path(__file__).parents[1] / "vhdl_units"
pytestmark = pytest.mark.skipif(
    shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl"
)


@pytest.fixture
def checked(tmp_path):
    """Checks one of the units with (before, after) replaced in its text."""

    def run(unit, *changes, count=300, **options):
        folder = tmp_path / "units"
        shutil.copytree(UNITS, folder, dirs_exist_ok=True)
        file = folder / f"{unit}.vhd"
        text = file.read_text()
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file.write_text(text)
        options = {"explain": False, "failures": None} | options
        return check(folder / f"{unit}.yaml", Options(count=count, build=tmp_path / "build", **options))

    return run


LONG = pytest.mark.long
SOUND = [
    pytest.param("rz_sum", marks=LONG),
    "ieee_mul",
    pytest.param("sum_of_bytes", marks=LONG),
    "split_mac",
]
FAULTS = {
    "ieee_mul": [
        ("(sticky = '1' or kept(0) = '1')", "true"),
        ("      sticky := sticky or wide(i);", "      null;"),
        ("or (is_infinite(b) and is_zero(a)) ", ""),
        ('return sign & "000" & x"0000000"', 'return "0000" & x"0000000"'),
    ],
    "rz_sum": [
        ("sign(TERMS) <= c(31)", "sign(TERMS) <= '0'"),
        ("        if sign(k) = '1' then", "        aligned(0) := '0';\n        if sign(k) = '1' then"),
        ("      return unsigned('0' & fraction);", "      return to_unsigned(0, fraction'length + 1);"),
        ("nan <= any_nan or (any_plus and any_minus)", "nan <= any_nan"),
    ],
    "sum_of_bytes": [
        ('held <= X"80000000"', "held <= total(31 downto 0)"),
        ("a(15 downto 8) * b(15 downto 8)", "a(15 downto 8) * b(7 downto 0)"),
        ("products when clear = '1' else", "products when clear = '1' and valid = '1' else"),
        ("      held <= (others => '0');\n", ""),
    ],
    "split_mac": [  # later, bits, unused of an operand and of a result, exclude
        ("      y <= resize(resize(product, 17) + c, 32);", "      y <= resize(product + c, 32);"),
        ("(a_high & signed(a_low))", "(signed(a_low) & a_high)"),
        ("17) + c, 32)", "17) + c, 32) and to_signed(16#1ffff#, 32)"),
        ("        least <= '1';", "        null;"),
    ],
}


@pytest.mark.parametrize("unit", SOUND)
def test_a_sound_unit_passes(checked, unit):
    result = checked(unit)
    assert result.passed, result.as_dict()
    assert result.verdict.outcome.engine == "cocotb" and result.verdict.outcome.simulator == "ghdl"
    assert not [note for note in result.notes if "GHDL's synthesis refuses" not in note]


@pytest.mark.parametrize(
    ("unit", "fault"),
    [
        pytest.param(unit, fault, id=f"{unit}{i}", marks=[LONG] * ((unit, i) != ("ieee_mul", 0)))
        for unit, faults in FAULTS.items()
        for i, fault in enumerate(faults)
    ],
)
def test_a_fault_is_found(checked, unit, fault):
    result = checked(unit, fault, count=2_000)
    others = [failure for failure in result.verdict.outcome.failures if failure.kind == "other_output"]
    assert not result.passed and (result.verdict.wrong.any() or others)


@LONG
@pytest.mark.parametrize("port", ["valid_in", "ready_in", "valid_out", "ready_out"])
def test_a_signal_that_is_active_the_other_way_is_named(checked, port):
    text = (UNITS / "sum_of_bytes.vhd").read_text()
    changes = {
        "valid_in": [
            ("valid <= valid_in;", "valid <= not valid_in;"),
            ("if valid_in = '1'", "if valid_in = '0'"),
        ],
        "ready_in": [("ready_in or not valid", "not ready_in or not valid")],
        "valid_out": [("valid_out <= valid;", "valid_out <= not valid;")],
        "ready_out": [("ready_out <= running;", "ready_out <= not running;")],
    }[port]
    assert all(text.count(before) == 1 for before, _ in changes)
    result = checked("sum_of_bytes", *changes, explain=True, timeout_cycles=200)
    assert not result.passed and result.diagnosis is None
    assert len(result.hints) == 1 and f"'{port}' is active low, not high" in result.hints[0]


BODY = "begin\n  running <= ready_in or not valid;\n"
"""Where the architecture of sum_of_bytes begins."""


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ('wait for 3 us; assert false report "own check" severity failure;', "own check"),
        pytest.param('wait for 3 us; report "own report" severity error; wait;', "own report", marks=LONG),
    ],
)
def test_what_the_unit_complains_of_is_no_verdict(checked, statements, message):
    """Nor is an early end: both are status 2 at the command line."""
    with pytest.raises(RtlError, match=message):
        checked("sum_of_bytes", (BODY, BODY + f"  process begin {statements} end process;\n"))


@LONG
@pytest.mark.parametrize("end", ["finish", "stop"])
def test_a_unit_that_ends_the_simulation_does_not_pass(checked, end):
    early = f"  process begin wait for 3 us; std.env.{end}; end process;\nend architecture;\n"
    with pytest.raises(RtlError, match="ended without an answer"):
        checked("ieee_mul", ("end architecture;\n", early))


@LONG
@pytest.mark.parametrize("bit", ["U", "X", "Z", "W", "-"])
def test_every_bit_that_is_no_level_is_wrong_and_named(checked, bit):
    result = checked(
        "ieee_mul",
        (
            "    return sign & std_logic_vector(kept(30 downto 0));",
            f"    return '{bit}' & std_logic_vector(kept(30 downto 0));",
        ),
    )
    assert not result.passed and result.verdict.unknown.any()
    assert any("neither 0 nor 1: '" in note for note in result.notes)


@LONG
def test_a_signal_that_nothing_drives_is_found_though_its_u_is_hidden(checked):
    """to_bit takes 'U' for 0 without a word; with a 1 in its place the results change."""
    used = ("  valid_out <= valid;", "  valid_out <= valid or to_stdulogic(to_bit(never));")
    result = checked("sum_of_bytes", ("signal valid, running :", "signal valid, running, never :"), used)
    assert not result.passed and result.unset is not None
    assert "never" in result.unset.sentence


@LONG
@pytest.mark.parametrize("kind", ["integer range 0 to 3", "boolean", 'std_logic_vector(1 downto 0) := "00"'])
def test_what_nothing_assigns_is_named_whatever_its_type(checked, kind):
    """An integer or a boolean begins with a value, and shows no 'U'."""
    is_zero = {"i": "never = 0", "b": "not never", "s": 'never = "00"'}[kind[0]]
    result = checked(
        "rz_sum",
        (
            "  signal nan, plus, minus : std_logic;",
            f"  signal nan, plus, minus : std_logic;\n  signal never : {kind};",
        ),
        ("      if nan = '1' then", f"      if nan = '1' and {is_zero} then"),
    )
    assert result.passed and any(
        note.startswith("nothing assigns never, rz_sum.vhd:") for note in result.notes
    )


@LONG
def test_metavalues_that_arithmetic_takes_for_0_are_a_failure(checked):
    """A variable that nothing sets: numeric_std warns, and goes on with 0."""
    result = checked(
        "rz_sum",
        (
            "    variable largest : integer;",
            "    variable largest : integer;\n    variable never : unsigned(1 downto 0);",
        ),
        ("      largest := FLOOR;", "      largest := FLOOR + to_integer(never);"),
    )
    assert not result.passed
    assert [failure.kind for failure in result.verdict.outcome.failures] == ["metavalue"]


@LONG
def test_a_changed_source_is_a_new_build(checked):
    assert checked("ieee_mul").passed
    assert not checked("ieee_mul", FAULTS["ieee_mul"][0], count=2_000).passed


def test_a_unit_is_run_by_what_knows_its_language():
    vhdl = load_dut(UNITS / "ieee_mul.yaml")
    assert engines.choice_of(vhdl, "fast", "verilator") == ("cocotb", "ghdl"), "the default gives way"
    for engine, simulator in (("selfcheck", "icarus"), ("cocotb", "icarus"), ("selfcheck", "verilator")):
        with pytest.raises(RtlError, match="ieee_mul is VHDL, which only GHDL runs"):
            engines.choice_of(vhdl, engine, simulator)
    verilog = load_dut(UNITS.parents[2] / "rtl_tb" / "rtl" / "duts" / "fda_volta_f16.yaml")
    with pytest.raises(RtlError, match="GHDL runs VHDL"):
        engines.choice_of(verilog, "cocotb", "ghdl")
    with pytest.raises(RtlError, match="does not run on GHDL"):
        engines.check_choice("fast", "ghdl")


@pytest.mark.parametrize("engine", ["fast", "selfcheck"])
def test_an_engine_that_was_asked_for_is_not_exchanged(engine, tmp_path):
    """The default gives way to cocotb; a name on the command line does not."""
    words = ["rtl", "check", str(UNITS / "ieee_mul.yaml"), "--engine", engine, "--build", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert f"engine is '{engine}', but ieee_mul is VHDL" in done.stderr
