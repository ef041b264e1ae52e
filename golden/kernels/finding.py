"""The plan behind given results: the instruction and the order of sums that have these bits.

Candidates are tried on a few elements of D, the ones that fit on more, and the remaining ones on the whole of
D: a plan is found only if every bit of every element is equal. Plans that the data do not distinguish are all
named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.resolver import resolver
from golden.errors import DTypeError, OperandError, ShapeError, nearest
from golden.kernels.candidates import Candidate, candidates, with_known_cuts
from golden.kernels.drawing import drawn
from golden.kernels.epilogues import Addends, checked, codes_of
from golden.kernels.finding_with_extra_operands import search_with_extra_operands, structures
from golden.kernels.masks import Kernel, check_formats, product, tree_of_kernel
from golden.kernels.plan import Plan
from golden.kernels.product import gemm
from golden.kernels.sampling import Answer, Sample, SearchResult, first_plan
from golden.number.arrays import plain
from golden.number.formats import Format, formats, get_format, native_dtype

Bits = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total); total 0 when unknown."""


def _silent(_what: str, _done: int, _total: int) -> None:
    """Shows nothing."""


def find_plan(
    A: npt.ArrayLike | Kernel,
    B: npt.ArrayLike | None = None,
    D: npt.ArrayLike | None = None,
    arch: str | None = None,
    formats: dict[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    shape: Sequence[int] | None = None,
    metadata: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    C: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Plan | None:
    """Finds the plan by which a kernel computes D = A @ B, from one product or by calling the kernel.

    Args:
        A, B, D: one product, shapes (M, K), (K, N) and (M, N): raw codes, or numbers of NumPy's or
            ml_dtypes' types. Leading dimensions are a batch; the plan must give every product of the batch.
            Instead, A may be the kernel: a function of two arrays of raw codes that returns D; leave out B
            and D. Masks then find its order of sums (golden.kernels.masks), and the plan is compared with
            it on 2 to 64 random products of normal numbers. NaNs, infinities and subnormal numbers are not
            tried.
        arch: the architecture whose instructions are tried.
        formats: names of the formats of raw codes by "a", "b" and "d", and "c" if C has another format than
            D. The dtype of numbers gives their format.
        progress: called now and then with (candidates tried, 0). An exception that it raises ends the search.
        shape: (M, N, K) of the kernel's calls. A kernel may add in another order for another shape.
        metadata, scale_a, scale_b: as golden.gemm takes them (A of a sparse product has the shape (M, K/2)).
            Only plans with exactly these operands are tried.
        C, bias, alpha, beta: what the kernel adds or multiplies: C with the shape and format of D, a bias of
            shape (M,) or (N,) in D's format. Plans with C after the sum and before it are tried, and plans
            with relu if no element of D is negative.

    Returns:
        The simplest plan found that gives every bit of D. Its `others` are further plans with the same bits
        on this data. None: no candidate gives them; `golden.sum_tree` still finds the order of a kernel.

    Raises:
        ShapeError, DTypeError, OperandError, UnknownNameError: an argument is wrong.
    """
    if arch is None:
        raise OperandError(
            "argument 'arch' is missing, expected an architecture whose instructions are tried"
        )
    arch = resolver().called(arch)
    report: Progress = _silent if progress is None else lambda _what, done, total: progress(done, total)
    given = {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b, "C": C, "bias": bias}
    extra = {name: value for name, value in given.items() if value is not None}
    if callable(A):
        if B is not None or D is not None:
            raise OperandError(
                "arguments 'B' and 'D' were given together with a kernel, expected the kernel alone"
            )
        if shape is None:
            raise OperandError("argument 'shape' is missing, expected (M, N, K) of the kernel's calls")
        if extra or (alpha, beta) != (1, 1):
            given_too = ", ".join(extra) or "alpha, beta"
            raise OperandError(f"{given_too}: a kernel is called with A and B alone")
        return ask(A, shape, arch, {} if formats is None else formats, report).plan
    if B is None or D is None or shape is not None:
        raise OperandError("expected A, B and D, or a kernel and its shape")
    return search(A, B, D, arch, formats, report, extra, alpha, beta).plan


def search(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    D: npt.ArrayLike,
    arch: str,
    formats: dict[str, str] | None = None,
    report: Progress = _silent,
    extra: Mapping[str, npt.ArrayLike] | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> SearchResult:
    """As `find_plan`, with the nearest plans; `extra`: metadata, scale_a and scale_b, or C and bias, where
    there are any."""
    formats, extra = {} if formats is None else formats, dict(extra or {})
    check_formats(formats)
    c, bias = extra.pop("C", None), extra.pop("bias", None)
    of_c = {"c": get_format(formats["c"])} if c is not None and "c" in formats else {}
    known = _formats({"a": A, "b": B, "d": D}, {key: formats[key] for key in formats.keys() - of_c.keys()})
    a, b, d = (codes_of(value, known[name], name.upper()) for name, value in (("a", A), ("b", B), ("d", D)))
    addends = checked(c, bias, d, known | of_c, alpha, beta)
    if extra:
        matrices = {name: _matrix(codes, name) for name, codes in (("a", a), ("b", b), ("d", d))}
        return search_with_extra_operands(matrices, extra, arch, known, report, addends)
    data, epilogues = _batch(a, b, d, addends), addends.epilogues(d, known["d"])
    return _tried(data, candidates(arch, known, data[0].k, epilogues), arch, known, report)


def _matrix(codes: Bits, name: str) -> Bits:
    if codes.ndim != 2:
        raise ShapeError(f"argument '{name.upper()}' has shape {codes.shape}, expected two dimensions")
    return codes


def _batch(a: Bits, b: Bits, d: Bits, addends: Addends) -> list[Answer]:
    """The products of a batch, which the leading dimensions of D number."""
    if min(a.ndim, b.ndim, d.ndim) < 2:
        raise ShapeError(f"A, B and D have shapes {a.shape}, {b.shape}, {d.shape}, expected matrices")
    lead = d.shape[:-2]
    try:
        a, b = (np.broadcast_to(one, (*lead, *one.shape[-2:])) for one in (a, b))
    except ValueError:
        raise ShapeError(f"A and B have shapes {a.shape} and {b.shape}, but D is a batch of {lead}") from None
    if a.shape[-1] != b.shape[-2] or d.shape[-2:] != (a.shape[-2], b.shape[-1]):
        raise ShapeError(f"D has shape {d.shape}, expected (M, N) of A {a.shape} and B {b.shape}")
    if not d.size or not a.shape[-1]:
        raise ShapeError("a product without elements says nothing of a plan")
    return [Answer(a[at], b[at], d[at], addends.of_product(at)) for at in np.ndindex(lead)]


def ask(
    kernel: Kernel,
    shape: Sequence[int],
    arch: str,
    formats: dict[str, str],
    report: Progress = _silent,
) -> SearchResult:
    """As `find_plan` of a kernel, with its tree and the nearest plans.

    Plans with that tree are tried first, then all others. A plan that is found gives every bit of two
    products or more, of operands with small and with large differences of magnitude.
    """
    report("asking the kernel", 0, 0)
    called = product(kernel, shape, formats)
    tree = tree_of_kernel(called)
    m, n, k = called.shape
    known, data = called.formats, []
    # Exponents of the products that a kernel is given: at most this far from that of 1.0.
    spreads = (3, 9)
    # A kernel is given two or more products, until it has computed this many elements, or this many products.
    least_elements, most_products = 512, 64
    count = min(max(len(spreads), -(-least_elements // (m * n))), most_products)
    for seed, spread in zip(range(count), cycle(spreads)):
        rng = np.random.default_rng([seed, m, n, k])
        a, b = drawn(rng, known["a"], (m, k), spread), drawn(rng, known["b"], (k, n), spread)
        data.append(Answer(a, b, called(a, b)))
    found = None
    if tree is not None:
        found = _tried(data, with_known_cuts(arch, known, k, structures(tree)), arch, known, report)
    if found is None or found.plan is None:
        found = _tried(data, candidates(arch, known, k), arch, known, report)
    return replace(found, tree=tree)


def _tried(
    data: list[Answer],
    given: Iterable[Candidate],
    arch: str,
    known: dict[str, Format],
    report: Progress,
) -> SearchResult:
    """Tries candidates on a few elements of the first product, what fits on more of each, and then on all."""
    report("decoding a sample", 0, 0)
    # Elements of D that candidates are tried on first, and next.
    few_elements, more_elements = 12, 512
    few = Sample(data[0], few_elements, known)
    # Products of which a sample is tried before the whole.
    most_sampled = 16
    more = [Sample(one, more_elements, known) for one in data[:most_sampled]]
    fits: list[Plan] = []
    scores: list[tuple[int, Plan]] = []
    tried, left = 0, iter(given)
    # Candidates whose chains run together: their operands stand in memory at once.
    at_once = 512
    while together := list(islice(left, at_once)):
        few.remember(together)
        for candidate in together:
            for equal, plan in few.equal(candidate):
                tried += 1
                scores.append((equal, plan))
                fits += [plan] if equal == few.count else []
            report("trying plans on a few elements", tried, 0)
    if not tried:
        raise OperandError(f"no instruction of {arch} takes {known['a'].name} and {known['b'].name}")
    report("trying plans on more elements", 0, 0)
    fits = [plan for plan in fits if all(one.equal_plan(plan) == one.count for one in more)]
    # Plans that are tried on the whole of D.
    most_whole = 64
    found = fits[:most_whole]
    for one in data:
        found = _of_all(one, found, report)
    report("looking for the nearest plans", 0, 0)
    scores.sort(key=lambda pair: -pair[0])
    near = sorted(((more[0].equal_plan(plan), plan) for _, plan in scores[:8]), key=lambda pair: -pair[0])
    the_first = first_plan(found, data[0].d.shape, data[0].a.shape[1], len(data))
    return SearchResult(the_first, tried, len(fits[most_whole:]), more[0].count, tuple(near[:3]))


def _formats(values: dict[str, Any], given: dict[str, str]) -> dict[str, Format]:
    unknown = next((name for name in given if name not in values), None)
    if unknown is not None:
        raise OperandError(f"formats: unknown key '{unknown}', expected a, b and d{nearest(unknown, values)}")
    return {name: _format_of(name, value, given.get(name)) for name, value in values.items()}


def _format_of(name: str, value: Any, given: str | None) -> Format:
    if given is not None:
        return get_format(given)
    dtype = plain(value, name.upper()).dtype
    for fmt in map(get_format, formats()):
        if fmt.name != "tf32" and native_dtype(fmt) == dtype and dtype.kind != "u":
            return fmt
    raise DTypeError(
        f"argument '{name.upper()}' has dtype {dtype}, which says no format: expected formats={{'{name}': "
        f"...}}"
    )


def _of_all(one: Answer, fits: list[Plan], report: Progress) -> list[Plan]:
    """The plans that give every element."""
    computing = partial(report, "computing the whole product")
    return [plan for plan in fits if np.array_equal(_computed(one, plan, computing), one.d)]


def _computed(one: Answer, plan: Plan, progress: Callable[[int, int], None]) -> Bits:
    return gemm(one.a, one.b, plan, progress=progress, **one.addends.operands())
