/* The fast form: dot products of a tile, MG_V columns of B side by side in vectors of the compiler (GNU C).
 *
 * Included once by each translation unit of an instruction set and vector length (mg_tile_*.c), whose names are its
 * own. Operands come decoded: a float value and an int32 exponent each. A product is one multiplication of floats,
 * which is exact; a power of two scales it to units of the last bit that alignment keeps, the conversion to an integer
 * cuts it there, and the integers are summed exactly and rounded once. Where exponents reach beyond float's, values are
 * significands and every product has a scale of its own. docs/core.md says why each of these is exact;
 * golden/model/kernels.py which programs it is true of.
 */
#include <math.h>
#include <string.h>

#include "mg_simd.h"
#include "mg_number.h"
#include "mg_odd.h"

typedef int32_t mg_word __attribute__((may_alias)); /* the bits of a float, or an integer */
typedef int64_t mg_two __attribute__((aligned(4), may_alias)); /* of them */
#define MG_ROWS 4 /* rows of A at once: their chains of dependent instructions overlap */
#define MG_AT(type, at) (*(const type *)(at))
#define MG_PLUS(x, y) \
    ((mg_vi)((mg_vu)(x) + (mg_vu)(y))) /* where lanes overflow: they are seen later, or hold specials */
#define MG_UNROLL _Pragma("GCC unroll 4")
#define MG_EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < x->rows; r++)
#define MG_EACH_HALF _Pragma("GCC unroll 2") for (int h = 0; h < 2; h++)
#define MG_EACH_LANE _Pragma("GCC unroll 1") for (int l = 0; l < MG_V; l++)
#define MG_POWER(x) ((mg_vf)(((x) + 127) << 23)) /* 2^x, -126 <= x <= 127 */
#define MG_BYTE_BIAS                                                                                                  \
    96 /* of an exponent in a byte, which is then in 65 ... 127, or 0 of zero: products of zero are below 128, others \
          above */
#define MG_LEAST_POWER MG_SPLAT(-32)             /* a term below 2^-30 units is cut away whole */
#define MG_TOP 0x7f800000                        /* the exponent field of infinities and NaNs of a float */
#define MG_IS_TOP(x) ((mg_vi)(((mg_vi)(x) & MG_TOP) == MG_TOP))

/* What a shuffle of bytes takes: byte k, eight times; 16 bytes of which the first and the last eight take turns. */
#define MG_EIGHT_OF(k) (k) * UINT64_C(0x0101010101010101), ((k) + 1) * UINT64_C(0x0101010101010101)
static const uint64_t mg_picks[] __attribute__((unused)) = {MG_EIGHT_OF(0), MG_EIGHT_OF(2), MG_EIGHT_OF(4),
    MG_EIGHT_OF(6), MG_EIGHT_OF(8), MG_EIGHT_OF(10), MG_EIGHT_OF(12), MG_EIGHT_OF(14)};
static const uint8_t mg_turns[] __attribute__((unused)) = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};

/* How codes are decoded: by their fields, or shorter ways: as FP16, moved to where FP16 has them, or to where FP32
 * has. */
enum { MG_DECODE_FIELDS, MG_DECODE_HALF, MG_DECODE_SINGLE };

/* What a kernel may assume of the tiles that it serves, a bit each. Kernels are compiled once for each row of mg_forms,
 * and what these decide is folded away. */
enum mg_assumption {
    MG_PER_LANE = 1 << 0,     /* every lane has a row of A of its own */
    MG_PAIRED = 1 << 1,       /* two rows of A share the lanes by turns, and their elements lie so */
    MG_SIGNIFICANDS = 1 << 2, /* instead of values: exponents reach beyond the range of floats */
    MG_SPECIALS = 1 << 3,     /* some operand may be an infinity or a NaN */
    MG_QUICK = 1 << 4,        /* every operation rounds a sum of 32 bits to f32 (mg_is_quick) */
    MG_IN_LINE = 1 << 5,        /* B is dense, and the k of an operation lie side by side */
    MG_BYTES = 1 << 6,        /* exponents are bytes (mg_plan_bytes) */
    MG_GROUPS_16 = 1 << 7,    /* a program is one sum of scaled groups, of this many products */
    MG_GROUPS_32 = 1 << 8,
    MG_INTEGERS = 1 << 9,    /* a program is one sum of integers that share words, which c joins */
    MG_FOURS = 1 << 10,       /* four integers a word, else two */
    MG_SWAPPED = 1 << 11,     /* the codes of b have no sign */
    MG_DIFFER = 1 << 12,      /* bits that differ are counted */
    MG_EITHER = 1 << 13       /* values or significands: the tile knows */
};

/* Some rows of A and MG_V columns of B, and what is assumed of them, a word each: `rows` is MG_ROWS or 1; `share` and
 * `swapped` say how integers that follow each other in k share a word (mg_plan_integers); `groups`: of this many
 * products. */
typedef struct {
    int rows, per_lane, paired, significands, specials, quick, plain, share, swapped, groups;
    const float *a, *b;
    const int32_t *a_exponent, *b_exponent;
    ptrdiff_t a_row, b_row, scale_row; /* from a row to the next */
    const ptrdiff_t *row_of_b;         /* where the row of B begins that element k of A meets */
    const float *scale_a, *scale_b;
    const int32_t *scale_a_exponent, *scale_b_exponent; /* groups with scales */
    const uint8_t **tops; /* where the largest exponents of the next products are (mg_fill_tops), or null */
} mg_part;

MG_INLINE mg_part mg_part_of(const mg_tile *t, const unsigned assume) {
    const mg_part part = {
        .rows = assume & MG_PER_LANE || !(assume & MG_IN_LINE) ? 1 : MG_ROWS,
        .per_lane = !!(assume & MG_PER_LANE),
        .paired = !!(assume & MG_PAIRED),
        .significands = assume & MG_EITHER ? t->significands : !!(assume & MG_SIGNIFICANDS),
        .specials = !!(assume & MG_SPECIALS),
        .quick = !!(assume & MG_QUICK),
        .plain = !!(assume & MG_IN_LINE),
        .share = assume & (MG_GROUPS_16 | MG_GROUPS_32) ? 2 : t->share,
        .swapped = t->swapped,
        .groups = assume & MG_GROUPS_16 ? 16 : assume & MG_GROUPS_32 ? 32 : 0,
    };
    return part;
}

/* Small things ----------------------------------------------------------------------------------------------------- */

/* The sum and the products of the integers of a lane, which may be bytes: the bytes without a sign are y's
 * if `swapped`. */
MG_INLINE mg_vi mg_add_dot(int share, int swapped, mg_vi sum, mg_vi x, mg_vi y) {
    if (MG_HAS_FOURS && share == 2) return mg_add_fours(sum, swapped ? y : x, swapped ? x : y);
    return sum + mg_dot_pairs(x, y);
}

/* Element k of a row of A or of its scales: one for all lanes, or (per_lane) one each, or (paired) two by turns. */
MG_INLINE mg_vi mg_of_a(const mg_part *x, const void *row, ptrdiff_t k) {
    const mg_word *words = row;
    if (x->per_lane) return MG_AT(mg_vi, words + k * x->b_row);
#if MG_V == 16
    if (x->paired) return (mg_vi)((mg_vp){0} + MG_AT(mg_two, words + 2 * k));
#endif
    return MG_SPLAT(words[k]);
}

MG_INLINE mg_vf mg_value_of_a(const mg_part *x, const float *row, ptrdiff_t k) { return (mg_vf)mg_of_a(x, row, k); }

/* A vector of a row of B or of its scales. */
MG_INLINE mg_vi mg_of_b(const mg_part *x, const void *at) {
#if MG_V == 16
    if (x->paired) return (mg_vi)mg_zip(MG_AT(mg_half, at), MG_AT(mg_half, at));
#endif
    (void)x;
    return MG_AT(mg_vi, at);
}

MG_INLINE ptrdiff_t mg_k(const mg_operation *o, const mg_part *x, int32_t i) {
    return x->plain ? o->k_index[0] + i : o->k_index[i];
}

MG_INLINE ptrdiff_t mg_row_of_b(const mg_part *x, ptrdiff_t k) { return x->plain ? k * x->b_row : x->row_of_b[k]; }

/* Codes of c and d lie where the caller has them, at any address. */
MG_INLINE mg_vi mg_load_lanes(const char *at, int32_t storage) {
    mg_vi words;
    if (storage == 32) return memcpy(&words, at, sizeof words), words;
    return storage == 8 ? mg_load_words_8(at) : mg_load_words_16(at);
}

MG_INLINE void mg_store_lanes(char *at, int32_t storage, mg_vi codes) {
    const mg_vh halves = __builtin_convertvector((mg_vu)codes, mg_vh);
    if (storage == 32) memcpy(at, &codes, sizeof codes);
    else memcpy(at, &halves, sizeof halves);
}


/* A vector of codes of a row, or (paired) of half as many of each of two rows. */
MG_INLINE mg_vi mg_load_rows(const char *at, ptrdiff_t next, int32_t storage, int paired) {
#if MG_V == 16
    if (paired) return mg_zip(mg_load_half(at, storage), mg_load_half(at + next, storage));
#endif
    (void)next, (void)paired;
    return mg_load_lanes(at, storage);
}

MG_INLINE void mg_store_rows(char *at, ptrdiff_t next, int32_t storage, int paired, mg_vi codes) {
#if MG_V == 16
    if (paired) {
        const mg_vi apart = mg_unzip(codes);
        mg_half part[2];
        memcpy(part, &apart, sizeof part);
        mg_store_half(at, storage, part[0]);
        mg_store_half(at + next, storage, part[1]);
        return;
    }
#endif
    (void)next, (void)paired;
    mg_store_lanes(at, storage, codes);
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

/* Fields (exponent and fraction) of a format, and the sign in bit 31: a significand in [0, 2), an infinity or a NaN,
 * and the exponent. `specials`: enum mg_specials_word. */
MG_INLINE void mg_decode_fields(int exponent_bits, int fraction_bits, int bias, int specials, mg_vi fields, mg_vi sign,
                                       mg_vf *significand, mg_vi *exponent) {
    const mg_vi e = fields >> fraction_bits, normal = (mg_vi)(e != 0);
    const mg_vi m = (fields << (23 - fraction_bits)) & 0x7fffff, one = MG_SPLAT(0x3f800000);
    const mg_vf x = (mg_vf)(m | one) - (mg_vf)(~normal & one); /* subnormal: without the hidden bit */
    mg_vi top = {0};
    if (specials == MG_SPECIALS_IEEE) top = (mg_vi)(e == (1 << exponent_bits) - 1) & MG_TOP;
    if (specials == MG_SPECIALS_ALL_ONES_NAN)
        top = (mg_vi)(fields == (1 << (exponent_bits + fraction_bits)) - 1) &
            0x7fc00000; /* without fraction bits, too */
    if (specials == MG_SPECIALS_NEGATIVE_ZERO_NAN) top = (mg_vi)(fields == 0) & sign >> 31 & 0x7fc00000;
    *significand = (mg_vf)((mg_vi)x | top | sign);
    *exponent = MG_PICK(normal, e - bias, MG_PICK((mg_vi)(m == 0), MG_SPLAT(MG_E_ZERO), MG_SPLAT(1 - bias)));
}

MG_INLINE void mg_split_codes(const mg_format *f, mg_vi code, mg_vf *significand, mg_vi *exponent) {
    if (mg_is_ieee(f, 8, 23)) { /* f32 and f16 with constants, which is quicker */
        mg_decode_fields(8, 23, 127, MG_SPECIALS_IEEE, code & INT32_MAX, code & INT32_MIN, significand, exponent);
    } else if (mg_is_ieee(f, 5, 10)) {
        mg_decode_fields(5, 10, 15, MG_SPECIALS_IEEE, code & 0x7fff, code << 16 & INT32_MIN, significand, exponent);
    } else {
        const mg_vi fields = code >> f->ignored_low & ((1 << (f->exponent_bits + f->fraction_bits)) - 1);
        const mg_vi sign = f->sign_shift < 0 ? (mg_vi){0} : code >> f->sign_shift << 31;
        mg_decode_fields(f->exponent_bits, f->fraction_bits, f->bias, f->specials, fields, sign, significand, exponent);
    }
}

static inline int mg_decode_kind(const mg_format *f, int significands) {
    if (significands) return MG_DECODE_FIELDS;
#if MG_HAS_HALVES
    if (mg_is_ieee(f, 5, 10)) return MG_DECODE_HALF;
#endif
    return mg_fits_single(f) ? MG_DECODE_SINGLE : MG_DECODE_FIELDS;
}

/* Codes to values (or significands) and exponents; raises `top` to the exponent field of infinities and NaNs. */
MG_INLINE void mg_decode_values(
    const mg_format *f, int kind, mg_vi code, int significands, mg_vf *value, mg_vi *exponent, mg_vi *top) {
    if (kind != MG_DECODE_FIELDS) { /* they are values already, or the upper bits of one */
        const mg_vi bits = kind != MG_DECODE_SINGLE ? code
                                                    : code >> f->ignored_low << (f->ignored_low + 31 - f->sign_shift);
        const mg_vi magnitude = bits & INT32_MAX, e = magnitude >> 23,
                    least = MG_SPLAT(kind == MG_DECODE_HALF ? 127 - 14 : 127 - 126);
        *value = (mg_vf)bits;
        *exponent = MG_PICK((mg_vi)(magnitude != 0), mg_max(e, least) - 127, MG_SPLAT(MG_E_ZERO));
        *top = mg_max(*top, e);
    } else {
        mg_split_codes(f, code, value, exponent);
        *top = mg_max(*top, ((mg_vi)*value >> 23) & 255);
        if (!significands) *value *= MG_POWER(mg_max(*exponent, MG_SPLAT(-126)));
    }
}

#if MG_HAS_HALVES
/* The values of codes of 8 bits in a format that mg_fits_halves. `signed_bytes`: a byte's sign, widened, is where that
 * of FP16 is, and below it, too; `makes_nans`: some code may be a NaN that is none of FP16. */
MG_INLINE mg_vf mg_small_values(const mg_format *f, const int signed_bytes, const int makes_nans, const char *at) {
    const uint16_t fields_mask = (uint16_t)((1 << (f->exponent_bits + f->fraction_bits)) - 1),
                   sign = f->sign_shift < 0 ? 0 : 0x8000;
    const uint16_t nan = f->specials == MG_SPECIALS_ALL_ONES_NAN ? fields_mask : UINT16_MAX,
                   quiet = 0x7e00; /* no fields are UINT16_MAX */
    const int up = 10 - f->fraction_bits, sign_up = f->sign_shift < 0 ? 0 : 15 - f->sign_shift;
    const mg_vh word = signed_bytes ? mg_signed_bytes(at) : __builtin_convertvector(MG_AT(mg_vb, at), mg_vh),
                fields = word & fields_mask;
    mg_vh half = {0};
    if (signed_bytes) half = word * (uint16_t)(1 << up) & (uint16_t)(sign | fields_mask << up);
    else half = fields << up | (word << sign_up & sign);
    if (makes_nans) half |= (mg_vh)(fields == nan) & quiet;
    return mg_floats_of_halves(&half) * MG_POWER(MG_SPLAT(15 - f->bias));
}
#endif

/* Codes; the values, where the machine can convert them from FP16. */
MG_INLINE mg_vi mg_load_codes(const mg_format *f, const char *at, int32_t storage, int kind) {
#if MG_HAS_HALVES
    if (kind == MG_DECODE_HALF) return (mg_vi)mg_floats_of_halves(at);
#endif
    (void)f, (void)kind;
    return mg_load_lanes(at, storage);
}

/* Up to MG_V codes side by side; apart, so that the packed loop stays short. */
static __attribute__((noinline)) const char *mg_collect(
    const char *at, int64_t step, int width, ptrdiff_t count, char *some) {
    memset(some, 0, 4 * MG_V);
    for (ptrdiff_t l = 0; l < MG_V && l < count; l++) memcpy(some + l * width, at + l * step, (size_t)width);
    return some;
}

MG_INLINE int mg_decode_run(mg_format f, int kind, int storage, const char *data, int64_t step, ptrdiff_t count,
    int significands, float *value, int32_t *exponent) {
    mg_vi top = {0};
    for (ptrdiff_t i = 0; i < count; i += MG_V) {
        const char *at = data + i * step;
        char some[4 * MG_V];
        mg_vi e;
        mg_vf x;
        if (step * 8 != storage ||
            count - i < MG_V) /* what is past the end of a plane's row is overwritten, or nobody's */
            at = mg_collect(at, step, storage / 8, count - i, some);
        mg_decode_values(&f, kind, mg_load_codes(&f, at, storage, kind), significands, &x, &e, &top);
        *(mg_vf *)(value + i) = x;
        *(mg_vi *)(exponent + i) = e;
    }
    return mg_any((mg_vi)(top == 255)) != 0;
}

/* Codes of 8 bits, each in its part of a word, to integers of 16 or (share 2) 8: those of E2M1 have `units`, which are
 * halves. Without a format they have 8 bits and a sign. */
MG_INLINE mg_vi mg_integers_of(const mg_format *f, const int8_t *units, int share, mg_vi codes) {
    const int bits = f ? f->bits : 8, has_sign = units || !f || f->is_signed;
    const int16_t unused = (int16_t)(units ? 8 : 16 - bits);
    mg_fours x = (mg_fours)codes;
    if (f) x &= (int8_t)((1 << bits) - 1);
    if (units) x = mg_shuffle_bytes(mg_spread(units), x);
    if (share == 2 && !f) return codes;
    if (share == 2) {
        const uint8_t sign = (uint8_t)(has_sign << (bits - 1)); /* bytes that wrap: 128 may be a sign, or not */
        return units ? (mg_vi)x : (mg_vi)(((mg_bytes)x ^ sign) - sign);
    }
    mg_many y = (mg_many)x;
    if (has_sign) y = y << unused >> unused;
    return (mg_vi)y;
}

/* Codes to such words: `rows` of them, `row` bytes apart, of `count` codes `step` bytes apart; a word holds (share)
 * codes that lie `other` bytes behind each other, too. `turns`: words of two rows by turns, the second this many bytes
 * behind the first, or MG_NO_TURNS. */
MG_INLINE void mg_decode_words(const mg_format *f, const int8_t *units, const char *data, int64_t row, int32_t rows,
    int64_t step, ptrdiff_t count, int share, int64_t other, int64_t turns, int32_t flip, mg_word *words) {
    const int part = 32 >> share, by_turns = turns != MG_NO_TURNS;
    ptrdiff_t i = 0;
#if MG_V == 16
    for (; by_turns && share == 2 && step == 4 && i + MG_V <= count; i += MG_V)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const char *at = data + r * row + i / 2 * step;
            const mg_vi codes = mg_zip(mg_load_half(at, 32), mg_load_half(at + turns, 32));
            *(mg_vi *)(words + r * count + i) = mg_integers_of(f, units, share, codes) ^ flip;
        }
#endif
    for (; share && !by_turns && step == 1 << share && other == 1 && i + MG_V <= count; i += MG_V)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const char *at = data + r * row + i * step;
            mg_vi codes = mg_load_lanes(at, 8 << share);
            if (share == 1) codes = (codes | codes << 8) & 0xff00ff;
            *(mg_vi *)(words + r * count + i) = mg_integers_of(f, units, share, codes) ^ flip;
        }
#if MG_V == 8
    const int in_run = step == 1 && other == MG_V && count == MG_V;
    for (; !by_turns && share == 2 && in_run && i < count; i += MG_V)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const mg_vi codes = mg_four_rows(data + r * row);
            *(mg_vi *)(words + r * MG_V) = mg_integers_of(f, units, share, codes) ^ flip;
        }
#endif
    for (; !by_turns && step == 1 && i + MG_V <= count; i += MG_V)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const char *at = data + r * row + i;
            mg_vi codes = mg_load_lanes(at, 8);
            for (int s = 1; s < 1 << share; s++) codes |= mg_load_lanes(at + s * other, 8) << s * part;
            *(mg_vi *)(words + r * count + i) = mg_integers_of(f, units, share, codes) ^ flip;
        }
    for (; i < count; i++)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const char *at = data + r * row + (by_turns ? i / 2 * step + i % 2 * turns : i * step);
            uint32_t codes = (uint8_t)*at;
            for (int s = 1; s < 1 << share; s++) codes |= (uint32_t)(uint8_t)at[s * other] << s * part;
            words[r * count + i] = mg_integers_of(f, units, share, MG_SPLAT((int32_t)codes))[0] ^ flip;
        }
}

/* The same, compiled once for each kind of integer. */
static void mg_integer_plane(const mg_format *f, const mg_table *table, const char *data, int64_t row, int32_t rows,
    int64_t step, ptrdiff_t count, int share, int64_t other, int64_t turns, int32_t flip, void *words) {
    const mg_format format = *f;
    int8_t units[16] = {0};
    for (int code = 0; f->is_float && code < 16; code++) units[code] = (int8_t)(table->value[code] * 2);
    if (f->is_float && share)
        mg_decode_words(&format, units, data, row, rows, step, count, 2, other, turns, flip, words);
    else if (f->is_float) mg_decode_words(&format, units, data, row, rows, step, count, 0, other, turns, 0, words);
    else if (MG_HAS_FOURS && share == 2 && f->bits == 8)
        mg_decode_words(NULL, NULL, data, row, rows, step, count, 2, other, turns, flip, words);
    else if (MG_HAS_FOURS && share == 2)
        mg_decode_words(&format, NULL, data, row, rows, step, count, 2, other, turns, flip, words);
    else if (f->bits < 8 || !f->is_signed)
        mg_decode_words(&format, NULL, data, row, rows, step, count, share & 1, other, turns, 0, words);
    else mg_decode_words(NULL, NULL, data, row, rows, step, count, share & 1, other, turns, 0, words);
}

/* Decodes `count` codes that lie `step` bytes apart, to values or significands; returns whether there is an infinity or
 * a NaN. */
static int mg_decode_plane(const mg_format *f, const mg_table *table, const char *data, int64_t step, ptrdiff_t count,
    int significands, float *value, int32_t *exponent) {
    const int kind = mg_decode_kind(f, significands);
    if (table && table->looked_up) {
        const float *values = significands ? table->significand : table->value;
        int32_t any = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            const uint8_t code = (uint8_t)data[i * step];
            value[i] = values[code];
            exponent[i] = table->exponent[code];
            any |= exponent[i] >= MG_E_SPECIAL;
        }
        return any;
    }
    mg_format format = *f;
#define MG_DECODE(kind, storage) \
    return mg_decode_run(format, kind, storage, data, step, count, significands, value, exponent)
#if MG_HAS_HALVES
    if (kind == MG_DECODE_HALF) MG_DECODE(MG_DECODE_HALF, 16);
#endif
    if (kind == MG_DECODE_SINGLE && f->storage == 16) MG_DECODE(MG_DECODE_SINGLE, 16);
    if (kind == MG_DECODE_SINGLE) MG_DECODE(MG_DECODE_SINGLE, 32);
    if (f->storage == 8 && f->exponent_bits == 4 && f->fraction_bits == 3 &&
        f->specials == MG_SPECIALS_ALL_ONES_NAN) { /* E4M3 with constants, too */
        format.exponent_bits = 4;
        format.fraction_bits = 3;
        format.specials = MG_SPECIALS_ALL_ONES_NAN;
        MG_DECODE(MG_DECODE_FIELDS, 8);
    }
    if (f->storage == 8) MG_DECODE(MG_DECODE_FIELDS, 8);
    if (f->storage == 16) MG_DECODE(MG_DECODE_FIELDS, 16);
    MG_DECODE(MG_DECODE_FIELDS, 32);
#undef MG_DECODE
}

#if MG_HAS_HALVES
/* Decodes `count` codes of 8 bits side by side, in a format that mg_fits_bytes, to values and to exponents in bytes;
 * returns whether there is an infinity or a NaN. */
MG_INLINE int mg_decode_bytes_as(const mg_format *f, const int signed_bytes, const int makes_nans, const char *data,
    ptrdiff_t count, float *value, uint8_t *exponent) {
    const int fraction_bits = f->fraction_bits, all = (1 << (f->exponent_bits + fraction_bits)) - 1;
    const int special = f->specials == MG_SPECIALS_ALL_ONES_NAN ? all
        : f->specials == MG_SPECIALS_IEEE ? all >> fraction_bits << fraction_bits
                                                                : 256;
    const mg_format format = *f;
    mg_bytes top = {0};
    int any = 0;
    for (ptrdiff_t i = 0; i < count; i += 4 * MG_V) {
        char some[4 * MG_V] = {0};
        const char *at = count - i < 4 * MG_V ? memcpy(some, data + i, (size_t)(count - i)) : data + i;
        const mg_bytes fields = MG_AT(mg_bytes, at) & (uint8_t)all, field = fields >> fraction_bits,
                       least = (mg_bytes)(field == 0) & 1;
        *(mg_bytes *)(exponent + i) = (field + least + (uint8_t)(MG_BYTE_BIAS - f->bias)) & (mg_bytes)(fields != 0);
        top = mg_max_bytes(top, fields);
        MG_UNROLL for (ptrdiff_t v = 0; v < 4 * MG_V; v += MG_V)
            if (v < count - i) *(mg_vf *)(value + i + v) = mg_small_values(&format, signed_bytes, makes_nans, at + v);
    }
    for (int l = 0; l < 4 * MG_V; l++) any |= top[l] >= special;
    return any;
}

/* The same of FP16. */
MG_INLINE int mg_decode_halves(const char *data, ptrdiff_t count, float *value, uint8_t *exponent) {
    mg_wraps top = {0};
    int any = 0;
    for (ptrdiff_t i = 0; i < count; i += 2 * MG_V) {
        const ptrdiff_t left = count - i;
        char some[4 * MG_V];
        const char *at = data + 2 * i;
        if (left < 2 * MG_V) at = memcpy(memset(some, 0, sizeof some), at, (size_t)(2 * left));
        mg_wraps magnitude;
        memcpy(&magnitude, at, sizeof magnitude);
        magnitude &= 0x7fff;
        const mg_wraps field = magnitude >> 10, least = (mg_wraps)(field == 0) & 1;
        const mg_short byte = __builtin_convertvector(
            (field + least + (MG_BYTE_BIAS - 15)) & (mg_wraps)(magnitude != 0), mg_short);
        memcpy(exponent + i, &byte, sizeof byte);
        top |= (mg_wraps)(magnitude >= 0x7c00);
        *(mg_vf *)(value + i) = mg_floats_of_halves(at);
        if (left > MG_V) *(mg_vf *)(value + i + MG_V) = mg_floats_of_halves(at + 2 * MG_V);
    }
    for (int l = 0; l < 2 * MG_V; l++) any |= top[l];
    return any != 0;
}

/* NaNs are looked after where there is one, or, as some operand before had one, may be. */
static int mg_decode_bytes(
    const mg_format *f, const char *data, ptrdiff_t count, int specials, float *value, uint8_t *exponent) {
    if (f->storage == 16) return mg_decode_halves(data, count, value, exponent);
    if (f->sign_shift != 7 || f->fraction_bits < 2) return mg_decode_bytes_as(f, 0, 1, data, count, value, exponent);
    if (!specials && !mg_decode_bytes_as(f, 1, 0, data, count, value, exponent)) return 0;
    return mg_decode_bytes_as(f, 1, 1, data, count, value, exponent);
}
#define MG_DECODE_BYTES mg_decode_bytes
#else
#define MG_DECODE_BYTES NULL
#endif

/* Whether what is not zero in a plane has an exponent beyond least ... most. */
static int mg_reaches(const mg_plane *plane, int32_t least, int32_t most) {
    mg_vi beyond = {0};
    for (ptrdiff_t i = 0; i < plane->count; i += MG_V) {
        mg_vi e = MG_AT(mg_vi, plane->exponent + i);
        if (plane->count - i < MG_V) MG_EACH_LANE if (l >= plane->count - i) e[l] = 0; /* past the end */
        beyond |= (e - least) & (MG_E_ZERO / 2 - e); /* the sign bits: below the one and above the other */
        beyond |= most - e;
    }
    return mg_any(beyond) != 0;
}

/* Rounding --------------------------------------------------------------------------------------------------------- */

/* Half a vector of floats as doubles, or of integers, and back, rounded to nearest even. */
MG_INLINE mg_df mg_half_doubles(mg_vf x, int half) {
    mg_vs part[2];
    memcpy(part, &x, sizeof x);
    return mg_widened(part[half]);
}

MG_INLINE mg_df mg_whole_doubles(mg_vi x, int half) {
    mg_half part[2];
    memcpy(part, &x, sizeof x);
    return __builtin_convertvector(part[half], mg_df);
}

MG_INLINE mg_vi mg_floats_of(const mg_df *halves) {
    const mg_vs part[2] = {__builtin_convertvector(halves[0], mg_vs), __builtin_convertvector(halves[1], mg_vs)};
    return (mg_vi)mg_join(part[0], part[1]);
}

/* mg_round_sums to any format. */
static __attribute__((noinline)) mg_vi mg_round_any(
    const mg_operation *o, int kept, int nearest, const mg_df *sum, mg_vi unit) {
    const mg_format *f = &o->out_format;
    const int below = f->fraction_bits - kept;
    const int64_t least = f->min_exponent, infinity = (int64_t)(f->infinity >> below),
                  sign_bit = INT64_C(1) << f->sign_shift;
    const int64_t underflow = o->zero_rule == MG_ZERO_SIGNED_UNDERFLOW ? INT64_MIN : 0;
    int64_t bits[MG_V];
    int32_t lsb[MG_V], out[MG_V];
    memcpy(bits, sum, sizeof bits);
    *(mg_vi *)lsb = unit;
    MG_EACH_LANE { /* without a branch: in vectors */
        const uint64_t magnitude = (uint64_t)bits[l] & INT64_MAX,
                       significand = (magnitude & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
        /* Normalisation: the exponent of the leading one, at least that of a subnormal result. */
        const int64_t leading = (int64_t)(magnitude >> 52) - 1023 + lsb[l],
                      exponent = leading > least ? leading : least;
        const int64_t away = 52 - kept + (exponent - leading), shift = away > 60 ? 60 : away;
        /* Round bit and sticky bits: half a unit less one, and the last kept bit, carry where nearest even goes up. */
        const uint64_t half = nearest ? (UINT64_C(1) << (shift - 1)) - 1 + ((significand >> shift) & 1) : 0;
        /* The carry of a rounding reaches the exponent field by itself; beyond the largest code is infinity. */
        int64_t rounded = ((exponent - least) << kept) + (int64_t)((significand + half) >> shift);
        rounded = magnitude ? (rounded > infinity ? infinity : rounded) << below : 0;
        out[l] = (int32_t)(rounded | ((rounded ? bits[l] : magnitude ? underflow & bits[l] : 0) >> 63 & sign_bit));
    }
    return MG_AT(mg_vi, out);
}

/* 2^x of half a vector, as doubles; -1022 <= x <= 1023. */
MG_INLINE mg_df mg_double_power(mg_vi x, int half) {
    mg_half part[2];
    memcpy(part, &x, sizeof x);
    return (mg_df)(__builtin_convertvector(part[half] + 1023, mg_dw) << 52);
}

/* mg_round_sums where some result is subnormal. */
static __attribute__((noinline)) mg_vi mg_round_small(int kept, int nearest, const mg_df *x) {
    const double last = 0x1p-126 / (1 << kept), ones = (double)(1 << kept) * 0x1p126;
    mg_df rounded[2];
    MG_EACH_HALF {
        const mg_dw subnormal = (mg_dw)(x[h] < 0x1p-126) & (mg_dw)(x[h] > -0x1p-126),
                    whole = (mg_dw)(mg_whole(x[h] * ones) * last);
        rounded[h] = nearest ? x[h] : (mg_df)MG_PICK(subnormal, whole, (mg_dw)x[h] & -(INT64_C(1) << (52 - kept)));
    }
    return mg_floats_of(rounded);
}

/* Rounds `sum` * 2^unit, numbers below 2^53 in doubles, whose last bit is 2^unit, to FP32: `kept` fraction bits, toward
 * zero, or all to nearest even, overflow to infinity. A zero is +0, but for a sum that rounds to zero with its sign
 * (MG_ZERO_SIGNED_UNDERFLOW). The sums themselves are never -0: they begin with +0 or an integer, and whatever joins
 * it, -0 too, leaves +0 where nothing is left. A sum below the least unit handled here rounds to
 * zero, and a sum above the largest one is infinite. Infinity and NaN stay. */
MG_INLINE mg_vi mg_round_to_floats(const mg_operation *o, int kept, int nearest, const mg_df *sum, mg_vi unit) {
    const mg_vi near = mg_max(-mg_max(-unit, MG_SPLAT(-254)), MG_SPLAT(-252));
    mg_df x[2], cut[2];
    MG_EACH_HALF {
        x[h] = sum[h] * mg_double_power(near, h);
        cut[h] = nearest ? x[h] : (mg_df)((mg_dw)x[h] & -(INT64_C(1) << (52 - kept)));
    }
    mg_vi code = mg_floats_of(cut);
    const mg_vi small = (mg_vi)((mg_vu)((code & INT32_MAX) - 1) <=
        0x800000 - 1); /* the least normal number may be one that was rounded up */
    if (!nearest && mg_any(small)) code = mg_round_small(kept, nearest, x);
    return code & ((mg_vi)(code != INT32_MIN) | -(o->zero_rule == MG_ZERO_SIGNED_UNDERFLOW));
}

/* The same to the format of an operation's result. */
MG_INLINE mg_vi mg_round_sums(const mg_operation *o, int kept, int nearest, const mg_df *sum, mg_vi unit) {
    if (!mg_is_ieee(&o->out_format, 8, 23) || (nearest && kept < 23)) return mg_round_any(o, kept, nearest, sum, unit);
    return mg_round_to_floats(o, kept, nearest, sum, unit);
}

/* Puts NaN or infinity where `end`, a sum of floats, is one. */
MG_INLINE mg_vi mg_with_specials(const mg_operation *o, mg_vf end, mg_vi code) {
    const mg_vi infinity = MG_SPLAT((int32_t)o->out_format.infinity) |
        (mg_vi)(((mg_vu)end >> 31) << o->out_format.sign_shift);
    return MG_PICK(MG_IS_TOP(end), MG_PICK((mg_vi)(end == end), infinity, MG_SPLAT((int32_t)o->nan)), code);
}

/* Sums of products ------------------------------------------------------------------------------------------------- */

#if MG_V > 4
/* The largest exponents of the products from, from + step, ... of an operation, in bytes, or 0 where all are zero: four
 * times as many sums at once as of words. 16 bytes of a vector are a row, or two that have eight columns each, and a
 * shuffle repeats the exponent of element k for all of them. Rows that take turns do so in the end. `high` times
 * MG_ROWS rows and `wide` vectors of columns, whose maxima lie `down` and `right` bytes from each other, share what
 * they load. */
MG_INLINE void mg_byte_tops(const mg_operation *o, const int paired, const int high, const int wide, const uint8_t *a,
    ptrdiff_t a_row, const uint8_t *b, ptrdiff_t b_row, int32_t from, int32_t step, uint8_t *out, ptrdiff_t down,
    ptrdiff_t right) {
    const int32_t columns = MG_V >> paired;
    mg_bytes most[4] = {{0}}, pieces[2];
    for (int32_t first = 0; first < o->k_count; first += columns) { /* a piece of a row has as many elements */
        const ptrdiff_t k = o->k_index[0] + first;
        const int32_t last = o->k_count - first < columns ? o->k_count - first : columns;
        MG_UNROLL for (int h = 0; h < high; h++)
            pieces[h] = mg_four_pieces((const char *)a + h * MG_ROWS * a_row + (k << paired), a_row);
        for (int32_t i = from; i < last; i += step) {
            const uint8_t *at = b + (k + i) * b_row;
            const mg_fours one = columns == 8 ? mg_spread(mg_picks + 2 * i) : (mg_fours)mg_spread_eight(mg_picks + i);
            MG_UNROLL for (int h = 0; h < high; h++) {
                const mg_bytes x = (mg_bytes)mg_shuffle_bytes((mg_fours)pieces[h], one);
                MG_UNROLL for (int w = 0; w < wide; w++) {
                    const mg_bytes y = columns == 8 ? mg_spread_eight(at + w * columns)
                                                    : (mg_bytes)mg_spread(at + w * columns);
                    most[h * wide + w] = mg_max_bytes(most[h * wide + w], x + y);
                }
            }
        }
    }
    MG_UNROLL for (int h = 0; h < high; h++)
        MG_UNROLL for (int w = 0; w < wide; w++) {
            const mg_bytes top = most[h * wide + w] & (mg_bytes)(most[h * wide + w] > 127);
            *(mg_bytes *)(out + h * down + w * right) = paired
                ? (mg_bytes)mg_shuffle_bytes((mg_fours)top, mg_spread(mg_turns))
                : top;
        }
}

/* The largest exponents of a tile, in the order in which mg_quick_rows takes them. */
MG_INLINE void mg_fill_tops_as(const mg_tile *t, const int paired, const int high, const int wide) {
    const mg_operation *operations = t->program->operations, *end = operations + t->program->operation_count;
    const ptrdiff_t columns = t->columns, a_row = t->a_row, rows = t->rows, next = t->b.count / t->matrices;
    const ptrdiff_t right = mg_maxima(t->program) * (ptrdiff_t)sizeof(mg_bytes),
                    down = columns / (MG_V >> paired) * right;
    const uint8_t *a = (const uint8_t *)t->a.exponent, *b = (const uint8_t *)t->b.exponent;
    uint8_t *out = t->tops;
    for (const mg_operation *o = operations; o < end; o++)
        for (int32_t g = 0, groups = o->fast == MG_FAST_FDRDA ? o->group : 1; g < groups; g++, out += sizeof(mg_bytes))
            for (ptrdiff_t n = 0; n < t->matrices; n++)
                for (ptrdiff_t i = 0; i < rows; i += high * MG_ROWS)
                    for (ptrdiff_t j = 0; j < columns; j += wide * (MG_V >> paired))
                        mg_byte_tops(o, paired, high, wide, a + (n * rows + i) * a_row, a_row, b + n * next + j,
                            columns, g, groups, out + (n * rows + i) / MG_ROWS * down + j / (MG_V >> paired) * right,
                            down, right);
}

static __attribute__((noinline)) void mg_fill_tops(const mg_tile *t, const int paired) {
    if (t->columns % (4 * MG_V >> paired) == 0) mg_fill_tops_as(t, paired, 1, 4);
    else if (t->rows % (2 * MG_ROWS) == 0) mg_fill_tops_as(t, paired, 2, 1);
    else mg_fill_tops_as(t, paired, 1, 1);
}
#endif

/* Raises `top` to the largest exponent of the products from, from + step, ... of an operation. */
MG_INLINE void mg_tops(const mg_operation *o, const mg_part *x, int32_t from, int32_t step, mg_vi *top) {
    if (x->tops) {
        const char *at = (const char *)*x->tops;
        MG_EACH_ROW top[r] = mg_max(top[r], mg_load_lanes(at + r * MG_V, 8) - 2 * MG_BYTE_BIAS);
        *x->tops += MG_ROWS * MG_V;
        return;
    }
    for (int32_t i = from; i < o->k_count; i += step) {
        const ptrdiff_t k = mg_k(o, x, i);
        const mg_vi b = mg_of_b(x, x->b_exponent + mg_row_of_b(x, k));
        MG_EACH_ROW top[r] = mg_max(top[r], mg_of_a(x, x->a_exponent + r * x->a_row, k) + b);
    }
}

/* Products as large as that are infinite. */
MG_INLINE mg_vf mg_overflowing(mg_vf p, mg_vi exponent, int32_t least) {
    const mg_vi two = (mg_vi)(((mg_vi)p & INT32_MAX) >= 0x40000000), large = (mg_vi)(exponent - two >= least);
    return (mg_vf)MG_PICK(large & ~MG_IS_TOP(p), ((mg_vi)p & INT32_MIN) | MG_TOP, (mg_vi)p);
}

/* Adds the products of element k to the totals, each cut to units: a product of exponent e counts 2^(units + e).
 * `scale` is 2^units. `floats`: the sum of the products as floats, which is special where it ought to be. */
MG_INLINE void mg_add_products(const mg_operation *o, const mg_part *x, ptrdiff_t k, const mg_vi *units,
    const mg_vf *scale, mg_vi *total, mg_vf *floats) {
    const ptrdiff_t at = mg_row_of_b(x, k);
    const mg_vf b = (mg_vf)mg_of_b(x, x->b + at);
    MG_EACH_ROW {
        mg_vf p = mg_value_of_a(x, x->a + r * x->a_row, k) * b;
        if (x->significands) {
            const mg_vi e = mg_of_a(x, x->a_exponent + r * x->a_row, k) + mg_of_b(x, x->b_exponent + at);
            total[r] = MG_PLUS(
                total[r], __builtin_convertvector(p * MG_POWER(mg_max(units[r] + e, MG_LEAST_POWER)), mg_vi));
            if (!x->quick && o->product_overflow) p = mg_overflowing(p, e, o->product_overflow);
        } else {
            total[r] = MG_PLUS(total[r], __builtin_convertvector(p * scale[r], mg_vi));
        }
        if (x->specials) floats[r] += p;
    }
}

/* Sums the products from, from + step, ...; at most `chunk` of them fit an int32. `wide` takes the sum, unless it is
 * quick. */
MG_INLINE void mg_totals(const mg_operation *o, const mg_part *x, int32_t from, int32_t step, const mg_vi *units,
    mg_vi *total, mg_df wide[][2], mg_vf *floats) {
    mg_vf scale[MG_ROWS];
    MG_EACH_ROW {
        const mg_vi least = mg_max(
            units[r], MG_SPLAT(-64)); /* where all are less than a unit: no scale makes one subnormal */
        scale[r] = MG_POWER(
            x->quick ? least : -mg_max(MG_SPLAT(-126), -least)); /* the units of a quick sum end before */
        total[r] = (mg_vi){0};
    }
    if (x->quick) {
        MG_UNROLL for (int32_t i = from; i < o->k_count; i += step)
            mg_add_products(o, x, mg_k(o, x, i), units, scale, total, floats);
        return;
    }
    MG_EACH_ROW MG_EACH_HALF wide[r][h] = (mg_df){0};
    for (int32_t i = from; i < o->k_count;) {
        for (int32_t left = o->chunk; left-- && i < o->k_count; i += step)
            mg_add_products(o, x, mg_k(o, x, i), units, scale, total, floats);
        MG_EACH_ROW {
            MG_EACH_HALF wide[r][h] += mg_whole_doubles(total[r], h);
            total[r] = (mg_vi){0};
        }
    }
}

/* Operations ------------------------------------------------------------------------------------------------------- */

/* An operand that is added late, in lanes: c, or an earlier result. */
typedef struct {
    mg_vf significand;
    mg_vi exponent;
} mg_late;

/* The exponent of c of a quick sum, an f32: where products are values, one less than it is of a subnormal number. */
MG_INLINE mg_vi mg_exponent_of_c(const mg_part *x, mg_vi code) {
    const mg_vi exponent = (mg_vi)((mg_vu)code << 1 >> 24) - 127;
    if (x->significands) return MG_PICK((mg_vi)(code << 1 != 0), mg_max(exponent, MG_SPLAT(-126)), MG_SPLAT(MG_E_ZERO));
    return exponent;
}

/* It, cut to units. Nothing is left of 31 bits that move right by 31. */
MG_INLINE mg_vi mg_cut_c(const mg_operation *o, mg_vi code, mg_vi exponent, mg_vi units) {
    const int32_t wider = o->fraction_bits > 23 ? o->fraction_bits - 23 : 0;
    const mg_vi hidden = (mg_vi)((code & INT32_MAX) >= 1 << 23) & 1 << 23, sign = code >> 31;
    const mg_vi shift = 23 + wider - units - exponent,
                magnitude = ((code & 0x7fffff) | hidden) << wider >> -mg_max(-shift, MG_SPLAT(-31));
    return (magnitude ^ sign) - sign;
}

/* The code with NaN or infinity: at once where operands have some, in most lanes; where only c has one, by the sign
 * bit of `special`, it is slow. */
MG_INLINE mg_vi mg_quick_specials(
    const mg_operation *o, const mg_part *x, mg_vi code, mg_vi c, mg_vi special, mg_vf *end, mg_vi *slow) {
    if (!x->specials) {
        *slow |= special;
        return code;
    }
    *end += (mg_vf)(special >> 31 & c);
    *slow &= ~MG_IS_TOP(*end);
    return mg_with_specials(o, *end, code);
}

/* The lanes of a quick sum that are not, by their sign bit in `slow`: in doubles, NaN or infinity. */
static __attribute__((noinline)) mg_vi mg_repair(
    const mg_operation *o, int significands, mg_vi code, mg_vi slow, mg_vi total, mg_vi c, mg_vi units, mg_vf end) {
    const mg_vi exponent = mg_max((c >> 23 & 255) - 127, MG_SPLAT(-126)),
                alone = o->fraction_bits - mg_max(exponent, MG_SPLAT(o->floor));
    const mg_vi true_units = MG_PICK((mg_vi)(units > MG_MOST_UNITS) & (significands - 1), alone, units);
    const mg_vi added = mg_cut_c(o, c, exponent, true_units);
    mg_df sum[2];
    MG_EACH_HALF sum[h] = mg_whole_doubles(total, h) + mg_whole_doubles(added, h);
    return mg_with_specials(
        o, end, MG_PICK(slow >> 31, mg_round_sums(o, o->result_fraction_bits, 0, sum, -true_units), code));
}

/* All terms, c too, are cut to F bits below the largest exponent (or the floor), summed exactly and rounded once,
 * toward zero to f32: the sum of 32 bits that most programs have. Up to MG_MOST_UNITS a subnormal c is less than a
 * unit, and a sum that is not zero a normal number; beyond them, values are all zero. */
MG_INLINE void mg_quick_dot_add(const mg_operation *o, const mg_part *x, const mg_vi *c, mg_vi *out) {
    const int32_t kept = o->fraction_bits, least = kept - MG_MOST_UNITS - 1,
                  floor = x->significands || o->floor > least ? o->floor : least;
    mg_vi top[MG_ROWS], late[MG_ROWS], units[MG_ROWS], total[MG_ROWS], slow[MG_ROWS], some = {0};
    mg_vf end[MG_ROWS];
    MG_EACH_ROW {
        /* Maximum exponent: of c, of the products (mg_tops), at least the floor; no term has one above. */
        late[r] = mg_exponent_of_c(x, c[r]);
        top[r] = mg_max(late[r], MG_SPLAT(floor));
        end[r] = (mg_vf){0};
    }
    mg_tops(o, x, 0, 1, top);
    /* Alignment shift: a product becomes an integer of units of 2^(maximum - F), what lies below is truncated, without
     * a sticky bit. The integers are exact, and so is their sum. */
    MG_EACH_ROW units[r] = kept - top[r];
    mg_totals(o, x, 0, 1, units, total, NULL, end);
    MG_EACH_ROW {
        const mg_vi unit = top[r] - kept, special = 127 - late[r];
        mg_vi added = __builtin_convertvector((mg_vf)((mg_vi)(late[r] >= unit) & c[r]) * MG_POWER(-unit), mg_vi);
        if (x->significands) added = mg_cut_c(o, c[r], late[r], units[r]);
        /* Sum with c, in 32 bits; a carry out of them is seen by the signs below. */
        const mg_vi sum = MG_PLUS(total[r], added);
        /* Normalisation and rounding: the conversion to a float finds the leading one and cuts, the mask cuts
         * further. */
        mg_vf rounded = (mg_vf)((mg_vi)mg_truncated(sum) & -(1 << (23 - o->result_fraction_bits)));
        if (x->significands) { /* in two steps, as one can be too large for a float */
            const mg_vi rest = mg_max(unit - 127, MG_SPLAT(0));
            rounded = rounded * MG_POWER(mg_max(unit - rest, MG_SPLAT(-127))) *
                MG_POWER(-mg_max(-rest, MG_SPLAT(-127)));
        } else {
            rounded *= MG_POWER(unit);
        }
        out[r] = (mg_vi)rounded;
        /* The sign bit of a lane says that two addends of one sign gave the other, or that units are too small. */
        slow[r] = ((total[r] ^ sum) & (added ^ sum)) | (unit + MG_MOST_UNITS);
        out[r] = mg_quick_specials(o, x, out[r], c[r], special, &end[r], &slow[r]);
        some |= slow[r];
    }
    if (!mg_any(some)) return;
    MG_EACH_ROW {
        slow[r] &= (mg_vi)((total[r] | c[r] << 1) != 0);
        if (!x->specials) end[r] = (mg_vf)(MG_IS_TOP(c[r]) & c[r]);
        if (!mg_any(slow[r])) continue;
        out[r] = mg_repair(o, x->significands, out[r], slow[r], total[r], c[r], units[r], end[r]);
    }
}

/* The same of any format and rounding. */
MG_INLINE void mg_fused_dot_add(const mg_operation *o, const mg_part *x, const mg_late *c, mg_vi *out) {
    mg_vi top[MG_ROWS], units[MG_ROWS], total[MG_ROWS];
    mg_vf end[MG_ROWS];
    mg_df sum[MG_ROWS][2];
    MG_EACH_ROW {
        top[r] = mg_max(c[r].exponent, MG_SPLAT(o->floor));
        end[r] = (mg_vf){0};
    }
    mg_tops(o, x, 0, 1, top);
    MG_EACH_ROW units[r] = o->fraction_bits - top[r];
    mg_totals(o, x, 0, 1, units, total, sum, end);
    MG_EACH_ROW {
        const mg_vi added = __builtin_convertvector(
            c[r].significand * MG_POWER(mg_max(units[r] + c[r].exponent, MG_LEAST_POWER)), mg_vi);
        MG_EACH_HALF sum[r][h] += mg_whole_doubles(added, h);
        out[r] = mg_round_sums(o, o->result_fraction_bits, o->rounding == MG_ROUNDING_NEAREST_EVEN, sum[r], -units[r]);
        out[r] = mg_with_specials(o, end[r] + (mg_vf)(MG_IS_TOP(c[r].significand) & (mg_vi)c[r].significand), out[r]);
    }
}

/* Two groups of products, each cut below its own largest exponent, are combined rounding down, met by c rounding down,
 * and what is left rounded down and then to nearest even. */
static __attribute__((noinline)) mg_vi mg_meet_rounded_down(const mg_operation *o, const mg_df *first,
    const mg_df *second, mg_vi first_top, mg_vi second_top, const mg_late *c) {
    const int32_t kept = o->fraction_bits, widen = o->dot_fraction_bits - kept,
                  window = o->window >= 0 ? o->window : 1 << 18; /* 1 << 18: none */
    const mg_vi all = mg_max(first_top, second_top), maximum = mg_max(mg_max(all, c->exponent), MG_SPLAT(-126));
    const mg_vf late = (mg_vf)((mg_vi)(maximum - c->exponent <= window) & (mg_vi)c->significand);
    const mg_vi moves[] = {first_top - all, second_top - all, all - maximum + widen, c->exponent - maximum + kept,
        -126 - maximum + o->dot_fraction_bits};
    const double wider = (double)(INT64_C(1) << widen), last = 1.0 / (double)(INT64_C(1) << o->sum_fraction_bits);
    mg_df sum[2];
    MG_EACH_HALF {
        mg_df move[5];
        for (int i = 0; i < 5; i++) move[i] = mg_half_doubles(MG_POWER(mg_max(moves[i], MG_SPLAT(-126))), h);
        /* The groups meet at their maximum, rounded down; in units of 2^(all - F), whole numbers from here on. */
        const mg_df dot = mg_floor(first[h] * move[0]) + mg_floor(second[h] * move[1]);
        /* They meet c: alignment shifts of both, rounded down, in units of the dot product. */
        const mg_df met = mg_floor(dot * move[2]) + mg_floor(mg_half_doubles(late, h) * move[3]) * wider;
        /* Normalisation: the place of the leading one gives the last bit of the wide sum, which rounds down to it. */
        const mg_df power = (mg_df)((mg_dw)met & INT64_C(0x7ff) << 52),
                    leading = (mg_df)MG_PICK((mg_dw)(power > move[4]), (mg_dw)power, (mg_dw)move[4]) * last;
        const mg_df unit = (mg_df)MG_PICK((mg_dw)(leading > 1), (mg_dw)leading, (mg_dw)((mg_df){0} + 1));
        sum[h] = mg_floor(met / unit) * unit;
    }
    return mg_round_sums(o, o->result_fraction_bits, 1, sum, maximum - o->dot_fraction_bits);
}

MG_INLINE void mg_rounded_down_dot_add(const mg_operation *o, const mg_part *x, const mg_late *c, mg_vi *out) {
    mg_vi top[2][MG_ROWS], units[MG_ROWS], total[MG_ROWS];
    mg_vf end[MG_ROWS];
    mg_df sum[2][MG_ROWS][2] = {{{{0}}}};
    MG_EACH_ROW {
        top[0][r] = top[1][r] = MG_SPLAT(2 * MG_E_ZERO);
        end[r] = (mg_vf)(MG_IS_TOP(c[r].significand) & (mg_vi)c[r].significand);
    }
    for (int32_t g = 0; g < o->group; g++) {
        mg_tops(o, x, g, o->group, top[g]);
        MG_EACH_ROW units[r] = o->fraction_bits - top[g][r];
        mg_totals(o, x, g, o->group, units, total, sum[g], end);
    }
    MG_EACH_ROW out[r] = mg_with_specials(
        o, end[r], mg_meet_rounded_down(o, sum[0][r], sum[1][r], top[0][r], top[1][r], &c[r]));
}

/* x >> by; nothing but the sign is left of 32 bits that move by 31 or more. */
MG_INLINE mg_vi mg_right(mg_vi x, mg_vi by) { return x >> -mg_max(-by, MG_SPLAT(-31)); }

/* The lanes of a quick sum, rounded down, that are not, by their sign bit in `slow`. */
static __attribute__((noinline)) mg_vi mg_repair_rounded_down(
    const mg_operation *o, mg_vi code, mg_vi slow, mg_vi dot, mg_vi top, mg_vi c, mg_vf end) {
    const mg_vi own = MG_PICK((mg_vi)(top < o->fraction_bits - MG_MOST_UNITS), MG_SPLAT(2 * MG_E_ZERO), top);
    const mg_df first[2] = {mg_whole_doubles(dot, 0), mg_whole_doubles(dot, 1)}, second[2] = {{0}};
    mg_late late;
    mg_split_codes(&o->seed_format, c, &late.significand, &late.exponent);
    return mg_with_specials(
        o, end, MG_PICK(slow >> 31, mg_meet_rounded_down(o, first, second, own, MG_SPLAT(2 * MG_E_ZERO), &late), code));
}

/* mg_rounded_down_dot_add where 32 bits hold the sum in units of 2^(maximum - F - 2), to nearest even in f32. Of the
 * dot product's bits below such a unit, the bits that are rounded down away do not count; whether another one is set
 * goes into the last bit of the sum (round to odd), which lies below the bits that the rounding compares, unless c and
 * the dot product cancel. */
MG_INLINE void mg_quick_rounded_down(const mg_operation *o, const mg_part *x, const mg_vi *c, mg_vi *out) {
    const int32_t kept = o->fraction_bits, least = kept + 2 - MG_MOST_UNITS, below = o->dot_fraction_bits - kept - 2;
    const int32_t window = o->window >= 0 ? o->window : 1 << 18;
    mg_vi top[2][MG_ROWS], units[MG_ROWS], total[2][MG_ROWS], slow[MG_ROWS], some = {0};
    mg_vf end[MG_ROWS];
    MG_EACH_ROW {
        top[0][r] = top[1][r] = MG_SPLAT(kept - MG_MOST_UNITS - 1);
        total[0][r] = total[1][r] = (mg_vi){0};
        end[r] = (mg_vf){0};
    }
    for (int32_t g = 0; g < o->group; g++) {
        mg_tops(o, x, g, o->group, top[g]);
        MG_EACH_ROW units[r] = kept - top[g][r];
        mg_totals(o, x, g, o->group, units, total[g], NULL, end);
    }
    MG_EACH_ROW {
        if (o->group == 2) { /* they meet */
            const mg_vi all = mg_max(top[0][r], top[1][r]);
            total[0][r] = MG_PLUS(mg_right(total[0][r], all - top[0][r]), mg_right(total[1][r], all - top[1][r]));
            top[0][r] = all;
        }
        const mg_vi exponent = (mg_vi)((mg_vu)c[r] << 1 >> 24) - 127, sign = c[r] >> 31, special = 127 - exponent;
        const mg_vi maximum = mg_max(mg_max(top[0][r], exponent), MG_SPLAT(least));
        const mg_vi away = maximum - top[0][r], away_c = maximum - exponent;
        /* a subnormal c is far below a unit: its sign alone counts */
        const mg_vi magnitude = ((c[r] & 0x7fffff) | 1 << 23) & (mg_vi)(c[r] << 1 != 0);
        const mg_vi late = mg_right(((magnitude ^ sign) - sign) << (kept - 23), away_c) << 2 &
            (mg_vi)(away_c <= window);
        const mg_vi dot = total[0][r] << 2, whole = mg_right(dot, away), sum = MG_PLUS(whole, late);
        /* Normalisation: which of the bits below are not rounded down away depends on the place of the leading one. */
        const mg_vi leading = ((mg_vi)mg_truncated(sum ^ sum >> 31) >> 23) - 127;
        const mg_vi counted = -mg_max(mg_max(MG_SPLAT(-below), leading - o->sum_fraction_bits), -away);
        const mg_vi rest = mg_right(dot, away - counted) & ~(-1 << counted);
        /* Sticky bit: what counts below the sum makes its last bit odd, and one conversion rounds as of all bits. */
        const mg_vi code = (mg_vi)(__builtin_convertvector(sum | ((mg_vi)(rest != 0) & 1), mg_vf) *
            MG_POWER(maximum - kept - 2));
        out[r] = code;
        slow[r] = ((whole ^ sum) & (late ^ sum)) | ((mg_vi)(rest != 0) & (leading - 25)) | (mg_vi)(maximum == least);
        out[r] = mg_quick_specials(o, x, out[r], c[r], special, &end[r], &slow[r]);
        some |= slow[r];
    }
    if (!mg_any(some)) return;
    MG_EACH_ROW {
        slow[r] &= (mg_vi)((total[0][r] | c[r] << 1) != 0);
        if (!x->specials) end[r] = (mg_vf)(MG_IS_TOP(c[r]) & c[r]);
        if (mg_any(slow[r])) out[r] = mg_repair_rounded_down(o, out[r], slow[r], total[0][r], top[0][r], c[r], end[r]);
    }
}

/* The exact sum of products of integers, or of bits that differ, from `first` on. */
MG_INLINE void mg_exact_sums(
    const mg_operation *o, const mg_part *x, int32_t first, int32_t count, const int differ, mg_vi *sum) {
    const int in_line = x->plain || x->share;
    const ptrdiff_t start = (o->k_index[0] + first) >> x->share;
    MG_EACH_ROW sum[r] = x->share == 2 ? mg_of_b(x, x->b_exponent + start * x->b_row) : (mg_vi){0};
    for (int32_t i = 0; i < count >> x->share; i++) {
        const ptrdiff_t k = in_line ? start + i : o->k_index[first + i];
        const mg_vi b = mg_of_b(x, x->b + mg_row_of_b(x, k));
        MG_EACH_ROW {
            const mg_vi a = mg_of_a(x, x->a + r * x->a_row, k);
            sum[r] = differ ? mg_add_dot(x->share, 0, sum[r], a ^ b, a ^ b)
                            : mg_add_dot(x->share, x->swapped, sum[r], a, b);
        }
    }
}

/* The exact sum of products of E2M1, in units of 1/4, and whether one of them is not zero. */
MG_INLINE void mg_small_sums(
    const mg_operation *o, const mg_part *x, int32_t first, int32_t count, mg_vi *sum, mg_vi *present) {
    MG_EACH_ROW sum[r] = present[r] = (mg_vi){0};
    if (x->share == 2) { /* mg_begin_groups says what else lies in the exponents */
        const ptrdiff_t word = first / 4, at = word * x->b_row;
        const int32_t words = count / 4;
        const mg_vi begin = mg_of_b(x, x->b_exponent + at),
                    marks = mg_of_b(x, x->b_exponent + at + (x->groups ? MG_GROUPED : o->k_count) / 2 * x->b_row);
        MG_EACH_ROW sum[r] = begin;
        MG_UNROLL for (int32_t i = 0; i < words; i++) {
            const mg_vi b = mg_of_b(x, x->b + at + i * x->b_row);
            MG_EACH_ROW sum[r] = (mg_vi)((mg_wraps)sum[r] +
                (mg_wraps)mg_dot_bytes(mg_of_a(x, x->a + r * x->a_row, word + i), b));
        }
        MG_EACH_ROW {
            sum[r] = mg_dot_pairs(sum[r], MG_SPLAT(0x10001));
            present[r] = (mg_vi)((mg_of_a(x, x->a_exponent + r * x->a_row, word) & marks) != 0);
        }
        return;
    }
    for (int32_t i = first; i < first + count; i++) {
        const ptrdiff_t k = mg_k(o, x, i);
        const mg_vi b = mg_of_b(x, x->b + mg_row_of_b(x, k));
        MG_EACH_ROW {
            const mg_vi p = mg_dot_pairs(mg_of_a(x, x->a + r * x->a_row, k), b);
            sum[r] += p;
            present[r] |= p;
        }
    }
    MG_EACH_ROW present[r] = (mg_vi)(present[r] != 0);
}

/* A sum of whole numbers (mg_wholes) rounded to FP32, toward zero, where scales are values. Where units are more than
 * floats have, no group is there, and c is the sum; -0 becomes +0. */
MG_INLINE mg_vi mg_round_wholes(
    const mg_operation *o, const int specials, const mg_wholes *sum, mg_vi units, mg_vi c, mg_vf end) {
    const mg_vf size = mg_cut_wholes(sum) * MG_POWER(-units);
    const mg_vi cut = MG_PICK((mg_vi)(units > MG_MOST_UNITS), (mg_vi)((mg_vf)c + 0), (mg_vi)size) &
        -(1 << (23 - o->result_fraction_bits)),
                special = MG_IS_TOP(c);
    const mg_vi code = cut & ((mg_vi)(cut != INT32_MIN) | -(o->zero_rule == MG_ZERO_SIGNED_UNDERFLOW));
    if (!specials && !mg_any(special)) return code;
    end += (mg_vf)(special & c);
    return MG_PICK((mg_vi)(end == end), MG_PICK(special, c, code), MG_SPLAT((int32_t)o->nan));
}

/* Groups of products summed exactly, scaled, aligned by the exponents of their scales alone. A float holds a group, and
 * a double their sum in units of the last bit that is kept. Scales are values where the units of what they scale are
 * powers that floats have. */
MG_INLINE void mg_scaled_groups(
    const mg_operation *o, const mg_part *x, const mg_vi *seed, const mg_late *c, mg_vi *out) {
    const int32_t size = x->groups ? x->groups : o->group, groups = x->groups ? MG_GROUPED / size : o->k_count / size,
                  block = x->groups ? size : o->scale_block;
    mg_vi e[MG_MAX_GROUPS][MG_ROWS], top[MG_ROWS], units[MG_ROWS];
    mg_vf value[MG_MAX_GROUPS][MG_ROWS], end[MG_ROWS];
    mg_wholes total[MG_ROWS][2];
    MG_EACH_ROW {
        top[r] = mg_max(c[r].exponent, MG_SPLAT(o->floor));
        end[r] = (mg_vf){0};
    }
    MG_UNROLL for (int32_t g = 0; g < groups; g++) {
        const ptrdiff_t s = g * size / block;
        const mg_vf scale_b = (mg_vf)mg_of_b(x, x->scale_b + s * x->b_row);
        const mg_vi exponent_b = mg_of_b(x, x->scale_b_exponent + s * x->b_row);
        /* Exact sum of a group, then its scales: a float holds both. Groups of zeros have no exponent. */
        mg_vi sum[MG_ROWS], present[MG_ROWS];
        mg_small_sums(o, x, g * size, size, sum, present);
        MG_EACH_ROW {
            const mg_vi exponent = mg_of_a(x, x->scale_a_exponent + r * x->scale_row, s) + exponent_b;
            e[g][r] = MG_PICK(present[r], exponent, MG_SPLAT(MG_E_ZERO));
            top[r] = mg_max(top[r], e[g][r]);
            value[g][r] = __builtin_convertvector(sum[r], mg_vf) *
                (mg_value_of_a(x, x->scale_a + r * x->scale_row, s) * scale_b);
            if (x->specials) end[r] += value[g][r];
        }
    }
    MG_EACH_ROW {
        /* Alignment shift of c and of the groups, truncated to units; a double holds their sum exactly. */
        units[r] = o->fraction_bits - top[r];
        MG_EACH_HALF total[r][h] = (mg_wholes){0}; /* no -0 */
        mg_vf power = MG_POWER(-mg_max(-units[r], MG_SPLAT(-MG_MOST_UNITS)));
        const mg_vf quarters = power * 0.25f;
        if (x->significands || !x->groups) power = MG_POWER(mg_max(units[r] + c[r].exponent, MG_LEAST_POWER));
        const mg_vf late = c[r].significand * power;
        mg_add_wholes(total[r], late);
        if (x->significands || !x->groups) end[r] += late; /* small, or special */
        MG_UNROLL for (int32_t g = 0; g < groups; g++) {
            power = quarters;
            if (x->significands) power = MG_POWER(mg_max(units[r] - 2 + e[g][r], MG_LEAST_POWER));
            mg_add_wholes(total[r], value[g][r] * power);
        }
    }
    MG_EACH_ROW {
        if (x->groups && !x->significands) {
            out[r] = mg_round_wholes(o, x->specials, total[r], units[r], seed[r], end[r]);
            continue;
        }
        const mg_df sum[2] = {
            __builtin_convertvector(total[r][0], mg_df), __builtin_convertvector(total[r][1], mg_df)};
        if (x->groups) out[r] = mg_round_to_floats(o, o->result_fraction_bits, 0, sum, -units[r]);
        else
            out[r] = mg_round_sums(
                o, o->result_fraction_bits, o->rounding == MG_ROUNDING_NEAREST_EVEN, sum, -units[r]);
        if (mg_any(MG_IS_TOP(end[r]))) out[r] = mg_with_specials(o, end[r], out[r]);
    }
}

/* Modulo 2^32, or saturated. */
MG_INLINE mg_vi mg_integer_sum(int saturate, mg_vi x, mg_vi c) {
    const mg_vi total = MG_PLUS(x, c);
    if (!saturate) return total;
    return MG_PICK(((x ^ total) & (c ^ total)) >> 31, (c >> 31) ^ INT32_MAX, total);
}

/* c + sum of a[i] op b[i]. */
MG_INLINE void mg_integer_dot_add(const mg_operation *o, const mg_part *x, const mg_vi *c, mg_vi *out) {
    mg_vi sum[MG_ROWS];
    mg_exact_sums(o, x, 0, o->k_count, o->combine == MG_OPERATION_XOR, sum);
    MG_EACH_ROW out[r] = mg_integer_sum(o->saturate, sum[r], c[r]);
}

/* One IEEE addition, nearest even: f32 on the hardware, f16 exactly in doubles. */
static __attribute__((noinline)) mg_vi mg_add(const mg_operation *o, mg_vi seed, mg_vi addend) {
    const mg_vi terms[2] = {seed, addend};
    mg_vf value[2] = {(mg_vf)seed, (mg_vf)addend};
    mg_df sum[2];
    if (o->out_format.storage == 32) return mg_with_specials(o, value[0] + value[1], (mg_vi)(value[0] + value[1]));
    for (int i = 0; i < 2; i++) {
        mg_vi exponent;
        mg_split_codes(&o->out_format, terms[i], &value[i], &exponent);
        value[i] *= MG_POWER(mg_max(exponent, MG_SPLAT(-126)));
    }
    MG_EACH_HALF sum[h] = mg_half_doubles(value[0], h) + mg_half_doubles(value[1], h);
    const mg_vi code = mg_round_any(o, o->out_format.fraction_bits, 1, sum, MG_SPLAT(0));
    return mg_with_specials(
        o, value[0] + value[1], code | (seed & addend & 1 << o->out_format.sign_shift)); /* -0 from two of them */
}

/* The exact sum of products and c, rounded once to FP32, nearest even. Two doubles hold that of the products. */
MG_INLINE void mg_exact_dot_add(const mg_operation *o, const mg_part *x, const mg_vi *c, mg_vi *out) {
    mg_df high[MG_ROWS][2], low[MG_ROWS][2];
    mg_vf floats[MG_ROWS];
    memset(high, 0, sizeof high);
    memset(low, 0, sizeof low);
    MG_EACH_ROW floats[r] = (mg_vf)(MG_IS_TOP(c[r]) & c[r]);
    for (int32_t i = 0; i < o->k_count; i++) {
        const ptrdiff_t k = mg_k(o, x, i);
        const mg_vf b = (mg_vf)mg_of_b(x, x->b + mg_row_of_b(x, k));
        MG_EACH_ROW {
            const mg_vf p = mg_value_of_a(x, x->a + r * x->a_row, k) * b;
            floats[r] += p;
            MG_EACH_HALF {
                mg_df error;
                high[r][h] = mg_two_sum(high[r][h], mg_half_doubles(p, h), &error);
                low[r][h] += error;
            }
        }
    }
    mg_dw some = {0};
    MG_EACH_ROW MG_EACH_HALF some |= (mg_dw)(low[r][h] != 0);
    const int lost = mg_any((mg_vi)some) != 0; /* of infinities, too */
    MG_EACH_ROW {
        mg_df sum[2];
        MG_EACH_HALF {
            const mg_df late = mg_half_doubles((mg_vf)c[r], h);
            sum[h] = lost ? mg_odd_sum_of_three(late, high[r][h], low[r][h]) : mg_odd_sum(high[r][h], late);
        }
        out[r] = mg_with_specials(o, floats[r], mg_floats_of(sum));
    }
}

/* Numbers of FP32 whose subnormal ones, where they are flushed, are zeros of their sign. */
MG_INLINE mg_vf mg_flushed(mg_vf x, int flushes) {
    const mg_vi code = (mg_vi)x;
    return flushes ? (mg_vf)(code & ((mg_vi)((code & INT32_MAX) >= 1 << 23) | INT32_MIN)) : x;
}

/* Adds `count` terms that lie `by` apart in a step's order; their sum takes the place of the first. A tree has a power
 * of two of them. A subnormal sum is exact, so that all ways to flush it are one. */
MG_INLINE void mg_add_in_order(
    const mg_step *step, const mg_part *x, mg_vf (*term)[MG_ROWS], int32_t by, int32_t count) {
    const int tree = step->order == MG_ORDER_TREE;
    for (int32_t half = 1; half < count; half = tree ? 2 * half : half + 1)
        for (int32_t i = 0; i + half < count; i += tree ? 2 * half : count)
            MG_EACH_ROW term[i * by][r] = mg_flushed(
                term[i * by][r] + term[(i + half) * by][r], step->flush != MG_FLUSH_NONE);
}

/* Steps that round to FP32 as IEEE 754 does: products, then additions of two terms at a time, whose terms are what the
 * step before made and, in the last, c before or behind them. Operands are flushed before (mg_fast.c), but for c. */
MG_INLINE void mg_ieee_steps(const mg_operation *o, const mg_part *x, const mg_vi *c, mg_vi *out) {
    mg_vf terms[MG_IEEE_TERMS + 2][MG_ROWS], (*term)[MG_ROWS] = terms + 1, seed[MG_ROWS];
    const mg_step *step = o->steps, *flush = step->op == MG_STEP_FLUSH ? step++ : NULL;
    int32_t count = o->k_count, of_c = 0;
    for (int i = 0; flush && i < flush->of_count; i++) of_c |= flush->of[i] == MG_REGISTER_C;
    MG_EACH_ROW {
        const mg_vf kept = mg_flushed((mg_vf)c[r], of_c);
        seed[r] = of_c && flush->sign == MG_FLUSH_POSITIVE ? (mg_vf)((mg_vi)kept & (mg_vi)(kept != 0)) : kept;
    }
    for (int32_t i = 0; i < count; i++) {
        const ptrdiff_t k = mg_k(o, x, i);
        const mg_vf b = (mg_vf)mg_of_b(x, x->b + mg_row_of_b(x, k));
        MG_EACH_ROW term[i][r] = mg_flushed(mg_value_of_a(x, x->a + r * x->a_row, k) * b, step->flush != MG_FLUSH_NONE);
    }
    for (step++; step < o->steps + o->step_count; step++) {
        const int c_first = step->of[0] == MG_REGISTER_C;
        if (c_first) term--;
        if (step->of_count == 2) MG_EACH_ROW term[c_first ? 0 : count][r] = seed[r];
        count += step->of_count - 1;
        const int32_t interleaved = step->group == MG_GROUP_INTERLEAVED,
                      groups = interleaved ? step->group_size
            : step->group ? count / step->group_size
                                           : 1;
        const int32_t members = count / groups, by = interleaved ? groups : 1, next = interleaved ? 1 : members;
        for (int32_t g = 0; g < groups; g++) {
            mg_add_in_order(step, x, term + g * next, by, members);
            MG_EACH_ROW term[g][r] = term[g * next][r];
        }
        count = groups;
    }
    MG_EACH_ROW out[r] = MG_PICK((mg_vi)(term[0][r] == term[0][r]), (mg_vi)term[0][r], MG_SPLAT((int32_t)o->nan));
}

/* Chains of IEEE fused multiply-adds, rounded as the hardware is set to (mg_run_kernel), on the hardware's own: MG_V
 * columns of packed codes, and `some` rows at once, whose chains overlap. Returns the matrices where some result is a
 * NaN, a bit each. */
#define MG_FMA_ROWS(type, word, fma, per_lane, some)                                                   \
    for (ptrdiff_t n = 0; n < t->matrices; n++, of_a += rows * a_row * (ptrdiff_t)sizeof(type),        \
                   of_b += next * (ptrdiff_t)sizeof(type), c += t->c_next, d += t->d_next) {           \
        word nans[MG_V] = {0}, any = 0;                                                                \
        for (ptrdiff_t i = 0; i < rows; i += some)                                                     \
            for (ptrdiff_t j = 0; j < columns; j += MG_V) {                                            \
                const mg_loose_##type *a = (const mg_loose_##type *)of_a + (per_lane ? j : i * a_row), \
                                      *b = (const mg_loose_##type *)of_b + j;                          \
                const ptrdiff_t at = j * (ptrdiff_t)sizeof(type);                                      \
                type sum[some][MG_V];                                                                  \
                MG_UNROLL for (ptrdiff_t r = 0; r < some; r++)                                         \
                    memcpy(sum[r], c + (i + r) * c_row + at, sizeof sum[r]);                           \
                for (int32_t k = 0; k < count; k++) {                                                  \
                    const ptrdiff_t row = index[k] * columns;                                          \
                    MG_UNROLL for (ptrdiff_t r = 0; r < some; r++) MG_EACH_LANE sum[r][l] = fma(       \
                        a[per_lane ? row + l : r * a_row + index[k]], b[row + l], sum[r][l]);          \
                }                                                                                      \
                MG_UNROLL for (ptrdiff_t r = 0; r < some; r++) {                                       \
                    memcpy(d + (i + r) * d_row + at, sum[r], sizeof sum[r]);                           \
                    MG_EACH_LANE nans[l] |= -(word)(sum[r][l] != sum[r][l]);                           \
                }                                                                                      \
            }                                                                                          \
        MG_EACH_LANE any |= nans[l];                                                                   \
        found |= (uint64_t)(any != 0) << n;                                                            \
    }

static uint64_t mg_fma_chain(const mg_tile *t) {
    const mg_operation *o = &t->program->operations[0];
    const int32_t count = o->k_count, *index = o->k_index;
    const ptrdiff_t columns = t->columns, rows = t->rows, a_row = t->a_row, c_row = t->c_row, d_row = t->d_row,
                    next = t->b.count / t->matrices;
    const char *of_a = t->a.raw, *of_b = t->b.raw, *c = t->c;
    char *d = t->d;
    uint64_t found = 0;
    if (o->out_format.storage == 64 && t->per_lane) MG_FMA_ROWS(double, int64_t, __builtin_fma, 1, 1)
    else if (o->out_format.storage == 64) MG_FMA_ROWS(double, int64_t, __builtin_fma, 0, MG_ROWS)
    else if (t->per_lane) MG_FMA_ROWS(float, int32_t, __builtin_fmaf, 1, 1)
    else MG_FMA_ROWS(float, int32_t, __builtin_fmaf, 0, MG_ROWS)
    return found;
}

/* What sums of bytes begin with, in the exponents of b, which integers lack: bytes of a that were moved by 128 add
 * the bytes of b that many times. */
MG_INLINE void mg_begin_sums(const mg_tile *t) {
    for (const mg_operation *o = t->program->operations; o < t->program->operations + t->program->operation_count; o++)
        for (ptrdiff_t j = 0; j < t->columns; j += MG_V) {
            const ptrdiff_t columns = t->columns, first = o->k_index[0] / 4 * columns + j, count = o->k_count / 4;
            mg_vi sum[4] = {{0}}; /* their chains overlap */
            for (ptrdiff_t k = 0; k < count; k += 4)
                MG_UNROLL for (ptrdiff_t l = 0; l < 4; l++) if (k + l < count) sum[l] = mg_add_dot(
                    2, t->swapped, sum[l], MG_SPLAT(t->flip), MG_AT(mg_vi, t->b.value + first + (k + l) * columns));
            *(mg_vi *)(t->b.exponent + first) = -(sum[0] + sum[1] + sum[2] + sum[3]);
        }
}

/* Which bytes of the words `at`, `next` apart, of a group are not zero, a bit each; `zero` is what that is after bytes
 * were moved. */
MG_INLINE mg_vi mg_marks(const float *at, const int32_t words, ptrdiff_t next, mg_vi zero) {
    mg_vi mark = {0};
    MG_UNROLL for (int32_t w = 0; w < words; w++)
        mark |= (mg_vi)(MG_AT(mg_fours, at + w * next) != (mg_fours)zero) & (int32_t)(0x1010101u << w);
    return mark;
}

/* What mg_small_sums finds in the exponents, which bytes of E2M1 lack, where the first word of a group lies: marks, of
 * b behind what its sums begin with, in 16 bits, since bytes of a are moved by 128. What lies elsewhere means nothing:
 * vectors may reach beyond the columns. */
MG_INLINE void mg_begin_groups(const mg_tile *t, const int32_t words) {
    const ptrdiff_t columns = t->columns, of_a = t->a.count / 4, count = t->b.count / 4,
                    lanes = t->per_lane ? columns : 1 << t->paired;
    const float *a = t->a.value, *b = t->b.value;
    int32_t *marks_of_a = t->a.exponent, *begin = t->b.exponent, *marks_of_b = begin + 2 * count;
    const mg_vi flip = MG_SPLAT(t->flip);
    ptrdiff_t i = 0;
#if MG_V == 16
    const mg_vi bits = {1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8};
    for (; lanes == 2 && words == 4 && i < of_a; i += MG_V) { /* a vector has two groups of two rows */
        mg_vi mark = (mg_vi)(MG_AT(mg_fours, a + i) != (mg_fours)flip) & bits * 0x1010101;
        mark |= mg_next_two(mark);
        *(mg_vi *)(marks_of_a + i) = mark | mg_next_four(mark);
    }
#endif
    for (; i < of_a; i += MG_V) *(mg_vi *)(marks_of_a + i) = mg_marks(a + i, words, lanes, flip);
    for (i = 0; i < count; i += words * columns)
        for (ptrdiff_t j = i; j < i + columns; j += MG_V) {
            mg_wraps sum = {0};
            MG_UNROLL for (int32_t w = 0; w < words; w++)
                sum -= (mg_wraps)mg_dot_bytes(flip, MG_AT(mg_vi, b + j + w * columns));
            *(mg_vi *)(begin + j) = (mg_vi)sum;
            *(mg_vi *)(marks_of_b + j) = mg_marks(b + j, words, columns, (mg_vi){0});
        }
}

/* Matrices of integers that share words, where a program is one sum that c joins. */
MG_INLINE void mg_integer_rows(const mg_tile *t, const unsigned assume) {
    const int share = assume & MG_FOURS ? 2 : 1, swapped = !!(assume & MG_SWAPPED), differ = !!(assume & MG_DIFFER);
    const int paired = !!(assume & MG_PAIRED);
    const mg_operation *o = &t->program->operations[0];
    const ptrdiff_t first = o->k_index[0] >> share, last = first + (o->k_count >> share), columns = t->columns,
                    next = t->a_row, rows = t->rows;
    const ptrdiff_t c_row = t->c_row, d_row = t->d_row, saturate = o->saturate;
    const mg_part part = mg_part_of(t, assume), *x = &part;
    const mg_vi flip = MG_SPLAT(t->flip);
    const float *a = t->a.value, *of_b = t->b.value;
    for (ptrdiff_t n = 0; n < t->matrices; n++, of_b += (t->b.count / t->matrices) >> share) {
        const char *c = t->c + n * t->c_next;
        char *d = t->d + n * t->d_next;
        for (ptrdiff_t i = 0; i < rows;
            i += MG_ROWS, a += MG_ROWS * next, c += (MG_ROWS << paired) * c_row, d += (MG_ROWS << paired) * d_row)
            for (ptrdiff_t j = 0; j < columns; j += MG_V >> paired) {
                const float *b = of_b + j;
                mg_vi sum[MG_ROWS] = {{0}}, moved = {0}; /* what moved bytes of a bring */
                MG_UNROLL for (ptrdiff_t k = first; k < last; k++) {
                    const mg_vi y = mg_of_b(x, b + k * columns);
                    if (share == 2 && !differ) moved = mg_add_dot(2, swapped, moved, flip, y);
                    MG_UNROLL for (int r = 0; r < MG_ROWS; r++) {
                        const mg_vi z = mg_of_a(x, a + r * next, k);
                        sum[r] = differ ? mg_add_dot(share, 0, sum[r], z ^ y, z ^ y)
                                        : mg_add_dot(share, swapped, sum[r], z, y);
                    }
                }
                MG_UNROLL for (int r = 0; r < MG_ROWS; r++) {
                    const mg_vi late = mg_load_rows(c + (r << paired) * c_row + j * 4, c_row, 32, paired);
                    sum[r] = mg_integer_sum(saturate, sum[r] - moved, late);
                }
                MG_UNROLL for (int r = 0; r < MG_ROWS; r++)
                    mg_store_rows(d + (r << paired) * d_row + j * 4, d_row, 32, paired, sum[r]);
            }
    }
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

MG_INLINE void mg_operate(const mg_operation *o, const mg_part *x, mg_vi results[][MG_ROWS], mg_vi *out) {
    const mg_vi *seed = results[o->seed];
    mg_late c[MG_ROWS];
    if (x->groups && !x->significands) { /* of a subnormal c nothing is left, but where it is the sum */
        MG_EACH_ROW {
            c[r].exponent = mg_exponent_of_c(x, seed[r]);
            c[r].significand = (mg_vf)((mg_vi)(c[r].exponent > -127) & seed[r]);
        }
        mg_scaled_groups(o, x, seed, c, out);
    } else if (o->fast == MG_FAST_INTEGER) {
        mg_integer_dot_add(o, x, seed, out);
    } else if (o->fast == MG_FAST_EXACT) {
        mg_exact_dot_add(o, x, seed, out);
    } else if (o->fast == MG_FAST_IEEE) {
        mg_ieee_steps(o, x, seed, out);
    } else if (o->fast == MG_FAST_ADD) {
        MG_EACH_ROW out[r] = mg_add(o, seed[r], results[o->addends[0]][r]);
    } else {
        MG_EACH_ROW mg_split_codes(&o->seed_format, seed[r], &c[r].significand, &c[r].exponent);
        if (o->fast == MG_FAST_FDA) mg_fused_dot_add(o, x, c, out);
        else if (o->fast == MG_FAST_FDRDA) mg_rounded_down_dot_add(o, x, c, out);
        else mg_scaled_groups(o, x, seed, c, out);
    }
}

/* Any program: its operations in turn, on what all of them left. */
MG_INLINE void mg_run_rows(const mg_tile *t, const unsigned assume) {
    const mg_program *p = t->program;
    const mg_part given = mg_part_of(t, assume);
    const int rows = given.rows, per_lane = given.per_lane, paired = given.paired, groups = given.groups;
    const int32_t c_storage = p->c.storage, d_storage = p->d.storage, count = p->operation_count;
    const ptrdiff_t width = (ptrdiff_t)t->columns << paired, a_row = groups ? MG_GROUPED / 4 << paired : t->a_row;
    const ptrdiff_t scale_row = groups ? MG_GROUPED / groups << paired : t->scale_row;
    for (ptrdiff_t i = 0; i < t->rows; i += rows)
        for (ptrdiff_t j = 0; j < width; j += MG_V) {
            mg_vi results[MG_TILE_OPERATIONS + 2][MG_ROWS];
            const ptrdiff_t a = per_lane ? j : i * a_row, s = per_lane ? j : i * scale_row, b = j >> paired;
            mg_part part = given;
            const mg_part *x = &part;
            part.a = t->a.value + a, part.a_exponent = t->a.exponent + a, part.a_row = a_row;
            part.b = t->b.value + b, part.b_exponent = t->b.exponent + b, part.b_row = t->columns;
            part.row_of_b = t->row_of_b + i * t->row_step;
            part.scale_a = t->scale_a.value + s, part.scale_a_exponent = t->scale_a.exponent + s;
            part.scale_b = t->scale_b.value + b, part.scale_b_exponent = t->scale_b.exponent + b;
            part.scale_row = scale_row;
            MG_EACH_ROW {
                results[0][r] = mg_load_rows(
                    t->c + ((i + r) << paired) * t->c_row + b * (c_storage / 8), t->c_row, c_storage, paired);
                results[1][r] = (mg_vi){0};
            }
            for (int32_t n = 0; n < count; n++) mg_operate(&p->operations[n], x, results, results[2 + n]);
            MG_EACH_ROW mg_store_rows(t->d + ((i + r) << paired) * t->d_row + b * (d_storage / 8), t->d_row, d_storage,
                paired, results[1 + count][r]);
        }
}

/* Quick sums, of which each takes the one before it, and the first one c. */
MG_INLINE void mg_quick_rows(const mg_tile *t, const unsigned assume) {
    const mg_operation *operations = t->program->operations, *end = operations + t->program->operation_count;
    const mg_part given = mg_part_of(t, assume);
    const int rows = given.rows, per_lane = given.per_lane, paired = given.paired;
    const ptrdiff_t columns = t->columns, all = t->rows, a_row = t->a_row, c_row = t->c_row, d_row = t->d_row;
    const ptrdiff_t of_b = t->b.count / t->matrices;
    const uint8_t *tops = t->tops;
    for (ptrdiff_t n = 0; n < t->matrices; n++) {
        const char *c = t->c + n * t->c_next;
        char *d = t->d + n * t->d_next;
        for (ptrdiff_t i = 0; i < all; i += rows, c += (rows << paired) * c_row, d += (rows << paired) * d_row)
            for (ptrdiff_t j = 0; j < columns; j += MG_V >> paired) {
                const ptrdiff_t a = per_lane ? j : (n * all + i) * a_row, b = n * of_b + j;
                mg_part part = given;
                const mg_part *x = &part;
                part.a = t->a.value + a, part.a_exponent = t->a.exponent + a, part.a_row = a_row;
                part.b = t->b.value + b, part.b_exponent = t->b.exponent + b, part.b_row = columns;
                part.tops = assume & MG_BYTES ? &tops : NULL;
                mg_vi before[MG_ROWS], sum[MG_ROWS];
                MG_EACH_ROW sum[r] = mg_load_rows(c + (r << paired) * c_row + 4 * j, c_row, 32, paired);
                for (const mg_operation *o = operations; o < end; o++) {
                    MG_EACH_ROW before[r] = sum[r];
                    if (!(assume & MG_SIGNIFICANDS) && o->fast == MG_FAST_FDRDA)
                        mg_quick_rounded_down(o, x, before, sum);
                    else mg_quick_dot_add(o, x, before, sum);
                }
                MG_EACH_ROW mg_store_rows(d + (r << paired) * d_row + 4 * j, d_row, 32, paired, sum[r]);
            }
    }
}

#if MG_V > 4
/* Rows whose exponents are bytes: as many rows at a time as there is room for their largest exponents; all rows, where
 * matrices share a tile. */
MG_INLINE void mg_byte_rows(const mg_tile *t, const unsigned assume) {
    for (ptrdiff_t i = 0; i < t->rows; i += t->tops_rows) {
        mg_tile some = *t;
        some.rows = t->rows - (int32_t)i < t->tops_rows ? t->rows - (int32_t)i : t->tops_rows;
        some.a.value += i * t->a_row;
        some.a.exponent = (int32_t *)((uint8_t *)t->a.exponent + i * t->a_row);
        some.c += (i << t->paired) * t->c_row;
        some.d += (i << t->paired) * t->d_row;
        mg_fill_tops(&some, !!(assume & MG_PAIRED));
        mg_quick_rows(&some, assume);
    }
}
#endif

/* The kernels: each a function of its own, so that none costs another the registers of its addresses. */
#define MG_KERNEL(name, rows, assume) \
    static __attribute__((noinline)) void name(const mg_tile *t) { rows(t, assume); }
#define MG_SHARED_ROWS(suffix, paired)                                                                             \
    MG_KERNEL(                                                                                                     \
        mg_groups_16_far##suffix, mg_run_rows, paired | MG_GROUPS_16 | MG_SIGNIFICANDS | MG_SPECIALS | MG_IN_LINE) \
    MG_KERNEL(mg_groups_16_special##suffix, mg_run_rows, paired | MG_GROUPS_16 | MG_SPECIALS | MG_IN_LINE)         \
    MG_KERNEL(mg_groups_16##suffix, mg_run_rows, paired | MG_GROUPS_16 | MG_IN_LINE)                               \
    MG_KERNEL(                                                                                                     \
        mg_groups_32_far##suffix, mg_run_rows, paired | MG_GROUPS_32 | MG_SIGNIFICANDS | MG_SPECIALS | MG_IN_LINE) \
    MG_KERNEL(mg_groups_32##suffix, mg_run_rows, paired | MG_GROUPS_32 | MG_IN_LINE)                               \
    MG_KERNEL(mg_quick_far##suffix, mg_quick_rows, paired | MG_QUICK | MG_SIGNIFICANDS | MG_SPECIALS | MG_IN_LINE) \
    MG_KERNEL(mg_quick_special##suffix, mg_quick_rows, paired | MG_QUICK | MG_SPECIALS | MG_IN_LINE)               \
    MG_KERNEL(mg_quick##suffix, mg_quick_rows, paired | MG_QUICK | MG_IN_LINE)                                     \
    MG_KERNEL(mg_dense##suffix, mg_run_rows, paired | MG_IN_LINE | MG_SPECIALS | MG_EITHER)                        \
    MG_KERNEL(mg_sparse##suffix, mg_run_rows, paired | MG_SPECIALS | MG_EITHER)
MG_KERNEL(mg_pairs, mg_integer_rows, MG_INTEGERS)
MG_KERNEL(mg_pairs_differ, mg_integer_rows, MG_INTEGERS | MG_DIFFER)
MG_KERNEL(mg_lanes_quick, mg_quick_rows, MG_PER_LANE | MG_QUICK | MG_SPECIALS | MG_IN_LINE)
MG_KERNEL(mg_lanes_any, mg_run_rows, MG_PER_LANE | MG_SPECIALS | MG_EITHER)
MG_SHARED_ROWS(, 0)
#if MG_HAS_FOURS
MG_KERNEL(mg_words_of_four, mg_integer_rows, MG_INTEGERS | MG_FOURS)
MG_KERNEL(mg_words_of_four_swapped, mg_integer_rows, MG_INTEGERS | MG_FOURS | MG_SWAPPED)
MG_KERNEL(mg_words_of_four_differ, mg_integer_rows, MG_INTEGERS | MG_FOURS | MG_DIFFER)
#endif
#if MG_V > 4
MG_KERNEL(mg_bytes_special, mg_byte_rows, MG_BYTES | MG_QUICK | MG_SPECIALS | MG_IN_LINE)
MG_KERNEL(mg_bytes_quick, mg_byte_rows, MG_BYTES | MG_QUICK | MG_IN_LINE)
#endif
#if MG_V == 16
MG_SHARED_ROWS(_paired, MG_PAIRED)
MG_KERNEL(mg_words_of_four_paired, mg_integer_rows, MG_INTEGERS | MG_FOURS | MG_PAIRED)
MG_KERNEL(mg_words_of_four_swapped_paired, mg_integer_rows, MG_INTEGERS | MG_FOURS | MG_SWAPPED | MG_PAIRED)
MG_KERNEL(mg_bytes_special_paired, mg_byte_rows, MG_BYTES | MG_QUICK | MG_SPECIALS | MG_IN_LINE | MG_PAIRED)
MG_KERNEL(mg_bytes_quick_paired, mg_byte_rows, MG_BYTES | MG_QUICK | MG_IN_LINE | MG_PAIRED)
#endif

/* Which kernel serves a tile: the first whose assumptions hold (`needs`) and that none of `not` forbids. `stacked`: it
 * runs the matrices of a tile by itself; others have one at a time. What a form buys is its speed over that of the form
 * that would serve instead, measured on an EPYC with AVX-512 and bench/run.py's operands. */
typedef struct {
    unsigned needs, not;
    int stacked;
    void (*run)(const mg_tile *tile);
} mg_form;

static const mg_form mg_forms[] = {
    /* Integers in words: 1.7 times sums an operation at a time. */
#if MG_V == 16 /* two rows in a vector: 1.1 times vectors of eight lanes */
    {MG_INTEGERS | MG_FOURS | MG_PAIRED | MG_SWAPPED, 0, 1, mg_words_of_four_swapped_paired},
    {MG_INTEGERS | MG_FOURS | MG_PAIRED, 0, 1, mg_words_of_four_paired},
#endif
#if MG_HAS_FOURS
    {MG_INTEGERS | MG_FOURS | MG_DIFFER, 0, 1, mg_words_of_four_differ},
    {MG_INTEGERS | MG_FOURS | MG_SWAPPED, 0, 1, mg_words_of_four_swapped},
    {MG_INTEGERS | MG_FOURS, 0, 1, mg_words_of_four},
#endif
    {MG_INTEGERS | MG_DIFFER, 0, 1, mg_pairs_differ},
    {MG_INTEGERS, 0, 1, mg_pairs},
    /* Lanes with a row of A each. */
    {MG_PER_LANE | MG_QUICK, MG_SIGNIFICANDS, 0, mg_lanes_quick},
    {MG_PER_LANE, 0, 0, mg_lanes_any},
    /* Largest exponents from bytes: 1.06 to 1.26 times those from words. */
#if MG_V == 16
    {MG_BYTES | MG_PAIRED | MG_SPECIALS, 0, 1, mg_bytes_special_paired},
    {MG_BYTES | MG_PAIRED, 0, 1, mg_bytes_quick_paired},
#endif
#if MG_V > 4
    {MG_BYTES | MG_SPECIALS, 0, 1, mg_bytes_special},
    {MG_BYTES, 0, 1, mg_bytes_quick},
#endif
    /* One sum of scaled groups: 1.2 times any program. With a NaN among values of groups of 32, as any. */
#define MG_SHARED_FORMS(suffix, paired)                                                \
    {paired | MG_GROUPS_16 | MG_SIGNIFICANDS, 0, 0, mg_groups_16_far##suffix},         \
    {paired | MG_GROUPS_16 | MG_SPECIALS, 0, 0, mg_groups_16_special##suffix},         \
    {paired | MG_GROUPS_16, 0, 0, mg_groups_16##suffix},                               \
    {paired | MG_GROUPS_32 | MG_SIGNIFICANDS, 0, 0, mg_groups_32_far##suffix},         \
    {paired | MG_GROUPS_32, MG_SPECIALS, 0, mg_groups_32##suffix},                     \
    /* Quick sums: 1.9 to 2.2 times sums in doubles, where they round down. */             \
    {paired | MG_QUICK | MG_SIGNIFICANDS, 0, 1, mg_quick_far##suffix},                 \
    {paired | MG_QUICK | MG_SPECIALS, 0, 1, mg_quick_special##suffix},                 \
    {paired | MG_QUICK, 0, 1, mg_quick##suffix},                                       \
    /* Any program: 3 to 30 times blocks of doubles. */                                \
    {paired | MG_IN_LINE, 0, 0, mg_dense##suffix},                                       \
    {paired, 0, 0, mg_sparse##suffix},
#if MG_V == 16
    MG_SHARED_FORMS(_paired, MG_PAIRED)
#endif
    MG_SHARED_FORMS(, 0)
};

/* What holds of a tile. */
static unsigned mg_traits(const mg_tile *t) {
    const mg_operation *o = &t->program->operations[0];
    const int in_rows = t->one_sum && !t->per_lane && t->share;
    return (t->per_lane ? MG_PER_LANE : 0) | (t->paired ? MG_PAIRED : 0) | (t->significands ? MG_SIGNIFICANDS : 0) |
           (t->specials ? MG_SPECIALS : 0) | (t->quick && t->plain ? MG_QUICK : 0) | (t->plain ? MG_IN_LINE : 0) |
           (t->bytes ? MG_BYTES : 0) |
           (t->plain && !t->per_lane && t->groups == 16 ? MG_GROUPS_16 : 0) |
           (t->plain && !t->per_lane && t->groups == 32 ? MG_GROUPS_32 : 0) | (in_rows ? MG_INTEGERS : 0) |
           (t->share == 2 ? MG_FOURS : 0) | (t->swapped ? MG_SWAPPED : 0) |
           (o->combine == MG_OPERATION_XOR ? MG_DIFFER : 0);
}

/* What words of four elements need in addition, for one matrix. */
static void mg_begin_words(const mg_tile *t, unsigned traits) {
    const mg_operation *o = &t->program->operations[0];
    if (t->share != 2) return;
    if (t->groups == 16) mg_begin_groups(t, 4); /* with a constant, unrolled */
    else if (o->fast == MG_FAST_GDFS) mg_begin_groups(t, o->group / 4);
    else if (MG_HAS_FOURS && !(traits & MG_INTEGERS)) mg_begin_sums(t);
}

/* Returns the matrices where a chain made a NaN, a bit each. */
static uint64_t mg_run_tile(const mg_tile *t) {
    if (t->program->operations[0].fast == MG_FAST_FMA) return mg_fma_chain(t);
    const unsigned traits = mg_traits(t);
    const mg_form *form = mg_forms;
    while ((form->needs & ~traits) || (form->not & traits)) form++; /* the last serves all */
    if (form->stacked || t->matrices == 1) {
        mg_begin_words(t, traits);
        form->run(t);
        return 0;
    }
    for (int32_t n = 0; n < t->matrices; n++) {
        const mg_tile one = mg_matrix_of(t, n);
        mg_begin_words(&one, traits);
        form->run(&one);
    }
    return 0;
}

/* This translation unit's entry in mg_kernels; `pair_rows`: how two rows share a vector, or null. */
#define MG_TILE_KERNEL(pair_rows)                                                                               \
    {MG_V, mg_run_tile, mg_decode_plane, MG_DECODE_BYTES, mg_integer_plane, mg_reaches, pair_rows, MG_HAS_FOURS}
