"""The kernels that time memory: chains in which each access waits for the one before, and flows of bytes.

A chain of loads chases addresses: what is loaded is the address of the next load, with no arithmetic between.
(`ld.global.ca.u32` and `.cg.u32` load an index and compute the address of it, as most published chases do.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from golden.files.templates import template_of
from hw_capture.kernels import kernels

_TEMPLATES = Path(__file__).resolve().parent / "templates"

UNROLL = 16  # accesses in one turn of a chain's loop
FLOW = 8  # accesses in one turn of a flow's loop
STEP = 8192
"""Bytes from one access of a thread to its next, where a block of 512 threads has a region of its own."""
CLUSTERS = (2, 4, 8)  # blocks of a cluster; 8 is the largest portable size
ATOMICS = ("add.u32", "exch.b32", "cas.b32", "max.s32", "add.f32", "add.u64", "add.noftz.f16x2")
COPIES = (16, 128, 512, 2048, 8192, 32768)
"""Bytes of one cp.async.bulk."""


@dataclass(frozen=True)
class Chain:
    """One kernel of dependent accesses.

    sass: SASS names (beginnings) and how many of each stand in one round. setup, finish: how it begins and
    ends (templates/setups.cu). letter: constraint of the register that the chain runs through. cluster: its
    attribute.
    """

    instruction: str
    name: str
    step: str
    sass: dict[str, int]
    setup: str = "addresses"
    finish: str = "nothing"
    wait: str = ""
    letter: str = "l"
    cluster: str = ""
    unroll: int = UNROLL

    @property
    def title(self) -> str:
        """Its instruction."""
        return self.instruction

    @property
    def type(self) -> str:
        """C's type of that register."""
        return {"r": "u32", "l": "u64"}[self.letter]


@dataclass(frozen=True)
class Flow:
    """One kernel that moves bytes. sass: beginnings of the SASS names of which FLOW stand in a turn."""

    instruction: str
    level: str
    name: str
    step: str
    sass: str
    setup: str
    finish: str = "nothing"
    cluster: str = ""
    advances: bool = False
    unroll: int = FLOW

    @property
    def title(self) -> str:
        """Its instruction and level."""
        return f"{self.instruction}, {self.level}"


def source() -> str:
    """One compilation unit with every kernel."""
    prelude = template_of(_TEMPLATES.parent.parent / "templates" / "prelude.cu", trimmed=False).render()
    text = template_of(_TEMPLATES / "kernels.cu", trimmed=False).render(chains=CHAINS, flows=FLOWS)
    return f"{kernels.prelude()}{prelude}{text}"


def _asm(text: str, outputs: str = "", inputs: str = "") -> str:
    return f'asm volatile("{text}" : {outputs} : {inputs} : "memory");'


def _load(operator: str, mnemonic: str) -> Chain:
    name = f"ld.{operator}.u64"
    step = _asm(f"{name} %0, [%1];", '"=l"(at)', '"l"(at)')
    return Chain(name, name.replace(".", "_"), step, {mnemonic: 1}, "touched")


def _indexed(operator: str) -> Chain:
    name = f"ld.global.{operator}.u32"
    load = _asm(f"{name} %0, [%1];", '"=r"(index)', '"l"(first + 4ull * index)')
    step = f"u32 index = (u32)at; {load} at = index;"
    return Chain(name, name.replace(".", "_"), step, {"LDG": 1}, "indices")


def _on_one(operator: str) -> Chain:
    """A chase on one multiprocessor, of a grid whose other blocks end at once."""
    name = f"ld.global.{operator}.u64"
    step = _asm(f"{name} %0, [%1];", '"=l"(at)', '"l"(at)')
    return Chain(name, f"{name.replace('.', '_')}_on_one", step, {"LDG": 1}, "on_one")


def _atomic(space: str, kind: str, sass: str) -> Chain:
    """An atomic whose result is its next operand."""
    wide = kind.endswith("64")
    letter, kind_c = ("l", "u64") if wide else ("r", "u32")
    more, constant = (", %3", f', "{letter}"(({kind_c})7)') if kind.startswith("cas") else ("", "")
    where = "r" if space == "shared" else "l"
    name = f"atom.{space}.{kind}"
    step = _asm(
        f"{name} %0, [%1], %2{more};", f'"=&{letter}"(at)', f'"{where}"(place), "{letter}"(at){constant}'
    )
    setup = "here" if space == "shared" else "there"
    c_name = name.replace(".", "_")
    return Chain(name, c_name, step, {sass: 1}, setup, letter=letter)


def _store_load(name: str, store: str, load: str, sass: dict[str, int], space: str) -> Chain:
    """A store, and the load that gives back what was stored."""
    where = "r" if space == "shared" else "l"
    step = _asm(f"{store} [%1], %0; {load} %0, [%1];", '"+r"(at)', f'"{where}"(place)')
    setup = "here" if space == "shared" else "there"
    return Chain(
        name, name.replace(" ", "_").replace(".", "_").replace("+", "and"), step, sass, setup, letter="r"
    )


def _copy(size: int) -> Chain:
    """cp.async of 4, 8 or 16 bytes, waited for. Behind each wait ptxas puts three LDS that load nothing."""
    cached = "cg" if size == 16 else "ca"
    name = f"cp.async.{cached}.shared.global {size} B"
    text = (
        f"cp.async.{cached}.shared.global [%1], [%2], {size}; cp.async.commit_group; cp.async.wait_group 0; "
        "ld.shared.u32 %0, [%1];"
    )
    step = _asm(text, '"=r"(at)', '"r"(place), "l"(from)') + " from += at;"
    return Chain(name, f"cp_async_{size}", step, {"LDGSTS": 1, "LDS": 4}, "copied", letter="r")


_WAIT = (
    'asm volatile("{{ .reg .pred ready; AGAIN%=: mbarrier.try_wait.parity.shared.b64 ready, [%0], %1; '
    '@!ready bra AGAIN%=; }}" : : "r"(bar), "r"(at) : "memory"); at ^= 1;'
)


def _barrier_step(text: str, inputs: str) -> str:
    return _asm(text, "", inputs) + " " + _WAIT.replace("{{", "{").replace("}}", "}")


def _bulk() -> Chain:
    """cp.async.bulk of `size` bytes, waited for at an mbarrier."""
    text = (
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];"
    )
    step = _barrier_step(text, '"r"(bar), "r"((u32)size), "r"(place), "l"(first)')
    return Chain("cp.async.bulk", "cp_async_bulk", step, {"UBLKCP": 1}, "barrier", letter="r", unroll=1)


def _arrive() -> Chain:
    step = _barrier_step("mbarrier.arrive.shared.b64 _, [%0];", '"r"(bar)')
    return Chain(
        "mbarrier.arrive + try_wait", "mbarrier_arrive", step, {"SYNCS": 2}, "barrier", letter="r", unroll=1
    )


def _chains() -> tuple[Chain, ...]:
    loads = [_load(f"global.{operator}", "LDG") for operator in ("ca", "cg", "cv")]
    constant = Chain(
        "ld.const.u32",
        "ld_const_u32",
        _asm("ld.const.u32 %0, [%1];", '"=r"(word)', '"l"((u64)word)'),
        {"LDC": 1},
        "constants",
        "taken",
        wait='asm volatile("" : "+r"(word) : : "memory");',
    )
    shared = Chain(
        "ld.shared.u32",
        "ld_shared_u32",
        _asm("ld.shared.u32 %0, [%1];", '"=r"(at)', '"r"(at)'),
        {"LDS": 1},
        "shared",
        letter="r",
    )
    local = Chain(
        "ld.local.u32",
        "ld_local_u32",
        _asm("ld.local.u32 %0, [%1];", '"=r"(at)', '"r"(at)'),
        {"LDL": 1},
        "local",
        letter="r",
    )
    clusters = [
        Chain(
            "ld.shared::cluster.u32",
            f"ld_cluster_{n}",
            _asm("ld.shared::cluster.u32 %0, [%1];", '"=r"(at)', '"r"(at)'),
            {"LD": 1},
            "cluster",
            "leave",
            letter="r",
            cluster=f"__cluster_dims__({n}, 1, 1) ",
        )
        for n in CLUSTERS
    ]
    stores = [
        _store_load(
            "st.shared.u32 + ld.shared.u32",
            "st.volatile.shared.u32",
            "ld.volatile.shared.u32",
            {"STS": 1, "LDS": 1},
            "shared",
        ),
        *(
            _store_load(
                f"st.global.u32 + ld.global.{op}.u32",
                "st.global.u32",
                f"ld.global.{op}.u32",
                {"STG": 1, "LDG": 1},
                "global",
            )
            for op in ("ca", "cg", "cv")
        ),
    ]
    shared_atomics = [_atomic("shared", kind, "ATOMS") for kind in ATOMICS[:4]]
    global_atomics = [_atomic("global", kind, "ATOMG") for kind in ATOMICS]
    return (
        *loads,
        *(_on_one(operator) for operator in ("cg", "cv")),
        _indexed("ca"),
        _indexed("cg"),
        constant,
        shared,
        local,
        *clusters,
        *stores,
        *shared_atomics,
        *global_atomics,
        *(_copy(size) for size in (4, 8, 16)),
        _bulk(),
        _arrive(),
    )


def _vector(text: str, place: str) -> str:
    outputs = ", ".join(f'"=r"(word[i].{axis})' for axis in "xyzw")
    return _asm(f"{text} {{%0, %1, %2, %3}}, [%4];", outputs, place)


def _flows() -> tuple[Flow, ...]:
    wide, near, narrow = '"l"(at + i * step)', f'"l"(at + {STEP} * i)', f'"r"((u32)at + {STEP} * i)'
    write = (
        _asm("st.global.v4.u32 [%0], {%1, %1, %1, %1};", "", '"l"(at + i * step), "r"(turn)')
        + " word[i] = sum;"
    )
    return (
        Flow(
            "ld.shared.v4.u32",
            "shared",
            "flow_shared",
            _vector("ld.shared.v4.u32", narrow),
            "LDS.128",
            "in_tile",
        ),
        Flow(
            "ld.global.ca.v4.u32",
            "L1",
            "flow_l1",
            _vector("ld.global.ca.v4.u32", near),
            "LDG.E.128",
            "of_block",
            advances=True,
        ),
        Flow(
            "ld.global.cg.v4.u32",
            "L2",
            "flow_l2",
            _vector("ld.global.cg.v4.u32", wide),
            "LDG.E.128",
            "from_global",
            advances=True,
        ),
        Flow("st.global.v4.u32", "L2", "flow_write", write, "STG.E.128", "from_global", advances=True),
        *(
            Flow(
                "ld.shared::cluster.v4.u32",
                f"cluster {n}",
                f"flow_cluster_{n}",
                _vector("ld.shared::cluster.v4.u32", narrow),
                "LD",
                "in_cluster",
                "stay",
                f"__cluster_dims__({n}, 1, 1) ",
            )
            for n in CLUSTERS[:2]
        ),
    )


CHAINS = _chains()
FLOWS = _flows()
