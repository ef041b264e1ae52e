"""The command `mmagold mufu`: functions of a special-function unit, their machine code and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from golden.cli import completion
from golden.cli.arguments import Json, print_json

if TYPE_CHECKING:
    from golden.functions.functions import Function


def mufu(
    arch: Annotated[
        str,
        Argument(
            metavar="ARCH",
            help="Architecture or card, such as hopper or h100.",
            autocompletion=completion.architecture,
        ),
    ],
    name: Annotated[
        str | None,
        Argument(
            metavar="FUNCTION",
            help="The function, such as ex2.approx.ftz.f32. Without it, the command lists the functions.",
        ),
    ] = None,
    codes: Annotated[
        list[str] | None,
        Argument(
            metavar="CODE",
            help="Codes of the operands, such as 0x3f800000. Without them, the function is described.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Computes a function of the special-function unit (MUFU) bit for bit, or lists the functions.

    The functions are 2^x, log2, 1/x, roots, sine, cosine and tanh.
    """
    from golden.functions.functions import functions, mufu

    if name is None:
        known = functions(arch).values()
        if as_json:
            print_json([_about(one) for one in known])
            return
        widest = max(len(one.name) for one in known)
        for one in known:
            typer.echo(f"{one.name:{widest}}  {'; '.join(one.sass)}")
        return
    function = mufu(arch, name)
    if not codes:
        if as_json:
            print_json(_about(function))
        else:
            typer.echo(_described(function))
        return
    results = _results(function, codes)
    if as_json:
        print_json(results)
    else:
        for line in results:
            typer.echo(f"{line['operand']} ({line['of']}) -> {line['result']} ({line['is']})")


def _about(function: Function) -> dict[str, object]:
    evidence = function.evidence
    return {
        "function": function.name,
        "architecture": function.architecture,
        "width": function.width,
        "sass": list(function.sass),
        "evidence": evidence.kind,
        "device": evidence.device,
    }


def _described(function: Function) -> str:
    evidence = function.evidence
    lines = [
        f"{function.name} of {function.architecture}: {evidence.kind}, {evidence.source}",
        *function.sass,
    ]
    return "\n".join(lines)


def _results(function: Function, texts: list[str]) -> list[dict[str, str]]:
    """The result of each operand, as hex and as numbers."""
    import numpy as np

    from golden.number.formats import to_float

    given = np.array([_code(text, function.width) for text in texts], dtype=f"uint{function.width}")
    digits = function.width // 4

    def numbers(code: int) -> str:
        halves = (code & 0xFFFF, code >> 16) if function.packed else (code,)
        return ", ".join(f"{float(to_float(function.format, half)):.9g}" for half in halves)

    return [
        {
            "operand": f"{a:#0{digits + 2}x}",
            "of": numbers(a),
            "result": f"{d:#0{digits + 2}x}",
            "is": numbers(d),
        }
        for a, d in zip(given.tolist(), function(given).tolist(), strict=True)
    ]


def _code(text: str, width: int) -> int:
    from golden.errors import OperandError

    try:
        code = int(text, 16)
    except ValueError:
        code = -1
    if not 0 <= code < 1 << width:
        raise OperandError(f"code is '{text[:40]}', expected hex of at most {width} bits, such as 0x3c00")
    return code
