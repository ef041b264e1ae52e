/* The fast form for any machine: SSE2 on x86-64, NEON on aarch64. */
#include <math.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"

#define MG_V 4
#define MG_DOUBLES 2
#ifdef __SSE2__
#include <emmintrin.h>
/* _mm_loadu_si32 does not come with every compiler, or is wrong there (GCC before 11.3). */
static inline __m128i mg_four_bytes(const void *at) {
    int word;
    memcpy(&word, at, sizeof word);
    return _mm_cvtsi32_si128(word);
}
#define MG_NATIVE_DOT_PAIRS(x, y) _mm_madd_epi16((__m128i)(x), (__m128i)(y))
#define MG_NATIVE_WIDEN_8(at) _mm_unpacklo_epi16(_mm_unpacklo_epi8(mg_four_bytes(at), _mm_setzero_si128()), _mm_setzero_si128())
#define MG_NATIVE_WIDEN_16(at) _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(at)), _mm_setzero_si128())
#endif
#include "mg_tile.h"

#define MG_WORDS 2
#include "mg_block.h"
#include "mg_real.h"

const mg_kernels mg_kernels_portable = {"portable", {{4, mg_run_tile_4, mg_decode_plane_4, 0, mg_decode_integers_4, mg_reaches_4, 0, 0}}, MG_BLOCK_LANES, mg_run_block_steps, mg_run_real_block, 0, {0, 0}};
