/* The fast form and blocks for x86-64 with AVX-512. mg_fast.c picks it at run time. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                        \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt"))), \
    apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi2,lzcnt,prefer-vector-width=512")
#endif
#define MG_AVX512
#define MG_V 16
#ifdef MG_WIDE_BLOCKS /* mg_wide_avx512.c */
#include "mg_simd.h"
#include "mg_number.h"
#include "mg_block.h"

uint64_t mg_run_wide_block_avx512(void *memory, int fresh, const mg_program *p, const mg_block_codes *codes) {
    return mg_run_block_steps(memory, fresh, p, codes);
}
#else
#include "mg_tile.h"

#include "mg_block.h"
#include "mg_real.h"

/* Interleaves pairs of rows: element k of the one, element k of the other. */
#define MG_PAIR(bits)                                                                                       \
    for (int32_t i = 0; i < rows; i += 2, data += 2 * row) {                                                \
        const int32_t packed = column == width ? columns : 0;                                               \
        int32_t k = 0;                                                                                      \
        for (; k + 256 / bits <= packed; k += 256 / bits, out += 64) {                                      \
            const __m256i x = MG_LOAD_HALF(data + k * width), y = MG_LOAD_HALF(data + row + k * width);     \
            const __m256i low = _mm256_unpacklo_epi##bits(x, y), high = _mm256_unpackhi_epi##bits(x, y);    \
            _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(low, high, 0x20));                \
            _mm256_storeu_si256((__m256i *)(out + 32), _mm256_permute2x128_si256(low, high, 0x31));         \
        }                                                                                                   \
        for (; k + 64 / bits <= packed; k += 64 / bits, out += 16) {                                        \
            const __m128i x = _mm_loadl_epi64((const __m128i *)(data + k * width));                         \
            const __m128i y = _mm_loadl_epi64((const __m128i *)(data + row + k * width));                   \
            _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi##bits(x, y));                                 \
        }                                                                                                   \
        for (; k < columns; k++, out += 2 * bits / 8) {                                                     \
            memcpy(out, data + k * column, bits / 8);                                                       \
            memcpy(out + bits / 8, data + row + k * column, bits / 8);                                      \
        }                                                                                                   \
    }

static void mg_pair_rows(const char *data, int64_t row, int64_t column, int32_t rows, int32_t columns, int32_t width,
                         char *out) {
    switch (width) {
    case 1: MG_PAIR(8) break;
    case 2: MG_PAIR(16) break;
    default: MG_PAIR(32)
    }
}

const mg_kernels mg_kernels_avx512 = {
    "avx512", {&(const mg_tile_kernel)MG_TILE_KERNEL(mg_pair_rows), &mg_tile_avx512_8}, MG_BLOCK_LANES,
    mg_run_block_steps, mg_run_real_block, mg_run_wide_block_avx512};
#endif
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int mg_not_on_this_machine; /* ISO C wants a declaration */
#endif
