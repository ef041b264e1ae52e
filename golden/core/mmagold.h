/* mmagold arithmetic core: the C ABI.
 *
 * A program is compiled from the YAML specs by golden/model/engine.py into the plain structs below; nothing here knows
 * any architecture. Four executors share them: the general interpreter (mg_general.c, every step with every parameter),
 * blocks (mg_block.h, most programs, 16 dot products at once), blocks of doubles (mg_real.h, the programs whose numbers
 * a double holds) and the fast form (mg_tile.h, the families that must be fast); docs/core.md says why they agree.
 */
#ifndef MMAGOLD_H
#define MMAGOLD_H

#include <stdint.h>

#include "mg_steps.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MG_ABI_VERSION 1
#define MG_MAX_BATCH_DIMS 16
#define MG_MAX_K 4096

enum mg_kind { MG_ZERO, MG_FINITE, MG_INFINITY, MG_NAN };

enum mg_fast {
    MG_FAST_NONE,
    MG_FAST_FDA,
    MG_FAST_GDFS,
    MG_FAST_FDRDA,
    MG_FAST_FMA,
    MG_FAST_INTEGER,
    MG_FAST_ADD,
    MG_FAST_IEEE,
    MG_FAST_EXACT
};

/* All codes of an 8-bit format, decoded: the value, the significand that it has with its exponent, and the exponent.
 * `looked_up`: the fields of a code do not say all of it, as where another format holds the numbers. */
typedef struct {
    float value[256], significand[256];
    int32_t exponent[256], looked_up;
} mg_table;

/* One operation: an algorithm applied to k_count elements; seed and addends are indices of earlier results
 * (0: c, 1: zero, 2 + i: result of operation i). */
typedef struct {
    const mg_step *steps;
    const int32_t *k_index;
    int32_t step_count, k_count, seed, addend_count, addends[4];
    int32_t has_operand_format;
    mg_format operand_format, seed_format, out_format;
    /* The fast form: which one fits (mg_fast) and the parameters that it needs. */
    int32_t fast, fraction_bits, product_fraction, floor, result_fraction_bits, chunk, group;
    int32_t dot_fraction_bits, sum_fraction_bits, window, product_overflow, rounding, zero_rule, combine, saturate,
        scale_block;
    uint64_t nan;
} mg_operation;

enum mg_sparsity { MG_DENSE, MG_SPARSE_2_4, MG_SPARSE_1_2, MG_SPARSE_4_8_PAIRS };

typedef struct {
    const mg_operation *operations;
    int32_t operation_count;
    int32_t k;           /* products of one dot product: stored elements when sparse */
    int32_t logical_k;   /* rows of B */
    int32_t sparsity;
    int32_t scale_block; /* products that share a scale, 0: none */
    mg_format a, b, c, d, scale_a, scale_b;
    /* The fast form: 1 when every operation has one. Tables of 256 decoded codes (mg_build_table), null for wide
     * formats. */
    int32_t all_fast;
    int32_t in_doubles; /* blocks may hold its numbers in doubles (golden/model/doubles.py) */
    const mg_table *table_a, *table_b, *table_scale_a, *table_scale_b;
} mg_program;

#ifndef MG_ALONE
/* A strided operand; strides in bytes. Element (batch, i, j) lies at data + sum(batch * batch_stride) + i * row + j *
 * column. */
typedef struct {
    char *data;
    int64_t batch_stride[MG_MAX_BATCH_DIMS];
    int64_t row, column;
} mg_array;

/* One call: D(batch, m, n) from A(batch, m, k), B(batch, logical_k, n), C(batch, m, n), E (metadata), scales. Where
 * `flags` has data, the status flags of each result are written there, a byte with a bit for each word of
 * enum mg_status_word. */
typedef struct {
    int32_t batch_dims, m, n, threads, force_general;
    int64_t batch_shape[MG_MAX_BATCH_DIMS];
    mg_array a, b, c, d, e, scale_a, scale_b, flags;
} mg_call;

/* Runs the program over the whole batch. Returns 0, or -1 when memory is short. D and flags overlap no operand. */
int mg_run(const mg_program *program, const mg_call *call);
#endif /* MG_ALONE */

/* Observing: the numbers that the general interpreter reads and makes, each in a record of its own. Which records a dot
 * product has depends on the program alone. `place` is the register; `index` stands for an element of it, a group
 * (maximum), a term of the step (cut) or the place in k (fused multiply-add). */
enum mg_moment {
    MG_MOMENT_REGISTER,  /* an element of a register: as the operation begins (step -1), or as the step left it */
    MG_MOMENT_MAXIMUM,   /* align: the exponent that a group aligns to, in `exponent` */
    MG_MOMENT_CUT,       /* align: what a term lost; see mg_watch_cut */
    MG_MOMENT_LEFT,      /* one addition: its first addend (fma: the product) ... */
    MG_MOMENT_RIGHT,     /* ... and its second */
    MG_MOMENT_EXACT,     /* one rounding: the exact number before it */
    MG_MOMENT_UNBOUNDED, /* ... what left the rounder, before flush and overflow; its carry is still above the point */
    MG_MOMENT_ROUNDED,   /* ... and the number that its code stands for */
    MG_MOMENT_RESULT     /* the end of an operation: its code, in `payload`, and decoded */
};
#define MG_NOT_RUN 255   /* the kind of a number that this dot product did not make */

typedef struct {
    int32_t operation, step, moment, place, index;
} mg_record;

#ifndef MG_ALONE
/* Describes the records of a program: fills `layout`, at most `most` of them, and returns how many there are; -1 when
 * memory is short. */
int32_t mg_observe_layout(const mg_program *program, mg_record *layout, int32_t most);

/* Runs dot products (m and n are 1) on the general interpreter, d as mg_run does, and writes record r of dot product i
 * to the number at index r * dots + i of `records`, which has room for `count` records of each. Returns 0, -1 when
 * memory is short, or -2 when the program has another number of records. */
int mg_observe(const mg_program *program, const mg_call *call, void *records, int32_t count);

/* A field of an observed number; `bytes` 16 is one unsigned integer. */
typedef struct {
    const char *name;
    int32_t offset, bytes, is_signed;
} mg_field;

/* Describes the fields of a number: fills `fields`, at most `most` of them; returns how many there are, and the size of
 * a number in `size`. */
int32_t mg_number_fields(mg_field *fields, int32_t most, int64_t *size);

/* Decodes `count` codes of a format into numbers. */
void mg_decode_codes(const mg_format *format, const uint64_t *codes, int64_t count, void *numbers);

/* Decodes all 256 codes of an 8-bit format, as `target` holds them where it is not null. */
void mg_build_table(const mg_format *format, const mg_format *target, mg_table *table);

int mg_abi_version(void);
/* The digest of the sources that this was built from (golden/model/core_build.py); the binding compares it with those
 * that it has. */
const char *mg_digest(void);
/* Sizes of mg_format, mg_step, mg_operation, mg_program, mg_call: the binding checks that it declares the same. */
void mg_struct_sizes(int64_t sizes[5]);
/* "avx512", "avx2" or "portable": the instruction set in use. Environment MMAGOLD_SIMD=portable|avx2 lowers the
 * choice. */
const char *mg_simd(void);

/* Whether the environment asks for what is not there; golden/model/core_library.py says what. */
int mg_objects(void);
#endif /* MG_ALONE */

#ifdef __cplusplus
}
#endif
#endif
