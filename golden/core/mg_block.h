/* The block form: MG_BLOCK_LANES dot products side by side, step by step, for programs that no fast form fits.
 *
 * Included once for each instruction set, in vectors of the compiler (GNU C). Steps do what those of the general
 * interpreter do (mg_general.c), on significands of 62 bits instead of 128; a lane that needs more, or a word that only
 * the interpreter knows (a NaN's payload), is left to it. Conditions are masks: every bit set, or none.
 */
#ifdef MG_WIDE_BLOCKS
#define MG_BLOCK_LANES MG_WIDE_BLOCK_LANES
#elif MG_WORDS == 2
#define MG_BLOCK_LANES 32
#else
#define MG_BLOCK_LANES MG_MOST_BLOCK_LANES /* the more, the less a step costs that is none of a lane's */
#endif
#define MG_PARTS (MG_BLOCK_LANES / MG_WORDS)
#define MG_EACH for (int l = 0; l < MG_PARTS; l++)
#define MG_KEPT \
    _Pragma("GCC unroll 16") MG_EACH /* unrolled, so that what a loop around it collects stays in registers */
#define MG_NOWHERE (-(INT64_C(1) << 40)) /* an exponent below all others: no number is there */
#define MG_BLOCK_CALL static __attribute__((noinline))
#define MG_CHOOSE(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))
#define MG_MASK(condition) (-(int64_t)!!(condition)) /* of a condition that holds for all lanes, or for none */

typedef mg_w mg_words[MG_PARTS] __attribute__((aligned(64))); /* no vector across two lines of a cache */

/* Of a block of either kind. `owner`: by term, which of a step's registers it is of; `done`: the result stands; `left`:
 * the interpreter has to do it. */
#define MG_BLOCK_FIELDS(number)            \
    const mg_program *program;             \
    const mg_operation *operation;         \
    number *registers[MG_REGISTER_COUNT];  \
    int32_t count[MG_REGISTER_COUNT];      \
    const mg_block_codes *codes;           \
    number *sums, **terms;                 \
    int32_t *owner;                        \
    mg_words done, left, result;

/* Its memory: registers, what a step makes, results of operations (c before, and zero), terms; mg_block_new has as
 * much. */
#define MG_BEGIN_BLOCK(number)                                                            \
    number *at = memory;                                                                  \
    for (int i = 0; i < MG_REGISTER_COUNT; i++, at += MG_BLOCK_SLOTS(p)) s.registers[i] = at; \
    s.program = p;                                                                        \
    s.codes = codes;                                                                      \
    s.sums = at;                                                                          \
    mg_words *results = (mg_words *)(at + MG_BLOCK_SUMS * MG_BLOCK_SLOTS(p));              \
    s.terms = (number **)(results + p->operation_count + 2);                              \
    s.owner = (int32_t *)(s.terms + 2 * MG_BLOCK_TERMS * MG_BLOCK_SLOTS(p));               \
    mg_clear(s.left);                                                                     \
    mg_clear(s.result);                                                                   \
    mg_widen(codes->c, p->c.storage, results[0]);                                         \
    mg_clear(results[1]);

/* Small things ----------------------------------------------------------------------------------------------------- */

MG_INLINE mg_w mg_splat(int64_t x) { return (mg_w){0} + x; }

/* Zeros; unrolled, since compilers turn loops that clear into a slow instruction. */
MG_INLINE void mg_clear(mg_w *words) { MG_KEPT words[l] = mg_splat(0); }

MG_INLINE mg_w mg_most(mg_w x, mg_w y) { return MG_CHOOSE((mg_w)(x > y), x, y); }
MG_INLINE mg_w mg_least(mg_w x, mg_w y) { return MG_CHOOSE((mg_w)(x < y), x, y); }
MG_INLINE mg_w mg_between(mg_w x, int64_t least, int64_t most) {
    return mg_least(mg_most(x, mg_splat(least)), mg_splat(most));
}
MG_INLINE mg_w mg_up(mg_w x, mg_w by) { return (mg_w)((mg_u)x << (mg_u)by); }   /* by 0 ... 63 */
MG_INLINE mg_w mg_down(mg_w x, mg_w by) { return (mg_w)((mg_u)x >> (mg_u)by); } /* zeros come in */
MG_INLINE mg_w mg_ones(mg_w count) { return (mg_w)((mg_u)mg_up(mg_splat(1), count) - 1); }
MG_INLINE mg_w mg_signed(mg_w negative, mg_w x) { return (mg_w)((mg_u)(x ^ negative) - (mg_u)negative); }

MG_INLINE int mg_any_of(const mg_words mask) {
    mg_w all = {0};
    MG_EACH all |= mask[l];
    return mg_any_word(all);
}

#include "mg_significand.h"

/* mg_number in lanes, with the place of the last bit instead of the number of fraction bits; sign and sticky are
 * masks. */
typedef struct {
    mg_significands significand;
    mg_words exponent, lsb, kind, sign, sticky;
} mg_numbers;

typedef struct {
    MG_BLOCK_FIELDS(mg_numbers)
    int specials, sticky; /* some lane holds an infinity or a NaN; terms carry sticky bits */
} mg_block;

/* How a rounding adds before it cuts: masks of what each direction needs. */
typedef struct {
    int32_t truncates, jams;
    int32_t odd, sign, flip; /* a tie goes up by the last bit, by the sign, or the other way round */
    int64_t nearest, down, up;
} mg_direction;

MG_INLINE mg_direction mg_direction_of(int rounding) {
    switch (rounding) {
    case MG_ROUNDING_NEAREST_EVEN: return (mg_direction){.nearest = -1, .odd = 1};
    case MG_ROUNDING_NEAREST_ODD: return (mg_direction){.nearest = -1, .odd = 1, .flip = 1};
    case MG_ROUNDING_NEAREST_DOWN: return (mg_direction){.nearest = -1, .sign = 1};
    case MG_ROUNDING_NEAREST_UP: return (mg_direction){.nearest = -1, .sign = 1, .flip = 1};
    case MG_ROUNDING_NEAREST_ZERO: return (mg_direction){.nearest = -1};
    case MG_ROUNDING_NEAREST_AWAY: return (mg_direction){.nearest = -1, .flip = 1};
    case MG_ROUNDING_DOWN: return (mg_direction){.down = -1};
    case MG_ROUNDING_UP: return (mg_direction){.up = -1};
    case MG_ROUNDING_AWAY: return (mg_direction){.down = -1, .up = -1};
    case MG_ROUNDING_TO_ODD: return (mg_direction){.jams = 1};
    default: return (mg_direction){.truncates = 1};
    }
}

/* x / 2^shift rounded; a negative shift moves left. Guard, round and sticky bits are the bits that are cut: an addend
 * carries from them into the last kept bit where the direction goes up, and to odd their OR joins it. */
MG_INLINE mg_s mg_rounded_shift(mg_direction r, mg_w sign, mg_s x, mg_w shift) {
    const mg_w right = mg_between(shift, 0, MG_MOST_SHIFT), left = mg_between(-shift, 0, MG_MOST_SHIFT);
    if (r.truncates) return mg_s_up(mg_s_down(x, right), left);
    const mg_s cut = mg_s_ones(right),
               below = mg_s_down(cut, mg_splat(1)); /* all bits that are cut, and but for the first one */
    /* To nearest: all bits below the first one, and one more where a tie goes up, carry what lies above a half. */
    const mg_w tie = ((mg_s_low(mg_s_down(x, right)) & r.odd) ^ (sign & r.sign)) ^ r.flip;
    const mg_w directed = (r.down & sign) | (r.up & ~sign);
    const mg_s nearest = mg_s_where(mg_splat(r.nearest), mg_s_and(cut, mg_s_add(below, mg_s_of(tie))));
    const mg_s kept = mg_s_down(mg_s_add(x, mg_s_or(mg_s_where(directed, cut), nearest)), right);
    return mg_s_up(mg_s_or(kept, mg_s_of(r.jams & mg_s_some(mg_s_and(x, cut)))), left);
}

/* Whether x * 2^left needs more than `most` bits. */
MG_INLINE mg_w mg_too_wide(mg_s x, mg_w left, int64_t most) {
    return mg_s_some(mg_s_down(x, mg_between(most - left, 0, MG_MOST_SHIFT)));
}

/* A number's significand and last place as a rounding sees it: with its sticky bit below. */
MG_INLINE mg_s mg_seen(const mg_numbers *x, int l) {
    const mg_w sticky = x->sticky[l] & 1;
    return mg_s_or(mg_s_up(x->significand[l], sticky), mg_s_of(sticky));
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

static void mg_note_specials(mg_block *s, const mg_numbers *x) {
    mg_words special;
    MG_EACH special[l] = x->kind[l] & 2;
    s->specials |= mg_any_of(special);
}

/* Codes of MG_BLOCK_LANES lanes, side by side in their storage. */
MG_INLINE void mg_widen(const char *at, int32_t storage, mg_words codes) {
    typedef uint8_t bytes __attribute__((vector_size(MG_BLOCK_LANES), aligned(1), may_alias));
    typedef uint16_t wide_bytes __attribute__((vector_size(2 * MG_BLOCK_LANES)));
    wide_bytes all;
    if (storage == 64) memcpy(codes, at, MG_BLOCK_LANES * sizeof(int64_t));
    if (storage == 64) return;
    if (storage == 8) { /* compilers widen bytes well where they fill a register */
        all = __builtin_convertvector(*(const bytes *)at, wide_bytes);
        at = (const char *)&all;
    }
    if (storage == 32) MG_EACH codes[l] = mg_wide_32(((const mg_single_codes *)at)[l]);
    else MG_EACH codes[l] = mg_wide_16(at + 2 * MG_WORDS * l);
}

static void mg_decode_integers(const mg_format *f, const mg_w *codes, mg_numbers *x) {
    const int64_t mask = (int64_t)((UINT64_C(1) << f->bits) - 1), top = f->is_signed ? INT64_C(1) << (f->bits - 1) : 0;
    MG_EACH {
        const mg_w value = codes[l] & mask, negative = (mg_w)((value & top) != 0);
        x->significand[l] = mg_s_of(mg_signed(negative, value) & mask);
        x->exponent[l] = x->lsb[l] = x->sticky[l] = mg_splat(0);
        x->kind[l] = MG_FINITE & (mg_w)(value != 0);
        x->sign[l] = negative;
    }
}

MG_BLOCK_CALL void mg_decode_lanes(const mg_format *f, const mg_w *codes, mg_numbers *x) {
    if (!f->is_float) {
        mg_decode_integers(f, codes, x);
        return;
    }
    const int fraction_bits = f->fraction_bits, low = f->ignored_low,
              sign_shift = f->sign_shift < 0 ? 63 : f->sign_shift;
    const int64_t fields_mask = (int64_t)((UINT64_C(1) << (f->exponent_bits + fraction_bits)) - 1),
                  fraction_mask = (INT64_C(1) << fraction_bits) - 1;
    const int64_t ieee = f->specials == MG_SPECIALS_IEEE ? (INT64_C(1) << f->exponent_bits) - 1 : -1;
    const int64_t all_ones = f->specials == MG_SPECIALS_ALL_ONES_NAN ? fields_mask : -1,
                  hidden = INT64_C(1) << fraction_bits;
    const int64_t zero_nan = MG_MASK(f->specials == MG_SPECIALS_NEGATIVE_ZERO_NAN), has_zero = MG_MASK(f->has_zero),
                  least = f->min_exponent, bias = f->bias;
    MG_EACH {
        const mg_w fields = codes[l] >> low & fields_mask, sign = -(codes[l] >> sign_shift & 1),
                   e = fields >> fraction_bits, fraction = fields & fraction_mask;
        const mg_w tiny = (mg_w)(e == 0) & has_zero, top = (mg_w)(e == ieee);
        const mg_w nan = (top & (mg_w)(fraction != 0)) | (mg_w)(fields == all_ones) |
            (zero_nan & sign & (mg_w)(fields == 0)),
                   special = top | nan;
        const mg_w exponent = MG_CHOOSE(tiny | special, mg_splat(least), e - bias);
        x->significand[l] = mg_s_of(~special & (fraction | (~tiny & hidden)));
        x->exponent[l] = exponent;
        x->lsb[l] = exponent - fraction_bits;
        x->kind[l] = MG_CHOOSE(special, MG_INFINITY + (nan & 1), MG_FINITE & ~(tiny & (mg_w)(fraction == 0)));
        x->sign[l] = sign;
        x->sticky[l] = mg_splat(0);
    }
}

/* Rounding --------------------------------------------------------------------------------------------------------- */

/* The settings of a rounding, known before its numbers. */
typedef struct {
    const mg_format *format;
    mg_direction direction;
    int64_t kept, overflow[2], infinity[2], nan; /* codes, by sign */
    int flush, zero, flush_positive, carry_lost, gap, sticky_left_out, saturate;
} mg_rounder;

static mg_rounder mg_rounder_of(const mg_format *f, int rounding, int overflow, int kept, int has_nan, uint64_t nan) {
    mg_rounder r = {.format = f,
        .direction = mg_direction_of(rounding),
        .kept = kept < 0 ? f->fraction_bits : kept,
        .zero = MG_ZERO_SIGNED,
        .saturate = overflow == MG_OVERFLOW_SATURATE};
    const mg_number not_a_number = {0, 0, 0, 0, MG_NAN, 0, 0};
    r.nan = (int64_t)mg_special_code(f, &not_a_number, has_nan, nan);
    for (int sign = 0; sign < 2; sign++) {
        const mg_number infinity = {0, 0, 0, 0, MG_INFINITY, (uint8_t)sign, 0};
        r.infinity[sign] = (int64_t)mg_special_code(f, &infinity, has_nan, nan);
        if (f->is_float)
            r.overflow[sign] = (int64_t)mg_overflow_code(
                f, sign, rounding, overflow, f->fraction_bits - (int)r.kept, (uint64_t)r.nan);
    }
    return r;
}

/* The rounder of a step that rounds by IEEE 754, as mg_ieee_code does. */
static mg_rounder mg_ieee_rounder(const mg_step *step, const mg_format *f, int flush) {
    const int overflow = step->op == MG_STEP_ADDITIONS && step->overflow == MG_OVERFLOW_SATURATE ? MG_OVERFLOW_SATURATE
                                                                                                 : MG_OVERFLOW_IEEE;
    mg_rounder r = mg_rounder_of(f, step->rounding, overflow, -1, step->has_nan, step->nan);
    r.flush = flush ? mg_flushes(step) : MG_KEEP_SUBNORMALS;
    r.flush_positive = flush && step->flush == MG_FLUSH_POSITIVE;
    return r;
}

static mg_rounder mg_round_rounder(const mg_step *step) {
    mg_rounder r = mg_rounder_of(&step->format, step->rounding, step->overflow,
        step->has_result_fraction_bits ? step->result_fraction_bits : -1, step->has_nan, step->nan);
    r.flush = mg_flushes(step);
    r.flush_positive = step->flush == MG_FLUSH_POSITIVE;
    r.zero = step->zero;
    r.carry_lost = step->subnormal_carry == MG_CARRY_LOST;
    r.gap = step->sticky_gap;
    r.sticky_left_out = step->sticky == MG_STICKY_LEFT_OUT;
    return r;
}

/* Clears the bits that the sticky OR of a rounding does not see. */
static void mg_clear_gap(const mg_rounder *r, mg_significands x, const mg_words lsb) {
    const int64_t least = r->format->min_exponent, kept = r->kept, gap = r->sticky_left_out ? INT32_MAX : r->gap;
    MG_EACH {
        const mg_w round_bit = mg_most(mg_s_leading(x[l]) + lsb[l], mg_splat(least)) - kept - 1 - lsb[l];
        const mg_s below = mg_s_ones(mg_between(round_bit, 0, MG_MOST_SHIFT)),
                   seen = mg_s_ones(mg_between(round_bit - gap, 0, MG_MOST_SHIFT));
        x[l] = mg_s_without(x[l], mg_s_without(below, seen));
    }
}

static void mg_round_to_integers(mg_block *s, const mg_rounder *r, const mg_numbers *x, mg_words codes) {
    const mg_format *f = r->format;
    const int64_t saturate = MG_MASK(r->saturate), mask = (int64_t)((UINT64_C(1) << f->bits) - 1);
    const int64_t largest = (int64_t)f->largest, least = f->is_signed ? -(INT64_C(1) << (f->bits - 1)) : 0;
    MG_EACH {
        const mg_s significand = mg_seen(x, l);
        const mg_w lsb = x->lsb[l] + x->sticky[l], finite = (mg_w)(x->kind[l] == MG_FINITE);
        const mg_w value = mg_signed(
            x->sign[l], mg_s_low(mg_rounded_shift(r->direction, x->sign[l], significand, -lsb)));
        s->left[l] |= ((finite & mg_too_wide(significand, mg_most(lsb, mg_splat(0)), MG_WORD_BITS)) |
                          (mg_w)(x->kind[l] > MG_FINITE)) &
            ~s->done[l];
        codes[l] = MG_CHOOSE(saturate, mg_between(value, least, largest), value) & mask;
    }
}

/* Numbers that a flush makes zero because of the place of their leading one. */
static void mg_find_tiny(
    const mg_rounder *r, const mg_numbers *x, const mg_s *significand, const mg_words lsb, mg_words tiny) {
    const int64_t rounded = MG_MASK(r->flush == MG_FLUSH_UNBOUNDED), kept = r->kept, least = r->format->min_exponent;
    MG_EACH {
        const mg_w leading = mg_s_leading(significand[l]) + lsb[l];
        const mg_w carry = mg_s_low(
                               mg_rounded_shift(r->direction, x->sign[l], significand[l], leading - kept - lsb[l])) >>
            (kept + 1);
        tiny[l] = (mg_w)(leading + (carry & rounded) < least);
    }
}

/* Codes of numbers, special ones too; the twin of mg_round_number, mg_ieee_code and mg_round. */
MG_BLOCK_CALL void mg_round_lanes(mg_block *s, const mg_rounder *r, const mg_numbers *x, mg_words codes) {
    const mg_format *f = r->format;
    if (!f->is_float) {
        mg_round_to_integers(s, r, x, codes);
        return;
    }
    mg_significands significand;
    mg_words lsb, tiny, some; /* some: the number is not zero, whatever the rounding sees of it */
    MG_EACH {
        significand[l] = mg_seen(x, l);
        lsb[l] = x->lsb[l] + x->sticky[l];
        some[l] = mg_s_some(significand[l]);
        tiny[l] = mg_splat(0);
    }
    if (r->gap || r->sticky_left_out) mg_clear_gap(r, significand, lsb);
    if (r->flush == MG_FLUSH_UNBOUNDED || r->flush == MG_FLUSH_BEFORE_ROUNDING)
        mg_find_tiny(r, x, significand, lsb, tiny);
    const int64_t kept = r->kept, least = f->min_exponent, most = f->max_exponent + 1,
                  below = f->fraction_bits - kept + f->ignored_low, hidden = INT64_C(1) << kept;
    const int64_t largest = (int64_t)(f->largest >> f->ignored_low >> (f->fraction_bits - kept)),
                  sign_bit = f->sign_shift < 0 ? 0 : (int64_t)(UINT64_C(1) << f->sign_shift);
    const int64_t zero_sign_bit = f->specials == MG_SPECIALS_NEGATIVE_ZERO_NAN ? 0 : sign_bit;
    const int64_t underflow = r->zero != MG_ZERO_POSITIVE && !r->flush_positive ? zero_sign_bit : 0,
                  nothing = r->zero == MG_ZERO_SIGNED ? zero_sign_bit : 0;
    const int64_t flush_all = MG_MASK(r->flush == MG_FLUSH_SUBNORMALS), carry_lost = MG_MASK(r->carry_lost);
    MG_EACH {
        /* Normalisation to the leading one, or to the least exponent: a subnormal result has its last bit there. */
        const mg_w leading = mg_s_leading(significand[l]) + lsb[l], exponent = mg_most(leading, mg_splat(least)),
                   sign = x->sign[l];
        const mg_w rounded = mg_s_low(mg_rounded_shift(r->direction, sign, significand[l], exponent - kept - lsb[l])),
                   something = some[l];
        const mg_w beyond = (mg_w)(exponent >= most),
                   fields = MG_CHOOSE(beyond, mg_splat(INT64_MAX),
                       mg_up(mg_least(exponent, mg_splat(most)) - least, mg_splat(kept)) + rounded);
        /* Fields hold exponent and fraction, a carry included; zeros and overflow take their codes by sign. */
        const mg_w flushed = tiny[l] | (flush_all & (mg_w)(fields < hidden)) |
            (carry_lost & (mg_w)(leading < least) & (mg_w)(fields == hidden));
        const mg_w zero = flushed | (mg_w)(rounded == 0) | ~something,
                   zero_code = sign & MG_CHOOSE(something, mg_splat(underflow), mg_splat(nothing));
        const mg_w overflow = MG_CHOOSE(sign, mg_splat(r->overflow[1]), mg_splat(r->overflow[0]));
        const mg_w code = MG_CHOOSE(
            (mg_w)(fields > largest), overflow, mg_up(fields, mg_splat(below)) | (sign & sign_bit));
        codes[l] = MG_CHOOSE(zero, zero_code, code);
    }
    if (!s->specials) return;
    MG_EACH {
        const mg_w infinity = MG_CHOOSE(x->sign[l], mg_splat(r->infinity[1]), mg_splat(r->infinity[0]));
        codes[l] = MG_CHOOSE((mg_w)(x->kind[l] == MG_NAN), mg_splat(r->nan),
            MG_CHOOSE((mg_w)(x->kind[l] == MG_INFINITY), infinity, codes[l]));
    }
}

/* Rounds numbers and reads their codes back. */
static void mg_round_in_place(mg_block *s, const mg_rounder *r, mg_numbers *x) {
    mg_words codes;
    mg_round_lanes(s, r, x, codes);
    mg_decode_lanes(r->format, codes, x);
    mg_note_specials(s, x);
}

static void mg_write_lanes(mg_block *s, const mg_words codes) {
    MG_EACH s->result[l] = MG_CHOOSE(s->done[l], s->result[l], codes[l]);
}

/* Products and sums ------------------------------------------------------------------------------------------------ */

/* Infinities and NaNs among products. */
static void mg_special_products(const mg_numbers *x, const mg_numbers *y, int zero_times_infinity, mg_numbers *p) {
    const int as_zero = zero_times_infinity == MG_ZERO_TIMES_INFINITY_ZERO;
    const int64_t none = zero_times_infinity == MG_ZERO_TIMES_INFINITY_NAN ? MG_NAN : as_zero ? MG_ZERO : MG_INFINITY;
    MG_EACH {
        const mg_w high = mg_most(x->kind[l], y->kind[l]), low = mg_least(x->kind[l], y->kind[l]),
                   finite = (mg_w)(high < MG_INFINITY);
        const mg_w invalid = (mg_w)(high == MG_INFINITY) & (mg_w)(low == MG_ZERO);
        const mg_w exponent = MG_CHOOSE((mg_w)(x->kind[l] == MG_ZERO), x->exponent[l], y->exponent[l]);
        p->kind[l] = MG_CHOOSE(finite, p->kind[l], MG_CHOOSE(invalid, mg_splat(none), high));
        p->significand[l] = mg_s_where(finite, p->significand[l]);
        p->sticky[l] &= finite;
        p->exponent[l] = MG_CHOOSE(invalid & MG_MASK(as_zero), exponent, p->exponent[l]);
    }
}

/* `check`: significands may be too wide for a product. */
static void mg_multiply_lanes(
    mg_block *s, const mg_numbers *x, const mg_numbers *y, int zero_times_infinity, int check, mg_numbers *p) {
    if (check)
        MG_EACH s->left[l] |= mg_too_wide(x->significand[l], mg_s_leading(y->significand[l]) + 1, MG_WORD_BITS) &
            ~s->done[l];
    MG_EACH {
        p->significand[l] = mg_s_times(x->significand[l], y->significand[l]);
        p->exponent[l] = x->exponent[l] + y->exponent[l];
        p->lsb[l] = x->lsb[l] + y->lsb[l];
        p->kind[l] = x->kind[l] & y->kind[l]; /* of finite numbers */
        p->sign[l] = x->sign[l] ^ y->sign[l];
        p->sticky[l] = (x->sticky[l] | y->sticky[l]) & (mg_w)(p->kind[l] != MG_ZERO);
    }
    if (s->specials) mg_special_products(x, y, zero_times_infinity, p);
}

/* The sign of a sum that is zero, IEEE 754 6.3: all terms' if they are zeros of one sign. */
static void mg_zero_sum_signs(mg_numbers *const *terms, int32_t count, int rounding, mg_numbers *total) {
    mg_words open, same;
    MG_EACH open[l] = ~mg_s_some(total->significand[l]);
    if (!mg_any_of(open)) return;
    MG_EACH same[l] = mg_splat(-1);
    for (int32_t i = 0; i < count; i++)
        MG_EACH same[l] &= ~mg_s_some(terms[i]->significand[l]) & ~(terms[i]->sign[l] ^ terms[0]->sign[l]);
    MG_EACH total->sign[l] = MG_CHOOSE(open[l],
        MG_CHOOSE(same[l], terms[0]->sign[l], mg_splat(MG_MASK(rounding == MG_ROUNDING_DOWN))), total->sign[l]);
}

/* Kind and exponent of the sum of terms. */
static void mg_begin_sum(mg_numbers *const *terms, int32_t count, const mg_step *step, mg_numbers *total) {
    mg_words zeros, finite;
    MG_EACH {
        zeros[l] = finite[l] = mg_splat(MG_NOWHERE);
        total->significand[l] = mg_s_of(mg_splat(0));
        total->kind[l] = total->sign[l] = total->sticky[l] = mg_splat(0);
    }
    for (int32_t i = 0; i < count; i++) {
        const mg_numbers *x = terms[i];
        MG_EACH {
            finite[l] = mg_most(
                finite[l], MG_CHOOSE((mg_w)(x->kind[l] == MG_FINITE), x->exponent[l], mg_splat(MG_NOWHERE)));
            zeros[l] = mg_most(
                zeros[l], MG_CHOOSE((mg_w)(x->kind[l] == MG_ZERO), x->exponent[l], mg_splat(MG_NOWHERE)));
            total->kind[l] = mg_most(total->kind[l], x->kind[l]);
            total->sticky[l] |= x->sticky[l];
        }
    }
    MG_EACH {
        const mg_w largest = MG_CHOOSE((mg_w)(total->kind[l] == MG_ZERO), zeros[l], finite[l]);
        total->exponent[l] = step->has_exponent ? mg_splat(step->exponent)
                                                : (mg_w)(largest & (mg_w)(largest != MG_NOWHERE));
    }
}

/* Infinities and NaNs in a sum. */
static void mg_special_sum(mg_numbers *const *terms, int32_t count, mg_numbers *total) {
    mg_words signs;
    MG_EACH signs[l] = mg_splat(0);
    for (int32_t i = 0; i < count; i++)
        MG_EACH signs[l] |= (1 + (terms[i]->sign[l] & 1)) & (mg_w)(terms[i]->kind[l] == MG_INFINITY);
    MG_EACH {
        const mg_w special = (mg_w)(total->kind[l] >= MG_INFINITY);
        total->kind[l] = MG_CHOOSE(special & (mg_w)(signs[l] == 3), mg_splat(MG_NAN), total->kind[l]);
        total->sign[l] = MG_CHOOSE(
            special, (mg_w)(total->kind[l] == MG_INFINITY) & (mg_w)(signs[l] == 2), total->sign[l]);
        total->exponent[l] &= ~special;
        total->significand[l] = mg_s_where(~special, total->significand[l]);
    }
}

/* The exact sum of two numbers; bits that lie too far below the larger are ORed into the last one, which no later
 * single rounding can tell apart, unless so much cancels that it would see that bit: such a lane is left. */
static void mg_add_pair(mg_block *s, mg_numbers *const *pair, mg_numbers *total) {
    const mg_numbers *x = pair[0], *y = pair[1];
    MG_EACH {
        const mg_w swap = ~mg_s_some(x->significand[l]) |
            (mg_s_some(y->significand[l]) & (mg_w)(y->lsb[l] > x->lsb[l]));
        const mg_s upper = mg_s_choose(swap, y->significand[l], x->significand[l]),
                   lower = mg_s_choose(swap, x->significand[l], y->significand[l]);
        const mg_w lsb = MG_CHOOSE(swap, y->lsb[l], x->lsb[l]), lower_lsb = MG_CHOOSE(swap, x->lsb[l], y->lsb[l]);
        const mg_w distance = (lsb - lower_lsb) & mg_s_some(lower),
                   left = mg_least(distance, mg_most(MG_WORD_BITS - 2 - mg_s_leading(upper), mg_splat(0)));
        const mg_w right = mg_least(distance - left, mg_splat(MG_MOST_SHIFT)),
                   cut = mg_s_some(mg_s_and(lower, mg_s_ones(right)));
        const mg_s rest = mg_s_or(mg_s_down(lower, right), mg_s_of(1 & cut));
        const mg_s sum = mg_s_add(mg_s_signed(MG_CHOOSE(swap, y->sign[l], x->sign[l]), mg_s_up(upper, left)),
            mg_s_signed(MG_CHOOSE(swap, x->sign[l], y->sign[l]), rest));
        total->sign[l] = mg_s_negative(sum);
        total->significand[l] = mg_s_signed(total->sign[l], sum);
        total->lsb[l] = lsb - left;
        s->left[l] |= cut & (mg_w)(mg_s_leading(total->significand[l]) < MG_MOST_KEPT + 4) & ~s->done[l];
    }
}

#ifndef MG_WIDE_BLOCKS /* mg_fits_wide_block lets no such register in */
/* Keeps sums in a register of `width` integer bits: they wrap, or become the largest or the least number. */
static void mg_hold_lanes(const mg_step *step, const mg_numbers *total, const mg_words low, mg_significands sum) {
    const int64_t saturate = MG_MASK(step->overflow == MG_OVERFLOW_SATURATE), width = step->width;
    MG_EACH {
        const mg_w bits = mg_least(total->exponent[l] + width - low[l], mg_splat(64));
        const mg_w high = mg_down(mg_down(mg_splat(-1), mg_between(64 - bits, 0, 63)), mg_splat(1)),
                   sign = (mg_w)((mg_u)high + 1);
        const mg_w wrapped = (mg_w)((mg_u)((sum[l] & (high | sign)) ^ sign) - (mg_u)sign),
                   bound = mg_most(mg_least(sum[l], high), ~high);
        sum[l] = MG_CHOOSE(
            (mg_w)(bits >= 63), sum[l], MG_CHOOSE((mg_w)(bits <= 0), mg_splat(0), MG_CHOOSE(saturate, bound, wrapped)));
    }
}
#endif

/* The exact sum of finite terms; where it needs more than a word, the lane is left. */
static void mg_add_terms(mg_block *s, mg_numbers *const *terms, int32_t count, const mg_step *step, mg_numbers *total) {
    mg_significands sum;
    mg_words low, others;
    const int complement = step->op == MG_STEP_SUM && step->complement == MG_COMPLEMENT_C;
    const int64_t all = MG_MASK(step->has_width && step->overflow == MG_OVERFLOW_SATURATE),
                  most = MG_WORD_BITS + __builtin_clzll((uint64_t)count | 1) - 64;
    const mg_numbers *frame = s->registers[MG_REGISTER_C];
    MG_EACH {
        low[l] = mg_splat(-MG_NOWHERE);
        sum[l] = mg_s_of(mg_splat(0));
        others[l] = mg_splat(0);
    }
    for (int32_t i = 0; complement && i < count; i++) MG_EACH others[l] -= terms[i]->sign[l] ^ frame->sign[l];
    for (int32_t i = 0; i < count; i++) {
        const mg_numbers *x = terms[i];
        MG_EACH {
            const mg_w counts = (mg_w)(x->kind[l] == MG_FINITE) &
                (mg_s_some(x->significand[l]) | all | total->sticky[l] | (mg_w)(others[l] != 0));
            low[l] = mg_least(low[l], MG_CHOOSE(counts, x->lsb[l], mg_splat(-MG_NOWHERE)));
        }
    }
    for (int32_t i = 0; i < count; i++) {
        const mg_numbers *x = terms[i];
        MG_EACH {
            const mg_w left = (x->lsb[l] - low[l]) & mg_s_some(x->significand[l]);
            s->left[l] |= mg_too_wide(x->significand[l], left, most) & (mg_w)(total->kind[l] == MG_FINITE) &
                ~s->done[l];
            sum[l] = mg_s_add(
                sum[l], mg_s_signed(x->sign[l], mg_s_up(x->significand[l], mg_between(left, 0, MG_MOST_SHIFT))));
        }
    }
    if (complement) MG_EACH sum[l] = mg_s_add(sum[l], mg_s_signed(~frame->sign[l], mg_s_of(others[l])));
#ifndef MG_WIDE_BLOCKS
    if (step->has_width) mg_hold_lanes(step, total, low, sum);
#endif
    MG_EACH {
        const mg_w nowhere = (mg_w)(low[l] == -MG_NOWHERE),
                   finite = (mg_w)(total->kind[l] == MG_FINITE); /* else a zero, or special */
        total->sign[l] = mg_s_negative(sum[l]);
        total->significand[l] = mg_s_and(
            mg_s_where(finite, mg_s_signed(total->sign[l], sum[l])), mg_s_ones(mg_splat(MG_MOST_SHIFT)));
        total->lsb[l] = MG_CHOOSE(nowhere, total->exponent[l], low[l]);
    }
}

/* mg_exact_sum in lanes; `rounded`: a rounding follows, so that the last term, which is often c, may lie anywhere. */
MG_BLOCK_CALL void mg_sum_lanes(
    mg_block *s, mg_numbers *const *terms, int32_t count, const mg_step *step, int rounded, mg_numbers *total) {
    const int64_t cancelled = MG_MASK(step->cancelled == MG_CANCELLED_ZERO);
    mg_begin_sum(terms, count, step, total);
    if (rounded && !s->sticky && count > 1) {
        mg_numbers others = *total, *pair[2] = {&others, terms[count - 1]};
        if (count == 2) pair[0] = terms[0];
        else mg_add_terms(s, terms, count - 1, step, &others);
        mg_add_pair(s, pair, total);
    } else {
        mg_add_terms(s, terms, count, step, total);
    }
    mg_zero_sum_signs(terms, count, step->rounding, total);
    MG_EACH total->kind[l] &= ~(
        cancelled & (mg_w)(total->kind[l] == MG_FINITE) & ~mg_s_some(total->significand[l]) & ~total->sticky[l]);
    if (s->specials) mg_special_sum(terms, count, total);
}

/* Lanes in which a NaN is handed on, payload and all, are the interpreter's. */
static void mg_leave_nans(mg_block *s, const mg_numbers *x) {
    if (s->specials) MG_EACH s->left[l] |= (mg_w)(x->kind[l] == MG_NAN) & ~s->done[l];
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* The terms of all registers that a step reads; returns how many. */
#define MG_COLLECT_TERMS(name, block)                                    \
    static int32_t name(block *s, const mg_step *step) {                 \
        int32_t count = 0;                                               \
        for (int r = 0; r < step->of_count; r++)                         \
            for (int32_t i = 0; i < s->count[step->of[r]]; i++, count++) { \
                s->terms[count] = &s->registers[step->of[r]][i];         \
                s->owner[count] = r;                                     \
            }                                                            \
        return count;                                                    \
    }
MG_COLLECT_TERMS(mg_collect_lanes, mg_block)

static void mg_flush_lanes(mg_block *s, const mg_step *step) {
    const int64_t keep_sign = MG_MASK(step->sign != MG_FLUSH_POSITIVE);
    for (int r = 0; r < step->of_count; r++) {
        if (step->of[r] == MG_REGISTER_C && !s->operation->seed_format.is_float) continue;
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i];
            MG_EACH {
                const mg_w stays = ~((mg_w)(x->kind[l] <= MG_FINITE) &
                    (mg_w)(mg_s_leading(x->significand[l]) + x->lsb[l] < x->exponent[l]));
                x->kind[l] &= stays;
                x->significand[l] = mg_s_where(stays, x->significand[l]);
                x->sticky[l] &= stays;
                x->sign[l] &= stays | keep_sign;
            }
        }
    }
}

static void mg_hidden_bit_lanes(mg_block *s, const mg_step *step) {
    const int64_t set = MG_MASK(step->zeros == MG_HIDDEN_ZEROS_SET);
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i];
            MG_EACH {
                x->kind[l] |= set & (mg_w)(x->kind[l] == MG_ZERO) & MG_FINITE;
                const mg_s hidden = mg_s_up(
                    mg_s_of(mg_splat(1)), mg_between(x->exponent[l] - x->lsb[l], 0, MG_WORD_BITS - 1));
                x->significand[l] = mg_s_or(x->significand[l], mg_s_where((mg_w)(x->kind[l] == MG_FINITE), hidden));
            }
        }
}

/* Parts of significands: what lies below the last place is cut, what lies above the first one is masked. */
static void mg_part_lanes(mg_block *s, const mg_step *step) {
    const mg_direction cut = mg_direction_of(MG_ROUNDING_TOWARD_ZERO);
    const int64_t first = step->first, last = first + step->bits - 1;
    const mg_s kept = mg_s_ones(mg_splat(step->bits));
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i];
            MG_EACH {
                const mg_w finite = (mg_w)(x->kind[l] <= MG_FINITE), lsb = x->exponent[l] - last;
                const mg_s part = mg_s_and(
                    kept, mg_rounded_shift(cut, x->sign[l], x->significand[l], lsb - x->lsb[l]));
                x->significand[l] = mg_s_choose(finite, part, x->significand[l]);
                x->exponent[l] -= finite & first;
                x->lsb[l] = MG_CHOOSE(finite, lsb, x->lsb[l]);
            }
        }
}

/* Numbers that are `value` units of the last place become `by` of them. A unit finer than a number's last bit is
 * compared where the number is that short; one that is not is larger than any value. */
static void mg_replace_lanes(mg_block *s, const mg_step *step) {
    const int64_t value = step->value, by = step->by, places = step->places, minus = MG_MASK(value < 0);
    const mg_s wanted = mg_s_of(mg_splat(value < 0 ? -value : value)), new = mg_s_of(mg_splat(by < 0 ? -by : by));
    const mg_direction cut = mg_direction_of(MG_ROUNDING_TOWARD_ZERO);
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i];
            MG_EACH {
                const mg_w unit = x->exponent[l] - places, below = unit - x->lsb[l];
                const mg_s units = mg_rounded_shift(cut, x->sign[l], x->significand[l], below);
                const mg_s rest = mg_s_and(x->significand[l], mg_s_ones(mg_between(below, 0, MG_MOST_SHIFT)));
                const mg_w other = mg_s_some(mg_s_or(mg_s_without(units, wanted), mg_s_without(wanted, units))) |
                    mg_s_some(rest) |
                    ((mg_w)(below < 0) & mg_too_wide(x->significand[l], mg_most(-below, mg_splat(0)), 31));
                const mg_w equal = (mg_w)(x->kind[l] == MG_FINITE) & ~x->sticky[l] & ~(x->sign[l] ^ minus) & ~other;
                x->significand[l] = mg_s_choose(equal, new, x->significand[l]);
                x->sign[l] = MG_CHOOSE(equal, mg_splat(MG_MASK(by < 0)), x->sign[l]);
                x->lsb[l] = MG_CHOOSE(equal, unit, x->lsb[l]);
            }
        }
}

static void mg_combine_bits(const mg_block *s, const mg_step *step, int32_t i, mg_numbers *p) {
    const int32_t k = s->operation->k_index[i] * MG_BLOCK_LANES, storage_a = s->program->a.storage,
                  storage_b = s->program->b.storage;
    const int64_t is_and = MG_MASK(step->operation == MG_OPERATION_AND);
    mg_words a, b;
    mg_widen(s->codes->a + k * (storage_a / 8), storage_a, a);
    mg_widen(s->codes->b + k * (storage_b / 8), storage_b, b);
    MG_EACH {
        p->significand[l] = mg_s_of(MG_CHOOSE(is_and, a[l] & b[l], a[l] ^ b[l]));
        p->exponent[l] = p->lsb[l] = p->sign[l] = p->sticky[l] = mg_splat(0);
        p->kind[l] = MG_FINITE & mg_s_some(p->significand[l]);
    }
}

static void mg_multiply_step(mg_block *s, const mg_step *step) {
    const int32_t count = s->count[MG_REGISTER_A];
    const int64_t negate = MG_MASK(step->negate == MG_NEGATE_PRODUCT || step->negate == MG_NEGATE_BOTH),
                  most = step->overflow_exponent;
    mg_rounder rounder = {0};
    if (step->has_format) rounder = mg_ieee_rounder(step, &step->format, 1);
    for (int32_t i = 0; i < count; i++) {
        mg_numbers *p = &s->registers[step->to][i];
        if (step->operation != MG_OPERATION_PRODUCT) mg_combine_bits(s, step, i, p);
        else
            mg_multiply_lanes(
                s, &s->registers[MG_REGISTER_A][i], &s->registers[MG_REGISTER_B][i], step->zero_times_infinity, 0, p);
        if (negate) MG_EACH p->sign[l] = ~p->sign[l];
        if (step->has_overflow_exponent) {
            MG_EACH p->kind[l] += (mg_w)(p->kind[l] == MG_FINITE) & mg_s_some(p->significand[l]) &
                (mg_w)(mg_s_leading(p->significand[l]) + 1 + p->lsb[l] > most) & (MG_INFINITY - MG_FINITE);
            mg_note_specials(s, p);
        }
        if (step->normalize)
            MG_EACH p->exponent[l] = MG_CHOOSE((mg_w)(p->kind[l] == MG_FINITE) & mg_s_some(p->significand[l]),
                mg_s_leading(p->significand[l]) + p->lsb[l], p->exponent[l]);
        if (step->has_format) mg_round_in_place(s, &rounder, p);
    }
    if (step->negate == MG_NEGATE_C || step->negate == MG_NEGATE_BOTH)
        for (int32_t i = 0; i < s->count[MG_REGISTER_C]; i++)
            MG_EACH s->registers[MG_REGISTER_C][i].sign[l] = ~s->registers[MG_REGISTER_C][i].sign[l];
    s->count[step->to] = count;
}

static void mg_scale_lanes(mg_block *s, const mg_step *step) {
    for (int r = 0; r < step->of_count; r++) {
        const int32_t count = s->count[step->of[r]], stride = count ? s->count[MG_REGISTER_SCALES] / count : 1;
        for (int32_t i = 0; i < count; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i], y = *x;
            mg_multiply_lanes(s, &y, &s->registers[MG_REGISTER_SCALES][i * (stride < 1 ? 1 : stride)],
                MG_ZERO_TIMES_INFINITY_NAN, 1, x);
        }
    }
}

static void mg_special_values_lanes(mg_block *s, const mg_step *step) {
    if (!s->specials) return;
    mg_words kind, signs, first, last;
    MG_EACH kind[l] = signs[l] = first[l] = last[l] = mg_splat(0);
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            const mg_numbers *x = &s->registers[step->of[r]][i];
            MG_EACH {
                const mg_w infinite = (mg_w)(x->kind[l] == MG_INFINITY);
                kind[l] = mg_most(kind[l], x->kind[l]);
                first[l] = MG_CHOOSE(infinite & (mg_w)(signs[l] == 0), x->sign[l], first[l]);
                last[l] = MG_CHOOSE(infinite, x->sign[l], last[l]);
                signs[l] |= infinite & (1 + (x->sign[l] & 1));
            }
        }
    const mg_rounder r = mg_rounder_of(
        &s->operation->out_format, MG_ROUNDING_TOWARD_ZERO, MG_OVERFLOW_INFINITY, -1, step->has_nan, step->nan);
    const int opposite = step->opposite_infinities;
    const int64_t by_cause = MG_MASK(step->nans_count), negative = MG_MASK(opposite == MG_OPPOSITE_NEGATIVE),
                  no_sign = MG_MASK(opposite == MG_OPPOSITE_NAN);
    MG_EACH {
        const mg_w both = (mg_w)(signs[l] == 3) & (mg_w)(kind[l] == MG_INFINITY),
                   special = (mg_w)(kind[l] >= MG_INFINITY);
        const mg_w chosen = opposite == MG_OPPOSITE_FIRST ? first[l]
            : opposite == MG_OPPOSITE_LAST ? last[l]
                                                          : mg_splat(negative);
        const mg_w sign = MG_CHOOSE(both, chosen, (mg_w)(signs[l] == 2)),
                   nan = (mg_w)(kind[l] == MG_NAN) | (both & no_sign);
        const mg_w code = MG_CHOOSE(
            nan, mg_splat(r.nan), MG_CHOOSE(sign, mg_splat(r.infinity[1]), mg_splat(r.infinity[0])));
        s->left[l] |= by_cause & nan & ~s->done[l];
        s->result[l] = MG_CHOOSE(special & ~s->done[l], code, s->result[l]);
        s->done[l] |= special;
    }
}

/* The largest of what `maximum` lists. */
static void mg_largest_candidates(const mg_block *s, const mg_step *step, int32_t count, int32_t g, mg_words maximum) {
    for (int32_t j = 0; j < step->maximum_count; j++) {
        const int64_t by_leading = MG_MASK(step->maximum_leading[j]);
        mg_words largest;
        MG_EACH largest[l] = mg_splat(step->maximum_has_least[j] ? step->maximum_least[j] : MG_NOWHERE);
        for (int32_t i = 0; i < count; i++) {
            const mg_numbers *x = s->terms[i];
            if (!(step->maximum_of[j] >> s->owner[i] & 1) || mg_group_of(step, i) != g) continue;
            MG_EACH {
                const mg_w place = MG_CHOOSE(by_leading, x->lsb[l] + mg_s_leading(x->significand[l]), x->exponent[l]);
                const mg_w counts = (mg_w)(x->kind[l] == MG_FINITE) & (~by_leading | mg_s_some(x->significand[l]));
                largest[l] = mg_most(largest[l], MG_CHOOSE(counts, place, mg_splat(MG_NOWHERE)));
            }
        }
        MG_EACH maximum[l] = MG_CHOOSE(
            (mg_w)(largest[l] == MG_NOWHERE), maximum[l], mg_most(maximum[l], largest[l] + step->maximum_plus[j]));
    }
}

/* What one group aligns to; MG_NOWHERE: nothing. */
static void mg_maximum_lanes(const mg_block *s, const mg_step *step, int32_t count, int32_t g, mg_words maximum) {
    const int64_t floor = step->has_exponent ? step->exponent
        : step->has_floor && !step->maximum_count ? step->floor
                                                  : MG_NOWHERE;
    const int64_t zeros = MG_MASK(step->zeros == MG_ZEROS_MAXIMUM);
    mg_words left_out;
    MG_EACH {
        maximum[l] = mg_splat(floor);
        left_out[l] = mg_splat(MG_NOWHERE);
    }
    if (step->has_exponent) return;
    for (int32_t i = 0; i < count && !step->maximum_count; i++) {
        const mg_numbers *x = s->terms[i];
        if (mg_group_of(step, i) != g) continue;
        mg_w *largest = step->left_out[s->owner[i]] == MG_LEFT_OUT_NONE ? maximum : left_out;
        MG_EACH {
            const mg_w counts = (mg_w)(x->kind[l] == MG_FINITE) | (zeros & (mg_w)(x->kind[l] == MG_ZERO));
            largest[l] = mg_most(largest[l], MG_CHOOSE(counts, x->exponent[l], mg_splat(MG_NOWHERE)));
        }
    }
    mg_largest_candidates(s, step, count, g, maximum);
    MG_EACH maximum[l] = MG_CHOOSE((mg_w)(maximum[l] == MG_NOWHERE), left_out[l], maximum[l]);
}

/* Zeros meet the maximum: they move there with the others, or set their sticky bit if they lie below all kept bits. */
static void mg_align_zeros(const mg_step *step, const mg_words maximum, int r, const mg_words was, mg_numbers *x) {
    const int64_t added = MG_MASK(step->cut == MG_CUT_STICKY_ADDED), move = MG_MASK(step->zeros == MG_ZEROS_MAXIMUM),
                  fraction_bits = step->fraction_bits[r];
    MG_EACH {
        const mg_w zero = (mg_w)(was[l] == MG_ZERO) & (mg_w)(maximum[l] != MG_NOWHERE),
                   last = maximum[l] - fraction_bits;
        const mg_w sticks = zero & ~move & (mg_w)(x->exponent[l] < last) & MG_MASK(step->cut != MG_CUT_DROPPED),
                   touched = sticks | (zero & move);
        x->significand[l] = mg_s_or(x->significand[l], mg_s_of(sticks & added & 1));
        x->sticky[l] |= sticks & ~added;
        x->exponent[l] = MG_CHOOSE(touched, maximum[l], x->exponent[l]);
        x->lsb[l] = MG_CHOOSE(touched, last + (added & sticks), x->lsb[l]);
        x->kind[l] |= sticks & MG_FINITE;
    }
}

MG_BLOCK_CALL void mg_align_lanes(mg_block *s, const mg_step *step, const mg_words maximum, int r, mg_numbers *x) {
    const mg_direction direction = mg_direction_of(step->roundings[r]);
    const int by_largest = !step->has_exponent &&
        !step->maximum_count; /* no term lies above, but one of a register that was left out */
    const int64_t fraction_bits = step->fraction_bits[r],
                  window = step->window[r] < 0 ? -MG_NOWHERE * 2 : step->window[r];
    const int64_t dropped = MG_MASK(by_largest && step->left_out[r] == MG_LEFT_OUT_DROPPED),
                  highest = by_largest ? 0 : -MG_NOWHERE * 2;
    const int64_t limit = step->has_shift_limit ? step->shift_limit : -MG_NOWHERE * 2, gap = step->sticky_gap;
    const int64_t spared = step->spared[r] == MG_NOT_GIVEN ? -MG_NOWHERE : step->spared[r];
    const int64_t underflow = step->has_underflow_exponent ? step->underflow_exponent : MG_NOWHERE;
    const int64_t added = MG_MASK(step->cut == MG_CUT_STICKY_ADDED), carried = MG_MASK(step->cut == MG_CUT_STICKY_OR);
    mg_words was;
    MG_EACH {
        const mg_w finite = (mg_w)(maximum[l] != MG_NOWHERE) & (mg_w)(x->kind[l] == MG_FINITE), sign = x->sign[l];
        const mg_s significand = s->sticky ? mg_s_choose(finite, mg_seen(x, l), x->significand[l])
                                           : x->significand[l]; /* with a sticky bit of before as its last one */
        const mg_w above = x->exponent[l] - maximum[l], last = maximum[l] - fraction_bits;
        const mg_w lsb = x->lsb[l] + x->sticky[l] - above + mg_between(above, -limit, highest);
        const mg_w outside = (mg_w)(above < -window) | (dropped & (mg_w)(above > 0)) |
            (mg_w)(maximum[l] <= underflow) |
            ((mg_w)(last > spared) & sign & (mg_w)(mg_s_leading(significand) + lsb < last));
        /* Alignment shift: from here on the last bit of every finite term of a register is at `last`. */
        const mg_w shift = last - lsb;
        const mg_s kept = mg_s_where(~outside, mg_rounded_shift(direction, sign, significand, shift));
        s->left[l] |= finite & ~outside & mg_too_wide(significand, mg_most(-shift, mg_splat(0)), MG_WORD_BITS - 1) &
            ~s->done[l];
        was[l] = x->kind[l];
        x->exponent[l] = MG_CHOOSE(finite, maximum[l], x->exponent[l]);
        if (step->cut == MG_CUT_DROPPED) {
            x->significand[l] = mg_s_choose(finite, kept, significand);
            x->lsb[l] = MG_CHOOSE(finite, last, x->lsb[l]);
            x->sticky[l] &= ~finite;
        } else {
            const mg_s below = mg_s_ones(mg_between(shift - gap, 0, MG_MOST_SHIFT));
            const mg_w lost = mg_s_some(mg_s_and(significand, below)) & ~outside, more = added & ~outside;
            x->significand[l] = mg_s_choose(
                finite, mg_s_or(mg_s_up(kept, more & 1), mg_s_of(more & lost & 1)), significand);
            x->lsb[l] = MG_CHOOSE(finite, last + more, x->lsb[l]);
            x->sticky[l] = MG_CHOOSE(finite, carried & lost, x->sticky[l]);
        }
    }
    if (step->zeros != MG_ZEROS_IGNORED) mg_align_zeros(step, maximum, r, was, x);
}

static void mg_align_step(mg_block *s, const mg_step *step) {
    const int32_t count = mg_collect_lanes(s, step), groups = mg_group_count(step, count);
    for (int32_t g = 0; g < groups; g++) {
        mg_words maximum;
        mg_maximum_lanes(s, step, count, g, maximum);
        for (int32_t i = 0; i < count; i++)
            if (mg_group_of(step, i) == g) mg_align_lanes(s, step, maximum, s->owner[i], s->terms[i]);
    }
    s->sticky |= step->cut == MG_CUT_STICKY_OR;
}

static void mg_write_numbers(mg_block *s, const mg_step *step, const mg_numbers *numbers, int32_t count) {
    if (step->to == MG_REGISTER_D) {
        mg_words codes;
        const mg_rounder r = mg_ieee_rounder(step, &s->operation->out_format, 0);
        mg_round_lanes(s, &r, numbers, codes);
        mg_write_lanes(s, codes);
        return;
    }
    memcpy(s->registers[step->to], numbers, (size_t)count * sizeof *numbers);
    s->count[step->to] = count;
}

/* One IEEE addition: x becomes x + y. */
static void mg_add_rounded(mg_block *s, const mg_step *step, const mg_rounder *r, mg_numbers *x, mg_numbers *y) {
    mg_numbers *pair[2] = {x, y}, sum;
    mg_sum_lanes(s, pair, 2, step, 1, &sum);
    if (step->first_nan) mg_leave_nans(s, &sum);
    mg_round_in_place(s, r, &sum);
    *x = sum;
}

/* Reduces terms into the first of them; they are written over. */
static void mg_reduce_lanes(mg_block *s, const mg_step *step, const mg_rounder *r, mg_numbers **terms, int32_t count) {
    if (step->order == MG_ORDER_TREE && count > 1) {
        mg_reduce_lanes(s, step, r, terms, count / 2);
        mg_reduce_lanes(s, step, r, terms + count / 2, count - count / 2);
        mg_add_rounded(s, step, r, terms[0], terms[count / 2]);
        return;
    }
    for (int32_t i = 1; i < count; i++) mg_add_rounded(s, step, r, terms[0], terms[i]);
}

/* `rounded_next`: the sum goes straight into a rounding. */
static void mg_sum_step(mg_block *s, const mg_step *step, int rounded_next) {
    const int32_t count = mg_collect_lanes(s, step), groups = mg_group_count(step, count);
    mg_numbers **picked = s->terms + count, *copies = s->sums + groups;
    mg_rounder r = {0};
    if (step->op == MG_STEP_ADDITIONS) r = mg_ieee_rounder(step, &step->format, 1);
    for (int32_t g = 0; g < groups; g++) {
        int32_t members = 0;
        for (int32_t i = 0; i < count; i++)
            if (mg_group_of(step, i) == g) picked[members++] = s->terms[i];
        if (step->op == MG_STEP_SUM) {
            const int rounded = rounded_next && !step->has_width && step->complement == MG_COMPLEMENT_NONE;
            mg_sum_lanes(s, picked, members, step, rounded, &s->sums[g]);
            continue;
        }
        for (int32_t i = 0; i < members; i++) {
            if (step->first_nan) mg_leave_nans(s, picked[i]); /* also of a sum of one term */
            copies[i] = *picked[i];
            picked[i] = &copies[i];
        }
        mg_reduce_lanes(s, step, &r, picked, members);
        s->sums[g] = *picked[0];
    }
    mg_write_numbers(s, step, s->sums, groups);
}

static void mg_normalize_lanes(mg_block *s, const mg_step *step) {
    const mg_direction direction = mg_direction_of(step->rounding);
    const mg_w least = mg_splat(step->has_min_exponent ? step->min_exponent : MG_NOWHERE);
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; i < s->count[step->of[r]]; i++) {
            mg_numbers *x = &s->registers[step->of[r]][i];
            const int64_t fraction_bits = step->fraction_bits[r];
            MG_EACH {
                const mg_s seen = mg_seen(x, l);
                const mg_w applies = (mg_w)(x->kind[l] == MG_FINITE) & mg_s_some(seen), lsb = x->lsb[l] + x->sticky[l];
                const mg_w exponent = mg_most(mg_s_leading(seen) + lsb, least), last = exponent - fraction_bits;
                const mg_s rounded = mg_rounded_shift(direction, x->sign[l], seen, last - lsb);
                x->significand[l] = mg_s_choose(applies, rounded, x->significand[l]);
                x->exponent[l] = MG_CHOOSE(applies, exponent, x->exponent[l]);
                x->lsb[l] = MG_CHOOSE(applies, last, x->lsb[l]);
                x->sticky[l] &= ~applies;
            }
        }
}

/* One fused multiply-add; `started`: total is more than nothing. */
static void mg_fma_lanes(
    mg_block *s, const mg_step *step, const mg_rounder *r, int32_t i, int started, mg_numbers *total) {
    const mg_numbers *a = &s->registers[MG_REGISTER_A][i], *b = &s->registers[MG_REGISTER_B][i];
    mg_numbers product, sum, *pair[2] = {&product, total};
    mg_words nan;
    if (step->nan_order_count) {
        mg_leave_nans(s, a);
        mg_leave_nans(s, b);
        if (started) mg_leave_nans(s, total);
    }
    mg_multiply_lanes(s, a, b, step->zero_times_infinity, 0, &product);
    if (started) mg_sum_lanes(s, pair, 2, step, 1, &sum);
    *total = started ? sum : product;
    if (step->nan_order_count) mg_leave_nans(s, total);
    MG_EACH nan[l] = (mg_w)(total->kind[l] == MG_NAN);
    mg_round_in_place(s, r, total);
    MG_EACH total->kind[l] |= nan[l] & MG_NAN; /* also where the format has none */
}

static void mg_fma_step_lanes(mg_block *s, const mg_step *step) {
    const int32_t count = s->count[MG_REGISTER_A], groups = mg_group_count(step, count);
    const mg_rounder r = mg_ieee_rounder(step, &step->format, 1);
    for (int32_t g = 0; g < groups; g++) {
        int started = step->start != MG_START_PRODUCT;
        if (step->start == MG_START_C) s->sums[g] = s->registers[MG_REGISTER_C][0];
        else memset(&s->sums[g], 0, sizeof s->sums[g]);
        for (int32_t i = 0; i < count; i++) {
            if (mg_group_of(step, i) != g) continue;
            mg_fma_lanes(s, step, &r, i, started, &s->sums[g]);
            started = 1;
        }
    }
    mg_write_numbers(s, step, s->sums, groups);
}

static void mg_round_step(mg_block *s, const mg_step *step) {
    const mg_rounder r = mg_round_rounder(step);
    int32_t count = 0;
    for (int n = 0; n < step->of_count; n++)
        for (int32_t i = 0; i < s->count[step->of[n]]; i++) {
            mg_words codes;
            mg_round_lanes(s, &r, &s->registers[step->of[n]][i], codes);
            if (step->to == MG_REGISTER_D) {
                mg_write_lanes(s, codes);
                return;
            }
            mg_decode_lanes(&step->format, codes, &s->registers[step->to][count]);
            mg_note_specials(s, &s->registers[step->to][count++]);
        }
    s->count[step->to] = count;
}

/* Operations ------------------------------------------------------------------------------------------------------- */

static void mg_load_number(
    mg_block *s, const mg_format *f, const mg_rounder *convert, const mg_w *codes, mg_numbers *x) {
    mg_decode_lanes(f, codes, x);
    mg_note_specials(s, x);
    if (!convert) return;
    const mg_numbers given = *x;
    const int64_t least = convert->format->min_exponent, fraction_bits = convert->format->fraction_bits;
    mg_round_in_place(s, convert, x);
    MG_EACH {
        const mg_w finite = (mg_w)(given.kind[l] == MG_FINITE);
        x->kind[l] = MG_CHOOSE(finite, x->kind[l], given.kind[l]);
        x->sign[l] = MG_CHOOSE(finite, x->sign[l], given.sign[l]);
        x->significand[l] = mg_s_where(finite, x->significand[l]);
        x->exponent[l] = MG_CHOOSE(finite, x->exponent[l], mg_splat(least));
        x->lsb[l] = MG_CHOOSE(finite, x->lsb[l], mg_splat(least - fraction_bits));
    }
}

/* Element k of an operand. */
static void mg_load_operand(
    mg_block *s, const mg_format *f, const mg_rounder *convert, const char *codes, int32_t k, mg_numbers *x) {
    mg_words wide;
    mg_widen(codes + (ptrdiff_t)k * MG_BLOCK_LANES * (f->storage / 8), f->storage, wide);
    mg_load_number(s, f, convert, wide, x);
}

static void mg_load_operands(mg_block *s) {
    const mg_program *p = s->program;
    const mg_operation *o = s->operation;
    mg_rounder rounder = {0};
    if (o->has_operand_format)
        rounder = mg_rounder_of(&o->operand_format, MG_ROUNDING_TOWARD_ZERO, MG_OVERFLOW_INFINITY, -1, 0, 0);
    const mg_rounder *convert = o->has_operand_format ? &rounder : NULL;
    for (int32_t i = 0; i < o->k_count; i++) {
        const int32_t k = o->k_index[i];
        mg_load_operand(s, &p->a, convert, s->codes->a, k, &s->registers[MG_REGISTER_A][i]);
        mg_load_operand(s, &p->b, convert, s->codes->b, k, &s->registers[MG_REGISTER_B][i]);
        if (!p->scale_block) continue;
        mg_numbers x, y;
        mg_load_operand(s, &p->scale_a, NULL, s->codes->scale_a, k / p->scale_block, &x);
        mg_load_operand(s, &p->scale_b, NULL, s->codes->scale_b, k / p->scale_block, &y);
        mg_multiply_lanes(s, &x, &y, MG_ZERO_TIMES_INFINITY_NAN, 0, &s->registers[MG_REGISTER_SCALES][i]);
    }
    s->count[MG_REGISTER_A] = s->count[MG_REGISTER_B] = o->k_count;
    s->count[MG_REGISTER_SCALES] = p->scale_block ? o->k_count : 0;
}

static void mg_run_steps(mg_block *s) {
    const mg_operation *o = s->operation;
    for (int32_t i = 0; i < o->step_count; i++) {
        const mg_step *step = &o->steps[i], *next = i + 1 < o->step_count ? step + 1 : NULL;
        switch (step->op) {
        case MG_STEP_FLUSH: mg_flush_lanes(s, step); break;
        case MG_STEP_MULTIPLY: mg_multiply_step(s, step); break;
        case MG_STEP_SCALE: mg_scale_lanes(s, step); break;
        case MG_STEP_SPECIAL_VALUES: mg_special_values_lanes(s, step); break;
        case MG_STEP_ALIGN: mg_align_step(s, step); break;
        case MG_STEP_SUM:
        case MG_STEP_ADDITIONS:
            mg_sum_step(s, step,
                step->to == MG_REGISTER_D ||
                    (next && next->op == MG_STEP_ROUND && next->of_count == 1 && next->of[0] == step->to &&
                        !next->sticky_gap));
            break;
        case MG_STEP_NORMALIZE: mg_normalize_lanes(s, step); break;
        case MG_STEP_FMA: mg_fma_step_lanes(s, step); break;
        case MG_STEP_HIDDEN_BIT: mg_hidden_bit_lanes(s, step); break;
        case MG_STEP_PART: mg_part_lanes(s, step); break;
        case MG_STEP_REPLACE: mg_replace_lanes(s, step); break;
        default: mg_round_step(s, step); break;
        }
    }
}

/* Writes the codes of d; returns the lanes that are left, a bit each. */
static uint64_t mg_block_results(const mg_program *p, const mg_words d, const mg_words left, char *codes) {
    uint64_t lanes = 0;
    if (p->d.storage == 64) memcpy(codes, d, MG_BLOCK_LANES * sizeof(int64_t));
    else if (p->d.storage == 32) MG_EACH ((mg_single_codes *)codes)[l] = mg_narrow_32(d[l]);
    else if (p->d.storage == 16) MG_EACH ((mg_half_codes *)codes)[l] = mg_narrow_16(d[l]);
    else
        for (int lane = 0; lane < MG_BLOCK_LANES; lane++) codes[lane] = (char)d[lane / MG_WORDS][lane % MG_WORDS];
    if (!mg_any_of(left)) return 0;
    for (int lane = 0; lane < MG_BLOCK_LANES; lane++)
        lanes |= (uint64_t)(left[lane / MG_WORDS][lane % MG_WORDS] & 1) << lane;
    return lanes;
}

static uint64_t mg_run_block_steps(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) {
    mg_block s;
    (void)fresh;
    MG_BEGIN_BLOCK(mg_numbers)
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        s.operation = o;
        memset(s.count, 0, sizeof s.count);
        mg_clear(s.done);
        s.specials = s.sticky = 0;
        mg_load_operands(&s);
        mg_load_number(&s, &o->seed_format, NULL, results[o->seed], &s.registers[MG_REGISTER_C][0]);
        s.count[MG_REGISTER_C] = 1;
        for (int32_t j = 0; j < o->addend_count; j++)
            mg_load_number(&s, &o->out_format, NULL, results[o->addends[j]], &s.registers[MG_REGISTER_ADDENDS][j]);
        s.count[MG_REGISTER_ADDENDS] = o->addend_count;
        mg_run_steps(&s);
        memcpy(results[2 + i], s.result, sizeof s.result);
    }
    return mg_block_results(p, s.result, s.left, codes->d);
}
