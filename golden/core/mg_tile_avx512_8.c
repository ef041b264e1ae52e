/* The fast form in vectors of eight lanes for x86-64 with AVX-512. mg_fast.c picks it at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                        \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt"))), \
    apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt,prefer-vector-width=512")
#endif
#define MG_AVX512
#define MG_V 8
#include "mg_tile.h"

const mg_tile_kernel mg_tile_avx512_8 = MG_TILE_KERNEL(NULL);
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
