/* Vectors of this translation unit, and what its processor does with them in one instruction.
 *
 * The only file with intrinsics. Whoever includes it has defined MG_V, the lanes of 32 bits of a vector, and, on
 * x86-64, MG_AVX512 or MG_AVX2; a processor with neither has vectors of the compiler (GNU C), and SSE2 where that is
 * there. Each function says in plain C what it does, after the comma of MG_X86 or behind #else.
 */
#ifndef MG_SIMD_H
#define MG_SIMD_H

#include "mg_internal.h"

#define MG_WORDS (MG_V / 2) /* lanes of 64 bits */

/* Vectors of equal size, except the ones named by a part of it. Vectors of the caller's codes may lie anywhere. */
typedef int32_t mg_vi __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));
typedef uint32_t mg_vu __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));
typedef float mg_vf __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));
typedef int64_t mg_vp __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));   /* pairs of lanes */
typedef int16_t mg_many __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));
typedef uint16_t mg_wraps __attribute__((vector_size(4 * MG_V), aligned(4), may_alias)); /* sums modulo 2^16 */
typedef int8_t mg_fours __attribute__((vector_size(4 * MG_V), aligned(4), may_alias));
typedef uint8_t mg_bytes __attribute__((vector_size(4 * MG_V), aligned(1), may_alias));
typedef uint16_t mg_vh
    __attribute__((vector_size(2 * MG_V), aligned(2), may_alias)); /* half a vector: 16 bits a lane */
typedef int32_t mg_half __attribute__((vector_size(2 * MG_V), aligned(4), may_alias));
typedef float mg_vs __attribute__((vector_size(2 * MG_V), aligned(4), may_alias));
typedef uint8_t mg_short __attribute__((vector_size(2 * MG_V), aligned(1), may_alias));
typedef uint8_t mg_vb __attribute__((vector_size(MG_V), aligned(1), may_alias)); /* a quarter: a byte a lane */
typedef double mg_df __attribute__((vector_size(8 * MG_WORDS)));
typedef int64_t mg_dw __attribute__((vector_size(8 * MG_WORDS)));
/* The same in memory, of blocks (mg_block.h). */
typedef int64_t mg_w __attribute__((vector_size(8 * MG_WORDS), aligned(8), may_alias));
typedef uint64_t mg_u __attribute__((vector_size(8 * MG_WORDS), aligned(8), may_alias));
typedef double mg_f __attribute__((vector_size(8 * MG_WORDS), aligned(8), may_alias));
typedef uint16_t mg_half_codes __attribute__((vector_size(2 * MG_WORDS), aligned(1), may_alias));
typedef uint32_t mg_single_codes __attribute__((vector_size(4 * MG_WORDS), aligned(1), may_alias));
typedef float mg_single __attribute__((vector_size(4 * MG_WORDS), may_alias));
typedef uint16_t mg_many_halves __attribute__((vector_size(8 * MG_WORDS), aligned(1), may_alias));

#define MG_PICK(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))
#define MG_SPLAT(x) ((mg_vi){0} + (x))

#if defined(MG_AVX512) || defined(MG_AVX2)
#include <immintrin.h>
#define MG_X86(native, plain) native
#define MG_HAS_HALVES 1 /* it converts FP16, subnormal numbers included */
#else
#define MG_X86(native, plain) plain
#define MG_HAS_HALVES 0
#endif

/* Intrinsics of whole vectors and of half a vector, their registers, and codes from memory: as many bytes as a half or
 * a quarter of a vector has. */
#if MG_V == 16
#define MG_WHOLE(name) _mm512_##name
#define MG_PART(name) _mm256_##name
#define MG_LOAD_HALF(at) _mm256_loadu_si256((const __m256i *)(at))
#define MG_LOAD_QUARTER(at) _mm_loadu_si128((const __m128i *)(at))
#define MG_TO_WHOLE(x, type, how) _mm512_roundscale_##type(x, how | _MM_FROUND_NO_EXC)
typedef __m512i mg_ri;
typedef __m512 mg_rf;
typedef __m512d mg_rd;
typedef __m256i mg_half_ri;
typedef __m256 mg_half_rf;
#elif MG_V == 8
#define MG_WHOLE(name) _mm256_##name
#define MG_PART(name) _mm_##name
#define MG_LOAD_HALF(at) _mm_loadu_si128((const __m128i *)(at))
#define MG_LOAD_QUARTER(at) _mm_loadl_epi64((const __m128i *)(at))
#define MG_TO_WHOLE(x, type, how) _mm256_round_##type(x, how | _MM_FROUND_NO_EXC)
typedef __m256i mg_ri;
typedef __m256 mg_rf;
typedef __m256d mg_rd;
typedef __m128i mg_half_ri;
typedef __m128 mg_half_rf;
#elif defined(__SSE2__)
#include <emmintrin.h>
/* _mm_loadu_si32 does not come with every compiler, or is wrong there (GCC before 11.3). */
static inline __m128i mg_four_bytes(const void *at) {
    int word;
    memcpy(&word, at, sizeof word);
    return _mm_cvtsi32_si128(word);
}
#endif

/* Lanes of 32 bits ------------------------------------------------------------------------------------------------- */

MG_INLINE mg_vi mg_max(mg_vi x, mg_vi y) {
    return MG_X86((mg_vi)MG_WHOLE(max_epi32)((mg_ri)x, (mg_ri)y), MG_PICK((mg_vi)(x > y), x, y));
}

MG_INLINE mg_bytes mg_max_bytes(mg_bytes x, mg_bytes y) {
    return MG_X86((mg_bytes)MG_WHOLE(max_epu8)((mg_ri)x, (mg_ri)y), MG_PICK((mg_bytes)(x > y), x, y));
}

/* The products of the two 16-bit integers of a lane, added. */
MG_INLINE mg_vi mg_dot_pairs(mg_vi x, mg_vi y) {
#if MG_V == 4 && defined(__SSE2__)
    return (mg_vi)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
    return MG_X86(
        (mg_vi)MG_WHOLE(madd_epi16)((mg_ri)x, (mg_ri)y), (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16));
#endif
}

/* The products of the four bytes of a lane, x's without a sign, added in pairs, which 16 bits hold. */
MG_INLINE mg_many mg_dot_bytes(mg_vi x, mg_vi y) {
    return MG_X86((mg_many)MG_WHOLE(maddubs_epi16)((mg_ri)x, (mg_ri)y),
                  (mg_many)(x & 0xff00ff) * ((mg_many)y << 8 >> 8) + (mg_many)(x >> 8 & 0xff00ff) * ((mg_many)y >> 8));
}

/* sum + the products of four bytes, x's without a sign. Processors that have AVX512 need not have it
 * (mg_plan_integers), and so the compiler's flags do not name it. */
#ifdef MG_AVX512
#define MG_HAS_FOURS 1
MG_INLINE mg_vi mg_add_fours(mg_vi sum, mg_vi x, mg_vi y) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
}
#else
#define MG_HAS_FOURS 0
MG_INLINE mg_vi mg_add_fours(mg_vi sum, mg_vi x, mg_vi y) { return sum + mg_dot_pairs(x, y); } /* never called */
#endif

/* Whether some lane has its sign bit set, as a mask has. */
MG_INLINE int mg_any(mg_vi mask) {
#if MG_V == 16
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif MG_V == 8
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int32_t any = 0;
    for (int l = 0; l < MG_V; l++) any |= mask[l];
    return any < 0;
#endif
}

/* Codes of 8 or 16 bits at any address, a lane each; GCC widens them an element at a time. */
MG_INLINE mg_vi mg_load_words_8(const char *at) {
#if MG_V == 4 && defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    return (mg_vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(mg_four_bytes(at), zero), zero);
#else
    return MG_X86(
        (mg_vi)MG_WHOLE(cvtepu8_epi32)(MG_LOAD_QUARTER(at)), __builtin_convertvector(*(const mg_vb *)at, mg_vi));
#endif
}

MG_INLINE mg_vi mg_load_words_16(const char *at) {
#if MG_V == 4 && defined(__SSE2__)
    return (mg_vi)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)at), _mm_setzero_si128());
#elif MG_V == 4
    mg_vh halves;
    return memcpy(&halves, at, sizeof halves), __builtin_convertvector(halves, mg_vi);
#else
    return (mg_vi)MG_WHOLE(cvtepu16_epi32)(MG_LOAD_HALF(at));
#endif
}

/* An integer as a float, cut to 24 bits: the conversion that rounds toward zero, or the one to the nearest of a
 * magnitude without the bit below the last one that is kept, which it would round by. */
MG_INLINE mg_vf mg_truncated(mg_vi x) {
#if MG_V == 16
    return (mg_vf)_mm512_cvt_roundepi32_ps((__m512i)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
    const mg_vi magnitude = mg_max(x, (mg_vi)(0 - (mg_vu)x)), kept = magnitude & (mg_vi)~((mg_vu)magnitude >> 24);
    return (mg_vf)((mg_vi)__builtin_convertvector(kept, mg_vf) | (x & INT32_MIN));
#endif
}

/* A float cut to an integer, which it is from 2^24 on. */
MG_INLINE mg_vf mg_whole_float(mg_vf x) {
#if MG_V > 4
    return (mg_vf)MG_TO_WHOLE((mg_rf)x, ps, _MM_FROUND_TO_ZERO);
#else
    const mg_vi near = (mg_vi)(((mg_vi)x & INT32_MAX) < 0x4b800000);
    const mg_vi whole = __builtin_convertvector((mg_vf)(near & (mg_vi)x), mg_vi);
    return (mg_vf)MG_PICK(near, (mg_vi)__builtin_convertvector(whole, mg_vf), (mg_vi)x);
#endif
}

/* Bytes that others choose: byte l of a piece of 16 is the one of that piece that `places` names. */
MG_INLINE mg_fours mg_shuffle_bytes(mg_fours x, mg_fours places) {
#if MG_V > 4
    return (mg_fours)MG_WHOLE(shuffle_epi8)((mg_ri)x, (mg_ri)places);
#else
    for (int l = 0; l < 4 * MG_V; l++) places[l] = x[places[l]];
    return places;
#endif
}

/* 16 bytes in every piece of a vector. */
MG_INLINE mg_fours mg_spread(const void *at) {
#if MG_V == 16
    return (mg_fours)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)at));
#elif MG_V == 8
    return (mg_fours)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)at));
#else
    mg_fours x;
    return memcpy(&x, at, sizeof x), x;
#endif
}

#if MG_V > 4
/* Eight bytes as often as a vector has room. */
MG_INLINE mg_bytes mg_spread_eight(const void *at) {
    return (mg_bytes)MG_WHOLE(broadcastq_epi64)(_mm_loadl_epi64((const __m128i *)at));
}

/* FP16 to FP32. */
MG_INLINE mg_vf mg_floats_of_halves(const void *at) { return (mg_vf)MG_WHOLE(cvtph_ps)(MG_LOAD_HALF(at)); }

/* MG_V bytes, and twice as many, to 16 bits with their signs. */
MG_INLINE mg_vh mg_signed_bytes(const char *at) { return (mg_vh)MG_PART(cvtepi8_epi16)(MG_LOAD_QUARTER(at)); }
#endif

#if MG_V == 8
/* Four rows of eight bytes, as words of a column each. */
MG_INLINE mg_vi mg_four_rows(const char *at) {
    const __m256i pairs = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i rows = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)at), pairs);
    return (mg_vi)_mm256_shuffle_epi8(rows, _mm256_broadcastsi128_si256(bytes));
}
#endif

/* Pieces of 16 bytes of four rows that are `next` apart; in shorter vectors eight bytes of each, of two rows by
 * turns. */
#if MG_V == 16
MG_INLINE __m512i mg_four_pieces_at(const char *x, const char *y, const char *z, const char *w) {
    const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(MG_LOAD_QUARTER(x)), MG_LOAD_QUARTER(y), 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(two, MG_LOAD_QUARTER(z), 2), MG_LOAD_QUARTER(w), 3);
}
MG_INLINE mg_bytes mg_four_pieces(const char *at, ptrdiff_t next) {
    return (mg_bytes)mg_four_pieces_at(at, at + next, at + 2 * next, at + 3 * next);
}
#elif MG_V == 8
MG_INLINE __m128i mg_two_pieces(const char *at, ptrdiff_t next) {
    return _mm_unpacklo_epi8(MG_LOAD_QUARTER(at), MG_LOAD_QUARTER(at + next));
}
MG_INLINE mg_bytes mg_four_pieces(const char *at, ptrdiff_t next) {
    const __m256i two = _mm256_castsi128_si256(mg_two_pieces(at, next));
    return (mg_bytes)_mm256_inserti128_si256(two, mg_two_pieces(at + 2 * next, next), 1);
}
#endif

/* Half vectors as the lanes with even and with odd numbers of one, and back. */
#if MG_V == 16
MG_INLINE mg_vi mg_zip(mg_half x, mg_half y) {
    const __m512i turns = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return (mg_vi)_mm512_permutex2var_epi32(
        _mm512_castsi256_si512((__m256i)x), turns, _mm512_castsi256_si512((__m256i)y));
}
MG_INLINE mg_vi mg_unzip(mg_vi x) {
    const __m512i places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return (mg_vi)_mm512_permutexvar_epi32(places, (__m512i)x);
}
/* Lanes x ^ 2 and x ^ 4. */
MG_INLINE mg_vi mg_next_two(mg_vi x) { return (mg_vi)_mm512_shuffle_epi32((__m512i)x, _MM_PERM_BADC); }
MG_INLINE mg_vi mg_next_four(mg_vi x) {
    return (mg_vi)_mm512_shuffle_i32x4((__m512i)x, (__m512i)x, _MM_SHUFFLE(2, 3, 0, 1));
}
MG_INLINE mg_half mg_load_half(const char *at, int32_t storage) {
    if (storage == 32) return (mg_half)MG_LOAD_HALF(at);
    return (mg_half)_mm256_cvtepu16_epi32(MG_LOAD_QUARTER(at));
}
MG_INLINE void mg_store_half(char *at, int32_t storage, mg_half codes) {
    if (storage == 32) _mm256_storeu_si256((__m256i *)at, (__m256i)codes);
    else _mm_storeu_si128((__m128i *)at, _mm256_cvtepi32_epi16((__m256i)codes));
}
#endif

/* Doubles ---------------------------------------------------------------------------------------------------------- */

/* Half a vector of floats; GCC does this in more steps. */
MG_INLINE mg_df mg_widened(mg_vs x) {
    return MG_X86((mg_df)MG_WHOLE(cvtps_pd)((mg_half_rf)x), __builtin_convertvector(x, mg_df));
}

MG_INLINE mg_vf mg_join(mg_vs x, mg_vs y) {
#if MG_V == 16
    return (mg_vf)_mm512_insertf32x8(_mm512_castps256_ps512((__m256)x), (__m256)y, 1);
#elif MG_V == 8
    return (mg_vf)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)x), (__m128)y, 1);
#else
    const mg_vs both[2] = {x, y};
    mg_vf all;
    return memcpy(&all, both, sizeof all), all;
#endif
}

MG_INLINE mg_f mg_larger(mg_f x, mg_f y) {
    return MG_X86((mg_f)MG_WHOLE(max_pd)((mg_rd)x, (mg_rd)y), (mg_f)MG_PICK((mg_w)(x > y), (mg_w)x, (mg_w)y));
}

/* A number below 2^52 cut to an integer. */
MG_INLINE mg_df mg_whole(mg_df x) {
#if MG_V > 4
    return (mg_df)MG_TO_WHOLE((mg_rd)x, pd, _MM_FROUND_TO_ZERO);
#else
    const mg_dw sign = (mg_dw)x & INT64_MIN;
    const mg_df magnitude = (mg_df)((mg_dw)x ^ sign), nearest = magnitude + 0x1p52 - 0x1p52, one = (mg_df){0} + 1;
    return (mg_df)((mg_dw)(nearest - (mg_df)((mg_dw)(nearest > magnitude) & (mg_dw)one)) | sign);
#endif
}

/* The same rounded down. */
MG_INLINE mg_df mg_floor(mg_df x) {
#if MG_V > 4
    return (mg_df)MG_TO_WHOLE((mg_rd)x, pd, _MM_FROUND_TO_NEG_INF);
#else
    const mg_df whole = mg_whole(x), one = (mg_df){0} + 1;
    return whole - (mg_df)((mg_dw)(whole > x) & (mg_dw)one);
#endif
}

/* Sums of floats that are below 2^50 each, cut to integers: words, where the machine makes them of floats, else
 * doubles; and such a sum as floats, cut to 24 bits. */
#if MG_V == 16
typedef mg_dw mg_wholes;
MG_INLINE void mg_add_wholes(mg_wholes *sum, mg_vf x) {
    mg_vs part[2];
    memcpy(part, &x, sizeof x);
    for (int h = 0; h < 2; h++) /* modulo 2^64, where a NaN is no integer */
        sum[h] = (mg_dw)((mg_u)sum[h] + (mg_u)_mm512_cvttps_epi64((__m256)part[h]));
}
MG_INLINE mg_vf mg_cut_wholes(const mg_wholes *sum) {
    const __m256 low = _mm512_cvt_roundepi64_ps((__m512i)sum[0], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256 high = _mm512_cvt_roundepi64_ps((__m512i)sum[1], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    return mg_join((mg_vs)low, (mg_vs)high);
}
#else
typedef mg_df mg_wholes;
MG_INLINE void mg_add_wholes(mg_wholes *sum, mg_vf x) {
    const mg_vf whole = mg_whole_float(x);
    mg_vs part[2];
    memcpy(part, &whole, sizeof whole);
    for (int h = 0; h < 2; h++) sum[h] += mg_widened(part[h]);
}
MG_INLINE mg_vf mg_cut_wholes(const mg_wholes *sum) {
    mg_vs cut[2];
    for (int h = 0; h < 2; h++)
        cut[h] = __builtin_convertvector((mg_df)((mg_dw)sum[h] & -(INT64_C(1) << (52 - 23))), mg_vs);
    return mg_join(cut[0], cut[1]);
}
#endif

/* Words of 64 bits ------------------------------------------------------------------------------------------------- */

MG_INLINE int mg_any_word(mg_w mask) {
#if MG_V == 16
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif MG_V == 8
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    int64_t any = 0;
    for (int w = 0; w < MG_WORDS; w++) any |= mask[w];
    return any != 0;
#endif
}

/* Place of the leading one of 64 bits without a sign, -1 of zero. */
MG_INLINE mg_w mg_leading(mg_w x) {
#if MG_V == 16
    return 63 - (mg_w)_mm512_lzcnt_epi64((__m512i)x);
#else /* a double of x & ~(x / 2), which rounding cannot carry upward */
    const mg_u y = (mg_u)x & ~((mg_u)x >> 1), high = y >> 32 | UINT64_C(0x4530000000000000);
    const mg_u low = (y & 0xffffffff) | UINT64_C(0x4330000000000000);
    const mg_f sum = ((mg_f)high - 19342813118337666422669312.0) + (mg_f)low; /* 2^84 + 2^52 */
    return ((mg_w)((mg_u)sum >> 52) - 1023) | (mg_w)(x == 0);
#endif
}

/* The product of the low halves of words. */
MG_INLINE mg_u mg_times_halves(mg_u x, mg_u y) {
    return MG_X86((mg_u)MG_WHOLE(mul_epu32)((mg_ri)x, (mg_ri)y), (x & 0xffffffff) * (y & 0xffffffff));
}

/* Codes side by side in their storage, of 16 or 32 bits, or more, and back; GCC does this in many steps. */
MG_INLINE mg_w mg_wide_16(const char *at) {
    return MG_X86((mg_w)MG_WHOLE(cvtepu16_epi64)(MG_LOAD_QUARTER(at)),
                  __builtin_convertvector(*(const mg_half_codes *)at, mg_w));
}

MG_INLINE mg_w mg_wide_32(mg_single_codes codes) {
    return MG_X86((mg_w)MG_WHOLE(cvtepu32_epi64)((mg_half_ri)codes), (mg_w)__builtin_convertvector(codes, mg_u));
}

MG_INLINE mg_single_codes mg_narrow_32(mg_w codes) {
#if MG_V == 16
    return (mg_single_codes)_mm512_cvtepi64_epi32((__m512i)codes);
#else
    return __builtin_convertvector((mg_u)codes, mg_single_codes);
#endif
}

MG_INLINE mg_half_codes mg_narrow_16(mg_w codes) {
#if MG_V == 16
    return (mg_half_codes)_mm512_cvtepi64_epi16((__m512i)codes);
#else
    return __builtin_convertvector((mg_u)codes, mg_half_codes);
#endif
}

/* Codes of 16 bits in 32. */
MG_INLINE mg_single_codes mg_wide_codes(const char *at) {
    return MG_X86((mg_single_codes)MG_PART(cvtepu16_epi32)(MG_LOAD_QUARTER(at)),
                  __builtin_convertvector(*(const mg_half_codes *)at, mg_single_codes));
}

#if MG_V > 4
/* FP16 to doubles; bytes to 16 bits, with their signs or without. */
MG_INLINE mg_f mg_doubles_of_halves(const char *at) {
    return (mg_f)MG_WHOLE(cvtps_pd)(MG_PART(cvtph_ps)(MG_LOAD_QUARTER(at)));
}
MG_INLINE mg_many_halves mg_wide_signed_bytes(const char *at) {
    return (mg_many_halves)MG_WHOLE(cvtepi8_epi16)(MG_LOAD_HALF(at));
}
MG_INLINE mg_many_halves mg_wide_bytes(const char *at) {
    return (mg_many_halves)MG_WHOLE(cvtepu8_epi16)(MG_LOAD_HALF(at));
}
/* x * y + z of FP32, rounded once. */
MG_INLINE mg_vf mg_fused(mg_vf x, mg_vf y, mg_vf z) { return (mg_vf)MG_WHOLE(fmadd_ps)((mg_rf)x, (mg_rf)y, (mg_rf)z); }
#endif

#endif
