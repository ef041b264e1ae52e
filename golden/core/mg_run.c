/* Batches: whole matrices or lanes for the fast form, single dot products for the interpreter, threads. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_number.h"
#include "mg_watch.h"

/* Matrices, of which the first `next` have been begun: a thread takes some at a time, so that one that begins late, or
 * is interrupted, does fewer. */
typedef struct {
    int64_t next, total, some;
} mg_queue;

/* One thread, and its scratch. */
typedef struct {
    mg_queue *queue;
    const mg_program *program;
    const mg_call *call;
    mg_fast_form *fast;   /* or null */
    mg_block_form *block; /* or null */
    mg_lanes lanes;
    int32_t scales;  /* of a dot product */
    uint64_t *codes; /* of one dot product: a, b, scales of a, scales of b */
    void *workspace, *memory;
    const mg_watch *watch; /* who observes, pointing at the first dot product, or null */
    int wrong;             /* an observed program had another number of records */
    int status;            /* as mg_run returns it */
} mg_worker;

/* One lane by the general interpreter; it is element `index` of D. */
static void mg_run_lane(mg_worker *w, int32_t lane, int64_t index) {
    const mg_program *p = w->program;
    const mg_lanes *lanes = &w->lanes;
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
    const uint64_t d = mg_dot_in(w->workspace, p, a_codes, b_codes, c, scales, scales + w->scales,
        w->watch ? &seen : NULL, call->flags.data ? &raised : NULL);
    mg_store(mg_lane_at(lanes, MG_OPERAND_D, lane), p->d.storage, d);
    if (call->flags.data) *mg_lane_at(lanes, MG_OPERAND_FLAGS, lane) = (char)raised;
    if (w->watch) w->wrong |= seen.wrong;
}

/* Elements first ... last of D in lanes: by the fast form or in a block, and what that leaves by the interpreter. */
static void mg_run_elements(mg_worker *w, int64_t first, int64_t last) {
    mg_lanes *lanes = &w->lanes;
    for (int64_t i = first; i < last; i += lanes->count) {
        uint64_t left = ~UINT64_C(0);
        mg_point(w->program, w->call, i, last, lanes);
#ifndef MG_GENERAL_ONLY
        if (w->block) left = mg_run_block(w->block, lanes);
        if (w->fast) {
            mg_run_lanes(w->fast, lanes);
            continue;
        }
#endif
        for (int32_t l = 0; left && l < lanes->used; l++)
            if (left >> l & 1) mg_run_lane(w, l, i + l);
    }
}

#ifndef MG_DIGEST
#define MG_DIGEST ""
#endif
const char *mg_digest(void) { return MG_DIGEST; }

static int mg_prepare(mg_worker *w) {
    const mg_program *program = w->program;
    w->lanes.count = MG_LANES;
    w->scales = program->scale_block ? program->k / program->scale_block : 0;
    const size_t k = (size_t)program->k, codes = (2 * k + 2 * (size_t)w->scales) * sizeof(uint64_t);
    const size_t selected = program->sparsity ? MG_MOST_BLOCK_LANES * k : 0,
                 workspace = (mg_workspace_bytes(program) + 63) / 64 * 64;
    w->memory = malloc(workspace + codes + selected * sizeof(int32_t));
    if (!w->memory) return -1;
    w->workspace = w->memory;
    w->codes = (uint64_t *)((char *)w->memory + workspace);
    w->lanes.selected = (int32_t *)(w->codes + codes / sizeof(uint64_t));
#ifndef MG_GENERAL_ONLY
    if (w->call->force_general || w->call->flags.data || w->watch) return 0;
    if (program->all_fast && program->operation_count <= MG_TILE_OPERATIONS) {
        w->fast = mg_fast_new(program, w->call);
        if (w->fast && mg_fast_lanes(w->fast)) w->lanes.count = mg_fast_lanes(w->fast);
        return w->fast ? 0 : -1;
    }
    if (mg_fits_block(program)) {
        w->block = mg_block_new(program, w->call);
        if (w->block) w->lanes.count = mg_block_lanes(w->block);
        return w->block ? 0 : -1;
    }
#endif
    return 0;
}

/* Matrices from the queue, until it is empty. */
static void mg_run_queue(mg_worker *w) {
    const int64_t size = (int64_t)w->call->m * w->call->n;
    int64_t first;
    while ((first = __atomic_fetch_add(&w->queue->next, w->queue->some, __ATOMIC_RELAXED)) < w->queue->total) {
        const int64_t last = first + w->queue->some < w->queue->total ? first + w->queue->some : w->queue->total;
#ifndef MG_GENERAL_ONLY /* the model that is exported for simulators has the interpreter alone */
        if (w->fast && !mg_fast_lanes(w->fast)) mg_run_matrices(w->fast, first, last);
        else
#endif
            mg_run_elements(w, first * size, last * size);
    }
}

void mg_work(void *worker) {
    mg_worker *w = worker;
    fenv_t environment;
    /* A host program may flush subnormals or round otherwise; the fast form computes on floats and needs the IEEE
     * defaults. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    w->status = mg_prepare(w);
    if (w->status == 0) mg_run_queue(w);
    if (w->status == 0 && w->wrong) w->status = -2;
    fesetenv(&environment);
    free(w->memory);
    free(w->fast);
    free(w->block);
}

#define MG_PARTS 8 /* of the matrices, for a thread */

/* Dot products that are worth another thread: what take some tens of microseconds. */
static int64_t mg_least(const mg_program *p, const mg_call *call, const mg_watch *watch) {
    if (watch || call->force_general || call->flags.data) return 512;
    return p->all_fast ? 16384 : 4096;
}

int mg_run(const mg_program *program, const mg_call *call) { return mg_run_watched(program, call, NULL); }

int mg_run_watched(const mg_program *program, const mg_call *call, const mg_watch *watch) {
    int64_t total = 1;
    for (int32_t d = 0; d < call->batch_dims; d++) total *= call->batch_shape[d];
    if (total == 0) return 0;
    const int64_t size = (int64_t)call->m * call->n,
                  many = size < MG_MOST_BLOCK_LANES ? MG_MOST_BLOCK_LANES : 1; /* fill a block */
    int64_t threads = call->threads > MG_MAX_THREADS ? MG_MAX_THREADS : call->threads;
    if (threads > total * size / mg_least(program, call, watch))
        threads = total * size / mg_least(program, call, watch);
    if (threads > total) threads = total;
    if (threads < 1) threads = 1;
    const int64_t parts = threads == 1 ? 1 : threads * MG_PARTS;
    mg_queue queue = {0, total, ((total + parts - 1) / parts + many - 1) / many * many};
    mg_worker *workers = malloc((size_t)threads * sizeof *workers);
    if (!workers) return -1;
    for (int64_t i = 0; i < threads; i++)
        workers[i] = (mg_worker){.queue = &queue, .program = program, .call = call, .watch = watch};
#ifdef MG_GENERAL_ONLY
    mg_work(workers);
#else
    mg_share((char *)workers, sizeof *workers, (int)threads);
#endif
    int status = workers[0].status; /* 0: all is done, even if others lacked memory to help */
    for (int64_t i = 0; i < threads; i++)
        if (workers[i].status == -2) status = -2;
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
