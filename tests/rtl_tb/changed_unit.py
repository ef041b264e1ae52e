"""The example unit rtl_tb/examples/own_unit with some of its text replaced, and its check."""

from pathlib import Path

from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check

OWN = Path(__file__).parents[2] / "rtl_tb" / "examples" / "own_unit"
PASSING = (OWN / "mac4.sv").read_text(encoding="utf-8")
DUT = """dut: mac4
unit: mac4.yaml
top: mac4
sources: [mac4.sv]
clock: clock
reset: {port: reset, active: high}
handshake: {kind: valid_ready, input: {valid: vld_i, ready: rdy_o}, output: {valid: vld_o, ready: rdy_i}}
ports: {a: x_i, b: w_i, c: acc_i, d: acc_o}
"""


def described(folder: Path, *patches: tuple[str, str]) -> Path:
    """The description of the example unit with some of its text replaced."""
    text = PASSING
    for find, replace in patches:
        assert text.count(find) == 1
        text = text.replace(find, replace)
    (folder / "mac4.sv").write_text(text, encoding="utf-8")
    (folder / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (folder / "dut.yaml").write_text(DUT, encoding="utf-8")
    return folder / "dut.yaml"


def changed(
    folder: Path, *patches: tuple[str, str], seed: int = 1, engine: str = "fast", **options: object
) -> Check:
    """Its check."""
    chosen = {"count": 3000, "failures": None, "build": folder / "build", "explain": False} | options
    file = described(folder, *patches)
    return check(file, Options(engine=engine, seed=seed, **chosen))  # type: ignore[arg-type]
