/* What the core's translation units share; not part of the C ABI. */
#ifndef MG_INTERNAL_H
#define MG_INTERNAL_H

#include <stddef.h>

#include "mmagold.h"

/* Exponents that mark what is not a finite number, chosen so that the sum of two still tells which product it is:
 * zero * finite < infinity * zero < infinity * finite < infinity * infinity < NaN * anything. */
#define MG_E_ZERO (-(1 << 16))
#define MG_E_INFINITY (1 << 20)
#define MG_E_NAN (1 << 24)
#define MG_E_SPECIAL (1 << 19)   /* at or above: infinity or NaN */
#define MG_E_NAN_LEAST (1 << 23) /* at or above: NaN */

#define MG_TILE_OPERATIONS 16 /* of a program in the fast form, at most */
#define MG_MAX_GROUPS 16
#define MG_MOST_LANES 16

/* One decoded operand: [row][column]. `raw`: codes as they are, for the hardware's own arithmetic. */
typedef struct {
    float *value;
    int32_t *exponent;
    char *raw;
} mg_plane;

/* Dot products for the fast form: rows of A (k apart) against `columns` of B, a multiple of the lanes. `per_lane`: one
 * row, in which element k of lane l lies at [k * lanes + l]; its columns are the lanes. The other words stand in mg_tile.h. */
typedef struct {
    const mg_program *program;
    int32_t rows, columns, per_lane, significands, specials, quick, plain;
    mg_plane a, b, scale_a, scale_b;
    ptrdiff_t a_row, scale_row; /* from a row to the next */
    ptrdiff_t *row_of_b;            /* [row][k] where row_step is not 0: where the row of B begins that element k meets */
    ptrdiff_t row_step;
    const char *c;
    char *d;
    ptrdiff_t c_row, d_row; /* bytes */
} mg_tile;

typedef int (*mg_decoder)(const mg_format *f, const mg_table *table, const char *data, int64_t step, ptrdiff_t count, int significands,
                          float *value, int32_t *exponent);

/* The fast form for one length of vectors. */
typedef struct {
    int32_t lanes; /* 0: no more */
    void (*run)(const mg_tile *tile);
    mg_decoder decode;
} mg_tile_kernel;

typedef struct {
    const char *name;
    mg_tile_kernel kernels[3]; /* the widest first */
} mg_tile_kernels;

extern const mg_tile_kernels mg_tiles_portable;
#if defined(__x86_64__)
extern const mg_tile_kernels mg_tiles_avx2, mg_tiles_avx512;
#endif

/* Bytes of scratch that mg_dot_in needs; aligned for any type. */
size_t mg_workspace_bytes(const mg_program *program);
/* One dot product in that scratch. `watch`: who observes it (mg_watch.h), or null. `raised`: where status flags are
 * collected (mg_flags.h), or null. */
struct mg_watch;
uint64_t mg_dot_in(void *workspace, const mg_program *program, const uint64_t *a, const uint64_t *b, uint64_t c,
                   const uint64_t *scale_a, const uint64_t *scale_b, struct mg_watch *watch, uint32_t *raised);

/* mg_run, and with a watch mg_observe: each thread copies it and lets it point at one dot product after the other. */
int mg_run_watched(const mg_program *program, const mg_call *call, const struct mg_watch *watch);

#endif
