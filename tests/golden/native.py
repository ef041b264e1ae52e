"""Number formats as ml_dtypes and NumPy have them: an independent decoding of every code."""

from __future__ import annotations

import ml_dtypes
import numpy as np

SHORT = {
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
"""The floating-point formats of 8 bits or less, one element a byte."""
ML_DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, **SHORT}
