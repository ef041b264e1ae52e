"""The command `mmagold invariance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from golden.cli.arguments import Json
from golden.cli.progress import progress_bar
from hw_capture.cli.app import check_writable

if TYPE_CHECKING:
    from golden.kernels.layers import Layer, Recording

_OUT = {"e4m3": "bf16", "e5m2": "bf16"}
"""The format of results where it is not that of the operands."""


_OF_CALLS = {"types": "--type", "call": "--call", "split_k": "--split-k", "fast": "--fast", "batches": "--m"}
"""What says which calls a GPU makes; a recording has made them."""


def invariance(
    context: typer.Context,
    shape: Annotated[
        list[str] | None,
        Argument(
            metavar="NxK",
            help="Rows and columns of the weight of each layer, such as 4096x4096.",
            show_default=False,
        ),
    ] = None,
    types: Annotated[
        str, Option("--type", help="Types of the operands, separated by commas: bf16, f16, e4m3.")
    ] = "bf16",
    call: Annotated[
        str,
        Option(
            "--call", help="Calls, separated by commas: mm, linear (with a bias), scaled_mm (FP8), triton."
        ),
    ] = "mm",
    split_k: Annotated[
        bool,
        Option(
            "--split-k/--no-split-k", help="Whether the library may split K into parts that are summed later."
        ),
    ] = True,
    fast: Annotated[bool, Option("--fast/--precise", help="Of FP8: fast or precise accumulation.")] = True,
    batches: Annotated[
        str, Option("--m", help="Batch sizes, such as 1-512,1024 (default: 1-512 and some larger ones).")
    ] = "",
    record: Annotated[
        Path | None, Option("--record", help="Also write the results of the GPU to this file.")
    ] = None,
    given: Annotated[
        Path | None, Option("--from", help="Use this recording, not the GPU in this machine.")
    ] = None,
    only: Annotated[
        str, Option("--only", help="Only layers whose name has these words, such as '4096x4096 bf16 mm'.")
    ] = "",
    against: Annotated[
        Path | None,
        Option("--against", help="A second recording, which the plans of the first must also explain."),
    ] = None,
    picture: Annotated[Path | None, Option("--svg", help="Also write a picture to this file.")] = None,
    page: Annotated[Path | None, Option("--html", help="Also write a page to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Shows at which batch sizes the bits of a layer's results change, and why.

    It finds the plans with which the library adds, from results of the GPU in this machine or of a recording.

    Exit status: 0 the plans give every bit, 1 they do not give the bits of some batch size, 2 an error.
    """
    from golden.errors import OperandError
    from golden.explain import batches as explained
    from golden.files.output import write_text
    from golden.kernels.invariance import confirmed
    from golden.kernels.invariance import invariance as maps_of
    from golden.kernels.layers import read, write
    from golden.publish.pictures import plots as pictures

    for path in (record, picture, page):
        check_writable(path)
    if (given is None) == (not shape):
        raise typer.BadParameter("expected either layers such as 4096x4096, or --from", param_hint="NxK")
    for name, option in _OF_CALLS.items() if given is not None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise typer.BadParameter(
                "cannot be combined with --from; --only chooses layers of the recording",
                param_hint=option,
            )
    if given is not None:
        recording = read(given)
    else:
        recording = _recorded(_layers(shape or [], types, call, split_k, fast), batches)
    if record is not None:
        write(recording, record)
    with progress_bar(not as_json) as progress:
        maps = maps_of(recording, only, progress)
    if picture is not None:
        write_text(picture, pictures.batch_picture(maps) + "\n")
    if page is not None:
        write_text(page, explained.page(maps, recording.device, pictures.batch_picture(maps)))
    if as_json:
        about = {"device": recording.device, "date": recording.date, "refused": recording.refused}
        typer.echo(json.dumps(about | {"layers": [explained.as_dict(one) for one in maps]}))
    else:
        typer.echo(f"{explained.device_text(recording.device)}; recorded on {recording.date}")
        for one in maps:
            typer.echo("\n" + explained.text(one))
        for name, why in recording.refused.items():
            typer.echo(f"{name}: refused: {why}")
    if against is not None:
        layers = confirmed(maps, read(against))
        equal, shared = (sum(counts[i] for counts in layers.values()) for i in range(2))
        if not shared:
            raise OperandError(
                f"{against}: has no layer and batch size of the first recording; nothing was compared"
            )
        typer.echo(f"{against}: the plans give every bit of {equal} of {shared} M", err=as_json)
    if any(one.predicted < one.batches for one in maps) or (against is not None and equal < shared):
        raise typer.Exit(1)


def _recorded(layers: list[Layer], batches: str) -> Recording:
    from hw_capture.products import layers as recorder

    with progress_bar() as progress:
        chosen = _batches(batches) or recorder.BATCHES
        return recorder.record(layers, chosen, progress=progress)


def _layers(shapes: list[str], types: str, calls: str, split_k: bool, fast: bool) -> list[Layer]:
    from golden.kernels.layers import CALLS, Layer

    found = []
    for fmt in types.split(","):
        for call in calls.split(","):
            if call not in CALLS:
                raise typer.BadParameter(f"'{call}', expected {', '.join(CALLS)}", param_hint="--call")
            if fmt not in CALLS[call]:
                known = ", ".join(CALLS[call])
                raise typer.BadParameter(f"{call} takes {known}, not '{fmt}'", param_hint="--type")
            options: dict[str, bool] = {"fast": fast} if call == "scaled_mm" else {}
            options |= {} if split_k or call == "triton" else {"split_k": False}
            for shape in shapes:
                n, k = _shape(shape)
                found.append(Layer(n, k, fmt, _OUT.get(fmt, fmt), call, options))
    return found


def _shape(text: str) -> tuple[int, int]:
    words = text.split("x")
    if len(words) != 2 or not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise typer.BadParameter(f"'{text}' is not a layer, expected NxK such as 4096x4096", param_hint="NxK")
    return int(words[0]), int(words[1])


def _batches(text: str) -> tuple[int, ...]:
    """The numbers of "1-512,1024"."""
    found: list[int] = []
    for word in text.split(",") if text else []:
        first, _, last = word.partition("-")
        if not all(x.isascii() and x.isdigit() and 0 < int(x) <= 1 << 20 for x in (first, last or first)):
            raise typer.BadParameter(
                f"'{word}' is not a batch size, expected sizes such as 1-512,1024 up to {1 << 20}",
                param_hint="--m",
            )
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
