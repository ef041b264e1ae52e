"""How large the code is, by folder, compared with an earlier revision.

    python bench/size.py [--base REVISION]

Without --base the earlier revision is the last tag, else the commit that set the version in pyproject.toml.
A line counts where it holds anything. Below the table: modules that only one module imports, numeric
constants at the head of modules, and comments: they show when code grows by rules instead of principles.
"""

from __future__ import annotations

import argparse
import ast
import gc
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = {
    ".py": "Python",
    ".c": "C",
    ".h": "C",
    ".sv": "SystemVerilog",
    ".svh": "SystemVerilog",
    ".cu": "CUDA",
}
SHOWN = ("golden", "rtl_tb", "hw_capture", "bench", "campaigns", "mmagold", "spec", "tests", "docs")
DEEP = ("golden", "rtl_tb", "hw_capture")
"""Their folders have lines of their own in the table."""
Sources = dict[PurePosixPath, str]


def git(*words: str) -> str:
    """What git prints; empty where it fails, as in a checkout without history."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def base() -> str:
    """The last tag, else the commit that set the version."""
    return git("describe", "--tags", "--abbrev=0") or git(
        "log", "-1", "--format=%h", "-G^version = ", "--", "pyproject.toml"
    )


def now() -> Sources:
    """The sources that git tracks, as they lie on the disk."""
    paths = [PurePosixPath(line) for line in git("ls-files").splitlines()]
    return {
        path: (ROOT / path).read_text("utf-8") for path in paths if wanted(path) and (ROOT / path).is_file()
    }


def at(revision: str) -> Sources:
    """The sources of a revision."""
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [member for member in archive if member.isfile() and wanted(PurePosixPath(member.name))]
        held = {member.name: archive.extractfile(member) for member in files}
        return {PurePosixPath(name): stream.read().decode() for name, stream in held.items() if stream}


def wanted(path: PurePosixPath) -> bool:
    """Whether it is source text of a folder that the table shows."""
    return path.suffix in ENDINGS and path.parts[0] in SHOWN


def by_folder(sources: Sources) -> Counter[str]:
    """Lines that hold anything, by folder."""
    lines: Counter[str] = Counter()
    for path, text in sources.items():
        count = sum(bool(line.strip()) for line in text.splitlines())
        top, *below = path.parts[:-1]
        lines[top] += count
        if top in DEEP and below:
            lines[f"{top}/{below[0]}"] += count
    return lines


def figures(sources: Sources) -> dict[str, float]:
    """The figures below the table, of the Python outside of tests."""
    texts = {
        path: text for path, text in sources.items() if path.suffix == ".py" and path.parts[0] != "tests"
    }
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = sum(text.count("\n") for text in texts.values())
    comments = sum(line.lstrip().startswith("#") for text in texts.values() for line in text.splitlines())
    return {
        "lines of Python outside of tests": lines,
        "modules": len(trees),
        "modules with one importer": sum(count == 1 for count in importers(trees).values()),
        "numeric constants of modules": sum(map(numeric_constants, trees.values())),
        "comments in 1,000 lines": round(1000 * comments / lines, 1),
    }


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a block and of the blocks in it. No expression holds an import, and a walk through
    all expressions takes as long as all else here."""
    for node in body:
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, block, ()))


def importers(trees: Mapping[PurePosixPath, ast.Module]) -> Counter[str]:
    """How many modules import each module."""
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in trees}
    found: Counter[str] = Counter()
    for tree in trees.values():
        seen = set()
        for node in statements(tree.body):
            if isinstance(node, ast.Import):
                seen |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                seen |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found.update(seen & names)
    return found


def numeric_constants(tree: ast.Module) -> int:
    """Assignments of a number, or of an expression of numbers such as 1 << 20, at the head of a module."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value]
    return sum(map(is_number, values))


def is_number(value: ast.expr) -> bool:
    """Whether an expression holds only numbers and operators."""
    parts = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    nodes = list(ast.walk(value))
    numbers = [node for node in nodes if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    return bool(numbers) and all(isinstance(node, parts) or node in numbers for node in nodes)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="", help="revision to compare with")
    revision = parser.parse_args().base or base()
    gc.disable()  # millions of nodes, none of them garbage: looking for some took three quarters of the time
    sources, earlier = now(), at(revision) if revision else {}
    lines, before = by_folder(sources), by_folder(earlier)
    print(f"{'folder':<24}{'lines':>9}{revision or '-':>12}{'change':>9}")
    for folder in sorted(lines | before):
        change = lines[folder] - before[folder]
        print(f"{folder:<24}{lines[folder]:>9,}{before[folder]:>12,}{change:>+9,}")
    print()
    facts, past = figures(sources), figures(earlier) if earlier else {}
    for name, value in facts.items():
        print(f"{name:<36}{value:>10,}{past.get(name, 0):>12,}")


if __name__ == "__main__":
    main()
