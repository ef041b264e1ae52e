/* The fast form in vectors of eight lanes, with AVX2 or more. */
#define MG_V 8
#define MG_DOUBLES 4
#define MG_NATIVE_MAX(x, y) _mm256_max_epi32((__m256i)(x), (__m256i)(y))
#define MG_NATIVE_MAX_BYTES(x, y) _mm256_max_epu8((__m256i)(x), (__m256i)(y))
#define MG_NATIVE_SIGNED_BYTES(at) _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_HALF(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_DOT_PAIRS(x, y) _mm256_madd_epi16((__m256i)(x), (__m256i)(y))
#define MG_NATIVE_DOT_BYTES(x, y) _mm256_maddubs_epi16((__m256i)(x), (__m256i)(y))
#define MG_NATIVE_FOUR_ROWS(at) /* of eight bytes, as words of a column each */                                                                     \
    _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(at)), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)), \
                        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)))
#define MG_NATIVE_SHUFFLE(x, places) _mm256_shuffle_epi8((__m256i)(x), (__m256i)(places))
#define MG_NATIVE_SPREAD(at) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_SPREAD_EIGHT(at) _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_TWO_PIECES(at, next) _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(at)), _mm_loadl_epi64((const __m128i *)((at) + (next))))
#define MG_NATIVE_FOUR_PIECES(at, next) /* eight bytes of each of four rows, two by turns */ \
    _mm256_inserti128_si256(_mm256_castsi128_si256(MG_NATIVE_TWO_PIECES(at, next)), MG_NATIVE_TWO_PIECES((at) + 2 * (next), next), 1)
#define MG_NATIVE_ANY(mask) _mm256_movemask_ps((__m256)(mask))
#define MG_NATIVE_WIDEN_8(at) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(at)))
#define MG_NATIVE_WIDEN_16(at) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(at)))
#define MG_NATIVE_CUT(x) _mm256_round_pd((__m256d)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_FLOOR(x) _mm256_round_pd((__m256d)(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define MG_NATIVE_CUT_FLOATS(x) _mm256_round_ps((__m256)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MG_NATIVE_DOUBLES(x) _mm256_cvtps_pd((__m128)(x))
#define MG_NATIVE_JOIN(x, y) _mm256_insertf128_ps(_mm256_castps128_ps256((__m128)(x)), (__m128)(y), 1)
#include "mg_tile.h"
