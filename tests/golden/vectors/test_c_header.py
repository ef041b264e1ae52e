"""Exported C headers, compiled as C99 (what is undefined traps) and as C++11 without a warning: against the
core on every kind of operands, and against recorded results."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from header_driver import LANGUAGES, Header, of_architecture, of_units
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden import stimuli
from golden.cli.app import app
from golden.errors import OperandError
from golden.registers.layout_text import place_function
from golden.vectors import c_header, captured, default_set, published

ROOT = Path(__file__).parents[3]
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
UNITS = {
    "dense": ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    "sparse": ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"),
    "pairs": ("ampere", "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32"),
    "one_of_two": ("hopper", "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"),
    "scaled": ("rtx_blackwell", MXF4),
    "binary": ("ampere", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"),
    "fp64": ("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    "emulated": ("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
    "half": ("ampere", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    "wgmma": ("hopper", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"),
    "mfma": ("cdna3", "v_mfma_f32_16x16x16_f16"),
    "fp8": ("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
    "mfma_f64": ("cdna3", "v_mfma_f64_4x4x4_4b_f64"),
    "blocks": ("cdna2", "v_mfma_f32_4x4x4bf16_1k"),
    "wmma": ("rdna3", "v_wmma_bf16_16x16x16_bf16_w32"),
    "clamp": ("rdna4", "v_wmma_i32_16x16x16_iu8_w32.clamp"),
    "amx": ("sapphire_rapids", "tdpbf16ps"),
}
FILES = {
    "modes": "fma_modes",
    "ieee_flags": "ieee_fma_flags",
    "accumulator": "accumulator",
    "no_b": "ieee_add",
}


@pytest.fixture(scope="module")
def units():
    return {key: golden.instruction(*name) for key, name in UNITS.items()}


@pytest.fixture(scope="module", params=long_after(1, LANGUAGES))
def header(request, units, tmp_path_factory):
    """One header of each unit, all in one program."""
    return of_units(units, tmp_path_factory.mktemp(request.param), request.param)


@pytest.mark.parametrize("key", long_after(4, UNITS))
def test_dot_products_are_the_cores(header, units, key):
    vectors = default_set(units[key], 600, seed=11)
    assert np.array_equal(header.dot(key, vectors.operands), vectors.d)


@pytest.mark.parametrize("key", UNITS)
def test_matrices_are_the_cores(header, units, key):
    ins = units[key]
    tiles = default_set(ins, ins.blocks, seed=12, level="tile").operands
    assert np.array_equal(header.matrices(key, tiles), ins(**tiles))


@pytest.mark.parametrize("key", [key for key in UNITS if key != "wgmma"])
def test_registers_are_those_of_the_layouts(header, units, key):
    """Operands packed as ins.fragments does; what of d holds no element stays."""
    ins = units[key]
    chosen = {
        "sparse": {"metadata": {"selector": 1}},
        "scaled": {"scale_b": {"byte_id": 0, "thread_id": 3}},
    }.get(key, {})
    layouts = {name: getattr(ins.fragments, name) for name in (*ins.operand_shapes(True), "d")}
    layouts = {name: layout.select(**chosen.get(name, {})) for name, layout in layouts.items()}
    tiles = default_set(ins, ins.blocks, seed=13, level="tile").operands
    block = (1, ins.blocks) if ins.blocks > 1 else (1,)
    packed = {name: layouts[name].pack(tile.reshape(*block, *tile.shape[1:])) for name, tile in tiles.items()}
    before = np.random.default_rng(1).integers(0, 1 << 32, (1, layouts["d"].lanes, layouts["d"].registers))
    before = before.astype(layouts["d"].register_dtype)
    selectors = tuple(value for layout in layouts.values() for _, value in layout.selectors)
    after = header.lanes(key, packed, before, selectors)
    d = ins(**tiles).reshape(*block, ins.m, ins.n)
    assert np.array_equal(layouts["d"].unpack(after), d)
    ones = layouts["d"].pack(np.full_like(d, (1 << layouts["d"].element_bits) - 1))
    assert np.array_equal(after & ~ones, before & ~ones)


def test_a_header_without_registers_has_no_function_of_them(units):
    assert "wgmma_lanes" not in c_header.text([units["wgmma"]], "wgmma", "wgmma")
    assert "fp8_lanes" in c_header.text([units["fp8"]], "fp8", "fp8")


@pytest.mark.parametrize("language", long_after(1, LANGUAGES))
def test_units_of_files(language, tmp_path):
    """Each mode, status flags, an accumulator whose c the caller keeps, units without b or c."""
    whole = {
        key: golden.load_instruction(ROOT / "spec" / "examples" / f"{name}.yaml")
        for key, name in FILES.items()
    }
    texts = {key: c_header.text([ins], key, key) for key, ins in whole.items()}
    named = {
        name: unit
        for key, ins in whole.items()
        for name, unit in (
            {f"{key}_mode_{c}": u for c, u in ins.mode_units.items()} or {key: ins.stateless}
        ).items()
    }
    header = Header(texts, named, tmp_path, language)
    for name, ins in named.items():
        vectors = default_set(ins, 400, seed=3)
        found = header.dot(name, vectors.operands)
        d, flags = found if ins.status else (found, None)
        assert np.array_equal(d, vectors.d), name
        assert flags is None or np.array_equal(flags, ins.flags(**vectors.operands)), name


def test_the_machines_rounding_mode_changes_nothing(header, units, tmp_path):
    """Somebody else rounds up while it runs; the f64 units and the emulated one add in floats elsewhere."""
    (tmp_path / "up.c").write_text(
        "#include <fenv.h>\nint turn(int up) { return fesetround(up ? FE_UPWARD : FE_TONEAREST); }\n"
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", tmp_path / "up.so", tmp_path / "up.c", "-lm"], check=True
    )
    turn = ctypes.CDLL(str(tmp_path / "up.so")).turn
    for key in ("fp64", "emulated", "mfma_f64"):
        vectors = default_set(units[key], 300, seed=4)
        turn(1)
        try:
            found = header.dot(key, vectors.operands)
        finally:
            turn(0)
        assert np.array_equal(found, vectors.d), key


@pytest.mark.parametrize("arch", published.architectures())
def test_published_words(arch, tmp_path):
    """All words that others recorded, by one header of their instructions."""
    vectors = list(published.load(arch))
    chosen = {vector.name: golden.instruction(arch, vector.name) for vector in vectors}
    header = of_architecture(arch, list(chosen.values()), tmp_path, "c", "-O0")
    for vector in vectors:
        name = f"{arch}_{c_header.identifier(vector.name)}"
        operands = {key: codes[None] if vector.whole else codes for key, codes in vector.operands.items()}
        found = header.matrices(name, operands)[0] if vector.whole else header.dot(name, operands)
        assert np.array_equal(found, vector.d), vector.name
    assert sum(vector.d.size for vector in vectors) > 60


def recorded(arch, header, names=None):
    manifest = captured.read_manifest(arch)
    for vector in captured.load_entries(
        manifest, captured.vectors_folder() / arch, names or manifest["instructions"]
    ):
        name = f"{arch}_{c_header.identifier(vector.name)}"
        assert np.array_equal(header.matrices(name, vector.operands), vector.d), vector.name


@pytest.mark.parametrize(
    "arch, wanted",
    long_after(
        0,
        [
            ("hopper", "mma.sync.aligned.m16n8k16"),
            *(("hopper", w) for w in ("mma", "wgmma")),
            ("sapphire_rapids", ""),
        ],
    ),
)
def test_recorded_vectors(arch, wanted, tmp_path):
    """Every committed vector, of sweeps over N only the least and the largest: H200 and Xeon."""
    everything = [ins for ins in golden.instructions(arch) if not ins.traits.swept or ins.n in (8, 256)]
    chosen = [ins for ins in everything if ins.name.startswith(wanted) or not wanted]
    header = of_architecture(arch, chosen, tmp_path, "c", "-O1" if wanted else "-O0")
    kept = captured.read_manifest(arch)["instructions"]
    recorded(arch, header, [ins.name for ins in chosen if ins.name in kept])


@pytest.mark.long
@pytest.mark.parametrize("arch", golden.architectures())
def test_the_header_of_an_architecture(arch, tmp_path):
    """Every program that an instruction has; each kind of operands."""
    chosen = list({id(ins.program): ins for ins in golden.instructions(arch)}.values())
    header = of_architecture(arch, chosen, tmp_path, "cc", "-O0")
    for name, ins in header.units.items():
        vectors = default_set(ins, 2 * len(stimuli.KINDS), seed=2)
        assert np.array_equal(header.dot(name, vectors.operands), vectors.d), ins.name


def test_two_names_that_are_one_in_c_are_refused(units):
    with pytest.raises(OperandError, match="would both be named x_tdpbf16ps in C"):
        c_header.text([units["amx"], units["amx"]], "x", "x")
    with pytest.raises(OperandError, match="argument 'prefix' is 'int', a keyword of C or C"):
        c_header.text([golden.instruction("hopper", "HMMA.16816.F32")], "int", "")
    with pytest.raises(OperandError, match="argument 'prefix' is '9x', expected an identifier"):
        c_header.text([units["amx"]], "9x", "x")


def test_a_title_does_not_leave_its_comment(units):
    assert "*/ int" not in c_header.text([units["amx"]], "x", "ends */ int x;")


def test_places_are_the_formulas(units, tmp_path):
    """Every layout of the units above, compiled, against Layout.coordinates."""
    layouts = {
        f"{key}_{name}": layout
        for key, ins in units.items()
        for name in (*ins.operand_shapes(True), "d")
        if (layout := getattr(ins.fragments, name)) is not None and not layout.selectors
    }
    text = "#include <stdint.h>\n" + "\n".join(
        place_function(layout, name, "") for name, layout in layouts.items()
    )
    (tmp_path / "places.c").write_text(text)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", tmp_path / "places.so", tmp_path / "places.c"], check=True
    )
    library = ctypes.CDLL(str(tmp_path / "places.so"))
    for name, layout in layouts.items():
        where = layout.coordinates()
        flat = (where["block"] * layout.rows + where["row"]) * layout.cols + where["col"]
        wanted = np.where(where["active"], flat, -1)
        found = [getattr(library, name)(*at) for at in np.ndindex(wanted.shape)]
        assert found == wanted.ravel().tolist(), name


def run(*arguments):
    return CliRunner().invoke(app, ["export", "c", *map(str, arguments)])


def test_the_command(tmp_path):
    out = tmp_path / "mfma.h"
    assert run("cdna3:v_mfma_f32_16x16x16_f16", "--out", out, "--prefix", "mfma").exit_code == 0
    assert "static inline void mfma_lanes(" in out.read_text()
    assert "cdna3_v_mfma_f32_4x4x4_16b_f16_dot(" in run("cdna3").output
    assert run("rx_7900_xtx").output == run("rdna3").output
    assert run("cdna3", "--arch", "hopper").exit_code == 2
    missing = run("cdna33")
    assert missing.exit_code == 2 and "cdna3" in missing.output
    assert run().exit_code == 2
