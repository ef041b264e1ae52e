"""The command `mmagold layout`: the place of each element of an operand, in registers or in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli import completion
from golden.cli.arguments import Arch, Json, print_json

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from golden.registers.layouts import Layout
    from golden.registers.memory import SharedTile
    from golden.registers.tensor_memory import Place

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")
_PICTURED = 16
"""Rows and columns of a picture, as a warp's operands have them."""


@dataclass(frozen=True)
class _Question:
    """An operand of an instruction, and the place that is looked up: an element by `row` and `column`, a
    register by `lane` and `register`, or a byte of shared memory by `address`; else the whole operand."""

    ins: Instruction
    operand: str
    row: int | None
    column: int | None
    lane: int | None
    register: int | None
    address: int | None
    swizzle: int
    by_column: bool

    def check_in(self, memory: str) -> None:
        """Refuses an operand that does not lie in a memory."""
        from golden.errors import OperandError

        there = self.operand in self.ins.operand_shapes(matrices=True) or self.operand == "d"
        where = self.ins.traits.places_of(self.operand) if there else ()
        if memory not in where:
            named = f"is in {' or '.join(where)}" if where else "is no operand of it"
            raise OperandError(f"{self.ins.name}: {self.operand} {named}, not in {memory} memory")


def layout(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help="architecture:instruction (hopper:HMMA.16816.F32).",
            autocompletion=completion.instruction,
            show_default=False,
        ),
    ],
    operand: Annotated[
        str,
        Option(
            "--operand",
            help="The operand: a, b, c, d, scale_a or scale_b.",
            autocompletion=lambda: list(_OPERANDS),
        ),
    ] = "a",
    row: Annotated[
        int | None,
        Option(
            "--row",
            min=0,
            help="Find the element in this row (of scale_a, row of A; of scale_b, column of B).",
        ),
    ] = None,
    column: Annotated[
        int | None,
        Option("--column", min=0, help="Find the element in this column (of scales, block of K)."),
    ] = None,
    lane: Annotated[int | None, Option("--lane", min=0, help="Find the elements in this lane.")] = None,
    register: Annotated[
        int | None,
        Option("--register", min=0, help="Find the elements in this register (with --tensor, column)."),
    ] = None,
    swizzle: Annotated[
        int | None,
        Option("--swizzle", help="In shared memory with a swizzle of 32, 64 or 128 bytes, or 0 for none."),
    ] = None,
    by_column: Annotated[
        bool, Option("--mn-major", help="In shared memory where M (or N) is contiguous, not K.")
    ] = False,
    address: Annotated[
        int | None, Option("--address", min=0, help="Find the element at this byte of shared memory.")
    ] = None,
    tensor: Annotated[bool, Option("--tensor", help="In tensor memory.")] = False,
    arch: Arch = None,
    as_json: Json = False,
) -> None:
    """Finds the place of an element in registers, shared memory or tensor memory, or the element at a place.

    Expects --row and --column, or --lane and --register, or --address. Without these it prints a table of the
    operand.
    """
    from golden.catalog.lookup import resolve
    from golden.errors import OperandError, nearest

    ins = resolve(name, arch)
    if operand not in _OPERANDS:
        raise OperandError(
            f"operand is '{operand}', expected {', '.join(_OPERANDS)}{nearest(operand, _OPERANDS)}"
        )
    if (row is None) != (column is None) or (lane is None) != (register is None):
        raise OperandError("expected --row and --column together, and --lane and --register together")
    in_shared = swizzle is not None or by_column or address is not None
    if tensor and in_shared:
        raise OperandError("--tensor cannot be combined with an option of shared memory")
    question = _Question(ins, operand, row, column, lane, register, address, swizzle or 0, by_column)
    if tensor:
        places = _tensor(question)
    elif in_shared:
        places = _scales(question) if operand.startswith("scale") else _shared(question)
    else:
        places = _registers(question)
    if as_json:
        print_json(places)
    elif isinstance(places, str):
        typer.echo(places)
    else:
        for one in places:
            typer.echo(_sentence(operand, one))


def _sentence(operand: str, place: dict[str, int]) -> str:
    """One place as a sentence."""
    element = f"{operand}[{place['row']}][{place['column']}]"
    if "address" in place:
        return f"{element} is at byte {place['address']}, element {place['element']}"
    if "cta" in place:
        return (
            f"{element} is in CTA {place['cta']}, lane {place['lane']}, column {place['register']} of tensor "
            f"memory, bits {place['last_bit']}:{place['first_bit']}"
        )
    block = f" of block {place['block']}" if "block" in place else ""
    bits = f"bits {place['last_bit']}:{place['first_bit']}"
    return f"{element}{block} is in lane {place['lane']}, register {place['register']}, {bits}"


# Registers --------------------------------------------------------------------------------------------------


def _registers(question: _Question) -> list[dict[str, int]] | str:
    import numpy as np

    from golden.errors import OperandError

    ins, operand, lane, register = question.ins, question.operand, question.lane, question.register
    found: Layout | None = None if ins.fragments is None else getattr(ins.fragments, operand, None)
    if found is None:
        where = " or ".join(ins.traits.places_of(operand))
        hint = "; --swizzle 0, 32, 64 or 128 shows shared memory" if "shared" in where else ""
        hint += "; --tensor shows tensor memory" if "tensor" in where else ""
        raise OperandError(f"{ins.name}: no register layout of {operand} is known, it is in {where}{hint}")
    places = found.coordinates()
    if question.row is not None:
        chosen = places["active"] & (places["row"] == question.row) & (places["col"] == question.column)
        limits = (
            f"row {question.row}, column {question.column}, expected less than {found.rows} and {found.cols}"
        )
    elif lane is not None:
        chosen = np.zeros_like(places["active"])
        if lane < found.lanes and register is not None and register < found.registers:
            chosen[lane, register] = places["active"][lane, register]
        limits = f"lane {lane}, register {register}, expected less than {found.lanes} and {found.registers}"
    else:
        return _picture(found, places)
    if not chosen.any():
        raise OperandError(f"{ins.name}: {operand} has no element at {limits}")
    return [_place(found, places, tuple(map(int, at))) for at in np.argwhere(chosen)]


def _place(found: Layout, places: dict[str, Any], at: tuple[int, ...]) -> dict[str, int]:
    lane, register, slot = at
    first = slot * found.container_bits + found.element_shift
    block = {"block": int(places["block"][at])} if found.blocks > 1 else {}
    return {
        "row": int(places["row"][at]),
        "column": int(places["col"][at]),
        **block,
        "lane": lane,
        "register": register,
        "first_bit": first,
        "last_bit": first + found.element_bits - 1,
    }


def _picture(found: Layout, places: dict[str, Any]) -> str:
    """Lane and register of each element, lane.register, of the first rows, columns and block."""
    import numpy as np

    rows, columns = min(found.rows, _PICTURED), min(found.cols, _PICTURED)
    cells = [["" for _ in range(columns)] for _ in range(rows)]
    for at in np.argwhere(places["active"] & (places["block"] == 0)):
        row, column = int(places["row"][tuple(at)]), int(places["col"][tuple(at)])
        if row < rows and column < columns and not cells[row][column]:
            cells[row][column] = f"{at[0]}.{at[1]}"
    whole = f"{found.rows} x {found.cols}"
    shown = "" if (rows, columns) == (found.rows, found.cols) else f", the first {rows} x {columns}"
    return _grid(f"{found.name}: lane.register of {whole}{shown}", cells)


def _grid(title: str, cells: list[list[str]]) -> str:
    width = max(len(cell) for row in cells for cell in row)
    heads = [f"{column:>{width}}" for column in range(len(cells[0]))]
    lines = [f"{row:>4}  {' '.join(f'{cell:>{width}}' for cell in line)}" for row, line in enumerate(cells)]
    return "\n".join([title, f"      {' '.join(heads)}", *lines])


# Tensor memory ----------------------------------------------------------------------------------------------


def _tensor(question: _Question) -> list[dict[str, int]] | str:
    import numpy as np

    from golden.errors import OperandError
    from golden.registers.tensor_memory import TensorMemory

    question.check_in("tensor")
    ins, operand, row, lane = question.ins, question.operand, question.row, question.lane
    column, register = question.column, question.register
    ctas, block = int(ins.variables["cta"]), ins.scale_block
    spot = TensorMemory(ctas, ins.m, ins.n, ins.k, ins.formats["a"].bits, block).place(operand)
    if row is None and lane is None:
        return _cells(ins, operand, spot)
    if row is not None:
        chosen = spot.filled & (spot.rows == row) & (spot.cols == column)
        limits = f"row {row}, column {column}"
    else:
        chosen = np.zeros_like(spot.filled)
        if lane is not None and register is not None and register < spot.shape[2] and lane < spot.shape[1]:
            chosen[:, lane, register] = spot.filled[:, lane, register]
        limits = f"lane {lane}, column {register} of tensor memory"
    if not chosen.any():
        raise OperandError(f"{ins.name}: {operand} has no element at {limits}")
    return [
        {
            "row": int(spot.rows[tuple(at)]),
            "column": int(spot.cols[tuple(at)]),
            "cta": int(at[0]),
            "lane": int(at[1]),
            "register": int(at[2]),
            "first_bit": int(at[3]) * spot.bits,
            "last_bit": int(at[3]) * spot.bits + spot.bits - 1,
        }
        for at in np.argwhere(chosen)
    ]


def _cells(ins: Instruction, operand: str, spot: Place) -> str:
    """Lane and column of tensor memory of each element, lane.column, of the first rows and columns."""
    import numpy as np

    rows, columns = (min(int(one.max()) + 1, _PICTURED) for one in (spot.rows, spot.cols))
    cells = [["" for _ in range(columns)] for _ in range(rows)]
    for at in np.argwhere(spot.filled[:1] & (spot.rows[:1] < rows) & (spot.cols[:1] < columns)):
        row, column = int(spot.rows[tuple(at)]), int(spot.cols[tuple(at)])
        cells[row][column] = cells[row][column] or f"{at[1]}.{at[2]}"
    return _grid(f"{operand} in tensor memory, CTA 0: lane.column of the first {rows} x {columns}", cells)


# Shared memory ----------------------------------------------------------------------------------------------


def _shared(question: _Question) -> list[dict[str, int]] | str:
    from golden.errors import OperandError
    from golden.registers.memory import SharedTile

    question.check_in("shared")
    ins, operand = question.ins, question.operand
    stored_k = ins.k // 2 if ins.sparse and operand == "a" else ins.k
    bits = max(ins.formats[operand].bits, 8)
    tile = SharedTile(
        ins.m if operand == "a" else ins.n, stored_k, bits, question.swizzle, question.by_column
    )
    turned = operand == "b"  # its matrix is (k, n), the tile's rows are those of n
    row, column = question.row, question.column
    if row is not None and column is not None:
        return _byte(row, column, tile.address(column, row) if turned else tile.address(row, column), bits)
    if question.address is not None:
        found = tile.at(question.address)
        if found is None:
            raise OperandError(f"{ins.name}: no element of {operand} lies at byte {question.address}")
        return _byte(*(found[::-1] if turned else found), question.address, bits)
    return _chunks(tile, operand)


def _byte(row: int, column: int, address: int, bits: int = 8) -> list[dict[str, int]]:
    """The place of an element of `bits` bits in memory."""
    return [{"row": row, "column": column, "address": address, "element": address * 8 // bits}]


def _scales(question: _Question) -> list[dict[str, int]] | str:
    """A tile of scales as tcgen05.cp copies it from shared to tensor memory."""
    from golden.errors import OperandError
    from golden.registers.memory import scale_address, scale_at

    question.check_in("tensor")
    if question.swizzle or question.by_column:
        raise OperandError(
            f"{question.operand} lies in tiles of 128 x 4 without a swizzle, expected --swizzle 0 alone"
        )
    if question.row is not None and question.column is not None:
        return _byte(question.row, question.column, scale_address(question.row, question.column))
    if question.address is not None:
        return _byte(*scale_at(question.address), question.address)
    rows = range(0, 128, 8)
    cells = [[str(scale_address(outer, inner)) for inner in range(4)] for outer in rows]
    return _grid(f"{question.operand} in shared memory: bytes of a tile of 128 x 4, every 8th row", cells)


def _chunks(tile: SharedTile, operand: str) -> str:
    """The chunk of 16 bytes in which each element lies, of the first rows and columns of the tile."""
    from golden.registers.memory import CHUNK

    rows, columns = min(tile.rows, _PICTURED), min(tile.cols, 2 * _PICTURED)
    cells = [[str(tile.address(row, column) // CHUNK) for column in range(columns)] for row in range(rows)]
    axes = "n, columns k" if operand == "b" else "m, columns k"
    swizzle = f"swizzle of {tile.swizzle} bytes" if tile.swizzle else "no swizzle"
    return _grid(f"{operand} in shared memory, {swizzle}: chunks of {CHUNK} bytes by rows {axes}", cells)
