/* Lane kernels for x86-64 with AVX512. mg_run.c picks them at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi2,lzcnt,prefer-vector-width=512")
#endif
#define MG_LANE_TABLE mg_lanes_avx512
#define MG_LANE_NAME "avx512"
#include "mg_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
