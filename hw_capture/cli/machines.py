"""What executes a campaign: the CPU in this machine, or its GPU; and the work of a shard on either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.stimuli import KINDS
from golden.workers.results import Result
from hw_capture.campaign.run import Bench, Campaign, compiled_ahead
from hw_capture.campaign.shards import Shard, result_of
from hw_capture.campaign.source import DRAWN, EXHAUSTIVE
from hw_capture.cpu.machine import architecture_runs_here


@dataclass(frozen=True)
class Machine:
    """What executes: its facts, what compiled the program, and an instruction's bench on it."""

    facts: dict[str, Any]
    compiler: str
    bench: Callable[[Instruction], Bench]


@contextmanager
def machine_of(
    chosen: list[Instruction], faults: dict[str, int | str], index: int, jobs: int
) -> Iterator[Machine]:
    """The CPU in this machine where it has the instructions, else the GPU.

    Args:
        index: the kind, as hw_capture.campaign.run.Plan has it.
        jobs: compilations at a time.

    Raises:
        OperandError, DeviceError, ToolMissing: neither can run them.
    """
    on_cpu = architecture_runs_here(chosen[0].architecture)
    check_plan(on_cpu, faults, index)
    if on_cpu:
        from hw_capture.cpu import campaign, machine

        cpu = machine.open()
        facts: dict[str, Any] = dict(cpu.facts())
        with campaign.Workers() as workers:
            # What this CPU lacks is said before anything runs.
            benches: dict[str, Any] = {ins.name: campaign.Bench(cpu, ins, workers) for ins in chosen}
            yield Machine(facts, facts.pop("compiler"), lambda ins: benches[ins.name])
        return
    from hw_capture.gpu import device
    from hw_capture.kernels import toolchain
    from hw_capture.record.capture import target_for

    compiler = toolchain.version(toolchain.require("nvcc"))
    with device.open() as gpu:
        target = target_for(chosen[0].architecture, gpu.facts())
        with compiled_ahead(chosen, target, faults, jobs):
            yield Machine(gpu.facts(), compiler, lambda ins: Campaign(gpu, ins, faults))


def check_plan(on_cpu: bool, faults: dict[str, int | str], index: int) -> None:
    """Raises OperandError for what campaigns on a CPU, or on a GPU, do not have."""
    if on_cpu and (faults or index == EXHAUSTIVE):
        raise OperandError("a campaign on a CPU plants no faults and has no kind 'exhaustive'")
    if not on_cpu and len(DRAWN) <= index < EXHAUSTIVE:
        raise OperandError(f"a campaign on a GPU does not draw the kind '{KINDS[index]}'")


def run_shard(shard: Shard) -> Result:
    """Runs a shard on a worker's CPU or GPU. Raises as `machine_of`, and HwError of what went wrong on it."""
    with machine_of([shard.ins], dict(shard.faults), shard.kind, 1) as found:
        return result_of(shard, found.bench(shard.ins), found.facts, found.compiler)
