/* What the core's translation units share; not part of the C ABI. */
#ifndef MG_INTERNAL_H
#define MG_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "mmagold.h"

/* A directed rounding, as <fenv.h> has it. */
#define MG_HARDWARE_ROUNDING(rounding) \
    ((rounding) == MG_ROUNDING_TOWARD_ZERO ? FE_TOWARDZERO : (rounding) == MG_ROUNDING_DOWN ? FE_DOWNWARD : FE_UPWARD)

/* Before a function that a kernel of CUDA takes, too (golden/model/device_text.py). */
#ifdef __CUDACC__
#define MG_BOTH __host__ __device__
#else
#define MG_BOTH
#endif

/* Before a function that other translation units call. MG_ALONE: a header has it all (golden/vectors/c_header.py),
 * which leaves out what the library alone needs: calls, threads, matrices, the machine's floating-point arithmetic. */
#ifdef MG_ALONE
#define MG_SHARED static inline
#else
#define MG_SHARED
#endif

/* Index of the highest set bit; x is not zero. */
static inline MG_BOTH int32_t mg_highest(uint64_t x) {
#ifdef __CUDA_ARCH__
    return 63 - __clzll((long long)x);
#else
    return 63 - __builtin_clzll(x);
#endif
}

/* Exponents that mark what is not a finite number, chosen so that the sum of two still shows which product it is:
 * zero * finite < infinity * zero < infinity * finite < infinity * infinity < NaN * anything. */
#define MG_E_ZERO (-(1 << 16))
#define MG_E_INFINITY (1 << 20)
#define MG_E_NAN (1 << 24)
#define MG_E_SPECIAL (1 << 19)   /* at or above: infinity or NaN */
#define MG_E_NAN_LEAST (1 << 23) /* at or above: NaN */
#define MG_NO_TURNS INT64_MIN  /* as `turns` of mg_tile_kernel's integers: rows one after the other */
#define MG_MOST_UNITS 126        /* of a quick sum, as a power of two */

#define MG_TILE_OPERATIONS 16 /* of a program in the fast form, at most */
#define MG_MAX_GROUPS 16
#define MG_GROUPED 64    /* products of a sum of scaled groups that is compiled alone */
#define MG_IEEE_TERMS 32 /* products of an operation of IEEE steps, at most */

/* Row of B that stored element s of a row of A meets; `nibbles` is that row's metadata, `step` bytes apart
 * (golden/registers/sparsity.py has the same). */
static inline MG_BOTH int32_t mg_selected(int32_t sparsity, const char *nibbles, int64_t step, int32_t s) {
    switch (sparsity) {
    case MG_SPARSE_2_4: { int32_t x = nibbles[s / 2 * step] & 15; return s / 2 * 4 + (s % 2 ? x >> 2 : x & 3); }
    case MG_SPARSE_1_2: return 2 * s + (nibbles[s * step] == 0xE);
    default: { int32_t x = nibbles[s / 4 * step] & 15; return s / 4 * 8 + 2 * (s % 4 < 2 ? x & 3 : x >> 2) + s % 2; }
    }
}

#ifndef MG_ALONE
/* Functions that are to be compiled into others. */
#ifdef __SANITIZE_ADDRESS__ /* which makes code long: every variant of it, compiled alone, would take minutes */
#define MG_INLINE static __attribute__((unused))
#else
#define MG_INLINE static inline __attribute__((always_inline))
#endif

/* Where dot products lie (mg_gather.c) ----------------------------------------------------------------------------- */

#define MG_LANES 16 /* dot products that run together: blocks and tiles have a multiple of it */
#define MG_WIDE_BLOCK_LANES 32 /* of blocks with significands of two words */
#define MG_MOST_BLOCK_LANES 64 /* of a block: as many as a word has bits */
enum mg_operand {
    MG_OPERAND_A,
    MG_OPERAND_B,
    MG_OPERAND_C,
    MG_OPERAND_D,
    MG_OPERAND_FLAGS,
    MG_OPERAND_SCALE_A,
    MG_OPERAND_SCALE_B,
    MG_OPERANDS
};

/* `count` elements of D, each in a lane of its own: where the first code of each operand of it lies. Lanes from `used`
 * on repeat the last. `step`: bytes from a lane to the next, where all are as far apart, and `at` has the first one
 * alone; else MG_UNEVEN. `selected`, where A is sparse: the row of B that element k of A meets, [lane][k]. */
#define MG_UNEVEN (-(ptrdiff_t)(~(size_t)0 >> 1) - 1) /* PTRDIFF_MIN, which NVRTC does not have */
typedef struct {
    int32_t count, used;
    int32_t *selected;
    ptrdiff_t step[MG_OPERANDS];
    char *at[MG_OPERANDS][MG_MOST_BLOCK_LANES];
} mg_lanes;

static inline char *mg_lane_at(const mg_lanes *lanes, int operand, int32_t lane) {
    const ptrdiff_t step = lanes->step[operand];
    char *first = lanes->at[operand][0]; /* null: the program has no such operand */
    return step == MG_UNEVEN ? lanes->at[operand][lane] : first ? first + lane * step : NULL;
}

/* Points lanes at elements first, first + 1, ... last - 1 of D, in the order of (batch, row, column), or as many as
 * there are lanes. */
void mg_point(const mg_program *p, const mg_call *call, int64_t first, int64_t last, mg_lanes *lanes);
/* Where rows of codes begin, a lane each: `step` bytes apart, or, of MG_UNEVEN, at places of their own. */
typedef struct {
    const char *first;
    ptrdiff_t step;
    char *const *at;
} mg_rows;

/* The codes of an operand as [k][lane], in their storage. */
void mg_gather(const mg_program *p, const mg_call *call, const mg_lanes *lanes, int operand, char *out);
/* Codes of d to where they belong. */
void mg_scatter(const mg_program *p, const mg_lanes *lanes, const char *codes);
/* The rows of B that a sparse row of A meets. */
void mg_select(const mg_program *p, const mg_call *call, int64_t batch, int32_t row, int32_t *rows);

static inline int64_t mg_offset(const mg_call *call, const mg_array *array, int64_t batch) {
    if (call->batch_dims == 1) return batch * array->batch_stride[0];
    int64_t offset = 0;
    for (int32_t d = call->batch_dims - 1; d >= 0; d--) {
        offset += batch % call->batch_shape[d] * array->batch_stride[d];
        batch /= call->batch_shape[d];
    }
    return offset;
}

/* Where an operand begins that belongs to one entry of the batch. */
static inline char *mg_matrix(const mg_call *call, const mg_array *array, int64_t batch) {
    return array->data ? array->data + mg_offset(call, array, batch) : NULL;
}

static inline uint64_t mg_load(const char *at, int32_t storage) {
    switch (storage) {
    case 8: return *(const uint8_t *)at;
    case 16: { uint16_t x; memcpy(&x, at, sizeof x); return x; }
    case 32: { uint32_t x; memcpy(&x, at, sizeof x); return x; }
    default: { uint64_t x; memcpy(&x, at, sizeof x); return x; }
    }
}

static inline void mg_store(char *at, int32_t storage, uint64_t code) {
    switch (storage) {
    case 8: *(uint8_t *)at = (uint8_t)code; break;
    case 16: { uint16_t x = (uint16_t)code; memcpy(at, &x, sizeof x); break; }
    case 32: { uint32_t x = (uint32_t)code; memcpy(at, &x, sizeof x); break; }
    default: memcpy(at, &code, sizeof code); break;
    }
}

/* Whether a format is IEEE's own of these widths (FP16, FP32), which the machine converts; units may define others of
 * these widths. */
static inline int mg_is_ieee(const mg_format *f, int exponent_bits, int fraction_bits) {
    return f->is_float && f->exponent_bits == exponent_bits && f->fraction_bits == fraction_bits &&
        f->bias == (1 << (exponent_bits - 1)) - 1 && f->specials == MG_SPECIALS_IEEE &&
        f->sign_shift == exponent_bits + fraction_bits && f->ignored_low == 0 && f->has_zero;
}

/* Whether a code becomes one of FP32 by moving it: FP32, BF16, TF32. */
static inline int mg_fits_single(const mg_format *f) {
    return f->is_float && f->exponent_bits == 8 && f->bias == 127 && f->specials == MG_SPECIALS_IEEE && f->has_zero &&
        f->storage >= 16 && f->storage <= 32 && f->sign_shift == f->ignored_low + f->fraction_bits + 8;
}

/* Whether FP16 has all numbers of a format times a power of two: the machine's conversion of FP16, with subnormal
 * numbers as quick as others, decodes it then. */
static inline int mg_fits_halves(const mg_format *f) {
    const int specials = f->specials == MG_SPECIALS_IEEE
        ? f->exponent_bits == 5
        : f->exponent_bits < 5 && f->specials != MG_SPECIALS_NEGATIVE_ZERO_NAN;
    return f->is_float && f->storage <= 16 && f->has_zero && !f->ignored_low && f->fraction_bits >= 1 &&
        f->fraction_bits <= 10 && f->exponent_bits >= 1 && specials;
}

/* Whether exponents of such a format, which are small, can stand in bytes (MG_BYTE_BIAS). */
static inline int mg_fits_bytes(const mg_format *f) {
    return (f->storage == 16 && mg_is_ieee(f, 5, 10)) ||
        (f->storage == 8 && mg_fits_halves(f) && f->bias >= 0 && f->bias <= 32);
}

/* Tiles (mg_fast.c, mg_tile.h) ------------------------------------------------------------------------------------- */

/* Codes that are the machine's own numbers, where the caller has them. */
typedef float mg_loose_float __attribute__((aligned(1), may_alias));
typedef double mg_loose_double __attribute__((aligned(1), may_alias));

/* One decoded operand: [row][column], of `count` elements. Integers lie in `value`, 16 bits in a word of their own, or
 * two or four that follow each other in k in one. `raw`: codes as they are, for the hardware's own arithmetic, the
 * caller's where they are one run. */
typedef struct {
    float *value;
    int32_t *exponent;
    char *raw;
    ptrdiff_t count;
} mg_plane;

/* Dot products for the fast form: rows of A (k apart) against `columns` of B, a multiple of the lanes; of `matrices`,
 * whose planes follow each other. `per_lane`: one row, and A lies as B does, [k][column]: every column is a
 * dot product of its own. mg_tile.h explains the other words. */
typedef struct {
    const mg_program *program;
    int32_t matrices, rows, columns, per_lane, paired, significands, specials, quick, plain;
    int32_t bytes;   /* whether exponents of a and b are bytes (mg_plan_bytes) */
    int32_t one_sum; /* a program is one sum of integers that a c of 32 bits joins (mg_integer_rows) */
    int32_t share, swapped, flip, groups; /* integers: mg_plan_integers; the groups of a program that is one sum of
                                             scaled ones, if it is compiled alone */
    mg_plane a, b, scale_a, scale_b;
    ptrdiff_t a_row, scale_row; /* from a row to the next */
    uint8_t *tops;     /* for largest exponents of products, in bytes (mg_fill_tops), */
    int32_t tops_rows; /* of this many rows at a time */
    ptrdiff_t *row_of_b; /* [row][k] where row_step is not 0: where the row of B begins that element k meets */
    ptrdiff_t row_step;
    const char *c;
    char *d;
    ptrdiff_t c_row, d_row, c_next, d_next; /* bytes from a row to the next, from a matrix to the next */
} mg_tile;

static inline void mg_move_plane(mg_plane *plane, int32_t n, int32_t matrices, int32_t share, int32_t width) {
    plane->count /= matrices;
    const ptrdiff_t moved = n * plane->count;
    if (plane->raw) {
        plane->raw += moved * width;
    } else if (plane->value) {
        plane->value += moved >> share;
        plane->exponent += moved;
    }
}

/* Matrix `n` of a tile alone, whose exponents are no bytes. */
static inline mg_tile mg_matrix_of(const mg_tile *t, int32_t n) {
    mg_tile one = *t;
    mg_move_plane(&one.a, n, t->matrices, t->share, t->program->a.storage / 8);
    mg_move_plane(&one.b, n, t->matrices, t->share, t->program->b.storage / 8);
    mg_move_plane(&one.scale_a, n, t->matrices, 0, 0);
    mg_move_plane(&one.scale_b, n, t->matrices, 0, 0);
    one.c += n * t->c_next;
    one.d += n * t->d_next;
    one.matrices = 1;
    return one;
}

/* Largest exponents of products that a dot product has: one in each operation, or one in each group of products. */
static inline ptrdiff_t mg_maxima(const mg_program *p) {
    ptrdiff_t maxima = 0;
    for (int32_t i = 0; i < p->operation_count; i++)
        maxima += p->operations[i].fast == MG_FAST_FDRDA ? p->operations[i].group : 1;
    return maxima;
}

typedef int (*mg_decoder)(const mg_format *f, const mg_table *table, const char *data, int64_t step, ptrdiff_t count,
    int significands, float *value, int32_t *exponent);

/* The fast form for one length of vectors. */
typedef struct {
    int32_t lanes;
    uint64_t (*run)(const mg_tile *tile); /* the matrices where a chain of fused multiply-adds made a NaN, whose word is
                                             still to be found, a bit each */
    mg_decoder decode;
    int (*decode_bytes)(const mg_format *f, const char *data, ptrdiff_t count, int specials, float *value,
        uint8_t *exponent); /* null: it has none */
    void (*integers)(const mg_format *f, const mg_table *table, const char *data, int64_t row, int32_t rows,
        int64_t step, ptrdiff_t count, int share, int64_t other, int64_t turns, int32_t flip, void *words);
    int (*reaches)(
        const mg_plane *plane, int32_t least, int32_t most); /* whether an exponent of what is not zero lies beyond */
    void (*pair_rows)(const char *data, int64_t row, int64_t column, int32_t rows, int32_t columns, int32_t width,
        char *out); /* codes
of rows, two rows by turns, [pair][k][2]: two rows of half as many columns can share a vector; null: they cannot */
    int32_t fours; /* whether it multiplies bytes, where the processor can */
} mg_tile_kernel;

/* Codes of the dot products of a block, [k][lane], each operand in its storage. */
typedef struct {
    char *a, *b, *c, *scale_a, *scale_b, *d;
} mg_block_codes;

/* `fresh`: the first block in this memory. */
typedef uint64_t (*mg_block_runner)(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes);

/* What this machine has: kernels of the fast form, and blocks of integers (mg_block.h) and of doubles (mg_real.h),
 * which return the lanes that they leave. */
typedef struct {
    const char *name;
    const mg_tile_kernel *kernels[3]; /* the widest first, null behind the last */
    int32_t block_lanes; /* of the first two */
    mg_block_runner run_block, run_real_block,
        run_wide_block; /* the last may be null: the interpreter is as fast there */
} mg_kernels;

extern const mg_kernels mg_kernels_portable;
#if defined(__x86_64__)
extern const mg_kernels mg_kernels_avx2, mg_kernels_avx512;
extern int
    mg_flushes_rounded; /* whether the processor's own flushing (MXCSR.FTZ) goes by what rounding makes of a number */
extern const mg_tile_kernel mg_tile_avx512_8;
uint64_t mg_run_wide_block_avx2(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes);
uint64_t mg_run_wide_block_avx512(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes);
#endif

/* What the environment and the processor choose. */
const mg_kernels *mg_choose(void);

/* A program in the fast form, for one thread. */
typedef struct mg_fast_form mg_fast_form;
/* One piece of memory, to be freed; null when that is short. */
mg_fast_form *mg_fast_new(const mg_program *p, const mg_call *call);
/* Lanes at once, or 0: it runs whole matrices of one batch entry. */
int32_t mg_fast_lanes(const mg_fast_form *f);
void mg_run_matrices(mg_fast_form *f, int64_t first, int64_t last);
void mg_run_lanes(mg_fast_form *f, const mg_lanes *lanes);

/* Blocks (mg_block.c, mg_block.h, mg_real.h) ----------------------------------------------------------------------- */

#define MG_MOST_FRACTION_BITS 30                /* of what the block form rounds to */
#define MG_MOST_WIDE_FRACTION_BITS 54           /* the same with significands of two words */
#define MG_BLOCK_SLOTS(p) ((size_t)(p)->k + 11) /* numbers of a register */
#define MG_BLOCK_TERMS 4                       /* registers that a step reads, at most */
#define MG_BLOCK_SUMS (MG_BLOCK_TERMS + 1)     /* what a step makes, and copies of what it reads */
#define MG_BLOCK_ROUNDER 256                   /* bytes of what a step of blocks of doubles rounds by, at most */

/* How the block form can run a program on this machine: with significands of one word, of two, or not. */
enum mg_block_fit { MG_FITS_NO_BLOCK, MG_FITS_BLOCK, MG_FITS_WIDE_BLOCK };
int mg_fits_block(const mg_program *p);
/* Such a program for one thread: one piece of memory, to be freed; null when that is short. */
typedef struct mg_block_form mg_block_form;
mg_block_form *mg_block_new(const mg_program *p, const mg_call *call);
int32_t mg_block_lanes(const mg_block_form *f);
/* Runs these lanes; returns the lanes that it leaves to the interpreter, a bit each. */
uint64_t mg_run_block(mg_block_form *f, const mg_lanes *lanes);
#endif /* MG_ALONE */

/* The interpreter (mg_general.c) ----------------------------------------------------------------------------------- */

#ifndef MG_ALONE
/* Bytes of scratch that mg_dot_in needs; aligned for any type. */
size_t mg_workspace_bytes(const mg_program *program);
#endif /* MG_ALONE */
/* One dot product in that scratch. `watch`: who observes it (mg_watch.h), or null. `raised`: where status flags are
 * collected (mg_flags.h), or null. */
struct mg_watch;
MG_SHARED MG_BOTH uint64_t mg_dot_in(void *workspace, const mg_program *program, const uint64_t *a, const uint64_t *b,
    uint64_t c, const uint64_t *scale_a, const uint64_t *scale_b, struct mg_watch *watch, uint32_t *raised);

#ifndef MG_ALONE
#define MG_MAX_THREADS 256
/* Runs a job by mg_work in this thread, and more jobs in threads of the library that come in time: a job must return
 * when nothing is left for any of them. `jobs` are `size` bytes apart. */
void mg_share(char *jobs, size_t size, int count);
void mg_work(void *job);

/* mg_run, and with a watch mg_observe: each thread copies it and lets it point at one dot product after the other. */
int mg_run_watched(const mg_program *program, const mg_call *call, const struct mg_watch *watch);
#endif /* MG_ALONE */

#endif
