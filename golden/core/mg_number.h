/* Exact scalar arithmetic of the general interpreter: decoding, shifting and rounding in 128-bit integers. */
#ifndef MG_NUMBER_H
#define MG_NUMBER_H

#include "mg_internal.h"

typedef unsigned __int128 mg_u128;

/* (-1)^sign * significand * 2^(exponent - fraction_bits); `exponent` is what alignment compares, `payload` the fraction
 * of a NaN, aligned left. `sticky`: bits below the significand were cut, their OR is carried along (cut: sticky_or).
 * Whoever observes numbers from outside learns the fields from this list (mg_number_fields). */
#define MG_NUMBER_FIELDS(FIELD)   \
    FIELD(mg_u128, significand)   \
    FIELD(uint64_t, payload)      \
    FIELD(int32_t, exponent)      \
    FIELD(int32_t, fraction_bits) \
    FIELD(uint8_t, kind)          \
    FIELD(uint8_t, sign)          \
    FIELD(uint8_t, sticky)
#define MG_DECLARE_FIELD(type, name) type name;
typedef struct {
    MG_NUMBER_FIELDS(MG_DECLARE_FIELD)
} mg_number;

static inline MG_BOTH int mg_bit_length(mg_u128 x) {
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high ? 65 + mg_highest(high) : low ? 1 + mg_highest(low) : 0;
}

static inline MG_BOTH int32_t mg_lsb(const mg_number *x) { return x->exponent - x->fraction_bits; }

/* The bits of an integer's code, of 0 to 64. */
static inline MG_BOTH uint64_t mg_code_mask(const mg_format *f) { return f->bits ? ~UINT64_C(0) >> (64 - f->bits) : 0; }

static inline MG_BOTH mg_number mg_decode_integer(const mg_format *f, uint64_t code) {
    uint64_t mask = mg_code_mask(f);
    uint64_t value = code & mask;
    int negative = f->is_signed && (value >> (f->bits - 1)) != 0;
    uint64_t magnitude = negative ? (~value + 1) & mask : value;
    mg_number x = {magnitude, 0, 0, 0, (uint8_t)(magnitude ? MG_FINITE : MG_ZERO), (uint8_t)negative, 0};
    return x;
}

static inline MG_BOTH mg_number mg_decode(const mg_format *f, uint64_t code) {
    if (!f->is_float) return mg_decode_integer(f, code);
    uint8_t sign = f->sign_shift >= 0 ? (uint8_t)((code >> f->sign_shift) & 1) : 0;
    int width = f->exponent_bits + f->fraction_bits;
    uint64_t fields = (code >> f->ignored_low) & ((UINT64_C(1) << width) - 1);
    uint64_t exponent = fields >> f->fraction_bits, fraction = fields & ((UINT64_C(1) << f->fraction_bits) - 1);
    mg_number x = {0, 0, f->min_exponent, f->fraction_bits, MG_ZERO, sign, 0};
    int all_ones_exponent = exponent == (UINT64_C(1) << f->exponent_bits) - 1;
    if (f->specials == MG_SPECIALS_IEEE && all_ones_exponent) {
        x.kind = fraction ? MG_NAN : MG_INFINITY;
    } else if ((f->specials == MG_SPECIALS_ALL_ONES_NAN && fields == (UINT64_C(1) << width) - 1) ||
               (f->specials == MG_SPECIALS_NEGATIVE_ZERO_NAN && sign && fields == 0)) {
        x.kind = MG_NAN;
    } else if (exponent == 0 && (f->has_zero || (f->lone_zero && !fraction))) {
        x.kind = fraction ? MG_FINITE : MG_ZERO;
        x.significand = fraction;
    } else {
        x.kind = MG_FINITE;
        x.significand = fraction | UINT64_C(1) << f->fraction_bits;
        x.exponent = (int32_t)exponent - f->bias;
    }
    if (x.kind == MG_NAN && f->fraction_bits) x.payload = fraction << (64 - f->fraction_bits);
    return x;
}

/* round((-1)^sign * x / 2^shift) as a magnitude; shift < 0 moves left (the caller knows that it fits). */
static inline MG_BOTH mg_u128 mg_shift_right(int sign, mg_u128 x, int64_t shift, int rounding) {
    if (shift <= 0) return x << -shift;
    mg_u128 kept = shift > 127 ? 0 : x >> shift;
    mg_u128 cut = shift > 127 ? x : x & (((mg_u128)1 << shift) - 1);
    int above = 0, tie = 0; /* cut against one half */
    if (shift <= 128) {
        mg_u128 half = (mg_u128)1 << (shift - 1);
        above = cut > half;
        tie = cut == half;
    }
    int up = 0;
    switch (rounding) {
    case MG_ROUNDING_NEAREST_EVEN: up = above || (tie && (kept & 1)); break;
    case MG_ROUNDING_NEAREST_AWAY: up = above || tie; break;
    case MG_ROUNDING_DOWN: up = sign && cut; break;
    case MG_ROUNDING_UP: up = !sign && cut; break;
    case MG_ROUNDING_TO_ODD: return kept | (cut != 0);
    case MG_ROUNDING_NEAREST_UP: up = above || (tie && !sign); break;
    case MG_ROUNDING_NEAREST_DOWN: up = above || (tie && sign); break;
    case MG_ROUNDING_NEAREST_ZERO: up = above; break;
    case MG_ROUNDING_NEAREST_ODD: up = above || (tie && !(kept & 1)); break;
    case MG_ROUNDING_AWAY: up = cut != 0; break;
    default: break;
    }
    return kept + (mg_u128)up;
}

/* `nan`: the word that stands for an overflow with MG_OVERFLOW_NAN, whatever the sign. */
static inline MG_BOTH uint64_t mg_overflow_code(
    const mg_format *f, int sign, int rounding, int overflow, int cut_bits, uint64_t nan) {
    if (overflow == MG_OVERFLOW_NAN) return nan;
    const uint64_t sign_code = f->sign_shift >= 0 ? (uint64_t)sign << f->sign_shift : 0;
    int to_largest = overflow == MG_OVERFLOW_LARGEST || !f->has_infinity;
    if (overflow == MG_OVERFLOW_IEEE)
        to_largest |= rounding == MG_ROUNDING_TOWARD_ZERO || rounding == MG_ROUNDING_TO_ODD ||
            rounding == (sign ? MG_ROUNDING_UP : MG_ROUNDING_DOWN);
    if (!to_largest) return sign_code | f->infinity;
    int cut = cut_bits + f->ignored_low;
    return sign_code | f->largest >> cut << cut;
}

/* The code of an infinity or a NaN. */
static inline MG_BOTH uint64_t mg_special_code(const mg_format *f, const mg_number *x, int has_nan, uint64_t nan) {
    const int negative = x->kind == MG_INFINITY && x->sign;
    if (x->kind == MG_INFINITY && !f->is_float)
        return !negative ? f->largest : f->is_signed ? UINT64_C(1) << (f->bits - 1) : 0;
    if (x->kind == MG_INFINITY && f->has_infinity)
        return f->infinity | (f->sign_shift >= 0 ? (uint64_t)x->sign << f->sign_shift : 0);
    if (has_nan) return nan;
    return f->largest | (negative && f->sign_shift >= 0 ? UINT64_C(1) << f->sign_shift : 0);
}

static inline MG_BOTH uint64_t mg_round_to_integer(const mg_format *f, const mg_number *x, int rounding, int overflow) {
    if (x->significand == 0) return 0;
    int32_t lsb = mg_lsb(x);
    if (overflow == MG_OVERFLOW_SATURATE && mg_bit_length(x->significand) + lsb > 120)
        return x->sign ? (f->is_signed ? UINT64_C(1) << (f->bits - 1) : 0) : f->largest;
    mg_u128 magnitude = lsb > 127 ? 0
                                  : mg_shift_right(x->sign, x->significand, -(int64_t)lsb, rounding); /* modulo 2^128 */
    __int128 value = (__int128)(x->sign ? -magnitude : magnitude);
    if (overflow == MG_OVERFLOW_SATURATE) {
        __int128 low = f->is_signed ? -((__int128)1 << (f->bits - 1)) : 0, high = (__int128)f->largest;
        value = value < low ? low : value > high ? high : value;
    }
    return (uint64_t)value & mg_code_mask(f);
}

/* What leaves the rounder before anything else happens to it: of a float, `kept` fraction bits (-1: all) below the
 * leading one or the least exponent, its carry still above the point; of an integer, a whole number. x is finite and
 * not zero. */
static inline MG_BOTH mg_number mg_round_significand(const mg_format *f, const mg_number *x, int rounding, int kept) {
    mg_number y = *x;
    const int32_t lsb = mg_lsb(x);
    if (!f->is_float) {
        if (lsb >= 0) return y;
        y.significand = mg_shift_right(x->sign, x->significand, -(int64_t)lsb, rounding);
        y.exponent = y.fraction_bits = 0;
        return y;
    }
    if (kept < 0) kept = f->fraction_bits;
    y.exponent = mg_bit_length(x->significand) - 1 + lsb;
    if (y.exponent < f->min_exponent) y.exponent = f->min_exponent;
    y.significand = mg_shift_right(x->sign, x->significand, (int64_t)y.exponent - kept - lsb, rounding);
    y.fraction_bits = kept;
    return y;
}

/* What `flush` of mg_round asks for: nothing; zero for a result that is subnormal; zero for a number that would be
 * below the least normal one if it were rounded as if exponents had no lower bound; zero for one that is below it. */
enum { MG_KEEP_SUBNORMALS, MG_FLUSH_SUBNORMALS, MG_FLUSH_UNBOUNDED, MG_FLUSH_BEFORE_ROUNDING };

static inline MG_BOTH int mg_flushes(const mg_step *step) {
    if (step->flush == MG_FLUSH_NONE) return MG_KEEP_SUBNORMALS;
    if (step->tiny == MG_TINY_BEFORE_ROUNDING) return MG_FLUSH_BEFORE_ROUNDING;
    return step->tiny == MG_TINY_UNBOUNDED ? MG_FLUSH_UNBOUNDED : MG_FLUSH_SUBNORMALS;
}

/* The number as a step sees it that cuts or rounds: its sticky bit is one more bit, below the last one, and used up by
 * the step. */
static inline MG_BOTH mg_number mg_with_sticky(const mg_number *x) {
    mg_number y = *x;
    if (x->sticky) {
        y.significand = y.significand << 1 | 1;
        y.fraction_bits++;
        y.sticky = 0;
    }
    return y;
}

/* Rounds to a code of `f`, keeping `kept` fraction bits (-1: all), `nan` as in mg_overflow_code; the twin of
 * round_to_code in golden/number/rounding.py. */
static inline MG_BOTH uint64_t mg_round(
    const mg_format *f, const mg_number *x, int rounding, int overflow, int kept, int flush, uint64_t nan) {
    if (!f->is_float) return mg_round_to_integer(f, x, rounding, overflow);
    uint64_t sign_code = f->sign_shift >= 0 ? (uint64_t)x->sign << f->sign_shift : 0;
    /* where the code of -0 is the NaN, every zero is +0 */
    uint64_t zero_code = f->specials == MG_SPECIALS_NEGATIVE_ZERO_NAN ? 0 : sign_code;
    if (x->significand == 0) return zero_code;
    if (kept < 0) kept = f->fraction_bits;
    if (flush == MG_FLUSH_UNBOUNDED) {
        const int32_t lsb = mg_lsb(x), leading = mg_bit_length(x->significand) - 1 + lsb;
        const uint64_t rounded = (uint64_t)mg_shift_right(
            x->sign, x->significand, (int64_t)leading - kept - lsb, rounding);
        if (leading + (int32_t)(rounded >> (kept + 1)) < f->min_exponent) return zero_code;
    }
    if (flush == MG_FLUSH_BEFORE_ROUNDING && mg_bit_length(x->significand) - 1 + mg_lsb(x) < f->min_exponent)
        return zero_code;
    const mg_number rounded = mg_round_significand(f, x, rounding, kept);
    int32_t exponent = rounded.exponent;
    uint64_t significand = (uint64_t)rounded.significand;
    if (significand >> (kept + 1)) {
        significand >>= 1;
        exponent++;
    }
    int below = f->fraction_bits - kept;
    if (significand >> kept == 0) {
        if (flush || significand == 0 || !f->has_zero) return zero_code;
        return sign_code | significand << (below + f->ignored_low);
    }
    if (exponent > f->max_exponent) return mg_overflow_code(f, x->sign, rounding, overflow, below, nan);
    uint64_t fraction = (significand - (UINT64_C(1) << kept)) << below;
    uint64_t fields = ((uint64_t)(exponent + f->bias) << f->fraction_bits | fraction) << f->ignored_low;
    if (fields == 0 && f->lone_zero) return zero_code;
    if (fields > f->largest) return mg_overflow_code(f, x->sign, rounding, overflow, below, nan);
    return sign_code | fields;
}

/* The same value as another format holds it (exactly); infinities and NaNs stay what they are. */
static inline MG_BOTH mg_number mg_convert(const mg_format *f, const mg_number *x) {
    mg_number y = *x;
    if (x->kind != MG_FINITE) {
        y.exponent = f->min_exponent;
        y.fraction_bits = f->fraction_bits;
        y.significand = 0;
        return y;
    }
    return mg_decode(f, mg_round(f, x, MG_ROUNDING_TOWARD_ZERO, MG_OVERFLOW_INFINITY, -1, 0, 0));
}

/* Into how many groups a step divides its terms, and which one a term belongs to. */
static inline MG_BOTH int32_t mg_group_count(const mg_step *step, int32_t count) {
    if (step->group == MG_GROUP_INTERLEAVED) return step->group_size;
    return step->group == MG_GROUP_CONTIGUOUS ? (count + step->group_size - 1) / step->group_size : 1;
}

static inline MG_BOTH int32_t mg_group_of(const mg_step *step, int32_t i) {
    if (step->group == MG_GROUP_INTERLEAVED) return i % step->group_size;
    return step->group == MG_GROUP_CONTIGUOUS ? i / step->group_size : 0;
}

#endif
