/* Rows of codes, a lane each, to [k][lane], in vectors of 16 bytes, which every machine has.
 *
 * A vector has n codes of a row. n of them become n vectors in stages that interleave the first half of the vectors
 * with the second: each moves the upper bit of where a code lies to the lowest place, so that after log2(n) stages the
 * lanes of one k lie side by side.
 */
#ifdef __clang__
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif
#define MG_PLACES_lo_8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MG_PLACES_hi_8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define MG_PLACES_lo_16 0, 8, 1, 9, 2, 10, 3, 11
#define MG_PLACES_hi_16 4, 12, 5, 13, 6, 14, 7, 15
#define MG_PLACES_lo_32 0, 4, 1, 5
#define MG_PLACES_hi_32 2, 6, 3, 7
#define MG_PLACES_lo_64 0, 2
#define MG_PLACES_hi_64 1, 3

/* The codes of the lower or upper (lo, hi) halves of two vectors by turns. */
#define MG_UNPACK(half, bits, x, y) MG_INTERLEAVE(vector, x, y, MG_PLACES_##half##_##bits)

#define MG_STAGES(vectors, lanes, bits)                                            \
    _Pragma("GCC unroll 4") for (int stage = 1; stage < lanes; stage *= 2) {       \
        vector y[vectors];                                                         \
        _Pragma("GCC unroll 16") for (int i = 0; i < vectors / 2; i++) {           \
            y[2 * i] = MG_UNPACK(lo, bits, x[i], x[i + vectors / 2]);              \
            y[2 * i + 1] = MG_UNPACK(hi, bits, x[i], x[i + vectors / 2]);          \
        }                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < vectors; i++) x[i] = y[i];    \
    }

/* Where the row of a lane begins. */
MG_INLINE const char *mg_row(const mg_rows *rows, const int even, ptrdiff_t lane) {
    return even ? rows->first + lane * rows->step : rows->at[lane];
}

/* Up to 16 bytes; zeros follow. No byte beyond them is read. */
MG_INLINE void mg_load_end(const char *from, ptrdiff_t bytes, void *piece) {
    uint64_t word[2] = {0, 0};
    if (bytes >= 8) memcpy(&word[0], from, 8);
    if (bytes > 8) {
        memcpy(&word[1], from + bytes - 8, 8);
        word[1] >>= 8 * (16 - bytes);
    }
    for (ptrdiff_t i = bytes < 8 ? bytes : 0; i-- > 0;) word[0] = word[0] << 8 | (unsigned char)from[i];
    memcpy(piece, word, 16);
}

/* `lanes`: a multiple of the lanes of a vector. */
#define MG_TRANSPOSE(bits, n)                                                                                      \
    MG_INLINE void mg_transpose_##bits(                                                                            \
        const mg_rows *rows, const int even, ptrdiff_t count, ptrdiff_t lanes, char *out) {                        \
        typedef uint##bits##_t vector __attribute__((vector_size(16)));                                            \
        const ptrdiff_t width = bits / 8, whole = count / n * n, some = count - whole;                             \
        vector x[n];                                                                                               \
        for (ptrdiff_t first = 0; first < lanes; first += n, out += sizeof(vector)) {                              \
            for (ptrdiff_t k = 0; k < whole; k += n) {                                                             \
                _Pragma("GCC unroll 16") for (int l = 0; l < n; l++)                                               \
                    memcpy(&x[l], mg_row(rows, even, first + l) + k * width, sizeof(vector));                      \
                MG_STAGES(n, n, bits)                                                                              \
                _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)                                               \
                    memcpy(out + (k + i) * lanes * width, &x[i], sizeof(vector));                                  \
            }                                                                                                      \
            if (!some) continue;                                                                                   \
            for (int l = 0; l < n; l++)                                                                            \
                mg_load_end(mg_row(rows, even, first + l) + whole * width, some * width, &x[l]);                   \
            MG_STAGES(n, n, bits)                                                                                  \
            for (ptrdiff_t i = 0; i < some; i++) memcpy(out + (whole + i) * lanes * width, &x[i], sizeof(vector)); \
        }                                                                                                          \
    }
MG_TRANSPOSE(8, 16)
MG_TRANSPOSE(16, 8)
MG_TRANSPOSE(32, 4)
MG_TRANSPOSE(64, 2)

static void mg_transpose(const mg_rows *given, ptrdiff_t count, ptrdiff_t width, ptrdiff_t lanes, char *out) {
    const mg_rows rows = *given; /* which no store can change */
    const int even = rows.step != MG_UNEVEN;
    switch (width * 2 + even) {
    case 2: mg_transpose_8(&rows, 0, count, lanes, out); return;
    case 3: mg_transpose_8(&rows, 1, count, lanes, out); return;
    case 4: mg_transpose_16(&rows, 0, count, lanes, out); return;
    case 5: mg_transpose_16(&rows, 1, count, lanes, out); return;
    case 8: mg_transpose_32(&rows, 0, count, lanes, out); return;
    case 9: mg_transpose_32(&rows, 1, count, lanes, out); return;
    case 16: mg_transpose_64(&rows, 0, count, lanes, out); return;
    default: mg_transpose_64(&rows, 1, count, lanes, out);
    }
}
