/* Batches: whole matrices or lanes for the fast form, single dot products for the interpreter, threads. */
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"
#include "mg_watch.h"

/* One thread, and its scratch. */
typedef struct {
    const mg_program *program;
    const mg_call *call;
    mg_fast_form *fast;   /* or null */
    mg_block_form *block; /* or null */
    mg_lanes lanes[MG_BLOCK_LANES / MG_LANES]; /* all of them for a block, else the first */
    int32_t scales;  /* of a dot product */
    uint64_t *codes; /* of one dot product: a, b, scales of a, scales of b */
    void *workspace, *memory;
    int64_t first, last;
    const mg_watch *watch; /* who observes, pointing at the first dot product, or null */
    int wrong;             /* an observed program had another number of records */
} mg_worker;

/* One lane by the general interpreter; it is element `index` of D. */
static void mg_run_lane(mg_worker *w, const mg_lanes *lanes, int32_t lane, int64_t index) {
    const mg_program *p = w->program;
    const mg_call *call = w->call;
    const char *at[MG_OPERANDS];
    const int32_t *rows = p->sparsity ? lanes->selected + lane * p->k : NULL;
    for (int i = 0; i < MG_OPERANDS; i++) at[i] = mg_lane_at(lanes, i, lane);
    uint64_t *a_codes = w->codes, *b_codes = a_codes + p->k, *scales = b_codes + p->k;
    for (int32_t k = 0; k < p->k; k++) {
        a_codes[k] = mg_load(at[MG_OPERAND_A] + k * call->a.column, p->a.storage);
        b_codes[k] = mg_load(at[MG_OPERAND_B] + (rows ? rows[k] : k) * call->b.row, p->b.storage);
    }
    for (int32_t s = 0; s < w->scales; s++) {
        scales[s] = mg_load(at[MG_OPERAND_SCALE_A] + s * call->scale_a.column, p->scale_a.storage);
        scales[w->scales + s] = mg_load(at[MG_OPERAND_SCALE_B] + s * call->scale_b.row, p->scale_b.storage);
    }
    const uint64_t c = mg_load(at[MG_OPERAND_C], p->c.storage);
    uint32_t raised = 0;
    mg_watch seen;
    if (w->watch) {
        seen = *w->watch;
        seen.records += index;
    }
    const uint64_t d = mg_dot_in(w->workspace, p, a_codes, b_codes, c, scales, scales + w->scales, w->watch ? &seen : NULL,
                                 call->flags.data ? &raised : NULL);
    mg_store(mg_lane_at(lanes, MG_OPERAND_D, lane), p->d.storage, d);
    if (call->flags.data) *mg_lane_at(lanes, MG_OPERAND_FLAGS, lane) = (char)raised;
    if (w->watch) w->wrong |= seen.wrong;
}

/* Elements first ... last of D in lanes: by the fast form or in a block, and what that leaves by the interpreter. */
static void mg_run_elements(mg_worker *w, int64_t first, int64_t last) {
    const int32_t lanes = w->block ? MG_BLOCK_LANES : MG_LANES;
    for (int64_t i = first; i < last; i += lanes) {
        uint32_t left = ~UINT32_C(0);
        for (int32_t l = 0; l < lanes; l += MG_LANES) { /* those beyond the last repeat the first */
            const int64_t from = i + l < last ? i + l : i;
            mg_point(w->program, w->call, from, (int32_t)(last - from < MG_LANES ? last - from : MG_LANES), &w->lanes[l / MG_LANES]);
        }
#ifndef MG_GENERAL_ONLY
        if (w->block) left = mg_run_block(w->block, w->lanes);
        if (w->fast) {
            mg_run_lanes(w->fast, w->lanes);
            continue;
        }
#endif
        for (int32_t l = 0; left && l < lanes && i + l < last; l++)
            if (left >> l & 1) mg_run_lane(w, &w->lanes[l / MG_LANES], l % MG_LANES, i + l);
    }
}

static void *mg_work(void *argument) {
    mg_worker *w = argument;
    const int64_t size = (int64_t)w->call->m * w->call->n;
    fenv_t environment;
    /* A host program may flush subnormals or round otherwise; the fast form computes on floats and needs the IEEE defaults. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    int64_t first = w->first;
#ifndef MG_GENERAL_ONLY /* the model exported for simulators (golden/vectors/dpi.py) has the general interpreter alone */
    for (; w->fast && mg_takes_matrices(w->fast) && first < w->last; first++) mg_run_matrices(w->fast, first);
#endif
    mg_run_elements(w, first * size, w->last * size);
    fesetenv(&environment);
    return NULL;
}

#ifndef MG_DIGEST
#define MG_DIGEST ""
#endif
const char *mg_digest(void) { return MG_DIGEST; }

static int mg_prepare(mg_worker *w, const mg_program *program, const mg_call *call, const mg_watch *watch) {
    w->program = program;
    w->call = call;
    w->watch = watch;
    w->scales = program->scale_block ? program->k / program->scale_block : 0;
    const size_t k = (size_t)program->k, codes = (2 * k + 2 * (size_t)w->scales) * sizeof(uint64_t);
    const size_t selected = program->sparsity ? MG_LANES * k : 0, parts = MG_BLOCK_LANES / MG_LANES, workspace = (mg_workspace_bytes(program) + 63) / 64 * 64;
    w->memory = malloc(workspace + codes + parts * selected * sizeof(int32_t));
    if (!w->memory) return -1;
    w->workspace = w->memory;
    w->codes = (uint64_t *)((char *)w->memory + workspace);
    for (size_t part = 0; part < parts; part++) w->lanes[part].selected = (int32_t *)(w->codes + codes / sizeof(uint64_t)) + part * selected;
#ifndef MG_GENERAL_ONLY
    if (call->force_general || call->flags.data || watch) return 0;
    if (program->all_fast && program->operation_count <= MG_TILE_OPERATIONS) {
        w->fast = mg_fast_new(program, call);
        return w->fast ? 0 : -1;
    }
    if (mg_fits_block(program)) {
        w->block = mg_block_new(program, call);
        return w->block ? 0 : -1;
    }
#endif
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
    mg_worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t handles[MG_MAX_THREADS];
    if (!workers) return -1;
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
        free(workers[i].fast);
        free(workers[i].block);
    }
    free(workers);
    return status;
}

int mg_abi_version(void) { return MG_ABI_VERSION; }

void mg_struct_sizes(int64_t sizes[5]) {
    sizes[0] = (int64_t)sizeof(mg_format);
    sizes[1] = (int64_t)sizeof(mg_step);
    sizes[2] = (int64_t)sizeof(mg_operation);
    sizes[3] = (int64_t)sizeof(mg_program);
    sizes[4] = (int64_t)sizeof(mg_call);
}
