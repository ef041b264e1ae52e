/* Batches: strided operands in, tiles decoded once for the fast form, single dot products for the interpreter, threads. */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"
#include "mg_watch.h"

/* Scratch of one thread. */
typedef struct {
    const mg_program *program;
    const mg_call *call;
    const mg_tile_kernel *kernel; /* of the fast form, or null */
    mg_decoder decode;            /* the widest */
    mg_tile tile;
    int32_t scales, nibbles;         /* of a dot product: scales, bytes of metadata */
    char *c, *d;                     /* a tile's, where the caller's are not packed */
    uint8_t *metadata;               /* of one row */
    int32_t *selected;               /* [lane][k]: the row of B that element k of A meets */
    char *gathered[4];               /* [k][lane]: a, b, scales of a, scales of b */
    uint64_t *codes;                 /* of one dot product: a, b, scales of a, scales of b */
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
    return p->sparsity ? p->logical_k / chunk[p->sparsity] : 0;
}

static const char *mg_row(const mg_call *call, const mg_array *array, int64_t batch, int32_t row) {
    return array->data + mg_offset(call, array, batch) + row * array->row;
}

/* Row i's metadata, packed. */
static const uint8_t *mg_load_metadata(const mg_worker *w, int64_t batch, int32_t i) {
    const char *at = w->nibbles ? mg_row(w->call, &w->call->e, batch, i) : NULL;
    for (int32_t j = 0; j < w->nibbles; j++) w->metadata[j] = *(const uint8_t *)(at + j * w->call->e.column);
    return w->metadata;
}

/* One element of D by the general interpreter. */
static void mg_run_element(mg_worker *w, int64_t batch, int32_t i, int32_t j, mg_watch *watch) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    const char *a = mg_row(call, &call->a, batch, i), *b = mg_row(call, &call->b, batch, 0) + j * call->b.column;
    const uint8_t *nibbles = mg_load_metadata(w, batch, i);
    uint64_t *a_codes = w->codes, *b_codes = a_codes + p->k, *scales = b_codes + p->k;
    for (int32_t k = 0; k < p->k; k++) {
        a_codes[k] = mg_load(a + k * call->a.column, p->a.storage);
        b_codes[k] = mg_load(b + mg_selected(p, nibbles, k) * call->b.row, p->b.storage);
    }
    for (int32_t s = 0; s < w->scales; s++) {
        scales[s] = mg_load(mg_row(call, &call->scale_a, batch, i) + s * call->scale_a.column, p->scale_a.storage);
        scales[w->scales + s] = mg_load(mg_row(call, &call->scale_b, batch, s) + j * call->scale_b.column, p->scale_b.storage);
    }
    const uint64_t c = mg_load(mg_row(call, &call->c, batch, i) + j * call->c.column, p->c.storage);
    uint32_t raised = 0;
    const uint64_t d = mg_dot_in(w->workspace, p, a_codes, b_codes, c, scales, scales + w->scales, watch, call->flags.data ? &raised : NULL);
    mg_store(call->d.data + mg_offset(call, &call->d, batch) + i * call->d.row + j * call->d.column, p->d.storage, d);
    if (call->flags.data) call->flags.data[mg_offset(call, &call->flags, batch) + i * call->flags.row + j * call->flags.column] = (char)raised;
}

/* Fast form: loading -------------------------------------------------------------------------------------------- */

/* Decodes rows x columns of an operand; raw codes are copied where the hardware's own arithmetic takes them. Returns
 * whether there is an infinity or a NaN. */
static int mg_load_plane(const mg_worker *w, const char *data, int64_t row, int64_t column, const mg_format *f, const mg_table *table,
                         int32_t rows, int32_t columns, int significands, mg_plane *plane) {
    const int32_t width = f->storage / 8;
    int specials = 0;
    if (column == width && row == column * columns) { /* one run in memory */
        columns *= rows;
        rows = 1;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        const char *at = data + i * row;
        if (plane->raw && column == width) memcpy(plane->raw + i * columns * width, at, (size_t)columns * (size_t)width);
        else if (plane->raw)
            for (ptrdiff_t j = 0; j < columns; j++) memcpy(plane->raw + (i * columns + j) * width, at + j * column, (size_t)width);
        else
            specials |= w->decode(f, table, at, column, columns, significands, plane->value + i * columns, plane->exponent + i * columns);
    }
    return specials;
}

/* Scales without fraction bits only move the exponents of the elements that share them, or make them NaN. */
static void mg_scale(mg_plane *plane, ptrdiff_t at, int32_t exponent) {
    if (exponent >= MG_E_SPECIAL) plane->value[at] = NAN;
    else plane->exponent[at] += exponent;
}

static void mg_fold_scales(const mg_worker *w, mg_tile *t) {
    const mg_program *p = w->program;
    if (p->operations[0].fast == MG_FAST_GDFS) return; /* those of groups stay apart */
    const int32_t lanes = t->per_lane ? t->columns : 1, block = p->scale_block, b_block = t->per_lane ? block : block * (p->logical_k / p->k);
    for (int32_t i = 0; i < t->rows; i++)
        for (int32_t k = 0; k < p->k; k++)
            for (int32_t l = 0; l < lanes; l++) mg_scale(&t->a, (i * p->k + k) * lanes + l, t->scale_a.exponent[(i * w->scales + k / block) * lanes + l]);
    for (int32_t k = 0; k < (t->per_lane ? p->k : p->logical_k); k++)
        for (int32_t j = 0; j < t->columns; j++) mg_scale(&t->b, (ptrdiff_t)k * t->columns + j, t->scale_b.exponent[k / b_block * t->columns + j]);
}

/* Decodes what is in a tile; `at` holds the operands, each as mg_load_plane takes it. */
typedef struct {
    const char *data;
    int64_t row, column;
} mg_view;

static void mg_decode_tile(mg_worker *w, const mg_view *a, const mg_view *b, const mg_view *scale_a, const mg_view *scale_b) {
    const mg_program *p = w->program;
    mg_tile *t = &w->tile;
    const int32_t lanes = t->columns, k = p->k;
    const int own = t->per_lane; /* a plane is [k][lane], of A too */
    t->specials = mg_load_plane(w, a->data, a->row, a->column, &p->a, p->table_a, own ? k : t->rows, own ? lanes : k, t->significands, &t->a);
    t->specials |= mg_load_plane(w, b->data, b->row, b->column, &p->b, p->table_b, own ? k : p->logical_k, lanes, t->significands, &t->b);
    if (!w->scales) return;
    t->specials |= mg_load_plane(w, scale_a->data, scale_a->row, scale_a->column, &p->scale_a, p->table_scale_a, own ? w->scales : t->rows,
                                 own ? lanes : w->scales, 1, &t->scale_a);
    t->specials |= mg_load_plane(w, scale_b->data, scale_b->row, scale_b->column, &p->scale_b, p->table_scale_b, w->scales, lanes, 1, &t->scale_b);
    mg_fold_scales(w, t);
}

/* NaNs whose payload matters are left to the interpreter. */
static int mg_is_nan_code(const mg_format *f, const char *at) {
    const uint64_t code = mg_load(at, f->storage), magnitude = f->sign_shift < 0 ? code : code & ~(UINT64_C(1) << f->sign_shift);
    return magnitude > f->infinity;
}

/* Fast form: running -------------------------------------------------------------------------------------------- */

static mg_view mg_view_of(const mg_call *call, const mg_array *array, int64_t batch) {
    const mg_view view = {array->data ? array->data + mg_offset(call, array, batch) : NULL, array->row, array->column};
    return view;
}

/* Moves rows x columns codes; used where c or d are not packed. */
static void mg_copy(const char *from, int64_t from_row, int64_t from_column, char *to, int64_t to_row, int64_t to_column, int32_t rows,
                    int32_t columns, int32_t width) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) memcpy(to + i * to_row + j * to_column, from + i * from_row + j * from_column, (size_t)width);
}

static void mg_run_whole_tile(mg_worker *w, int64_t batch) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    mg_tile *t = &w->tile;
    const mg_view a = mg_view_of(call, &call->a, batch), b = mg_view_of(call, &call->b, batch), c = mg_view_of(call, &call->c, batch),
                  d = mg_view_of(call, &call->d, batch), scale_a = mg_view_of(call, &call->scale_a, batch), scale_b = mg_view_of(call, &call->scale_b, batch);
    const int32_t c_width = p->c.storage / 8, d_width = p->d.storage / 8, rows = t->rows, columns = t->columns;
    mg_decode_tile(w, &a, &b, &scale_a, &scale_b);
    for (int32_t i = 0; p->sparsity && i < rows; i++) {
        const uint8_t *nibbles = mg_load_metadata(w, batch, i);
        for (int32_t k = 0; k < p->k; k++) t->row_of_b[(ptrdiff_t)i * p->k + k] = (ptrdiff_t)mg_selected(p, nibbles, k) * columns;
    }
    t->c = c.column == c_width ? c.data : w->c;
    t->c_row = c.column == c_width ? c.row : (ptrdiff_t)columns * c_width;
    t->d = d.column == d_width ? (char *)d.data : w->d;
    t->d_row = d.column == d_width ? d.row : (ptrdiff_t)columns * d_width;
    if (t->c == w->c) mg_copy(c.data, c.row, c.column, w->c, t->c_row, c_width, rows, columns, c_width);
    w->kernel->run(t);
    if (t->d == w->d) mg_copy(w->d, t->d_row, d_width, (char *)d.data, d.row, d.column, rows, columns, d_width);
    for (int32_t i = 0; p->operations[0].fast == MG_FAST_FMA && i < rows; i++)
        for (int32_t j = 0; j < columns; j++)
            if (mg_is_nan_code(&p->d, t->d + i * t->d_row + (ptrdiff_t)j * d_width)) mg_run_element(w, batch, i, j, NULL);
}

/* Brings element k of each lane beside those of the others, [k][lane]: `step` bytes apart, or in the given rows. */
#define MG_GATHER(type)                                                                                   \
    for (int32_t l = 0; l < lanes; l++)                                                                   \
        for (ptrdiff_t k = 0; k < count; k++)                                                             \
            memcpy(out + (k * lanes + l) * (ptrdiff_t)sizeof(type), from[l] + (rows ? rows[l * count + k] : k) * step, sizeof(type));

static void mg_gather(const char *const *from, int64_t step, const int32_t *rows, ptrdiff_t count, int32_t lanes, int32_t width, char *out) {
    switch (width) {
    case 1: MG_GATHER(uint8_t) break;
    case 2: MG_GATHER(uint16_t) break;
    case 4: MG_GATHER(uint32_t) break;
    default: MG_GATHER(uint64_t)
    }
}

/* Elements first ... last of D, in the order of (batch, row, column), each in a lane of its own. */
static void mg_run_lanes(mg_worker *w, int64_t first, int64_t last) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    mg_tile *t = &w->tile;
    const int32_t lanes = t->columns, used = (int32_t)(last - first);
    const char *a[MG_MOST_LANES], *b[MG_MOST_LANES], *c[MG_MOST_LANES], *scale_a[MG_MOST_LANES], *scale_b[MG_MOST_LANES];
    char *d[MG_MOST_LANES];
    int64_t batch[MG_MOST_LANES];
    int32_t row[MG_MOST_LANES], column[MG_MOST_LANES];
    for (int32_t l = 0; l < lanes; l++) {
        const int64_t at = first + (l < used ? l : used - 1), size = (int64_t)call->m * call->n;
        batch[l] = at / size;
        row[l] = (int32_t)(at % size / call->n);
        column[l] = (int32_t)(at % call->n);
        a[l] = mg_row(call, &call->a, batch[l], row[l]);
        b[l] = mg_row(call, &call->b, batch[l], 0) + column[l] * call->b.column;
        c[l] = mg_row(call, &call->c, batch[l], row[l]) + column[l] * call->c.column;
        d[l] = call->d.data + mg_offset(call, &call->d, batch[l]) + row[l] * call->d.row + column[l] * call->d.column;
        if (w->scales) {
            scale_a[l] = mg_row(call, &call->scale_a, batch[l], row[l]);
            scale_b[l] = mg_row(call, &call->scale_b, batch[l], 0) + column[l] * call->scale_b.column;
        }
        const uint8_t *nibbles = mg_load_metadata(w, batch[l], row[l]);
        for (int32_t k = 0; p->sparsity && k < p->k; k++) w->selected[l * p->k + k] = mg_selected(p, nibbles, k);
    }
    const int32_t widths[] = {p->a.storage / 8, p->b.storage / 8, p->c.storage / 8, p->d.storage / 8};
    mg_view views[4];
    const struct { const char *const *from; int64_t step; const int32_t *rows; int32_t count, width; } all[] = {
        {a, call->a.column, NULL, p->k, widths[0]},
        {b, call->b.row, p->sparsity ? w->selected : NULL, p->k, widths[1]},
        {scale_a, call->scale_a.column, NULL, w->scales, p->scale_a.storage / 8},
        {scale_b, call->scale_b.row, NULL, w->scales, p->scale_b.storage / 8}};
    for (int i = 0; i < (w->scales ? 4 : 2); i++) {
        const mg_view view = {w->gathered[i], (int64_t)lanes * all[i].width, all[i].width};
        mg_gather(all[i].from, all[i].step, all[i].rows, all[i].count, lanes, all[i].width, w->gathered[i]);
        views[i] = view;
    }
    mg_gather(c, 0, NULL, 1, lanes, widths[2], w->c);
    t->c = w->c;
    t->d = w->d;
    mg_decode_tile(w, &views[0], &views[1], &views[2], &views[3]);
    w->kernel->run(t);
    for (int32_t l = 0; l < used; l++) {
        if (p->operations[0].fast == MG_FAST_FMA && mg_is_nan_code(&p->d, w->d + l * widths[3]))
            mg_run_element(w, batch[l], row[l], column[l], NULL);
        else memcpy(d[l], w->d + l * widths[3], (size_t)widths[3]);
    }
}

/* Workers ------------------------------------------------------------------------------------------------------ */

static void mg_run_single(mg_worker *w, int64_t batch) {
    mg_watch seen;
    if (w->watch) {
        seen = *w->watch;
        seen.records += batch;
    }
    for (int32_t i = 0; i < w->call->m; i++)
        for (int32_t j = 0; j < w->call->n; j++) mg_run_element(w, batch, i, j, w->watch ? &seen : NULL);
    if (w->watch) w->wrong |= seen.wrong;
}

static void *mg_work(void *argument) {
    mg_worker *w = argument;
    const int64_t size = (int64_t)w->call->m * w->call->n, lanes = w->tile.columns;
    fenv_t environment;
    /* A host program may flush subnormals or round otherwise; the fast form computes on floats and needs the IEEE defaults. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    if (w->kernel && w->tile.per_lane)
        for (int64_t i = w->first * size; i < w->last * size; i += lanes) mg_run_lanes(w, i, i + lanes < w->last * size ? i + lanes : w->last * size);
    else if (w->kernel)
        for (int64_t i = w->first; i < w->last; i++) mg_run_whole_tile(w, i);
    else
        for (int64_t i = w->first; i < w->last; i++) mg_run_single(w, i);
    fesetenv(&environment);
    return NULL;
}

#ifdef MG_GENERAL_ONLY
/* The model exported for simulators (golden/vectors/dpi.py) has the general interpreter alone. */
static void mg_plan_tile(mg_worker *w) { (void)w; }

const char *mg_simd(void) { return "none"; }
#else
static const mg_tile_kernels *mg_choose(void) {
    const char *wish = getenv("MMAGOLD_SIMD");
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (wish && strcmp(wish, "portable") == 0) return &mg_tiles_portable;
    if (avx512 && !(wish && strcmp(wish, "avx2") == 0)) return &mg_tiles_avx512;
    if (avx2) return &mg_tiles_avx2;
#else
    (void)wish;
#endif
    return &mg_tiles_portable;
}

const char *mg_simd(void) { return mg_choose()->name; }

#ifndef MG_DIGEST
#define MG_DIGEST ""
#endif
const char *mg_digest(void) { return MG_DIGEST; }

/* Whether a product of values, or its scale, could leave the range of normal floats. */
static int mg_needs_significands(const mg_program *p) {
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        const mg_format *a = o->has_operand_format ? &o->operand_format : &p->a, *b = o->has_operand_format ? &o->operand_format : &p->b;
        if (o->fast != MG_FAST_FDA && o->fast != MG_FAST_FDRDA) continue;
        if (o->product_overflow) return 1;
        const int32_t least = a->min_exponent - a->fraction_bits + b->min_exponent - b->fraction_bits;
        if (least < -126 || a->max_exponent + b->max_exponent + 2 > 100 || a->min_exponent + b->min_exponent < o->fraction_bits - 126) return 1;
    }
    return p->scale_block && p->operations[0].fast != MG_FAST_GDFS;
}

static int mg_is_quick(const mg_operation *o) {
    const mg_format *formats[] = {&o->seed_format, &o->out_format};
    for (int i = 0; i < 2; i++)
        if (formats[i]->storage != 32 || formats[i]->fraction_bits != 23 || formats[i]->exponent_bits != 8) return 0;
    return o->fast == MG_FAST_FDA && o->rounding == MG_ROUNDING_TOWARD_ZERO && o->k_count <= o->chunk && o->result_fraction_bits <= 23;
}

/* Chooses the length of vectors, and how the tile runs through them. */
static void mg_plan_tile(mg_worker *w) {
    const mg_program *p = w->program;
    const mg_tile_kernels *kernels = mg_choose();
    mg_tile *t = &w->tile;
    const int32_t m = w->call->m, n = w->call->n;
    if (p->operation_count > MG_TILE_OPERATIONS) return;
    t->program = p;
    w->kernel = &kernels->kernels[0];
    w->decode = w->kernel->decode;
    for (int i = 0; i < 3 && m % 4 == 0 && kernels->kernels[i].lanes; i++)
        if (n % kernels->kernels[i].lanes == 0) {
            w->kernel = &kernels->kernels[i];
            t->rows = m;
            t->columns = n;
            break;
        }
    t->per_lane = !t->rows;
    if (t->per_lane) {
        t->rows = 1;
        t->columns = w->kernel->lanes;
    }
    t->a_row = p->k;
    t->scale_row = w->scales;
    t->row_step = p->sparsity && !t->per_lane ? p->k : 0;
    t->significands = mg_needs_significands(p);
    t->quick = 1;
    t->plain = !t->per_lane && !p->sparsity;
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        t->quick &= mg_is_quick(o);
        for (int32_t k = 0; k < o->k_count; k++) t->plain &= o->k_index[k] == o->k_index[0] + k;
    }
}
#endif

static void *mg_take(char **at, size_t *bytes, size_t size) {
    char *taken = *at;
    size = (size + 127) / 64 * 64; /* vectors may reach past the end */
    *bytes += size;
    if (taken) *at += size;
    return taken;
}

static void mg_take_plane(char **at, size_t *bytes, mg_plane *plane, size_t count, int32_t raw) {
    plane->value = raw ? NULL : mg_take(at, bytes, count * sizeof(float));
    plane->exponent = raw ? NULL : mg_take(at, bytes, count * sizeof(int32_t));
    plane->raw = raw ? mg_take(at, bytes, count * (size_t)raw) : NULL;
}

/* Lays the scratch out; with a null `at` it only counts the bytes. */
static size_t mg_lay_out(mg_worker *w, char *at) {
    const mg_program *p = w->program;
    mg_tile *t = &w->tile;
    const size_t k = (size_t)p->k, scales = (size_t)w->scales;
    size_t bytes = 0;
    w->metadata = mg_take(&at, &bytes, (size_t)w->nibbles);
    w->codes = mg_take(&at, &bytes, (2 * k + 2 * scales) * sizeof(uint64_t));
    w->workspace = mg_take(&at, &bytes, mg_workspace_bytes(p));
    if (!w->kernel) return bytes;
    const size_t columns = (size_t)t->columns, rows = (size_t)t->rows, a_rows = t->per_lane ? columns : rows, b_rows = t->per_lane ? k : (size_t)p->logical_k;
    const int32_t raw = p->operations[0].fast == MG_FAST_FMA ? p->a.storage / 8 : 0;
    mg_take_plane(&at, &bytes, &t->a, a_rows * k, raw);
    mg_take_plane(&at, &bytes, &t->b, b_rows * columns, raw);
    mg_take_plane(&at, &bytes, &t->scale_a, a_rows * scales, 0);
    mg_take_plane(&at, &bytes, &t->scale_b, scales * columns, 0);
    t->row_of_b = mg_take(&at, &bytes, (t->row_step ? rows : 1) * k * sizeof(ptrdiff_t));
    w->selected = mg_take(&at, &bytes, MG_MOST_LANES * k * sizeof(int32_t));
    w->c = mg_take(&at, &bytes, rows * columns * 8);
    w->d = mg_take(&at, &bytes, rows * columns * 8);
    for (int i = 0; i < 4; i++) w->gathered[i] = mg_take(&at, &bytes, MG_MOST_LANES * (i < 2 ? k : scales) * 8);
    for (int32_t i = 0; at && i < p->k; i++) t->row_of_b[i] = (ptrdiff_t)i * t->columns;
    return bytes;
}

static int mg_prepare(mg_worker *w, const mg_program *program, const mg_call *call, const mg_watch *watch) {
    memset(w, 0, sizeof *w);
    w->program = program;
    w->call = call;
    w->watch = watch;
    w->scales = program->scale_block ? program->k / program->scale_block : 0;
    w->nibbles = mg_metadata_columns(program);
    if (program->all_fast && !call->force_general && !call->flags.data && !watch) mg_plan_tile(w);
    const size_t bytes = mg_lay_out(w, NULL);
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
    int64_t share = ((total + threads - 1) / threads + MG_MOST_LANES - 1) / MG_MOST_LANES * MG_MOST_LANES, started = 0, prepared = 0;
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

void mg_build_table(const mg_format *format, const mg_format *target, mg_table *table) {
    table->looked_up = target || (format->is_float && (format->sign_shift < 0 || !format->has_zero));
    for (int32_t code = 0; code < 256; code++) {
        mg_number x = mg_decode(format, (uint64_t)code);
        if (target) x = mg_convert(target, &x);
        const int finite = x.kind == MG_FINITE;
        const float magnitude = x.kind == MG_NAN ? NAN : x.kind == MG_INFINITY ? INFINITY : ldexpf((float)x.significand, -x.fraction_bits);
        table->significand[code] = x.sign ? -magnitude : magnitude;
        table->value[code] = finite ? ldexpf(table->significand[code], x.exponent) : table->significand[code];
        table->exponent[code] = x.kind == MG_ZERO ? MG_E_ZERO : finite ? x.exponent : MG_E_SPECIAL;
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
