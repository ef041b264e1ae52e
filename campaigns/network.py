"""What the arithmetic of a matrix unit does to a language model: logits under other chips and under a unit of
which one bit after the other is taken away.

    python campaigns/network.py --seed 1 --out docs/reports/network.md

The model is a small decoder of the usual kind (pre-norm, causal attention, GELU) with random weights of the
seed; nothing is downloaded. Its matrix products, attention's too, go through `mmagold.torch.emulate`; all
else is f32. The reference is the same model in f64. Writes the report, and its figure (Matplotlib).
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import golden
from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.files.output import write_text, write_whole
from golden.kernels.plan import Plan
from mmagold.torch import emulate

WIDTH, HEADS, LAYERS, VOCABULARY = 256, 4, 4, 4096
UNIT = """unit: f{bits}
title: A sum of 16 products with {bits} fraction bits below the largest term
shape: {{k: 16}}
formats: {{a: {fmt}, b: {fmt}, c: f32, d: f32}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c], nan: 0x7fffffff}}
  - align: {{of: [products, c], fraction_bits: {bits}, rounding: toward_zero}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: {rounding}, overflow: infinity, zero: positive}}
"""
WIDE = 34
"""Fraction bits of the unit that others are held against: ten more than f32 has."""
FP8 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"


class Block(nn.Module):
    """Attention and two layers, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.back = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """(batch, tokens, width)."""
        n, tokens, _ = x.shape
        q, k, v = self.project(self.before(x)).view(n, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.back(mixed.transpose(1, 2).reshape(n, tokens, WIDTH))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Model(nn.Module):
    """Tokens (batch, tokens) to logits (batch, tokens, vocabulary)."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(tokens, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def forward(self, x: Any) -> Any:
        """As the class says."""
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.last(self.blocks(self.words(x) + self.places(places))))


@dataclass(frozen=True)
class Found:
    """One row: logits that came near the reference, or did not."""

    name: str
    bits: int | None
    rms: float
    arithmetic: float
    most: float
    flips: int
    divergence: float
    products: int
    seconds: float


def chips() -> dict[str, Plan]:
    """The plans of chips, by what the report calls them."""
    return {
        "Volta, f16": golden.plan("volta", "HMMA.884.F32.F32"),
        "Ampere, f16": golden.plan("ampere", "HMMA.16816.F32"),
        "Hopper, f16": golden.plan("hopper", "HMMA.16816.F32"),
        "Hopper, bf16": golden.plan("hopper", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        "CDNA2, f16": golden.plan("cdna2", "v_mfma_f32_32x32x8f16"),
        "CDNA3, f16": golden.plan("cdna3", "v_mfma_f32_32x32x8_f16"),
        "Hopper, e4m3, fast": golden.plan("hopper", FP8, scales="tensor"),
        "Hopper, e4m3, precise (promoted every 128)": golden.plan(
            "hopper", FP8, scales="tensor", promote=128
        ),
        "CDNA3, e4m3fnuz": golden.plan("cdna3", "v_mfma_f32_32x32x16_fp8_fp8", scales="tensor"),
    }


def reduced(bits: int, fmt: str = "f16", rounding: str = "toward_zero", scales: str = "none") -> Plan:
    """One chain of the unit with this many fraction bits."""
    text = UNIT.format(bits=bits, fmt=fmt, rounding=rounding)
    return golden.plan(build_instruction(yamlfile.parse(text, f"f{bits}.yaml")), scales=scales)


def wide(plan: Plan) -> Plan:
    """The same operands under a unit that loses next to nothing before it rounds to nearest even."""
    return reduced(WIDE, plan.formats["a"].name, "nearest_even", plan.options.scales)


def compared(
    name: str, bits: int | None, ours: Any, wanted: Any, same: Any, products: int, seconds: float
) -> Found:
    """The row of logits (batch, tokens, vocabulary); `same`: the logits of wide sums of the same operands."""
    off = (ours.double() - wanted).flatten(0, -2)
    own = (ours.double() - same.double()).square().mean().sqrt()
    p, q = (torch.log_softmax(x.double().flatten(0, -2), -1) for x in (wanted, ours))
    flips = int((ours.argmax(-1) != wanted.argmax(-1)).sum())
    divergence = float((p.exp() * (p - q)).sum(-1).mean())
    rms, most = float(off.square().mean().sqrt()), float(off.abs().max())
    return Found(name, bits, rms, float(own), most, flips, divergence, products, seconds)


def study(seed: int, batch: int, tokens: int, widths: list[int], device: str) -> list[Found]:
    """All rows, the reference's own f32 first."""
    torch.manual_seed(seed)
    model = Model(tokens).eval()
    words = torch.randint(0, VOCABULARY, (batch, tokens))
    with torch.no_grad():
        wanted = model.double()(words)
        model, words = model.float().to(device), words.to(device)
        ours = model(words).cpu()
        rows = [compared("PyTorch, f32", None, ours, wanted, wanted, 0, 0.0)]
        plans = [(name, None, plan) for name, plan in chips().items()]
        plans += [(f"{bits} fraction bits", bits, reduced(bits)) for bits in widths]
        twins: dict[str, Any] = {}
        for name, bits, plan in plans:
            fmt = plan.formats["a"].name
            if fmt not in twins:
                with emulate(wide(plan)):
                    twins[fmt] = model(words).cpu()
            begun = time.perf_counter()
            with emulate(plan) as seen:
                ours = model(words).cpu()
            seconds, products = time.perf_counter() - begun, sum(seen.counts.values())
            rows.append(compared(name, bits, ours, wanted, twins[fmt], products, seconds))
            print(rows[-1], flush=True)
    return rows


def report(rows: list[Found], given: argparse.Namespace, figure: str) -> str:
    """The page."""
    count = given.batch * given.tokens
    size = f"{LAYERS} layers, width {WIDTH}, {HEADS} heads, {VOCABULARY} words"
    widths = " ".join(map(str, given.bits))
    call = f"--seed {given.seed} --batch {given.batch} --tokens {given.tokens} --bits {widths}"
    took = [one.seconds for one in rows if one.products]
    made = f"{datetime.now(UTC).date().isoformat()} with PyTorch {torch.__version__} ({given.device})"
    head = f"""# A language model under other arithmetic

A decoder of {size}, with random weights of seed {given.seed}, reads
{given.batch} x {given.tokens} random tokens. Every matrix product, those of attention too, goes through
`mmagold.torch.emulate`, with the operands rounded to the unit's format (e4m3 with one scale for each
tensor); all else is f32. The weights are random: the rows say what arithmetic does to logits, not to the
answers of a trained model.

Made on {made} by `python campaigns/network.py {call}`:
{count * VOCABULARY} logits and {count} argmaxima in each row, {rows[1].products} matrix products;
a pass through the model takes {min(took):.1f} to {max(took):.1f} s with {os.cpu_count()} processors.

![Error of the logits and argmax flips]({figure})

The first error is that against the same model in f64: mostly that of the rounded operands. The second is
that of the unit alone: against the same operands under one that keeps {WIDE} fraction bits of 16 products and
rounds once, to nearest even. A last bit that differs changes how later operands are rounded, so that it is
of the size of that rounding.

| Arithmetic | RMS error | RMS error of the unit | Largest error | Argmax flips | KL divergence (nats) |
|---|---|---|---|---|---|
"""
    lines = [
        f"| {one.name} | {one.rms:.3g} | {one.arithmetic:.3g} | {one.most:.3g} | {one.flips} of {count} | "
        f"{one.divergence:.3g} |"
        for one in rows
    ]
    chosen = [one for one in rows if one.bits is not None]
    settled = min(one.rms for one in chosen)
    enough = min(one.bits for one in chosen if one.rms < 1.1 * settled and one.bits is not None)
    tail = f"""
The rows with fraction bits are one unit, c and 16 products of f16 as Hopper's, that keeps this many bits
below its largest term and truncates the rest. From {enough} bits on the error is within 10 % of the least of
these rows, {settled:.3g}.
"""
    return head + "\n".join(lines) + "\n" + tail


def draw(rows: list[Found], path: Path) -> None:
    """RMS error and flips over fraction bits; chips as lines."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "network"
    from matplotlib import pyplot

    picture, sides = pyplot.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    chosen = [one for one in rows if one.bits is not None]
    labels = {
        "rms": "RMS error of the logits",
        "arithmetic": "RMS error of the unit",
        "flips": "argmax flips",
    }
    for side, (name, label) in zip(sides, labels.items(), strict=True):
        side.plot([one.bits for one in chosen], [getattr(one, name) for one in chosen], "ko-", ms=4)
        for i, one in enumerate(row for row in rows if row.bits is None and row.products):
            style = ("-", "--", ":")[i // 4]
            side.axhline(getattr(one, name), color=f"C{i}", ls=style, lw=1.2, label=one.name)
        side.set_xlabel("fraction bits that the sum keeps (f16)")
        side.set_ylabel(label)
        side.grid(alpha=0.3)
    sides[0].set_yscale("log")
    sides[1].set_yscale("log")
    sides[2].set_yscale("symlog")
    sides[2].legend(fontsize=7)
    write_whole(path, lambda stream: picture.savefig(stream, format="svg", metadata={"Date": None}))


def main() -> None:
    """Runs the study and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--bits", type=int, nargs="*", default=[*range(4, 16), 18, 21, 24, 25, 28])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = study(given.seed, given.batch, given.tokens, given.bits, given.device)
    figure = given.out.with_suffix(".svg")
    draw(rows, figure)
    write_text(given.out, report(rows, given, figure.name))


if __name__ == "__main__":
    main()
