"""Black boxes of rounded operations, in NumPy's own arithmetic: f32 products of f16 are exact."""

import numpy as np


def floats(codes, kind):
    return np.ascontiguousarray(codes).view(kind)


def canonical(d):
    codes = d.view(np.uint32).copy()
    codes[np.isnan(d)] = 0x7FFFFFFF
    return codes


def products(a, b):
    return floats(a, np.float16).astype(np.float32) * floats(b, np.float16).astype(np.float32)


@np.errstate(all="ignore")
def pairwise(a, b, c):
    """((p0 + p1) + (p2 + p3)) + c."""
    p = products(a, b)
    return canonical(((p[:, 0] + p[:, 1]) + (p[:, 2] + p[:, 3])) + floats(c, np.float32))


@np.errstate(all="ignore")
def strided(a, b, c):
    """(p0 + p2) + (p1 + p3) after c, as two lanes of a SIMD register would."""
    p = products(a, b)
    return canonical(floats(c, np.float32) + ((p[:, 0] + p[:, 2]) + (p[:, 1] + p[:, 3])))


@np.errstate(all="ignore")
def backward(a, b, c):
    """c + p3 + p2 + p1 + p0, each rounded."""
    p, d = products(a, b), floats(c, np.float32)
    for k in (3, 2, 1, 0):
        d = d + p[:, k]
    return canonical(d)


def narrow_register(a, b, c):
    """s8 products in a register of 17 bits, then c."""
    products = (a.astype(np.int8).astype(np.int32) * b.astype(np.int8)).sum(axis=1)
    held = (products + (1 << 16)) % (1 << 17) - (1 << 16)
    return held.astype(np.uint32) + c


def clamped(a, b, c):
    """s8 products into s32, clamped once at the end."""
    wide = (floats(a, np.int8).astype(np.int64) * floats(b, np.int8).astype(np.int64)).sum(axis=1)
    return np.clip(wide + floats(c, np.int32), -(1 << 31), (1 << 31) - 1).astype(np.int32).view(np.uint32)


_calls = 0


def moody(a, b, c):
    """Answers otherwise every time."""
    global _calls
    _calls += 1
    return canonical(floats(c, np.float32)) ^ np.uint32(_calls & 1)


@np.errstate(all="ignore")
def crowded(a, b, c):
    """Adds from the other end where many dot products are asked at once."""
    p, d = products(a, b), floats(c, np.float32)
    for k in range(p.shape[1]) if len(p) > 300 else reversed(range(p.shape[1])):
        d = d + p[:, k]
    return canonical(d)


@np.errstate(all="ignore")
def outside(a, b, c):
    """Nothing that steps can say: the sum in f32, or its square root where c is one."""
    d = (products(a, b).sum(axis=1) + floats(c, np.float32)).astype(np.float32)
    return canonical(np.where(c == 0x3F800000, np.sqrt(np.abs(d)), d).astype(np.float32))


def broken(a, b, c):
    raise ZeroDivisionError("no answer")
