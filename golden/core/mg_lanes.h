/* Lane kernels: MG_LANES dot products side by side in plain loops that the compiler turns into SIMD.
 *
 * Included once for each instruction set (mg_lanes_*.c set the target and MG_LANE_TABLE). Integer arithmetic only, but
 * for the conversion of an exact integer to double to find its leading bit, and the kernels that are IEEE by nature.
 */
#include <math.h>
#include <string.h>

#include "mg_internal.h"

/* GCC would unroll the lanes completely before it looks for SIMD, and then finds less. */
#if defined(__GNUC__) && !defined(__clang__)
#define EACH_LANE _Pragma("GCC unroll 1") for (int l = 0; l < MG_LANES; l++)
#else
#define EACH_LANE for (int l = 0; l < MG_LANES; l++)
#endif

/* The hot loops keep one value a lane in a vector (GNU C), so that accumulators stay in registers. An instruction set
 * with better instructions for them defines these two before it includes this file. */
typedef int32_t mg_i32 __attribute__((vector_size(4 * MG_LANES), aligned(4), may_alias));
typedef uint32_t mg_u32 __attribute__((vector_size(4 * MG_LANES), aligned(4), may_alias));
#ifndef MG_VECTOR_MAX /* |x - y| < 2^31 holds for exponents and shifts */
#define MG_VECTOR_MAX(x, y) ((x) - (((x) - (y)) & (((x) - (y)) >> 31)))
#define MG_VECTOR_MIN(x, y) ((y) + (((x) - (y)) & (((x) - (y)) >> 31)))
#endif

#define mg_get(at) (*(const mg_i32 *)(at))
#define mg_put(at, x) (*(mg_i32 *)(at) = (x))

static inline int32_t mg_min32(int32_t x, int32_t y) { return x < y ? x : y; }
static inline int32_t mg_max32(int32_t x, int32_t y) { return x > y ? x : y; }

#define MG_SELECT(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))

/* Decodes MG_LANES codes of a float format with a sign and IEEE special codes. */
static inline void mg_lane_decode_vector(const mg_format *f, const uint32_t *codes, int32_t *significand, int32_t *exponent) {
    const mg_u32 code = (mg_u32)mg_get(codes);
    const mg_u32 fields = (code >> f->ignored_low) & ((1u << (f->exponent_bits + f->fraction_bits)) - 1);
    const mg_i32 e = (mg_i32)(fields >> f->fraction_bits), m = (mg_i32)(fields & ((1u << f->fraction_bits) - 1));
    const mg_i32 normal = (mg_i32)(e != 0), top = (mg_i32)(e == (1 << f->exponent_bits) - 1), whole = (mg_i32)(m == 0);
    const mg_i32 sign = -(mg_i32)((code >> f->sign_shift) & 1u), none = (mg_i32){0};
    mg_i32 magnitude = MG_SELECT(top, none + 1, m | (normal & (1 << f->fraction_bits)));
    mg_i32 x = MG_SELECT(normal, e - f->bias, MG_SELECT(whole, none + MG_E_ZERO, none + f->min_exponent));
    x = MG_SELECT(top, MG_SELECT(whole, none + MG_E_INFINITY, none + MG_E_NAN), x);
    mg_put(significand, (magnitude ^ sign) - sign);
    mg_put(exponent, x);
}

/* Gathers up to MG_LANES codes into a vector; 16-bit codes that lie side by side, the common case, in one load. */
static inline void mg_lane_codes(const char *data, int64_t step, int32_t storage, ptrdiff_t count, uint32_t *codes) {
    if (storage == 16 && step == 2 && count == MG_LANES) {
        uint16_t narrow[MG_LANES];
        memcpy(narrow, data, sizeof narrow);
        EACH_LANE codes[l] = narrow[l];
    } else {
        for (ptrdiff_t i = 0; i < count; i++) {
            uint16_t half;
            if (storage == 16) {
                memcpy(&half, data + i * step, sizeof half);
                codes[i] = half;
            } else { /* 32 bits, or the low half of a code kept in 64 (little-endian machines only) */
                memcpy(&codes[i], data + i * step, sizeof codes[i]);
            }
        }
    }
}

/* 8-bit storage: integers by sign extension (they have no exponent), the rest by table. Kernels on
 * fixed point want no exponent (null). */
static inline void mg_lane_decode_table(const mg_format *f, const int32_t *table, const char *restrict data, int64_t step, ptrdiff_t count,
                                        int32_t *restrict significand, int32_t *restrict exponent) {
    const int unused = 32 - f->bits;
    if (!f->is_float && step == 1) {
        if (f->is_signed)
            for (ptrdiff_t i = 0; i < count; i++) significand[i] = (int32_t)((uint32_t)(uint8_t)data[i] << unused) >> unused;
        else
            for (ptrdiff_t i = 0; i < count; i++) significand[i] = (uint8_t)data[i];
        return;
    }
    if (!exponent) {
        if (step == 1)
            for (ptrdiff_t i = 0; i < count; i++) significand[i] = table[2 * (uint8_t)data[i]];
        else
            for (ptrdiff_t i = 0; i < count; i++) significand[i] = table[2 * (uint8_t)data[i * step]];
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const uint8_t code = (uint8_t)data[i * step];
        significand[i] = table[2 * code];
        exponent[i] = table[2 * code + 1];
    }
}

static void mg_lane_decode(const mg_format *f, const int32_t *table, const char *data, int64_t step, int32_t storage, ptrdiff_t count,
                           int32_t *significand, int32_t *exponent) {
    const mg_format format = *f; /* a copy that the stores below cannot change */
    if (table) {
        mg_lane_decode_table(f, table, data, step, count, significand, exponent);
        return;
    }
    uint32_t codes[MG_LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + MG_LANES <= count; i += MG_LANES) {
        mg_lane_codes(data + i * step, step, storage, MG_LANES, codes);
        mg_lane_decode_vector(&format, codes, significand + i, exponent + i);
    }
    if (i < count) {
        int32_t rest[2][MG_LANES];
        mg_lane_codes(data + i * step, step, storage, count - i, codes);
        mg_lane_decode_vector(&format, codes, rest[0], rest[1]);
        memcpy(significand + i, rest[0], (size_t)(count - i) * sizeof *significand);
        memcpy(exponent + i, rest[1], (size_t)(count - i) * sizeof *exponent);
    }
}

static inline void mg_lane_decode_codes(const mg_format *f, const uint64_t *codes, int32_t *significand, int32_t *exponent) {
    const mg_format format = *f;
    uint32_t narrow[MG_LANES];
    EACH_LANE narrow[l] = (uint32_t)codes[l];
    mg_lane_decode_vector(&format, narrow, significand, exponent);
}

/* Element k of a in every lane: from lane order, or (`rows`) one value for each half of the lanes. */
#define MG_A(block, field, k, rows) \
    ((rows) ? (mg_i32)MG_HALVES((block)->field[k], (block)->field##_high[k]) : (mg_i32)mg_get((block)->field + (k) * MG_LANES))
#ifndef MG_HALVES
#define MG_HALVES(low, high) MG_SELECT(mg_low_half, (mg_i32){0} + (low), (mg_i32){0} + (high))
static const mg_i32 mg_low_half = {-1, -1, -1, -1, -1, -1, -1, -1};
#endif

/* Rounds total * 2^lsb to codes of `f` with `kept` fraction bits: toward zero or to nearest even, overflow to infinity.
 * A zero is +0, but for a nonzero total that rounds to zero with its sign (MG_ZERO_SIGNED_UNDERFLOW). |total| < 2^53, so the
 * double is exact and only serves to find the leading bit. */
static inline void mg_lane_round(const mg_operation *o, int kept, int nearest, const int64_t *total, const int32_t *lsb, uint64_t *out) {
    const mg_format *f = &o->out_format;
    const int signed_underflow = o->zero_rule == MG_ZERO_SIGNED_UNDERFLOW;
    const int below = f->fraction_bits - kept, least = f->min_exponent, sign_shift = f->sign_shift;
    const uint64_t infinity = f->infinity >> below;
    EACH_LANE {
        uint64_t magnitude = (uint64_t)(total[l] < 0 ? -total[l] : total[l]), bits;
        double exact = (double)(int64_t)magnitude;
        memcpy(&bits, &exact, sizeof bits);
        int64_t leading = (int64_t)(bits >> 52) - 1023 + lsb[l];
        uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
        int64_t exponent = leading > least ? leading : least;
        int64_t shift = 52 - kept + (exponent - leading);
        shift = shift > 60 ? 60 : shift;
        uint64_t half = nearest ? (UINT64_C(1) << (shift - 1)) - 1 + ((significand >> shift) & 1) : 0;
        uint64_t rounded = ((uint64_t)(exponent - least) << kept) + ((significand + half) >> shift);
        rounded = rounded > infinity ? infinity : rounded;
        rounded = magnitude ? rounded << below : 0;
        uint64_t sign = (rounded || signed_underflow) && total[l] < 0 ? UINT64_C(1) << sign_shift : 0;
        out[l] = rounded | sign;
    }
}

/* Lanes with an infinity or NaN among the products (significand p, exponent e) or in c: canonical NaN or infinity. */
static void mg_lane_specials(const mg_operation *o, const int32_t *p, const int32_t *e, int32_t count, const int32_t *c_significand,
                             const int32_t *c_exponent, uint64_t *out) {
    mg_i32 nans = {0}, positives = {0}, negatives = {0};
    int32_t nan[MG_LANES], positive[MG_LANES], negative[MG_LANES];
    for (int32_t k = -1; k < count; k++) {
        const mg_i32 x = mg_get(k < 0 ? c_significand : p + k * MG_LANES), exponent = mg_get(k < 0 ? c_exponent : e + k * MG_LANES);
        const mg_i32 special = (mg_i32)(exponent >= MG_E_SPECIAL);
        /* infinity * zero is the one special sum that lies near MG_E_INFINITY + MG_E_ZERO */
        const mg_i32 invalid = (mg_i32)(exponent >= MG_E_NAN_LEAST) | (special & (mg_i32)(exponent < MG_E_INFINITY + MG_E_ZERO / 2));
        nans |= invalid;
        positives |= special & ~invalid & (mg_i32)(x > 0);
        negatives |= special & ~invalid & (mg_i32)(x < 0);
    }
    mg_put(nan, nans);
    mg_put(positive, positives);
    mg_put(negative, negatives);
    const uint64_t infinity = o->out_format.infinity, sign = UINT64_C(1) << o->out_format.sign_shift;
    EACH_LANE {
        if (nan[l] || (positive[l] && negative[l])) out[l] = o->nan;
        else if (positive[l] || negative[l]) out[l] = negative[l] ? infinity | sign : infinity;
    }
}

static inline __attribute__((always_inline)) void mg_lane_products_from(const mg_operation *o, const mg_block *block, int32_t *restrict p,
                                                                        int32_t *restrict e, int32_t *restrict maximum, int rows) {
    mg_i32 most = mg_get(maximum);
    for (int32_t i = 0; i < o->k_count; i++) {
        const ptrdiff_t a = o->k_index[i], b = a * block->b_stride;
        mg_i32 exponent = MG_A(block, a_exponent, a, rows) + mg_get(block->b_exponent + b);
        mg_put(p + i * MG_LANES, MG_A(block, a_significand, a, rows) * mg_get(block->b_significand + b));
        mg_put(e + i * MG_LANES, exponent);
        most = MG_VECTOR_MAX(most, exponent);
    }
    mg_put(maximum, most);
}

/* Exact products of the operation's k elements; raises `maximum` to their largest exponent. */
static void mg_lane_products(const mg_operation *o, const mg_block *block, int32_t *p, int32_t *e, int32_t *maximum) {
    if (block->a_exponent_high) mg_lane_products_from(o, block, p, e, maximum, 1);
    else mg_lane_products_from(o, block, p, e, maximum, 0);
}

/* Sum of products from, from + step, ... below k_count, each magnitude truncated to `fraction_bits` below `maximum`. */
static inline void mg_lane_aligned_sum(const mg_operation *o, const int32_t *restrict p, const int32_t *restrict e, int32_t from,
                                       int32_t step, const int32_t *restrict maximum, int64_t *restrict total) {
    const int left = mg_max32(o->fraction_bits - o->product_fraction, 0), right = mg_max32(o->product_fraction - o->fraction_bits, 0);
    const mg_i32 top = mg_get(maximum) + right, most = (mg_i32){0} + 31;
    EACH_LANE total[l] = 0;
    for (int32_t first = from; first < o->k_count; first += o->chunk * step) {
        const int32_t last = mg_min32(o->k_count, first + o->chunk * step);
        mg_i32 sum = {0};
        int32_t partial[MG_LANES];
        for (int32_t i = first; i < last; i += step) {
            mg_i32 x = mg_get(p + i * MG_LANES), sign = x >> 31, shift = top - mg_get(e + i * MG_LANES);
            mg_u32 magnitude = (mg_u32)((x ^ sign) - sign) << left;
            mg_i32 kept = (mg_i32)(magnitude >> (mg_u32)MG_VECTOR_MIN(shift, most));
            sum += (kept ^ sign) - sign;
        }
        mg_put(partial, sum);
        EACH_LANE total[l] += partial[l];
    }
}

static inline int mg_lane_any_special(const int32_t *maximum) {
    int32_t most = maximum[0];
    EACH_LANE most = mg_max32(most, maximum[l]);
    return most >= MG_E_SPECIAL;
}

/* Products of one operation: more than this many are left to the general interpreter. */
#define MG_LANE_MAX_K 256

static void mg_lane_fda(const mg_operation *o, const mg_block *block, const uint64_t *seed, uint64_t *out) {
    int32_t p[MG_LANE_MAX_K * MG_LANES], e[MG_LANE_MAX_K * MG_LANES], cs[MG_LANES], ce[MG_LANES], maximum[MG_LANES], lsb[MG_LANES];
    int64_t total[MG_LANES];
    mg_lane_decode_codes(&o->seed_format, seed, cs, ce);
    EACH_LANE maximum[l] = mg_max32(ce[l], o->floor);
    mg_lane_products(o, block, p, e, maximum);
    mg_lane_aligned_sum(o, p, e, 0, 1, maximum, total);
    const int left = mg_max32(o->fraction_bits - o->seed_format.fraction_bits, 0);
    const int right = mg_max32(o->seed_format.fraction_bits - o->fraction_bits, 0);
    EACH_LANE {
        int64_t magnitude = (int64_t)(cs[l] < 0 ? -cs[l] : cs[l]) << left;
        int32_t shift = mg_min32(maximum[l] - ce[l] + right, 63);
        total[l] += cs[l] < 0 ? -(magnitude >> shift) : magnitude >> shift;
        lsb[l] = maximum[l] - o->fraction_bits;
    }
    mg_lane_round(o, o->result_fraction_bits, o->rounding == MG_ROUNDING_NEAREST_EVEN, total, lsb, out);
    if (mg_lane_any_special(maximum)) mg_lane_specials(o, p, e, o->k_count, cs, ce, out);
}

/* Groups of products summed exactly in fixed point, scaled, aligned by the scale exponents alone. */
static inline __attribute__((always_inline)) void mg_lane_gdfs(const mg_operation *o, const mg_block *block, const uint64_t *seed, uint64_t *out,
                                                               int rows) {
    int32_t g[MG_LANE_MAX_K * MG_LANES], e[MG_LANE_MAX_K * MG_LANES], cs[MG_LANES], ce[MG_LANES], maximum[MG_LANES], lsb[MG_LANES];
    int64_t total[MG_LANES];
    const int32_t groups = o->k_count / o->group;
    mg_lane_decode_codes(&o->seed_format, seed, cs, ce);
    EACH_LANE maximum[l] = mg_max32(ce[l], o->floor);
    for (int32_t j = 0; j < groups; j++) {
        int32_t sum[MG_LANES], present[MG_LANES];
        mg_i32 sums = {0}, any = {0};
        for (int32_t i = j * o->group; i < (j + 1) * o->group; i++) {
            const ptrdiff_t k = o->k_index[i];
            mg_i32 x = MG_A(block, a_significand, k, rows) * mg_get(block->b_significand + k * block->b_stride);
            sums += x;
            any |= x;
        }
        mg_put(sum, sums);
        mg_put(present, any);
        const ptrdiff_t at = (ptrdiff_t)(j * o->group / o->scale_block) * MG_LANES;
        const int32_t *sas = block->scale_a_significand + at, *sae = block->scale_a_exponent + at;
        const int32_t *sbs = block->scale_b_significand + at, *sbe = block->scale_b_exponent + at;
        EACH_LANE {
            int32_t x = sae[l] + sbe[l];
            g[j * MG_LANES + l] = sum[l] * (sas[l] * sbs[l]);
            e[j * MG_LANES + l] = present[l] || x >= MG_E_SPECIAL ? x : MG_E_ZERO;
            maximum[l] = mg_max32(maximum[l], e[j * MG_LANES + l]);
        }
    }
    EACH_LANE {
        int64_t magnitude = (int64_t)(cs[l] < 0 ? -cs[l] : cs[l]) << (o->fraction_bits - o->seed_format.fraction_bits);
        int32_t shift = mg_min32(maximum[l] - ce[l], 63);
        total[l] = cs[l] < 0 ? -(magnitude >> shift) : magnitude >> shift;
        lsb[l] = maximum[l] - o->fraction_bits;
    }
    for (int32_t j = 0; j < groups; j++) {
        EACH_LANE {
            int64_t x = g[j * MG_LANES + l], magnitude = (x < 0 ? -x : x) << (o->fraction_bits - o->product_fraction);
            int32_t shift = mg_min32(maximum[l] - e[j * MG_LANES + l], 63);
            total[l] += x < 0 ? -(magnitude >> shift) : magnitude >> shift;
        }
    }
    mg_lane_round(o, o->result_fraction_bits, o->rounding == MG_ROUNDING_NEAREST_EVEN, total, lsb, out);
    if (mg_lane_any_special(maximum)) mg_lane_specials(o, g, e, groups, cs, ce, out);
}

static inline void mg_lane_product_overflow(const mg_operation *o, int32_t *p, int32_t *e, int32_t *maximum) {
    for (int32_t i = 0; i < o->k_count; i++) {
        EACH_LANE {
            int32_t x = p[i * MG_LANES + l], magnitude = x < 0 ? -x : x, exponent = e[i * MG_LANES + l];
            int32_t above = exponent + (magnitude >> (o->product_fraction + 1) ? 1 : 0);
            exponent = above >= o->product_overflow && exponent < MG_E_SPECIAL ? MG_E_INFINITY : exponent;
            e[i * MG_LANES + l] = exponent;
            maximum[l] = mg_max32(maximum[l], exponent);
        }
    }
}

/* One or two interleaved groups truncated at their own maximum, combined rounding down, then met by c rounding down. */
static void mg_lane_fdrda(const mg_operation *o, const mg_block *block, const uint64_t *seed, uint64_t *out) {
    int32_t p[MG_LANE_MAX_K * MG_LANES], e[MG_LANE_MAX_K * MG_LANES], cs[MG_LANES], ce[MG_LANES], all[MG_LANES], lsb[MG_LANES];
    int32_t group_maximum[2][MG_LANES];
    int64_t group_sum[2][MG_LANES], total[MG_LANES];
    mg_lane_decode_codes(&o->seed_format, seed, cs, ce);
    EACH_LANE all[l] = 2 * MG_E_ZERO;
    mg_lane_products(o, block, p, e, all);
    if (o->product_overflow) mg_lane_product_overflow(o, p, e, all);
    memset(group_sum[1], 0, sizeof group_sum[1]);
    memcpy(group_maximum[1], all, sizeof group_maximum[1]);
    for (int32_t g = 0; g < o->group; g++) {
        mg_i32 most = mg_get(all);
        if (o->group > 1) {
            most = (mg_i32){0} + 2 * MG_E_ZERO;
            for (int32_t i = g; i < o->k_count; i += o->group) most = MG_VECTOR_MAX(most, mg_get(e + i * MG_LANES));
        }
        mg_put(group_maximum[g], most);
        mg_lane_aligned_sum(o, p, e, g, o->group, group_maximum[g], group_sum[g]);
    }
    const int widen = o->dot_fraction_bits - o->fraction_bits, widen_c = o->fraction_bits - o->seed_format.fraction_bits;
    const int32_t dot_fraction_bits = o->dot_fraction_bits, window = o->window >= 0 ? o->window : 1 << 18; /* 1 << 18: none */
    EACH_LANE {
        int64_t first = all[l] - group_maximum[0][l], second = all[l] - group_maximum[1][l];
        int64_t dot = (group_sum[0][l] >> (first < 63 ? first : 63)) + (group_sum[1][l] >> (second < 63 ? second : 63));
        int32_t maximum = mg_max32(mg_max32(all[l], ce[l]), -126);
        int64_t shift = maximum - all[l], shift_c = maximum - ce[l], signed_c = cs[l];
        int64_t c = (signed_c * (INT64_C(1) << widen_c)) >> (shift_c < 63 ? shift_c : 63);
        c = shift_c > window ? 0 : c;
        total[l] = ((dot * (INT64_C(1) << widen)) >> (shift < 63 ? shift : 63)) + c * (INT64_C(1) << widen);
        lsb[l] = maximum - dot_fraction_bits;
        all[l] = maximum;
    }
    const int32_t sum_fraction_bits = o->sum_fraction_bits;
    EACH_LANE { /* renormalise and round down at sum_fraction_bits */
        uint64_t magnitude = (uint64_t)(total[l] < 0 ? -total[l] : total[l]), bits;
        double exact = (double)(int64_t)magnitude;
        memcpy(&bits, &exact, sizeof bits);
        int64_t leading = (int64_t)(bits >> 52) - 1023 + lsb[l], exponent = leading > -126 ? leading : -126;
        int64_t shift = exponent - sum_fraction_bits - lsb[l];
        shift = shift < 0 ? 0 : shift;
        shift = shift > 63 ? 63 : shift;
        total[l] = total[l] >> shift;
        lsb[l] += (int32_t)shift;
    }
    mg_lane_round(o, o->result_fraction_bits, 1, total, lsb, out);
    if (mg_lane_any_special(all)) mg_lane_specials(o, p, e, o->k_count, cs, ce, out);
}

/* Chain of IEEE fused multiply-adds, nearest even. Lanes that end in a NaN are left to the general interpreter. */
static uint32_t mg_lane_fma(const mg_operation *o, const mg_block *block, const uint64_t *seed, uint64_t *out) {
    uint32_t left = 0;
    if (o->out_format.storage == 64) {
        double sum[MG_LANES];
        memcpy(sum, seed, sizeof sum);
        for (int32_t i = 0; i < o->k_count; i++) {
            double a[MG_LANES], b[MG_LANES];
            memcpy(a, block->a64 + (ptrdiff_t)o->k_index[i] * MG_LANES, sizeof a);
            memcpy(b, block->b64 + (ptrdiff_t)o->k_index[i] * block->b_stride, sizeof b);
            EACH_LANE sum[l] = __builtin_fma(a[l], b[l], sum[l]);
        }
        memcpy(out, sum, sizeof sum);
        EACH_LANE left |= (uint32_t)(sum[l] != sum[l]) << l;
        return left;
    }
    float sum[MG_LANES];
    EACH_LANE {
        uint32_t code = (uint32_t)seed[l];
        memcpy(&sum[l], &code, sizeof code);
    }
    for (int32_t i = 0; i < o->k_count; i++) {
        uint32_t a_codes[MG_LANES], b_codes[MG_LANES];
        float a[MG_LANES], b[MG_LANES];
        EACH_LANE a_codes[l] = (uint32_t)block->a64[(ptrdiff_t)o->k_index[i] * MG_LANES + l];
        EACH_LANE b_codes[l] = (uint32_t)block->b64[(ptrdiff_t)o->k_index[i] * block->b_stride + l];
        memcpy(a, a_codes, sizeof a);
        memcpy(b, b_codes, sizeof b);
        EACH_LANE sum[l] = __builtin_fmaf(a[l], b[l], sum[l]);
    }
    EACH_LANE {
        uint32_t code;
        memcpy(&code, &sum[l], sizeof code);
        out[l] = code;
        left |= (uint32_t)(sum[l] != sum[l]) << l;
    }
    return left;
}

static inline __attribute__((always_inline)) void mg_lane_integer(const mg_operation *o, const mg_block *block, const uint64_t *seed,
                                                                  uint64_t *out, int rows) {
    mg_u32 sums = {0};
    int32_t sum[MG_LANES];
    for (int32_t i = 0; i < o->k_count; i++) {
        const ptrdiff_t k = o->k_index[i];
        mg_u32 a = (mg_u32)MG_A(block, a_significand, k, rows), b = (mg_u32)mg_get(block->b_significand + k * block->b_stride);
        sums += o->combine == MG_OPERATION_PRODUCT ? a * b : o->combine == MG_OPERATION_AND ? a & b : a ^ b;
    }
    mg_put(sum, (mg_i32)sums);
    EACH_LANE {
        int64_t total = (int64_t)sum[l] + (int32_t)(uint32_t)seed[l];
        if (o->saturate) total = total < INT32_MIN ? INT32_MIN : total > INT32_MAX ? INT32_MAX : total;
        out[l] = (uint32_t)total;
    }
}

/* One IEEE addition of seed and addend, nearest even: f32 on the hardware, f16 exactly in fixed point. */
static void mg_lane_add(const mg_operation *o, const uint64_t *seed, const uint64_t *addend, uint64_t *out) {
    if (o->out_format.storage == 32) {
        EACH_LANE {
            uint32_t x = (uint32_t)seed[l], y = (uint32_t)addend[l], code;
            float a, b, sum;
            memcpy(&a, &x, sizeof a);
            memcpy(&b, &y, sizeof b);
            sum = a + b;
            memcpy(&code, &sum, sizeof code);
            out[l] = sum != sum ? o->nan : code;
        }
        return;
    }
    int32_t xs[MG_LANES], xe[MG_LANES], ys[MG_LANES], ye[MG_LANES], lsb[MG_LANES], most[MG_LANES];
    int64_t total[MG_LANES];
    const mg_format *f = &o->out_format;
    mg_lane_decode_codes(f, seed, xs, xe);
    mg_lane_decode_codes(f, addend, ys, ye);
    EACH_LANE {
        most[l] = mg_max32(xe[l], ye[l]);
        int32_t x = mg_min32(mg_max32(xe[l] - f->min_exponent, 0), 40), y = mg_min32(mg_max32(ye[l] - f->min_exponent, 0), 40);
        total[l] = (int64_t)xs[l] * (INT64_C(1) << x) + (int64_t)ys[l] * (INT64_C(1) << y);
        lsb[l] = f->min_exponent - f->fraction_bits;
    }
    mg_lane_round(o, f->fraction_bits, 1, total, lsb, out);
    EACH_LANE out[l] = xs[l] == 0 && ys[l] == 0 ? seed[l] & addend[l] : out[l]; /* -0 only from two of them */
    if (mg_lane_any_special(most)) mg_lane_specials(o, ys, ye, 1, xs, xe, out);
}

static uint32_t mg_lane_run(const mg_operation *o, const mg_block *block, const uint64_t *seed, const uint64_t *addend, uint64_t *out) {
    const int rows = block->a_significand_high != NULL;
    switch (o->fast) {
    case MG_FAST_FDA: mg_lane_fda(o, block, seed, out); return 0;
    case MG_FAST_GDFS: rows ? mg_lane_gdfs(o, block, seed, out, 1) : mg_lane_gdfs(o, block, seed, out, 0); return 0;
    case MG_FAST_FDRDA: mg_lane_fdrda(o, block, seed, out); return 0;
    case MG_FAST_FMA: return mg_lane_fma(o, block, seed, out);
    case MG_FAST_ADD: mg_lane_add(o, seed, addend, out); return 0;
    default: rows ? mg_lane_integer(o, block, seed, out, 1) : mg_lane_integer(o, block, seed, out, 0); return 0;
    }
}

const mg_lane_kernels MG_LANE_TABLE = {MG_LANE_NAME, mg_lane_decode, mg_lane_run};
