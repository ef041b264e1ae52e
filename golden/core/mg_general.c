/* The general interpreter: every primitive step with every parameter, one dot product at a time, exact integers.
 *
 * It executes the same step list as golden/model/reference.py, written independently: 128-bit significands, and a wide
 * two's-complement accumulator for sums whose terms lie too far apart. A sum that needs more than MG_KEPT_BITS keeps
 * that many and ORs the rest into the lowest one (rounding to odd): every later single rounding gives the same result
 * as from the exact sum.
 */
#include <string.h>

#include "mg_flags.h"
#include "mg_internal.h"
#include "mg_number.h"
#include "mg_watch.h"

#define MG_KEPT_BITS 100
#define MG_LIMBS 96
#define MG_TREE_DEPTH 16 /* more than four registers need */

typedef struct {
    const mg_operation *operation;
    mg_number *registers[MG_REGISTER_COUNT];
    int32_t count[MG_REGISTER_COUNT];
    const uint64_t *a_codes, *b_codes, *scale_codes[2]; /* of a, of b */
    const mg_format *scale_formats[2];
    int32_t scale_block;
    uint64_t result;
    int done;
    mg_watch *watch; /* who observes, or null */
    uint32_t *raised; /* status flags (mg_flags.h), or null */
} mg_state;

/* Slots: numbers in register i (a dot product of k products never holds more terms in one), numbers that a step makes,
 * terms that it reads (of at most four registers). The text of one program says what that needs
 * (golden/model/device_text.py). */
#ifndef MG_REGISTER_SLOTS
#define MG_REGISTER_SLOTS(i, p) ((size_t)(p)->k + 8)
#define MG_SUM_SLOTS(p) (4 * MG_REGISTER_SLOTS(0, p))
#define MG_TERM_SLOTS(p) (4 * MG_REGISTER_SLOTS(0, p))
#endif

/* Returns where the registers end. */
static MG_BOTH mg_number *mg_layout_registers(mg_state *s, mg_number *slots, const mg_program *p) {
    for (int i = 0; i < MG_REGISTER_COUNT; slots += MG_REGISTER_SLOTS(i, p), i++) s->registers[i] = slots;
    return slots;
}

#define MG_QUIET (UINT64_C(1) << 63)

/* The code of a NaN with this payload in a format with IEEE 754's special values. */
static MG_BOTH uint64_t mg_nan_code(const mg_number *x, const mg_format *f) {
    const uint64_t ones = (UINT64_C(1) << f->exponent_bits) - 1;
    return (uint64_t)x->sign << f->sign_shift |
        (ones << f->fraction_bits | x->payload >> (64 - f->fraction_bits)) << f->ignored_low;
}

/* A NaN that comes of numbers, where NaNs keep their payloads. */
static MG_BOTH mg_number mg_made_nan(const mg_step *step) {
    mg_number x = {0, 0, 0, 0, MG_NAN, 0, 0};
    if (step->has_nan) x = mg_decode(&step->format, step->nan);
    x.kind = MG_NAN;
    return x;
}

static MG_BOTH mg_number mg_product(const mg_number *x, const mg_number *y, int zero_times_infinity) {
    mg_number p = {0, 0, x->exponent + y->exponent, x->fraction_bits + y->fraction_bits, MG_FINITE,
        (uint8_t)(x->sign ^ y->sign), 0};
    if (x->kind == MG_NAN || y->kind == MG_NAN || (x->kind == MG_INFINITY && y->kind == MG_ZERO) ||
        (x->kind == MG_ZERO && y->kind == MG_INFINITY)) {
        int number = x->kind != MG_NAN && y->kind != MG_NAN;
        p.kind = !number || zero_times_infinity == MG_ZERO_TIMES_INFINITY_NAN ? MG_NAN
            : zero_times_infinity == MG_ZERO_TIMES_INFINITY_ZERO ? MG_ZERO
                                                                              : MG_INFINITY;
        if (p.kind == MG_ZERO) {
            const mg_number *zero = x->kind == MG_ZERO ? x : y;
            p.exponent = zero->exponent;
            p.fraction_bits = zero->fraction_bits;
        }
    } else if (x->kind == MG_INFINITY || y->kind == MG_INFINITY) {
        p.kind = MG_INFINITY;
    } else {
        if (x->kind == MG_ZERO || y->kind == MG_ZERO) p.kind = MG_ZERO;
        p.significand = x->significand * y->significand;
        p.sticky = p.kind == MG_FINITE && (x->sticky | y->sticky);
    }
    return p;
}

static MG_BOTH void mg_normalize_exponent(mg_number *x) {
    if (x->kind != MG_FINITE || x->significand == 0) return;
    int32_t lsb = mg_lsb(x);
    x->exponent = lsb + mg_bit_length(x->significand) - 1;
    x->fraction_bits = x->exponent - lsb;
}

/* IEEE 754 6.3: a zero sum keeps a sign that all addends share, otherwise + (- when rounding down). */
static MG_BOTH uint8_t mg_zero_sign(const mg_number *const *terms, int32_t count, int rounding) {
    int same = 1;
    for (int32_t i = 0; i < count; i++) same &= terms[i]->significand == 0 && terms[i]->sign == terms[0]->sign;
    return same && count ? terms[0]->sign : rounding == MG_ROUNDING_DOWN;
}

/* Adds +-(x << shift) to a two's-complement accumulator of MG_LIMBS limbs. */
static MG_BOTH void mg_accumulate(uint64_t *limbs, mg_u128 x, int64_t shift, int negative) {
    int64_t at = shift / 64;
    int offset = (int)(shift % 64);
    uint64_t parts[3] = {
        (uint64_t)x << offset, (uint64_t)((x << offset) >> 64), offset ? (uint64_t)(x >> (128 - offset)) : 0};
    uint64_t carry = (uint64_t)negative;
    for (int64_t i = at; i < MG_LIMBS; i++) {
        uint64_t addend = i - at < 3 ? parts[i - at] : 0;
        if (negative) addend = ~addend;
        mg_u128 sum = (mg_u128)limbs[i] + addend + carry;
        limbs[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
}

/* Keeps `bits` bits of a two's-complement accumulator: the carry beyond them is lost, the top one left is the sign. */
static MG_BOTH void mg_wrap(uint64_t *limbs, int64_t bits) {
    if (bits >= MG_LIMBS * 64) return;
    if (bits <= 0) {
        memset(limbs, 0, MG_LIMBS * sizeof *limbs);
        return;
    }
    int64_t top = (bits - 1) / 64;
    int unused = 63 - (int)((bits - 1) % 64);
    limbs[top] = (uint64_t)((int64_t)(limbs[top] << unused) >> unused);
    for (int64_t i = top + 1; i < MG_LIMBS; i++) limbs[i] = limbs[top] >> 63 ? ~UINT64_C(0) : 0;
}

/* Magnitude of the accumulator as at most MG_KEPT_BITS bits, lost bits ORed into the lowest; returns bits dropped. */
static MG_BOTH int64_t mg_compress(uint64_t *limbs, mg_u128 *magnitude, uint8_t *sign) {
    *sign = (uint8_t)(limbs[MG_LIMBS - 1] >> 63);
    if (*sign) {
        uint64_t carry = 1;
        for (int i = 0; i < MG_LIMBS; i++) {
            limbs[i] = ~limbs[i] + carry;
            carry = carry && limbs[i] == 0;
        }
    }
    int top = MG_LIMBS - 1;
    while (top > 0 && limbs[top] == 0) top--;
    int64_t length = limbs[top] ? top * 64 + 1 + mg_highest(limbs[top]) : 0;
    int64_t drop = length > MG_KEPT_BITS ? length - MG_KEPT_BITS : 0;
    mg_u128 value = 0;
    for (int i = 2; i >= 0; i--) {
        int64_t limb = drop / 64 + i;
        uint64_t word = limb < MG_LIMBS ? limbs[limb] : 0;
        int64_t position = (int64_t)i * 64 - drop % 64;
        if (position >= 128 || word == 0) continue;
        value |= position >= 0 ? (mg_u128)word << position : (mg_u128)(word >> -position);
    }
    int sticky = 0;
    for (int64_t i = 0; i < drop / 64; i++) sticky |= limbs[i] != 0;
    if (drop % 64) sticky |= (limbs[drop / 64] << (64 - drop % 64)) != 0;
    *magnitude = value | (mg_u128)sticky;
    return drop;
}

/* Keeps the sum in a register of `bits` bits: it wraps, or becomes the largest or least number. */
static MG_BOTH void mg_hold(uint64_t *limbs, int64_t bits, int overflow) {
    uint64_t whole[MG_LIMBS], lost = 0;
    memcpy(whole, limbs, sizeof whole);
    mg_wrap(limbs, bits);
    for (int i = 0; i < MG_LIMBS; i++) lost |= whole[i] ^ limbs[i];
    if (overflow != MG_OVERFLOW_SATURATE || bits <= 0 || !lost) return;
    const int negative = (int)(whole[MG_LIMBS - 1] >> 63); /* largest: 0 and ones, least: 1 and zeros */
    const int64_t sign = bits - 1;
    for (int64_t i = 0; i < MG_LIMBS; i++) {
        const uint64_t below = i < sign / 64 ? ~UINT64_C(0) : i > sign / 64 ? 0 : (UINT64_C(1) << (sign % 64)) - 1;
        limbs[i] = negative ? ~below : below;
    }
}

/* How many terms, zeros too, have another sign than `frame`. */
static MG_BOTH uint32_t mg_others(const mg_number *const *terms, int32_t count, int frame) {
    uint32_t others = 0;
    for (int32_t i = 0; i < count; i++) others += terms[i]->sign != frame;
    return others;
}

/* Sum of finite terms: 128-bit where the span allows, the wide accumulator otherwise. */
static MG_BOTH void mg_sum_finite(
    const mg_number *const *terms, int32_t count, const mg_step *step, int frame, mg_number *total) {
    const uint32_t complements = frame < 0 ? 0 : mg_others(terms, count, frame);
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int32_t i = 0; i < count; i++) total->sticky |= terms[i]->sticky;
    const int whole = total->sticky || complements || (step->has_width && step->overflow == MG_OVERFLOW_SATURATE);
    for (int32_t i = 0; i < count; i++) {
        /* a sticky bit, a complement's unit and a register's largest number: in the last place of all terms, zeros
         * too */
        if (whole && terms[i]->kind == MG_FINITE && mg_lsb(terms[i]) < low) low = mg_lsb(terms[i]);
        if (terms[i]->kind != MG_FINITE || terms[i]->significand == 0) continue;
        int32_t lsb = mg_lsb(terms[i]), msb = lsb + mg_bit_length(terms[i]->significand);
        low = lsb < low ? lsb : low;
        high = msb > high ? msb : high;
    }
    total->significand = 0;
    if (high == INT32_MIN && complements) high = low + 1;
    if (high == INT32_MIN) { /* every finite term is a zero that took part */
        total->fraction_bits = total->sticky ? total->exponent - low : 0;
        return;
    }
    int32_t lsb = low;
    if (high - low <= MG_KEPT_BITS - 12 && !step->has_width) { /* 4096 terms add at most 12 bits */
        __int128 sum = 0;
        for (int32_t i = 0; i < count; i++) {
            if (terms[i]->kind != MG_FINITE || terms[i]->significand == 0) continue;
            __int128 term = (__int128)(terms[i]->significand << (mg_lsb(terms[i]) - low));
            sum += terms[i]->sign ? -term : term;
        }
        sum += frame > 0 ? (__int128)complements : -(__int128)complements;
        total->sign = sum < 0;
        total->significand = (mg_u128)(sum < 0 ? -sum : sum);
    } else {
        uint64_t limbs[MG_LIMBS] = {0};
        for (int32_t i = 0; i < count; i++) {
            if (terms[i]->kind != MG_FINITE || terms[i]->significand == 0) continue;
            mg_accumulate(limbs, terms[i]->significand, mg_lsb(terms[i]) - low, terms[i]->sign);
        }
        if (complements) mg_accumulate(limbs, complements, 0, frame == 0);
        if (step->has_width) mg_hold(limbs, (int64_t)total->exponent + step->width - low, step->overflow);
        lsb += (int32_t)mg_compress(limbs, &total->significand, &total->sign);
    }
    total->fraction_bits = total->exponent - lsb;
}

/* `frame`: the sign of c where terms of the other sign are subtracted in one's complement; else -1. */
static MG_BOTH mg_number mg_exact_sum(
    const mg_number *const *terms, int32_t count, const mg_step *step, int frame, uint32_t *raised) {
    mg_number total = {0, 0, INT32_MIN, 0, MG_ZERO, 0, 0};
    int infinities = 0;
    int32_t zeros = INT32_MIN; /* largest exponent of the zeros */
    for (int32_t i = 0; i < count; i++) {
        const mg_number *x = terms[i];
        if (x->kind == MG_INFINITY) infinities |= x->sign ? 2 : 1;
        if (x->kind > total.kind) total.kind = x->kind;
        if (x->kind == MG_FINITE && x->exponent > total.exponent) total.exponent = x->exponent;
        if (x->kind == MG_ZERO && x->exponent > zeros) zeros = x->exponent;
    }
    mg_raise(raised, MG_STATUS_INVALID, infinities == 3);
    if (total.kind >= MG_INFINITY) {
        if (infinities == 3) total.kind = MG_NAN;
        total.sign = total.kind == MG_INFINITY && infinities == 2;
        total.exponent = 0;
        return total;
    }
    if (total.kind == MG_ZERO) {
        total.exponent = step->has_exponent ? step->exponent : count ? zeros : 0;
        total.sign = mg_zero_sign(terms, count, step->rounding);
        return total;
    }
    if (step->has_exponent) total.exponent = step->exponent;
    mg_sum_finite(terms, count, step, frame, &total);
    if (total.significand == 0) {
        total.sign = mg_zero_sign(terms, count, step->rounding);
        if (step->cancelled == MG_CANCELLED_ZERO && !total.sticky) total.kind = MG_ZERO;
    }
    return total;
}

/* Rounds what is seen of a number (mg_with_sticky) by the keys of a step that rounds by IEEE 754. */
static MG_BOTH uint64_t mg_ieee_rounded(const mg_number *x, const mg_step *step, const mg_format *f) {
    if (x->kind == MG_NAN && x->payload && (step->nan_order_count || step->first_nan)) return mg_nan_code(x, f);
    if (x->kind >= MG_INFINITY) return mg_special_code(f, x, step->has_nan, step->nan);
    const int overflow = step->op == MG_STEP_ADDITIONS && step->overflow == MG_OVERFLOW_SATURATE ? MG_OVERFLOW_SATURATE
                                                                                                 : MG_OVERFLOW_IEEE;
    uint64_t code = mg_round(f, x, step->rounding, overflow, -1, mg_flushes(step), 0);
    if (step->flush == MG_FLUSH_POSITIVE && x->significand && mg_decode(f, code).kind == MG_ZERO) return 0;
    return code;
}

static MG_BOTH uint64_t mg_ieee_code(
    const mg_number *given, const mg_step *step, const mg_format *f, uint32_t *raised) {
    const mg_number seen = mg_with_sticky(given);
    const uint64_t code = mg_ieee_rounded(&seen, step, f);
    mg_raise_rounded(raised, f, &seen, step->rounding, -1, step->tiny, code);
    return code;
}

/* `seen`: the first of the three records of this rounding, where somebody watches. */
static MG_BOTH mg_number mg_ieee(
    const mg_number *x, const mg_step *step, mg_watch *watch, int32_t seen, uint32_t *raised) {
    const mg_number rounded = mg_decode(&step->format, mg_ieee_code(x, step, &step->format, raised));
    if (watch) {
        const mg_number exact = mg_with_sticky(x);
        mg_watch_rounded(watch, seen, &step->format, &exact, &exact, step->rounding, -1, &rounded);
    }
    return rounded;
}

static MG_BOTH void mg_write(mg_state *s, const mg_step *step, const mg_number *numbers, int32_t count) {
    memcpy(s->registers[step->to], numbers, (size_t)count * sizeof *numbers);
    s->count[step->to] = count;
    if (step->to != MG_REGISTER_D) return;
    mg_step plain = *step;
    plain.flush = MG_FLUSH_NONE;
    s->result = mg_ieee_code(&numbers[0], &plain, &s->operation->out_format, s->raised);
    s->done = 1;
}

/* Observing -------------------------------------------------------------------------------------------------------- */

/* An operation begins: what its registers hold. */
static MG_BOTH void mg_watch_operation(mg_state *s, int32_t operation) {
    s->watch->operation = operation;
    s->watch->step = -1;
    for (int name = 0; name < MG_REGISTER_COUNT; name++)
        mg_watch_register(s->watch, name, s->registers[name], s->count[name]);
}

/* A step has run: the registers that it wrote, whole. */
static MG_BOTH void mg_watch_step(mg_state *s, const mg_step *step) {
    switch (step->op) {
    case MG_STEP_SPECIAL_VALUES: break;
    case MG_STEP_FLUSH:
    case MG_STEP_HIDDEN_BIT:
    case MG_STEP_PART:
    case MG_STEP_REPLACE:
    case MG_STEP_SCALE:
    case MG_STEP_ALIGN:
    case MG_STEP_NORMALIZE:
        for (int r = 0; r < step->of_count; r++)
            mg_watch_register(s->watch, step->of[r], s->registers[step->of[r]], s->count[step->of[r]]);
        break;
    case MG_STEP_MULTIPLY:
        mg_watch_register(s->watch, step->to, s->registers[step->to], s->count[step->to]);
        if (step->negate == MG_NEGATE_C || step->negate == MG_NEGATE_BOTH)
            mg_watch_register(s->watch, MG_REGISTER_C, s->registers[MG_REGISTER_C], s->count[MG_REGISTER_C]);
        break;
    case MG_STEP_ROUND:
        if (step->to == MG_REGISTER_D) break; /* the operation's result */ /* fall through */
    default: mg_watch_register(s->watch, step->to, s->registers[step->to], s->count[step->to]);
    }
}

/* A single term that a sum hands to d is rounded there. */
static MG_BOTH void mg_watch_written(mg_state *s, const mg_step *step, const mg_number *x) {
    const mg_format *f = &s->operation->out_format;
    const mg_number exact = mg_with_sticky(x), rounded = mg_decode(f, s->result);
    mg_watch_rounded(
        s->watch, mg_watch_rounding(s->watch, step->to, 0), f, &exact, &exact, step->rounding, -1, &rounded);
}

/* The records of an alignment: a maximum for each group, then a cut for each term. Returns the first one. */
static MG_BOTH int32_t mg_watch_alignment(
    mg_watch *w, const mg_step *step, const int32_t *owner, int32_t count, int32_t groups) {
    const int32_t first = w->at;
    for (int32_t g = 0; g < groups; g++) mg_watch_next(w, MG_MOMENT_MAXIMUM, step->of[0], g);
    for (int32_t i = 0; i < count; i++) mg_watch_next(w, MG_MOMENT_CUT, step->of[owner[i]], i);
    return first;
}

static MG_BOTH void mg_watch_maximum(mg_watch *w, int32_t at, int32_t maximum) {
    const mg_number exponent = {0, 0, maximum, 0, MG_FINITE, 0, 0};
    mg_watch_put(w, at, &exponent);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static MG_BOTH void mg_step_flush(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++) {
        mg_number *x = s->registers[step->of[r]];
        if (step->of[r] == MG_REGISTER_C && !s->operation->seed_format.is_float) continue;
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            if (x[i].kind > MG_FINITE || mg_bit_length(x[i].significand) > x[i].fraction_bits) continue;
            x[i].kind = MG_ZERO;
            x[i].significand = 0;
            x[i].sticky = 0;
            if (step->sign == MG_FLUSH_POSITIVE) x[i].sign = 0;
        }
    }
}

/* The hidden bit that subnormal numbers (and, if asked, zeros) must not have. */
static MG_BOTH void mg_step_hidden_bit(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_number *x = &s->registers[step->of[r]][i];
            if (x->kind == MG_ZERO && step->zeros == MG_HIDDEN_ZEROS_SET) x->kind = MG_FINITE;
            if (x->kind == MG_FINITE) x->significand |= (mg_u128)1 << x->fraction_bits;
        }
}

/* Some neighbouring bits of a significand at their own weight: the number that they are has the exponent of their first
 * place, also where none of them is set, and of a zero. */
static MG_BOTH void mg_step_part(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_number *x = &s->registers[step->of[r]][i];
            if (x->kind > MG_FINITE) continue;
            const int32_t below = x->fraction_bits - (step->first + step->bits - 1); /* places after the last one */
            const mg_u128 moved = below > 127 || below <= -step->bits ? 0
                : below >= 0 ? x->significand >> below
                                                                      : x->significand << -below;
            x->significand = moved & (((mg_u128)1 << step->bits) - 1);
            x->exponent -= step->first;
            x->fraction_bits = step->bits - 1;
        }
}

/* Whether a number is `units` times 2^(its exponent - places): both are integers at the finer of the two last ones. */
static MG_BOTH int mg_equals(const mg_number *x, int32_t places, int64_t units) {
    if (x->kind != MG_FINITE || x->sticky || !x->significand || x->sign != (units < 0)) return 0;
    const mg_u128 wanted = (mg_u128)(units < 0 ? -units : units);
    const int32_t finer = x->fraction_bits - places;
    if (finer >= 0) return finer < 96 && x->significand == wanted << finer;
    return mg_bit_length(x->significand) - finer < 64 && x->significand << -finer == wanted;
}

static MG_BOTH void mg_step_replace(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_number *x = &s->registers[step->of[r]][i];
            if (!mg_equals(x, step->places, step->value)) continue;
            const int64_t by = step->by;
            x->significand = (mg_u128)(by < 0 ? -by : by);
            x->sign = by < 0;
            x->fraction_bits = step->places;
        }
}

static MG_BOTH void mg_step_multiply(mg_state *s, const mg_step *step) {
    int32_t count = s->count[MG_REGISTER_A];
    const mg_number *a = s->registers[MG_REGISTER_A], *b = s->registers[MG_REGISTER_B];
    mg_number *p = s->registers[step->to];
    for (int32_t i = 0; i < count; i++) {
        if (step->operation != MG_OPERATION_PRODUCT) {
            int32_t k = s->operation->k_index[i];
            uint64_t bits = step->operation == MG_OPERATION_AND ? s->a_codes[k] & s->b_codes[k]
                                                                : s->a_codes[k] ^ s->b_codes[k];
            mg_number x = {bits, 0, 0, 0, (uint8_t)(bits ? MG_FINITE : MG_ZERO), 0, 0};
            p[i] = x;
        } else {
            mg_raise_product(s->raised, &a[i], &b[i]);
            p[i] = mg_product(&a[i], &b[i], step->zero_times_infinity);
        }
        if (step->negate == MG_NEGATE_PRODUCT || step->negate == MG_NEGATE_BOTH) p[i].sign ^= 1;
        if (step->has_overflow_exponent && p[i].kind == MG_FINITE && p[i].significand &&
            mg_bit_length(p[i].significand) + mg_lsb(&p[i]) > step->overflow_exponent) {
            p[i].kind = MG_INFINITY;
            mg_raise_overflow(s->raised);
        }
        if (step->normalize) mg_normalize_exponent(&p[i]);
        if (step->has_format)
            p[i] = mg_ieee(&p[i], step, s->watch, s->watch ? mg_watch_rounding(s->watch, step->to, i) : 0, s->raised);
    }
    if (step->negate == MG_NEGATE_C || step->negate == MG_NEGATE_BOTH)
        for (int32_t i = 0; i < s->count[MG_REGISTER_C]; i++) s->registers[MG_REGISTER_C][i].sign ^= 1;
    s->count[step->to] = count;
}

static MG_BOTH void mg_step_scale(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++) {
        mg_number *x = s->registers[step->of[r]];
        int32_t count = s->count[step->of[r]], stride = count ? s->count[MG_REGISTER_SCALES] / count : 1;
        if (stride < 1) stride = 1;
        for (int32_t i = 0; i < count; i++) {
            if (step->has_power) {
                x[i].exponent += step->power;
                continue;
            }
            mg_number scale = s->registers[MG_REGISTER_SCALES][i * stride];
            if (step->by != MG_SIDE_BOTH) {
                const int side = step->by == MG_SIDE_B;
                scale = mg_decode(s->scale_formats[side],
                    s->scale_codes[side][s->operation->k_index[i * stride] / s->scale_block]);
            }
            mg_raise_product(s->raised, &x[i], &scale);
            x[i] = mg_product(&x[i], &scale, MG_ZERO_TIMES_INFINITY_NAN);
        }
    }
}

/* Pointers to the terms of all registers in `of`, in order; returns how many. */
static MG_BOTH int32_t mg_collect(mg_state *s, const mg_step *step, mg_number **terms, int32_t *owner) {
    int32_t count = 0;
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++, count++) {
            terms[count] = &s->registers[step->of[r]][i];
            if (owner) owner[count] = r;
        }
    return count;
}

/* Infinities of both signs among the terms of a step; `all`: of c, too. */
static MG_BOTH int mg_opposite(const mg_state *s, const mg_step *step, int all) {
    int signs = 0;
    for (int r = 0; r < step->of_count; r++) {
        if (step->of[r] == MG_REGISTER_C && !all) continue;
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            const mg_number *x = &s->registers[step->of[r]][i];
            if (x->kind == MG_INFINITY) signs |= x->sign ? 2 : 1;
        }
    }
    return signs == 3;
}

/* The first NaN operand that a cause speaks of, or null. */
static MG_BOTH const mg_number *mg_nan_operand(const mg_state *s, int cause) {
    const mg_number *a = s->registers[MG_REGISTER_A], *b = s->registers[MG_REGISTER_B],
                    *c = s->registers[MG_REGISTER_C];
    if (cause == MG_CAUSE_C) return c->kind == MG_NAN ? c : NULL;
    for (int32_t i = 0; i < s->count[MG_REGISTER_A]; i++) {
        if (cause != MG_CAUSE_B && a[i].kind == MG_NAN) return &a[i];
        if (cause != MG_CAUSE_A && b[i].kind == MG_NAN) return &b[i];
    }
    return NULL;
}

static MG_BOTH int mg_invalid_product(const mg_state *s) {
    for (int32_t i = 0; i < s->count[MG_REGISTER_A]; i++) {
        const uint8_t a = s->registers[MG_REGISTER_A][i].kind, b = s->registers[MG_REGISTER_B][i].kind;
        if ((a == MG_INFINITY && b == MG_ZERO) || (a == MG_ZERO && b == MG_INFINITY)) return 1;
    }
    return 0;
}

/* The word of the first cause of a NaN that is there; 0 where none is. */
static MG_BOTH int mg_nan_by_cause(const mg_state *s, const mg_step *step, uint64_t *word) {
    for (int i = 0; i < step->nans_count; i++) {
        const mg_number *nan = NULL;
        int happened;
        switch (step->nans_cause[i]) {
        case MG_CAUSE_INVALID_PRODUCT: happened = mg_invalid_product(s); break;
        case MG_CAUSE_OPPOSITE_PRODUCTS: happened = mg_opposite(s, step, 0); break;
        case MG_CAUSE_OPPOSITE_INFINITIES: happened = mg_opposite(s, step, 1); break;
        default: nan = mg_nan_operand(s, step->nans_cause[i]); happened = nan != NULL;
        }
        if (!happened) continue;
        *word = step->nans[i];
        if (step->nans_payload[i]) {
            mg_number quiet = *nan;
            if (step->quieted) quiet.payload |= MG_QUIET;
            *word = mg_nan_code(&quiet, &s->operation->out_format);
        }
        return 1;
    }
    return 0;
}

static MG_BOTH void mg_step_special_values(mg_state *s, const mg_step *step) {
    uint8_t kind = MG_ZERO;
    int infinities = 0, first = -1, last = 0; /* signs of the first and the last infinity */
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            const mg_number *x = &s->registers[step->of[r]][i];
            if (x->kind > kind) kind = x->kind;
            if (x->kind != MG_INFINITY) continue;
            infinities |= x->sign ? 2 : 1;
            first = first < 0 ? x->sign : first;
            last = x->sign;
        }
    mg_raise(s->raised, MG_STATUS_INVALID, infinities == 3);
    if (kind < MG_INFINITY) return;
    mg_number total = {0, 0, 0, 0, kind, infinities == 2, 0};
    if (infinities == 3 && kind == MG_INFINITY) {
        switch (step->opposite_infinities) {
        case MG_OPPOSITE_FIRST: total.sign = first > 0; break;
        case MG_OPPOSITE_LAST: total.sign = (uint8_t)last; break;
        case MG_OPPOSITE_POSITIVE: total.sign = 0; break;
        case MG_OPPOSITE_NEGATIVE: total.sign = 1; break;
        default: total.kind = MG_NAN;
        }
    }
    if (total.kind != MG_NAN || !mg_nan_by_cause(s, step, &s->result))
        s->result = mg_special_code(&s->operation->out_format, &total, step->has_nan, step->nan);
    s->done = 1;
}

/* A zero meets the maximum: it moves there with the others, or sets its sticky bit if it lies below all kept bits. */
static MG_BOTH void mg_align_zero(mg_number *x, int32_t maximum, int32_t fraction_bits, const mg_step *step) {
    if (step->zeros == MG_ZEROS_MAXIMUM) {
        x->exponent = maximum;
        x->fraction_bits = fraction_bits;
    } else if (step->zeros == MG_ZEROS_STICKY && step->cut != MG_CUT_DROPPED && x->exponent < maximum - fraction_bits) {
        const int carried = step->cut == MG_CUT_STICKY_OR; /* else it is one more bit of the term */
        mg_number sticky = {!carried, 0, maximum, fraction_bits + !carried, MG_FINITE, x->sign, (uint8_t)carried};
        *x = sticky;
    }
}

static MG_BOTH void mg_align_term(
    mg_number *x, int32_t maximum, int r, const mg_step *step, mg_watch *watch, int32_t seen) {
    *x = mg_with_sticky(x);
    const int32_t fraction_bits = step->fraction_bits[r], window = step->window[r];
    int outside = window >= 0 && x->exponent < maximum - window;
    if (x->exponent > maximum && !step->has_exponent &&
        !step->maximum_count) { /* its register was left out of the maximum */
        outside |= step->left_out[r] == MG_LEFT_OUT_DROPPED;
        x->exponent = maximum;
    }
    if (step->has_shift_limit && maximum - x->exponent > step->shift_limit) x->exponent = maximum - step->shift_limit;
    const int32_t last = maximum - fraction_bits; /* a negative number wholly below it may be spared */
    outside |= step->has_underflow_exponent && maximum <= step->underflow_exponent;
    outside |= step->spared[r] != MG_NOT_GIVEN && last > step->spared[r] && x->sign &&
        mg_bit_length(x->significand) + mg_lsb(x) <= last;
    int64_t shift = (int64_t)maximum - fraction_bits - mg_lsb(x), below = shift - step->sticky_gap;
    if (watch) mg_watch_cut(watch, seen, x, maximum, shift, outside);
    int lost = below > 0 && (below > 127 ? x->significand != 0 : (x->significand & (((mg_u128)1 << below) - 1)) != 0);
    x->significand = outside ? 0 : mg_shift_right(x->sign, x->significand, shift, step->roundings[r]);
    x->exponent = maximum;
    x->fraction_bits = fraction_bits;
    if (step->cut == MG_CUT_STICKY_ADDED && !outside) {
        x->significand = x->significand << 1 | (mg_u128)lost;
        x->fraction_bits++;
    }
    x->sticky = step->cut == MG_CUT_STICKY_OR && !outside && lost;
}

/* The largest of what `maximum` lists; INT32_MIN where no number is there and nothing has a least value. */
static MG_BOTH int32_t mg_largest_candidate(
    const mg_step *step, mg_number *const *terms, const int32_t *owner, int32_t count, int32_t g) {
    int32_t maximum = INT32_MIN;
    for (int j = 0; j < step->maximum_count; j++) {
        int32_t largest = step->maximum_has_least[j] ? step->maximum_least[j] : INT32_MIN;
        for (int32_t i = 0; i < count; i++) {
            const mg_number *x = terms[i];
            const int leading = step->maximum_leading[j];
            if (!(step->maximum_of[j] >> owner[i] & 1) || mg_group_of(step, i) != g || x->kind != MG_FINITE) continue;
            if (leading && !x->significand) continue;
            const int32_t place = leading ? mg_lsb(x) + mg_bit_length(x->significand) - 1 : x->exponent;
            if (place > largest) largest = place;
        }
        if (largest != INT32_MIN && largest + step->maximum_plus[j] > maximum)
            maximum = largest + step->maximum_plus[j];
    }
    return maximum;
}

/* The exponent that one group aligns to; registers left out count only where there is nothing else. */
static MG_BOTH int32_t mg_maximum(
    const mg_step *step, mg_number *const *terms, const int32_t *owner, int32_t count, int32_t g) {
    if (step->has_exponent) return step->exponent;
    if (step->maximum_count) return mg_largest_candidate(step, terms, owner, count, g);
    int32_t maximum = step->has_floor ? step->floor : INT32_MIN, left_out = INT32_MIN;
    for (int32_t i = 0; i < count; i++) {
        int counts = terms[i]->kind == MG_FINITE || (terms[i]->kind == MG_ZERO && step->zeros == MG_ZEROS_MAXIMUM);
        int32_t *largest = step->left_out[owner[i]] == MG_LEFT_OUT_NONE ? &maximum : &left_out;
        if (mg_group_of(step, i) == g && counts && terms[i]->exponent > *largest) *largest = terms[i]->exponent;
    }
    return maximum == INT32_MIN ? left_out : maximum;
}

static MG_BOTH void mg_step_align(mg_state *s, const mg_step *step, mg_number **terms, int32_t *owner) {
    int32_t count = mg_collect(s, step, terms, owner), groups = mg_group_count(step, count);
    const int32_t maxima = s->watch ? mg_watch_alignment(s->watch, step, owner, count, groups) : 0;
    for (int32_t g = 0; g < groups; g++) {
        int32_t maximum = mg_maximum(step, terms, owner, count, g);
        if (maximum == INT32_MIN) continue; /* nothing but zeros that take no part */
        if (s->watch) mg_watch_maximum(s->watch, maxima + g, maximum);
        for (int32_t i = 0; i < count; i++) {
            if (mg_group_of(step, i) != g) continue;
            if (terms[i]->kind == MG_FINITE)
                mg_align_term(terms[i], maximum, owner[i], step, s->watch, maxima + groups + i);
            if (terms[i]->kind == MG_ZERO) mg_align_zero(terms[i], maximum, step->fraction_bits[owner[i]], step);
        }
    }
}

/* The first addend that is a NaN, quieted, where NaNs are handed on. */
static MG_BOTH int mg_first_nan(const mg_number *const *pair, const mg_step *step, mg_number *handed) {
    for (int i = 0; i < 2; i++)
        if (step->first_nan && pair[i]->kind == MG_NAN) {
            *handed = *pair[i];
            if (step->quieted) handed->payload |= MG_QUIET;
            return 1;
        }
    return 0;
}

static MG_BOTH mg_number mg_ieee_add(
    const mg_number *x, const mg_number *y, const mg_step *step, mg_watch *watch, uint32_t *raised) {
    const mg_number *pair[2] = {x, y};
    const int32_t seen = watch ? mg_watch_addition(watch, step->to, 0, x, y) : 0;
    mg_number sum;
    if (mg_first_nan(pair, step, &sum)) {
        if (watch) mg_watch_put(watch, seen + 4, &sum);
        return sum;
    }
    mg_number exact = mg_exact_sum(pair, 2, step, -1, raised);
    if (step->first_nan && exact.kind == MG_NAN) {
        sum = mg_made_nan(step);
        if (watch) mg_watch_put(watch, seen + 4, &sum);
        return sum;
    }
    return mg_ieee(&exact, step, watch, seen + 2, raised);
}

/* A tree without recursion, which a kernel of CUDA would need a stack for: sums of first halves wait for the terms of
 * the second. */
static MG_BOTH mg_number mg_ieee_tree(
    const mg_number *const *terms, int32_t count, const mg_step *step, mg_watch *watch, uint32_t *raised) {
    mg_number first[MG_TREE_DEPTH];
    int32_t second[MG_TREE_DEPTH], depth = 0; /* 0 terms: it is the second half that is being added */
    for (;;) {
        for (; count > 1; count /= 2) second[depth++] = count - count / 2;
        mg_number total = **terms++;
        while (depth && !second[depth - 1]) {
            depth--;
            total = mg_ieee_add(&first[depth], &total, step, watch, raised);
        }
        if (!depth) return total;
        first[depth - 1] = total;
        count = second[depth - 1];
        second[depth - 1] = 0;
    }
}

static MG_BOTH mg_number mg_ieee_reduce(
    const mg_number *const *terms, int32_t count, const mg_step *step, mg_watch *watch, uint32_t *raised) {
    if (step->order == MG_ORDER_TREE) return mg_ieee_tree(terms, count, step, watch, raised);
    mg_number total = *terms[0];
    for (int32_t i = 1; i < count; i++) total = mg_ieee_add(&total, terms[i], step, watch, raised);
    return total;
}

static MG_BOTH void mg_step_sum(mg_state *s, const mg_step *step, mg_number **terms, mg_number *sums) {
    int32_t count = mg_collect(s, step, terms, NULL), groups = mg_group_count(step, count);
    mg_number **picked = terms + count;
    const int frame = step->op == MG_STEP_SUM && step->complement == MG_COMPLEMENT_C
        ? s->registers[MG_REGISTER_C][0].sign
        : -1;
    for (int32_t g = 0; g < groups; g++) {
        int32_t members = 0;
        for (int32_t i = 0; i < count; i++)
            if (mg_group_of(step, i) == g) picked[members++] = terms[i];
        const mg_number *const *group = (const mg_number *const *)picked;
        sums[g] = step->op == MG_STEP_SUM ? mg_exact_sum(group, members, step, frame, s->raised)
                                          : mg_ieee_reduce(group, members, step, s->watch, s->raised);
    }
    mg_write(s, step, sums, groups);
    if (s->watch && count == 1 && step->to == MG_REGISTER_D) mg_watch_written(s, step, &sums[0]);
}

static MG_BOTH void mg_step_normalize(mg_state *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_number *x = &s->registers[step->of[r]][i];
            const mg_number seen = mg_with_sticky(x);
            if (x->kind != MG_FINITE || seen.significand == 0) continue;
            int32_t exponent = mg_lsb(&seen) + mg_bit_length(seen.significand) - 1;
            if (step->has_min_exponent && exponent < step->min_exponent) exponent = step->min_exponent;
            int64_t shift = (int64_t)exponent - step->fraction_bits[r] - mg_lsb(&seen);
            x->significand = mg_shift_right(x->sign, seen.significand, shift, step->rounding);
            x->exponent = exponent;
            x->fraction_bits = step->fraction_bits[r];
            x->sticky = 0;
        }
}

static MG_BOTH mg_number mg_fma_step(const mg_number *a, const mg_number *b, const mg_number *c, const mg_step *step,
    mg_watch *watch, int32_t seen, uint32_t *raised) {
    const mg_number *operands[3] = {a, b, c};
    mg_raise_product(raised, a, b); /* also where a NaN c is handed on */
    for (int i = 0; i < step->nan_order_count; i++) {
        const mg_number *x = operands[step->nan_order[i]];
        if (x && x->kind == MG_NAN) {
            mg_number quiet = *x;
            if (step->quieted) quiet.payload |= MG_QUIET;
            return quiet;
        }
    }
    mg_number product = mg_product(a, b, step->zero_times_infinity), exact = product;
    if (c) {
        const mg_number *pair[2] = {&product, c};
        exact = mg_exact_sum(pair, 2, step, -1, raised);
    }
    if (watch) {
        mg_watch_put(watch, seen, &product);
        if (c) mg_watch_put(watch, seen + 1, c);
        mg_watch_put(watch, seen + 2, &exact);
    }
    if (exact.kind == MG_NAN) {
        const mg_number plain = {0, 0, 0, 0, MG_NAN, 0, 0};
        return step->nan_order_count ? mg_made_nan(step) : plain;
    }
    return mg_ieee(&exact, step, watch, seen + 2, raised);
}

static MG_BOTH void mg_step_fma(mg_state *s, const mg_step *step, mg_number *sums) {
    int32_t count = s->count[MG_REGISTER_A], groups = mg_group_count(step, count);
    mg_number zero = {0, 0, 0, 0, MG_ZERO, 0, 0};
    for (int32_t g = 0; g < groups; g++) {
        mg_number total = step->start == MG_START_C ? s->registers[MG_REGISTER_C][0] : zero;
        int started = step->start != MG_START_PRODUCT;
        for (int32_t i = 0; i < count; i++) {
            if (mg_group_of(step, i) != g) continue;
            const mg_number *a = &s->registers[MG_REGISTER_A][i], *b = &s->registers[MG_REGISTER_B][i];
            const int32_t seen = s->watch ? mg_watch_addition(s->watch, step->to, i, NULL, NULL) : 0;
            total = mg_fma_step(a, b, started ? &total : NULL, step, s->watch, seen, s->raised);
            if (s->watch) mg_watch_put(s->watch, seen + 4, &total); /* a NaN is handed on without a rounding */
            started = 1;
        }
        sums[g] = total;
    }
    mg_write(s, step, sums, groups);
}

/* Clears the bits that the sticky OR of the rounding does not see: `sticky_gap` of them, right below the round bit. */
static MG_BOTH mg_number mg_with_gap(const mg_number *x, const mg_step *step) {
    const mg_format *f = &step->format;
    mg_number y = *x;
    const int kept = step->has_result_fraction_bits ? step->result_fraction_bits : f->fraction_bits;
    int32_t exponent = mg_bit_length(x->significand) - 1 + mg_lsb(x);
    if (exponent < f->min_exponent) exponent = f->min_exponent;
    const int64_t round_bit = (int64_t)exponent - kept - 1 - mg_lsb(x);
    const int64_t first = step->sticky == MG_STICKY_LEFT_OUT ? 0 : round_bit - step->sticky_gap;
    for (int64_t bit = first; bit < round_bit; bit++)
        if (bit >= 0 && bit < 128) y.significand &= ~((mg_u128)1 << bit);
    return y;
}

/* The number after stochastic rounding: cut at the result's last place, or one unit of it longer if the highest bits
 * that are cut and the random number together reach that unit. */
static MG_BOTH mg_number mg_with_random(const mg_number *x, const mg_step *step) {
    const mg_format *f = &step->format;
    int64_t last = 0;
    if (f->is_float) {
        const int kept = step->has_result_fraction_bits ? step->result_fraction_bits : f->fraction_bits;
        int32_t exponent = mg_bit_length(x->significand) - 1 + mg_lsb(x);
        last = (int64_t)(exponent < f->min_exponent ? f->min_exponent : exponent) - kept;
    }
    const int64_t cut = last - mg_lsb(x), below = cut - step->random_bits;
    mg_number y = *x;
    if (cut <= 0) return y;
    const mg_u128 whole = cut < 128 ? x->significand >> cut : 0, low = x->significand - (cut < 128 ? whole << cut : 0);
    const mg_u128 highest = below >= 128 ? 0 : below >= 0 ? low >> below : low << -below;
    const mg_u128 up = (highest + (mg_u128)step->random) >> step->random_bits;
    y.significand = whole + up;
    y.exponent = (int32_t)last;
    y.fraction_bits = 0;
    return y;
}

/* Fraction bits that the rounding keeps; -1: the format's. */
static MG_BOTH int mg_kept(const mg_step *step) {
    return step->has_result_fraction_bits ? step->result_fraction_bits : -1;
}

/* `x`: what the rounding sees of a number; `exact_zero`: the number itself is zero, one of which nothing is seen is
 * not. */
static MG_BOTH uint64_t mg_round_number(const mg_number *x, int exact_zero, const mg_step *step) {
    const mg_format *f = &step->format;
    if (x->kind >= MG_INFINITY) return mg_special_code(f, x, step->has_nan, step->nan);
    const mg_number not_a_number = {0, 0, 0, 0, MG_NAN, 0, 0};
    const uint64_t nan = mg_special_code(f, &not_a_number, step->has_nan, step->nan);
    uint64_t code = mg_round(f, x, step->rounding, step->overflow, mg_kept(step), mg_flushes(step), nan);
    if (!f->is_float) return code;
    mg_number rounded = mg_decode(f, code);
    if (step->subnormal_carry == MG_CARRY_LOST && mg_bit_length(x->significand) - 1 + mg_lsb(x) < f->min_exponent &&
        mg_bit_length(rounded.significand) == f->fraction_bits + 1) {
        mg_number zero = {0, 0, 0, 0, MG_ZERO, x->sign, 0};
        code = mg_round(f, &zero, step->rounding, step->overflow, -1, 0, 0);
        rounded.kind = MG_ZERO;
    }
    int positive = step->zero == MG_ZERO_POSITIVE || (step->zero == MG_ZERO_SIGNED_UNDERFLOW && exact_zero) ||
                   (step->flush == MG_FLUSH_POSITIVE && !exact_zero);
    return positive && rounded.kind == MG_ZERO ? 0 : code;
}

static MG_BOTH void mg_step_round(mg_state *s, const mg_step *step) {
    int32_t count = 0;
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            const mg_number *given = &s->registers[step->of[r]][i];
            const mg_number exact = mg_with_sticky(given);
            const int gap = (step->sticky_gap || step->sticky == MG_STICKY_LEFT_OUT) && step->format.is_float &&
                exact.significand;
            const int random = step->has_random_bits && exact.significand && exact.kind <= MG_FINITE;
            const mg_number seen = random ? mg_with_random(&exact, step)
                : gap && exact.kind <= MG_FINITE ? mg_with_gap(&exact, step)
                                                 : exact;
            uint64_t code = mg_round_number(&seen, !exact.significand, step);
            mg_raise_rounded(s->raised, &step->format, &seen, step->rounding, mg_kept(step), step->tiny, code);
            if (s->watch) {
                const mg_number rounded = mg_decode(&step->format, code);
                mg_watch_rounded(s->watch, mg_watch_rounding(s->watch, step->to, i), &step->format, &exact, &seen,
                    step->rounding, mg_kept(step), &rounded);
            }
            if (step->to == MG_REGISTER_D) {
                s->result = code;
                s->done = 1;
                return;
            }
            s->registers[step->to][count++] = mg_decode(&step->format, code);
        }
    s->count[step->to] = count;
}

/* Operations ------------------------------------------------------------------------------------------------------- */

#ifndef MG_ALONE
size_t mg_workspace_bytes(const mg_program *program) {
    size_t numbers = MG_SUM_SLOTS(program), terms = MG_TERM_SLOTS(program);
    for (int i = 0; i < MG_REGISTER_COUNT; i++) numbers += MG_REGISTER_SLOTS(i, program);
    return numbers * sizeof(mg_number) + 2 * terms * sizeof(mg_number *) +
        (size_t)(program->operation_count + 2) * sizeof(uint64_t) + terms * sizeof(int32_t);
}
#endif /* MG_ALONE */

static MG_BOTH void mg_load_operands(mg_state *s, const mg_program *program, const uint64_t *a, const uint64_t *b,
                             const uint64_t *scale_a, const uint64_t *scale_b) {
    const mg_operation *o = s->operation;
    for (int32_t i = 0; i < o->k_count; i++) {
        int32_t k = o->k_index[i];
        mg_number x = mg_decode(&program->a, a[k]), y = mg_decode(&program->b, b[k]);
        mg_raise_signalling(s->raised, &program->a, &x);
        mg_raise_signalling(s->raised, &program->b, &y);
        s->registers[MG_REGISTER_A][i] = o->has_operand_format ? mg_convert(&o->operand_format, &x) : x;
        s->registers[MG_REGISTER_B][i] = o->has_operand_format ? mg_convert(&o->operand_format, &y) : y;
        if (program->scale_block) {
            mg_number p = mg_decode(&program->scale_a, scale_a[k / program->scale_block]);
            mg_number q = mg_decode(&program->scale_b, scale_b[k / program->scale_block]);
            mg_raise_signalling(s->raised, &program->scale_a, &p);
            mg_raise_signalling(s->raised, &program->scale_b, &q);
            mg_raise_product(s->raised, &p, &q);
            s->registers[MG_REGISTER_SCALES][i] = mg_product(&p, &q, MG_ZERO_TIMES_INFINITY_NAN);
        }
    }
    s->count[MG_REGISTER_A] = s->count[MG_REGISTER_B] = o->k_count;
    s->count[MG_REGISTER_SCALES] = program->scale_block ? o->k_count : 0;
}

static MG_BOTH uint64_t mg_run_operation(mg_state *s, mg_number **terms, mg_number *sums, int32_t *owner) {
    const int whole = s->watch &&
        s->watch->describing; /* every step has records, also behind one that ends the operation */
    for (int32_t i = 0; i < s->operation->step_count && (!s->done || whole); i++) {
        const mg_step *step = &s->operation->steps[i];
        if (s->watch) s->watch->step = i;
        switch (step->op) {
        case MG_STEP_FLUSH: mg_step_flush(s, step); break;
        case MG_STEP_MULTIPLY: mg_step_multiply(s, step); break;
        case MG_STEP_SCALE: mg_step_scale(s, step); break;
        case MG_STEP_SPECIAL_VALUES: mg_step_special_values(s, step); break;
        case MG_STEP_ALIGN: mg_step_align(s, step, terms, owner); break;
        case MG_STEP_SUM:
        case MG_STEP_ADDITIONS: mg_step_sum(s, step, terms, sums); break;
        case MG_STEP_NORMALIZE: mg_step_normalize(s, step); break;
        case MG_STEP_FMA: mg_step_fma(s, step, sums); break;
        case MG_STEP_HIDDEN_BIT: mg_step_hidden_bit(s, step); break;
        case MG_STEP_PART: mg_step_part(s, step); break;
        case MG_STEP_REPLACE: mg_step_replace(s, step); break;
        default: mg_step_round(s, step); break;
        }
        if (s->watch) mg_watch_step(s, step);
    }
    if (s->watch) mg_watch_result(s->watch, &s->operation->out_format, s->result);
    return s->result;
}

MG_SHARED MG_BOTH uint64_t mg_dot_in(void *workspace, const mg_program *program, const uint64_t *a, const uint64_t *b,
    uint64_t c, const uint64_t *scale_a, const uint64_t *scale_b, mg_watch *watch, uint32_t *raised) {
    mg_state s = {0};
    s.a_codes = a;
    s.b_codes = b;
    s.scale_codes[0] = scale_a;
    s.scale_codes[1] = scale_b;
    s.scale_formats[0] = &program->scale_a;
    s.scale_formats[1] = &program->scale_b;
    s.scale_block = program->scale_block;
    s.watch = watch;
    s.raised = raised;
    mg_number *sums = mg_layout_registers(&s, (mg_number *)workspace, program);
    mg_number **terms = (mg_number **)(sums + MG_SUM_SLOTS(program));
    uint64_t *results = (uint64_t *)(terms + 2 * MG_TERM_SLOTS(program));
    int32_t *owner = (int32_t *)(results + program->operation_count + 2);
    results[0] = c;
    results[1] = 0;
    for (int32_t i = 0; i < program->operation_count; i++) {
        const mg_operation *o = &program->operations[i];
        s.operation = o;
        s.result = 0;
        s.done = 0;
        memset(s.count, 0, sizeof s.count);
        mg_load_operands(&s, program, a, b, scale_a, scale_b);
        s.registers[MG_REGISTER_C][0] = mg_decode(&o->seed_format, results[o->seed]);
        s.count[MG_REGISTER_C] = 1;
        for (int32_t j = 0; j < o->addend_count; j++)
            s.registers[MG_REGISTER_ADDENDS][j] = mg_decode(&o->out_format, results[o->addends[j]]);
        s.count[MG_REGISTER_ADDENDS] = o->addend_count;
        if (o->seed == 0)
            mg_raise_signalling(
                raised, &o->seed_format, &s.registers[MG_REGISTER_C][0]); /* an earlier result is no operand */
        for (int32_t j = 0; j < o->addend_count; j++)
            if (o->addends[j] == 0) mg_raise_signalling(raised, &o->out_format, &s.registers[MG_REGISTER_ADDENDS][j]);
        if (watch) mg_watch_operation(&s, i);
        results[2 + i] = mg_run_operation(&s, terms, sums, owner);
    }
    return results[1 + program->operation_count];
}
