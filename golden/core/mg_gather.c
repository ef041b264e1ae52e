/* Where the operands of dot products lie, and their codes brought side by side: [k][lane]. */
#include <string.h>

#include "mg_internal.h"

static int64_t mg_offset(const mg_call *call, const mg_array *array, int64_t batch) {
    if (call->batch_dims == 1) return batch * array->batch_stride[0];
    int64_t offset = 0;
    for (int32_t d = call->batch_dims - 1; d >= 0; d--) {
        offset += batch % call->batch_shape[d] * array->batch_stride[d];
        batch /= call->batch_shape[d];
    }
    return offset;
}

char *mg_matrix(const mg_call *call, const mg_array *array, int64_t batch) {
    return array->data ? array->data + mg_offset(call, array, batch) : NULL;
}

void mg_select(const mg_program *p, const mg_call *call, int64_t batch, int32_t row, int32_t *rows) {
    const char *nibbles = mg_matrix(call, &call->e, batch) + row * call->e.row;
    for (int32_t s = 0; s < p->k; s++) rows[s] = mg_selected(p->sparsity, nibbles, call->e.column, s);
}

/* What moves from a lane to the next: its row, its column or both (c, d, flags). */
static const struct { int32_t by_row, by_column; } mg_moves[MG_OPERANDS] = {{1, 0}, {0, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 1}};

static const mg_array *mg_array_of(const mg_call *call, int operand) {
    const mg_array *const arrays[MG_OPERANDS] = {&call->a, &call->b, &call->c, &call->d, &call->flags, &call->scale_a, &call->scale_b};
    return arrays[operand];
}

void mg_point(const mg_program *p, const mg_call *call, int64_t first, int32_t used, mg_lanes *lanes) {
    const int64_t n = call->n, size = call->m * n;
    lanes->used = used;
    if (size == 1 && call->batch_dims == 1 && !p->sparsity) { /* dot products in a row */
        for (int i = 0; i < MG_OPERANDS; i++) {
            const mg_array *array = mg_array_of(call, i);
            char *start = array->data;
            for (int32_t l = 0; l < MG_LANES && start; l++) lanes->at[i][l] = start + (first + (l < used ? l : used - 1)) * array->batch_stride[0];
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
            if (!start) continue;
            const int64_t by_column = mg_moves[i].by_column * array->column;
            start += mg_moves[i].by_row * row[0] * array->row + column[0] * by_column;
            for (int32_t l = 0; l < MG_LANES; l++) lanes->at[i][l] = start + (l < used ? l : used - 1) * by_column;
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
    }
    for (int32_t l = 0; p->sparsity && l < MG_LANES; l++) {
        int32_t *rows = lanes->selected + l * p->k;
        if (l && row[l] == row[l - 1] && batch[l] == batch[l - 1]) memcpy(rows, rows - p->k, (size_t)p->k * sizeof *rows);
        else mg_select(p, call, batch[l], (int32_t)row[l], rows);
    }
}

#ifndef MG_GENERAL_ONLY
/* Transposes blocks of rows whose elements lie side by side, 16 bytes of as many lanes at a time: a stage interleaves the
 * first half of the vectors with the second, and after log2(lanes) stages each holds one element of every lane. Returns how
 * many elements of each lane are done. */
#ifdef __clang__
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define MG_INTERLEAVE(type, x, y, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif
#define MG_LIST(...) __VA_ARGS__
#define MG_TRANSPOSE(name, element, n, low, high)                                                        \
    static ptrdiff_t name(char *const *from, ptrdiff_t count, char *out) {                               \
        typedef element vector __attribute__((vector_size(16)));                                         \
        const ptrdiff_t done = count / n * n, width = sizeof(element);                                   \
        for (ptrdiff_t first = 0; first < MG_LANES; first += n)                                          \
            for (ptrdiff_t k = 0; k < done; k += n) {                                                    \
                vector x[n], y[n];                                                                       \
                _Pragma("GCC unroll 16") for (int l = 0; l < n; l++) memcpy(&x[l], from[first + l] + k * width, 16); \
                _Pragma("GCC unroll 4") for (int stage = 1; stage < n; stage *= 2) {                     \
                    _Pragma("GCC unroll 16") for (int i = 0; i < n / 2; i++) {                           \
                        y[2 * i] = MG_INTERLEAVE(vector, x[i], x[i + n / 2], low);                       \
                        y[2 * i + 1] = MG_INTERLEAVE(vector, x[i], x[i + n / 2], high);                  \
                    }                                                                                    \
                    _Pragma("GCC unroll 16") for (int i = 0; i < n; i++) x[i] = y[i];                    \
                }                                                                                        \
                _Pragma("GCC unroll 16") for (int i = 0; i < n; i++) memcpy(out + ((k + i) * MG_LANES + first) * width, &x[i], 16); \
            }                                                                                            \
        return done;                                                                                     \
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

/* Interleaves pairs of rows: element k of the one, element k of the other. */
#define MG_PAIR(type, n, low, high)                                                                            \
    for (int32_t i = 0; i < rows; i += 2, data += 2 * row) {                                                   \
        typedef type vector __attribute__((vector_size(16)));                                                  \
        int32_t k = 0;                                                                                         \
        for (; column == sizeof(type) && k + n <= columns; k += n, out += 32) {                                \
            vector x, y, z;                                                                                    \
            memcpy(&x, data + k * column, 16);                                                                 \
            memcpy(&y, data + row + k * column, 16);                                                           \
            z = MG_INTERLEAVE(vector, x, y, low);                                                              \
            memcpy(out, &z, 16);                                                                               \
            z = MG_INTERLEAVE(vector, x, y, high);                                                             \
            memcpy(out + 16, &z, 16);                                                                          \
        }                                                                                                      \
        for (; k < columns; k++, out += 2 * sizeof(type)) {                                                    \
            memcpy(out, data + k * column, sizeof(type));                                                      \
            memcpy(out + sizeof(type), data + row + k * column, sizeof(type));                                 \
        }                                                                                                      \
    }

void mg_pair_rows(const char *data, int64_t row, int64_t column, int32_t rows, int32_t columns, int32_t width, char *out) {
    switch (width) {
    case 1: MG_PAIR(uint8_t, 16, MG_LOW_8, MG_HIGH_8) break;
    case 2: MG_PAIR(uint16_t, 8, MG_LOW_16, MG_HIGH_16) break;
    default: MG_PAIR(uint32_t, 4, MG_LOW_32, MG_HIGH_32)
    }
}

/* Any layout: elements `step` bytes apart, or in the rows given of each lane. */
#define MG_COLLECT(type)                                                                                              \
    for (int32_t l = 0; l < MG_LANES; l++)                                                                            \
        for (ptrdiff_t k = done; k < count; k++)                                                                      \
            memcpy(out + (k * MG_LANES + l) * (ptrdiff_t)sizeof(type), from[l] + (rows ? rows[l * count + k] : k) * step, sizeof(type));

/* Elements side by side that all lanes share. */
#define MG_SPREAD(type)                                            \
    for (; done < count; done++) {                                 \
        type x, spread[MG_LANES];                                  \
        memcpy(&x, from[0] + done * width, sizeof x);              \
        for (int32_t l = 0; l < MG_LANES; l++) spread[l] = x;      \
        memcpy(out + done * MG_LANES * width, spread, sizeof spread); \
    }

static int mg_side_by_side(char *const *at, int32_t lanes, ptrdiff_t width) {
    int same = 1;
    for (int32_t l = 1; l < lanes; l++) same &= at[l] == at[l - 1] + width;
    return same;
}

void mg_gather(const mg_program *p, const mg_call *call, const mg_lanes *lanes, int operand, char *out) {
    const mg_format *const formats[MG_OPERANDS] = {&p->a, &p->b, &p->c, &p->d, NULL, &p->scale_a, &p->scale_b};
    const mg_array *array = mg_array_of(call, operand);
    char *const *from = lanes->at[operand];
    const ptrdiff_t scales = p->scale_block ? p->k / p->scale_block : 0, width = formats[operand]->storage / 8;
    const ptrdiff_t count = operand == MG_OPERAND_C || operand == MG_OPERAND_D ? 1 : operand < MG_OPERAND_C ? p->k : scales;
    const int64_t step = mg_moves[operand].by_row ? array->column : array->row;
    const int32_t *rows = p->sparsity && operand == MG_OPERAND_B ? lanes->selected : NULL;
    const int packed = step == width && !rows;
    ptrdiff_t done = 0;
    if ((count == 1 || !packed) && !rows && mg_side_by_side(from, MG_LANES, width)) {
        for (; done < count; done++) memcpy(out + done * MG_LANES * width, from[0] + done * step, (size_t)(MG_LANES * width));
        return;
    }
    if (packed && mg_side_by_side(from, MG_LANES, 0)) { /* one for all lanes: they lie in a row of D */
        switch (width) {
        case 1: MG_SPREAD(uint8_t) return;
        case 2: MG_SPREAD(uint16_t) return;
        case 4: MG_SPREAD(uint32_t) return;
        }
    }
    switch (width) {
    case 1: done = packed ? mg_transpose_1(from, count, out) : 0; MG_COLLECT(uint8_t) break;
    case 2: done = packed ? mg_transpose_2(from, count, out) : 0; MG_COLLECT(uint16_t) break;
    case 4: done = packed ? mg_transpose_4(from, count, out) : 0; MG_COLLECT(uint32_t) break;
    default: done = packed ? mg_transpose_8(from, count, out) : 0; MG_COLLECT(uint64_t)
    }
}

void mg_scatter(const mg_program *p, const mg_lanes *lanes, const char *codes) {
    char *const *at = lanes->at[MG_OPERAND_D];
    const ptrdiff_t width = p->d.storage / 8;
    if (mg_side_by_side(at, lanes->used, width)) memcpy(at[0], codes, (size_t)(lanes->used * width));
    else
        for (int32_t l = 0; l < lanes->used; l++) mg_store(at[l], p->d.storage, mg_load(codes + l * width, p->d.storage));
}
#endif
