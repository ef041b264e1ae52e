/* The fast form and blocks for x86-64 with AVX512. mg_fast.c picks it at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt,prefer-vector-width=512")
#endif
#include <immintrin.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"

#ifndef MG_WIDE_BLOCKS
/* sum + the products of four bytes, x's without a sign. Processors that have AVX512 need not have it (mg_plan_integers), and
 * so the compiler is not told of it. */
#define MG_ADD_DOT_FOURS(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define MG_NATIVE_ADD_DOT_FOURS MG_ADD_DOT_FOURS
#include "mg_tile_8.h"
#define MG_V 16
#define MG_DOUBLES 8
#define MG_NATIVE_MAX(x, y) _mm512_max_epi32((__m512i)(x), (__m512i)(y))
#define MG_NATIVE_MAX_BYTES(x, y) _mm512_max_epu8((__m512i)(x), (__m512i)(y))
#define MG_NATIVE_SIGNED_BYTES(at) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_HALF(at) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at)))
#define MG_NATIVE_TRUNCATED(x) _mm512_cvt_roundepi32_ps((__m512i)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_ADD_DOT_FOURS MG_ADD_DOT_FOURS
#define MG_NATIVE_DOT_PAIRS(x, y) _mm512_madd_epi16((__m512i)(x), (__m512i)(y))
#define MG_NATIVE_DOT_BYTES(x, y) _mm512_maddubs_epi16((__m512i)(x), (__m512i)(y))
#define MG_NATIVE_SHUFFLE(x, places) _mm512_shuffle_epi8((__m512i)(x), (__m512i)(places))
#define MG_NATIVE_SPREAD(at) _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_SPREAD_EIGHT(at) _mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_PIECE(at) _mm_loadu_si128((const __m128i *)(at))
#define MG_NATIVE_FOUR(x, y, z, w) /* pieces of 16 bytes */                                                                              \
    _mm512_inserti32x4(_mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(MG_NATIVE_PIECE(x)), MG_NATIVE_PIECE(y), 1), MG_NATIVE_PIECE(z), 2), \
                       MG_NATIVE_PIECE(w), 3)
#define MG_NATIVE_FOUR_PIECES(at, next) MG_NATIVE_FOUR(at, (at) + (next), (at) + 2 * (next), (at) + 3 * (next))
#define MG_NATIVE_ANY(mask) _mm512_movepi32_mask((__m512i)(mask))
#define MG_NATIVE_WIDEN_8(at) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_WIDEN_16(at) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(at)))
#define MG_NATIVE_CUT(x) _mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_FLOOR(x) _mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define MG_NATIVE_CUT_FLOATS(x) _mm512_roundscale_ps((__m512)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_WHOLES(x) _mm512_cvttps_epi64((__m256)(x))
#define MG_NATIVE_FLOATS_OF_WHOLES(x) _mm512_cvt_roundepi64_ps((__m512i)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_DOUBLES(x) _mm512_cvtps_pd((__m256)(x))
#define MG_NATIVE_JOIN(x, y) _mm512_insertf32x8(_mm512_castps256_ps512((__m256)(x)), (__m256)(y), 1)
/* Two rows of eight columns fill a vector, too. */
#define MG_HALF 8
#define MG_NATIVE_ZIP(x, y) \
    _mm512_permutex2var_epi32(_mm512_castsi256_si512((__m256i)(x)), _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), \
                              _mm512_castsi256_si512((__m256i)(y)))
#define MG_NATIVE_NEXT_TWO(x) _mm512_shuffle_epi32((__m512i)(x), _MM_PERM_BADC) /* lanes x ^ 2 */
#define MG_NATIVE_NEXT_FOUR(x) _mm512_shuffle_i32x4((__m512i)(x), (__m512i)(x), _MM_SHUFFLE(2, 3, 0, 1))
#define MG_NATIVE_TWICE(x) MG_NATIVE_ZIP(x, x)
#define MG_NATIVE_UNZIP(x) _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), (__m512i)(x))
#define MG_NATIVE_EVEN(x) _mm512_castsi512_si256(MG_NATIVE_UNZIP(x))
#define MG_NATIVE_ODD(x) _mm512_extracti64x4_epi64(MG_NATIVE_UNZIP(x), 1)
#include "mg_tile.h"

#endif
#define MG_WORDS 8
#define MG_NATIVE_DOUBLE_MAX(x, y) _mm512_max_pd((__m512d)(x), (__m512d)(y))
#define MG_NATIVE_HALVES(at) _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at))))
#define MG_NATIVE_REALS(x) _mm512_cvtps_pd((__m256)(x))
#define MG_NATIVE_SIGNED_BYTES(at) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(at)))
#define MG_NATIVE_WIDE_BYTES(at) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(at)))
#define MG_NATIVE_WIDE_8(at) _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_WIDE_16(at) _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_WIDE_32(x) _mm512_cvtepu32_epi64((__m256i)(x))
#define MG_NATIVE_NARROW_32(x) _mm512_cvtepi64_epi32((__m512i)(x))
#define MG_NATIVE_NARROW_16(x) _mm512_cvtepi64_epi16((__m512i)(x))
#define MG_NATIVE_WIDE_CODES(at) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_SINGLES(at) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at)))
#define MG_NATIVE_FUSED(x, y, z) _mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z))
#define MG_NATIVE_ANY_WORD(x) _mm512_test_epi64_mask((__m512i)(x), (__m512i)(x))
#define MG_NATIVE_LEADING_ZEROS(x) _mm512_lzcnt_epi64((__m512i)(x))
#define MG_NATIVE_MULTIPLY_HALVES(x, y) _mm512_mul_epu32((__m512i)(x), (__m512i)(y))
#include "mg_block.h"
#ifdef MG_WIDE_BLOCKS
uint64_t mg_run_wide_block_avx512(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) { return mg_run_block_steps(memory, fresh, p, codes); }
#else
#include "mg_real.h"
#define MG_PIECES 4
#define MG_NATIVE_UNPACK(half, bits, x, y) _mm512_unpack##half##_epi##bits((__m512i)(x), (__m512i)(y))
#define MG_NATIVE_PIECES(at) MG_NATIVE_FOUR((at)[0], (at)[1], (at)[2], (at)[3])
#include "mg_transpose.h"

/* Interleaves pairs of rows: element k of the one, element k of the other. */
#define MG_PAIR(bits)                                                                                                                            \
    for (int32_t i = 0; i < rows; i += 2, data += 2 * row) {                                                                                     \
        const int32_t packed = column == width ? columns : 0;                                                                                    \
        int32_t k = 0;                                                                                                                           \
        for (; k + 256 / bits <= packed; k += 256 / bits, out += 64) {                                                                           \
            const __m256i x = _mm256_loadu_si256((const __m256i *)(data + k * width)), y = _mm256_loadu_si256((const __m256i *)(data + row + k * width)); \
            const __m256i low = _mm256_unpacklo_epi##bits(x, y), high = _mm256_unpackhi_epi##bits(x, y);                                         \
            _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(low, high, 0x20));                                                     \
            _mm256_storeu_si256((__m256i *)(out + 32), _mm256_permute2x128_si256(low, high, 0x31));                                              \
        }                                                                                                                                        \
        for (; k + 64 / bits <= packed; k += 64 / bits, out += 16) {                                                                             \
            const __m128i x = _mm_loadl_epi64((const __m128i *)(data + k * width)), y = _mm_loadl_epi64((const __m128i *)(data + row + k * width)); \
            _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi##bits(x, y));                                                                      \
        }                                                                                                                                        \
        for (; k < columns; k++, out += 2 * bits / 8) {                                                                                          \
            memcpy(out, data + k * column, bits / 8);                                                                                            \
            memcpy(out + bits / 8, data + row + k * column, bits / 8);                                                                           \
        }                                                                                                                                        \
    }

static void mg_pair_rows(const char *data, int64_t row, int64_t column, int32_t rows, int32_t columns, int32_t width, char *out) {
    switch (width) {
    case 1: MG_PAIR(8) break;
    case 2: MG_PAIR(16) break;
    default: MG_PAIR(32)
    }
}

const mg_kernels mg_kernels_avx512 = {"avx512", {{16, mg_run_tile_16, mg_decode_plane_16, mg_decode_bytes_16, mg_decode_integers_16, mg_reaches_16, mg_pair_rows, 1}, {8, mg_run_tile_8, mg_decode_plane_8, mg_decode_bytes_8, mg_decode_integers_8, mg_reaches_8, 0, 1}}, MG_BLOCK_LANES, mg_run_block_steps, mg_run_real_block, mg_run_wide_block_avx512, {64, mg_transpose}};
#endif
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
