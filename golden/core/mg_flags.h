/* Status flags: what an operand, an operation or a rounding raises. docs/spec-schema.md has the rule ("flags").
 *
 * The interpreter carries `raised`, one bit for each word of enum mg_status_word, or null where nobody asks.
 */
#ifndef MG_FLAGS_H
#define MG_FLAGS_H

#include "mg_number.h"

static inline MG_BOTH void mg_raise(uint32_t *raised, int status, int happened) {
    if (raised && happened) *raised |= UINT32_C(1) << status;
}

/* A signalling NaN operand: the highest fraction bit, where a format has NaNs with a fraction. */
static inline MG_BOTH void mg_raise_signalling(uint32_t *raised, const mg_format *f, const mg_number *x) {
    mg_raise(raised, MG_STATUS_INVALID,
        f->is_float && f->specials == MG_SPECIALS_IEEE && x->kind == MG_NAN && !(x->payload >> 63));
}

/* Zero times infinity, whatever the unit makes of it. */
static inline MG_BOTH void mg_raise_product(uint32_t *raised, const mg_number *x, const mg_number *y) {
    mg_raise(raised, MG_STATUS_INVALID,
             (x->kind == MG_ZERO && y->kind == MG_INFINITY) || (x->kind == MG_INFINITY && y->kind == MG_ZERO));
}

/* A product that became infinite because its exponent was too large. */
static inline MG_BOTH void mg_raise_overflow(uint32_t *raised) {
    mg_raise(raised, MG_STATUS_OVERFLOW, 1);
    mg_raise(raised, MG_STATUS_INEXACT, 1);
}

/* Whether two finite numbers are equal; zeros of both signs are. */
static inline MG_BOTH int mg_same_value(const mg_number *x, const mg_number *y) {
    if (x->significand == 0 || y->significand == 0) return x->significand == y->significand;
    mg_u128 p = x->significand, q = y->significand;
    int64_t low = mg_lsb(x), lsb = mg_lsb(y);
    for (; !(p & 1); p >>= 1) low++;
    for (; !(q & 1); q >>= 1) lsb++;
    return x->sign == y->sign && p == q && low == lsb;
}

/* The number with `kept` bits behind its leading one, as if exponents had no bounds: its significand without a
 * carry. */
static inline MG_BOTH mg_number mg_unbounded(const mg_number *x, int rounding, int kept) {
    mg_number y = *x;
    const int32_t leading = mg_bit_length(x->significand) - 1 + mg_lsb(x);
    y.significand = mg_shift_right(x->sign, x->significand, (int64_t)leading - kept - mg_lsb(x), rounding);
    const int carry = (int)(y.significand >> (kept + 1));
    y.significand >>= carry;
    y.exponent = leading + carry;
    y.fraction_bits = kept;
    return y;
}

/* Whether a number is tiny by the rule of a step (`tiny`). */
static inline MG_BOTH int mg_is_tiny(
    const mg_format *f, const mg_number *x, const mg_number *unbounded, int rounding, int kept, int rule) {
    const int32_t leading = mg_bit_length(x->significand) - 1 + mg_lsb(x);
    if (leading >= f->min_exponent) return 0;
    if (rule == MG_TINY_BEFORE_ROUNDING) return 1;
    if (rule == MG_TINY_UNBOUNDED) return unbounded->exponent < f->min_exponent;
    return mg_shift_right(x->sign, x->significand, (int64_t)f->min_exponent - kept - mg_lsb(x), rounding) >> kept == 0;
}

/* A rounding of x, as the rounder sees it, to `code` of f; kept: fraction bits, -1 for all. */
static inline MG_BOTH void mg_raise_rounded(
    uint32_t *raised, const mg_format *f, const mg_number *x, int rounding, int kept, int tiny, uint64_t code) {
    if (!raised) return;
    if (x->kind >= MG_INFINITY) {
        mg_raise(raised, MG_STATUS_INVALID, !f->is_float);
        return;
    }
    if (x->significand == 0) return;
    const mg_number delivered = mg_decode(f, code);
    const int inexact = delivered.kind >= MG_INFINITY || !mg_same_value(x, &delivered);
    mg_raise(raised, MG_STATUS_INEXACT, inexact);
    if (!f->is_float) {
        const mg_number whole = mg_round_significand(f, x, rounding, kept);
        mg_raise(raised, MG_STATUS_OVERFLOW, !mg_same_value(&whole, &delivered));
        return;
    }
    if (kept < 0) kept = f->fraction_bits;
    const mg_number unbounded = mg_unbounded(x, rounding, kept), largest = mg_decode(f, f->largest);
    const int above = unbounded.exponent > largest.exponent ||
                      (unbounded.exponent == largest.exponent &&
                       unbounded.significand << (f->fraction_bits - kept) > largest.significand);
    if (above) mg_raise_overflow(raised);
    mg_raise(raised, MG_STATUS_UNDERFLOW, inexact && mg_is_tiny(f, x, &unbounded, rounding, kept, tiny));
}

#endif
