/* Operands of a campaign, made where they are used: every code is a function of (seed, tile, place) alone.
 *
 * A tile is one execution of the matrix instruction. Its plan says what the tile's dot products look like: a kind of
 * golden/stimuli in the form that a whole tile can have, since a row of A meets every column of B. Each product has a
 * slot with the exponents that its factors share; the first two roles are singled out. Random numbers are Philox4x32-7
 * (Salmon et al., SC11: the fewest rounds that pass BigCrush), counter (place, stream, tile), key seed.
 *
 * hw_capture/campaign/source.py puts the unit's constants (CAMPAIGN_*) and arithmetic (golden/model/device_text.py) before this text.
 */

typedef struct {
    int32_t lowest, tiniest, highest; /* exponents: least normal, least subnormal, largest */
} campaign_reach;

typedef struct {
    uint32_t x, y, z, w;
} campaign_words;

enum campaign_stream { STREAM_PLAN, STREAM_SLOT, STREAM_A, STREAM_B, STREAM_C, STREAM_METADATA, STREAM_UNSELECTED, STREAM_SCALE_A, STREAM_SCALE_B };
enum campaign_fraction { FRACTION_RANDOM, FRACTION_ZERO, FRACTION_ONES, FRACTION_KEPT, FRACTION_ODD };
enum campaign_c { C_AT, C_RAW, C_LEAST, C_AGAINST, C_CORNER };
enum campaign_pairs { PAIRS_NONE, PAIRS_ALL, PAIRS_FIRST, PAIRS_LAST_BIT, PAIRS_GROUPS };
enum campaign_signs { SIGNS_RANDOM, SIGNS_PLUS, SIGNS_MINUS_REST };

typedef struct {
    uint32_t key[2], tile[2];
    campaign_words words;
    int32_t kind, raw, elementwise, a_low, a_high, b_low, b_high;
    int32_t first, second, rest_low, rest_high;  /* exponents of the products by role */
    int32_t live_first, live_second, live_rest;  /* of 256: how many have a non-zero factor in A */
    int32_t zeros, specials, corner_first;       /* of 256: zeros and corners among A and B; corner_first: roles 0 and 1 */
    int32_t pairs, signs, fraction, turn;
    int32_t mirrored;                            /* signs that are planned are turned, in A and in C */
    int32_t c, c_low, c_high, c_fraction, c_zero;
    uint32_t exhaustive_a, exhaustive_b;
} campaign_plan;

typedef struct {
    int32_t role, source, negate, last_bit, exponent_a, exponent_b, live;
} campaign_slot;

MG_HD campaign_words campaign_random(const uint32_t *key, const uint32_t *tile, uint32_t stream, uint32_t place) {
    uint32_t c0 = place, c1 = stream, c2 = tile[0], c3 = tile[1], k0 = key[0], k1 = key[1];
    MG_UNROLL for (int i = 0; i < 7; i++) {
        const uint64_t p = (uint64_t)0xD2511F53u * c0, q = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)q;
        c3 = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const campaign_words r = {c0, c1, c2, c3};
    return r;
}

/* A number from low to high, both included, from 16 random bits. */
MG_HD int32_t campaign_pick(uint32_t word, int32_t low, int32_t high) {
    return high <= low ? low : low + (int32_t)(((word & 0xffffu) * (uint32_t)(high - low + 1)) >> 16);
}

MG_HD int32_t campaign_clip(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }
MG_HD int campaign_chance(uint32_t word, int32_t of_256) { return (int32_t)(word & 0xffu) < of_256; }

/* Codes --------------------------------------------------------------------------------------------------------------- */

#define CAMPAIGN_WORD ((int32_t)(8 * sizeof(campaign_code)))

MG_HD campaign_code campaign_encode_float(mg_format f, uint32_t sign, int32_t exponent, campaign_code fraction) {
    const campaign_code hidden = (campaign_code)1 << f.fraction_bits;
    const int32_t denormal = campaign_clip(f.min_exponent - exponent, 0, CAMPAIGN_WORD - 1);
    const campaign_code significand = (hidden | fraction >> (CAMPAIGN_WORD - f.fraction_bits)) >> denormal;
    const int32_t biased = campaign_clip(exponent + f.bias, 1, (1 << f.exponent_bits) + 1);
    campaign_code fields = ((campaign_code)biased << f.fraction_bits) + significand - hidden;
    const campaign_code largest = (campaign_code)f.largest >> f.ignored_low;
    fields = fields > largest ? largest : fields;
    return (fields | (campaign_code)sign << (f.exponent_bits + f.fraction_bits)) << f.ignored_low;
}

/* Integers join in as numbers with exponents 0 to their width; b1 is just random. */
MG_HD campaign_code campaign_encode(mg_format f, uint32_t sign, int32_t exponent, campaign_code fraction) {
    if (f.is_float) return campaign_encode_float(f, sign, exponent, fraction);
    const campaign_code mask = (campaign_code)(f.bits < CAMPAIGN_WORD ? ((campaign_code)1 << f.bits % CAMPAIGN_WORD) - 1 : (campaign_code)-1);
    if (f.bits == 1) return fraction & 1;
    if (exponent < 0) return 0;
    const int32_t width = campaign_clip(exponent, 0, f.bits - f.is_signed - 1);
    const campaign_code magnitude = (campaign_code)1 << width | fraction >> 1 >> (CAMPAIGN_WORD - 1 - width);
    return (f.is_signed && sign ? 0 - magnitude : magnitude) & mask;
}

/* The codes at a format's edges, by a random word. */
MG_HD campaign_code campaign_corner(mg_format f, uint32_t word) {
    const campaign_code top = (campaign_code)1 << (f.bits - 1 - f.ignored_low);
    if (!f.is_float) {
        const campaign_code codes[5] = {0, 1, top - 1, top, top | (top - 1)};
        return codes[word % 5];
    }
    const campaign_code one = (campaign_code)f.bias << f.fraction_bits, normal = (campaign_code)1 << f.fraction_bits;
    const campaign_code largest = (campaign_code)f.largest >> f.ignored_low;
    const campaign_code infinity = f.has_infinity ? (campaign_code)f.infinity >> f.ignored_low : largest;
    const campaign_code nan = f.has_nan ? (campaign_code)f.nan >> f.ignored_low : largest;
    const campaign_code codes[12] = {0, 1, normal - 1, normal, normal + 1, one, largest - 1, largest, infinity, infinity, nan, infinity + 1};
    const campaign_code code = codes[word % 12] | (word >> 16 & 1 ? top : 0);
    return code << f.ignored_low;
}

MG_HD campaign_code campaign_zero(mg_format f, uint32_t sign) {
    return f.is_float && sign ? (campaign_code)1 << f.sign_shift : 0;
}

MG_HD campaign_code campaign_negate(mg_format f, campaign_code code) {
    if (f.is_float) return code ^ (campaign_code)1 << f.sign_shift;
    return f.is_signed ? (0 - code) & (campaign_code)(((campaign_code)1 << f.bits % CAMPAIGN_WORD) - 1) : code;
}

MG_HD campaign_code campaign_fraction_of(int32_t mode, int32_t kept, uint32_t x, uint32_t y) {
    const campaign_code bits = (campaign_code)(((uint64_t)x << 32 | y) >> (64 - CAMPAIGN_WORD));
    if (mode == FRACTION_ZERO) return 0;
    if (mode == FRACTION_ONES) return (campaign_code)-1;
    const campaign_code below = ((campaign_code)1 << (CAMPAIGN_WORD - kept)) - 1; /* what D cannot keep */
    if (mode == FRACTION_KEPT) return bits & ~below;
    if (mode == FRACTION_ODD) return bits | ((campaign_code)1 << (CAMPAIGN_WORD - kept));
    return bits;
}

/* Plans --------------------------------------------------------------------------------------------------------------- */

MG_HD void campaign_elements(campaign_plan *p, int32_t a_low, int32_t a_high, int32_t b_low, int32_t b_high) {
    const campaign_reach a = CAMPAIGN_REACH_A, b = CAMPAIGN_REACH_B;
    p->elementwise = 1;
    p->a_low = campaign_clip(a_low, a.tiniest, a.highest);
    p->a_high = campaign_clip(a_high, a.tiniest, a.highest);
    p->b_low = campaign_clip(b_low, b.tiniest, b.highest);
    p->b_high = campaign_clip(b_high, b.tiniest, b.highest);
}

MG_HD void campaign_narrow(campaign_plan *p) {
    campaign_elements(p, -2, 2, -2, 2);
    if (!CAMPAIGN_IS_FLOAT) campaign_elements(p, 0, 3, 0, 3);
    p->c_low = -4;
    p->c_high = 8;
}

/* Products at one exponent, or in a window below it. */
MG_HD void campaign_products(campaign_plan *p, int32_t first, int32_t second, int32_t rest_low, int32_t rest_high) {
    p->first = first;
    p->second = second;
    p->rest_low = rest_low;
    p->rest_high = rest_high;
}

MG_HD void campaign_live(campaign_plan *p, int32_t first, int32_t second, int32_t rest) {
    p->live_first = first;
    p->live_second = second;
    p->live_rest = rest;
}

MG_HD void campaign_addend(campaign_plan *p, int32_t mode, int32_t low, int32_t high, int32_t fraction, int32_t zero) {
    p->c = mode;
    p->c_low = low;
    p->c_high = high;
    p->c_fraction = fraction;
    p->c_zero = zero;
}

/* One code of A against one of B, all pairs in turn, at every k in turn, with one c after another. */
MG_HD void campaign_exhaustive(campaign_plan *p) {
#if CAMPAIGN_CAN_EXHAUST
    uint64_t t = (uint64_t)p->tile[1] << 32 | p->tile[0];
    const uint64_t blocks_a = (UINT64_C(1) << CAMPAIGN_BITS_A) / CAMPAIGN_M, blocks_b = (UINT64_C(1) << CAMPAIGN_BITS_B) / CAMPAIGN_N;
    p->exhaustive_b = (uint32_t)(t % blocks_b) * CAMPAIGN_N;
    t /= blocks_b;
    p->exhaustive_a = (uint32_t)(t % blocks_a) * CAMPAIGN_M;
    t /= blocks_a;
    p->turn = (int32_t)(t % CAMPAIGN_K);
    p->c_low = (int32_t)(t / CAMPAIGN_K);
#else
    (void)p;
#endif
}

#include "kinds.h"

/* The plan of a tile: kind `kind`, or (-1) all kinds in turn. */
MG_HD campaign_plan campaign_plan_tile(uint64_t seed, uint64_t tile, int32_t kind) {
    campaign_plan p;
    p.key[0] = (uint32_t)seed;
    p.key[1] = (uint32_t)(seed >> 32);
    p.tile[0] = (uint32_t)tile;
    p.tile[1] = (uint32_t)(tile >> 32);
    p.words = campaign_random(p.key, p.tile, STREAM_PLAN, 0);
    p.kind = kind < 0 ? (int32_t)(tile % CAMPAIGN_KINDS) : kind;
    p.raw = p.elementwise = p.zeros = p.specials = p.corner_first = 0;
    p.a_low = p.a_high = p.b_low = p.b_high = 0;
    p.pairs = PAIRS_NONE;
    p.signs = SIGNS_RANDOM;
    p.fraction = FRACTION_RANDOM;
    p.turn = (int32_t)(p.words.w >> 8) & (CAMPAIGN_K - 1);
    p.exhaustive_a = p.exhaustive_b = 0;
    campaign_products(&p, 0, 0, 0, 0);
    campaign_live(&p, 256, 256, 256);
    campaign_addend(&p, C_AT, 0, 0, FRACTION_RANDOM, 0);
    campaign_set_kind(&p, campaign_random(p.key, p.tile, STREAM_PLAN, 1));
    p.mirrored = p.signs != SIGNS_RANDOM && (p.words.x & 1);
    return p;
}

/* Slots --------------------------------------------------------------------------------------------------------------- */

MG_HD int32_t campaign_partner(const campaign_plan *p, int32_t role) {
    switch (p->pairs) {
    case PAIRS_ALL: return role & ~(CAMPAIGN_K / 2) & (CAMPAIGN_K - 1);
    case PAIRS_FIRST:
    case PAIRS_LAST_BIT: return role == 1 ? 0 : role;
    case PAIRS_GROUPS: return role & 4 ? role : role & ~2;
    default: return role;
    }
}

/* What the factors of product k share. */
MG_HD campaign_slot campaign_slot_of(const campaign_plan *p, int32_t k) {
    const campaign_reach a = CAMPAIGN_REACH_A, b = CAMPAIGN_REACH_B;
    campaign_slot s;
    s.role = k ^ p->turn;
    const int32_t partner = campaign_partner(p, s.role);
    s.source = partner ^ p->turn;
    s.negate = partner != s.role;
    s.last_bit = s.negate && p->pairs == PAIRS_LAST_BIT;
    const campaign_words r = campaign_random(p->key, p->tile, STREAM_SLOT, (uint32_t)s.source);
    const int32_t small = p->pairs == PAIRS_GROUPS && !(partner & 4);
    const int32_t wanted = partner == 0 || small ? p->first : partner == 1 ? p->second : campaign_pick(r.x, p->rest_low, p->rest_high);
    const int32_t target = campaign_clip(wanted, a.tiniest + b.tiniest, a.highest + b.highest);
    const int32_t low = mg_most(a.tiniest, target - b.highest), high = mg_least(a.highest, target - b.tiniest);
    s.exponent_a = campaign_pick(r.y, low, high);
    s.exponent_b = target - s.exponent_a;
    s.live = campaign_chance(r.z, partner == 0 ? p->live_first : partner == 1 ? p->live_second : p->live_rest);
    if (p->c == C_AGAINST && s.role != 0 && partner == 0) s.live = 0; /* c cancels the first product, not its partner */
    return s;
}

/* Operands ------------------------------------------------------------------------------------------------------------ */

/* A code of A (place: row) or B (place: column) for the product of a slot. */
MG_HD campaign_code campaign_operand(const campaign_plan *p, const campaign_slot *s, int32_t of_b, int32_t place) {
    const mg_format f = of_b ? unit_b() : unit_a();
    const campaign_words r = campaign_random(p->key, p->tile, of_b ? STREAM_B : STREAM_A, (uint32_t)(place * CAMPAIGN_K + s->source));
    const campaign_code all = ((campaign_code)1 << (f.bits - 1)) - 1 + ((campaign_code)1 << (f.bits - 1));
    if (p->kind == CAMPAIGN_EXHAUSTIVE) {
        if (s->role != 0) return 0;
        return (campaign_code)((of_b ? p->exhaustive_b : p->exhaustive_a) + (uint32_t)place) << f.ignored_low;
    }
    if (p->raw) return ((campaign_code)r.x | (campaign_code)((uint64_t)r.y << 32)) & all;
    uint32_t sign = r.z & 1;
    if (p->signs == SIGNS_PLUS) sign = 0;
    if (p->signs == SIGNS_MINUS_REST) sign = !of_b && s->role != 0;
    sign ^= (uint32_t)(!of_b && p->mirrored);
    if (!of_b && !s->live) return campaign_zero(f, sign);
    if (campaign_chance(r.z >> 8, p->zeros)) return campaign_zero(f, sign);
    if (campaign_chance(r.z >> 16, s->role < 2 && p->corner_first ? p->corner_first : p->specials)) return campaign_corner(f, r.w);
    int32_t exponent = of_b ? s->exponent_b : s->exponent_a;
    if (p->elementwise) exponent = of_b ? campaign_pick(r.w, p->b_low, p->b_high) : campaign_pick(r.w, p->a_low, p->a_high);
    campaign_code code = campaign_encode(f, sign, exponent, campaign_fraction_of(p->fraction, CAMPAIGN_KEPT, r.x, r.y));
    if (!of_b && s->last_bit) code ^= (campaign_code)(r.w >> 31) << f.ignored_low;
    return !of_b && s->negate ? campaign_negate(f, code) : code;
}

/* -a * b in c's format, truncated. */
MG_HD campaign_code campaign_against(unit_number a, unit_number b) {
#if CAMPAIGN_IS_FLOAT && !CAMPAIGN_WIDE
    const int32_t exponent = a.exponent + b.exponent;
    if (exponent >= MG_E_SPECIAL) return 0;
    return mg_device_round(unit_c(), unit_c().fraction_bits, 0, -(int64_t)(a.significand * b.significand), exponent - CAMPAIGN_PRODUCT_FRACTION);
#elif CAMPAIGN_WIDE
    return mg_device_code(-(mg_device_double(a) * mg_device_double(b)));
#else
    return (campaign_code)(uint32_t)-(a * b);
#endif
}

/* c of an exhaustive tile: zeros, one, then numbers around the product and random codes by turns. */
MG_HD campaign_code campaign_exhaustive_c(const campaign_plan *p, campaign_words r, unit_number a, unit_number b) {
    const mg_format f = unit_c();
    if (p->c_low < 2) return campaign_zero(f, (uint32_t)p->c_low);
    if (p->c_low == 2) return campaign_encode(f, 0, 0, 0);
    if (p->c_low % 2) return (campaign_code)r.x;
#if CAMPAIGN_IS_FLOAT && !CAMPAIGN_WIDE
    const int32_t exponent = campaign_clip(a.exponent + b.exponent, -300, 300);
    return campaign_encode(f, r.z & 1, exponent + campaign_pick(r.y, -CAMPAIGN_F - 3, CAMPAIGN_F + 3), (campaign_code)r.w);
#else
    (void)a, (void)b;
    return (campaign_code)r.y;
#endif
}

/* The code of c at (row, column); the elements are the factors of the product with role 0. */
MG_HD campaign_code campaign_c_of(const campaign_plan *p, int32_t row, int32_t column, unit_element of_a, unit_element of_b) {
    const mg_format f = unit_c();
    const unit_number a = unit_number_a(of_a), b = unit_number_b(of_b);
    const campaign_words r = campaign_random(p->key, p->tile, STREAM_C, (uint32_t)(row * CAMPAIGN_N + column));
    const campaign_code all = ((campaign_code)1 << (f.bits - 1)) - 1 + ((campaign_code)1 << (f.bits - 1));
    if (p->kind == CAMPAIGN_EXHAUSTIVE) return campaign_exhaustive_c(p, r, a, b) & all;
    if (p->c == C_RAW) return ((campaign_code)r.x | (campaign_code)((uint64_t)r.y << 32)) & all;
    if (campaign_chance(r.z >> 8, p->c_zero)) return campaign_zero(f, r.z & 1);
    if (p->c == C_CORNER) return campaign_corner(f, r.w);
    if (p->c == C_LEAST) return campaign_encode(f, r.z & 1, CAMPAIGN_REACH_C_TINIEST, 0);
    if (p->c == C_AGAINST) return campaign_against(a, b);
    const uint32_t sign = p->signs == SIGNS_RANDOM ? r.z & 1 : (uint32_t)p->mirrored;
    return campaign_encode(f, sign, campaign_pick(r.w, p->c_low, p->c_high), campaign_fraction_of(p->c_fraction, CAMPAIGN_KEPT, r.x, r.y));
}

/* Block scales --------------------------------------------------------------------------------------------------------- */

#if CAMPAIGN_SCALES
/* The code of a scale of A (place: row) or B (place: column): a tile has ones alone, or numbers within a binade, within
 * eight or anywhere around one, and where its kind has special values the format's ends and NaN among them. */
MG_HD uint64_t campaign_scale(const campaign_plan *p, int32_t of_b, int32_t place, int32_t block) {
    const mg_format f = of_b ? unit_scale_b() : unit_scale_a();
    const campaign_words r = campaign_random(p->key, p->tile, of_b ? STREAM_SCALE_B : STREAM_SCALE_A, (uint32_t)(place * CAMPAIGN_SCALES + block));
    const int32_t one = f.bias << f.fraction_bits, binade = 1 << f.fraction_bits, top = (int32_t)f.largest, mode = (int32_t)(p->words.y & 3);
    if (p->raw) return r.x & ((1u << f.bits) - 1);
    if ((p->specials || p->corner_first) && campaign_chance(r.z, 24)) return r.y & 1 ? f.nan : r.y & 2 ? f.largest : 0;
    if (mode == 0 || p->kind == CAMPAIGN_EXHAUSTIVE) return (uint64_t)one;
    const int32_t reach = mode == 1 ? binade : mode == 2 ? 8 * binade : top;
    return (uint64_t)campaign_pick(r.x, campaign_clip(one - reach, 0, top), campaign_clip(one + reach, 0, top));
}
#endif

/* Sparse A: `nibbles` are the metadata of one row ---------------------------------------------------------------------- */

#if CAMPAIGN_PATTERN
/* The index nibble of a chunk. Structured tiles have the same in every row, so that each row of B belongs to one slot. */
MG_HD uint8_t campaign_metadata(const campaign_plan *p, int32_t row, int32_t chunk) {
    const int32_t shared = !p->raw && !p->elementwise, place = shared ? chunk : row * CAMPAIGN_CHUNKS + chunk;
    const campaign_words r = campaign_random(p->key, p->tile, STREAM_METADATA, (uint32_t)place >> 2);
    const uint32_t word = place & 2 ? (place & 1 ? r.w : r.z) : (place & 1 ? r.y : r.x);
    return (uint8_t)(CAMPAIGN_LEGAL >> 4 * (word % CAMPAIGN_LEGAL_COUNT) & 15u);
}

/* The logical column of stored element s (golden/registers/sparsity.py). */
MG_HD int32_t campaign_column(const uint8_t *nibbles, int32_t s) {
#if CAMPAIGN_PATTERN == 1 /* 2:4 */
    const uint32_t nibble = nibbles[s >> 1];
    return (s & ~1) * 2 + (int32_t)(s & 1 ? nibble >> 2 : nibble & 3);
#elif CAMPAIGN_PATTERN == 2 /* 1:2 */
    return 2 * s + (nibbles[s] == 0xE);
#else /* 4:8 pairs */
    const uint32_t nibble = nibbles[s >> 2];
    return (s & ~3) * 2 + 2 * (int32_t)(s & 2 ? nibble >> 2 : nibble & 3) + (s & 1);
#endif
}

/* The stored element that logical column k belongs to, or -1. */
MG_HD int32_t campaign_stored(const uint8_t *nibbles, int32_t k) {
    const int32_t chunk = CAMPAIGN_LOGICAL_K / CAMPAIGN_CHUNKS, stored = chunk / 2, base = k / chunk * stored;
    int32_t found = -1;
    MG_UNROLL for (int32_t s = 0; s < stored; s++) found = campaign_column(nibbles, base + s) == k ? base + s : found;
    return found;
}
#else
MG_HD int32_t campaign_column(const uint8_t *nibbles, int32_t s) {
    (void)nibbles;
    return s;
}
MG_HD int32_t campaign_stored(const uint8_t *nibbles, int32_t k) {
    (void)nibbles;
    return k;
}
#endif

/* The code of B at logical (k, column): the slot's, or random bits where row 0 of A (`nibbles`) does not select it. */
MG_HD campaign_code campaign_b_of(const campaign_plan *p, const campaign_slot *slots, const uint8_t *nibbles, int32_t k, int32_t column) {
    const int32_t s = campaign_stored(nibbles, k);
    if (s >= 0) return campaign_operand(p, &slots[s], 1, column);
    const campaign_words r = campaign_random(p->key, p->tile, STREAM_UNSELECTED, (uint32_t)(column * CAMPAIGN_LOGICAL_K + k));
    return (campaign_code)r.x & (((campaign_code)1 << (unit_b().bits - 1)) - 1 + ((campaign_code)1 << (unit_b().bits - 1)));
}
