/* Where the operands of dot products lie, and their codes brought side by side: [k][lane]. */
#include <string.h>

#include "mg_internal.h"

void mg_select(const mg_program *p, const mg_call *call, int64_t batch, int32_t row, int32_t *rows) {
    const char *nibbles = mg_matrix(call, &call->e, batch) + row * call->e.row;
    for (int32_t s = 0; s < p->k; s++) rows[s] = mg_selected(p->sparsity, nibbles, call->e.column, s);
}

/* What moves from a lane to the next: its row, its column or both (c, d, flags). */
static const struct { int32_t by_row, by_column; } mg_moves[MG_OPERANDS] = {{1, 0}, {0, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 1}};

static const mg_array *mg_array_of(const mg_call *call, int operand) {
    switch (operand) {
    case MG_OPERAND_A: return &call->a;
    case MG_OPERAND_B: return &call->b;
    case MG_OPERAND_C: return &call->c;
    case MG_OPERAND_D: return &call->d;
    case MG_OPERAND_FLAGS: return &call->flags;
    case MG_OPERAND_SCALE_A: return &call->scale_a;
    default: return &call->scale_b;
    }
}

/* Lanes `step` bytes apart. */
static void mg_point_evenly(mg_lanes *lanes, int operand, char *at, int64_t step) {
    lanes->step[operand] = lanes->used == MG_LANES ? step : MG_UNEVEN;
    lanes->at[operand][0] = at;
    if (lanes->used == MG_LANES) return;
    for (int32_t l = 1; l < MG_LANES; l++) lanes->at[operand][l] = at += l < lanes->used ? step : 0;
}

static ptrdiff_t mg_step_of(char *const *at) {
    int even = 1;
    for (int32_t l = 2; l < MG_LANES; l++) even &= at[l] - at[l - 1] == at[1] - at[0];
    return even ? at[1] - at[0] : MG_UNEVEN;
}

void mg_point(const mg_program *p, const mg_call *call, int64_t first, int32_t used, mg_lanes *lanes) {
    const int64_t n = call->n, size = call->m * n;
    lanes->used = used;
    if (size == 1 && call->batch_dims == 1 && !p->sparsity) { /* dot products in a row */
        for (int i = 0; i < MG_OPERANDS; i++) {
            const mg_array *array = mg_array_of(call, i);
            if (array->data) mg_point_evenly(lanes, i, array->data + first * array->batch_stride[0], array->batch_stride[0]);
        }
        return;
    }
    int64_t batch[MG_LANES], row[MG_LANES], column[MG_LANES];
    batch[0] = first / size;
    row[0] = first % size / n;
    column[0] = first % n;
    if (column[0] + used <= n && !p->sparsity) { /* of one row */
        for (int i = 0; i < MG_OPERANDS; i++) {
            const mg_array *array = mg_array_of(call, i);
            char *start = mg_matrix(call, array, batch[0]);
            const int64_t by_column = mg_moves[i].by_column * array->column;
            if (start) mg_point_evenly(lanes, i, start + mg_moves[i].by_row * row[0] * array->row + column[0] * by_column, by_column);
        }
        return;
    }
    for (int32_t l = 1; l < MG_LANES; l++) {
        const int64_t next = column[l - 1] + 1, next_row = row[l - 1] + (next == n);
        const int more = l < used;
        column[l] = !more ? column[l - 1] : next == n ? 0 : next;
        row[l] = !more ? row[l - 1] : next_row == call->m ? 0 : next_row;
        batch[l] = batch[l - 1] + (more && next_row == call->m);
    }
    for (int i = 0; i < MG_OPERANDS; i++) {
        const mg_array *array = mg_array_of(call, i);
        const int64_t by_row = mg_moves[i].by_row * array->row, by_column = mg_moves[i].by_column * array->column;
        char *start = mg_matrix(call, array, batch[0]);
        if (!start) continue;
        for (int32_t l = 0; l < MG_LANES; l++) {
            if (l && batch[l] != batch[l - 1]) start = mg_matrix(call, array, batch[l]);
            lanes->at[i][l] = start + row[l] * by_row + column[l] * by_column;
        }
        lanes->step[i] = mg_step_of(lanes->at[i]);
    }
    for (int32_t l = 0; p->sparsity && l < MG_LANES; l++) {
        int32_t *rows = lanes->selected + l * p->k;
        if (l && row[l] == row[l - 1] && batch[l] == batch[l - 1]) memcpy(rows, rows - p->k, (size_t)p->k * sizeof *rows);
        else mg_select(p, call, batch[l], (int32_t)row[l], rows);
    }
}

#ifndef MG_GENERAL_ONLY
/* Up to 16 bytes as a vector; zeros follow. No byte beyond them is read. */
static void mg_load_bytes(const char *from, ptrdiff_t bytes, void *vector) {
    uint64_t word[2] = {0, 0};
    if (bytes > 8) {
        memcpy(&word[0], from, 8);
        memcpy(&word[1], from + bytes - 8, 8);
        word[1] >>= 8 * (16 - bytes);
    } else if (bytes == 8) {
        memcpy(&word[0], from, 8);
    } else {
        for (ptrdiff_t i = bytes; i-- > 0;) word[0] = word[0] << 8 | (unsigned char)from[i];
    }
    memcpy(vector, word, 16);
}

/* Stages that interleave the first half of some vectors with the second: each moves the upper bit of where an element lies to
 * the lowest place, so that after log2(lanes) stages the lanes of one element lie side by side. */
#ifdef __clang__
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif
#define MG_LIST(...) __VA_ARGS__
#define MG_STAGES(vector, vectors, lanes, low, high)                               \
    _Pragma("GCC unroll 4") for (int stage = 1; stage < lanes; stage *= 2) {       \
        vector y[vectors];                                                         \
        _Pragma("GCC unroll 16") for (int i = 0; i < vectors / 2; i++) {           \
            y[2 * i] = MG_INTERLEAVE(vector, x[i], x[i + vectors / 2], low);       \
            y[2 * i + 1] = MG_INTERLEAVE(vector, x[i], x[i + vectors / 2], high);  \
        }                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < vectors; i++) x[i] = y[i];    \
    }

/* MG_LANES rows that lie in a run, of as many bytes as there are vectors. */
#define MG_SHUFFLE(element, vectors, low, high)                                                                           \
    {                                                                                                                     \
        typedef element vector __attribute__((vector_size(16)));                                                          \
        const ptrdiff_t width = sizeof(element);                                                                          \
        vector x[vectors];                                                                                                \
        memcpy(x, from, sizeof x);                                                                                        \
        MG_STAGES(vector, vectors, MG_LANES, MG_LIST(low), MG_LIST(high))                                                  \
        for (ptrdiff_t i = 0; i < vectors; i++) memcpy(out + i / width * row * width + i % width * 16, &x[i], 16);        \
        return 1;                                                                                                         \
    }

/* Transposes blocks of rows whose elements lie side by side, 16 bytes of as many lanes at a time. */
#define MG_TRANSPOSE(name, element, n, low, high)                                                                        \
    static void name(char *const *from, ptrdiff_t count, ptrdiff_t row, char *out) {                                     \
        typedef element vector __attribute__((vector_size(16)));                                                         \
        const ptrdiff_t width = sizeof(element), whole = count / n * n, some = count - whole;                            \
        vector x[n];                                                                                                     \
        for (ptrdiff_t first = 0; first < MG_LANES; first += n, from += n, out += n * width) {                           \
            for (ptrdiff_t k = 0; k < whole; k += n) {                                                                   \
                _Pragma("GCC unroll 16") for (int l = 0; l < n; l++) memcpy(&x[l], from[l] + k * width, 16);             \
                MG_STAGES(vector, n, n, MG_LIST(low), MG_LIST(high))                                                     \
                _Pragma("GCC unroll 16") for (int i = 0; i < n; i++) memcpy(out + (k + i) * row * width, &x[i], 16);     \
            }                                                                                                            \
            if (!some) continue;                                                                                         \
            for (int l = 0; l < n; l++) mg_load_bytes(from[l] + whole * width, some * width, &x[l]);                     \
            MG_STAGES(vector, n, n, MG_LIST(low), MG_LIST(high))                                                         \
            for (ptrdiff_t i = 0; i < some; i++) memcpy(out + (whole + i) * row * width, &x[i], 16);                     \
        }                                                                                                                \
    }

#define MG_LOW_8 MG_LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define MG_HIGH_8 MG_LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define MG_LOW_16 MG_LIST(0, 8, 1, 9, 2, 10, 3, 11)
#define MG_HIGH_16 MG_LIST(4, 12, 5, 13, 6, 14, 7, 15)
#define MG_LOW_32 MG_LIST(0, 4, 1, 5)
#define MG_HIGH_32 MG_LIST(2, 6, 3, 7)
MG_TRANSPOSE(mg_transpose_1, uint8_t, 16, MG_LOW_8, MG_HIGH_8)
MG_TRANSPOSE(mg_transpose_2, uint16_t, 8, MG_LOW_16, MG_HIGH_16)
MG_TRANSPOSE(mg_transpose_4, uint32_t, 4, MG_LOW_32, MG_HIGH_32)
MG_TRANSPOSE(mg_transpose_8, uint64_t, 2, MG_LIST(0, 2), MG_LIST(1, 3))

/* Whether rows in a run were short enough to be transposed all at once. */
static int mg_shuffle(const char *from, ptrdiff_t count, ptrdiff_t bytes, ptrdiff_t row, char *out) {
    switch (count << 4 | bytes) {
    case 0x21: MG_SHUFFLE(uint8_t, 2, MG_LOW_8, MG_HIGH_8)
    case 0x41: MG_SHUFFLE(uint8_t, 4, MG_LOW_8, MG_HIGH_8)
    case 0x81: MG_SHUFFLE(uint8_t, 8, MG_LOW_8, MG_HIGH_8)
    case 0x22: MG_SHUFFLE(uint16_t, 4, MG_LOW_16, MG_HIGH_16)
    case 0x42: MG_SHUFFLE(uint16_t, 8, MG_LOW_16, MG_HIGH_16)
    case 0x24: MG_SHUFFLE(uint32_t, 8, MG_LOW_32, MG_HIGH_32)
    default: return 0;
    }
}

/* Interleaves pairs of rows: element k of the one, element k of the other. */
typedef uint64_t mg_bytes __attribute__((vector_size(16)));
#define MG_PAIR(type, n, low)                                                                                  \
    for (int32_t i = 0; i < rows; i += 2, data += 2 * row) {                                                   \
        typedef type vector __attribute__((vector_size(16)));                                                  \
        int32_t k = 0;                                                                                         \
        for (; column == sizeof(type) && k + n / 2 <= columns; k += n / 2, out += 16) {                        \
            const mg_bytes x = {mg_load(data + k * column, 64), 0}, y = {mg_load(data + row + k * column, 64), 0}; \
            const vector z = MG_INTERLEAVE(vector, (vector)x, (vector)y, low);                                 \
            memcpy(out, &z, 16);                                                                               \
        }                                                                                                      \
        for (; k < columns; k++, out += 2 * sizeof(type)) {                                                    \
            memcpy(out, data + k * column, sizeof(type));                                                      \
            memcpy(out + sizeof(type), data + row + k * column, sizeof(type));                                 \
        }                                                                                                      \
    }

void mg_pair_rows(const char *data, int64_t row, int64_t column, int32_t rows, int32_t columns, int32_t width, char *out) {
    switch (width) {
    case 1: MG_PAIR(uint8_t, 16, MG_LOW_8) break;
    case 2: MG_PAIR(uint16_t, 8, MG_LOW_16) break;
    default: MG_PAIR(uint32_t, 4, MG_LOW_32)
    }
}

/* Any layout: elements `step` bytes apart, or in the rows given of each lane. */
#define MG_COLLECT(type)                                                                                              \
    for (int32_t l = 0; l < MG_LANES; l++)                                                                            \
        for (ptrdiff_t k = 0; k < count; k++)                                                                         \
            memcpy(out + (k * row + l) * (ptrdiff_t)sizeof(type), from[l] + (rows ? rows[l * count + k] : k) * step, sizeof(type));

/* Lanes side by side. */
#define MG_ROWS_OF(size) \
    for (ptrdiff_t k = 0; k < count; k++) memcpy(out + k * row * (size), from[0] + k * step, MG_LANES * (size));

/* Lanes of the block after: what lies in short steps is asked for early, because a block's way is long and memory far. */
static void mg_fetch_ahead(const char *at, ptrdiff_t step) {
    const uintptr_t next = (uintptr_t)at + (uintptr_t)step * MG_MOST_BLOCK_LANES;
    for (ptrdiff_t i = 0; step <= 64 && i < step * MG_LANES; i += 64) __builtin_prefetch((const char *)next + i);
}

void mg_gather(const mg_program *p, const mg_call *call, const mg_lanes *lanes, int operand, ptrdiff_t row, char *out) {
    const mg_format *const formats[MG_OPERANDS] = {&p->a, &p->b, &p->c, &p->d, NULL, &p->scale_a, &p->scale_b};
    const mg_array *array = mg_array_of(call, operand);
    char *even[MG_LANES], *const *from = lanes->at[operand];
    const ptrdiff_t width = formats[operand]->storage / 8;
    const ptrdiff_t count = operand == MG_OPERAND_C || operand == MG_OPERAND_D ? 1 : operand < MG_OPERAND_C ? p->k : p->k / p->scale_block;
    const int64_t step = mg_moves[operand].by_row ? array->column : array->row;
    const int32_t *rows = p->sparsity && operand == MG_OPERAND_B ? lanes->selected : NULL;
    const int packed = step == width && !rows;
    if (lanes->step[operand] != MG_UNEVEN) mg_fetch_ahead(from[0], lanes->step[operand]);
    if ((count == 1 || !packed) && !rows && lanes->step[operand] == width) {
        switch (width) {
        case 1: MG_ROWS_OF(1) return;
        case 2: MG_ROWS_OF(2) return;
        case 4: MG_ROWS_OF(4) return;
        default: MG_ROWS_OF(8) return;
        }
    }
    if (packed && lanes->step[operand] == count * width && mg_shuffle(from[0], count, width, row, out)) return;
    if (lanes->step[operand] != MG_UNEVEN) {
        for (int32_t l = 0; l < MG_LANES; l++) even[l] = from[0] + l * lanes->step[operand];
        from = even;
    }
    if (packed) {
        switch (width) {
        case 1: mg_transpose_1(from, count, row, out); return;
        case 2: mg_transpose_2(from, count, row, out); return;
        case 4: mg_transpose_4(from, count, row, out); return;
        default: mg_transpose_8(from, count, row, out); return;
        }
    }
    switch (width) {
    case 1: MG_COLLECT(uint8_t) break;
    case 2: MG_COLLECT(uint16_t) break;
    case 4: MG_COLLECT(uint32_t) break;
    default: MG_COLLECT(uint64_t)
    }
}

void mg_scatter(const mg_program *p, const mg_lanes *lanes, const char *codes) {
    const ptrdiff_t width = p->d.storage / 8;
    if (lanes->step[MG_OPERAND_D] == width) memcpy(lanes->at[MG_OPERAND_D][0], codes, (size_t)(MG_LANES * width));
    else
        for (int32_t l = 0; l < lanes->used; l++) mg_store(mg_lane_at(lanes, MG_OPERAND_D, l), p->d.storage, mg_load(codes + l * width, p->d.storage));
}
#endif
