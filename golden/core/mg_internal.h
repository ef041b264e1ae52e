/* What the core's translation units share; not part of the C ABI. */
#ifndef MG_INTERNAL_H
#define MG_INTERNAL_H

#include <stddef.h>

#include "mmagold.h"

/* Dot products that a lane kernel computes side by side, one a column. */
#define MG_LANES 16

/* Exponents that mark what is not a finite number, chosen so that the sum of two still tells which product it is:
 * zero * finite < infinity * zero < infinity * finite < infinity * infinity < NaN * anything. */
#define MG_E_ZERO (-(1 << 16))
#define MG_E_INFINITY (1 << 20)
#define MG_E_NAN (1 << 24)
#define MG_E_SPECIAL (1 << 19)   /* at or above: infinity or NaN */
#define MG_E_NAN_LEAST (1 << 23) /* at or above: NaN */

/* MG_LANES dot products, decoded. Element k of lane l: b at [k * b_stride + l]; a at [k * MG_LANES + l], or, where the
 * `_high` pointers are set, a at [k] for the first half of the lanes and a_high at [k] for the second.
 * Significands are signed; `a64`/`b64` hold raw codes for the kernels on hardware floats; scales one per scale block. */
typedef struct {
    const int32_t *a_significand, *a_exponent, *a_significand_high, *a_exponent_high, *b_significand, *b_exponent;
    const uint64_t *a64, *b64;
    const int32_t *scale_a_significand, *scale_a_exponent, *scale_b_significand, *scale_b_exponent; /* [scale block * MG_LANES + l] */
    ptrdiff_t b_stride;
} mg_block;

typedef struct {
    const char *name;
    /* Decodes `count` codes that lie `step` bytes apart, by table (8-bit storage) or by the format's fields. */
    void (*decode)(const mg_format *f, const int32_t *table, const char *data, int64_t step, int32_t storage, ptrdiff_t count,
                   int32_t *significand, int32_t *exponent);
    /* Runs one operation on a block: seed and addend codes in, result codes out. Returns a mask of lanes that it left
     * to the general interpreter (NaNs whose payload matters). */
    uint32_t (*run)(const mg_operation *o, const mg_block *block, const uint64_t *seed, const uint64_t *addend, uint64_t *out);
} mg_lane_kernels;

extern const mg_lane_kernels mg_lanes_portable;
#if defined(__x86_64__)
extern const mg_lane_kernels mg_lanes_avx2, mg_lanes_avx512;
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
