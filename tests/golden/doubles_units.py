"""Random units whose numbers doubles hold: what golden/model/doubles.py lets in, and a little beyond.

Families: additions and fused multiply-adds that round each time, sums aligned by a maximum, both one after
the other, sums that are exact, block-scaled ones, sums in fixed point, two sums of one alignment, products
that are rounded before they meet, and integers. A unit is JSON, which is YAML, so that a failure message is
the unit itself.
"""

from __future__ import annotations

import json
import random
from typing import Any

NANS = {"f32": 0x7FC12345, "f16": 0x7E01, "bf16": 0x7FC1}
NEAREST = ("nearest_even", "nearest_even", "nearest_away", "toward_zero", "to_odd")
OPERANDS = ("f16", "bf16", "f32", "tf32", "e5m2", "e4m3", "e2m1")


class _Draws:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        pick = self.rng.choice
        self.k, a = pick((1, 2, 3, 4, 8, 9)), pick(OPERANDS)
        self.formats = {
            "a": a,
            "b": pick((a, a, "f16")),
            "c": pick(("f32", *NANS)),
            "d": pick(("f32", *NANS)),
        }
        self.more: dict[str, Any] = {}
        """Other keys of the unit."""

    def maybe(self, **keys: Any) -> dict[str, Any]:
        """The keys, or none of them."""
        return keys if self.rng.random() < 0.4 else {}

    def ieee(self, name: str) -> dict[str, Any]:
        """Keys of a rounding."""
        keys = {"format": name, "rounding": self.rng.choice((*NEAREST, "up", "down")), "nan": NANS[name]}
        return keys | self.flush(keys["rounding"])

    def flush(self, rounding: str) -> dict[str, Any]:
        if rounding in ("up", "down") or self.rng.random() < 0.6:
            return {}
        tiny = self.rng.choice(("subnormal_result", "unbounded", "before_rounding"))
        return {"flush": self.rng.choice(("signed", "positive")), "tiny": tiny}

    def product(self, **keys: Any) -> dict[str, Any]:
        """A multiplication whose products may change their signs and be infinite."""
        signs = self.maybe(negate=self.rng.choice(("product", "c", "both")))
        overflow = self.maybe(overflow_exponent=self.rng.choice((128, 127, 9, 3, 0, -4)))
        return {"multiply": {"to": "products", **signs, **overflow, **keys}}

    def total(self, *of: str, to: str = "total", **keys: Any) -> dict[str, Any]:
        """An exact sum, whose rounding gives a zero its sign."""
        down = {} if keys.get("complement") else self.maybe(rounding=self.rng.choice(("down", "up")))
        return {"sum": {"of": [*of], "to": to, **down, **keys}}

    def group(self, count: int) -> dict[str, Any]:
        kind = self.rng.choice(("contiguous", "interleaved"))
        return self.maybe(group={kind: self.rng.randint(1, count)}) if count else {}

    def rounded(self) -> list[dict[str, Any]]:
        """Products, a sum of them and c, each rounded."""
        rng, d = self.rng, self.formats["d"]
        inner = rng.choice(("f32", d))
        handing = {"first_nan": True} if rng.random() < 0.3 else {}
        product = self.ieee(inner) if not handing and rng.random() < 0.7 else {}
        orders = [rng.choice(("tree", "sequential")) for _ in range(2)]
        ends = ["c", "dot"] if rng.random() < 0.5 else ["dot", "c"]
        return [
            *(
                [
                    {
                        "flush": {
                            "of": rng.choice((["a"], ["a", "b"], ["a", "b", "c"])),
                            "sign": rng.choice(("signed", "positive")),
                        }
                    }
                ]
                if rng.random() < 0.5
                else []
            ),
            self.product(**product) if not handing else {"multiply": {"to": "products", **product}},
            {
                "sum": {
                    "of": ["products"],
                    "to": "dot",
                    "order": orders[0],
                    **self.ieee(inner),
                    **self.group(self.k),
                    **handing,
                }
            },
            {"sum": {"of": ends, "to": "d", "order": orders[1], **self.ieee(d), **handing}},
        ]

    def fused(self) -> list[dict[str, Any]]:
        """A chain of fused multiply-adds."""
        rng, d = self.rng, self.formats["d"]
        order = self.maybe(nan_order=rng.sample("abc", rng.randint(1, 3)))
        start = rng.choice(("c", "zero", "product"))
        if rng.random() < 0.3:
            own = {
                "kind": "float",
                "storage": 32,
                "exponent_bits": rng.randint(5, 8),
                "bias": rng.randint(10, 150),
            }
            fields = {"fraction_bits": rng.randint(5, 23), "specials": rng.choice(("ieee", "none"))}
            self.more["define_formats"] = {"own": own | fields}
            self.formats["c"] = "own"
        aligned = [
            self.special("a", "b", "c"),
            {
                "align": {
                    "of": rng.choice((["c"], ["a", "c"])),
                    "fraction_bits": rng.randint(2, 30),
                    "rounding": "toward_zero",
                }
            },
        ]
        before = aligned if rng.random() < 0.2 else []
        return [*before, {"fma": {"to": "d", "start": start, **self.ieee(d), **order}}]

    def special(self, *of: str) -> dict[str, Any]:
        """Infinities and NaNs, some of them with words by cause."""
        rng, operands = self.rng, ("a", "b", "factor", "c")
        step: dict[str, Any] = {"of": [*of], "nan": NANS[self.formats["d"]]}
        if rng.random() < 0.4:
            causes = [*operands, "invalid_product", "opposite_products", "opposite_infinities"]
            picked = rng.sample(causes, rng.randint(1, len(causes)))
            step["nans"] = {cause: rng.randrange(1 << 16) for cause in picked}
            if {self.formats["a"], self.formats["b"]} <= {*NANS, "tf32", "e5m2"}:
                step["nans"] |= {
                    cause: "payload" for cause in picked if cause in operands and rng.random() < 0.5
                }
        return {"special_values": step}

    def round_step(self, of: str) -> dict[str, Any]:
        rng, d = self.rng, self.formats["d"]
        rounding = rng.choice((*NEAREST, "up", "down"))
        keys = {"of": of, "rounding": rounding, "overflow": rng.choice(("infinity", "largest", "ieee"))}
        flush = {} if rounding == "down" else self.flush(rounding)
        kept = self.maybe(fraction_bits=rng.randint(2, 7))
        return {
            "round": {
                **keys,
                **flush,
                **kept,
                "zero": rng.choice(("positive", "signed", "signed_underflow")),
                "nan": NANS[d],
            }
        }

    def aligned(self) -> list[dict[str, Any]]:
        """Terms aligned by a maximum, in one sum or in groups that meet c."""
        rng = self.rng
        rounding, kept = (
            rng.choice(("toward_zero", "down", "up", "nearest_even", "nearest_away", "to_odd")),
            rng.randint(2, 42),
        )
        keys: dict[str, Any] = {
            "fraction_bits": kept,
            "rounding": rounding,
            **self.maybe(floor=rng.choice((-149, -126, -20, 3))),
        }
        cut = {"cut": rng.choice(("sticky_added", "sticky_or", "dropped", "dropped"))}
        first = [
            self.product(**self.maybe(normalize=True)),
            self.special("products", "c"),
        ]
        last = self.round_step("total")
        if rng.random() < 0.35:
            group = {"group": {rng.choice(("contiguous", "interleaved")): rng.randint(1, self.k)}}
            meet = {
                "of": ["groups", "c"],
                **keys,
                "fraction_bits": rng.randint(2, 40),
                **self.maybe(window={"c": rng.randint(0, 30)}),
            }
            if rng.random() < 0.4:
                meet = {key: value for key, value in meet.items() if key != "floor"} | {
                    "maximum": [
                        {"of": "groups", "exponent": "carried"},
                        {
                            "of": "c",
                            "exponent": "leading",
                            "plus": rng.randint(-3, 2),
                            **self.maybe(least=-126),
                        },
                    ],
                    **self.maybe(spared={"c": -126}),
                }
            return [
                *first,
                {"align": {"of": "products", **keys, **group}},
                {"sum": {"of": "products", "to": "groups", **group}},
                {"align": meet},
                self.total("groups", "c"),
                last,
            ]
        if cut["cut"] != "sticky_or":
            keys |= self.maybe(fraction_bits={"products": kept, "c": max(0, kept - rng.randint(0, 5))})
        complement = (
            self.maybe(complement="c")
            if cut["cut"] == "dropped" and isinstance(keys["fraction_bits"], int)
            else {}
        )
        return [
            *first,
            {"align": {"of": ["products", "c"], **keys, **cut}},
            self.total("products", "c", **complement),
            last,
        ]

    def rounded_before(self) -> list[dict[str, Any]]:
        """A sum that is rounded to a format, aligned with c by its own exponent, not that of its terms."""
        rng = self.rng
        inner = rng.choice(("f32", "f16", "bf16"))
        start, order = rng.choice(("c", "zero", "product")), rng.choice(("tree", "sequential"))
        added = {"of": ["products"], "to": "dot", "order": order, **self.ieee(inner), **self.group(self.k)}
        product = self.ieee(inner) if rng.random() < 0.5 else {}
        both = ["dot", "c"]
        rounding = rng.choice(("toward_zero", "down", "up", "nearest_even", "nearest_away", "to_odd"))
        floor = self.maybe(floor=rng.choice((-149, -20, 3)))
        return [
            *rng.choice(
                (
                    [{"fma": {"to": "dot", "start": start, **self.ieee(inner)}}],
                    [{"multiply": {"to": "products", **product}}, {"sum": added}],
                )
            ),
            self.special(*both),
            {"align": {"of": both, "fraction_bits": rng.randint(0, 40), "rounding": rounding, **floor}},
            {"sum": {"of": both, "to": "total"}},
            self.round_step("total"),
        ]

    def exact(self) -> list[dict[str, Any]]:
        """One exact sum."""
        of = self.rng.choice((("products", "c"), ("c", "products"), ("products",)))
        return [self.product(), self.special("products", "c"), self.total(*of), self.round_step("total")]

    def met(self) -> list[dict[str, Any]]:
        """Products that are rounded, and may be infinite then, before they meet."""
        rng, inner = self.rng, self.rng.choice(("f32", "f16", "bf16"))
        first = self.round_step("products")["round"] | {"to": "groups", "format": inner, "nan": NANS[inner]}
        self.k = rng.choice((1, 2, 2, 3))
        between = [] if rng.random() < 0.7 else [self.special("groups", "c")]
        of = rng.choice((["groups"], ["groups"], ["groups", "c"]))
        steps = [self.product(), self.special("products"), {"round": first}, *between]
        return [*steps, self.total(*of), self.round_step("total")]

    def whole(self) -> list[dict[str, Any]]:
        """Integers."""
        pick = self.rng.choice
        self.formats = {name: pick(("s16", "s16", "s8", "u8", "s4", "u4")) for name in "ab"}
        self.formats["c"] = self.formats["d"] = "s32"
        negate = self.maybe(negate=pick(("product", "c", "both")))
        last = {"of": "total", "rounding": "toward_zero", "overflow": pick(("wrap", "saturate"))}
        return [
            {"multiply": {"to": "products", **negate}},
            self.total("products", "c"),
            {"round": last | {"zero": "positive"}},
        ]

    def scaled(self) -> list[dict[str, Any]]:
        """Products, or exact groups of them, times block scales, aligned with c."""
        rng, pick = self.rng, self.rng.choice
        size, parts = pick((1, 2, 4)), pick((1, 2))
        self.k = size * parts * pick((1, 2, 3))
        own = {"kind": "float", "storage": 8, "exponent_bits": rng.randint(2, 5), "bias": rng.randint(-2, 20)}
        fields = {
            "fraction_bits": rng.randint(1, 7 - own["exponent_bits"]),
            "specials": pick(("none", "all_ones_nan")),
        }
        self.more = {"scale_block": size * parts, "define_formats": {"own": own | fields}}
        self.formats |= {name: pick(("own", "e4m3", "e5m2", "e2m1", "f16")) for name in "ab"}
        self.formats |= {name: pick(("ue8m0", "ue8m0", "ue4m3")) for name in ("scale_a", "scale_b")}
        special = self.special("products", "c", "scales")
        first: list[dict[str, Any]] = [{"multiply": {"to": "products", **self.maybe(normalize=True)}}]
        name = pick(("groups", "groups", "products"))
        if name == "groups":
            group = {"group": {"contiguous": size}, **self.maybe(exponent=rng.randint(-3, 3))}
            first += [special, {"sum": {"of": ["products"], "to": name, **group}}, {"scale": {"of": name}}]
        else:
            first += (
                [special, {"scale": {"of": name}}]
                if rng.random() < 0.5
                else [{"scale": {"of": name}}, special]
            )
        kept = rng.randint(2, 34)
        widths = pick((kept, {name: kept, "c": max(0, kept - rng.randint(0, 9))}))
        rounding = pick(("toward_zero", "down", "up", "nearest_even", "nearest_away", "to_odd"))
        align = {
            "of": [name, "c"],
            "fraction_bits": widths,
            "rounding": rounding,
            **self.maybe(window={"c": 30}),
        }
        cut = pick(("dropped", "dropped", "sticky_added", "sticky_or"))
        cut = "dropped" if cut == "sticky_or" and not isinstance(widths, int) else cut
        return [
            *first,
            {"align": {**align, "cut": cut, **self.maybe(floor=rng.choice((-149, -20, 3)))}},
            {"sum": {"of": [name, "c"], "to": "total"}},
            self.round_step("total"),
        ]

    def fixed(self) -> list[dict[str, Any]]:
        """Terms cut at a place that does not move, in a register that is long enough, or not."""
        rng = self.rng
        rounding = rng.choice(("toward_zero", "down", "up", "nearest_even", "nearest_away", "to_odd"))
        point = rng.choice((0, 0, rng.randint(-9, 9)))
        place = {"exponent": point, "fraction_bits": rng.randint(0, 58), "rounding": rounding}
        register = self.maybe(
            exponent=point, width=rng.randint(20, 60), overflow=rng.choice(("wrap", "saturate"))
        )
        total = {"of": ["products", "c"], "to": "total", **register}
        again: list[dict[str, Any]] = []
        if rng.random() < 0.3:
            total["to"], both = "dot", ["dot", "c"]
            align = {"of": both, "fraction_bits": rng.randint(2, 30), "rounding": rounding}
            again = [{"align": align}, {"sum": {"of": both, "to": "total"}}]
        return [
            {"multiply": {"to": "products"}},
            self.special("products", "c"),
            {"align": {"of": ["products", "c"], **place, **self.maybe(window={"c": rng.randint(0, 30)})}},
            {"sum": total},
            *again,
            self.round_step("total"),
        ]

    def twice(self) -> list[dict[str, Any]]:
        """Numbers of one alignment in two sums, one after the other."""
        rng = self.rng
        cut = rng.choice(("dropped", "sticky_added", "sticky_or"))
        align = {"fraction_bits": rng.randint(2, 30), "rounding": "toward_zero", "cut": cut}
        both = ["products", "c"] if rng.random() < 0.5 else ["products"]
        return [
            {"multiply": {"to": "products"}},
            self.special("products", "c"),
            {"align": {"of": ["products", "c"], **align}},
            {"sum": {"of": both, "to": "dot"}},
            {"sum": {"of": ["dot", "c"] if len(both) == 1 else ["dot"], "to": "total"}},
            self.round_step("total"),
        ]


def doubles_unit(seed: int) -> str:
    """The text of a random unit."""
    draws = _Draws(seed)
    families = (
        *(draws.rounded, draws.fused, draws.aligned, draws.aligned, draws.rounded_before, draws.exact),
        *(draws.scaled, draws.scaled, draws.fixed, draws.twice, draws.met, draws.whole),
    )
    steps = draws.rng.choice(families)()
    unit = {"unit": f"doubles{seed}", "shape": {"k": draws.k}, "formats": draws.formats, "steps": steps}
    return json.dumps(unit | draws.more)
