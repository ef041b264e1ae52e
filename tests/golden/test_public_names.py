"""The public names of `golden`: what type checkers read is what is imported at the first use."""

import ast
import subprocess
import sys
from pathlib import Path

import golden


def test_type_checkers_read_what_is_imported() -> None:
    """Each name of __init__.pyi is that module's object; both files list the same names."""
    stub = ast.parse(Path(golden.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    sources = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    listed = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(sources) == sorted(ast.literal_eval(listed)) == golden.__all__
    for name, module in sources.items():
        __import__(str(module))
        assert getattr(golden, name) is getattr(sys.modules[str(module)], name)


def test_neither_the_package_nor_the_command_waits_for_numpy() -> None:
    """Help and completion of every package's commands answer before NumPy and the catalogue are imported."""
    text = "import sys, golden, golden.cli.app; print(sorted({'numpy', 'yaml', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
