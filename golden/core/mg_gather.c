/* Where the operands of dot products lie, and their codes brought side by side: [k][lane]. */
#include <string.h>

#include "mg_internal.h"

void mg_select(const mg_program *p, const mg_call *call, int64_t batch, int32_t row, int32_t *rows) {
    const char *nibbles = mg_matrix(call, &call->e, batch) + row * call->e.row;
    for (int32_t s = 0; s < p->k; s++) rows[s] = mg_selected(p->sparsity, nibbles, call->e.column, s);
}

/* What moves from a lane to the next: its row, its column or both (c, d, flags). */
static const struct {
    int32_t by_row, by_column;
} mg_moves[MG_OPERANDS] = {{1, 0}, {0, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 1}};

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
    lanes->step[operand] = lanes->used == lanes->count ? step : MG_UNEVEN;
    lanes->at[operand][0] = at;
    if (lanes->used == lanes->count) return;
    for (int32_t l = 1; l < lanes->count; l++) lanes->at[operand][l] = at += l < lanes->used ? step : 0;
}

static ptrdiff_t mg_step_of(char *const *at, int32_t count) {
    int even = 1;
    for (int32_t l = 2; l < count; l++) even &= at[l] - at[l - 1] == at[1] - at[0];
    return even ? at[1] - at[0] : MG_UNEVEN;
}

/* Where entry `batch` of each dimension is. */
static void mg_place_entry(const mg_call *call, int64_t batch, int64_t *place) {
    for (int32_t d = call->batch_dims - 1; d >= 0; d--) {
        place[d] = batch % call->batch_shape[d];
        batch /= call->batch_shape[d];
    }
}

/* Where an operand of the entry at that place begins, or null. */
static char *mg_entry(const mg_call *call, const mg_array *array, const int64_t *place) {
    if (!array->data) return NULL;
    int64_t offset = 0;
    for (int32_t d = 0; d < call->batch_dims; d++) offset += place[d] * array->batch_stride[d];
    return array->data + offset;
}

/* Moves an operand to the entry of the batch that follows: a division for each dimension takes longer. */
static char *mg_next_entry(const mg_call *call, const mg_array *array, int64_t *place, char *start) {
    for (int32_t d = call->batch_dims - 1; d >= 0; d--) {
        start += array->batch_stride[d];
        if (++place[d] < call->batch_shape[d]) return start;
        start -= call->batch_shape[d] * array->batch_stride[d];
        place[d] = 0;
    }
    return start;
}

void mg_point(const mg_program *p, const mg_call *call, int64_t first, int64_t last, mg_lanes *lanes) {
    const int64_t n = call->n, size = call->m * n;
    const int32_t count = lanes->count, used = last - first < count ? (int32_t)(last - first) : count;
    lanes->used = used;
    if (size == 1 && call->batch_dims == 1 && !p->sparsity) { /* dot products in a row */
        for (int i = 0; i < MG_OPERANDS; i++) {
            const mg_array *array = mg_array_of(call, i);
            if (array->data)
                mg_point_evenly(lanes, i, array->data + first * array->batch_stride[0], array->batch_stride[0]);
        }
        return;
    }
    int64_t batch[MG_MOST_BLOCK_LANES], row[MG_MOST_BLOCK_LANES], column[MG_MOST_BLOCK_LANES];
    int64_t entry[MG_MAX_BATCH_DIMS], place[MG_MAX_BATCH_DIMS]; /* where the first lane is, and where another */
    batch[0] = first / size;
    mg_place_entry(call, batch[0], entry);
    row[0] = first % size / n;
    column[0] = first % n;
    if (column[0] + used <= n && !p->sparsity) { /* of one row */
        for (int i = 0; i < MG_OPERANDS; i++) {
            const mg_array *array = mg_array_of(call, i);
            char *start = mg_entry(call, array, entry);
            const int64_t by_column = mg_moves[i].by_column * array->column;
            if (start)
                mg_point_evenly(
                    lanes, i, start + mg_moves[i].by_row * row[0] * array->row + column[0] * by_column, by_column);
        }
        return;
    }
    for (int32_t l = 1; l < count; l++) {
        const int64_t next = column[l - 1] + 1, next_row = row[l - 1] + (next == n);
        const int more = l < used;
        column[l] = !more ? column[l - 1] : next == n ? 0 : next;
        row[l] = !more ? row[l - 1] : next_row == call->m ? 0 : next_row;
        batch[l] = batch[l - 1] + (more && next_row == call->m);
    }
    for (int i = 0; i < MG_OPERANDS; i++) {
        const mg_array *array = mg_array_of(call, i);
        const int64_t by_row = mg_moves[i].by_row * array->row, by_column = mg_moves[i].by_column * array->column;
        char *start = mg_entry(call, array, entry);
        if (!start) continue;
        memcpy(place, entry, (size_t)call->batch_dims * sizeof *place);
        for (int32_t l = 0; l < count; l++) {
            if (l && batch[l] != batch[l - 1]) start = mg_next_entry(call, array, place, start);
            lanes->at[i][l] = start + row[l] * by_row + column[l] * by_column;
        }
        lanes->step[i] = mg_step_of(lanes->at[i], count);
    }
    for (int32_t l = 0; p->sparsity && l < count; l++) {
        int32_t *rows = lanes->selected + l * p->k;
        if (l && row[l] == row[l - 1] && batch[l] == batch[l - 1])
            memcpy(rows, rows - p->k, (size_t)p->k * sizeof *rows);
        else mg_select(p, call, batch[l], (int32_t)row[l], rows);
    }
}

#ifndef MG_GENERAL_ONLY
#include "mg_transpose.h"

/* Rows that lie in a run, MG_LANES of them in as many vectors as a row has bytes. */
#define MG_SHUFFLE(bits, vectors)                                                                                     \
    for (ptrdiff_t first = 0; first < lanes; first += MG_LANES, from += 16 * vectors) {                               \
        typedef uint##bits##_t vector __attribute__((vector_size(16)));                                               \
        const ptrdiff_t width = bits / 8;                                                                             \
        vector x[vectors];                                                                                            \
        memcpy(x, from, sizeof x);                                                                                    \
        MG_STAGES(vectors, MG_LANES, bits)                                                                            \
        for (ptrdiff_t i = 0; i < vectors; i++)                                                                       \
            memcpy(out + (i / width * lanes + first) * width + i % width * 16, &x[i], 16);                            \
    }

/* Whether rows in a run were short enough to be transposed all at once. */
static int mg_shuffle(const char *from, ptrdiff_t count, ptrdiff_t width, ptrdiff_t lanes, char *out) {
    switch (count << 4 | width) {
    case 0x21: MG_SHUFFLE(8, 2) break;
    case 0x41: MG_SHUFFLE(8, 4) break;
    case 0x81: MG_SHUFFLE(8, 8) break;
    case 0x22: MG_SHUFFLE(16, 4) break;
    case 0x42: MG_SHUFFLE(16, 8) break;
    case 0x24: MG_SHUFFLE(32, 8) break;
    default: return 0;
    }
    return 1;
}

/* Any layout: elements `step` bytes apart, or in the rows given of each lane. */
#define MG_COLLECT(type)                                                   \
    for (int32_t l = 0; l < lanes->count; l++)                             \
        for (ptrdiff_t k = 0; k < count; k++)                              \
            memcpy(out + (k * lanes->count + l) * (ptrdiff_t)sizeof(type), \
                mg_lane_at(lanes, operand, l) + (rows ? rows[l * count + k] : k) * step, sizeof(type));

/* Lanes side by side. */
static void mg_copy_lanes(const char *from, ptrdiff_t count, ptrdiff_t bytes, int64_t step, char *out) {
    for (ptrdiff_t k = 0; k < count; k++, out += bytes)
        for (ptrdiff_t at = 0; at < bytes; at += MG_LANES) memcpy(out + at, from + k * step + at, MG_LANES);
}

void mg_gather(const mg_program *p, const mg_call *call, const mg_lanes *lanes, int operand, char *out) {
    const mg_format *const formats[MG_OPERANDS] = {&p->a, &p->b, &p->c, &p->d, NULL, &p->scale_a, &p->scale_b};
    const mg_array *array = mg_array_of(call, operand);
    const ptrdiff_t width = formats[operand]->storage / 8, all = lanes->count, next = lanes->step[operand];
    const ptrdiff_t count = operand == MG_OPERAND_C || operand == MG_OPERAND_D ? 1
        : operand < MG_OPERAND_C ? p->k
                                                                               : p->k / p->scale_block;
    const int64_t step = mg_moves[operand].by_row ? array->column : array->row;
    const int32_t *rows = p->sparsity && operand == MG_OPERAND_B ? lanes->selected : NULL;
    const int packed = step == width && !rows;
    const mg_rows from = {lanes->at[operand][0], next, lanes->at[operand]};
    if ((count == 1 || !packed) && !rows && next == width) {
        mg_copy_lanes(from.first, count, all * width, step, out);
        return;
    }
    if (packed && next == count * width && mg_shuffle(from.first, count, width, all, out)) return;
    if (packed) {
        mg_transpose(&from, count, width, all, out);
        return;
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
    if (lanes->step[MG_OPERAND_D] == width) memcpy(lanes->at[MG_OPERAND_D][0], codes, (size_t)(lanes->count * width));
    else
        for (int32_t l = 0; l < lanes->used; l++)
            mg_store(mg_lane_at(lanes, MG_OPERAND_D, l), p->d.storage, mg_load(codes + l * width, p->d.storage));
}
#endif
