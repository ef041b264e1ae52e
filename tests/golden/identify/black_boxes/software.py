"""Dot products of software: what vector units and libraries make of a sum in f32."""

import math

import numpy as np

F = np.float32


def _f32(codes):
    return codes.view(F)


def _codes(d):
    d = np.asarray(d, F)
    codes = d.view(np.uint32).copy()
    codes[np.isnan(d)] = 0x7FC00000
    return codes


def numpy_sum(a, b, c):
    """NumPy's pairwise sum of the products: eight accumulators, then the terms that are left."""
    with np.errstate(all="ignore"):
        return _codes(np.add.reduce(_f32(a) * _f32(b), axis=1) + _f32(c))


def lanes(a, b, c):
    """Four accumulators in the lanes of a vector, which are added crosswise, from the last element on."""
    with np.errstate(all="ignore"):
        p = _f32(a) * _f32(b)
        rows = p.reshape(len(p), -1, 4)
        sums = rows[:, -1].copy()
        for block in range(rows.shape[1] - 2, -1, -1):
            sums = rows[:, block] + sums
        return _codes((sums[:, 0] + sums[:, 2]) + (sums[:, 1] + sums[:, 3]) + _f32(c))


def in_double(a, b, c):
    """Products in f32, their sum in f64 (as BLAS libraries sum the last few), rounded, plus c."""
    with np.errstate(all="ignore"):
        p = _f32(a) * _f32(b)
        total = np.zeros(len(p))
        for k in range(p.shape[1]):
            total = total + p[:, k]
        return _codes(total.astype(F) + _f32(c))


@np.errstate(all="ignore")
def exact(a, b, c):
    """math.fsum of all products and c, of operands in f16."""
    products = a.view(np.float16).astype(float) * b.view(np.float16).astype(float)
    found = []
    for row in np.column_stack([products, c.view(np.float16).astype(float)]).tolist():
        try:
            found.append(math.fsum(row))
        except ValueError:
            found.append(math.nan)
    return _codes(np.array(found).astype(F))


def kahan(a, b, c):
    """A sum that carries what each addition lost into the next."""
    with np.errstate(all="ignore"):
        p = _f32(a) * _f32(b)
        total, lost = _f32(c).copy(), np.zeros(len(p), F)
        for k in range(p.shape[1]):
            term = p[:, k] - lost
            new = total + term
            lost = (new - total) - term
            total = new
        return _codes(total)
