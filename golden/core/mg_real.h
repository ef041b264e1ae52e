/* Blocks in doubles: MG_BLOCK_LANES dot products side by side, step by step, for programs whose numbers a double holds.
 *
 * Included after mg_block.h, whose words, rounders and vectors it uses. A number is a double, infinities and NaNs those
 * of the machine. A sum that no double holds is rounded to odd: its last bit says that more follows, which no later
 * single rounding to 51 bits or fewer can tell from the exact sum (Boldo and Melquiond, IEEE Transactions on Computers
 * 57, 2008). golden/model/doubles.py says which programs these are, and why every number of theirs fits.
 */
#define MG_SIGN INT64_MIN
#define MG_UNIT_STEP (INT64_C(1) << 52)            /* one more in the exponent field of a double */
#define MG_DOUBLE_TOP (INT64_C(0x7ff) << 52)       /* the exponent field of infinities and NaNs */
#define MG_QUIET_DOUBLE (INT64_C(1) << 51)
#define MG_DOUBLE_ONE (INT64_C(1023) << 52)
#define MG_TIMES_POWER(x, n) ((mg_f)((mg_u)(x) + ((uint64_t)(n) << 52))) /* x * 2^n */

typedef int32_t mg_single_words __attribute__((vector_size(4 * MG_WORDS)));
typedef float mg_wide_single __attribute__((vector_size(8 * MG_WORDS), may_alias));
typedef int32_t mg_wide_words __attribute__((vector_size(8 * MG_WORDS)));
typedef mg_f mg_fs[MG_PARTS] __attribute__((aligned(64)));
typedef mg_single mg_singles[MG_PARTS] __attribute__((aligned(64)));

/* `power`: two to the exponent that alignment compares, zero for a zero that no alignment has moved; kept only where a
 * step reads it. */
typedef struct {
    mg_fs value, power;
} mg_real;

/* Element i of a register in floats, twice as many a vector; whether a register has such ones, or is of their products,
 * which are made where they are read. */
#define MG_EACH_WIDE for (int l = 0; l < MG_PARTS / 2; l++)
#define MG_WIDE_SINGLES(s, name, i) ((mg_wide_single *)((mg_singles *)(s)->registers[name])[i])
#define MG_IS_SINGLE(s, name) ((s)->singles >> (name) & 1)

/* The settings of a step: registers whose powers it or a later step reads, registers whose powers only a later one
 * reads, and, for the first step of an operation, registers that hold floats, a bit each; and what a rounding is,
 * as in blocks of integers (mg_block.h), and in doubles. */
typedef struct {
    int powers, later, singles;
    mg_rounder codes;
    int rounding, hands_nans; /* NaNs keep their payloads */
    int narrow, single; /* the machine's conversion to FP32 rounds, and what is left is to flush; makes the codes */
    double least, largest, overflow[2], tiny; /* the normal numbers; below `tiny` results are flushed */
    int64_t made; /* the NaN that comes of numbers */
    int met_nans; /* some chain of the block before met one, as the next may */
    int64_t clear, clear_exact,
        clear_flushed; /* masks: zeros that lose their signs: all, zeros of nothing, and zeros that something became */
} mg_real_rounder;

typedef struct {
    MG_BLOCK_FIELDS(mg_real)
    mg_real_rounder *rounder; /* of the step that runs */
    const mg_format *held[MG_REGISTER_COUNT]; /* a format that has all numbers of a register, or null */
    int singles;          /* registers that hold mg_singles instead, a bit each */
    int sticks;           /* `cut` is of this alignment */
    int aligned, finite;  /* registers that its last alignment has moved, and products of formats without infinities and
                             NaNs, a bit each */
    mg_words cut; /* something of a term was cut, and is to be seen by the rounding: half a unit of the sum */
    mg_fs unit;
} mg_reals;

/* Small things ----------------------------------------------------------------------------------------------------- */

MG_INLINE mg_f mg_size(mg_f x) { return (mg_f)((mg_w)x & INT64_MAX); }
MG_INLINE mg_f mg_where(mg_w mask, mg_f x, mg_f y) { return (mg_f)MG_CHOOSE(mask, (mg_w)x, (mg_w)y); }
MG_INLINE mg_w mg_is_nan(mg_f x) { return (mg_w)(x != x); }

MG_INLINE mg_f mg_doubles_of(mg_single x) { return (mg_f)mg_widened((mg_vs)x); }

/* Element i of a register. */
MG_INLINE mg_f mg_value_of(const mg_reals *s, const int single, int name, int32_t i, int l) {
    if (single) return mg_doubles_of(((const mg_singles *)s->registers[name])[i][l]);
    return s->registers[name][i].value[l];
}

/* Product i of elements in floats, which is exact there. */
MG_INLINE mg_f mg_product_of_singles(const mg_reals *s, int32_t i, int l) {
    const mg_singles *a = (const mg_singles *)s->registers[MG_REGISTER_A],
                     *b = (const mg_singles *)s->registers[MG_REGISTER_B];
    return mg_doubles_of(a[i][l] * b[i][l]);
}

/* 2^n; beyond the range of doubles zero or infinity. */
MG_INLINE double mg_power_of_two(int64_t n) {
    const int64_t bits = n < -1022 ? 0 : n > 1023 ? MG_DOUBLE_TOP : (n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The power of two of the leading one, at least `least`. */
MG_INLINE mg_f mg_leading_power(mg_f x, double least) {
    return mg_larger((mg_f)((mg_w)x & MG_DOUBLE_TOP), (mg_f){0} + least);
}

/* The same of what is not zero. */
MG_INLINE mg_f mg_carried_power(mg_f x, double least) {
    return (mg_f)((mg_w)mg_leading_power(x, least) & (mg_w)(x != 0));
}

/* A magnitude below 2^51 units rounded to units, powers of two; `lost`: whether it was none. */
MG_INLINE mg_f mg_to_units(int rounding, mg_w sign, mg_f x, mg_f unit, mg_w *lost) {
    /* 2^52 units leave no bit below one: the addition rounds to the nearest even, and the subtraction is exact. The
     * other directions correct that by one unit, by whether it went up. */
    const mg_f big = MG_TIMES_POWER(unit, 52), sum = x + big, nearest = sum - big;
    const mg_w above = (mg_w)(nearest > x);
    *lost = (mg_w)(nearest != x);
    switch (rounding) {
    case MG_ROUNDING_NEAREST_EVEN: return nearest;
    case MG_ROUNDING_NEAREST_AWAY: return nearest + (mg_f)((mg_w)(x - nearest == unit * 0.5) & (mg_w)unit);
    case MG_ROUNDING_TOWARD_ZERO: return nearest - (mg_f)(above & (mg_w)unit);
    case MG_ROUNDING_DOWN: return nearest - (mg_f)(above & (mg_w)unit) + (mg_f)(*lost & sign & (mg_w)unit);
    case MG_ROUNDING_UP: return nearest - (mg_f)(above & (mg_w)unit) + (mg_f)(*lost & ~sign & (mg_w)unit);
    default: return (mg_f)(((mg_w)sum + above) | (*lost & 1)) - big; /* in units, the last bit of one place above */
    }
}

/* A call whose rounding the compiler knows, since a loop that asks for it is slow. */
#define MG_BY_ROUNDING(rounding, call, ...)                                                      \
    switch (rounding) {                                                                          \
    case MG_ROUNDING_NEAREST_EVEN: call(MG_ROUNDING_NEAREST_EVEN, __VA_ARGS__); break;           \
    case MG_ROUNDING_NEAREST_AWAY: call(MG_ROUNDING_NEAREST_AWAY, __VA_ARGS__); break;           \
    case MG_ROUNDING_TOWARD_ZERO: call(MG_ROUNDING_TOWARD_ZERO, __VA_ARGS__); break;             \
    case MG_ROUNDING_DOWN: call(MG_ROUNDING_DOWN, __VA_ARGS__); break;                           \
    case MG_ROUNDING_UP: call(MG_ROUNDING_UP, __VA_ARGS__); break;                               \
    default: call(MG_ROUNDING_TO_ODD, __VA_ARGS__);                                              \
    }

/* Codes ------------------------------------------------------------------------------------------------------------ */

MG_INLINE mg_f mg_real_of_codes(const mg_format *f, mg_w codes) {
    if (!f->is_float) {
        const int unused = f->bits ? 64 - f->bits : 0; /* a unit without c has codes of no bits */
        return __builtin_convertvector(
            f->is_signed ? codes << unused >> unused : (mg_w)((mg_u)codes << unused >> unused), mg_f);
    }
    const int fraction_bits = f->fraction_bits;
    const int64_t fields_mask = (INT64_C(1) << (f->exponent_bits + fraction_bits)) - 1,
                  hidden = INT64_C(1) << fraction_bits;
    const int64_t least = (int64_t)(1 - f->bias + 1023) << 52,
                  infinity = f->specials == MG_SPECIALS_IEEE ? fields_mask & ~(hidden - 1) : INT64_MAX;
    const mg_w fields = codes >> f->ignored_low & fields_mask, tiny = (mg_w)(fields < hidden) & MG_MASK(f->has_zero);
    /* a subnormal number: with a hidden bit that is subtracted again */
    const mg_w bits = (fields << (52 - fraction_bits)) + ((int64_t)(1023 - f->bias) << 52) + (tiny & MG_UNIT_STEP);
    const mg_w special = ((mg_w)(fields >= infinity) & MG_DOUBLE_TOP) |
        ((mg_w)(fields == fields_mask) & MG_MASK(f->specials == MG_SPECIALS_ALL_ONES_NAN) &
            (MG_DOUBLE_TOP | MG_QUIET_DOUBLE));
    const mg_f size = (mg_f)bits - (mg_f)(tiny & least);
    return (mg_f)((mg_w)size | special |
        (codes << (63 - (f->sign_shift < 0 ? 0 : f->sign_shift)) & (f->sign_shift < 0 ? 0 : MG_SIGN)));
}

/* Scales that are powers of two or a NaN, UE8M0: fewer instructions than mg_real_of_codes needs for all that a format
 * may have. */
static int mg_are_powers(const mg_format *f) {
    return f->is_float && !f->fraction_bits && !f->has_zero && !f->lone_zero && f->sign_shift < 0 &&
        f->specials == MG_SPECIALS_ALL_ONES_NAN;
}

MG_INLINE mg_f mg_power_of_codes(const mg_format *f, mg_w codes) {
    const int64_t mask = (INT64_C(1) << f->exponent_bits) - 1;
    const mg_w fields = codes >> f->ignored_low & mask;
    return (mg_f)(((fields << 52) + ((int64_t)(1023 - f->bias) << 52)) |
        ((mg_w)(fields == mask) & (MG_DOUBLE_TOP | MG_QUIET_DOUBLE)));
}

/* How: what to shift by, and the bits that count. */
typedef struct {
    uint32_t up, mask;
} mg_single_place;

/* Of a format without a sign, whose codes never lie so: nothing. */
MG_INLINE mg_single_place mg_place_of_single(const mg_format *f) {
    if (f->sign_shift < 0) return (mg_single_place){0};
    const uint32_t up = (uint32_t)(31 - f->sign_shift);
    return (mg_single_place){up, ~((UINT32_C(1) << f->ignored_low << up) - 1)};
}

MG_INLINE mg_f mg_real_of_single(mg_single_place at, mg_single_codes codes) {
    return mg_doubles_of((mg_single)(codes << at.up & at.mask));
}

/* A double of a code without sign, not zero or subnormal. */
static double mg_double_of(const mg_format *f, int64_t code) {
    const int64_t fields = code >> f->ignored_low,
                  bits = (fields << (52 - f->fraction_bits)) + ((int64_t)(1023 - f->bias) << 52);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static mg_real_rounder mg_real_rounder_of(const mg_step *step, mg_rounder codes) {
    const mg_format *f = codes.format;
    const int64_t sign_bit = f->sign_shift < 0 ? 0 : INT64_C(1) << f->sign_shift,
                  nearest = step->rounding == MG_ROUNDING_NEAREST_EVEN || step->rounding == MG_ROUNDING_NEAREST_AWAY;
    mg_real_rounder r = {.codes = codes,
        .rounding = step->rounding,
        .hands_nans = step->nan_order_count || step->first_nan,
        .clear = MG_MASK(codes.zero == MG_ZERO_POSITIVE),
        .clear_exact = MG_MASK(codes.zero == MG_ZERO_SIGNED_UNDERFLOW),
        .clear_flushed = MG_MASK(codes.flush_positive)};
    if (!f->is_float) return r;
    r.largest = mg_double_of(
        f, (int64_t)(f->largest >> (f->fraction_bits - (int)codes.kept) << (f->fraction_bits - (int)codes.kept)));
    for (int sign = 0; sign < 2; sign++) {
        const int64_t code = codes.overflow[sign] & ~sign_bit;
        r.overflow[sign] = code == (int64_t)f->infinity ? __builtin_inf() : mg_double_of(f, code);
    }
    r.least = mg_power_of_two(f->min_exponent);
    if (codes.flush) r.tiny = r.least;
    if (codes.flush && codes.flush != MG_FLUSH_BEFORE_ROUNDING &&
        nearest) /* what a rounding carries up to the least stays */
        r.tiny -= mg_power_of_two(f->min_exponent - codes.kept - (codes.flush == MG_FLUSH_UNBOUNDED ? 2 : 1));
    r.made = ((mg_w)mg_real_of_codes(f, mg_splat(codes.nan)))[0];
    r.single = mg_is_ieee(f, 8, 23);
    r.narrow = r.single && codes.kept == 23 && r.rounding == MG_ROUNDING_NEAREST_EVEN && r.overflow[0] > r.largest;
    return r;
}

/* Of results rounded to y: zeros without a sign where there is none. */
MG_INLINE mg_f mg_cleared(const mg_real_rounder *r, mg_f size, mg_f y) {
    const mg_w nothing = (mg_w)(size == 0),
               gone = (mg_w)(y == 0) & (r->clear | (r->clear_exact & nothing) | (r->clear_flushed & ~nothing));
    return (mg_f)((mg_w)y & ~(gone & MG_SIGN));
}

/* Rounds numbers to a format, its subnormal numbers and its overflow. */
MG_INLINE void mg_round_values(const int rounding, const mg_real_rounder *given, mg_f *x) {
    const mg_real_rounder rounder = *given, *r = &rounder; /* which no store can change */
    const double last = mg_power_of_two(-r->codes.kept);
    MG_EACH {
        const mg_w sign = (mg_w)x[l] & MG_SIGN, negative = (mg_w)x[l] >> 63;
        const mg_f size = mg_size(x[l]), kept_size = (mg_f)((mg_w)size & ~(mg_w)(size < r->tiny));
        mg_w lost;
        /* Normalisation: the last bit of a result lies below its leading one, or below the least exponent. */
        const mg_f unit = mg_leading_power(kept_size, r->least) * last,
                   rounded = mg_to_units(rounding, negative, kept_size, unit, &lost);
        const mg_f overflow = mg_where(negative, (mg_f){0} + r->overflow[1], (mg_f){0} + r->overflow[0]);
        const mg_f fits = mg_where((mg_w)(rounded > r->largest), overflow, rounded);
        const mg_f y = mg_where((mg_w)((mg_w)kept_size >= MG_DOUBLE_TOP), kept_size, fits);
        x[l] = mg_cleared(r, size, (mg_f)((mg_w)y | sign));
    }
}

MG_BLOCK_CALL void mg_round_slowly(const mg_real_rounder *r, mg_f *x) {
    MG_BY_ROUNDING(r->rounding, mg_round_values, r, x)
}

MG_INLINE void mg_round_reals(const mg_real_rounder *r, mg_f *x) {
    if (!r->codes.format->is_float) return; /* they are integers */
    if (!r->narrow) mg_round_slowly(r, x);
    else MG_EACH {
        const mg_f size = mg_size(x[l]), y = mg_doubles_of(__builtin_convertvector(x[l], mg_single));
        const mg_f kept = (mg_f)((mg_w)y & ~((mg_w)(size < r->tiny) & INT64_MAX));
        x[l] = r->clear | r->clear_exact | r->clear_flushed ? mg_cleared(r, size, kept) : kept;
    }
}

/* The code of a NaN with its sign and payload. */
MG_INLINE mg_w mg_handed_nan(const mg_format *f, mg_f x) {
    const mg_w fraction = (mg_w)x >> (52 - f->fraction_bits) & ((INT64_C(1) << f->fraction_bits) - 1);
    return (int64_t)f->infinity | fraction << f->ignored_low | (mg_w)((mg_u)x >> 63) << f->sign_shift;
}

/* Integers below 2^53, wrapped or saturated. */
static void mg_encode_integers(const mg_real_rounder *r, const mg_f *x, mg_words codes) {
    const mg_format *f = r->codes.format;
    const double least = f->is_signed ? -mg_power_of_two(f->bits - 1) : 0, largest = (double)f->largest;
    MG_EACH {
        const mg_f low = mg_larger(x[l], (mg_f){0} + least),
                   kept = mg_where((mg_w)(low > largest), (mg_f){0} + largest, low);
        codes[l] = __builtin_convertvector(r->codes.saturate ? kept : x[l], mg_w) & ((INT64_C(1) << f->bits) - 1);
    }
}

/* Codes of numbers that a format holds. */
MG_BLOCK_CALL void mg_encode_reals(const mg_real_rounder *r, const mg_f *x, mg_words codes) {
    const mg_format *f = r->codes.format;
    if (!f->is_float) {
        mg_encode_integers(r, x, codes);
        return;
    }
    const int64_t fraction_bits = f->fraction_bits, bias = 1023 + f->min_exponent, infinity = (int64_t)f->infinity,
                  low = f->ignored_low, sign = f->sign_shift;
    const double last = mg_power_of_two(52 - fraction_bits), least = r->least;
    if (r->single) MG_EACH codes[l] = mg_wide_32((mg_single_codes)__builtin_convertvector(x[l], mg_single));
    else MG_EACH {
        const mg_f size = mg_size(x[l]), power = mg_leading_power(size, least);
        const mg_w infinite = (mg_w)((mg_w)size == MG_DOUBLE_TOP),
                   significand = (mg_w)(size + power * last) & (MG_UNIT_STEP - 1);
        const mg_w fields = (((mg_w)((mg_u)power >> 52) - bias) << fraction_bits) +
            significand; /* a power has no sign */
        codes[l] = MG_CHOOSE(infinite, mg_splat(infinity), fields << low) | (mg_w)((mg_u)x[l] >> 63) << sign;
    }
    mg_words nan;
    MG_KEPT nan[l] = mg_is_nan(x[l]);
    if (!mg_any_of(nan)) return;
    if (r->hands_nans) MG_EACH codes[l] = MG_CHOOSE(nan[l], mg_handed_nan(f, x[l]), codes[l]);
    else MG_EACH codes[l] = MG_CHOOSE(nan[l], mg_splat(r->codes.nan), codes[l]);
}

/* Products and sums ------------------------------------------------------------------------------------------------ */

/* The terms of one group: at, at + by, ... below end. */
typedef struct {
    int32_t at, by, end;
} mg_members;

static mg_members mg_members_of(const mg_step *step, int32_t count, int32_t g) {
    const int32_t size = step->group_size, next = (g + 1) * size;
    if (step->group == MG_GROUP_INTERLEAVED) return (mg_members){g, size, count};
    if (step->group == MG_GROUP_CONTIGUOUS) return (mg_members){g * size, 1, next < count ? next : count};
    return (mg_members){0, 1, count};
}

MG_COLLECT_TERMS(mg_collect_reals, mg_reals)

/* Whether the step behind rounds what a step makes. */
static int mg_rounds_next(const mg_operation *o, const mg_step *step) {
    return step + 1 < o->steps + o->step_count && step[1].op == MG_STEP_ROUND && step[1].of[0] == step->to;
}

/* A register has new numbers, all of a format (or null), whole units of the last alignment or not. */
static void mg_note_written(mg_reals *s, int name, int32_t count, const mg_format *held, int aligned) {
    s->count[name] = count;
    s->held[name] = held;
    s->aligned = (s->aligned & ~(1 << name)) | aligned << name;
    s->finite &= ~(1 << name);
}

/* What a step makes: numbers of a register, or the result. Powers of rounded numbers are those of their values. */
static void mg_put_reals(
    mg_reals *s, const mg_step *step, int32_t count, const mg_format *held, int aligned, int rounded) {
    const mg_real_rounder *r = s->rounder;
    if (step->to == MG_REGISTER_D) {
        mg_words codes;
        mg_encode_reals(r, s->sums[0].value, codes);
        MG_EACH s->result[l] = MG_CHOOSE(s->done[l], s->result[l], codes[l]);
        return;
    }
    for (int32_t i = 0; rounded && r->later >> step->to & 1 && i < count; i++)
        MG_EACH s->sums[i].power[l] = mg_carried_power(s->sums[i].value[l], r->least);
    memcpy(s->registers[step->to], s->sums, (size_t)count * sizeof *s->sums);
    mg_note_written(s, step->to, count, held, aligned);
}

MG_BLOCK_CALL void mg_flush_singles(mg_reals *s, int name, int32_t keep_sign) {
    const int32_t least = (s->held[name]->min_exponent + 127) << 23;
    for (int32_t i = 0; i < s->count[name]; i++) MG_EACH_WIDE {
        const mg_wide_words code = (mg_wide_words)MG_WIDE_SINGLES(s, name, i)[l];
        MG_WIDE_SINGLES(s, name, i)
        [l] = (mg_wide_single)(code & ((mg_wide_words)((code & INT32_MAX) >= least) | keep_sign));
    }
}

static void mg_flush_reals(mg_reals *s, const mg_step *step) {
    const int64_t keep_sign = step->sign == MG_FLUSH_POSITIVE ? 0 : MG_SIGN;
    for (int r = 0; r < step->of_count; r++) {
        const int name = step->of[r];
        const int powers = s->rounder->later >> name & 1;
        const double least = mg_power_of_two(s->held[name]->min_exponent);
        mg_real *x = s->registers[name];
        if (MG_IS_SINGLE(s, name)) {
            mg_flush_singles(s, name, keep_sign ? INT32_MIN : 0);
            continue;
        }
        for (const mg_real *end = x + s->count[name]; x < end; x++) MG_EACH {
            const mg_w kept = ~(mg_w)(mg_size(x->value[l]) < least); /* a NaN, too */
            x->value[l] = (mg_f)((mg_w)x->value[l] & (kept | keep_sign));
            if (powers) x->power[l] = (mg_f)((mg_w)x->power[l] & kept);
        }
    }
}

/* Whether a format holds every product as it is, none of them subnormal. */
static int mg_holds_products(const mg_reals *s, const mg_format *f) {
    const mg_format *a = s->held[MG_REGISTER_A], *b = s->held[MG_REGISTER_B];
    return a->fraction_bits + b->fraction_bits + 1 <= f->fraction_bits &&
        a->max_exponent + b->max_exponent + 2 <= f->max_exponent &&
        a->min_exponent - a->fraction_bits + b->min_exponent - b->fraction_bits >= f->min_exponent;
}

static int mg_has_specials(const mg_format *f) { return f->has_infinity || f->has_nan; }

static void mg_multiply_reals(mg_reals *s, const mg_step *step) {
    const int rounds = step->has_format && !mg_holds_products(s, &step->format);
    mg_note_written(s, step->to, s->count[MG_REGISTER_A], step->has_format ? &step->format : NULL, 0);
    s->finite |= (!step->has_format && !step->has_overflow_exponent && !mg_has_specials(&s->program->a) &&
                     !mg_has_specials(&s->program->b))
        << step->to;
    const int powers = s->rounder->later >> step->to & 1,
              own = s->rounder->powers >> MG_REGISTER_A & 1; /* an alignment gave the factors powers of their own */
    const double least_a = own ? 0 : mg_power_of_two(s->held[MG_REGISTER_A]->min_exponent),
                 least_b = own ? 0 : mg_power_of_two(s->held[MG_REGISTER_B]->min_exponent);
    const int32_t count = MG_IS_SINGLE(s, step->to) ? 0 : s->count[step->to];
    for (int32_t i = 0; i < count; i++) {
        const mg_real *a = &s->registers[MG_REGISTER_A][i], *b = &s->registers[MG_REGISTER_B][i];
        mg_real *p = &s->registers[step->to][i];
        if (powers && !own && !step->normalize) MG_EACH {
            const mg_f x = a->value[l], y = b->value[l], product = x * y;
            p->value[l] = product;
            p->power[l] = (mg_f)((mg_w)(mg_leading_power(x, least_a) * mg_leading_power(y, least_b)) &
                (mg_w)(product != 0));
        } else MG_EACH {
            const mg_f product = a->value[l] * b->value[l];
            p->value[l] = product;
            if (!powers) continue;
            mg_f power = {0};
            if (own) power = a->power[l] * b->power[l]; /* of zeros, too */
            p->power[l] = step->normalize ? mg_where((mg_w)(product != 0), mg_leading_power(product, 0), power) : power;
        }
        if (step->has_overflow_exponent) MG_EACH {
            const mg_f value = p->value[l], infinity = (mg_f)(((mg_w)value & MG_SIGN) | MG_DOUBLE_TOP);
            p->value[l] = mg_where((mg_w)(mg_size(value) >= mg_power_of_two(step->overflow_exponent)), infinity, value);
        }
        if (step->negate == MG_NEGATE_PRODUCT || step->negate == MG_NEGATE_BOTH) MG_EACH p->value[l] = -p->value[l];
        if (rounds) mg_round_reals(s->rounder, p->value);
    }
    mg_f *c = s->registers[MG_REGISTER_C][0].value;
    if (step->negate == MG_NEGATE_C || step->negate == MG_NEGATE_BOTH) MG_EACH c[l] = -c[l];
}

/* Whether element i of the operation has other scales than the one before; `first`: the first element with its
 * scales. */
static int mg_other_scale(const mg_reals *s, int32_t i, int32_t *first) {
    const int32_t k = s->operation->k_index[i], size = s->program->scale_block;
    if (i && k >= *first && k - *first < size) return 0;
    *first = k / size * size;
    return 1;
}

static void mg_scale_reals(mg_reals *s, const mg_step *step) {
    const int32_t elements = s->operation->k_count;
    for (int r = 0; r < step->of_count; r++) {
        const int name = step->of[r];
        const int32_t count = s->count[name], stride = count ? elements / count : 1;
        const mg_real *scale = s->registers[MG_REGISTER_SCALES] - 1;
        for (int32_t i = 0, next = 0, first = 0; i < count; i++) {
            for (const int32_t element = i * stride; next <= element; next++) scale += mg_other_scale(s, next, &first);
            mg_real *x = &s->registers[name][i];
            MG_EACH x->value[l] *= scale->value[l];
            if (s->rounder->later >> name & 1) MG_EACH x->power[l] *= scale->power[l];
        }
        mg_note_written(s, name, count, NULL, 0);
    }
}

/* The first NaN among the operands that a cause speaks of; else `nan` stays. */
static void mg_nan_among(const mg_reals *s, int cause, mg_f *nan) {
    const int first = cause == MG_CAUSE_B ? MG_REGISTER_B : cause == MG_CAUSE_C ? MG_REGISTER_C : MG_REGISTER_A;
    const int last = cause == MG_CAUSE_FACTOR ? MG_REGISTER_B : first;
    for (int32_t i = s->count[first]; i-- > 0;)
        for (int name = last; name >= first; name--) {
            const mg_f *x = s->registers[name][i].value;
            MG_EACH nan[l] = mg_where(mg_is_nan(x[l]), x[l], nan[l]);
        }
}

/* Infinity times zero. */
static void mg_invalid_products(const mg_reals *s, mg_w *found) {
    MG_EACH found[l] = mg_splat(0);
    for (int32_t i = 0; i < s->count[MG_REGISTER_A]; i++) MG_EACH {
        const mg_f x = s->registers[MG_REGISTER_A][i].value[l], y = s->registers[MG_REGISTER_B][i].value[l];
        found[l] |= mg_is_nan(x * y) & ~mg_is_nan(x) & ~mg_is_nan(y);
    }
}

/* Infinities of both signs among the terms of a step; `all`: of c, too. */
static void mg_opposite_reals(const mg_reals *s, const mg_step *step, int all, mg_w *found) {
    const double infinity = __builtin_inf();
    mg_words negative;
    MG_EACH found[l] = negative[l] = mg_splat(0);
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = 0; (all || step->of[r] != MG_REGISTER_C) && i < s->count[step->of[r]]; i++) {
            const mg_f *x = s->registers[step->of[r]][i].value;
            MG_EACH {
                found[l] |= (mg_w)(x[l] == infinity);
                negative[l] |= (mg_w)(x[l] == -infinity);
            }
        }
    MG_EACH found[l] &= negative[l];
}

/* Words of the NaNs that are `open` by the first cause that is there, as mg_nan_by_cause of the interpreter; the others
 * stay. */
static void mg_nans_by_cause(const mg_reals *s, const mg_step *step, mg_w *open, mg_w *words) {
    for (int i = 0; i < step->nans_count && mg_any_of(open); i++) {
        mg_words found;
        mg_fs nan;
        MG_EACH nan[l] = (mg_f){0};
        switch (step->nans_cause[i]) {
        case MG_CAUSE_INVALID_PRODUCT: mg_invalid_products(s, found); break;
        case MG_CAUSE_OPPOSITE_PRODUCTS: mg_opposite_reals(s, step, 0, found); break;
        case MG_CAUSE_OPPOSITE_INFINITIES: mg_opposite_reals(s, step, 1, found); break;
        default:
            mg_nan_among(s, step->nans_cause[i], nan);
            MG_EACH found[l] = mg_is_nan(nan[l]);
        }
        MG_EACH {
            mg_w word = mg_splat((int64_t)step->nans[i]);
            if (step->nans_payload[i])
                word = mg_handed_nan(&s->operation->out_format, (mg_f)((mg_w)nan[l] | MG_QUIET_DOUBLE));
            words[l] = MG_CHOOSE(found[l] & open[l], word, words[l]);
            open[l] &= ~found[l];
        }
    }
}

/* Adds the floats that a step reads, or their products. */
MG_BLOCK_CALL void mg_special_singles(const mg_reals *s, const mg_step *step, mg_f *total) {
    mg_fs sum;
    MG_KEPT sum[l] = total[l];
    for (int r = 0; r < step->of_count; r++)
        for (int32_t i = (s->singles & ~s->finite) >> step->of[r] & 1 ? s->count[step->of[r]] : 0; i-- > 0;) {
            if (step->of[r] > MG_REGISTER_B) MG_KEPT sum[l] += mg_product_of_singles(s, i, l);
            else MG_KEPT sum[l] += mg_value_of(s, 1, step->of[r], i, l);
        }
    memcpy(total, sum, sizeof sum);
}

/* A sum of infinities and NaNs, if any, is what the operation answers. */
static void mg_special_reals(mg_reals *s, const mg_step *step) {
    mg_fs total;
    mg_words special;
    MG_KEPT total[l] = (mg_f){0};
    for (int r = 0; r < step->of_count; r++) {
        const mg_real *x = s->registers[step->of[r]],
                      *end = (s->finite | s->singles) >> step->of[r] & 1 ? x : x + s->count[step->of[r]];
        for (; x < end; x++) MG_KEPT total[l] += x->value[l];
    }
    if (s->singles & ~s->finite) mg_special_singles(s, step, total);
    MG_KEPT special[l] = (mg_w)((mg_w)mg_size(total[l]) >= MG_DOUBLE_TOP);
    if (!mg_any_of(special)) return;
    const mg_rounder *r = &s->rounder->codes;
    mg_words word, open;
    MG_EACH {
        word[l] = mg_splat(r->nan);
        open[l] = mg_is_nan(total[l]);
    }
    mg_nans_by_cause(s, step, open, word);
    MG_EACH {
        const mg_w nan = mg_is_nan(total[l]),
                   infinity = MG_CHOOSE((mg_w)total[l] >> 63, mg_splat(r->infinity[1]), mg_splat(r->infinity[0]));
        s->result[l] = MG_CHOOSE(special[l] & ~s->done[l], MG_CHOOSE(nan, word[l], infinity), s->result[l]);
        s->done[l] |= special[l];
    }
}

/* A sum that rounds down and is zero is -0, but for one of +0 alone (IEEE 754, 6.3). */
MG_INLINE mg_f mg_zero_of_sum(int rounding, mg_f x, mg_f y, mg_f sum) {
    return (
        mg_f)((mg_w)sum | (((mg_w)x | (mg_w)y) & (mg_w)(sum == 0) & MG_MASK(rounding == MG_ROUNDING_DOWN) & MG_SIGN));
}

static void mg_zero_of_terms(const mg_step *step, mg_real *const *terms, int32_t count, mg_f *total) {
    if (step->rounding != MG_ROUNDING_DOWN) return;
    for (int32_t i = 0; i < count; i++)
        MG_EACH total[l] = mg_zero_of_sum(step->rounding, terms[i]->value[l], terms[i]->value[l], total[l]);
}

/* What the additions of all terms but the last lost, as a second double; what a third would have to hold is left. */
static void mg_sum_lost(mg_reals *s, mg_real *const *terms, int32_t count, mg_f *low) {
    MG_EACH {
        mg_f total = terms[0]->value[l];
        low[l] = (mg_f){0};
        for (int32_t i = 1; i + 1 < count; i++) {
            mg_df error, beyond;
            total = mg_two_sum(total, terms[i]->value[l], &error);
            low[l] = mg_two_sum(low[l], error, &beyond);
            s->left[l] |= (mg_w)(beyond != 0) & ~s->done[l];
        }
    }
}

/* The exact sum of numbers that no alignment has brought together, rounded to odd. */
static void mg_sum_apart(mg_reals *s, mg_real *const *terms, int32_t count, mg_f *total) {
    const mg_f *last = terms[count - 1]->value;
    mg_words lost;
    mg_fs low;
    MG_EACH {
        total[l] = terms[0]->value[l];
        lost[l] = mg_splat(0);
        for (int32_t i = 1; i + 1 < count; i++) {
            mg_df error;
            total[l] = mg_two_sum(total[l], terms[i]->value[l], &error);
            lost[l] |= mg_up((mg_w)error, mg_splat(1)); /* of a zero nothing */
        }
    }
    if (count == 1) return;
    if (!mg_any_of(lost)) { /* one double holds the sum of the others */
        MG_EACH total[l] = mg_odd_sum(total[l], last[l]);
        return;
    }
    mg_sum_lost(s, terms, count, low);
    MG_EACH total[l] = mg_odd_sum_of_three(last[l], total[l], low[l]);
}

/* The sum of numbers that a double holds, such as whole units of an alignment. Only this sum sees what these
 * numbers lost together. */
static void mg_sum_plain(mg_reals *s, const mg_step *step, mg_real *const *terms, int32_t count, mg_f *total) {
    mg_fs sum;
    MG_KEPT sum[l] = terms[0]->value[l];
    for (int32_t i = 1; i < count; i++) MG_KEPT sum[l] += terms[i]->value[l];
    MG_KEPT total[l] = sum[l];
    if (step->complement == MG_COMPLEMENT_C) {
        const mg_f *c = s->registers[MG_REGISTER_C][0].value;
        MG_EACH {
            mg_w others = mg_splat(0), some = others;
            for (int32_t i = 0; i < count; i++) {
                others -= ((mg_w)terms[i]->value[l] ^ (mg_w)c[l]) >> 63;
                some |= (mg_w)(terms[i]->power[l] != 0);
            }
            const mg_f complements = __builtin_convertvector(others & some, mg_f) * s->unit[l];
            total[l] = mg_where(
                (mg_w)(complements == 0), total[l], total[l] - (mg_f)((mg_w)complements | ((mg_w)c[l] & MG_SIGN)));
        }
    }
    mg_zero_of_terms(step, terms, count, total);
    if (!s->sticks) return;
    MG_EACH total[l] += (mg_f)(((mg_w)(s->unit[l] * 0.5) & s->cut[l]) |
        ((mg_w)total[l] & MG_SIGN)); /* half a unit, or a zero of its sign */
    s->sticks = 0;
}

/* One IEEE addition. */
static void mg_add_reals(const mg_step *step, const mg_real_rounder *r, int exact, mg_f *x, const mg_f *y) {
    mg_fs sum;
    if (exact) MG_EACH sum[l] = mg_zero_of_sum(step->rounding, x[l], y[l], mg_odd_sum(x[l], y[l]));
    else MG_EACH sum[l] = x[l] + y[l];
    mg_round_reals(r, sum);
    if (step->first_nan) MG_EACH {
        const mg_w first = mg_is_nan(x[l]), second = mg_is_nan(y[l]);
        const mg_f handed = (mg_f)((mg_w)mg_where(first, x[l], y[l]) | MG_QUIET_DOUBLE);
        sum[l] = mg_where(first | second, handed, mg_where(mg_is_nan(sum[l]), (mg_f)mg_splat(r->made), sum[l]));
    }
    memcpy(x, sum, sizeof sum);
}

/* One of FP32's own: a sum that is subnormal is exact, so that all ways to flush it are one. */
MG_INLINE void mg_add_singles(
    const mg_step *step, const mg_real_rounder *r, int exact, mg_single *x, const mg_single *y) {
    const int32_t kept = r->tiny > 0 ? 1 << 23 : 0;
    (void)step, (void)exact;
    MG_EACH {
        const mg_single_words code = (mg_single_words)(x[l] + y[l]);
        x[l] = (mg_single)(code & (((code & INT32_MAX) >= kept) | INT32_MIN));
    }
}

/* Additions of terms in a step's order. */
#define MG_REDUCE(name, add, number)                                                                                 \
    static void name(const mg_step *step, const mg_real_rounder *r, int exact, mg_real *const *terms, int32_t count, \
        number *total) {                                                                                             \
        number second[MG_PARTS] __attribute__((aligned(64)));                                                        \
        if (step->order == MG_ORDER_TREE && count > 1) {                                                             \
            name(step, r, exact, terms, count / 2, total);                                                           \
            name(step, r, exact, terms + count / 2, count - count / 2, second);                                      \
            add(step, r, exact, total, second);                                                                      \
            return;                                                                                                  \
        }                                                                                                            \
        MG_EACH total[l] = __builtin_convertvector(terms[0]->value[l], number);                                      \
        for (int32_t i = 1; i < count; i++) {                                                                        \
            MG_EACH second[l] = __builtin_convertvector(terms[i]->value[l], number);                                 \
            add(step, r, exact, total, second);                                                                      \
        }                                                                                                            \
    }
MG_REDUCE(mg_reduce_doubles, mg_add_reals, mg_f)
MG_REDUCE(mg_reduce_singles, mg_add_singles, mg_single)

/* `exact`: the sum of two numbers may not be rounded to a double first. */
static void mg_reduce_reals(
    const mg_step *step, const mg_real_rounder *r, int exact, mg_real *const *terms, int32_t count, mg_f *total) {
    if (exact || !r->narrow || step->first_nan || r->clear | r->clear_exact | r->clear_flushed) {
        mg_reduce_doubles(step, r, exact, terms, count, total);
        return;
    }
    mg_single sum[MG_PARTS] __attribute__((aligned(64)));
    mg_reduce_singles(step, r, exact, terms, count, sum);
    MG_EACH total[l] = mg_doubles_of(sum[l]);
}

/* Whether a format has every number of a register. */
static int mg_has_all(const mg_reals *s, const mg_format *to, int name) {
    const mg_format *f = s->held[name];
    return f && f->fraction_bits <= to->fraction_bits && f->max_exponent <= to->max_exponent &&
        f->min_exponent - f->fraction_bits >= to->min_exponent - to->fraction_bits;
}

/* Whether the sum of two numbers of this step may be rounded to a double first (Figueroa, SIGNUM Newsletter 30, 1995):
 * it rounds to the nearest, and both are numbers of the format that it rounds to. */
static int mg_rounds_twice(const mg_reals *s, const mg_step *step) {
    int fits = step->rounding == MG_ROUNDING_NEAREST_EVEN;
    for (int r = 0; r < step->of_count; r++) fits &= mg_has_all(s, &step->format, step->of[r]);
    return fits;
}

/* The power of a sum of products of floats: that of its step, where any of them is not zero. */
MG_INLINE void mg_power_of_products(const mg_reals *s, mg_members m, double power, mg_real *sum) {
    mg_words zero;
    MG_KEPT zero[l] = (mg_w)(sum->value[l] == 0);
    for (const int looks = mg_any_of(zero); looks && m.at < m.end; m.at += m.by)
        MG_KEPT zero[l] &= (mg_w)(mg_product_of_singles(s, m.at, l) == 0);
    MG_EACH sum->power[l] = (mg_f)(~zero[l] & (mg_w)((mg_f){0} + power));
}

/* Sums of groups of products of floats. */
MG_BLOCK_CALL void mg_sum_singles(mg_reals *s, const mg_step *step) {
    const int powers = s->rounder->later >> step->to & 1;
    const int32_t count = s->count[step->of[0]], groups = mg_group_count(step, count);
    for (int32_t g = 0; g < groups; g++) {
        const mg_members members = mg_members_of(step, count, g);
        mg_fs total;
        MG_KEPT total[l] = -(mg_f){0}; /* which changes no sign of a zero */
        for (mg_members m = members; m.at < m.end; m.at += m.by) MG_KEPT total[l] += mg_product_of_singles(s, m.at, l);
        MG_KEPT s->sums[g].value[l] = total[l];
        if (powers) mg_power_of_products(s, members, mg_power_of_two(step->exponent), &s->sums[g]);
    }
    mg_put_reals(s, step, groups, NULL, 0, 0);
}

/* `apart`: an exact sum of numbers that are not aligned goes straight into a rounding; all others fit a double. */
static void mg_sum_reals(mg_reals *s, const mg_step *step, int apart) {
    if (MG_IS_SINGLE(s, step->of[0])) {
        mg_sum_singles(s, step);
        return;
    }
    const int32_t count = mg_collect_reals(s, step), groups = mg_group_count(step, count);
    const int additions = step->op == MG_STEP_ADDITIONS, exact = additions && !mg_rounds_twice(s, step);
    /* products have no power where a sum with an exponent of its own alone reads it: zeros, or what has one, of which
     * any bit shows it */
    const int by_values = !(s->rounder->powers >> step->of[0] & 1);
    int aligned = 1, fewest = count;
    for (int r = 0; r < step->of_count; r++) aligned &= s->aligned >> step->of[r] & 1;
    for (int32_t g = 0; g < groups; g++) {
        mg_real *sum = &s->sums[g];
        mg_members m = mg_members_of(step, count, g);
        mg_real **picked = m.by == 1 ? s->terms + m.at : s->terms + count;
        int32_t members = m.by == 1 ? m.end - m.at : 0;
        for (; m.by > 1 && m.at < m.end; m.at += m.by) picked[members++] = s->terms[m.at];
        if (members < fewest) fewest = members;
        if (additions) mg_reduce_reals(step, s->rounder, exact, picked, members, sum->value);
        else if (aligned || !apart) mg_sum_plain(s, step, picked, members, sum->value);
        else {
            mg_sum_apart(s, picked, members, sum->value);
            mg_zero_of_terms(step, picked, members, sum->value);
        }
        if (!(s->rounder->later >> step->to & 1)) continue;
        mg_fs power;
        MG_EACH power[l] = (mg_f){0};
        if (additions && members > 1)
            MG_EACH power[l] = mg_carried_power(sum->value[l], s->rounder->least); /* rounded; one term alone is not */
        else if (by_values)
            for (int32_t i = 0; i < members; i++)
                MG_KEPT power[l] = (mg_f)((mg_w)power[l] | (mg_w)mg_size(picked[i]->value[l]));
        else for (int32_t i = 0; i < members; i++) MG_EACH power[l] = mg_larger(power[l], picked[i]->power[l]);
        if (step->has_exponent)
            MG_EACH power[l] = (mg_f)((mg_w)((mg_f){0} + mg_power_of_two(step->exponent)) &
                (mg_w)((mg_w)power[l] != 0));
        memcpy(sum->power, power, sizeof power);
    }
    mg_put_reals(s, step, groups, additions && fewest > 1 ? &step->format : NULL, aligned && !additions, 0);
}

#if MG_V > 4
/* Whether a chain is one of FP32's own fused multiply-adds: operands and what it starts from are numbers of FP32, as is
 * each sum. */
static int mg_fuses(const mg_reals *s, const mg_step *step) {
    const mg_real_rounder *r = s->rounder;
    int fits = MG_IS_SINGLE(s, MG_REGISTER_A);
    fits &= r->narrow && step->start != MG_START_PRODUCT && r->codes.flush != MG_FLUSH_BEFORE_ROUNDING &&
        !r->codes.flush_positive && r->codes.zero == MG_ZERO_SIGNED;
    for (int name = MG_REGISTER_A; name <= (step->start == MG_START_C ? MG_REGISTER_C : MG_REGISTER_B); name++)
        fits &= mg_has_all(s, &step->format, name);
    return fits;
}

/* Such a chain of sums; 0 where a lane has a NaN, unless they are looked after (`nans`), or the least normal number,
 * which before it was rounded may have been one to flush, unless the machine flushes by the rule of the step
 * (`flushes`). */
MG_INLINE int mg_chain_as(
    const mg_reals *s, const mg_step *step, const int nans, const int flushes, mg_members m, mg_wide_single *sum) {
    const int32_t least = 1 << 23, kept = s->rounder->tiny > 0 ? least : 0, infinity = 0xff << 23,
                  made = (int32_t)s->rounder->codes.nan;
    mg_wide_single numbers[MG_PARTS / 2] = {{0}};
    mg_wide_words unclear = {0};
    for (; m.at < m.end; m.at += m.by) {
        const mg_wide_single *a = MG_WIDE_SINGLES(s, MG_REGISTER_A, m.at),
                             *b = MG_WIDE_SINGLES(s, MG_REGISTER_B, m.at), *const operands[3] = {a, b, sum};
        const mg_wide_single *first[3] = {numbers, numbers, numbers}; /* whose NaN is handed on, if it is one */
        for (int n = 0; nans && n < step->nan_order_count; n++) first[n] = operands[step->nan_order[n]];
        MG_EACH_WIDE {
            mg_wide_words code = (mg_wide_words)mg_fused((mg_vf)a[l], (mg_vf)b[l], (mg_vf)sum[l]);
            if (nans && step->nan_order_count)
                code = MG_CHOOSE((mg_wide_words)((code & INT32_MAX) > infinity), (mg_wide_words){0} + made, code);
            for (int n = nans ? 2 : -1; n >= 0; n--) {
                const mg_wide_single x = first[n][l];
                code = MG_CHOOSE((mg_wide_words)(x != x), (mg_wide_words)x | 1 << 22, code);
            }
            const mg_wide_words size = code & INT32_MAX;
            unclear |= ((mg_wide_words)(size == least) & -!flushes) | ((mg_wide_words)(size > infinity) & -!nans);
            sum[l] = (mg_wide_single)(code & ((size >= kept) | INT32_MIN));
        }
    }
    return !mg_any_word((mg_w)unclear);
}

/* One whose subnormal results the machine flushes: it does so by what rounding makes of them where exponents have no
 * bound. */
MG_BLOCK_CALL int mg_chain_flushing(
    const mg_reals *s, const mg_step *step, int nans, mg_members m, mg_wide_single *sum) {
    return nans ? mg_chain_as(s, step, 1, 1, m, sum) : mg_chain_as(s, step, 0, 1, m, sum);
}

MG_BLOCK_CALL int mg_chain_keeping(
    const mg_reals *s, const mg_step *step, int nans, mg_members m, mg_wide_single *sum) {
    return nans ? mg_chain_as(s, step, 1, 0, m, sum) : mg_chain_as(s, step, 0, 0, m, sum);
}

static int mg_chain_fused(const mg_reals *s, const mg_step *step, int nans, mg_members m, mg_f *total) {
    mg_singles sum;
    int done;
    MG_EACH sum[l] = __builtin_convertvector(total[l], mg_single);
    if (s->rounder->codes.flush == MG_FLUSH_UNBOUNDED &&
        mg_flushes_rounded) { /* a subnormal number takes the machine a hundred cycles, one that it flushes none */
        const unsigned before = _mm_getcsr();
        _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
        done = mg_chain_flushing(s, step, nans, m, (mg_wide_single *)sum);
        _mm_setcsr(before);
    } else done = mg_chain_keeping(s, step, nans, m, (mg_wide_single *)sum);
    if (done) MG_EACH total[l] = mg_doubles_of(sum[l]);
    return done;
}
#endif

/* Chains of fused multiply-adds. */
static void mg_fma_reals(mg_reals *s, const mg_step *step) {
    const int32_t count = s->count[MG_REGISTER_A], groups = mg_group_count(step, count);
    mg_real_rounder *r = s->rounder;
    int fused = 0;
#if MG_V > 4
    const int fuses = mg_fuses(s, step);
#endif
    for (int32_t g = 0; g < groups; g++) {
        mg_f *total = s->sums[g].value;
        int started = step->start != MG_START_PRODUCT;
        MG_EACH total[l] = step->start == MG_START_C ? s->registers[MG_REGISTER_C][0].value[l] : (mg_f){0};
#if MG_V > 4
        /* a word that is no quiet NaN would become one on its way */
        const mg_members members = mg_members_of(step, count, g);
        fused = fuses && !r->met_nans && mg_chain_fused(s, step, 0, members, total);
        if (fuses && !fused && r->codes.nan >> 22 & 1) {
            fused = mg_chain_fused(s, step, 1, members, total);
            mg_words nan;
            MG_EACH nan[l] = mg_is_nan(total[l]);
            r->met_nans = fused && mg_any_of(nan);
        }
#endif
        for (mg_members m = mg_members_of(step, count, g); !fused && m.at < m.end; m.at += m.by) {
            mg_fs a, b, sum;
            const mg_f *const operands[3] = {a, b, total};
            MG_EACH {
                a[l] = mg_value_of(s, MG_IS_SINGLE(s, MG_REGISTER_A), MG_REGISTER_A, m.at, l);
                b[l] = mg_value_of(s, MG_IS_SINGLE(s, MG_REGISTER_B), MG_REGISTER_B, m.at, l);
                sum[l] = a[l] * b[l];
            }
            if (started)
                MG_EACH sum[l] = mg_zero_of_sum(step->rounding, sum[l], total[l], mg_odd_sum(sum[l], total[l]));
            mg_round_reals(r, sum);
            if (step->nan_order_count) MG_EACH sum[l] = mg_where(mg_is_nan(sum[l]), (mg_f)mg_splat(r->made), sum[l]);
            for (int n = step->nan_order_count - 1; n >= 0; n--) MG_EACH {
                const mg_f x = operands[step->nan_order[n]][l];
                const mg_w handed = mg_is_nan(x) & MG_MASK(started || operands[step->nan_order[n]] != total);
                sum[l] = mg_where(handed, (mg_f)((mg_w)x | MG_QUIET_DOUBLE), sum[l]);
            }
            memcpy(total, sum, sizeof sum);
            started = 1;
        }
    }
    mg_put_reals(s, step, groups, &step->format, 0, 1);
}

/* Alignment and rounding ------------------------------------------------------------------------------------------- */

/* What one group aligns to; zero: nothing but zeros. */
static void mg_maximum_reals(const mg_reals *s, const mg_step *step, int32_t count, int32_t g, mg_f *maximum) {
    const int candidates = step->maximum_count ? step->maximum_count : 1,
              fixed = step->has_exponent || (step->has_floor && !step->maximum_count);
    MG_EACH maximum[l] = (mg_f){0} + (fixed ? mg_power_of_two(step->has_exponent ? step->exponent : step->floor) : 0);
    if (step->has_exponent) return;
    for (int j = 0; j < candidates; j++) {
        const int leading = step->maximum_count && step->maximum_leading[j],
                  of = step->maximum_count ? step->maximum_of[j] : -1;
        const double plus = mg_power_of_two(step->maximum_count ? step->maximum_plus[j] : 0);
        const double least = step->maximum_count && step->maximum_has_least[j] ? mg_power_of_two(step->maximum_least[j])
                                                                               : 0;
        mg_fs largest;
        MG_KEPT largest[l] = (mg_f){0} + least;
        for (mg_members m = mg_members_of(step, count, g); m.at < m.end; m.at += m.by) {
            const mg_real *x = s->terms[m.at];
            if (!(of >> s->owner[m.at] & 1)) continue;
            if (leading) MG_KEPT largest[l] = mg_larger(largest[l], mg_leading_power(x->value[l], 0));
            else MG_KEPT largest[l] = mg_larger(largest[l], x->power[l]);
        }
        MG_KEPT maximum[l] = mg_larger(maximum[l], largest[l] * plus);
    }
}

/* Moves a number to a maximum. `plain`: of the step, only the rounding is to be looked at. */
MG_INLINE void mg_align_real(
    const int rounding, mg_reals *s, const mg_step *step, const int plain, const mg_f *maximum, int r, mg_real *x) {
    const double last = mg_power_of_two(-step->fraction_bits[r]),
                 window = plain || step->window[r] < 0 ? 0 : mg_power_of_two(-step->window[r]);
    const double spared = mg_power_of_two(plain || step->spared[r] == MG_NOT_GIVEN ? INT32_MAX : step->spared[r]);
    const int limited = !plain && (step->window[r] >= 0 || step->spared[r] != MG_NOT_GIVEN),
              powers = s->rounder->later >> step->of[r] & 1;
    if (plain && (rounding == MG_ROUNDING_TOWARD_ZERO || rounding == MG_ROUNDING_DOWN)) {
        /* an integer of units, which a multiplication by a power of two makes; zeros alone have no unit */
        MG_EACH {
            const mg_f unit = maximum[l] * last, units = x->value[l] * (mg_f)(2 * MG_DOUBLE_ONE - (mg_w)unit);
            x->value[l] = (mg_f)(rounding == MG_ROUNDING_DOWN ? mg_floor(units) : mg_whole(units)) * unit;
            if (powers) x->power[l] = mg_where((mg_w)(x->power[l] != 0), maximum[l], x->power[l]);
            s->unit[l] = unit;
        }
        return;
    }
    MG_EACH {
        const mg_f value = x->value[l], size = mg_size(value), unit = maximum[l] * last;
        const mg_w sign = (mg_w)value & MG_SIGN, negative = (mg_w)value >> 63;
        mg_w lost, has_power = (mg_w)(x->power[l] != 0);
        mg_f kept = mg_to_units(rounding, negative, size, unit, &lost);
        if (!plain && step->has_exponent) kept = mg_where((mg_w)(size >= MG_TIMES_POWER(unit, 51)), size, kept);
        if (!plain && step->maximum_count) {
            s->left[l] |= (mg_w)(size >= MG_TIMES_POWER(unit, 46)) & ~s->done[l];
            has_power &= (mg_w)(maximum[l] != 0);
        }
        if (limited) {
            const mg_w outside = (mg_w)(x->power[l] < maximum[l] * window) |
                ((mg_w)(unit > spared) & negative & (mg_w)(size < unit));
            kept = (mg_f)((mg_w)kept & ~outside);
            lost &= ~outside;
        }
        if (!plain && step->cut == MG_CUT_STICKY_OR) s->cut[l] |= lost;
        if (!plain && step->cut == MG_CUT_STICKY_ADDED) kept += (mg_f)((mg_w)(unit * 0.5) & lost);
        x->value[l] = (mg_f)((mg_w)kept | sign);
        if (powers) x->power[l] = mg_where(has_power, maximum[l], x->power[l]);
        s->unit[l] = unit;
    }
}

/* The terms of one group. */
MG_BLOCK_CALL void mg_align_group(mg_reals *s, const mg_step *step, const mg_f *maximum, mg_members m) {
    const int alike = step->cut == MG_CUT_DROPPED && !step->has_exponent && !step->maximum_count;
    for (; m.at < m.end; m.at += m.by) {
        const int r = s->owner[m.at];
        mg_real *x = s->terms[m.at];
        if (alike && step->window[r] < 0 && step->spared[r] == MG_NOT_GIVEN)
            MG_BY_ROUNDING(step->roundings[0], mg_align_real, s, step, 1, maximum, r, x)
        else MG_BY_ROUNDING(step->roundings[0], mg_align_real, s, step, 0, maximum, r, x)
    }
}

static void mg_align_reals(mg_reals *s, const mg_step *step) {
    const int32_t count = mg_collect_reals(s, step), groups = mg_group_count(step, count);
    s->aligned = 0;
    s->sticks = step->cut == MG_CUT_STICKY_OR;
    if (s->sticks) mg_clear(s->cut);
    for (int r = 0; r < step->of_count; r++) {
        if (!step->has_exponent) s->aligned |= 1 << step->of[r]; /* else the numbers may lie far above their units */
        s->held[step->of[r]] = NULL;
    }
    for (int32_t g = 0; g < groups; g++) {
        mg_fs maximum;
        mg_maximum_reals(s, step, count, g, maximum);
        mg_align_group(s, step, maximum, mg_members_of(step, count, g));
    }
}

static void mg_round_step_reals(mg_reals *s, const mg_step *step) {
    const int32_t count = step->to == MG_REGISTER_D ? 1 : s->count[step->of[0]];
    for (int32_t i = 0; i < count; i++) {
        memcpy(s->sums[i].value, s->registers[step->of[0]][i].value, sizeof(mg_fs));
        mg_round_reals(s->rounder, s->sums[i].value);
    }
    mg_put_reals(s, step, count, &step->format, 0, 1);
}

/* Operations ------------------------------------------------------------------------------------------------------- */

/* The number of a result before, or of c. */
static void mg_take_reals(const mg_format *f, const mg_words codes, int powers, mg_real *x) {
    if (mg_fits_single(f)) {
        const mg_single_place place = mg_place_of_single(f);
        MG_EACH x->value[l] = mg_real_of_single(place, mg_narrow_32(codes[l]));
    } else MG_EACH x->value[l] = mg_real_of_codes(f, codes[l]);
    if (powers) MG_EACH x->power[l] = mg_carried_power(x->value[l], mg_power_of_two(f->min_exponent));
}

#if MG_HAS_HALVES
/* A vector of codes as codes of FP16, whose numbers are the format's times a power of two. `signed_bytes`: a byte's
 * sign, widened, is where the sign of FP16 is, and below it, too. */
MG_INLINE mg_many_halves mg_halves_of(
    const mg_format *f, const int signed_bytes, const int makes_nans, const char *at) {
    const uint16_t fields_mask = (uint16_t)((1 << (f->exponent_bits + f->fraction_bits)) - 1),
                   sign = f->sign_shift < 0 ? 0 : 0x8000;
    const uint16_t nan = f->specials == MG_SPECIALS_ALL_ONES_NAN ? fields_mask : UINT16_MAX,
                   quiet = 0x7e00; /* no fields are UINT16_MAX */
    const int up = 10 - f->fraction_bits, sign_up = f->sign_shift < 0 ? 0 : 15 - f->sign_shift;
    if (signed_bytes) {
        const mg_many_halves half = mg_wide_signed_bytes(at) * (uint16_t)(1 << up) &
            (uint16_t)(sign | fields_mask << up);
        if (!makes_nans) return half;
        return half | ((mg_many_halves)((half & 0x7fff) == (uint16_t)(nan << up)) & quiet);
    }
    const mg_many_halves word = f->storage == 8 ? mg_wide_bytes(at) : *(const mg_many_halves *)at,
                         fields = word & fields_mask;
    return fields << up | (word << sign_up & sign) | ((mg_many_halves)(fields == nan) & quiet);
}

/* The elements of an operand at these places, in doubles, or `single`. */
MG_INLINE void mg_load_halves_as(const mg_format *f, const int single, const int signed_bytes, const int makes_nans,
    const char *codes, const int32_t *places, int32_t count, void *numbers) {
    const mg_format format = *f; /* which no store can change */
    const double scale = mg_power_of_two(15 - f->bias);
    const float single_scale = (float)scale;
    for (int32_t i = 0; i < count; i++) for (int lane = 0; lane < MG_BLOCK_LANES; lane += 4 * MG_WORDS) {
            const mg_many_halves half = mg_halves_of(
                &format, signed_bytes, makes_nans, codes + (places[i] * MG_BLOCK_LANES + lane) * (format.storage / 8));
            mg_wide_single *wide = (mg_wide_single *)((char *)((mg_singles *)numbers)[i] + lane * sizeof(float));
            mg_f *value = ((mg_real *)numbers)[i].value + lane / MG_WORDS;
            if (single)
                for (int l = 0; l < 2; l++)
                    wide[l] = (mg_wide_single)mg_floats_of_halves((const char *)&half + 4 * MG_WORDS * l) *
                        single_scale;
            else
                for (int l = 0; l < 4; l++)
                    value[l] = mg_doubles_of_halves((const char *)&half + 2 * MG_WORDS * l) * scale;
    }
}

MG_INLINE void mg_load_halves(
    const mg_format *f, const int single, const char *codes, const int32_t *places, int32_t count, void *numbers) {
    const int signed_bytes = f->storage == 8 && f->sign_shift == 7 && f->fraction_bits > 1;
    if (!signed_bytes) mg_load_halves_as(f, single, 0, 1, codes, places, count, numbers);
    else if (f->specials == MG_SPECIALS_ALL_ONES_NAN) mg_load_halves_as(f, single, 1, 1, codes, places, count, numbers);
    else mg_load_halves_as(f, single, 1, 0, codes, places, count, numbers);
}
#endif

/* The elements of an operand at these places, in a format that holds them. */
MG_BLOCK_CALL void mg_load_reals(const mg_format *f, const mg_format *held, const char *codes, const int32_t *places,
    int32_t count, int powers, mg_real *x) {
    const ptrdiff_t width = MG_BLOCK_LANES * (f->storage / 8);
#if MG_HAS_HALVES
    if (mg_is_ieee(f, 5, 10)) {
        for (int32_t i = 0; i < count; i++)
            MG_EACH x[i].value[l] = mg_doubles_of_halves(codes + places[i] * width + 2 * MG_WORDS * l);
    } else if (mg_fits_halves(f)) {
        mg_load_halves(f, 0, codes, places, count, x);
    } else
#endif
    if (mg_fits_single(f)) {
        const mg_single_place place = mg_place_of_single(f);
        for (int32_t i = 0; i < count; i++) {
            const char *at = codes + places[i] * width;
            if (f->storage == 32) MG_EACH x[i].value[l] = mg_real_of_single(place, ((const mg_single_codes *)at)[l]);
            else MG_EACH x[i].value[l] = mg_real_of_single(place, mg_wide_codes(at + 2 * MG_WORDS * l));
        }
    } else {
        for (int32_t i = 0; i < count; i++) {
            mg_words wide;
            mg_widen(codes + places[i] * width, f->storage, wide);
            if (mg_are_powers(f)) MG_EACH x[i].value[l] = mg_power_of_codes(f, wide[l]);
            else MG_EACH x[i].value[l] = mg_real_of_codes(f, wide[l]);
        }
    }
    for (int32_t i = 0; powers && i < count; i++)
        MG_EACH x[i].power[l] = mg_carried_power(x[i].value[l], mg_power_of_two(held->min_exponent));
}

/* The same in floats, which have the power of two of the format. */
MG_BLOCK_CALL void mg_load_singles(
    const mg_format *f, const char *codes, const int32_t *places, int32_t count, mg_singles *x) {
    const ptrdiff_t width = MG_BLOCK_LANES * (f->storage / 8);
#if MG_HAS_HALVES
    if (mg_is_ieee(f, 5, 10)) {
        for (int32_t i = 0; i < count; i++)
            MG_EACH_WIDE((mg_wide_single *)x[i])
            [l] = (mg_wide_single)mg_floats_of_halves(codes + places[i] * width + 4 * MG_WORDS * l);
        return;
    }
    if (mg_fits_halves(f) && f->bias > -64 && f->bias < 64) {
        mg_load_halves(f, 1, codes, places, count, x);
        return;
    }
#endif
    const mg_single_place place = mg_place_of_single(f);
    for (int32_t i = 0; i < count; i++) {
        const char *at = codes + places[i] * width;
        mg_real number;
        if (!mg_fits_single(f)) mg_load_reals(f, f, codes, places + i, 1, 0, &number);
        if (!mg_fits_single(f)) MG_EACH x[i][l] = __builtin_convertvector(number.value[l], mg_single);
        else if (f->storage == 32)
            MG_EACH x[i][l] = (mg_single)(((const mg_single_codes *)at)[l] << place.up & place.mask);
        else MG_EACH x[i][l] = (mg_single)(mg_wide_codes(at + 2 * MG_WORDS * l) << place.up & place.mask);
    }
}

/* a or b, as an operation holds it. */
MG_INLINE void mg_load_elements(mg_reals *s, int name, const mg_format *f, const char *codes) {
    const mg_operation *o = s->operation;
    mg_note_written(s, name, o->k_count, o->has_operand_format ? &o->operand_format : f, 0);
    if (MG_IS_SINGLE(s, name)) mg_load_singles(f, codes, o->k_index, o->k_count, (mg_singles *)s->registers[name]);
    else
        mg_load_reals(
            f, s->held[name], codes, o->k_index, o->k_count, s->rounder->powers >> name & 1, s->registers[name]);
}

/* The product of two scales that are powers of two. */
MG_BLOCK_CALL void mg_load_powers(
    const mg_format *a, const mg_format *b, const char *a_codes, const char *b_codes, mg_real *x) {
    mg_words of_a, of_b;
    mg_widen(a_codes, a->storage, of_a);
    mg_widen(b_codes, b->storage, of_b);
    MG_EACH {
        x->value[l] = mg_power_of_codes(a, of_a[l]) * mg_power_of_codes(b, of_b[l]);
        x->power[l] = (mg_f)((mg_w)x->value[l] & MG_DOUBLE_TOP);
    }
}

/* The product of the two scales of each element, once for elements in a row that share them. */
static void mg_load_scales(mg_reals *s) {
    const mg_program *p = s->program;
    const mg_operation *o = s->operation;
    const int powers = s->rounder->powers >> MG_REGISTER_SCALES & 1,
              are_powers = mg_are_powers(&p->scale_a) && mg_are_powers(&p->scale_b);
    mg_real *x = s->registers[MG_REGISTER_SCALES], y;
    for (int32_t i = 0, first = 0; i < o->k_count; i++) {
        if (!mg_other_scale(s, i, &first)) continue;
        const int32_t block = first / p->scale_block;
        if (are_powers) {
            mg_load_powers(&p->scale_a, &p->scale_b,
                s->codes->scale_a + block * MG_BLOCK_LANES * (p->scale_a.storage / 8),
                s->codes->scale_b + block * MG_BLOCK_LANES * (p->scale_b.storage / 8), x++);
            continue;
        }
        mg_load_reals(&p->scale_a, &p->scale_a, s->codes->scale_a, &block, 1, powers, x);
        mg_load_reals(&p->scale_b, &p->scale_b, s->codes->scale_b, &block, 1, powers, &y);
        MG_EACH x->value[l] *= y.value[l];
        if (powers) MG_EACH x->power[l] *= y.power[l];
        x++;
    }
    s->count[MG_REGISTER_SCALES] = (int32_t)(x - s->registers[MG_REGISTER_SCALES]);
}

static void mg_run_real_steps(mg_reals *s) {
    for (int32_t i = 0; i < s->operation->step_count; i++, s->rounder++) {
        const mg_step *step = &s->operation->steps[i];
        switch (step->op) {
        case MG_STEP_FLUSH: mg_flush_reals(s, step); break;
        case MG_STEP_MULTIPLY: mg_multiply_reals(s, step); break;
        case MG_STEP_SCALE: mg_scale_reals(s, step); break;
        case MG_STEP_SPECIAL_VALUES: mg_special_reals(s, step); break;
        case MG_STEP_ALIGN: mg_align_reals(s, step); break;
        case MG_STEP_SUM:
        case MG_STEP_ADDITIONS: mg_sum_reals(s, step, mg_rounds_next(s->operation, step)); break;
        case MG_STEP_FMA: mg_fma_reals(s, step); break;
        default: mg_round_step_reals(s, step);
        }
    }
}

/* Registers whose powers step i or a later one reads, a bit each; with `later`, registers that a later one reads. */
static int mg_powers_read(const mg_operation *o, int32_t i, int later) {
    const mg_step *step = &o->steps[i];
    int of = 0, aligned = 0;
    for (int r = 0; r < step->of_count; r++) of |= 1 << step->of[r];
    for (int32_t j = 0; j < i; j++) aligned |= o->steps[j].op == MG_STEP_ALIGN;
    switch (step->op) {
    case MG_STEP_MULTIPLY: return aligned ? later | 1 << MG_REGISTER_A | 1 << MG_REGISTER_B : later;
    case MG_STEP_ALIGN: return later | of;
    case MG_STEP_SCALE: return later | (of & later ? 1 << MG_REGISTER_SCALES : 0);
    case MG_STEP_SUM: /* with an exponent of its own, products are zeros or have a power */
        if (step->complement != MG_COMPLEMENT_C &&
            (!(later >> step->to & 1) || (step->has_exponent && of == 1 << MG_REGISTER_PRODUCTS && !aligned)))
            return later;
        return later | of;
    case MG_STEP_ADDITIONS: return later >> step->to & 1 ? later | of : later;
    default: return later;
    }
}

static void mg_begin_reals(mg_reals *s, const mg_operation *o, mg_words *results) {
    const mg_program *p = s->program;
    s->operation = o;
    s->aligned = s->finite = 0;
    s->singles = s->rounder->singles;
    s->sticks = 0;
    for (int i = 0; i < MG_REGISTER_COUNT; i++) s->count[i] = 0;
    mg_clear(s->done);
    mg_load_elements(s, MG_REGISTER_A, &p->a, s->codes->a);
    mg_load_elements(s, MG_REGISTER_B, &p->b, s->codes->b);
    if (p->scale_block) mg_load_scales(s);
    mg_take_reals(
        &o->seed_format, results[o->seed], s->rounder->powers >> MG_REGISTER_C & 1, &s->registers[MG_REGISTER_C][0]);
    s->count[MG_REGISTER_C] = 1;
    for (int32_t j = 0; j < o->addend_count; j++)
        mg_take_reals(&o->out_format, results[o->addends[j]], s->rounder->powers >> MG_REGISTER_ADDENDS & 1,
            &s->registers[MG_REGISTER_ADDENDS][j]);
    s->count[MG_REGISTER_ADDENDS] = o->addend_count;
    s->held[MG_REGISTER_C] = &o->seed_format;
    s->held[MG_REGISTER_ADDENDS] = &o->out_format;
}

_Static_assert(sizeof(mg_real_rounder) <= MG_BLOCK_ROUNDER, "a rounder of a step has no room");

/* Whether the products of a step are exact in FP32, none of them subnormal, and nothing reads them but sums that
 * doubles hold. */
static int mg_makes_singles(const mg_program *p, const mg_operation *o, const mg_step *multiply, int later) {
    const mg_format *a = &p->a, *b = &p->b;
    const int least = a->min_exponent - a->fraction_bits + b->min_exponent - b->fraction_bits;
    if (later >> multiply->to & 1 || multiply->has_format || multiply->has_overflow_exponent) return 0;
    if (multiply->negate == MG_NEGATE_PRODUCT || multiply->negate == MG_NEGATE_BOTH) return 0;
    if (a->fraction_bits + b->fraction_bits > 22 || a->max_exponent + b->max_exponent > 125 || least < -126) return 0;
    for (const mg_step *step = o->steps; step < o->steps + o->step_count; step++) {
        if (step->to == multiply->to && step != multiply) return 0;
        for (int r = 0; r < step->of_count; r++) {
            if (step > multiply && step->op == MG_STEP_FLUSH && step->of[r] <= MG_REGISTER_B)
                return 0; /* they are read before */
            if (step->of[r] != multiply->to || step->op == MG_STEP_SPECIAL_VALUES) continue;
            if (step->op != MG_STEP_SUM || step->of_count > 1 || mg_rounds_next(o, step)) return 0;
            if (step->complement || step->rounding == MG_ROUNDING_DOWN) return 0; /* they ask for more than a sum */
        }
    }
    return 1;
}

/* Registers that hold floats, a bit each: a and b, where FP32 has all their elements and nothing reads them, as they
 * are or flushed, but chains and such products, and those. */
static int mg_find_singles(const mg_program *p, const mg_operation *o, const mg_real_rounder *r) {
    const mg_format *const formats[] = {&p->a, &p->b, o->has_operand_format ? &o->operand_format : &p->a};
    int found = 0;
    for (int i = 0; i < 3; i++) {
        const mg_format *f = formats[i];
        if (!f->is_float || f->fraction_bits > 23 || f->max_exponent > 127 || f->min_exponent < -126) return 0;
    }
    for (int32_t j = 0; j < o->step_count; j++) {
        const mg_step *step = &o->steps[j];
        const int multiplies = step->op == MG_STEP_MULTIPLY || step->op == MG_STEP_FMA;
        const int looks = step->op == MG_STEP_FLUSH || step->op == MG_STEP_SPECIAL_VALUES;
        if (step->nans_count) return 0; /* a cause looks for the NaN of an element */
        for (int i = 0; i < step->of_count; i++)
            if (step->of[i] <= MG_REGISTER_B && !multiplies && !looks) return 0;
        if (step->op == MG_STEP_MULTIPLY && !mg_makes_singles(p, o, step, r[j].later)) return 0;
        if (multiplies) found |= 1 << MG_REGISTER_A | 1 << MG_REGISTER_B;
        if (step->op == MG_STEP_MULTIPLY) found |= 1 << step->to;
    }
    return found;
}

/* What each step rounds by, laid down once. */
MG_BLOCK_CALL void mg_prepare_rounders(const mg_program *p, mg_real_rounder *r) {
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        int later = 0;
        for (int32_t j = o->step_count; j-- > 0;) {
            const mg_step *step = &o->steps[j];
            mg_real_rounder *of = &r[j];
            switch (step->op) {
            case MG_STEP_SPECIAL_VALUES:
                of->codes = mg_rounder_of(
                    &o->out_format, MG_ROUNDING_TOWARD_ZERO, MG_OVERFLOW_INFINITY, -1, step->has_nan, step->nan);
                break;
            case MG_STEP_ROUND: *of = mg_real_rounder_of(step, mg_round_rounder(step)); break;
            default:
                if (step->format.storage) *of = mg_real_rounder_of(step, mg_ieee_rounder(step, &step->format, 1));
            }
            of->later = later;
            of->powers = later = mg_powers_read(o, j, later);
        }
        if (o->step_count) r->singles = later >> MG_REGISTER_A & 1 ? 0 : mg_find_singles(p, o, r);
        r += o->step_count;
    }
}

/* `fresh`: the first block in this memory. */
static uint64_t mg_run_real_block(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) {
    mg_reals s;
    mg_real_rounder *rounders;
    MG_BEGIN_BLOCK(mg_real)
    rounders = (mg_real_rounder *)(s.owner + MG_BLOCK_TERMS * MG_BLOCK_SLOTS(p));
    if (fresh) mg_prepare_rounders(p, rounders);
    s.rounder = rounders;
    for (int32_t i = 0; i < p->operation_count; i++) {
        mg_begin_reals(&s, &p->operations[i], results);
        mg_run_real_steps(&s);
        memcpy(results[2 + i], s.result, sizeof s.result);
    }
    return mg_block_results(p, s.result, s.left, codes->d);
}
