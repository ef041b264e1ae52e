/* One dot product in scalar arithmetic: the same source for a C compiler and for CUDA.
 *
 * The fast form's arithmetic (mg_tile.h), one lane at a time, for places that bring their own parallelism: a GPU
 * thread computes the tensor core's dot product again (docs/campaign.md). golden/model/device_text.py emits a unit's
 * parameters as constants around these functions; every function is inlined, so that the compiler folds them away. No
 * step needs more than 64 bits. tests/golden/model/test_device_text.py holds every family against the other models.
 */
#ifndef MG_DEVICE_H
#define MG_DEVICE_H

#include "mg_internal.h"

#ifdef __CUDACC__
#define MG_HD static MG_BOTH __forceinline__
#define MG_UNROLL _Pragma("unroll")
#else
#ifndef MG_ALONE
#include <fenv.h>
#include <math.h>
#endif /* MG_ALONE */
#include <string.h>
#define MG_HD static inline __attribute__((always_inline))
#define MG_UNROLL
#endif

/* A decoded operand: signed significand and the exponent that alignment compares (MG_E_* where it is no number). */
typedef struct {
    int32_t significand, exponent;
} mg_element;

/* Parameters of a sum of products, with the names of mg_operation. */
typedef struct {
    int32_t k, fraction_bits, product_fraction, kept, nearest, signed_underflow;
    mg_format seed, out;
    uint32_t nan;
    int32_t floor, chunk, group, scale_block, dot_fraction_bits, sum_fraction_bits, window,
        product_overflow; /* 0 where it has none */
} mg_fused;

MG_HD int32_t mg_most(int32_t x, int32_t y) { return x > y ? x : y; }
MG_HD int32_t mg_least(int32_t x, int32_t y) { return x < y ? x : y; }
MG_HD int64_t mg_wider(int64_t x, int32_t bits) {
    return (int64_t)((uint64_t)x << bits);
} /* a shift of signed numbers may not overflow */

/* x >> shift for any shift from 0 on; on a GPU the shifter clamps by itself. */
MG_HD uint32_t mg_down(uint32_t x, int32_t shift) {
#ifdef __CUDA_ARCH__
    return __funnelshift_rc(x, 0, (uint32_t)shift);
#else
    return shift > 31 ? 0 : x >> shift;
#endif
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

MG_HD int mg_is_nan(mg_format f, uint32_t code, uint32_t fields, uint32_t e, uint32_t m) {
    if (f.specials == MG_SPECIALS_IEEE) return e == (1u << f.exponent_bits) - 1 && m != 0;
    if (f.specials == MG_SPECIALS_ALL_ONES_NAN) return fields == (1u << (f.exponent_bits + f.fraction_bits)) - 1;
    return f.specials == MG_SPECIALS_NEGATIVE_ZERO_NAN && fields == 0 && (code >> f.sign_shift & 1u);
}

/* Decodes a float code of at most 32 bits. */
MG_HD mg_element mg_device_decode(mg_format f, uint32_t code) {
    const uint32_t fields = (code >> f.ignored_low) & ((1u << (f.exponent_bits + f.fraction_bits)) - 1);
    const uint32_t e = fields >> f.fraction_bits, m = fields & ((1u << f.fraction_bits) - 1);
    mg_element x;
    const int normal = e || !(f.has_zero || (f.lone_zero && !m));
    x.significand = (int32_t)(normal ? m | 1u << f.fraction_bits : m);
    x.exponent = normal ? (int32_t)e - f.bias : m ? f.min_exponent : MG_E_ZERO;
    if (f.specials == MG_SPECIALS_IEEE && e == (1u << f.exponent_bits) - 1) {
        x.significand = 1;
        x.exponent = MG_E_INFINITY;
    }
    if (mg_is_nan(f, code, fields, e, m)) x.exponent = MG_E_NAN;
    if (f.sign_shift >= 0 && (code >> f.sign_shift & 1u)) x.significand = -x.significand;
    return x;
}

/* The same number as the wider format `to` holds it: subnormals of `from` become normal where `to` reaches further. */
MG_HD mg_element mg_device_convert(mg_format from, mg_format to, mg_element x) {
    if (x.significand == 0 || x.exponent >= MG_E_SPECIAL) return x;
    const uint32_t magnitude = (uint32_t)(x.significand < 0 ? -x.significand : x.significand);
    const int32_t lsb = x.exponent - from.fraction_bits;
    const int32_t exponent = mg_most(mg_highest(magnitude) + lsb, to.min_exponent);
    const int32_t significand = (int32_t)(magnitude << (lsb - (exponent - to.fraction_bits)));
    mg_element y;
    y.significand = x.significand < 0 ? -significand : significand;
    y.exponent = exponent;
    return y;
}

MG_HD int32_t mg_device_integer(mg_format f, uint32_t code) {
    const int32_t unused = 32 - f.bits;
    return f.is_signed ? (int32_t)(code << unused) >> unused : (int32_t)(code << unused >> unused);
}

/* Rounding --------------------------------------------------------------------------------------------------------- */

/* Rounds total * 2^lsb to a code of `f` with `kept` fraction bits, toward zero or to nearest even: overflow to
 * infinity, every zero +0. */
MG_HD uint32_t mg_device_round(mg_format f, int32_t kept, int32_t nearest, int64_t total, int32_t lsb) {
    if (total == 0) return 0;
    const uint64_t magnitude = (uint64_t)(total < 0 ? -total : total);
    const int32_t below = f.fraction_bits - kept, exponent = mg_most(mg_highest(magnitude) + lsb, f.min_exponent);
    const int32_t shift = exponent - kept - lsb;
    uint64_t significand;
    if (shift > 0) {
        const int32_t right = mg_least(shift, 63);
        const uint64_t half = nearest ? (UINT64_C(1) << (right - 1)) - 1 + ((magnitude >> right) & 1) : 0;
        significand = (magnitude + half) >> right;
    } else {
        significand = magnitude << -shift;
    }
    const uint32_t infinity = (uint32_t)f.infinity >> below;
    uint32_t rounded = ((uint32_t)(exponent - f.min_exponent) << kept) + (uint32_t)significand;
    rounded = rounded > infinity ? infinity : rounded;
    if (rounded == 0) return 0;
    return rounded << below | (total < 0 ? 1u << f.sign_shift : 0u);
}

/* Fused dot-add ---------------------------------------------------------------------------------------------------- */

/* The result where a product or c is an infinity or NaN; `flags` collects what there is. */
enum { MG_SEEN_NAN = 1, MG_SEEN_PLUS = 2, MG_SEEN_MINUS = 4 };

MG_HD uint32_t mg_device_flags(int32_t significand, int32_t exponent) {
    if (exponent < MG_E_SPECIAL) return 0;
    /* infinity * zero is the one special product that lies below infinity * finite */
    if (exponent >= MG_E_NAN_LEAST || exponent < MG_E_INFINITY + MG_E_ZERO / 2) return MG_SEEN_NAN;
    return significand > 0 ? MG_SEEN_PLUS : MG_SEEN_MINUS;
}

MG_HD uint32_t mg_device_special(mg_format f, uint32_t nan, uint32_t flags) {
    if ((flags & MG_SEEN_NAN) || flags == (MG_SEEN_PLUS | MG_SEEN_MINUS)) return nan;
    return (uint32_t)f.infinity | (flags == MG_SEEN_MINUS ? 1u << f.sign_shift : 0u);
}

/* A significand `left` bits wider, cut `down` bits lower, toward zero. */
MG_HD int64_t mg_device_cut(int32_t significand, int32_t left, int32_t down) {
    const uint64_t magnitude = (uint64_t)(significand < 0 ? -(int64_t)significand : significand) << left;
    const int64_t kept = (int64_t)(magnitude >> mg_least(down, 63));
    return significand < 0 ? -kept : kept;
}

/* total * 2^lsb rounded as the unit rounds; a sum that rounds to zero may keep its sign. */
MG_HD uint32_t mg_device_result(mg_fused u, int64_t total, int32_t lsb) {
    const uint32_t code = mg_device_round(u.out, u.kept, u.nearest, total, lsb);
    return code == 0 && total < 0 && u.signed_underflow ? 1u << u.out.sign_shift : code;
}

/* c + sum of a[i] * b[i]: all terms truncated to `fraction_bits` below the largest exponent (or the floor), summed
 * exactly, rounded once. */
MG_HD uint32_t mg_device_fda(mg_fused u, const mg_element *a, const mg_element *b, uint32_t seed) {
    int32_t p[MG_DEVICE_K], e[MG_DEVICE_K];
    const mg_element c = mg_device_decode(u.seed, seed);
    const int32_t left = mg_most(u.fraction_bits - u.product_fraction, 0),
                  right = mg_most(u.product_fraction - u.fraction_bits, 0);
    int32_t maximum = mg_most(c.exponent, u.floor), partial = 0;
    MG_UNROLL for (int32_t i = 0; i < u.k; i++) {
        p[i] = a[i].significand * b[i].significand;
        e[i] = a[i].exponent + b[i].exponent;
        maximum = mg_most(maximum, e[i]);
    }
    if (maximum >= MG_E_SPECIAL) {
        uint32_t flags = mg_device_flags(c.significand, c.exponent);
        MG_UNROLL for (int32_t i = 0; i < u.k; i++) flags |= mg_device_flags(p[i], e[i]);
        return mg_device_special(u.out, u.nan, flags);
    }
    int64_t total = 0;
    MG_UNROLL for (int32_t i = 0; i < u.k; i++) {
        const int32_t sign = p[i] >> 31;
        const uint32_t magnitude = (uint32_t)((p[i] ^ sign) - sign) << left;
        partial += ((int32_t)mg_down(magnitude, maximum + right - e[i]) ^ sign) - sign;
        if ((i + 1) % u.chunk == 0 || i + 1 == u.k) {
            total += partial;
            partial = 0;
        }
    }
    const int32_t c_left = mg_most(u.fraction_bits - u.seed.fraction_bits, 0),
                  c_right = mg_most(u.seed.fraction_bits - u.fraction_bits, 0);
    const uint64_t c_magnitude = (uint64_t)(c.significand < 0 ? -c.significand : c.significand) << c_left;
    const int64_t c_kept = (int64_t)(c_magnitude >> mg_least(maximum - c.exponent + c_right, 63));
    total += c.significand < 0 ? -c_kept : c_kept;
    return mg_device_result(u, total, maximum - u.fraction_bits);
}

/* The same, where groups of products are summed exactly, scaled, and aligned by the exponents of their scales alone. */
MG_HD uint32_t mg_device_gdfs(mg_fused u, const mg_element *a, const mg_element *b, const mg_element *scale_a,
    const mg_element *scale_b, uint32_t seed) {
    int32_t e[MG_MAX_GROUPS], value[MG_MAX_GROUPS];
    const mg_element c = mg_device_decode(u.seed, seed);
    int32_t maximum = mg_most(c.exponent, u.floor);
    uint32_t flags = mg_device_flags(c.significand, c.exponent);
    MG_UNROLL for (int32_t g = 0; g < u.k / u.group; g++) {
        const mg_element x = scale_a[g * u.group / u.scale_block], y = scale_b[g * u.group / u.scale_block];
        int32_t sum = 0, present = 0;
        MG_UNROLL for (int32_t i = g * u.group; i < (g + 1) * u.group; i++) {
            const int32_t product = a[i].significand * b[i].significand;
            sum += (int32_t)mg_wider(
                product, (a[i].exponent + b[i].exponent) & 31); /* e2m1: from 0 on, but for zeros */
            present |= product;
        }
        flags |= mg_device_flags(x.significand * y.significand, x.exponent + y.exponent);
        e[g] = present ? x.exponent + y.exponent : MG_E_ZERO;
        value[g] = sum * x.significand * y.significand;
        maximum = mg_most(maximum, e[g]);
    }
    if (flags) return mg_device_special(u.out, u.nan, flags);
    int64_t total = mg_device_cut(c.significand, u.fraction_bits - u.seed.fraction_bits, maximum - c.exponent);
    MG_UNROLL for (int32_t g = 0; g < u.k / u.group; g++)
        total += mg_device_cut(value[g], u.fraction_bits - u.product_fraction, maximum - e[g]);
    return mg_device_result(u, total, maximum - u.fraction_bits);
}

/* CDNA3's: each group of products cut below its own largest exponent, the groups combined rounding down, met by c
 * rounding down, and what is left rounded down and then to nearest even. */
MG_HD uint32_t mg_device_fdrda(mg_fused u, const mg_element *a, const mg_element *b, uint32_t seed) {
    int64_t dot[2] = {0, 0};
    int32_t top[2] = {2 * MG_E_ZERO, 2 * MG_E_ZERO};
    const mg_element c = mg_device_decode(u.seed, seed);
    uint32_t flags = mg_device_flags(c.significand, c.exponent);
    MG_UNROLL for (int32_t i = 0; i < u.k; i++) {
        const int32_t p = a[i].significand * b[i].significand, e = a[i].exponent + b[i].exponent, g = i % u.group;
        const int32_t two = (p < 0 ? -p : p) >> (u.product_fraction + 1);
        const int over = u.product_overflow && e < MG_E_SPECIAL && e + two >= u.product_overflow;
        flags |= over ? (uint32_t)(p > 0 ? MG_SEEN_PLUS : MG_SEEN_MINUS) : mg_device_flags(p, e);
        top[g] = mg_most(top[g], e);
    }
    if (flags) return mg_device_special(u.out, u.nan, flags);
    MG_UNROLL for (int32_t i = 0; i < u.k; i++)
        dot[i % u.group] += mg_device_cut(a[i].significand * b[i].significand, u.fraction_bits - u.product_fraction,
                                          top[i % u.group] - a[i].exponent - b[i].exponent);
    const int32_t all = mg_most(top[0], top[1]), maximum = mg_most(mg_most(all, c.exponent), -126);
    const int32_t widen = u.dot_fraction_bits - u.fraction_bits, distance = maximum - c.exponent;
    int64_t late = mg_wider(c.significand, u.fraction_bits - u.seed.fraction_bits) >> mg_least(distance, 63);
    if (u.window >= 0 && distance > u.window) late = 0;
    dot[0] = (dot[0] >> mg_least(all - top[0], 63)) + (dot[1] >> mg_least(all - top[1], 63));
    int64_t total = (mg_wider(dot[0], widen) >> mg_least(maximum - all, 63)) + mg_wider(late, widen);
    if (total == 0) return 0;
    const int32_t lsb = maximum - u.dot_fraction_bits,
                  leading = mg_highest((uint64_t)(total < 0 ? -total : total)) + lsb;
    const int32_t shift = mg_least(mg_most(mg_most(leading, -126) - u.sum_fraction_bits - lsb, 0), 63);
    return mg_device_result(u, total >> shift, lsb + shift);
}

/* A number of one format rounded to another, to nearest even; zeros keep their sign. */
MG_HD uint32_t mg_device_convert_code(mg_format from, mg_format to, uint32_t code, uint32_t nan) {
    const mg_element x = mg_device_decode(from, code);
    if (x.exponent >= MG_E_SPECIAL) return mg_device_special(to, nan, mg_device_flags(x.significand, x.exponent));
    const int64_t magnitude = x.significand < 0 ? -x.significand : x.significand;
    const uint32_t sign = (code >> from.sign_shift & 1u) << to.sign_shift;
    return mg_device_round(to, to.fraction_bits, 1, magnitude, x.exponent - from.fraction_bits) | sign;
}

/* IEEE addition ---------------------------------------------------------------------------------------------------- */

#ifndef MG_ALONE
MG_HD uint32_t mg_device_add_f32(uint32_t x, uint32_t y, uint32_t nan) {
#ifdef __CUDA_ARCH__
    const float sum = __fadd_rn(__uint_as_float(x), __uint_as_float(y));
    return sum != sum ? nan : __float_as_uint(sum);
#else
    float a, b, sum;
    uint32_t code;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    sum = a + b;
    memcpy(&code, &sum, sizeof code);
    return sum != sum ? nan : code;
#endif
}
#endif /* MG_ALONE */

/* x + y in format `f` (16 bits), nearest even: exact in fixed point, then one rounding. */
MG_HD uint32_t mg_device_add_f16(mg_format f, uint32_t x, uint32_t y, uint32_t nan) {
    const mg_element a = mg_device_decode(f, x), b = mg_device_decode(f, y);
    if (mg_most(a.exponent, b.exponent) >= MG_E_SPECIAL)
        return mg_device_special(
            f, nan, mg_device_flags(a.significand, a.exponent) | mg_device_flags(b.significand, b.exponent));
    if (a.significand == 0 && b.significand == 0) return x & y; /* -0 only from two of them */
    const int32_t shift_a = mg_most(a.exponent - f.min_exponent, 0), shift_b = mg_most(b.exponent - f.min_exponent, 0);
    const int64_t total = mg_wider(a.significand, shift_a) + mg_wider(b.significand, shift_b);
    return mg_device_round(f, f.fraction_bits, 1, total, f.min_exponent - f.fraction_bits);
}

#ifndef MG_ALONE
/* Fused multiply-add in double precision --------------------------------------------------------------------------- */

MG_HD double mg_device_double(uint64_t code) {
#ifdef __CUDA_ARCH__
    return __longlong_as_double((long long)code);
#else
    double x;
    memcpy(&x, &code, sizeof x);
    return x;
#endif
}

MG_HD uint64_t mg_device_code(double x) {
#ifdef __CUDA_ARCH__
    return (uint64_t)__double_as_longlong(x);
#else
    uint64_t code;
    memcpy(&code, &x, sizeof code);
    return code;
#endif
}

/* fma(a, b, c) rounded as `rounding` (enum mg_rounding_word) says. A C compiler must not move it across the changes of
 * the rounding mode: compile with -frounding-math. */
MG_HD double mg_device_fma_number(double a, double b, double c, int32_t rounding) {
#ifdef __CUDA_ARCH__
    if (rounding == MG_ROUNDING_TOWARD_ZERO) return __fma_rz(a, b, c);
    if (rounding == MG_ROUNDING_DOWN) return __fma_rd(a, b, c);
    if (rounding == MG_ROUNDING_UP) return __fma_ru(a, b, c);
    return __fma_rn(a, b, c);
#else
    if (rounding == MG_ROUNDING_NEAREST_EVEN) return fma(a, b, c);
    fesetround(MG_HARDWARE_ROUNDING(rounding));
    volatile double result = fma(a, b, c);
    fesetround(FE_TONEAREST);
    return result;
#endif
}

/* One step of an FMA chain: the first NaN in `order` (0 a, 1 b, 2 c, -1 nothing) is returned quieted, any other NaN is
 * `nan`. */
MG_HD uint64_t mg_device_fma(
    uint64_t a, uint64_t b, uint64_t c, int32_t rounding, const int32_t order[3], uint64_t nan) {
    const uint64_t quiet = UINT64_C(1) << 51, infinity = UINT64_C(0x7ff) << 52, magnitude = (UINT64_C(1) << 63) - 1;
    const uint64_t operands[3] = {a, b, c};
    MG_UNROLL for (int32_t i = 0; i < 3; i++)
        if (order[i] >= 0 && (operands[order[i]] & magnitude) > infinity) return operands[order[i]] | quiet;
    const uint64_t d = mg_device_code(
        mg_device_fma_number(mg_device_double(a), mg_device_double(b), mg_device_double(c), rounding));
    return (d & magnitude) > infinity ? nan : d;
}
#endif /* MG_ALONE */

/* Integers --------------------------------------------------------------------------------------------------------- */

/* c + sum of a[i] op b[i] (enum mg_operation_word): modulo 2^32, or (saturate) the exact total clamped once. */
MG_HD uint32_t mg_device_sum(
    int32_t k, const int16_t *a, const int16_t *b, uint32_t c, int32_t combine, int32_t saturate) {
    int32_t sum = 0;
    MG_UNROLL for (int32_t i = 0; i < k; i++) sum += combine == MG_OPERATION_PRODUCT ? a[i] * b[i]
        : combine == MG_OPERATION_AND ? (a[i] & b[i])
                                                                                     : (a[i] ^ b[i]);
    if (!saturate) return (uint32_t)sum + c;
    const int64_t total = (int64_t)sum + (int32_t)c;
    return (uint32_t)(int32_t)(total < INT32_MIN ? INT32_MIN : total > INT32_MAX ? INT32_MAX : total);
}

#endif
