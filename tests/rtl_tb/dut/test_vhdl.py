"""Units in VHDL: what dut.yaml says of them, and their ports and wrappers as GHDL elaborates them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from golden.cli.app import app
from golden.errors import SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.given import Given
from rtl_tb.dut.init import draft
from rtl_tb.dut.ports import Design
from rtl_tb.dut.vhdl import Vhdl, read_entity
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators import simulators

UNITS = Path(__file__).parents[1] / "vhdl_units"
ghdl = pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl")
TYPES = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
package types is
  type bytes is array (natural range <>) of std_logic_vector(7 downto 0);
  type pair is record
    x : signed(3 downto 0);
    y : bytes(0 to 1);
  end record;
  type pairs is array (natural range <>) of pair;
  type grid is array (0 to 1, 0 to 1) of std_logic;
  type kinds is (one, two);
end package;
"""
ENTITY = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.types.all;
entity shapes is
  generic (N : positive; TEXT : string := "x"; ON_OFF : boolean := false; KIND : kinds := one);
  port (
    clk  : in     std_ulogic;
    v    : in     std_logic_vector(8 * N - 1 downto 0);
    up   : in     unsigned(0 to N);
    a    : in     bytes(N - 1 downto 0);
    p    : in     pair;
    ps   : in     pairs(0 to 1);
    io   : inout  std_logic;
    g    : in     grid;
    i    : in     integer range 0 to 7;
    k    : in     kinds;
    b    : in     bit;
    q    : buffer signed(2 downto 0));
end entity;
architecture none of shapes is
begin
end architecture;
"""


def shapes(folder, **generics):
    for name, text in (("shapes.vhd", ENTITY), ("types.vhd", TYPES)):
        (folder / name).write_text(text)
    # The entity stands before the package that it uses.
    return Design([folder / "shapes.vhd", folder / "types.vhd"], None, parameters={"n": 3, **generics})


@ghdl
def test_ports_are_read_with_their_generics_arrays_and_records(tmp_path):
    entity = read_entity(shapes(tmp_path, on_off="true", kind="two", text="a b"), Vhdl())
    assert entity.name == "shapes" and entity.parameters == ("n", "text", "on_off", "kind")
    ports = entity.ports
    assert {name: port.direction for name, port in ports.items() if port.direction != "input"} == {
        "io": "inout",
        "q": "output",
    }
    assert (ports["v"].width, entity.bits["v"][0]) == (24, "v(23)")
    assert (ports["up"].width, entity.bits["up"]) == (4, ("up(0)", "up(1)", "up(2)", "up(3)"))
    assert (ports["a"].width, ports["a"].unpacked) == (24, ((2, 0),))
    assert entity.bits["a"][:2] == ("a(2)(7)", "a(2)(6)")
    assert [(lsb, each.name, each.width) for lsb, each in ports["p"].members] == [(16, "x", 4), (0, "y", 16)]
    assert ports["p"].members[1][1].packed == ((0, 1),)
    assert (ports["ps"].width, ports["ps"].unpacked) == (40, ((0, 1),))
    problems = {name: port.problem for name, port in ports.items() if port.problem}
    assert sorted(problems) == ["b", "g", "i", "k"]
    assert problems["i"] == "of type integer range 0 to 7"


@ghdl
def test_what_ghdl_refuses_is_said_with_the_place_in_the_users_file(tmp_path):
    design = shapes(tmp_path)
    (tmp_path / "types.vhd").write_text(TYPES.replace("package types is", "package types i"))
    with pytest.raises(ElaborationError, match=rf"{tmp_path}/types.vhd:4:\d+: "):
        read_entity(design, Vhdl())


@ghdl
def test_a_name_that_is_defined_twice_is_refused(tmp_path):
    design = shapes(tmp_path)
    (tmp_path / "again.vhd").write_text(ENTITY.replace('"x"', '"y"'))
    twice = Design([*design.sources, tmp_path / "again.vhd"], "shapes", parameters={"n": 3})
    with pytest.raises(
        ElaborationError, match=r"entity shapes is defined in .*shapes.vhd and in .*again.vhd"
    ):
        read_entity(twice, Vhdl())


@ghdl
def test_an_entity_that_the_top_does_not_need_may_be_defined_twice(tmp_path):
    """A file of many operators has two of one name; only one that the top needs is refused."""
    other = (
        "library ieee; use ieee.std_logic_1164.all;\nentity other is port (x : in std_logic); end entity;\n"
    )
    other += "architecture {0} of other is begin end architecture;\n"
    design = shapes(tmp_path)
    file = tmp_path / "shapes.vhd"
    file.write_text(f"{file.read_text()}\n{other.format('one')}{other.format('two')}")
    assert read_entity(Design(design.sources, "shapes", parameters={"n": 3}), Vhdl()).name == "shapes"
    with pytest.raises(ElaborationError, match=r"entity other is defined in .*shapes.vhd twice; remove one"):
        read_entity(Design(design.sources, "other"), Vhdl())


@ghdl
def test_the_same_entity_in_two_files_is_no_conflict(tmp_path):
    """A package of components that each part of a design has a copy of."""
    design = shapes(tmp_path)
    again = "-- a copy\n" + (tmp_path / "shapes.vhd").read_text().replace("\n", "  \n")
    (tmp_path / "again.vhd").write_text(again)
    twice = Design([*design.sources, tmp_path / "again.vhd"], "shapes", parameters={"n": 3})
    assert read_entity(twice, Vhdl()).name == "shapes"


@ghdl
def test_a_unit_that_fails_before_its_reset_has_ports(tmp_path):
    (tmp_path / "u.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all; use ieee.numeric_std.all;\n"
        "entity u is port (a : in unsigned(3 downto 0); d : out unsigned(3 downto 0)); end entity;\n"
        "architecture rtl of u is signal n : natural range 1 to 15; begin\n"
        "process (a) begin n <= to_integer(a); end process; d <= to_unsigned(n, 4); end architecture;\n"
    )
    assert sorted(read_entity(Design([tmp_path / "u.vhd"], "u"), Vhdl()).ports) == ["a", "d"]


LIBRARY = """package sizes is constant bits : natural := 8; end package;
"""
USER = """library ieee; use ieee.std_logic_1164.all;
library common;
entity twice is port (
    a : in std_ulogic_vector(common.sizes.bits - 1 downto 0); d : out std_ulogic_vector(8 downto 0));
end entity;
architecture rtl of twice is begin d <= a & '0'; end architecture;
"""


@ghdl
def test_init_takes_the_files_of_libraries(tmp_path):
    """And says where to name them, if they are missing."""
    (tmp_path / "sizes.vhd").write_text(LIBRARY)
    (tmp_path / "twice.vhd").write_text(USER)
    out = tmp_path / "dut.yaml"

    def init(*options):
        return CliRunner().invoke(app, ["rtl", "init", str(tmp_path / "twice.vhd"), *options])

    done = init()
    assert done.exit_code == 2 and "libraries: {common: [FILE]}" in done.stderr
    assert "--library common=FILE" in done.stderr
    given = ("--library", f"common={tmp_path / 'sizes.vhd'}")
    assert init(*given, "--out", str(out)).exit_code == 0
    assert yaml.safe_load(out.read_text())["vhdl"] == {"libraries": {"common": ["sizes.vhd"]}}
    assert "'sizes'" in init("--library", "sizes").stderr


@ghdl
def test_every_bit_of_a_port_is_connected_by_itself():
    text = wrapper_of(load_dut(UNITS / "ieee_mul.yaml"))
    assert "request.a(31) => data(63)," in text and "request.b(0) => data(0)," in text
    assert "request.valid => accept," in text and "answer.valid => valid," in text
    text = wrapper_of(load_dut(UNITS / "rz_sum.yaml"))
    assert "a(1)(15) => data(127)," in text and "en => running," in text
    assert "d(0) => out_data(31)," in text and "d(31) => out_data(0)" in text  # bit 0 stands on the right
    assert "floor => -131" in text


@ghdl
def test_init_drafts_a_description_that_fits(tmp_path):
    shutil.copy(UNITS / "sum_of_bytes.vhd", tmp_path)
    text = draft(
        [tmp_path / "sum_of_bytes.vhd"],
        instruction=str(UNITS / "sum_of_bytes_unit.yaml"),
        folder=tmp_path,
    )
    assert "input: {valid: valid_in, ready: ready_out}" in text
    (tmp_path / "dut.yaml").write_text(text)
    assert "clear => data(0)" in wrapper_of(load_dut(tmp_path / "dut.yaml"))


def test_keys_that_mean_nothing_in_vhdl_are_refused(tmp_path):
    (tmp_path / "dot.vhd").write_text("")
    text = (UNITS / "rz_sum.yaml").read_text().replace("rz_sum.vhd", "dot.vhd")

    def refused(more, message):
        (tmp_path / "dut.yaml").write_text(text + more)
        with pytest.raises(SpecError, match=message):
            load_dut(tmp_path / "dut.yaml")

    refused("defines: {X: 1}\n", "key 'defines' means nothing in VHDL")
    refused("include: [.]\n", "key 'include' means nothing in VHDL")
    refused("vhdl: {standard: 2009}\n", "'standard' is 2009, expected one of 1987, 1993, 2002, 2008")
    refused("vhdl: {libraries: {work: [dot.vhd]}}\n", "'work' is no name for a library of yours")
    refused("vhdl: {libraries: {mine: [no.vhd]}}\n", "library 'mine' has no VHDL file")
    with pytest.raises(SpecError, match="include folders, macros, types and -y mean nothing in VHDL"):
        draft([tmp_path / "dot.vhd"], given=Given(defines={"X": "1"}))


def test_without_ghdl_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("MMAGOLD_GHDL", raising=False)
    simulators._ghdl.cache_clear()
    with pytest.raises(SimulatorMissing, match="apt-get install ghdl"):
        wrapper_of(load_dut(UNITS / "rz_sum.yaml"))


@ghdl
def test_ports_of_a_component_are_not_those_of_the_top(tmp_path):
    """Nor are the generics of one; and each of two packages may have a body."""
    used = "library ieee; use ieee.std_logic_1164.all; use work.one.all; use work.two.all;\n"
    leaf = "generic (W : positive := 2); port (x : in std_logic_vector(W - 1 downto 0); y : out std_logic)"
    for name in ("one", "two"):
        function = f"function {name}_f(x : integer) return integer"
        (tmp_path / f"{name}.vhd").write_text(
            f"package {name} is {function}; end package;\n"
            f"package body {name} is {function} is begin return x; end function; end package body;\n"
        )
    (tmp_path / "leaf.vhd").write_text(
        f"{used}entity leaf is {leaf}; end entity;\n"
        "architecture a of leaf is begin y <= x(0); end architecture;\n"
    )
    (tmp_path / "top.vhd").write_text(
        f"{used}entity top is port (a : in std_logic_vector(one_f(3) downto 0); "
        "q : out std_logic); end entity;\n"
        f"architecture a of top is component leaf is {leaf}; end component;\n"
        "begin i : leaf generic map (W => 4) port map (x => a, y => q); end architecture;\n"
    )
    sources = [tmp_path / f"{name}.vhd" for name in ("one", "two", "leaf", "top")]
    found = read_entity(Design(sources, "top"), Vhdl())
    assert {name: port.width for name, port in found.ports.items()} == {"a": 4, "q": 1}
    assert list(found.generics) == []


@ghdl
def test_fixed_point_ports_are_vectors(tmp_path):
    """Of ieee.fixed_pkg, whose definitions GHDL does not show."""
    text = (
        "library ieee; use ieee.std_logic_1164.all; use ieee.fixed_pkg.all;\nentity f is port (\n"
        "  a : in sfixed(3 downto -4); b : in u_ufixed(2 downto -5); q : out sfixed(4 downto -4));\n"
        "end entity;\narchitecture r of f is begin q <= a + to_sfixed(0, a); end architecture;\n"
    )
    (tmp_path / "f.vhd").write_text(text)
    found = read_entity(Design([tmp_path / "f.vhd"], "f"), Vhdl())
    assert {name: (port.width, port.problem) for name, port in found.ports.items()} == {
        "a": (8, ""),
        "b": (8, ""),
        "q": (9, ""),
    }
    assert found.bits["a"][0] == "a(3)" and found.bits["a"][-1] == "a(-4)"


@ghdl
def test_a_complaint_of_several_lines_is_quoted_whole(tmp_path):
    """GHDL says in further lines of one place why a component and its entity do not fit."""
    port = "library ieee; use ieee.std_logic_1164.all;\n"
    (tmp_path / "part.vhd").write_text(
        f"{port}entity part is port (x : in bit); end entity;\narchitecture r of part is begin end;\n"
    )
    (tmp_path / "top.vhd").write_text(
        f"{port}entity top is port (x : in std_logic); end entity;\narchitecture r of top is\n"
        "component part is port (x : in std_logic); end component;\nbegin\ni: part port map (x);\nend;\n"
    )
    with pytest.raises(ElaborationError, match=r"instance \"i\": type .* not compatible with type of port"):
        read_entity(Design([tmp_path / "part.vhd", tmp_path / "top.vhd"], "top"), Vhdl())


_HALVES = (
    "library ieee; use ieee.std_logic_1164.all;\nentity {name} is port (x : in std_logic; "
    "y : out std_logic); end entity;\narchitecture a of {name} is\n{body}end architecture;\n"
)
_INNER = "begin\ny <= not x;\n"
_OUTER = (
    "component half is port (x : in std_logic; y : out std_logic); end component;\n"
    "signal m : std_logic;\nbegin\none: half port map (x, m);\ntwo: entity work.other port map (m, y);\n"
)


@ghdl
def test_the_entity_that_no_other_takes_is_the_top_also_with_ports(tmp_path):
    for name, body in (("half", _INNER), ("other", _INNER), ("outer", _OUTER)):
        (tmp_path / f"{name}.vhd").write_text(_HALVES.format(name=name, body=body))
    files = [tmp_path / f"{name}.vhd" for name in ("half", "other", "outer")]
    assert "top: outer\n" in draft(files, folder=tmp_path)
    declared = "component outer is port (x : in std_logic; y : out std_logic); end component;\n"
    package = tmp_path / "parts.vhd"  # that declares the top takes nothing
    package.write_text(
        f"library ieee; use ieee.std_logic_1164.all;\npackage parts is\n{declared}end package;\n"
    )
    assert "top: outer\n" in draft([*files, package], folder=tmp_path)
    with pytest.raises(ElaborationError, match="expected one top entity, found half, other; --top names"):
        draft(files[:2], folder=tmp_path)


@ghdl
def test_a_component_without_an_entity_is_refused(tmp_path):
    """GHDL alone warns, and leaves its outputs undriven: a right unit would fail."""
    for name, body in (("other", _INNER), ("outer", _OUTER)):
        (tmp_path / f"{name}.vhd").write_text(_HALVES.format(name=name, body=body))
    with pytest.raises(ElaborationError, match=": components without an entity: half; add the files"):
        draft([tmp_path / "other.vhd", tmp_path / "outer.vhd"], "outer", folder=tmp_path)


@ghdl
@pytest.mark.parametrize(
    ("process", "said"),
    [
        (
            "if rst = '1' then y <= '0'; elsif rising_edge(clk) then y <= x; end if;",
            "high, synchronous: false",
        ),
        (
            "if (RST='0') then y <= '0'; elsif clk'event and clk='1' then y <= x; end if;",
            "low, synchronous: false",
        ),
        (
            "if rising_edge(clk) then if rst = '0' then y <= '0'; else y <= x; end if; end if;",
            "low, synchronous: true",
        ),
    ],
)
def test_a_process_says_how_the_reset_acts(process, said, tmp_path):
    (tmp_path / "u.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all;\nentity u is port (clk, rst, x : in std_logic; "
        "a, b : in std_logic_vector(7 downto 0); y : out std_logic); end entity;\n"
        f"architecture r of u is begin\nprocess (clk, rst) begin\n{process}\nend process;\n"
        "end architecture;\n"
    )
    text = draft([tmp_path / "u.vhd"], folder=tmp_path)
    assert f"reset: {{port: rst, active: {said}, cycles: 4}}\n" in text


@ghdl
def test_a_port_without_bits_is_left_alone(tmp_path):
    (tmp_path / "u.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all;\nentity u is generic (N : natural := 0); port (\n"
        "a : in std_logic_vector(7 downto 0); last : in std_logic_vector(N - 1 downto 0);\n"
        "d : out std_logic_vector(7 downto 0)); end entity;\n"
        "architecture r of u is begin d <= a; end architecture;\n"
    )
    (tmp_path / "unit.yaml").write_text(
        "unit: copy\nshape: {k: 1}\nformats: {a: u8, d: u8}\nsteps:\n"
        "  - round: {of: a, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    text = draft([tmp_path / "u.vhd"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert "last" not in text
    (tmp_path / "dut.yaml").write_text(text)
    options = Options("cocotb", "ghdl", count=20, failures=None, build=tmp_path / "build")
    assert check(tmp_path / "dut.yaml", options).passed
    (tmp_path / "dut.yaml").write_text(f"{text}constants: {{last: 0}}\n")
    with pytest.raises(SpecError, match="port 'last' of u has no bits, expected no key for it"):
        check(tmp_path / "dut.yaml", options)


@ghdl
def test_operators_that_std_logic_arith_hides(tmp_path):
    """VHDL-93 has an = of std_logic_vector, and so has std_logic_unsigned: GHDL takes neither by itself."""
    (tmp_path / "u.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all; use ieee.std_logic_arith.all;\n"
        "use ieee.std_logic_unsigned.all;\n"
        "entity u is port (a, b : in std_logic_vector(7 downto 0); d : out std_logic); end;\n"
        "architecture r of u is begin d <= '1' when a = b else '0'; end;\n"
    )
    assert "d" in read_entity(Design((tmp_path / "u.vhd",), "u"), Vhdl("1993")).ports


_CELL = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
package links is
  type link is record
    W : signed(7 downto 0);
    S : signed(19 downto 0);
  end record;
end package;
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.links.all;
entity Cell is
  generic (MORE : natural := 1);
  port (CLK, RST, GO : in std_logic; X : in signed(7 downto 0); LEFT_IN : in link;
    Y : out signed(19 downto 0));
end entity;
architecture two of Cell is
  signal held : signed(7 downto 0);
  signal product : signed(15 downto 0);
begin
  process (CLK) begin
    if rising_edge(CLK) then
      if RST = '1' then
        held <= (others => '0');
        product <= (others => '0');
        Y <= (others => '0');
      elsif GO = '1' then
        held <= X;
        product <= held * LEFT_IN.W;
        Y <= resize(product, 20) + LEFT_IN.S;
      end if;
    end if;
  end process;
end architecture;
"""


@ghdl
def test_the_registers_of_a_unit_in_vhdl_decide(tmp_path):
    """GHDL's synthesis shows them, also behind fields of records: an enable is no guess, and what joins
    behind a register comes later. The draft passes."""
    (tmp_path / "cell.vhd").write_text(_CELL)
    (tmp_path / "unit.yaml").write_text(
        "unit: cell\ntitle: a cell\nshape: {k: 1}\n"
        "define_formats: {s20: {kind: integer, storage: 32, bits: 20, signed: true}}\n"
        "formats: {a: s8, b: s8, c: s20, d: s20}\nsteps:\n  - multiply: {to: products}\n"
        "  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    text = draft([tmp_path / "cell.vhd"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert "  enable: go\n" in text and "  a: x\n" in text
    assert "  b: {port: left_in.w, later: 1}" in text and "  c: {port: left_in.s, later: 2}" in text
    (tmp_path / "dut.yaml").write_text(text)
    options = Options("cocotb", "ghdl", count=100, failures=None, build=tmp_path / "build")
    report = check(tmp_path / "dut.yaml", options)
    assert report.passed
