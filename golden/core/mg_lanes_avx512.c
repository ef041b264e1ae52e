/* Lane kernels for x86-64 with AVX512. mg_run.c picks them at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi2,lzcnt,prefer-vector-width=512")
#endif
#include <immintrin.h>
#define MG_VECTOR_MAX(x, y) ((mg_i32)_mm512_max_epi32((__m512i)(x), (__m512i)(y)))
#define MG_VECTOR_MIN(x, y) ((mg_i32)_mm512_min_epi32((__m512i)(x), (__m512i)(y)))
#define MG_HALVES(low, high) ((mg_i32)_mm512_mask_set1_epi32(_mm512_set1_epi32(low), (__mmask16)0xFF00, high))
#define MG_LANE_TABLE mg_lanes_avx512
#define MG_LANE_NAME "avx512"
#include "mg_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
