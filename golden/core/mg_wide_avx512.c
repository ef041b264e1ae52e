/* Blocks of two words a significand (AVX512): the same text as for one word. */
#define MG_WIDE_BLOCKS
#include "mg_tile_avx512.c"
