/* Blocks of two words a significand (AVX2): the same text as for one word. */
#define MG_WIDE_BLOCKS
#include "mg_tile_avx2.c"
