"""Compiled DUTs, used again only for exactly the text that was compiled.

    <build folder>/<engine>/<digest>/    a finished build; nothing writes into it again, and contents.json
                                         says what it holds: a damaged one is found out, and made anew
    <build folder>/<engine>/tmp_*/       a build in progress, or one that failed, with its log
    <build folder>/<engine>/once_*/      a build that serves one check only
    <build folder>/texts/                texts that a check makes of the unit's own, see `kept_text`

tmp_* and once_* belong to their process; the next build in the folder removes what ended processes left.

Which files a build depends on is the simulator's own answer, requested again for every check: only its
preprocessor knows what `include `NAME` means, and which folder a header comes from today. The digest covers
the content of all of them. A design of which a file is saved while it is compiled is compiled again; one of
which not every file is known (C++ as a source or in the text, with headers of its own) serves one check only.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from golden.files.output import made_folder, write_whole
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.sources import options
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import contents
from rtl_tb.errors import ElaborationError, MachineError, RtlError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator

OBJECTS = "objects"
"""Folder in a build that a recipe may fill with what only the compiler needs; a finished build does not
keep it."""
OWNER = "owner"
"""Empty file in a folder that belongs to a process."""
TEXTS, KEPT = "texts", 86_400.0
"""Folder of the texts that a check makes of a unit, and the seconds that one stays after its last use."""
DEPENDENCIES = "dependencies.txt"
"""File in which Icarus Verilog lists what it read (option -M);
Verilator writes <prefix>__verFiles.dat by itself."""
_READ_BY_VERILATOR = re.compile(r'^S .*"([^"]*)"$', re.MULTILINE)
_VERILATORS_OWN = ("verilator_bin", "verilator_bin_dbg", "verilated_std.sv", "verilated_std_waiver.vlt")
_CPP = re.compile(rb"\$c(?:pure)?\d*\b|`systemc_")
"""C++ that Verilator copies out of a source, and that may include files which it does not list."""
_CHECKERS = re.compile(r"mmagold_(?:tb|dut)\b")
_NO_NAMES = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?(?:\*/|\Z)|^[ \t]*`line [^\n]*', re.DOTALL | re.MULTILINE
)
"""Strings, comments and the preprocessor's own lines."""
HDL = (".v", ".sv", ".vh", ".svh", ".vlt")
_NO_VERILOG = (".vlt", ".c", ".cc", ".cpp", ".cxx", ".sp", ".o", ".a", ".so")
"""What Verilator takes for something else; it reads a file of any other name as Verilog."""


@dataclass(frozen=True)
class Recipe:
    """How a design becomes a build.

    Attributes:
        dut: its sources, include folders and macros.
        simulator: who compiles.
        top: top module of the whole design.
        generated: files that are written into the build folder, by name, in the order in which they are
            compiled.
        first: the names in `generated` that are compiled before the DUT's sources.
        language: options that decide what the text means; the front end that lists the files gets them, too.
        options: all else that the build depends on, such as options of the compiler.
        compile: compiles in the given folder, in which `generated` lies already.
        product: the file that it leaves there.
    """

    dut: Dut
    simulator: Simulator
    top: str
    generated: Mapping[str, str]
    language: Sequence[str]
    options: object
    compile: Callable[[Path], None]
    product: str
    first: Sequence[str] = ()

    def files(self, folder: Path) -> list[Path]:
        """Every file of the design in the order of compilation, for a build in `folder`."""
        last = [name for name in self.generated if name not in self.first]
        return [*(folder / name for name in self.first), *self.dut.sources, *(folder / name for name in last)]


def design_of(dut: Dut) -> Design:
    """The design of a DUT in Verilog as slang reads it."""
    sources = [path for path in dut.sources if path.suffix in HDL and path.suffix != ".vlt"]
    return Design(sources, dut.top, dut.include, dut.defines, dut.parameters, dut.libraries, dut.types)


def _all_listed(dut: Dut, inputs: Inputs) -> bool:
    """Whether a design has no C++, of its own or in its text: files that it includes are in no list."""
    own = [path for path in inputs.files if path.name not in _VERILATORS_OWN]
    if dut.vhdl is not None:
        return True
    return all(path.suffix in HDL for path in dut.sources) and not any(map(holds_cpp, own))


def holds_cpp(path: Path) -> bool:
    """Whether a file of a design has C++ in its text, whose headers nobody lists."""
    try:
        return _CPP.search(path.read_bytes()) is not None
    except OSError:
        return True


def design_options(dut: Dut, simulator: str) -> list[str]:
    """Include folders, macros and libraries of a DUT."""
    return options(simulator, dut.include, dut.defines, dut.libraries)


def verilog_of(dut: Dut) -> list[Path]:
    """The sources of a DUT that hold Verilog, whatever their names."""
    return [path for path in dut.sources if path.suffix not in _NO_VERILOG]


def library_modules(dut: Dut, files: Iterable[Path]) -> list[Path]:
    """The files of a design that are modules of the DUT's libraries."""
    folders = {os.path.abspath(path) for path in dut.libraries}
    modules = [path for path in files if path.suffix in (".v", ".sv") and str(path.parent) in folders]
    return [path for path in modules if path not in dut.sources]


def files_read(dut: Dut, simulator: Simulator, options: Sequence[str] = ()) -> list[Path]:
    """The files of a DUT's design that the simulator's front end reads today, with these options in
    addition to the
    DUT's own: sources, headers, modules of libraries; of VHDL the named ones. What the simulator
    brings itself does not count.

    Raises:
        ElaborationError: it refuses the design.
    """
    if dut.vhdl is not None:
        return dut.vhdl.files(dut.sources)
    if dut.handshake.measured and dut.handshake.latency is None:
        dut = dut.with_latency(0)
    text, nothing = {f"{NAME}.sv": wrapper_of(dut)}, lambda _place: None
    language = ("--timing",) if simulator.name == "verilator" else ("-g2012",)
    recipe = Recipe(dut, simulator, NAME, text, (*language, *options), (), nothing, "")
    with tempfile.TemporaryDirectory(prefix="mmagold_files_") as name:
        (Path(name) / f"{NAME}.sv").write_text(text[f"{NAME}.sv"], encoding="utf-8")
        return [path for path in _front_end(recipe, Path(name)) if path.name not in _VERILATORS_OWN]


def warnings_of(dut: Dut, kinds: Sequence[str]) -> tuple[str, ...]:
    """What Verilator warns of in a DUT's own text, of these kinds, each once: FILE:LINE:COLUMN: text.

    No option of Verilator gives a top its interfaces or types: such a DUT is read within its wrapper.
    """
    wanted = re.compile(rf"^%Warning-(?:{'|'.join(kinds)})\w*: (?P<text>.+)", re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="mmagold_lint_") as name:
        folder = Path(name)
        parameters = [f"-G{key}={value}" for key, value in dut.parameters.items()]
        alone: list[str | Path] = [*parameters, "--top-module", dut.top, *dut.sources]
        shelled = dut.types or any("." in name for name in dut.parameters)
        try:
            log = ("" if shelled else _lint(dut, alone, folder)) or _lint_wrapped(
                dut, folder, wrapper_of(dut)
            )
        except RtlError:
            return ()
    texts = (found["text"] for found in wanted.finditer(log))
    return tuple(dict.fromkeys(text for text in texts if not text.startswith(name)))


def reads(dut: Dut, folder: Path, wrapper: str) -> bool:
    """Whether Verilator reads a DUT within its wrapper; no program is made of it."""
    try:
        return bool(_lint_wrapped(dut, folder, wrapper))
    except MachineError:  # it was larger than the memory
        return False


def _lint_wrapped(dut: Dut, folder: Path, wrapper: str) -> str:
    (folder / f"{NAME}.sv").write_text(wrapper, encoding="utf-8")
    return _lint(dut, ["--top-module", NAME, *dut.sources, folder / f"{NAME}.sv"], folder)


def _lint(dut: Dut, design: Sequence[str | Path], folder: Path) -> str:
    """What Verilator's lint prints; "" where it refuses the design."""
    options = ["--lint-only", "-Wall", "--timing", "--Mdir", str(folder)]
    arguments = [*options, *design_options(dut, "verilator"), *design]
    try:
        return simulators.elaborate(simulators.verilator(), arguments, folder=folder, what=dut.name) or " "
    except ElaborationError:
        return ""


def built(place: Path, recipe: Recipe) -> Path:
    """Returns the folder of the finished build below `place`,
    compiled only where there is none of the same content.

    Raises:
        ElaborationError: the simulator refused the design; its log stays.
        MachineError: it broke off, or left nothing; its log stays, too.
        RtlError: a file changes every time that the design is compiled.
    """
    place.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    changed: Path | None = None
    # Compilations of a design whose files change meanwhile, before the user gets a message.
    tries = 3
    for _ in range(tries):
        scratch = _own_folder(place)
        keep = False
        try:
            for name, text in recipe.generated.items():
                (scratch / name).write_text(text, encoding="utf-8")
            inputs = Inputs.read(_front_end(recipe, scratch))
            _check_reach(recipe, scratch, library_modules(recipe.dut, inputs.files))
            finished = place / _digest(recipe, inputs)
            listed = _all_listed(recipe.dut, inputs)
            if listed and contents.intact(finished):
                return finished
            recipe.compile(scratch)
            if not (scratch / recipe.product).is_file():
                raise MachineError(
                    f"{recipe.simulator.version_text} said nothing, but made no program of {recipe.dut.name}"
                )
            compiled = _read_by_the_simulator(recipe, scratch)
            further = [path for path in library_modules(recipe.dut, compiled) if path not in inputs.files]
            if further:  # Icarus Verilog's preprocessor does not look for modules
                _check_reach(recipe, scratch, further)
            changed = inputs.changed()
            if changed is None:
                if listed and set(compiled) <= set(inputs.files):
                    return _publish(recipe, scratch, finished)
                keep = True
                return _publish(recipe, scratch, scratch.with_name(f"once_{scratch.name[4:]}"))
        except (ElaborationError, MachineError):
            keep = True  # its message names the log
            raise
        finally:
            if not keep:
                shutil.rmtree(scratch, ignore_errors=True)
                os.close(_owned.pop(scratch))
    raise RtlError(
        f"{changed} changed each of the {tries} times that {recipe.dut.name} was compiled; check when it is "
        "saved"
    )


def built_once(
    place: Path, sources: Sequence[Path], generated: Mapping[str, str], compile_in: Callable[[Path], None]
) -> Path:
    """Returns the folder of a build that serves this process alone: its simulator does not say what it read.

    Raises:
        ElaborationError: the simulator refused the design; its log stays.
        RtlError: a source was changed meanwhile.
    """
    place.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    scratch = _own_folder(place)
    for name, text in generated.items():
        (scratch / name).write_text(text, encoding="utf-8")
    inputs = Inputs.read(sources)
    compile_in(scratch)
    if (changed := inputs.changed()) is not None:
        raise RtlError(f"{changed} was changed while it was compiled; check when it is saved")
    return scratch


def check_whole(program: Path) -> None:
    """Raises MachineError where Icarus Verilog did not write its program to the end; it says nothing
    of a full disk."""
    with program.open("rb") as file:
        file.seek(max(program.stat().st_size - (1 << 20), 0))
        last = re.search(rb"\n:file_names (\d+);\n((?:    .*\n)*)\Z", file.read())
        if last is None or last[2].count(b"\n") != int(last[1]):
            raise MachineError(f"Icarus Verilog wrote only a part of {program}; is the disk full?")


def _publish(recipe: Recipe, scratch: Path, finished: Path) -> Path:
    """Gives a build its name, in one step; where another process was faster, its build serves, unless it is
    damaged."""
    shutil.rmtree(scratch / OBJECTS, ignore_errors=True)
    if finished.name.startswith("once_"):
        return scratch.rename(finished)
    (scratch / OWNER).unlink()
    contents.write(scratch)
    with _alone(finished.parent):
        try:
            return scratch.rename(finished)
        except OSError:
            if contents.intact(finished):
                return finished
        away = _own_folder(finished.parent)
        finished.rename(away / "damaged")
        scratch.rename(finished)
    shutil.rmtree(away, ignore_errors=True)
    os.close(_owned.pop(away))
    return finished


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Holds a lock on a folder: of two processes that find the same damaged build, the second must not take
    away what the first has put in its place."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# Folders of one process -------------------------------------------------------------------------------------

_owned: dict[Path, int] = {}
"""Descriptors of this process that hold the lock on the file OWNER of its folders, until it ends."""


def _own_folder(place: Path) -> Path:
    """A new folder tmp_* whose file OWNER this process holds locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix="tmp_", dir=place))
        descriptor = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks: nobody will sweep there
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (folder / OWNER).exists():
            _owned[folder] = descriptor
            return folder
        os.close(descriptor)  # another process has swept it before the lock was held


def forget(folder: Path) -> None:
    """Lets go of the failed builds below a folder that its owner removes."""
    for own in [own for own in list(_owned) if own.is_relative_to(folder)]:
        os.close(_owned.pop(own))


def _sweep(place: Path) -> None:
    """Removes the private folders of processes that have ended: of failed builds the logs stay until then."""
    for owner in (*place.glob(f"tmp_*/{OWNER}"), *place.glob(f"once_*/{OWNER}")):
        with contextlib.suppress(OSError), owner.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owner.parent, ignore_errors=True)


def kept_text(folder: Path, name: str, text: str | bytes, suffix: str = ".sv") -> Path:
    """A file of this text in a folder of builds. The same text is the same file, so that its builds serve
    again; texts that no check has used within KEPT seconds are removed."""
    folder = folder.absolute() / TEXTS
    content = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    file = folder / f"{name}_{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    with made_folder(folder):
        if not file.is_file() or file.read_bytes() != content:
            write_whole(file, lambda stream: stream.write(content))
        used = file.with_suffix(".used")  # a new date of the file itself would look like a change
        used.touch()
        for other in folder.glob("*.used"):
            with contextlib.suppress(OSError):
                if used.stat().st_mtime - other.stat().st_mtime > KEPT:
                    for each in folder.glob(f"{glob.escape(other.stem)}.*"):
                        each.unlink()
    return file


# What a build depends on ------------------------------------------------------------------------------------


def stamp(path: Path) -> tuple[int, ...]:
    """What every write to a file, and every other file in its place, changes; empty where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass(frozen=True)
class Inputs:
    """Files as they were at one moment: stamp and digest of the content of each, by path."""

    files: Mapping[Path, tuple[tuple[int, ...], str]]

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Inputs:
        """Reads them; the stamp is taken first, so that a file which changes meanwhile is seen
        as changed later."""
        return cls({path: (stamp(path), _content(path)) for path in dict.fromkeys(paths)})

    def changed(self) -> Path | None:
        """The first file that is not what it was, or was another meanwhile;
        None where all are as they were."""
        for path, (before, content) in self.files.items():
            if not before or stamp(path) != before or _content(path) != content:
                return path
        return None


def _content(path: Path) -> str:
    try:
        return contents.digest(path)
    except OSError:
        return ""


def _digest(recipe: Recipe, inputs: Inputs) -> str:
    """Names a build by all that it depends on: every file's place and content, the generated texts, the
    options, the tool."""
    contents = [(str(path), content) for path, (_, content) in inputs.files.items()]
    generated = list(recipe.generated.items())
    design = (
        recipe.dut.vhdl,
        recipe.top,
        recipe.first,
        [str(path) for path in recipe.dut.sources],
        design_options(recipe.dut, recipe.simulator.name),
    )
    everything = (recipe.simulator.identity, recipe.language, recipe.options, design, generated, contents)
    return hashlib.sha256(repr(everything).encode(errors="surrogateescape")).hexdigest()[:24]


def _front_end(recipe: Recipe, scratch: Path) -> list[Path]:
    """The files that the simulator's front end reads now. VHDL includes none: they are the named
    ones."""
    if recipe.dut.vhdl is not None:
        return recipe.dut.vhdl.files(recipe.dut.sources)
    folder = scratch / "front_end"
    folder.mkdir()
    simulator, dut = recipe.simulator, recipe.dut
    if simulator.name == "verilator":
        arguments: list[str | Path] = [
            "--lint-only",
            "--MMD",
            "-Wno-lint",
            "-Wno-style",
            "--Mdir",
            folder,
        ]
        arguments += ["--top-module", recipe.top]
    else:
        arguments = ["-E", f"-Mall={folder / DEPENDENCIES}", "-o", os.devnull]
    arguments += [*recipe.language, *design_options(dut, simulator.name), *recipe.files(scratch)]
    simulators.elaborate(simulator, arguments, folder=folder, what=f"the DUT {dut.name}")
    found = _read_by_the_simulator(recipe, folder, scratch)
    shutil.rmtree(folder)
    return found


def _check_reach(recipe: Recipe, scratch: Path, modules: Sequence[Path]) -> None:
    """Refuses sources and modules of libraries that name a module of the checker, as a hierarchical name or a
    target of `bind`: a unit could switch off what watches it.

    Raises:
        RtlError: they do, after the preprocessor.
    """
    simulator, dut = recipe.simulator, recipe.dut
    if dut.vhdl is not None:
        return  # rtl_tb/engines/ghdl.py does it
    sources = [*verilog_of(dut), *modules]
    if not sources:
        return  # a translation, which has no hierarchy
    options: list[str | Path] = [*design_options(dut, simulator.name)]
    if simulator.name == "verilator":
        text = simulators.preprocessed([*options, *sources], folder=scratch, what=dut.name)
    else:
        file = scratch / "preprocessed.v"
        words: list[str | Path] = ["-E", "-g2012", *options, *sources, "-o", file]
        simulators.elaborate(simulator, words, folder=scratch, what=dut.name)
        text = file.read_text(encoding="utf-8", errors="replace")
        file.unlink()
    named = _CHECKERS.search(_NO_NAMES.sub(" ", text))
    if named:
        raise RtlError(
            f"{dut.name}: its text names {named[0]}, a module of the checker; a unit that reaches into what "
            "checks it proves nothing"
        )


def _read_by_the_simulator(recipe: Recipe, folder: Path, build: Path | None = None) -> list[Path]:
    """The files that a run of the simulator in `folder` says it read, without files of the build itself; and
    all sources.

    Raises:
        MachineError: it left no list. Without one nobody knows what was compiled.
    """
    if recipe.dut.vhdl is not None:
        return recipe.dut.vhdl.files(recipe.dut.sources)
    names: list[str] = []
    for listed in folder.rglob("*__verFiles.dat"):
        names += _READ_BY_VERILATOR.findall(listed.read_text(encoding="utf-8", errors="surrogateescape"))
    for listed in folder.rglob(DEPENDENCIES):
        names += listed.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    if not names:
        raise MachineError(
            f"{recipe.simulator.version_text} did not say which files it read for {recipe.dut.name}"
        )
    own = (build or folder).absolute()
    paths = [*recipe.dut.sources, *(Path(os.path.abspath(folder / name)) for name in names)]
    return [path for path in dict.fromkeys(paths) if not path.is_relative_to(own)]
