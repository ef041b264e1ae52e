"""Writes vector files with their manifest and reads them back.

    files.write_stream("hmma.hex", ins, 1_000_000, seed=7)       # drawn, computed and written chunk by chunk
    vectors = files.read("hmma.hex")                             # checked against hmma.hex.manifest.json

Formats: golden/vectors/text.py and npz. Memory holds one chunk whatever the count.
Nothing is ever half written.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import FileFormatError, MmagoldError, OperandError, nearest
from golden.files import output
from golden.files.inputs import opened
from golden.model.instruction import CUSTOM, Instruction
from golden.program.signature import INPUTS
from golden.vectors import archive, manifest, registers, signals
from golden.vectors.manifest import Manifest, Part
from golden.vectors.text import FORMATS, TextFormat
from golden.vectors.vectorset import DEFAULT_WEIGHTS, STREAM_LEVELS, VectorSet, join, stream
from golden.vectors.word import RESULTS, WordLayout

Bits = npt.NDArray[Any]
Progress = Callable[[int, int], None]
NAMES = (*FORMATS, "npz")
CHUNK = 65536
"""Dot products of one part of a file; the manifest holds a checksum of each part."""
_SUFFIXES = {suffix: form.name for form in FORMATS.values() for suffix in form.suffixes} | {".npz": "npz"}


def format_of(path: str | Path, name: str | None = None) -> str:
    """The format called `name`, or that of the file's suffix.

    Raises:
        FileFormatError: neither is known.
    """
    if name is not None:
        if name not in NAMES:
            raise FileFormatError(
                f"unknown vector format '{name}', expected {', '.join(NAMES)}{nearest(name, NAMES)}"
            )
        return name
    suffix = Path(path).suffix
    if suffix not in _SUFFIXES:
        raise FileFormatError(
            f"{path}: no vector format has the suffix '{suffix}', expected {', '.join(_SUFFIXES)}, or the "
            f"format ({', '.join(NAMES)})"
        )
    return _SUFFIXES[suffix]


def layout_of(ins: Instruction, level: str) -> WordLayout:
    """The word of a record: a dot product, a tile, or the registers of an execution ("fragment").

    Raises:
        OperandError: another level, or an instruction without register fragments.
    """
    if level not in STREAM_LEVELS:
        raise OperandError(
            f"level is '{level}', expected {', '.join(STREAM_LEVELS)}{nearest(level, STREAM_LEVELS)}"
        )
    return registers.register_word(ins) if level == "fragment" else WordLayout.of(ins, level)


def chunk_of(layout: WordLayout) -> int:
    """Records of one part of a file: about the bits of `CHUNK` short dot products."""
    return max(min(CHUNK, CHUNK * 1024 // (layout.operand_width + layout.result_width)), 1)


@dataclass(frozen=True)
class _Source:
    """Records to write: their number, and chunks of them on each call."""

    count: int
    chunks: Callable[[], Iterator[VectorSet]]
    progress: Progress | None


def write_stream(
    path: str | Path,
    ins: Instruction,
    count: int,
    seed: int = 1,
    level: str = "dot",
    weights: Mapping[str, float] | None = None,
    form: str | None = None,
    with_signals: bool = False,
    progress: Progress | None = None,
) -> Manifest:
    """Draws vectors and writes them, chunk by chunk, with their manifest.

    Args:
        level: "dot", "tile", or "fragment" (tiles as the registers of the lanes).
        weights: shares of the kinds, see `vectorset.default_set`.
        form: name of the format; default: by the suffix of `path`.
        with_signals: adds the intermediate values (level "dot" only): inside csv and jsonl, else in
            FILE.signals.jsonl.
        progress: called with (records done, count).

    Raises:
        FileFormatError: unknown format, or the file cannot be written.
        OperandError, UnknownNameError: wrong arguments.
    """
    chosen = format_of(path, form)
    layout = layout_of(ins, level)
    source = _Source(count, partial(stream, ins, count, seed, level, weights, chunk_of(layout)), progress)
    shares = DEFAULT_WEIGHTS if weights is None else weights
    made = manifest.describe(ins, layout, Path(path).name, chosen, seed, shares)
    return _write(Path(path), made, layout, ins, source, with_signals)


def write(
    path: str | Path,
    vectors: VectorSet,
    form: str | None = None,
    with_signals: bool = False,
    level: str | None = None,
) -> Manifest:
    """Writes a set of vectors, whatever it came from. `level` "fragment" writes tiles as registers. Raises
    as `write_stream`."""
    chosen, level = format_of(path, form), level or vectors.level
    group = vectors.instruction.blocks if level == "fragment" else 1
    # Only tiles can be written as fragments; a dot product has no lanes.
    if level != vectors.level and (level, vectors.level) != ("fragment", "tile"):
        raise OperandError(f"level is '{level}', but the vectors are of level '{vectors.level}'")
    if not vectors.stands_alone:
        raise OperandError("the first vector starts from a result that is not in the set; see `with_history`")
    if len(vectors) % group:
        raise OperandError(
            f"{len(vectors)} tiles, expected a multiple of the {group} blocks of {vectors.instruction.name}"
        )
    layout = layout_of(vectors.instruction, level)
    step = chunk_of(layout) * group

    # Written in chunks: a file may be larger than memory.
    def chunks() -> Iterator[VectorSet]:
        return (vectors[start : start + step] for start in range(0, max(len(vectors), 1), step))

    made = manifest.describe(vectors.instruction, layout, Path(path).name, chosen, vectors.seed, None)
    return _write(
        Path(path),
        made,
        layout,
        vectors.instruction,
        _Source(len(vectors) // group, chunks, None),
        with_signals,
    )


def _write(
    path: Path, made: Manifest, layout: WordLayout, ins: Instruction, source: _Source, with_signals: bool
) -> Manifest:
    if with_signals and made.level != "dot":
        raise OperandError(
            f"signals explain dot products, but the level is '{made.level}'; expected level 'dot'"
        )
    inline = with_signals and made.format in ("csv", "jsonl")
    companion = with_signals and not inline
    alone = output.is_stream(path)
    if alone and companion:
        raise FileFormatError(
            f"{path}: signals of {made.format} lie in a second file in its folder; expected the name of a "
            f"file, or jsonl"
        )
    made.count = source.count
    made.classes = dict.fromkeys(stimuli.KINDS, 0)
    files: dict[Path, output.Fill] = {}
    if companion:
        companion_file = Path(f"{path}.signals.jsonl")
        files[companion_file] = partial(_write_companion, made, companion_file.name, source)
    if made.format == "npz":
        files[path] = partial(_write_archive, made, layout, source, output.scratch_folder(path))
    else:
        files[path] = lambda out: _Writer(out, made, layout, FORMATS[made.format]).run(ins, source, inline)
    if not alone:  # what a device or a pipe took cannot be checked again
        files[manifest.path_for(path)] = lambda out: out.write(made.text().encode())
    output.write_all(files)
    return made


def _write_archive(
    made: Manifest, layout: WordLayout, source: _Source, scratch: Path, out: IO[bytes]
) -> None:
    archive.write(
        out, layout, source.count, ((arrays, kinds) for _, arrays, kinds in _records(made, source)), scratch
    )
    out.seek(0)
    made.sha256, made.bytes = _hash(out)


def arrays_of(vectors: VectorSet, level: str) -> tuple[dict[str, Bits], Bits]:
    """The fields of every record by name, and its kind."""
    if level == "fragment":
        return registers.to_registers(vectors), vectors.kinds[:: vectors.instruction.blocks]
    return vectors.operands | vectors.results, vectors.kinds


def _records(made: Manifest, source: _Source) -> Iterator[tuple[VectorSet, dict[str, Bits], Bits]]:
    """The chunks with their fields and kinds; counts the classes and reports progress."""
    done = 0
    for chunk in source.chunks():
        arrays, kinds = arrays_of(chunk, made.level)
        for number, count in enumerate(np.bincount(kinds, minlength=len(stimuli.KINDS)).tolist()):
            made.classes[stimuli.KINDS[number]] += count
        yield chunk, arrays, kinds
        done += len(kinds)
        if source.progress is not None:
            source.progress(done, source.count)
    made.classes = {name: count for name, count in made.classes.items() if count}


class _Writer:
    """Writes one text file and keeps the checksums of its parts."""

    def __init__(self, out: IO[bytes], made: Manifest, layout: WordLayout, form: TextFormat) -> None:
        self.out, self.made, self.layout, self.form = out, made, layout, form
        self.digest, self.line = hashlib.sha256(), 1

    def run(self, ins: Instruction, source: _Source, inline: bool) -> None:
        """Header, records, footer."""
        columns = signals.columns(ins) if inline else ()
        lines, done = self.form.lines(self.layout, source.count), 0
        self.part([as_text(self.form.header(self.made, self.layout, columns))])
        for chunk, arrays, kinds in _records(self.made, source):
            tails = list(tails_of(self.made.format, chunk, columns)) if inline else None
            self.part(lines.encode_parts(arrays, kinds, done, tails))
            done += len(kinds)
        self.part([as_text(self.form.footer(self.made, self.layout))])
        self.made.sha256 = self.digest.hexdigest()

    def part(self, texts: Iterable[bytes]) -> None:
        """Writes one part and notes its checksums."""
        first, size, checksum = self.line, 0, 0
        for text in texts:
            checksum = zlib.crc32(text, checksum)
            self.digest.update(text)
            self.out.write(text)
            size += len(text)
            self.line += text.count(b"\n")
        self.made.parts.append(Part(first, self.line - first, size, f"{checksum:08x}"))
        self.made.bytes += size


def as_text(lines: list[str]) -> bytes:
    """Lines as the bytes of a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def tails_of(form: str, chunk: VectorSet, columns: tuple[str, ...]) -> Iterator[bytes]:
    """The signals of a chunk as the ends of csv or jsonl lines."""
    for steps in signals.rows(chunk):
        yield signals.csv_tail(steps, columns) if form == "csv" else signals.json_tail(steps)


def _write_companion(made: Manifest, name: str, source: _Source, out: IO[bytes]) -> None:
    """FILE.signals.jsonl: the signals of every vector, one JSON list a line."""
    digest, done = hashlib.sha256(), 0
    for chunk in source.chunks():
        for steps in signals.rows(chunk):
            text = json.dumps(steps).encode() + b"\n"
            digest.update(text)
            out.write(text)
        done += len(chunk)
        if source.progress is not None:
            source.progress(done, source.count)
    made.signals = {"file": name, "sha256": digest.hexdigest()}


def _hash(file: IO[bytes]) -> tuple[str, int]:
    """SHA-256 and length of the rest of a file."""
    digest, size = hashlib.sha256(), 0
    while block := file.read(1 << 20):
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


def _file_hash(path: Path) -> tuple[str, int]:
    with opened(path) as file:
        return _hash(file)


# Reading ----------------------------------------------------------------------------------------------------


def instruction_of(made: Manifest, path: Path, ins: Instruction | None) -> Instruction:
    """The instruction of a file: the one given, or looked up by the manifest's names."""
    from golden.catalog.lookup import instruction

    if ins is None:
        if made.architecture == CUSTOM:
            raise FileFormatError(
                f"{path}: vectors of the custom unit {made.instruction}; give its instruction to check them"
            )
        ins = instruction(made.architecture, made.instruction)
    # a file of one mode, as TestFloat's are
    ins = next((one for one in ins.mode_units.values() if one.name == made.instruction), ins)
    if (ins.architecture, ins.name) != (made.architecture, made.instruction):
        raise FileFormatError(
            f"{path}: vectors of {made.architecture}:{made.instruction}, not of {ins.architecture}:{ins.name}"
        )
    return ins


def check(path: str | Path, ins: Instruction | None = None) -> Manifest:
    """Checks a file: its manifest against unit and file, its checksums, its lines, and every result against
    the unit.

    Raises:
        FileFormatError: the message names the file and, where lines were edited or are missing, the line.
    """
    made, _, records = _open(Path(path), ins)
    for _ in records:
        pass
    return made


def read(path: str | Path, ins: Instruction | None = None) -> VectorSet:
    """Reads a vector file while checking it.

    Args:
        ins: the instruction, needed for custom units only. Files of level "fragment" give tiles.

    Raises:
        FileFormatError: as `check`.
    """
    made, found, records = _open(Path(path), ins)
    level = "dot" if made.level == "dot" else "tile"
    parts, held = [], 0
    for operands, results, kinds in records:
        parts.append(VectorSet.of(found, level, operands, results, kinds, made.seed, held))
        held = last_accumulator(found, results["d"])
    return join(parts)


_Records = Iterator[tuple[dict[str, Bits], dict[str, Bits], Bits]]


def _open(path: Path, ins: Instruction | None) -> tuple[Manifest, Instruction, _Records]:
    """Manifest, instruction and checked operands, results and kinds of a file, part by part."""
    made = manifest.load(path)
    found = instruction_of(made, path, ins)
    layout = layout_of(found, made.level)
    manifest.check_unit(made, found, layout, path)
    if made.format not in NAMES:
        raise FileFormatError(
            f"{manifest.path_for(path)}: unknown format '{made.format}'{nearest(made.format, NAMES)}"
        )
    if _file_hash(path) != (made.sha256, made.bytes):
        from golden.vectors.diagnose import explain

        raise explain(path, made, found)
    if made.signals is not None:
        companion = path.parent / made.signals["file"]
        if _file_hash(companion)[0] != made.signals["sha256"]:
            raise FileFormatError(f"{companion}: differs from what {manifest.path_for(path)} says (SHA-256)")
    return made, found, _checked(path, made, found, layout)


def _checked(path: Path, made: Manifest, ins: Instruction, layout: WordLayout) -> _Records:
    """Decodes a file and holds every record against the unit; the counts of the kinds against the manifest
    at the end."""
    counts, held = np.zeros(len(stimuli.KINDS), np.int64), 0
    chunks = (
        _archive_chunks(path, made, layout) if made.format == "npz" else _text_chunks(path, made, ins, layout)
    )
    for line, arrays, kinds in chunks:
        counts += np.bincount(kinds, minlength=len(counts))
        operands, results, kinds = _tiles(ins, made, arrays, kinds, f"{path}:{line}")
        wrong = wrong_result(ins, made.level, operands, results, held)
        held = last_accumulator(ins, results["d"])
        if wrong is not None:
            place = (
                f"{path}[{wrong[0]}]"
                if made.format == "npz"
                else f"{path}:{line + wrong[0] // _group(ins, made)}"
            )
            raise FileFormatError(f"{place}: {wrong[1]}")
        yield operands, results, kinds
    if made.format != "npz" and not FORMATS[made.format].lines(layout, made.count).has_kinds:
        return
    classes = {name: int(count) for name, count in zip(stimuli.KINDS, counts, strict=True) if count}
    if classes != {name: count for name, count in made.classes.items() if count}:
        raise FileFormatError(
            f"{manifest.path_for(path)}: key 'classes' is not what the file holds of each kind"
        )


def _group(ins: Instruction, made: Manifest) -> int:
    return ins.blocks if made.level == "fragment" else 1


def _tiles(
    ins: Instruction, made: Manifest, arrays: dict[str, Bits], kinds: Bits, where: str
) -> tuple[dict[str, Bits], dict[str, Bits], Bits]:
    """Operands, results and kinds; registers become tiles, and nothing but their tiles may be in them."""
    if made.level == "fragment":
        tiles = registers.from_registers(ins, arrays)
        again = registers.to_registers(VectorSet.of(ins, "tile", *parted(tiles), kinds, 0))
        other = next((name for name in arrays if not np.array_equal(again[name], arrays[name])), None)
        if other is not None:
            raise FileFormatError(
                f"{where}: registers of {other} hold bits that belong to no element of the matrix"
            )
        arrays, kinds = tiles, np.repeat(kinds, ins.blocks)
    return *parted(arrays), kinds


def parted(arrays: dict[str, Bits]) -> tuple[dict[str, Bits], dict[str, Bits]]:
    """The fields of records as operands and results, by name."""
    operands = {name: codes for name, codes in arrays.items() if name not in RESULTS}
    return operands, {name: codes for name, codes in arrays.items() if name in RESULTS}


def last_accumulator(ins: Instruction, d: Bits) -> int:
    """What the unit holds after these results, 0 where it keeps nothing."""
    return int(d[-1]) if ins.state and len(d) else 0


def wrong_result(
    ins: Instruction, level: str, operands: dict[str, Bits], results: Mapping[str, Bits], held: int = 0
) -> tuple[int, str] | None:
    """Index and complaint of the first record whose results are not what the unit gives, or whose operands
    it does not take. `held`: what it held before the first, where it keeps its accumulator."""
    matrices = level != "dot"
    try:
        checked = ins.check_operands([operands.get(name) for name in INPUTS], matrices)
        expected = ins.stateless.answers(ins.resolve(checked, results["d"], held), matrices)
    except MmagoldError as error:
        return 0, f"from here on: {error}"
    places = {name: np.argwhere(expected[name] != results[name]) for name in expected}
    wrong = [(place[0].tolist(), name) for name, place in places.items() if len(place)]
    if not wrong:
        return None
    at, name = min(wrong)
    found, wanted = results[name][tuple(at)], expected[name][tuple(at)]
    return at[0], f"edited: {name} is {int(found):#x}, but the operands give {int(wanted):#x}"


def _archive_chunks(
    path: Path, made: Manifest, layout: WordLayout
) -> Iterator[tuple[int, dict[str, Bits], Bits]]:
    arrays, kinds = archive.read(path, layout, made.count)
    yield 0, arrays, kinds


def _text_chunks(
    path: Path, made: Manifest, ins: Instruction, layout: WordLayout
) -> Iterator[tuple[int, dict[str, Bits], Bits]]:
    """The parts of a text: each must have its checksum and be what its own content gives when it is
    written again."""
    form = FORMATS[made.format]
    lines, done, last = form.lines(layout, made.count), 0, len(made.parts) - 1
    with opened(path) as file:
        for number, part in enumerate(made.parts):
            text = file.read(part.bytes)
            where = f"{path}:{part.line}"
            # 1. The part is what was written: its checksum and its number of lines.
            if f"{zlib.crc32(text):08x}" != part.crc32 or text.count(b"\n") != part.lines:
                raise FileFormatError(
                    f"{manifest.path_for(path)}: part {number} is not at line {part.line} of the file"
                )
            # 2. Header and footer follow from the manifest.
            if number in (0, last):
                if text not in frames(made, ins, layout, number):
                    raise FileFormatError(
                        f"{where}: {'header' if number == 0 else 'footer'} differs from what the manifest "
                        "says"
                    )
                continue
            try:
                arrays, kinds = lines.decode(text.split(b"\n")[:-1]) if part.lines else _nothing(layout)
            except FileFormatError as error:
                raise placed(error, path, part.line) from None
            # 3. Vectors are read and written again: the same text, or the file has another meaning to a
            # simulator.
            other = _unlike(lines.encode(arrays, kinds, done, None), text, lines.closing)
            if other is not None:
                raise FileFormatError(
                    f"{path}:{part.line + other}: not as vector {done + other} is written in this format"
                )
            yield part.line, arrays, kinds
            done += part.lines


def _nothing(layout: WordLayout) -> tuple[dict[str, Bits], Bits]:
    return {field.name: np.zeros((0, *field.shape), field.dtype) for field in layout.fields}, np.zeros(
        0, np.uint8
    )


def _unlike(again: bytes, text: bytes, closing: bytes) -> int | None:
    """Index of the first line that differs from the one written again;
    signals may stand at the end of a line."""
    if again == text:
        return None
    for index, (wanted, line) in enumerate(zip(again.split(b"\n"), text.split(b"\n"), strict=True)):
        start = wanted.removesuffix(closing)
        if line != wanted and not (
            line.startswith((start + b",", start + b', "signals": ')) and line.endswith(closing)
        ):
            return index
    return None


def frames(made: Manifest, ins: Instruction, layout: WordLayout, number: int) -> list[bytes]:
    """What the first part, the header, may be (a csv may have columns of signals),
    or the last, the footer."""
    form = FORMATS[made.format]
    if number:
        return [as_text(form.footer(made, layout))]
    columns = [(), signals.columns(ins)] if made.format == "csv" and made.level == "dot" else [()]
    return [as_text(form.header(made, layout, names)) for names in columns]


def placed(error: FileFormatError, path: Path, line: int) -> FileFormatError:
    """A complaint about line [i] of a part that starts at `line`, with the file and the line's number."""
    index, _, rest = str(error).removeprefix("[").partition("] ")
    return FileFormatError(f"{path}:{line + int(index)}: {rest}")
