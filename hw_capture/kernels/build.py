"""Builds kernels in groups, disassembles them and holds every one against the spec."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from golden.catalog import architectures
from golden.catalog.lookup import instructions
from golden.model.instruction import Instruction
from hw_capture.errors import CompileError, HwError, SassError
from hw_capture.gpu import processes
from hw_capture.kernels import amd_toolchain, kernels, sass, tensor_memory, toolchain, waves

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Built:
    """One kernel: `kernel` of `cubin`, the SASS lines that stand for its instruction,
    or the `error` that it met.

    `strange`: the error is that it was compiled, but to something else than the spec says.
    """

    instruction: Instruction
    form: str
    cubin: bytes = b""
    kernel: str = ""
    sass: tuple[str, ...] = ()
    error: str = ""
    strange: bool = False


def first_target(architecture: str) -> str:
    """The target that is compiled for where none is named: that of the chip whose results the catalog has."""
    return architectures.get_architecture(architecture).targets[0]


def nvcc_compiles(architecture: str) -> bool:
    """Whether nvcc makes code for the targets of an architecture."""
    return architectures.get_architecture(architecture).maker.compiler == "nvcc"


def supported(ins: Instruction) -> bool:
    """Whether one of the generators makes kernels of the instruction."""
    return kernels.supported(ins) or waves.supported(ins) or tensor_memory.supported(ins)


def text(ins: Instruction, form: str) -> str:
    """The instruction as its kernel calls it: PTX with operands, or clang's builtin."""
    if waves.supported(ins):
        return waves.text(ins)
    return tensor_memory.text(ins, form) if tensor_memory.supported(ins) else kernels.ptx(ins, form)


def architecture_of(target: str) -> str:
    """Returns the architecture of a target: sm_90a -> hopper; raises HwError naming the targets there are."""
    targets = {arch: architectures.get_architecture(arch).targets for arch in architectures.architectures()}
    for arch, known in targets.items():
        if target in known:
            return arch
    compiled = (arch for arch in targets if architectures.get_architecture(arch).maker.compiler)
    listed = ", ".join(name for arch in compiled for name in targets[arch])
    raise HwError(f"no architecture has the target '{target}', expected one of {listed}")


def select(
    architecture: str, matching: Callable[[str], bool] | None = None, columns: Iterable[int] | None = None
) -> tuple[list[Instruction], list[tuple[str, str]]]:
    """Chooses instructions of an architecture.

    Args:
        matching: only names for which this holds.
        columns: of instructions that come in a sweep over N only those with these N; None: every N.

    Returns:
        The instructions, and (name, reason) of instructions without a kernel.
    """
    wanted = None if columns is None else set(columns)
    chosen, left = [], []
    for ins in instructions(architecture):
        if (matching and not matching(ins.name)) or (
            ins.traits.swept and wanted is not None and ins.n not in wanted
        ):
            continue
        if supported(ins):
            chosen.append(ins)
        else:
            left.append((ins.name, f"the generator has no kernel for family {ins.family}"))
    return chosen, left


def too_new(ins: Instruction) -> str:
    """Why this nvcc cannot know the instruction, or ""."""
    if not nvcc_compiles(ins.architecture):
        return ""
    needed = kernels.needs_toolkit(ins)
    found = tuple(int(part) for part in toolchain.version(toolchain.require("nvcc")).split(".")[:2])
    return f"needs CUDA {needed[0]}.{needed[1]}, this is {found[0]}.{found[1]}" if found < needed else ""


def groups(chosen: Sequence[Instruction]) -> list[list[tuple[Instruction, str]]]:
    """The kernels of the instructions, every form of them, in groups of about GROUP; one instruction is in
    one group."""
    found: list[list[tuple[Instruction, str]]] = [[]]
    # Kernels of one compilation unit: nvcc starts more slowly than it compiles one.
    together = 16
    for ins in sorted(chosen, key=waves.options):  # a compilation unit has one size of waves
        alike = not found[-1] or waves.options(found[-1][0][0]) == waves.options(ins)
        if len(found[-1]) >= together or not alike:
            found.append([])
        found[-1] += [(ins, form) for form in kernels.forms(ins)]
    return [group for group in found if group]


def build(
    chosen: Sequence[list[tuple[Instruction, str]]],
    target: str,
    jobs: int = 2,
    progress: Progress | None = None,
) -> Generator[list[Built], None, None]:
    """Builds groups of kernels, `jobs` at a time, and yields each as it is ready, in order.

    Raises:
        ToolMissing: no compiler or no disassembler. CompileError: the compiler does not know the target. What
        is wrong with one kernel stands in its `error`.
    """
    if _for_amd(target):
        amd_toolchain.compile(waves.prelude(), target)
    else:
        toolchain.require("nvdisasm", "cuobjdump")
        toolchain.compile(kernels.prelude(), target)
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[Future[list[Built]]] = []
        ahead = iter(chosen)
        try:
            for done in range(len(chosen)):
                while len(waiting) < 2 * jobs and (group := next(ahead, None)) is not None:
                    waiting.append(pool.submit(_build_group, group, target))
                if progress:
                    progress("compiling", done, len(chosen))
                yield waiting.pop(0).result()
        except BaseException:
            # An error, Ctrl-C, or the caller wants no more: the pool would wait for its compilers.
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop_all()
            raise


def _build_group(group: list[tuple[Instruction, str]], target: str) -> list[Built]:
    """Builds one group; where the compiler refuses it, its halves, down to the kernel that is to blame."""
    try:
        cubin, bodies = _waves(group, target) if _for_amd(target) else _warps(group, target)
    except CompileError as error:
        if len(group) == 1:
            return [Built(*group[0], error=str(error))]
        half = len(group) // 2
        return _build_group(group[:half], target) + _build_group(group[half:], target)
    return [_checked(ins, form, cubin, f"run_{i}", bodies) for i, (ins, form) in enumerate(group)]


def _for_amd(target: str) -> bool:
    return target.startswith("gfx")


def _warps(group: list[tuple[Instruction, str]], target: str) -> tuple[bytes, dict[str, list[str]]]:
    parts = (
        tensor_memory.source(ins, form, f"run_{i}", complete=False)
        if tensor_memory.supported(ins)
        else kernels.source(ins, form, f"run_{i}", complete=False)
        for i, (ins, form) in enumerate(group)
    )
    tensor = tensor_memory.prelude() if any(tensor_memory.supported(ins) for ins, _ in group) else ""
    cubin = toolchain.compile(kernels.prelude() + tensor + "".join(parts), target)
    return cubin, sass.functions(toolchain.disassemble(cubin))


def _waves(group: list[tuple[Instruction, str]], target: str) -> tuple[bytes, dict[str, list[str]]]:
    text, options = waves.module(group), waves.options(group[0][0])
    listed = amd_toolchain.listing(text, target, options)
    return amd_toolchain.compile(text, target, options), waves.functions(listed)


def _checked(ins: Instruction, form: str, cubin: bytes, kernel: str, bodies: dict[str, list[str]]) -> Built:
    try:
        check = waves.check_body if waves.supported(ins) else sass.check_body
        return Built(ins, form, cubin, kernel, tuple(check(ins, bodies.get(kernel, []))))
    except SassError as error:
        return Built(ins, form, cubin, kernel, error=str(error), strange=True)
