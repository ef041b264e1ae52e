"""Mutants: units with planted faults that qualify the vectors. Read from rtl_tb/mutants/*.yaml.

A file holds a list `mutants`, each with

    mutant      its name, unique
    unit        a file of rtl_tb/rtl/duts without its suffix, or a .yaml path relative to the mutants' folder
    fault       one sentence: what was done to the unit
    group       arithmetic (the default) or protocol
    patches     a list of {file, find, replace}: `find` must occur exactly once in that source of the unit
    parameters  values that override the unit's
    diagnosis   the slug of the hypothesis that must name the fault, where the diagnosis knows it
    traffic     idle, backpressure and resets while it runs (see rtl_tb/engines/job.py)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from golden import yamlfile
from golden.errors import SpecError, UnknownNameError, nearest
from golden.yamlfile import Section
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.text import read, write
from rtl_tb.engines.job import Traffic

GROUPS = ("arithmetic", "protocol")
FOLDER = Path(__file__).parents[1] / "mutants"
UNITS = Path(__file__).parents[1] / "rtl" / "duts"


@dataclass(frozen=True)
class Patch:
    """One replacement in one source file."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class Mutant:
    """One planted fault; `where` is the file and line that describe it.
    Fields as in the module's docstring."""

    name: str
    unit: Path
    fault: str
    group: str
    patches: tuple[Patch, ...]
    parameters: dict[str, int | str]
    diagnosis: str | None
    traffic: Traffic
    where: str

    @property
    def unit_name(self) -> str:
        """What the unit is called: its file or, where that is a dut.yaml, the file's folder."""
        return self.unit.parent.name if self.unit.name == "dut.yaml" else self.unit.stem

    def plant(self, folder: Path) -> Dut:
        """Copies the unit's sources to `folder`, applies the patches and returns the description of the
        faulty unit.

        Raises:
            SpecError: a patch does not fit its source (see `patched`).
        """
        dut = load_dut(self.unit)
        folder.mkdir(parents=True, exist_ok=True)
        texts = self.patched(dut)
        for name, text in texts.items():
            target = folder / name
            write(target, text)
        sources = tuple(folder / source.name for source in dut.sources)
        return replace(dut, name=self.name, sources=sources, parameters=dut.parameters | self.parameters)

    def patched(self, dut: Dut) -> dict[str, str]:
        """The unit's sources by file name, with the patches applied.

        Raises:
            SpecError: a patch names a file that the unit has not,
                or `find` does not occur exactly once in it.
        """
        texts = {source.name: read(source) for source in dut.sources}
        for patch in self.patches:
            if patch.file not in texts:
                raise SpecError(
                    f"{self.where}: '{patch.file}' is no source of {dut.name}{nearest(patch.file, texts)}"
                )
            found = texts[patch.file].count(patch.find)
            if found != 1:
                raise SpecError(
                    f"{self.where}: '{patch.find}' occurs {found} times in {patch.file}, expected exactly "
                    "once"
                )
            texts[patch.file] = texts[patch.file].replace(patch.find, patch.replace)
        return texts


def load_mutants(names: Iterable[str] | None = None, folder: Path = FOLDER) -> list[Mutant]:
    """Reads the mutants of a folder, in the order of the files and of their lists.

    Args:
        names: only these; None: all.

    Raises:
        SpecError: a file is wrong, with file, line, key and what was expected. UnknownNameError: no mutant of
            that name.
    """
    return read_mutants(sorted(folder.glob("*.yaml")), names, folder)


def read_mutants(
    files: Iterable[Path], names: Iterable[str] | None = None, folder: Path = FOLDER
) -> list[Mutant]:
    """Reads the mutants of some files, wherever they lie; units are relative to `folder`.

    Args, raises: as load_mutants.
    """
    mutants: dict[str, Mutant] = {}
    for path in files:
        document = yamlfile.read(path)
        for item in document.take("mutants", list):
            if not isinstance(item, Section):
                raise document.error("each mutant is a mapping", "mutants")
            mutant = _read(item, folder)
            if mutant.name in mutants:
                raise item.error(
                    f"mutant '{mutant.name}' exists already, {mutants[mutant.name].where}", "mutant"
                )
            mutants[mutant.name] = mutant
        document.done()
    if names is None:
        return list(mutants.values())
    for name in names:
        if name not in mutants:
            raise UnknownNameError(f"unknown mutant '{name}' in {folder}{nearest(name, mutants)}")
    return [mutants[name] for name in dict.fromkeys(names)]


def _read(item: Section, folder: Path) -> Mutant:
    unit = item.take("unit", str)
    path = folder / unit if unit.endswith(".yaml") else UNITS / f"{unit}.yaml"
    if not path.exists():
        known = [file.stem for file in UNITS.glob("*.yaml")]
        raise item.error(f"there is no unit '{unit}'{nearest(unit, known)}", "unit")
    parameters: Section = item.take("parameters", Section, None) or Section(item.file, item.line)
    mutant = Mutant(
        item.take("mutant", str),
        path,
        item.take("fault", str),
        item.take_choice("group", GROUPS, "arithmetic"),
        tuple(_patch(item, entry) for entry in item.take("patches", list, [])),
        {name: parameters.take(name, (int, str)) for name in parameters},
        item.take("diagnosis", str, None),
        _traffic(item.take("traffic", Section, None)),
        f"{item.file}:{item.line}",
    )
    item.done()
    if not mutant.patches and not mutant.parameters:
        raise item.error("a mutant needs 'patches' or 'parameters'")
    return mutant


def _patch(item: Section, entry: object) -> Patch:
    if not isinstance(entry, Section):
        raise item.error("each patch is a mapping with file, find and replace", "patches")
    patch = Patch(entry.take("file", str), entry.take("find", str), entry.take("replace", str))
    entry.done()
    return patch


def _traffic(section: Section | None) -> Traffic:
    if section is None:
        return Traffic()
    idle, backpressure = (float(section.take(name, (int, float), 0.0)) for name in ("idle", "backpressure"))
    resets = section.take_int("resets", 0, 1000, 0)
    section.done()
    return Traffic(idle, backpressure, resets)
