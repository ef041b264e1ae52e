/* The fast form and blocks for x86-64 with AVX2. mg_fast.c picks it at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,lzcnt")
#endif
#include <immintrin.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"

#ifndef MG_WIDE_BLOCKS
#include "mg_tile_8.h"

#endif
#define MG_WORDS 4
#define MG_NATIVE_DOUBLE_MAX(x, y) _mm256_max_pd((__m256d)(x), (__m256d)(y))
#define MG_NATIVE_HALVES(at) _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(at))))
#define MG_NATIVE_REALS(x) _mm256_cvtps_pd((__m128)(x))
#define MG_NATIVE_SIGNED_BYTES(at) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_WIDE_BYTES(at) _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_WIDE_16(at) _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_WIDE_32(x) _mm256_cvtepu32_epi64((__m128i)(x))
#define MG_NATIVE_WIDE_CODES(at) _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_SINGLES(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_FUSED(x, y, z) _mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#define MG_NATIVE_ANY_WORD(x) (!_mm256_testz_si256((__m256i)(x), (__m256i)(x)))
#define MG_NATIVE_MULTIPLY_HALVES(x, y) _mm256_mul_epu32((__m256i)(x), (__m256i)(y))
#include "mg_block.h"
#ifdef MG_WIDE_BLOCKS
uint64_t mg_run_wide_block_avx2(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) { return mg_run_block_steps(memory, fresh, p, codes); }
#else
#include "mg_real.h"
#define MG_PIECES 2
#define MG_NATIVE_UNPACK(half, bits, x, y) _mm256_unpack##half##_epi##bits((__m256i)(x), (__m256i)(y))
#define MG_NATIVE_PIECE(at) _mm_loadu_si128((const __m128i *)(at))
#define MG_NATIVE_PIECES(at) _mm256_inserti128_si256(_mm256_castsi128_si256(MG_NATIVE_PIECE((at)[0])), MG_NATIVE_PIECE((at)[1]), 1)
#include "mg_transpose.h"

const mg_kernels mg_kernels_avx2 = {"avx2", {{8, mg_run_tile_8, mg_decode_plane_8, mg_decode_bytes_8, mg_decode_integers_8, mg_reaches_8, 0, 0}}, MG_BLOCK_LANES, mg_run_block_steps, mg_run_real_block, mg_run_wide_block_avx2, {32, mg_transpose}};
#endif
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
