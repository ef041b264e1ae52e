"""mmagold gemm: products, plans found and listed, and what each says with status 0, 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli import app


def call(*arguments: object, status: int = 0) -> Any:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app.app, ["gemm", *map(str, arguments)])
    assert done.exit_code == status, (done.output, done.exception)
    return done


@pytest.fixture
def product(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = (golden.from_float("f16", rng.standard_normal(shape)) for shape in ((20, 50), (50, 30)))
    for name, array in (
        ("a", a),
        ("b", b),
        ("d", golden.gemm(a, b, golden.plan("hopper", "HMMA.16816.F32"))),
    ):
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


def test_run(product: Path) -> None:
    a, b, d = (product / f"{name}.npy" for name in "abd")
    operands = ("--a", a, "--b", b)
    out = product / "out.npy"
    call("run", "--plan", "hopper:HMMA.16816.F32", *operands, "--out", out)
    assert np.array_equal(np.load(out), np.load(d))
    equal = call("run", "--plan", "hopper:cublas_f16.f16.f32", *operands, "--against", d)
    assert equal.stdout == "0 of 600 elements differ\n"
    (product / "p.yaml").write_text("plan: p\ninstruction: ampere:HMMA.16816.F32\n")
    reported = call("run", "--plan", product / "p.yaml", *operands, "--against", d, status=1)
    assert "of 600 elements differ" in reported.stdout and "the first at [" in reported.stdout
    out.unlink()
    for wrong, status in (
        (("--plan", "hopper:HMMA.16816.F32", *operands), 2),
        (("--plan", "cublas", *operands, "--out", out), 2),
        (("--plan", "hopper:cublas", *operands, "--out", out), 2),
        (("--plan", "hopper:HMMA.16816.F32", "--a", b, "--b", b, "--out", out), 2),
        (("--plan", "hopper:HMMA.16816.F32", *operands, "--against", a), 2),
        (("--plan", "hopper:HMMA.16816.F32", "--a", a, "--b", product / "none.npy", "--out", out), 2),
    ):
        done = call("run", *wrong, status=status)
        assert len(done.stderr.strip().splitlines()) == 1 and done.stderr.startswith("mmagold: ")
    assert not out.exists()


def test_plan(product: Path) -> None:
    files = [word for name in "abd" for word in (f"--{name}", product / f"{name}.npy")]
    formats = ("--arch", "hopper", "--formats", "a=f16,b=f16,d=f32")
    out = product / "found.yaml"
    found = json.loads(call("plan", *files, *formats, "--json", "--out", out).stdout)
    assert found["plan"]["name"] == "cublas_f16.f16.f32" and found["tried"] > 10
    assert golden.load_plan(out).options.out == "f32"
    np.save(product / "d.npy", np.load(product / "d.npy") ^ np.uint32(1))
    reported = call("plan", *files, *formats, status=1)
    assert "none of" in reported.stdout and "nearest" in reported.stdout
    for wrong in (("--arch", "hopper"), ("--arch", "hopper", "--formats", "a"), ("--arch", "hoper")):
        assert len(call("plan", *files, *wrong, status=2).stderr.strip().splitlines()) == 1


def test_plans() -> None:
    listed = json.loads(call("plans", "--json").stdout)
    assert {one["name"] for one in listed} == {
        plan.name for x in golden.architectures() for plan in golden.plans(x)
    }
    assert "hopper:cublas_s8" in call("plans", "hopper").stdout
    call("plans", "hoper", status=2)


ASK = ("--shape", "6x6x80", "--arch", "hopper", "--formats", "a=f16,b=f16,d=f32", "--ask")


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    file = tmp_path / "kernels.py"
    file.write_text(
        "import golden, numpy as np\n"
        "plan = golden.plan('hopper', 'cublas_f16.f16.f32', part=64)\n"
        "def known(a, b):\n    return golden.gemm(a, b, plan)\n"
        "def unknown(a, b):\n"
        "    x, y = (golden.to_float('f16', codes).astype(np.float32) for codes in (a, b))\n"
        "    return sum(x[:, k : k + 1] * y[k] for k in range(x.shape[1])).view(np.uint32)\n"
    )
    return file


def test_a_kernel_is_asked(kernels: Path) -> None:
    """Its tree is printed, its plan written."""
    out = kernels.with_name("plan.yaml")
    assert "k 0-63: 4 steps of 16" in call("plan", *ASK, f"python:{kernels}:known", "--out", out).output
    assert golden.load_plan(out).options.part == 64


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--beta", "2"], "argument 'beta' is 2.0, but there is no C, expected C (--c) with its factor"),
        (["--alpha", "1/0"], "'1/0' is not a number, expected one such as 0.5 or 1/3"),
        (["--alpha", "nan"], "'nan' is not a number, expected one such as 0.5 or 1/3"),
        (
            ["--scale-a", "a.npy"],
            "takes A, B and scale_a of these formats (a f16, b f16, d f32) and shapes, expected an "
            "architecture with such instructions",
        ),
    ],
)
def test_a_factor_or_a_scale_without_a_use_is_refused(product: Path, more: list[str], message: str) -> None:
    more = [str(product / word) if word.endswith(".npy") else word for word in more]
    files = [word for name in "abd" for word in (f"--{name}", product / f"{name}.npy")]
    done = call("plan", *files, "--arch", "volta", "--formats", "a=f16,b=f16,d=f32", *more, status=2)
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_factor_may_be_a_fraction(product: Path) -> None:
    a, b = (np.load(product / f"{name}.npy") for name in "ab")
    c = golden.from_float("f32", np.linspace(-1, 1, 600).reshape(20, 30))
    plan = golden.plan("hopper", "HMMA.16816.F32").but(alpha=1 / 3, beta=0.25, c="after")
    np.save(product / "c.npy", c)
    np.save(product / "d.npy", golden.gemm(a, b, plan, C=c))
    files = [word for name in "abdc" for word in (f"--{name}", product / f"{name}.npy")]
    options = ("--arch", "hopper", "--formats", "a=f16,b=f16,d=f32")
    found = call("plan", *files, *options, "--alpha", "1/3", "--beta", "1/4")
    assert f"alpha={1 / 3}" in found.output and "beta=0.25" in found.output
    call("plan", *files, *options, "--alpha", "1/5", "--beta", "1/4", status=1)


def test_an_unknown_architecture_is_reported_before_a_kernel_is_asked(tmp_path: Path) -> None:
    (tmp_path / "never.py").write_text("def asked(a, b):\n    raise KeyError('asked')\n")
    formats = ("--formats", "a=f16,b=f16,d=f32", "--ask", f"python:{tmp_path / 'never.py'}:asked")
    for word, message in (("hoper", "unknown architecture 'hoper'; nearest: hopper"), ("h100", "'asked'")):
        done = call("plan", "--shape", "4x4x16", "--arch", word, *formats, status=2)
        assert message in done.stderr and "\n" not in done.stderr.strip()


@pytest.mark.long
def test_the_tree_of_a_kernel_without_a_plan_is_shown(kernels: Path) -> None:
    none = call("plan", *ASK, f"python:{kernels}:unknown", status=1)
    assert "80 products, one after the other" in none.output
