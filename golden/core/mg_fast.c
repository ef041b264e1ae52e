/* The fast form: tiles decoded once and run by the kernel of this machine (mg_tile.h); whole matrices, or lanes. */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "mg_internal.h"
#include "mg_number.h"

/* What a decoded operand is. */
typedef enum { MG_VALUES, MG_SIGNIFICANDS, MG_WHERE_THEY_REACH } mg_significands;

#define MG_NEAR_LEAST (-45) /* exponents of which two add up to what floats hold easily */
#define MG_NEAR_MOST 30

/* Where an operand of a tile lies and how it is decoded, which is the same for all tiles: rows of codes, in bytes from
 * a row to the next (`row`) and from a code to the next (`column`). Integers: words of codes, as `integers` of
 * mg_tile_kernel takes them. */
typedef struct {
    int operand, by_row; /* by_row: two rows by turns are brought together first */
    const mg_array *array;
    const mg_format *format;
    const mg_table *table;
    mg_plane *plane;
    ptrdiff_t count;  /* of the plane, for one matrix */
    int32_t depth, rows, columns, share, flip, flushes;
    int32_t one_run;  /* rows follow each other, and are one */
    int64_t row, column, other, turns;
    const mg_tile_kernel *integers; /* or null */
} mg_source;

struct mg_fast_form {
    const mg_program *program;
    const mg_call *call;
    const mg_tile_kernel *kernel;
    const mg_tile_kernel *widest, *filled; /* whose vectors rows of B fill */
    mg_significands significands;
    int32_t reached; /* whether the exponents of the tile before did, as those of the next may */
    mg_tile tile;
    mg_source sources[4]; /* a, b and their scales */
    int32_t scales;   /* of a dot product */
    int32_t stack;    /* matrices of a tile, at most */
    int32_t integers; /* whether elements become integers */
    char *c, *d;      /* a tile's, where the caller's are not packed */
    int32_t *selected; /* rows of B that one row of A meets */
    char *gathered;   /* codes of one operand: [k][lane] */
    char *turned;     /* two rows by turns */
};

/* Choosing --------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* Whether it converts FP16, which __builtin_cpu_supports of Clang 14 does not know. */
static int mg_converts_halves;

int mg_flushes_rounded;

/* A number just below the least normal one is flushed, and one that rounds to that is not; emulators may differ. */
static int mg_ask_flush(void) {
    const volatile float x[] = {0x1p-63f, 0x1.000002p-63f}, y[] = {0x1.fffffep-64f, 0x1.fffffcp-64f};
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
    const volatile float below = x[0] * y[0], rounded = x[1] * y[1];
    _mm_setcsr(before);
    return below == 0 && rounded == 0x1p-126f;
}

__attribute__((constructor)) static void mg_ask_processor(void) {
    unsigned a, b, c = 0, d;
    mg_converts_halves = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    mg_flushes_rounded = mg_ask_flush();
}
#endif

const mg_kernels *mg_choose(void) {
    const char *wish = getenv("MMAGOLD_SIMD");
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && mg_converts_halves;
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (wish && strcmp(wish, "portable") == 0) return &mg_kernels_portable;
    if (avx512 && !(wish && strcmp(wish, "avx2") == 0)) return &mg_kernels_avx512;
    if (avx2) return &mg_kernels_avx2;
#else
    (void)wish;
#endif
    return &mg_kernels_portable;
}

const char *mg_simd(void) { return mg_choose()->name; }

int mg_objects(void) {
    const char *set = getenv("MMAGOLD_SIMD"), *threads = getenv("MMAGOLD_THREADS");
    const size_t zeros = threads ? strspn(threads, "0") : 0;
    return (set && strcmp(set, mg_simd())) || (threads && (!threads[zeros] || threads[strspn(threads, "0123456789")]));
}

/* Whether a product of values, or its scale, can leave the range of normal floats, where the exponents of two factors
 * add up to least ... most. */
static int mg_leaves_floats(
    const mg_operation *o, const mg_format *a, const mg_format *b, int32_t least, int32_t most) {
    return most > 60 || least < o->fraction_bits - 126 || least < a->fraction_bits + b->fraction_bits - 126;
}

/* Whether scales have to come as significands (see there): where floats lack a group as it is scaled, or the power of
 * its units, of a floor, too. Where no group is there, c may not be cut (mg_round_wholes). */
static mg_significands mg_scales_need(const mg_operation *o, const mg_format *a, const mg_format *b) {
    const int cuts_small_c = o->floor < o->fraction_bits - MG_MOST_UNITS && o->floor > -126;
    if (cuts_small_c || o->floor > 127 || mg_leaves_floats(o, a, b, 2 * MG_NEAR_LEAST, 2 * MG_NEAR_MOST))
        return MG_SIGNIFICANDS;
    return mg_leaves_floats(o, a, b, a->min_exponent + b->min_exponent, a->max_exponent + b->max_exponent)
        ? MG_WHERE_THEY_REACH
        : MG_VALUES;
}

/* Whether the operands have to come as significands: never, always, or where an exponent of a tile is not near. */
static mg_significands mg_needs_significands(const mg_program *p) {
    mg_significands needs = MG_VALUES;
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        const mg_format *a = o->has_operand_format ? &o->operand_format : &p->a,
                        *b = o->has_operand_format ? &o->operand_format : &p->b;
        if (o->fast == MG_FAST_GDFS) return mg_scales_need(o, &p->scale_a, &p->scale_b);
        if (o->fast != MG_FAST_FDA && o->fast != MG_FAST_FDRDA) continue;
        if (o->product_overflow || p->scale_block || mg_leaves_floats(o, a, b, 2 * MG_NEAR_LEAST, 2 * MG_NEAR_MOST))
            return MG_SIGNIFICANDS;
        if (mg_leaves_floats(o, a, b, a->min_exponent + b->min_exponent, a->max_exponent + b->max_exponent))
            needs = MG_WHERE_THEY_REACH;
    }
    return needs;
}

/* Whether a sum of 32 bits does for most lanes of an operation. */
static int mg_is_quick(const mg_operation *o, mg_significands significands) {
    if (!mg_is_ieee(&o->seed_format, 8, 23) || !mg_is_ieee(&o->out_format, 8, 23)) return 0;
    if (o->fast == MG_FAST_FDRDA)
        return significands == MG_VALUES && o->result_fraction_bits == 23 && o->fraction_bits >= 23 &&
            o->fraction_bits <= 24 && 4 * o->k_count <= o->chunk && o->dot_fraction_bits >= o->fraction_bits + 2 &&
            o->sum_fraction_bits >= 31;
    /* above the largest float's exponent a floor would make units that are no floats */
    return o->fast == MG_FAST_FDA && o->rounding == MG_ROUNDING_TOWARD_ZERO && o->k_count <= o->chunk &&
        o->result_fraction_bits <= 23 && o->floor <= 127;
}

/* Whether the machine multiplies bytes without a sign by bytes with one. */
static int mg_multiplies_fours(const mg_tile_kernel *kernel) {
#if defined(__x86_64__)
    return kernel->fours && __builtin_cpu_supports("avx512vnni");
#else
    return 0 * kernel->fours;
#endif
}

/* How many integers that follow each other in k share a word, as a power of two: pairs of 16 bits, or four bytes, where
 * the machine multiplies four bytes; sums of E2M1 fit 16 bits, and so every machine has a way. The machine multiplies
 * bytes without a sign by bytes with one: b's have none if its format has none (`swapped`). Bytes of a that are not of
 * the other kind are moved by 128 (`flip`), which mg_integer_rows, mg_begin_sums and mg_begin_groups take back. */
static void mg_plan_integers(mg_fast_form *f, int32_t odd) {
    const mg_format *a = &f->program->a, *b = &f->program->b;
    mg_tile *t = &f->tile;
    if (!f->integers || !t->plain || odd & 1 || !(t->per_lane || f->call->a.column == 1)) return;
    if (a->is_float) {
        const mg_operation *o = &f->program->operations[0];
        t->share = odd & 3 ? 0 : 2;
        t->flip = t->share ? (int32_t)0x80808080 : 0;
        if (t->share && f->program->operation_count == 1 && mg_is_ieee(&o->seed_format, 8, 23) &&
            mg_is_ieee(&o->out_format, 8, 23) && o->rounding == MG_ROUNDING_TOWARD_ZERO && o->k_count == MG_GROUPED &&
            o->scale_block == o->group && o->result_fraction_bits)
            t->groups = o->group; /* without a bit of the fraction a NaN would be cut to an infinity */
        return;
    }
    t->share = 1;
    if (odd & 3 || !mg_multiplies_fours(f->kernel)) return;
    t->share = 2;
    t->swapped = !b->is_signed;
    if (t->swapped ? !a->is_signed && a->bits == 8 : a->is_signed) t->flip = (int32_t)0x80808080;
}

/* Whether c and d are words, as quick sums take and leave them. */
static int mg_has_words(const mg_program *p) { return p->c.storage == 32 && p->d.storage == 32; }

/* Whether exponents are bytes, of which a vector holds four times as many as of words: where all that it needs of them
 * is the maximum of a sum. */
static int mg_plan_bytes(const mg_fast_form *f) {
    const mg_program *p = f->program;
    const mg_call *call = f->call;
    const mg_tile *t = &f->tile;
    const int table = (p->table_a && p->table_a->looked_up) || (p->table_b && p->table_b->looked_up);
    const int packed = call->b.column * 8 == p->b.storage && (t->paired || call->a.column * 8 == p->a.storage);
    return f->widest->decode_bytes && mg_fits_bytes(&p->a) && mg_fits_bytes(&p->b) && !table && packed &&
        !t->per_lane && t->quick && t->plain && f->significands == MG_VALUES &&
        p->operations->steps->op != MG_STEP_FLUSH;
}

/* Whether two rows of A may share a vector, where k lies in line. Integers do where four of them share a word, and
 * mg_integer_rows runs them. */
static int mg_pairs_rows(const mg_fast_form *f, const mg_tile_kernel *kernel, int in_line, int32_t odd) {
    const mg_operation *o = f->program->operations;
    if (!kernel->pair_rows || f->call->n % kernel->lanes == 0 || f->program->sparsity || o->fast == MG_FAST_FMA)
        return 0;
    if (o->fast != MG_FAST_INTEGER) return 1;
    return f->tile.one_sum && o->combine != MG_OPERATION_XOR && in_line && !(odd & 3) && f->call->a.column == 1 &&
        mg_multiplies_fours(kernel);
}

/* Lanes at once: the fewer, the longer a dot product, so that decoded operands stay in the first cache. */
static int32_t mg_lanes_for(int32_t k) { return k > 64 ? MG_LANES : k > 32 ? 2 * MG_LANES : MG_MOST_BLOCK_LANES; }

/* Chooses the length of vectors, and how the tile runs through them. */
static void mg_plan_tile(mg_fast_form *f) {
    const mg_program *p = f->program;
    const mg_tile_kernel *const *kernels = mg_choose()->kernels, *const *filled = kernels;
    mg_tile *t = &f->tile;
    const int32_t m = f->call->m, n = f->call->n;
    int32_t odd = p->k, in_line = 1;
    t->program = p;
    t->quick = mg_has_words(p);
    t->one_sum = p->operations->fast == MG_FAST_INTEGER && p->operation_count == 1 && p->operations->seed == 0 &&
        p->c.storage == 32;
    f->kernel = f->widest = kernels[0];
    f->significands = mg_needs_significands(p);
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        t->quick &= mg_is_quick(o, f->significands) && o->seed == (i ? i + 1 : 0); /* of the one before */
        for (int32_t k = 0; k < o->k_count; k++) in_line &= o->k_index[k] == o->k_index[0] + k;
        odd |= (o->k_count ? o->k_index[0] : 0) | o->k_count | o->group;
    }
    for (int i = 0; kernels[i] && !t->rows; i++) {
        const int paired = mg_pairs_rows(f, kernels[i], in_line, odd);
        if ((n << paired) % kernels[i]->lanes || m % (4 << paired)) continue;
        f->kernel = kernels[i];
        t->paired = paired;
        t->rows = m >> paired;
    }
    t->per_lane = !t->rows;
    t->columns = t->per_lane ? mg_lanes_for(p->k) : n;
    t->rows = t->per_lane ? 1 : t->rows;
    while (t->columns % (*filled)->lanes) filled++;
    f->filled = *filled;
    t->row_step = p->sparsity && !t->per_lane ? p->k : 0;
    t->plain = in_line && (t->per_lane || !p->sparsity); /* lanes have their rows of B selected */
    t->bytes = mg_plan_bytes(f);
    f->integers = p->operations[0].fast == MG_FAST_INTEGER || p->operations[0].fast == MG_FAST_GDFS;
    mg_plan_integers(f, odd);
    t->a_row = (ptrdiff_t)p->k << t->paired >> t->share;
    t->scale_row = (ptrdiff_t)f->scales << t->paired;
}

#define MG_STACK_BYTES 16384 /* of decoded operands of a tile, which leaves room in the first cache */
#define MG_MOST_STACKED 64   /* matrices of a tile, as many as a word has bits */
#define MG_TOPS_BYTES 16384  /* of largest exponents that are found at a time */

/* How many matrices make a tile: small ones that follow each other in memory, so that what a tile costs once is
 * shared. */
static void mg_plan_stack(mg_fast_form *f) {
    const mg_program *p = f->program;
    const mg_call *call = f->call;
    const mg_array *const arrays[] = {&call->a, &call->b, &call->scale_a, &call->scale_b};
    const int64_t rows[] = {call->m, p->logical_k, call->m, f->scales};
    const int64_t word = sizeof(float) >> f->tile.share,
                  bytes = (word + (f->tile.bytes ? 1 : word)) *
        ((int64_t)call->m * p->k + (int64_t)p->logical_k * call->n);
    int stacks = call->batch_dims == 1 && !f->tile.per_lane && !p->sparsity && call->c.column * 8 == p->c.storage &&
        call->d.column * 8 == p->d.storage;
    for (int i = 0; i < (f->scales ? 4 : 2); i++) stacks &= arrays[i]->batch_stride[0] == rows[i] * arrays[i]->row;
    int64_t most = stacks ? MG_STACK_BYTES / bytes : 1;
    if (most > MG_MOST_STACKED) most = MG_MOST_STACKED;
    if (stacks && most > call->batch_shape[0]) most = call->batch_shape[0];
    f->stack = most < 1 ? 1 : (int32_t)most;
    f->tile.c_next = stacks ? call->c.batch_stride[0] : 0;
    f->tile.d_next = stacks ? call->d.batch_stride[0] : 0;
}

/* How many rows' largest exponents are found at a time, so that they stay in the first cache: all, where matrices share
 * a tile. */
static void mg_plan_tops(mg_fast_form *f) {
    mg_tile *t = &f->tile;
    const int64_t rows = MG_TOPS_BYTES / (((int64_t)t->columns << t->paired) * mg_maxima(f->program)) / 8 * 8;
    t->tops_rows = f->stack > 1 || rows >= t->rows ? t->rows : rows ? (int32_t)rows : 8;
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

static void mg_join_rows(mg_source *s) {
    s->columns *= s->rows;
    s->rows = s->one_run = 1;
}

/* Plans how integers become words that `share`, where rows and columns of codes are known; `by_k`: integers that lie
 * in a column. */
static void mg_plan_words(const mg_fast_form *f, mg_source *s, int by_k) {
    const int32_t share = s->share = f->tile.share;
    s->integers = s->turns != MG_NO_TURNS ? f->widest : f->filled;
    if (share) s->flip = s->operand == MG_OPERAND_A ? f->tile.flip : 0;
    if (by_k) {
        s->other = s->row;
        s->row *= 1 << share;
        s->rows >>= share;
    } else if (share) {
        if (s->turns == MG_NO_TURNS && s->row == s->columns) mg_join_rows(s);
        s->other = 1;
        s->column = 1 << share;
        s->columns >>= share;
    }
}

/* Whether a first step flushes an operand. */
static int mg_is_flushed(const mg_step *step, int name) {
    int flushes = 0;
    for (int32_t i = 0; step->op == MG_STEP_FLUSH && i < step->of_count; i++) flushes |= step->of[i] == name;
    return flushes;
}

/* Plans an operand of whole matrices, decoded where it lies, or of lanes, whose codes are gathered first. */
static void mg_plan_source(mg_fast_form *f, int operand, mg_plane *plane, mg_source *s) {
    const mg_program *p = f->program;
    const mg_call *call = f->call;
    const int of_b = operand == MG_OPERAND_B || operand == MG_OPERAND_SCALE_B, is_scale = operand >= MG_OPERAND_SCALE_A,
              lanes = f->tile.per_lane;
    *s = (mg_source){.turns = MG_NO_TURNS,
        .operand = operand,
        .by_row = f->tile.paired && !of_b,
        .plane = plane,
        .count = plane->count};
    s->array = is_scale ? (of_b ? &call->scale_b : &call->scale_a) : of_b ? &call->b : &call->a;
    s->format = is_scale ? (of_b ? &p->scale_b : &p->scale_a) : of_b ? &p->b : &p->a;
    s->table = is_scale ? (of_b ? p->table_scale_b : p->table_scale_a) : of_b ? p->table_b : p->table_a;
    s->depth = is_scale ? f->scales : lanes || !of_b ? p->k : p->logical_k;
    s->rows = lanes || of_b ? s->depth : f->tile.rows;
    s->columns = lanes || of_b ? f->tile.columns : s->depth << s->by_row;
    s->row = s->array->row;
    s->column = s->array->column;
    s->flushes = operand == MG_OPERAND_A
        ? mg_is_flushed(p->operations->steps, MG_REGISTER_A)
        : operand == MG_OPERAND_B && mg_is_flushed(p->operations->steps, MG_REGISTER_B);
    const int64_t width = s->format->storage / 8;
    const int words = f->integers && !is_scale;
    if (words && s->by_row && f->tile.share == 2) { /* decoded from where it lies */
        s->by_row = 0;
        s->turns = s->row;
        s->row *= 2;
    } else if (lanes || s->by_row) {
        s->row = s->columns * (s->column = width);
    }
    if (words) mg_plan_words(f, s, f->tile.share && (lanes || of_b));
    else if (s->column == width && s->row == width * s->columns) mg_join_rows(s);
}

/* Decodes rows x columns of an operand; raw codes, which the hardware's own arithmetic takes, are brought side by side
 * where they are not. Returns whether there is an infinity or a NaN. */
static int mg_load_plane(
    const mg_fast_form *f, const mg_source *s, ptrdiff_t rows, ptrdiff_t columns, char *data, int significands) {
    mg_plane *plane = s->plane;
    const ptrdiff_t width = s->format->storage / 8;
    const int64_t column = s->column;
    int specials = 0;
    if (plane->raw && s->one_run && !f->tile.per_lane) { /* lanes of both operands are gathered in one place */
        plane->raw = data;
        return 0;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        const char *at = data + i * s->row;
        if (f->tile.bytes)
            specials |= f->widest->decode_bytes(s->format, at, columns, f->tile.specials, plane->value + i * columns,
                (uint8_t *)plane->exponent + i * columns);
        else if (plane->raw && column == width) memcpy(plane->raw + i * columns * width, at, (size_t)(columns * width));
        else if (plane->raw)
            for (ptrdiff_t j = 0; j < columns; j++)
                memcpy(plane->raw + (i * columns + j) * width, at + j * column, (size_t)width);
        else
            specials |= f->widest->decode(s->format, s->table, at, column, columns, significands,
                plane->value + i * columns, plane->exponent + i * columns);
    }
    return specials;
}

/* Scales without fraction bits only move the exponents of the elements that share them, or make them NaN. */
static void mg_scale(mg_plane *plane, ptrdiff_t at, int32_t exponent) {
    if (exponent >= MG_E_SPECIAL) plane->value[at] = NAN;
    else plane->exponent[at] += exponent;
}

static void mg_fold_scales(const mg_fast_form *f, mg_tile *t) {
    const mg_program *p = f->program;
    if (p->operations[0].fast == MG_FAST_GDFS) return; /* those of groups stay apart */
    const int32_t lanes = t->per_lane ? t->columns : 1 << t->paired, block = p->scale_block,
                  b_block = t->per_lane ? block : block * (p->logical_k / p->k);
    for (int32_t i = 0; i < t->matrices * t->rows; i++)
        for (int32_t k = 0; k < p->k; k++)
            for (int32_t l = 0; l < lanes; l++)
                mg_scale(
                    &t->a, (i * p->k + k) * lanes + l, t->scale_a.exponent[(i * f->scales + k / block) * lanes + l]);
    for (int32_t k = 0; k < (t->per_lane ? p->k : t->matrices * p->logical_k); k++)
        for (int32_t j = 0; j < t->columns; j++)
            mg_scale(&t->b, (ptrdiff_t)k * t->columns + j, t->scale_b.exponent[k / b_block * t->columns + j]);
}

/* Values below their format's least normal number become zero. */
static __attribute__((noinline)) void mg_flush_plane(const mg_program *p, const mg_source *s) {
    const mg_operation *o = &p->operations[0];
    mg_plane *plane = s->plane;
    const float least = ldexpf(1, (o->has_operand_format ? &o->operand_format : s->format)->min_exponent);
    const uint32_t keep = o->steps->sign == MG_FLUSH_POSITIVE ? 0 : UINT32_C(1) << 31;
    uint32_t code, limit;
    memcpy(&limit, &least, sizeof limit);
    for (ptrdiff_t i = 0; i < plane->count; i++) {
        memcpy(&code, &plane->value[i], sizeof code);
        code &= (code & INT32_MAX) < limit ? keep : UINT32_MAX;
        memcpy(&plane->value[i], &code, sizeof code);
    }
}

/* Returns as mg_load_plane. */
static int mg_decode_source(mg_fast_form *f, const mg_source *s, const mg_lanes *lanes, int64_t batch) {
    char *data = lanes ? f->gathered : mg_matrix(f->call, s->array, batch);
    const int32_t matrices = f->tile.matrices, rows = s->one_run ? 1 : s->rows * matrices,
                  columns = s->one_run ? s->columns * matrices : s->columns;
    s->plane->count = s->count * matrices;
    if (lanes) mg_gather(f->program, f->call, lanes, s->operand, f->gathered);
    if (s->by_row) {
        f->kernel->pair_rows(data, s->array->row, s->array->column, f->tile.rows * matrices << 1, s->depth,
            s->format->storage / 8, f->turned);
        data = f->turned;
    }
    if (!s->integers) return mg_load_plane(f, s, rows, columns, data, f->tile.significands);
    s->integers->integers(s->format, s->table, data, s->row, rows, s->column, columns, s->share, s->other, s->turns,
        s->flip, s->plane->value);
    return 0;
}

/* Decodes two operands that meet, once more if their exponents reach too far for the values that were tried; returns as
 * mg_load_plane. */
static int mg_decode_both(mg_fast_form *f, const mg_source *both, const mg_lanes *lanes, int64_t batch) {
    mg_tile *t = &f->tile;
    const int reach = f->significands == MG_WHERE_THEY_REACH && both->integers == NULL;
    int specials = 0;
    for (int i = 0; i < 2; i++) specials |= mg_decode_source(f, &both[i], lanes, batch);
    if (reach)
        f->reached = f->kernel->reaches(both[0].plane, MG_NEAR_LEAST, MG_NEAR_MOST) ||
            f->kernel->reaches(both[1].plane, MG_NEAR_LEAST, MG_NEAR_MOST);
    if (!reach || !f->reached || t->significands) return specials;
    t->significands = 1;
    for (int i = 0; i < 2; i++) mg_decode_source(f, &both[i], lanes, batch);
    return specials;
}

/* `lanes` is null for whole matrices. */
static void mg_decode_tile(mg_fast_form *f, const mg_lanes *lanes, int64_t batch) {
    mg_tile *t = &f->tile;
    t->significands = f->significands == MG_SIGNIFICANDS || f->reached;
    t->specials = mg_decode_both(f, &f->sources[0], lanes, batch);
    if (f->sources[0].flushes) mg_flush_plane(f->program, &f->sources[0]);
    if (f->sources[1].flushes) mg_flush_plane(f->program, &f->sources[1]);
    if (!f->scales) return;
    t->specials |= mg_decode_both(f, &f->sources[2], lanes, batch);
    mg_fold_scales(f, t);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Moves rows x columns codes; used where c or d are not packed. */
static void mg_copy(const char *from, int64_t from_row, int64_t from_column, char *to, int64_t to_row,
    int64_t to_column, int32_t rows, int32_t columns, int32_t width) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++)
            memcpy(to + i * to_row + j * to_column, from + i * from_row + j * from_column, (size_t)width);
}

/* The chains of a tile that made a NaN, once more: the first NaN in the step's order is handed on, as bits, and what
 * numbers make has the step's word. */
#define MG_CHAINS_AGAIN(type, word, fma)                                                                               \
    for (ptrdiff_t i = 0; i < t->rows; i++)                                                                            \
        for (ptrdiff_t j = 0; j < t->columns; j++) {                                                                   \
            const mg_loose_##type *a = (const mg_loose_##type *)t->a.raw + (t->per_lane ? j : i * t->a_row),           \
                                  *b = (const mg_loose_##type *)t->b.raw + j;                                          \
            char *d = t->d + i * t->d_row + j * (ptrdiff_t)sizeof(type);                                               \
            type total;                                                                                                \
            memcpy(&total, d, sizeof total);                                                                           \
            if (total == total) continue;                                                                              \
            memcpy(&total, t->c + i * t->c_row + j * (ptrdiff_t)sizeof(type), sizeof total);                           \
            for (int32_t k = 0; k < o->k_count; k++) {                                                                 \
                const ptrdiff_t row = o->k_index[k] * (ptrdiff_t)t->columns;                                           \
                const mg_loose_##type *const operands[3] = {a + (t->per_lane ? row : o->k_index[k]), b + row, &total}, \
                                             *handed = NULL;                                                           \
                const type sum = fma(*operands[0], *operands[1], total);                                               \
                word code = (word)step->nan;                                                                           \
                for (int n = step->nan_order_count; n-- > 0;)                                                          \
                    if (*operands[step->nan_order[n]] != *operands[step->nan_order[n]])                                \
                        handed = operands[step->nan_order[n]];                                                         \
                if (handed) memcpy(&code, handed, sizeof code);                                                        \
                else if (sum == sum) memcpy(&code, &sum, sizeof code);                                                 \
                code |= handed ? (word)1 << (o->out_format.fraction_bits - 1) : 0;                                     \
                memcpy(&total, &code, sizeof total);                                                                   \
            }                                                                                                          \
            memcpy(d, &total, sizeof total);                                                                           \
        }

static __attribute__((noinline)) void mg_chains_again(const mg_tile *stack, uint64_t matrices) {
    const mg_operation *o = &stack->program->operations[0];
    const mg_step *step = o->steps;
    for (int32_t n = 0; n < stack->matrices; n++) {
        if (!(matrices >> n & 1)) continue;
        const mg_tile one = mg_matrix_of(stack, n), *t = &one;
        if (o->out_format.storage == 64) MG_CHAINS_AGAIN(double, uint64_t, fma)
        else MG_CHAINS_AGAIN(float, uint32_t, fmaf)
    }
}

static void mg_run_kernel(mg_fast_form *f) {
    /* Multiply-adds round as the hardware is set to; neither call is inlined, so none of them moves out from between
     * the changes. */
    const mg_operation *o = &f->program->operations[0];
    const int directed = o->fast == MG_FAST_FMA && o->steps[0].rounding != MG_ROUNDING_NEAREST_EVEN;
    if (directed) fesetround(MG_HARDWARE_ROUNDING(o->steps[0].rounding));
    const uint64_t nans = f->kernel->run(&f->tile);
    if (nans) mg_chains_again(&f->tile, nans);
    if (directed) fesetround(FE_TONEAREST);
}

int32_t mg_fast_lanes(const mg_fast_form *f) { return f->tile.per_lane ? f->tile.columns : 0; }

void mg_run_matrices(mg_fast_form *f, int64_t first, int64_t last) {
    const mg_program *p = f->program;
    const mg_call *call = f->call;
    mg_tile *t = &f->tile;
    const int32_t c_width = p->c.storage / 8, d_width = p->d.storage / 8, rows = t->rows << t->paired,
                  columns = t->columns;
    const int own_c = call->c.column != c_width, own_d = call->d.column != d_width;
    t->c_row = own_c ? (ptrdiff_t)columns * c_width : call->c.row;
    t->d_row = own_d ? (ptrdiff_t)columns * d_width : call->d.row;
    for (int64_t batch = first; batch < last; batch += t->matrices) {
        t->matrices = last - batch < f->stack ? (int32_t)(last - batch) : f->stack;
        char *c = mg_matrix(call, &call->c, batch), *d = mg_matrix(call, &call->d, batch);
        mg_decode_tile(f, NULL, batch);
        for (int32_t i = 0; p->sparsity && i < rows; i++) {
            mg_select(p, call, batch, i, f->selected);
            for (int32_t k = 0; k < p->k; k++)
                t->row_of_b[(ptrdiff_t)i * p->k + k] = (ptrdiff_t)f->selected[k] * columns;
        }
        t->c = own_c ? f->c : c;
        t->d = own_d ? f->d : d;
        if (own_c) mg_copy(c, call->c.row, call->c.column, f->c, t->c_row, c_width, rows, columns, c_width);
        mg_run_kernel(f);
        if (own_d) mg_copy(f->d, t->d_row, d_width, d, call->d.row, call->d.column, rows, columns, d_width);
    }
}

void mg_run_lanes(mg_fast_form *f, const mg_lanes *lanes) {
    f->tile.matrices = 1;
    mg_decode_tile(f, lanes, 0);
    mg_gather(f->program, f->call, lanes, MG_OPERAND_C, f->c);
    f->tile.c = f->c;
    f->tile.d = f->d;
    mg_run_kernel(f);
    mg_scatter(f->program, lanes, f->d);
}

/* Scratch ---------------------------------------------------------------------------------------------------------- */

static void *mg_take(char **at, size_t *bytes, size_t size) {
    char *taken = *at;
    size = (size + 127) / 64 * 64; /* vectors may reach past the end */
    *bytes += size;
    if (taken) *at += size;
    return taken;
}

static void mg_take_plane(char **at, size_t *bytes, mg_plane *plane, size_t count, size_t stack, int32_t raw) {
    plane->count = (ptrdiff_t)count;
    plane->value = raw ? NULL : mg_take(at, bytes, stack * count * sizeof(float));
    plane->exponent = raw ? NULL : mg_take(at, bytes, stack * count * sizeof(int32_t));
    plane->raw = raw ? mg_take(at, bytes, stack * count * (size_t)raw) : NULL;
}

/* Lays the scratch out; with a null `at` it only counts the bytes. */
static size_t mg_lay_out(mg_fast_form *f, char *at) {
    const mg_program *p = f->program;
    mg_tile *t = &f->tile;
    const size_t k = (size_t)p->k, scales = (size_t)f->scales, stack = (size_t)f->stack;
    size_t bytes = 0;
    const size_t columns = (size_t)t->columns, rows = (size_t)t->rows << t->paired,
                 a_rows = t->per_lane ? columns : rows, b_rows = t->per_lane ? k : (size_t)p->logical_k;
    const int32_t raw = p->operations[0].fast == MG_FAST_FMA ? p->a.storage / 8 : 0;
    mg_take_plane(&at, &bytes, &t->a, a_rows * k, stack, raw);
    mg_take_plane(&at, &bytes, &t->b, b_rows * columns, stack, raw);
    mg_take_plane(&at, &bytes, &t->scale_a, a_rows * scales, stack, 0);
    mg_take_plane(&at, &bytes, &t->scale_b, scales * columns, stack, 0);
    t->row_of_b = mg_take(&at, &bytes, (t->row_step ? rows : 1) * k * sizeof(ptrdiff_t));
    f->selected = mg_take(&at, &bytes, k * sizeof(int32_t));
    f->c = mg_take(&at, &bytes, rows * columns * 8);
    f->d = mg_take(&at, &bytes, rows * columns * 8);
    f->gathered = mg_take(&at, &bytes, t->per_lane ? columns * k * 8 : 0);
    t->tops = mg_take(
        &at, &bytes, t->bytes ? stack * ((size_t)t->tops_rows << t->paired) * columns * (size_t)mg_maxima(p) : 0);
    f->turned = mg_take(&at, &bytes, t->paired ? stack * a_rows * k * 4 : 0);
    for (int32_t i = 0; at && i < p->k; i++) t->row_of_b[i] = (ptrdiff_t)i * t->columns;
    return bytes;
}

mg_fast_form *mg_fast_new(const mg_program *p, const mg_call *call) {
    mg_fast_form plan = {.program = p, .call = call, .scales = p->scale_block ? p->k / p->scale_block : 0}, *f;
    mg_plan_tile(&plan);
    mg_plan_stack(&plan);
    mg_plan_tops(&plan);
    f = malloc(sizeof *f + 64 + mg_lay_out(&plan, NULL));
    if (!f) return NULL;
    *f = plan;
    mg_lay_out(f, (char *)(((uintptr_t)(f + 1) + 63) / 64 * 64));
    mg_plan_source(f, MG_OPERAND_A, &f->tile.a, &f->sources[0]);
    mg_plan_source(f, MG_OPERAND_B, &f->tile.b, &f->sources[1]);
    if (!f->scales) return f;
    mg_plan_source(f, MG_OPERAND_SCALE_A, &f->tile.scale_a, &f->sources[2]);
    mg_plan_source(f, MG_OPERAND_SCALE_B, &f->tile.scale_b, &f->sources[3]);
    return f;
}

void mg_build_table(const mg_format *format, const mg_format *target, mg_table *table) {
    fenv_t callers; /* who may flush subnormal numbers */
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    /* scales without fraction bits have MG_E_SPECIAL, for mg_scale */
    table->looked_up = target ||
        (format->is_float && (!format->has_zero || (format->sign_shift < 0 && !format->fraction_bits)));
    for (int32_t code = 0; code < 256; code++) {
        mg_number x = mg_decode(format, (uint64_t)code);
        if (target) x = mg_convert(target, &x);
        const int finite = x.kind == MG_FINITE;
        const float magnitude = x.kind == MG_NAN ? NAN
            : x.kind == MG_INFINITY ? INFINITY
                                                 : ldexpf((float)x.significand, -x.fraction_bits);
        table->significand[code] = x.sign ? -magnitude : magnitude;
        table->value[code] = finite ? ldexpf(table->significand[code], x.exponent) : table->significand[code];
        table->exponent[code] = x.kind == MG_ZERO ? MG_E_ZERO : finite ? x.exponent : MG_E_SPECIAL;
    }
    fesetenv(&callers);
}

