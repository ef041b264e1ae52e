/* Batches: strided operands in, tiles decoded once, blocks of MG_LANES dot products to the kernels, threads over tiles. */
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"
#include "mg_watch.h"

/* One operand of one tile: raw codes, and for the lane kernels its decoded significands and exponents. */
typedef struct {
    uint64_t *codes;
    int32_t *significand, *exponent;
} mg_operand;

/* Scratch of one thread. `gathered_*` hold one block in [k][lane] order. */
typedef struct {
    const mg_program *program;
    const mg_call *call;
    const mg_lane_kernels *kernels;
    int32_t rows, columns, scale_columns; /* of the tile: m, n, scales of one row */
    mg_operand a, b, scale_a, scale_b, gathered_a, gathered_b, gathered_scale_a, gathered_scale_b;
    uint8_t *metadata;
    uint64_t *lane_a, *lane_b, *lane_scales, *results;
    void *workspace, *memory;
    int64_t first, last;
    const mg_watch *watch; /* who observes, pointing at the first dot product, or null */
    int wrong;             /* an observed program had another number of records */
} mg_worker;

static int64_t mg_offset(const mg_call *call, const mg_array *array, int64_t index) {
    if (call->batch_dims == 1) return index * array->batch_stride[0];
    int64_t offset = 0;
    for (int32_t d = call->batch_dims - 1; d >= 0; d--) {
        offset += index % call->batch_shape[d] * array->batch_stride[d];
        index /= call->batch_shape[d];
    }
    return offset;
}

static uint64_t mg_load(const char *at, int32_t storage) {
    switch (storage) {
    case 8: return *(const uint8_t *)at;
    case 16: { uint16_t x; memcpy(&x, at, sizeof x); return x; }
    case 32: { uint32_t x; memcpy(&x, at, sizeof x); return x; }
    default: { uint64_t x; memcpy(&x, at, sizeof x); return x; }
    }
}

static void mg_store(char *at, int32_t storage, uint64_t code) {
    switch (storage) {
    case 8: *(uint8_t *)at = (uint8_t)code; break;
    case 16: { uint16_t x = (uint16_t)code; memcpy(at, &x, sizeof x); break; }
    case 32: { uint32_t x = (uint32_t)code; memcpy(at, &x, sizeof x); break; }
    default: memcpy(at, &code, sizeof code); break;
    }
}

static void mg_load_row(const char *at, int64_t step, int32_t storage, int32_t columns, uint64_t *out) {
    if (storage == 64 && step == 8) {
        memcpy(out, at, (size_t)columns * sizeof *out);
        return;
    }
    for (int32_t j = 0; j < columns; j++) out[j] = mg_load(at + j * step, storage);
}

/* Loads rows x columns of one operand: decoded where the lane kernels compute on integers, raw codes otherwise. */
static void mg_load_operand(const mg_worker *w, const mg_array *array, int64_t batch, const mg_format *f, const int32_t *table,
                            int32_t rows, int32_t columns, mg_operand *operand) {
    const char *data = array->data + mg_offset(w->call, array, batch);
    if (array->column == f->storage / 8 && array->row == array->column * columns) { /* one run in memory */
        columns *= rows;
        rows = 1;
    }
    for (int32_t i = 0; i < rows; i++) {
        const char *at = data + i * array->row;
        const ptrdiff_t first = (ptrdiff_t)i * columns;
        if (operand->significand)
            w->kernels->decode(f, table, at, array->column, f->storage, columns, operand->significand + first,
                               operand->exponent ? operand->exponent + first : NULL);
        else
            mg_load_row(at, array->column, f->storage, columns, operand->codes + first);
    }
}

/* Row of B that stored element s of a row of A meets; `nibbles` is that row's metadata. */
static int32_t mg_selected(const mg_program *p, const uint8_t *nibbles, int32_t s) {
    switch (p->sparsity) {
    case MG_SPARSE_2_4: { uint8_t x = nibbles[s / 2]; return s / 2 * 4 + (s % 2 ? x >> 2 : x & 3); }
    case MG_SPARSE_1_2: return 2 * s + (nibbles[s] == 0xE);
    case MG_SPARSE_4_8_PAIRS: { uint8_t x = nibbles[s / 4]; return s / 4 * 8 + 2 * (s % 4 < 2 ? x & 3 : x >> 2) + s % 2; }
    default: return s;
    }
}

static int32_t mg_metadata_columns(const mg_program *p) {
    static const int32_t chunk[] = {1, 4, 2, 8};
    return p->logical_k / chunk[p->sparsity];
}

/* Scales without fraction bits only move the exponents of the elements that share them, unless a kernel asks for them. */
static void mg_fold_scales(mg_worker *w) {
    const mg_program *p = w->program;
    if (!p->scale_block || !w->kernels || p->operations[0].fast == MG_FAST_GDFS) return;
    for (int32_t i = 0; i < w->rows; i++)
        for (int32_t k = 0; k < p->k; k++) w->a.exponent[i * p->k + k] += w->scale_a.exponent[i * w->scale_columns + k / p->scale_block];
    const int32_t logical_block = p->scale_block * (p->logical_k / p->k);
    for (int32_t k = 0; k < p->logical_k; k++)
        for (int32_t j = 0; j < w->columns; j++) w->b.exponent[k * w->columns + j] += w->scale_b.exponent[k / logical_block * w->columns + j];
}

static void mg_load_tile(mg_worker *w, int64_t batch) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    mg_load_operand(w, &call->a, batch, &p->a, p->table_a, w->rows, p->k, &w->a);
    mg_load_operand(w, &call->b, batch, &p->b, p->table_b, p->logical_k, w->columns, &w->b);
    if (p->scale_block) {
        mg_load_operand(w, &call->scale_a, batch, &p->scale_a, p->table_scale_a, w->rows, w->scale_columns, &w->scale_a);
        mg_load_operand(w, &call->scale_b, batch, &p->scale_b, p->table_scale_b, w->scale_columns, w->columns, &w->scale_b);
    }
    mg_fold_scales(w);
    if (p->sparsity) {
        const char *data = call->e.data + mg_offset(call, &call->e, batch);
        int32_t columns = mg_metadata_columns(p);
        for (int32_t i = 0; i < w->rows; i++)
            for (int32_t j = 0; j < columns; j++) w->metadata[i * columns + j] = *(const uint8_t *)(data + i * call->e.row + j * call->e.column);
    }
}

/* Blocks ------------------------------------------------------------------------------------------------------- */

/* Where lane l of a block lies: tile row and column. Lanes past the tile repeat its last element. */
typedef struct {
    int32_t row[MG_LANES], column[MG_LANES];
} mg_lanes;

static void mg_locate(const mg_worker *w, int32_t first, mg_lanes *lanes) {
    int32_t row = first / w->columns, column = first % w->columns;
    if (w->columns == 8 && row + 1 < w->rows) { /* the common narrow tile: two rows of eight */
        for (int l = 0; l < MG_LANES; l++) {
            lanes->row[l] = row + l / 8;
            lanes->column[l] = l % 8;
        }
        return;
    }
    for (int l = 0; l < MG_LANES; l++) {
        lanes->row[l] = row;
        lanes->column[l] = column;
        if (column + 1 < w->columns) {
            column++;
        } else if (row + 1 < w->rows) {
            row++;
            column = 0;
        }
    }
}

/* rows x count values of `from` into to[k][lane], each lane its row. */
static void mg_gather_rows(const mg_lanes *lanes, int32_t count, const mg_operand *from, mg_operand *to) {
    const int32_t *row = lanes->row;
    if (to->codes && row[0] == row[7] && row[8] == row[15]) { /* columns in lanes: one row, or two of eight columns */
        for (int32_t k = 0; k < count; k++) {
            const uint64_t low = from->codes[row[0] * count + k], high = from->codes[row[8] * count + k];
            for (int l = 0; l < 8; l++) to->codes[k * MG_LANES + l] = low;
            for (int l = 8; l < MG_LANES; l++) to->codes[k * MG_LANES + l] = high;
        }
    } else if (to->codes) {
        for (int32_t k = 0; k < count; k++)
            for (int l = 0; l < MG_LANES; l++) to->codes[k * MG_LANES + l] = from->codes[row[l] * count + k];
    } else {
        for (int32_t k = 0; k < count; k++) {
            for (int l = 0; l < MG_LANES; l++) to->significand[k * MG_LANES + l] = from->significand[row[l] * count + k];
            for (int l = 0; l < MG_LANES && to->exponent; l++) to->exponent[k * MG_LANES + l] = from->exponent[row[l] * count + k];
        }
    }
}

/* count x columns values of `from` into to[k][lane], each lane its column; a sparse A picks the row by its metadata. */
static void mg_gather_columns(const mg_worker *w, const mg_lanes *lanes, int32_t count, int select, const mg_operand *from, mg_operand *to) {
    const mg_program *p = w->program;
    const int32_t columns = w->columns, nibbles = mg_metadata_columns(p);
    int32_t at[MG_LANES], selected = 0;
    if (!select && columns == 8 && lanes->row[1] == lanes->row[0]) { /* the same eight columns in both halves */
        for (int32_t half = 0; half < 2 * count; half++) {
            if (to->codes) memcpy(to->codes + half * 8, from->codes + half / 2 * 8, 8 * sizeof(uint64_t));
            if (to->significand) memcpy(to->significand + half * 8, from->significand + half / 2 * 8, 8 * sizeof(int32_t));
            if (to->exponent) memcpy(to->exponent + half * 8, from->exponent + half / 2 * 8, 8 * sizeof(int32_t));
        }
        return;
    }
    for (int32_t k = 0; k < count; k++) {
        for (int l = 0; l < MG_LANES; l++) {
            int32_t row = k;
            if (select) row = l && lanes->row[l] == lanes->row[l - 1] ? selected : mg_selected(p, w->metadata + lanes->row[l] * nibbles, k);
            selected = row;
            at[l] = row * columns + lanes->column[l];
        }
        if (to->codes) {
            for (int l = 0; l < MG_LANES; l++) to->codes[k * MG_LANES + l] = from->codes[at[l]];
        } else {
            for (int l = 0; l < MG_LANES; l++) to->significand[k * MG_LANES + l] = from->significand[at[l]];
            for (int l = 0; l < MG_LANES && to->exponent; l++) to->exponent[k * MG_LANES + l] = from->exponent[at[l]];
        }
    }
}

/* The codes of one lane, as the general interpreter takes them. */
static uint64_t mg_general_lane(mg_worker *w, const mg_lanes *lanes, int l, uint64_t c, mg_watch *watch, uint32_t *raised) {
    const mg_program *p = w->program;
    const int32_t nibbles = mg_metadata_columns(p);
    for (int32_t k = 0; k < p->k; k++) {
        int32_t row = p->sparsity ? mg_selected(p, w->metadata + (ptrdiff_t)lanes->row[l] * nibbles, k) : k;
        w->lane_a[k] = w->a.codes[(ptrdiff_t)lanes->row[l] * p->k + k];
        w->lane_b[k] = w->b.codes[(ptrdiff_t)row * w->columns + lanes->column[l]];
    }
    for (int32_t s = 0; s < w->scale_columns; s++) {
        w->lane_scales[s] = w->scale_a.codes[(ptrdiff_t)lanes->row[l] * w->scale_columns + s];
        w->lane_scales[w->scale_columns + s] = w->scale_b.codes[(ptrdiff_t)s * w->columns + lanes->column[l]];
    }
    return mg_dot_in(w->workspace, p, w->lane_a, w->lane_b, c, w->lane_scales, w->lane_scales + w->scale_columns, watch, raised);
}

/* Runs the whole program on one block; c codes in, d codes out. */
static void mg_run_block(mg_worker *w, const mg_lanes *lanes, const mg_block *block, const uint64_t *c, uint64_t *d) {
    const mg_program *p = w->program;
    static const uint64_t zeros[MG_LANES];
    uint32_t left = 0;
    memcpy(w->results, c, MG_LANES * sizeof *c);
    memcpy(w->results + MG_LANES, zeros, sizeof zeros);
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        const uint64_t *addend = o->addend_count ? w->results + (ptrdiff_t)o->addends[0] * MG_LANES : zeros;
        left |= w->kernels->run(o, block, w->results + (ptrdiff_t)o->seed * MG_LANES, addend, w->results + (ptrdiff_t)(2 + i) * MG_LANES);
    }
    memcpy(d, w->results + (ptrdiff_t)(1 + p->operation_count) * MG_LANES, MG_LANES * sizeof *d);
    for (int l = 0; left; l++, left >>= 1)
        if (left & 1) d[l] = mg_general_lane(w, lanes, l, c[l], NULL, NULL);
}

static mg_block mg_make_block(mg_worker *w) {
    mg_block block = {
        .a_significand = w->gathered_a.significand, .a_exponent = w->gathered_a.exponent, .b_significand = w->gathered_b.significand,
        .b_exponent = w->gathered_b.exponent, .a64 = w->gathered_a.codes, .b64 = w->gathered_b.codes,
        .scale_a_significand = w->gathered_scale_a.significand, .scale_a_exponent = w->gathered_scale_a.exponent,
        .scale_b_significand = w->gathered_scale_b.significand, .scale_b_exponent = w->gathered_scale_b.exponent, .b_stride = MG_LANES};
    return block;
}

#define MG_MOVE_RUN(TYPE)                                                                           \
    for (int i = 0; i < run; i++) {                                                                 \
        TYPE code = (TYPE)codes[l + i];                                                             \
        if (store) memcpy(at + i * (ptrdiff_t)sizeof code, &code, sizeof code);                     \
        else memcpy(&code, at + i * (ptrdiff_t)sizeof code, sizeof code);                           \
        codes[l + i] = code;                                                                        \
    }

/* Loads c or stores d of one block, in runs of neighbouring columns. */
static inline void mg_move_block(const mg_worker *w, const mg_array *array, char *data, const mg_lanes *lanes, int used, int32_t storage,
                                 uint64_t *codes, const int store) {
    const int packed = array->column == storage / 8;
    const int run = !packed ? 1 : w->columns % MG_LANES == 0 ? MG_LANES : w->columns == 8 ? 8 : 1;
    for (int l = 0; l < used; l += run) {
        char *at = data + lanes->row[l] * array->row + lanes->column[l] * array->column;
        if (run > 1 && storage == 64) {
            MG_MOVE_RUN(uint64_t)
        } else if (run > 1 && storage == 32) {
            MG_MOVE_RUN(uint32_t)
        } else if (run > 1 && storage == 16) {
            MG_MOVE_RUN(uint16_t)
        } else {
            for (int i = 0; i < run; i++, at += array->column) {
                if (store) mg_store(at, storage, codes[l + i]);
                else codes[l + i] = mg_load(at, storage);
            }
        }
    }
    for (int l = used; l < MG_LANES && !store; l++) codes[l] = codes[used - 1];
}

/* Brings the operands of one block into lane order; what the block before it already has there stays. */
static mg_block mg_prepare_block(mg_worker *w, const mg_lanes *lanes, int first_block, int new_row) {
    const mg_program *p = w->program;
    const int direct = !p->sparsity && w->columns % MG_LANES == 0; /* b's rows already lie in lane order */
    mg_block block = mg_make_block(w);
    const int halves = w->a.significand && lanes->row[1] == lanes->row[0] && (w->columns == 8 || w->columns % MG_LANES == 0); /* one row of a, or two */
    if (halves) {
        block.a_significand = w->a.significand + lanes->row[0] * p->k;
        block.a_significand_high = w->a.significand + lanes->row[MG_LANES / 2] * p->k;
        if (w->a.exponent) {
            block.a_exponent = w->a.exponent + lanes->row[0] * p->k;
            block.a_exponent_high = w->a.exponent + lanes->row[MG_LANES / 2] * p->k;
        }
    }
    if (new_row) {
        if (!halves) mg_gather_rows(lanes, p->k, &w->a, &w->gathered_a);
        if (w->gathered_scale_a.significand) mg_gather_rows(lanes, w->scale_columns, &w->scale_a, &w->gathered_scale_a);
    }
    const int same_columns = w->columns == 8 && !first_block; /* 8 wide: the same columns twice in every block */
    if (w->gathered_scale_b.significand && !same_columns) mg_gather_columns(w, lanes, w->scale_columns, 0, &w->scale_b, &w->gathered_scale_b);
    if (direct) {
        if (w->b.significand) block.b_significand = w->b.significand + lanes->column[0];
        if (w->b.exponent) block.b_exponent = w->b.exponent + lanes->column[0];
        block.b64 = w->b.codes + lanes->column[0];
        block.b_stride = w->columns;
    } else if (p->sparsity || !same_columns) {
        mg_gather_columns(w, lanes, p->k, p->sparsity != MG_DENSE, &w->b, &w->gathered_b);
    }
    return block;
}

/* The first `used` lanes by the general interpreter; their status flags too, where the call asks for them. */
static void mg_run_general(mg_worker *w, const mg_lanes *lanes, int used, const uint64_t *c, uint64_t *d, uint64_t *flags) {
    for (int l = 0; l < used; l++) {
        uint32_t raised = 0;
        d[l] = mg_general_lane(w, lanes, l, c[l], NULL, w->call->flags.data ? &raised : NULL);
        flags[l] = raised;
    }
}

static void mg_run_tile(mg_worker *w, int64_t batch) {
    const mg_call *call = w->call;
    const int32_t count = w->rows * w->columns;
    char *c_data = call->c.data + mg_offset(call, &call->c, batch), *d_data = call->d.data + mg_offset(call, &call->d, batch);
    mg_lanes lanes;
    uint64_t c[MG_LANES], d[MG_LANES], flags[MG_LANES];
    int32_t row = -1;
    mg_load_tile(w, batch);
    for (int32_t first = 0; first < count; first += MG_LANES) {
        int used = count - first < MG_LANES ? count - first : MG_LANES;
        mg_locate(w, first, &lanes);
        mg_move_block(w, &call->c, c_data, &lanes, used, w->program->c.storage, c, 0);
        if (!w->kernels) {
            mg_run_general(w, &lanes, used, c, d, flags);
        } else {
            const int new_row = lanes.row[0] != row || lanes.row[MG_LANES - 1] != row;
            mg_block block = mg_prepare_block(w, &lanes, first == 0, new_row);
            row = lanes.row[0];
            mg_run_block(w, &lanes, &block, c, d);
        }
        mg_move_block(w, &call->d, d_data, &lanes, used, w->program->d.storage, d, 1);
        if (call->flags.data) mg_move_block(w, &call->flags, call->flags.data + mg_offset(call, &call->flags, batch), &lanes, used, 8, flags, 1);
    }
}

/* m = n = 1: consecutive batch entries become the rows of one tile whose "columns" are the same entries. */
static void mg_run_dots(mg_worker *w, int64_t first, int64_t last) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    mg_lanes lanes;
    uint64_t c[MG_LANES] = {0}, d[MG_LANES] = {0}, flags[MG_LANES] = {0};
    mg_worker one = *w; /* views of the scratch that place lane l's operands in row l (a) and column l (b) */
    int used = (int)(last - first);
    for (int l = 0; l < MG_LANES; l++) {
        int64_t batch = first + (l < used ? l : used - 1);
        const char *b = call->b.data + mg_offset(call, &call->b, batch);
        lanes.row[l] = lanes.column[l] = l;
        mg_load_row(call->a.data + mg_offset(call, &call->a, batch), call->a.column, p->a.storage, p->k, w->a.codes + (ptrdiff_t)l * p->k);
        for (int32_t k = 0; k < p->logical_k; k++) w->b.codes[(ptrdiff_t)k * MG_LANES + l] = mg_load(b + k * call->b.row, p->b.storage);
        for (int32_t s = 0; s < w->scale_columns; s++) {
            const char *at = call->scale_b.data + mg_offset(call, &call->scale_b, batch);
            w->scale_b.codes[(ptrdiff_t)s * MG_LANES + l] = mg_load(at + s * call->scale_b.row, p->scale_b.storage);
            at = call->scale_a.data + mg_offset(call, &call->scale_a, batch);
            w->scale_a.codes[(ptrdiff_t)l * w->scale_columns + s] = mg_load(at + s * call->scale_a.column, p->scale_a.storage);
        }
        for (int32_t j = 0; p->sparsity && j < mg_metadata_columns(p); j++)
            w->metadata[l * mg_metadata_columns(p) + j] = *(const uint8_t *)(call->e.data + mg_offset(call, &call->e, batch) + j * call->e.column);
        c[l] = mg_load(call->c.data + mg_offset(call, &call->c, batch), p->c.storage);
    }
    one.rows = one.columns = MG_LANES; /* lane l: row l of a, column l of b */
    if (w->watch) {
        for (int l = 0; l < used; l++) {
            mg_watch seen = *w->watch;
            seen.records += first + l;
            d[l] = mg_general_lane(&one, &lanes, l, c[l], &seen, NULL);
            w->wrong |= seen.wrong;
        }
    } else if (!w->kernels) {
        mg_run_general(&one, &lanes, used, c, d, flags);
    } else {
        const struct { const mg_format *f; const int32_t *table; mg_operand *operand; ptrdiff_t count; } all[] = {
            {&p->a, p->table_a, &w->a, (ptrdiff_t)p->k * MG_LANES}, {&p->b, p->table_b, &w->b, (ptrdiff_t)p->logical_k * MG_LANES},
            {&p->scale_a, p->table_scale_a, &w->scale_a, (ptrdiff_t)w->scale_columns * MG_LANES},
            {&p->scale_b, p->table_scale_b, &w->scale_b, (ptrdiff_t)w->scale_columns * MG_LANES}};
        for (int i = 0; i < 4; i++) {
            if (!all[i].operand->significand) continue;
            w->kernels->decode(all[i].f, all[i].table, (const char *)all[i].operand->codes, 8, 64, all[i].count,
                               all[i].operand->significand, all[i].operand->exponent);
        }
        mg_fold_scales(&one);
        mg_block block = mg_prepare_block(&one, &lanes, 1, 1);
        mg_run_block(&one, &lanes, &block, c, d);
    }
    for (int l = 0; l < used; l++) mg_store(call->d.data + mg_offset(call, &call->d, first + l), p->d.storage, d[l]);
    for (int l = 0; call->flags.data && l < used; l++) mg_store(call->flags.data + mg_offset(call, &call->flags, first + l), 8, flags[l]);
}

/* Workers ------------------------------------------------------------------------------------------------------ */

static char *mg_take(char **at, size_t bytes) {
    char *taken = *at;
    if (taken) *at += (bytes + 63) / 64 * 64;
    return taken;
}

/* `decoded`: 0 raw codes only, 1 significands, 2 significands and exponents. */
static void mg_take_operand(char **at, mg_operand *operand, size_t count, int codes, int decoded, size_t *bytes) {
    operand->codes = codes ? (uint64_t *)(void *)mg_take(at, count * 8) : NULL;
    operand->significand = decoded ? (int32_t *)(void *)mg_take(at, count * 4) : NULL;
    operand->exponent = decoded > 1 ? (int32_t *)(void *)mg_take(at, count * 4) : NULL;
    *bytes += (size_t)codes * (count * 8 + 63) + (size_t)decoded * (count * 4 + 63);
}

/* Lays the scratch out; with a null `at` it only counts the bytes. */
static size_t mg_lay_out(mg_worker *w, char *at) {
    const mg_program *p = w->program;
    const int fast = w->kernels != NULL, raw = fast && p->operations[0].fast == MG_FAST_FMA;
    const size_t rows = (size_t)(w->rows > MG_LANES ? w->rows : MG_LANES), columns = (size_t)(w->columns > MG_LANES ? w->columns : MG_LANES);
    const size_t k = (size_t)p->k, logical = (size_t)p->logical_k, scales = (size_t)w->scale_columns;
    const int fixed_point = p->operations[0].fast == MG_FAST_GDFS || p->operations[0].fast == MG_FAST_INTEGER;
    const int decoded = !fast || raw ? 0 : fixed_point ? 1 : 2, decoded_scales = fast && scales ? 2 : 0;
    size_t bytes = 64;
    mg_take_operand(&at, &w->a, rows * k, 1, decoded, &bytes);
    mg_take_operand(&at, &w->b, logical * columns, 1, decoded, &bytes);
    mg_take_operand(&at, &w->scale_a, rows * scales, scales != 0, decoded_scales, &bytes);
    mg_take_operand(&at, &w->scale_b, scales * columns, scales != 0, decoded_scales, &bytes);
    mg_take_operand(&at, &w->gathered_a, k * MG_LANES, raw, decoded, &bytes);
    mg_take_operand(&at, &w->gathered_b, k * MG_LANES, raw, decoded, &bytes);
    const int keep_scales = fast && p->operations[0].fast == MG_FAST_GDFS ? 2 : 0;
    mg_take_operand(&at, &w->gathered_scale_a, scales * MG_LANES, 0, keep_scales, &bytes);
    mg_take_operand(&at, &w->gathered_scale_b, scales * MG_LANES, 0, keep_scales, &bytes);
    const size_t lane = (k + 1) * 8, results = (size_t)(p->operation_count + 2) * MG_LANES * 8;
    w->lane_a = (uint64_t *)(void *)mg_take(&at, lane);
    w->lane_b = (uint64_t *)(void *)mg_take(&at, lane);
    w->lane_scales = (uint64_t *)(void *)mg_take(&at, (2 * scales + 1) * 8);
    w->results = (uint64_t *)(void *)mg_take(&at, results);
    w->metadata = (uint8_t *)mg_take(&at, rows * logical + 1);
    w->workspace = mg_take(&at, mg_workspace_bytes(p));
    return bytes + 2 * (lane + 64) + (2 * scales + 1) * 8 + 64 + results + 64 + rows * logical + 65 + mg_workspace_bytes(p) + 64;
}

static void *mg_work(void *argument) {
    mg_worker *w = argument;
    fenv_t environment;
    /* A host program may flush subnormals or round otherwise; the kernels on hardware floats need the IEEE defaults. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    if (w->rows == 1 && w->columns == 1) {
        for (int64_t i = w->first; i < w->last; i += MG_LANES) mg_run_dots(w, i, i + MG_LANES < w->last ? i + MG_LANES : w->last);
    } else {
        for (int64_t i = w->first; i < w->last; i++) mg_run_tile(w, i);
    }
    fesetenv(&environment);
    return NULL;
}

#ifdef MG_GENERAL_ONLY
/* The model exported for simulators (golden/vectors/dpi.py) has the general interpreter alone. */
static const mg_lane_kernels *mg_choose(void) { return NULL; }

const char *mg_simd(void) { return "none"; }
#else
static const mg_lane_kernels *mg_choose(void) {
    const char *wish = getenv("MMAGOLD_SIMD");
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (wish && strcmp(wish, "portable") == 0) return &mg_lanes_portable;
    if (avx512 && !(wish && strcmp(wish, "avx2") == 0)) return &mg_lanes_avx512;
    if (avx2) return &mg_lanes_avx2;
#else
    (void)wish;
#endif
    return &mg_lanes_portable;
}

const char *mg_simd(void) { return mg_choose()->name; }

#ifndef MG_DIGEST
#define MG_DIGEST ""
#endif
const char *mg_digest(void) { return MG_DIGEST; }
#endif

static int mg_prepare(mg_worker *w, const mg_program *program, const mg_call *call, const mg_watch *watch) {
    memset(w, 0, sizeof *w);
    w->program = program;
    w->call = call;
    w->watch = watch;
    w->kernels = program->all_fast && !call->force_general && !call->flags.data && !watch ? mg_choose() : NULL;
    w->rows = call->m;
    w->columns = call->n;
    w->scale_columns = program->scale_block ? program->k / program->scale_block : 0;
    size_t bytes = mg_lay_out(w, NULL);
    w->memory = malloc(bytes + 64);
    if (!w->memory) return -1;
    mg_lay_out(w, (char *)(((uintptr_t)w->memory + 63) / 64 * 64));
    return 0;
}

#define MG_MAX_THREADS 256

int mg_run(const mg_program *program, const mg_call *call) { return mg_run_watched(program, call, NULL); }

int mg_run_watched(const mg_program *program, const mg_call *call, const mg_watch *watch) {
    int64_t total = 1, dots;
    for (int32_t d = 0; d < call->batch_dims; d++) total *= call->batch_shape[d];
    if (total == 0) return 0;
    dots = total * call->m * call->n;
    int64_t threads = call->threads < 1 ? 1 : call->threads > MG_MAX_THREADS ? MG_MAX_THREADS : call->threads;
    /* A thread costs as much as some thousand dot products, or some hundred observed ones. */
    const int64_t least = watch ? 512 : 4096;
    if (threads > dots / least) threads = dots / least;
    if (threads > total) threads = total;
    if (threads < 1) threads = 1;
    mg_worker workers[MG_MAX_THREADS];
    pthread_t handles[MG_MAX_THREADS];
    int64_t share = ((total + threads - 1) / threads + MG_LANES - 1) / MG_LANES * MG_LANES, started = 0, prepared = 0;
    int status = 0;
    for (; prepared < threads && status == 0; prepared++) {
        status = mg_prepare(&workers[prepared], program, call, watch);
        workers[prepared].first = prepared * share < total ? prepared * share : total;
        workers[prepared].last = (prepared + 1) * share < total ? (prepared + 1) * share : total;
    }
    if (status == 0) {
        for (started = 1; started < threads; started++)
            if (pthread_create(&handles[started], NULL, mg_work, &workers[started])) break;
        mg_work(&workers[0]);
        for (int64_t i = started; i < threads; i++) mg_work(&workers[i]);
        for (int64_t i = 1; i < started; i++) pthread_join(handles[i], NULL);
    }
    for (int64_t i = 0; i < prepared; i++) {
        if (status == 0 && workers[i].wrong) status = -2;
        free(workers[i].memory);
    }
    return status;
}

void mg_build_table(const mg_format *format, const mg_format *target, int fixed_point, int32_t *table) {
    for (int32_t code = 0; code < 256; code++) {
        mg_number x = mg_decode(format, (uint64_t)code);
        if (target) x = mg_convert(target, &x);
        int32_t magnitude = x.kind >= MG_INFINITY ? 1 : (int32_t)x.significand, exponent = x.exponent;
        if (x.kind == MG_ZERO) exponent = MG_E_ZERO;
        if (x.kind == MG_INFINITY) exponent = MG_E_INFINITY;
        if (x.kind == MG_NAN) exponent = MG_E_NAN;
        if (fixed_point && x.kind == MG_FINITE) magnitude <<= exponent;
        table[2 * code] = x.sign ? -magnitude : magnitude;
        table[2 * code + 1] = fixed_point ? 0 : exponent;
    }
}

int mg_abi_version(void) { return MG_ABI_VERSION; }

void mg_struct_sizes(int64_t sizes[5]) {
    sizes[0] = (int64_t)sizeof(mg_format);
    sizes[1] = (int64_t)sizeof(mg_step);
    sizes[2] = (int64_t)sizeof(mg_operation);
    sizes[3] = (int64_t)sizeof(mg_program);
    sizes[4] = (int64_t)sizeof(mg_call);
}
