"""Units in VHDL: their files in GHDL's libraries, and the ports of their top entity as GHDL elaborates it.

Nothing here parses VHDL. GHDL says which units a file has (-f), and, of an elaborated entity, the type of
every port and generic (--dump-rti), its direction (--disp-tree) and every single bit of it by its name
(--disp-signals-map): `x(7)`, `a(1)(0)`, `request.data(15)`. A port is those bits, from left to right, the
leftmost the most significant, and rtl_tb/dut/vhdl_wrapper.py connects them one by one, so that no type has
to be named.

GHDL reads the sources again when it runs them: a unit is copied into a folder of its own before it is
analysed.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rtl_tb.dut.ports import WITHOUT_BITS, Design, Module, Port, Range, members_of
from rtl_tb.errors import ElaborationError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed, no_build

STANDARDS = {"1987": "87", "1993": "93c", "2002": "02", "2008": "08"}
"""Editions of the language, and what GHDL calls them."""
_SOURCES = "src"
_WORK = "work"
_ALWAYS = ("-fsynopsys", "-fexplicit")
"""std_logic_arith and its like, which many older units use."""
_UNIT = re.compile(
    r"^(?P<kind>entity|package body|package|configuration|context|architecture) (?P<name>\S+)"
    r"(?: of (?P<of>\S+))?"
)
_NO_LIBRARY = re.compile(r'cannot find resource library "(?P<name>\w+)"')
_PLACE = re.compile(r"^(?:\S+:\d+:\d+: |\S*ghdl\S*:error: )(?!error during elaboration)(?P<text>.+)")
_BROKEN = re.compile(
    r"(?:^(?P<said>[^*\n]+)\n)?^\*+ GHDL Bug occurred.*?^Exception (?P<raised>[^\n]*)",
    re.DOTALL | re.MULTILINE,
)
_DIRECTION = re.compile(r"^\+-(?P<name>\S+) \[port (?P<direction>\w+)\]$")
_BIT = re.compile(r"^\.[^.(]+\([^)]*\)\.(?P<path>.+): [0-9A-F]+ net: -?\d+$")
_RTI = re.compile(r"^(?P<indent> *)ghdl_rtik_(?P<kind>\w+)(?:, D=\d+)?(?:, sloc=[\d:]+)?[:;] (?P<text>.*)$")
_STEP = re.compile(r"\((?P<index>[^)]*)\)|\.(?P<field>\w+)")
_BITS = "std_ulogic"
_DIRECTIONS = {"in": "input", "out": "output", "buffer": "output", "inout": "inout", "linkage": "inout"}


@dataclass(frozen=True)
class Vhdl:
    """What a unit in VHDL needs in addition to its sources, which are in the library work.

    Attributes:
        standard: one of STANDARDS.
        libraries: the files of other libraries, by name.
    """

    standard: str = "2008"
    libraries: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """Options of every call of GHDL."""
        return (f"--std={STANDARDS[self.standard]}", *_ALWAYS)

    @property
    def library(self) -> str:
        """The file in which GHDL keeps the library work."""
        return {"1987": "work-obj87.cf", "2008": "work-obj08.cf"}.get(self.standard, "work-obj93.cf")

    def files(self, sources: Sequence[Path]) -> list[Path]:
        """All files of the unit."""
        return [*(path for files in self.libraries.values() for path in files), *sources]


@dataclass(frozen=True)
class Entity(Module):
    """An elaborated entity.

    Attributes:
        bits: of every port the names of its bits as a port map writes them, the most significant first.
        generics: the kind of the type of every generic: "array", "std_ulogic", "enumeration", "record", ""
            for others.
    """

    bits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generics: Mapping[str, str] = field(default_factory=dict)


def analyse(
    simulator: Simulator,
    vhdl: Vhdl,
    sources: Sequence[Path],
    folder: Path,
    top: str | None,
    what: str,
    texts: Mapping[Path, bytes] | None = None,
) -> str:
    """Copies a unit into a folder and analyses it there in the order that it needs; `ghdl -r` in that
    folder, or in a copy of it, runs it.

    Args:
        texts: what the copies of sources have for their texts, line for line.

    Returns:
        The top, which is found where it is None and only one entity can be it.

    Raises:
        ElaborationError: GHDL refuses it, or a name that the top needs is defined twice.
    """
    origin: dict[str, Path] = {}
    twice: dict[str, str] = {}
    for library, files in (*vhdl.libraries.items(), (_WORK, sources)):
        names = [_copied(path, folder, origin, texts or {}) for path in files]
        twice |= _defined_twice(simulator, vhdl, names, folder, origin)
        _ghdl(simulator, vhdl, ["-i", f"--work={library}", *names], folder, origin, what)
    if top is None:
        tops = _tops(simulator, vhdl, names, folder, origin)
        if len(tops) != 1:
            found = ", ".join(tops) or "none"
            raise ElaborationError(f"expected one top entity, found {found}; --top names the unit")
        top = tops[0]
    for name in sorted(_reached(top, origin.values()) & twice.keys() if twice else ()):
        raise ElaborationError(twice[name])
    said = _ghdl(simulator, vhdl, ["-m", top], folder, origin, what)
    if open_ones := list(dict.fromkeys(name.lower() for name in _UNBOUND.findall(said))):
        raise ElaborationError(
            f"{what}: components without an entity: {', '.join(open_ones)}; add the files that define them"
        )
    return top.lower()


_RAN = re.compile(r"^\S*ghdl\S*:error: simulation failed$", re.MULTILINE)
"""The end of a run that began: the unit has elaborated."""
_UNBOUND = re.compile(r'instance "[^"]*" of component "(\w+)" is not bound')
"""What GHDL says of an instance that is left out: its outputs are undriven."""
_INSTANCE = re.compile(
    r":\s*entity\s+(?:\w+\.)?(\w+)|:\s*(?:component\s+)?(\w+)\s+(?:port|generic)\s+map", re.IGNORECASE
)
_DECLARATION = re.compile(r"\bcomponent\s+(\w+)", re.IGNORECASE)


def _tops(
    simulator: Simulator, vhdl: Vhdl, names: Sequence[str], folder: Path, origin: Mapping[str, Path]
) -> list[str]:
    """The entities of files of which no architecture has an instance (`ghdl --find-top` leaves out those with
    ports). Of several, those that no component declaration names: an architecture may declare an entity that
    it does not use. A declaration alone takes nothing: a package may hold that of the top."""
    units = units_of(simulator, vhdl, names, folder)
    entities = list(dict.fromkeys(name for kind, name, _ in units if kind == "entity"))
    texts = [
        re.sub(r"--[^\n]*", "", origin[name].read_text(encoding="utf-8", errors="replace")) for name in names
    ]

    def named(pattern: re.Pattern[str]) -> set[str]:
        return {
            word.lower()
            for text in texts
            for found in pattern.finditer(text)
            for word in found.groups()
            if word
        }

    used = named(_INSTANCE)
    tops = [name for name in entities if name not in used]
    if len(tops) > 1:
        declared = named(_DECLARATION)
        tops = [name for name in tops if name not in declared] or tops
    return tops


def copies(files: Sequence[Path]) -> dict[str, Path]:
    """The files of a unit, in the order of Vhdl.files, by the names that `analyse` gives their copies."""
    return {_copy(number, path): path for number, path in enumerate(files)}


def _copy(number: int, path: Path) -> str:
    return f"{_SOURCES}/{number}/{path.name}"


def _copied(path: Path, folder: Path, origin: dict[str, Path], texts: Mapping[Path, bytes]) -> str:
    """The name of a copy of a source, relative to the folder."""
    name = _copy(len(origin), path)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    try:
        (folder / name).write_bytes(texts[path] if path in texts else path.read_bytes())
    except OSError as error:
        raise ElaborationError(f"{path} cannot be read: {error.strerror}") from None
    origin[name] = path
    return name


def units_of(
    simulator: Simulator, vhdl: Vhdl, names: Sequence[str], folder: Path
) -> list[tuple[str, str, str]]:
    """(kind, name, entity of an architecture) of every design unit in files, in their order."""
    key = (simulator.identity, vhdl.options, tuple(map(_digest, (folder / name for name in names))))
    if key not in _units:
        _units[key] = _units_of(simulator, vhdl, names, folder)
    return _units[key]


_units: dict[object, list[tuple[str, str, str]]] = {}
"""The design units of files, by their contents: a check reads each file half a dozen times."""


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # who reads it says so
        return ""


def _units_of(
    simulator: Simulator, vhdl: Vhdl, names: Sequence[str], folder: Path
) -> list[tuple[str, str, str]]:
    text = simulators.run(
        [*simulator.start, "-f", *vhdl.options, *names],
        folder=folder,
        env=simulator.env,
        log=folder / "units.log",
    )
    found = filter(None, map(_UNIT.match, text.splitlines()))
    return [(unit["kind"], unit["name"].lower(), (unit["of"] or "").lower()) for unit in found]


def _defined_twice(
    simulator: Simulator,
    vhdl: Vhdl,
    names: Sequence[str],
    folder: Path,
    origin: Mapping[str, Path],
) -> dict[str, str]:
    """The names of units that a library has twice with texts that differ, and what a message says of each:
    the last would win without a word."""
    found: dict[str, str] = {}
    home: dict[tuple[str, str], str] = {}
    texts = {name: _texts_of(origin[name]) for name in names}
    for name in names:
        what = origin[name].name
        try:
            units = units_of(simulator, vhdl, [name], folder)
        except ToolFailed as error:  # -f of GHDL 2.0 crashes on what is no VHDL; -s says where
            _ghdl(simulator, vhdl, ["-s", name], folder, origin, what)
            raise ElaborationError(
                f"{simulator.version_text} refused {what}: {first_complaint(error.text, origin)}"
            ) from error
        for kind, unit, entity in units:
            key = (unit, {"architecture": entity, "package body": kind}.get(kind, ""))
            whole = (kind, unit, entity)
            differ = key in home and texts[name].get(whole, "") != texts[home[key]].get(whole)
            if differ or home.get(key) == name:
                places = f"{origin[home[key]]} and in {origin[name]}; name one of them"
                once = f"{origin[name]} twice; remove one of them"
                text = f"{kind} {unit} is defined in {once if home[key] == name else places}"
                found.setdefault(entity or unit, text)
            home[key] = name
    return found


def _reached(top: str, files: Iterable[Path]) -> set[str]:
    """The names of the units that the top needs: those whose names stand in the text of one that it needs."""
    texts: dict[str, str] = {}
    for path in files:
        for (_, name, entity), text in _texts_of(path).items():
            texts[entity or name] = f"{texts.get(entity or name, '')} {text.lower()}"
    found, left = set[str](), [top.lower()]
    while left:
        name = left.pop()
        if name in texts and name not in found:
            found.add(name)
            left += set(re.findall(r"\w+", texts[name])) & texts.keys()
    return found


_DECLARED = re.compile(
    r"^\s*(entity|architecture|package\s+body|package|configuration)\s+(\w+)(?:\s+of\s+(\w+))?\s+is\b",
    re.IGNORECASE | re.MULTILINE,
)
_CONTEXT = re.compile(r"( (library|use) [\w., ]+;)+$")


def _texts_of(path: Path) -> dict[tuple[str, str, str], str]:
    """The text of each design unit of a file by (kind, name, entity of an architecture), without comments,
    blanks, and the context of the next unit. Case is kept: it counts in strings."""
    text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8", errors="replace"))
    found = list(_DECLARED.finditer(text))
    ends = [*(each.start() for each in found[1:]), len(text)]
    return {
        (" ".join(each[1].lower().split()), each[2].lower(), (each[3] or "").lower()): _CONTEXT.sub(
            "", " ".join(text[each.start() : end].split())
        )
        for each, end in zip(found, ends, strict=False)  # a text without a unit has an end alone
    }


def _ghdl(
    simulator: Simulator,
    vhdl: Vhdl,
    words: Sequence[str],
    folder: Path,
    origin: Mapping[str, Path],
    what: str,
) -> str:
    """Runs a command of GHDL in the folder and returns what it printed."""
    command, *arguments = words
    call = [*simulator.start, command, *vhdl.options, *arguments]
    try:
        return simulators.run(
            call, folder=folder, env=simulator.env, log=folder / "ghdl.log", timeout=simulators.build_limit()
        )
    except ToolFailed as error:
        first = first_complaint(error.text, origin)
        raise no_build(error, simulator.version_text, what, first) from error


def first_complaint(text: str, origin: Mapping[str, Path] | None = None) -> str:
    """The first complaint of GHDL, all of its lines, with the place in the designer's own file where `origin`
    knows it by the copy's."""
    if (broken := _BROKEN.search(text)) is not None:
        return f"it has a bug of its own: {without_copies((broken['said'] or broken['raised']).strip())}"
    lines = text.splitlines()
    wanted = [line for line in lines if _PLACE.match(line) and ":warning:" not in line]
    if wanted:  # a message of several lines says its place in each
        place = wanted[0].partition(": ")[0] + ": "
        same = itertools.takewhile(lambda each: each.startswith(place), wanted)
        line = place + " ".join(dict.fromkeys(each.removeprefix(place).strip() for each in same))
    else:
        line = next((each for each in reversed(lines) if each.strip()), "it printed nothing")
    for name, path in (origin or {}).items():
        line = line.replace(f"{name}:", f"{path}:")
    line = without_copies(re.sub(r"^\S*ghdl\S*:error: ", "", line))
    if (library := _NO_LIBRARY.search(line)) is not None:
        name = library["name"]
        key = f"vhdl: {{libraries: {{{name}: [FILE]}}}}"
        line += f"; name its files: {key} in dut.yaml, --library {name}=FILE of rtl init"
    return line


def without_copies(text: str) -> str:
    """The text with the names of files in place of the names of their copies."""
    return re.sub(rf"\b{_SOURCES}/\d+/(?=\S+:\d+)", "", text)


# Ports ------------------------------------------------------------------------------------------------------


def read_entity(design: Design, vhdl: Vhdl) -> Entity:
    """Elaborates a design with its generics and returns its top entity.

    Raises:
        SimulatorMissing, SimulatorTooOld: there is no GHDL. ElaborationError: it refuses the design.
    """
    simulator = simulators.ghdl()
    files = [(path, _digest(path)) for path in vhdl.files(design.sources)]
    key = (simulator.identity, repr(vhdl), design.top, repr(design.parameters), tuple(files))
    if key not in _entities:
        _entities[key] = _read_entity(simulator, design, vhdl)
    return _entities[key]


_entities: dict[object, Entity] = {}
"""Elaborated entities, by all that they depend on: every engine and every wrapper asks for the same one."""


def _read_entity(simulator: Simulator, design: Design, vhdl: Vhdl) -> Entity:
    what = f"the entity {design.top}" if design.top else "the sources"
    with tempfile.TemporaryDirectory(prefix="mmagold_vhdl_") as name:
        folder = Path(name)
        top = analyse(simulator, vhdl, design.sources, folder, design.top, what)
        generics = [f"-g{key}={value}" for key, value in (design.parameters or {}).items()]
        shown = (
            "--stop-time=0ns",
            "--asserts=disable",
            "--dump-rti",
            "--disp-tree=port",
            "--disp-signals-map",
        )
        try:
            text = simulators.run(
                [*simulator.start, "-r", *vhdl.options, top, *generics, *shown],
                folder=folder,
                env=simulator.env,
                log=folder / "elaborated.log",
                timeout=min(120.0, simulators.build_limit()),
            )
        except ToolFailed as error:
            text = error.text
            # The ports come before time 0. A unit that fails there, before its reset, has elaborated; what it
            # said belongs to its check.
            if not _RAN.search(text):
                alone = "not in range for generic" in text and generics
                why = "; it looks at each generic before it sets the others: set them in an entity of yours"
                raise ElaborationError(
                    f"{simulator.version_text} refused {what}: {first_complaint(text)}{why * bool(alone)}"
                ) from error
    return _entity(top, text.splitlines())


def _entity(top: str, lines: Sequence[str]) -> Entity:
    types = _Types(lines)
    directions = {found["name"]: found["direction"] for found in filter(None, map(_DIRECTION.match, lines))}
    bits: dict[str, dict[str, None]] = {}
    for found in filter(None, map(_BIT.match, lines)):
        name = re.split(r"[(.]", found["path"], maxsplit=1)[0]
        if name in types.ports:
            bits.setdefault(name, {})[found["path"]] = None
    ports = {
        name: _port(name, _DIRECTIONS[directions[name]], types, list(bits.get(name, ())))
        for name in types.ports
    }
    generics = {name: types.kind(text, []) for name, text in types.generics.items()}
    return Entity(
        top,
        ports,
        tuple(types.generics),
        bits={name: tuple(found) for name, found in bits.items()},
        generics=generics,
    )


_NUMBERS = ("sfixed", "ufixed", "float")
"""Types of ieee.fixed_pkg and ieee.float_pkg (IEEE 1076-2008, annex G), which GHDL does not define."""


class _Types:
    """What --dump-rti says: the types by name, each with all of its definitions, and ports and generics of
    the top.

    Attributes:
        ports, generics: the text of the type of each.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.ports: dict[str, str] = {}
        self.generics: dict[str, str] = {}
        self._known: dict[str, list[str | dict[str, str]]] = {
            f"unresolved_{name}": [f"array (integer range <>) of {_BITS}"] for name in _NUMBERS
        }
        record: dict[str, str] = {}
        top: int | None = None
        for line in lines:
            found = _RTI.match(line)
            if found is None:
                continue
            kind, text, depth = found["kind"], found["text"], len(found["indent"])
            # The first entity is the top. What stands deeper is its own: a port that comes after it may be
            # that of a component.
            if kind == "entity" and top is None:
                top = depth
            elif top is not None and depth <= top:
                top = -1
            if kind in ("port", "generic") and top is not None and top >= 0:
                name, _, rest = text.partition(": ")
                of = self.ports if kind == "port" else self.generics
                of[name] = rest.partition(" :=")[0]
            elif kind == "element":
                name, _, rest = text.partition(": ")
                record[name] = rest
            elif "record" in kind and text.endswith("is record"):
                record = {}
                self._add(text.removesuffix(" is record"), record)
            elif kind.startswith(("type_", "subtype_")):
                name, _, rest = text.partition(" is ")
                self._add(name, rest)

    def _add(self, name: str, definition: str | dict[str, str]) -> None:
        known = self._known.setdefault(name.lower(), [])
        if definition not in known:
            known.append(definition)

    def kind(self, text: str, steps: Sequence[str]) -> str:
        """The type at a path of steps, "()" for an index and else the name of a field, below a type: its
        last name; "array" for one. "" where that is not known."""
        found = set(self._kinds(text, list(steps), 0))
        return found.pop() if len(found) == 1 else ""

    def _kinds(self, text: str, steps: list[str], depth: int) -> Iterable[str]:
        name = re.split(r"[ (]", text, maxsplit=1)[0].lower()
        if name == _BITS:
            yield _BITS if not steps else ""
            return
        definitions = self._known.get(name, [])
        if not definitions or depth > 64:
            yield ""
        for each in definitions:
            if isinstance(each, dict):
                yield from self._kinds(each.get(steps[0], "?"), steps[1:], depth + 1) if steps else ["record"]
            elif (
                array := re.match(r"(?:array|\S+) ?\((?P<range>.*?)\) of (?P<element>.+)", each)
            ) is not None:
                yield from (
                    self._kinds(array["element"], steps[1:], depth + 1) if steps[:1] == ["()"] else ["array"]
                )
            elif each.startswith("("):
                yield "enumeration" if not steps else ""
            elif re.split(r"[ (]", each, maxsplit=1)[0].lower() == name:
                yield name if not steps else ""
            else:
                yield from self._kinds(each, steps, depth + 1)


def _port(name: str, direction: str, types: _Types, paths: Sequence[str]) -> Port:
    """A port made of its bits."""
    steps = [[_step(match) for match in _STEP.finditer(path[len(name) :])] for path in paths]
    for path, of_one in zip(paths, steps, strict=True):
        kind = types.kind(types.ports[name], ["()" if isinstance(step, int) else step for step in of_one])
        if kind != _BITS:
            where = "" if path == name else f" in {path}"
            return Port(name, direction, 0, problem=f"of type {kind or types.ports[name]}{where}")
    if not paths:
        return Port(name, direction, 0, problem=WITHOUT_BITS)
    if not re.fullmatch(r"\w+", name):
        return Port(name, direction, 0, problem="an extended identifier")
    try:
        return _port_of(name, direction, steps, top=True)
    except ValueError as error:
        return Port(name, direction, 0, problem=str(error))


Step = int | str


def _step(match: re.Match[str]) -> Step:
    index = match["index"]
    return match["field"] if index is None else int(index) if re.fullmatch(r"-?\d+", index) else f"({index})"


def _port_of(name: str, direction: str, steps: Sequence[Sequence[Step]], top: bool = False) -> Port:
    """A port, or a field, of bits with these steps below it; raises ValueError where none describes it."""
    dimensions: list[Range] = []
    while steps[0] and isinstance(steps[0][0], int):
        indices = list(dict.fromkeys(each[0] for each in steps))
        if not all(isinstance(index, int) for index in indices):
            raise ValueError("of a type that is no array of one kind")
        dimensions.append((int(indices[0]), int(indices[-1])))
        steps = [each[1:] for each in steps if each[0] == indices[0]]
    members: list[tuple[int, Port]] = []
    if steps[0]:
        fields: dict[str, list[Sequence[Step]]] = {}
        for each in steps:
            if not isinstance(each[0], str) or each[0].startswith("("):
                raise ValueError("an array with indices that are no single numbers")
            fields.setdefault(each[0], []).append(each[1:])
        bits = members_of([_port_of(key, direction, below) for key, below in fields.items()], False, members)
    else:
        bits = 1
        if dimensions:  # the last index is that of a vector's bits
            left, right = dimensions.pop()
            bits = abs(left - right) + 1
    width = bits
    for left, right in dimensions:
        width *= abs(left - right) + 1
    arrays = tuple(dimensions)
    packed, unpacked = ((), arrays) if top else (arrays, ())
    return Port(name, direction, width, packed, unpacked, members=tuple(members))


def generic_text(entity: Entity, name: str, value: int | str) -> str:
    """A generic's value as VHDL writes it; raises ElaborationError for what is no value."""
    kind, text = entity.generics.get(name, ""), str(value)
    if kind == "array":
        return '"' + text.replace('"', '""') + '"'
    if kind == _BITS:
        return f"'{text}'"
    if not re.fullmatch(r"-?[\w.]+", text):
        raise ElaborationError(f"generic {name} of {entity.name} is {text!r}, expected a number or a name")
    return text
