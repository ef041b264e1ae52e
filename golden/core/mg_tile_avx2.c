/* The fast form and blocks for x86-64 with AVX2. mg_fast.c picks it at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,lzcnt")
#endif
#define MG_AVX2
#define MG_V 8
#ifdef MG_WIDE_BLOCKS /* mg_wide_avx2.c */
#include "mg_simd.h"
#include "mg_number.h"
#include "mg_block.h"

uint64_t mg_run_wide_block_avx2(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) {
    return mg_run_block_steps(memory, fresh, p, codes);
}
#else
#include "mg_tile.h"
#include "mg_block.h"
#include "mg_real.h"

const mg_kernels mg_kernels_avx2 = {
    "avx2", {&(const mg_tile_kernel)MG_TILE_KERNEL(NULL)}, MG_BLOCK_LANES, mg_run_block_steps, mg_run_real_block,
    mg_run_wide_block_avx2};
#endif
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
