/* Observing: every number that the general interpreter reads and makes, written into a caller's buffer.
 *
 * What the records are, the interpreter itself says: it runs once over zeros with a watch that describes instead of
 * writing (mg_watch.h), so that no second text has to know its order.
 */
#include <stdlib.h>
#include <string.h>

#include "mg_internal.h"
#include "mg_watch.h"

/* Describes the records of a program; `layout` has room for `most`. Returns how many there are, -1 when memory is
 * short. */
static int32_t mg_describe(const mg_program *program, mg_record *layout, int32_t most) {
    const size_t codes = 2 * (size_t)program->k +
        2 * (size_t)(program->scale_block ? program->k / program->scale_block : 0) + 1;
    uint64_t *zeros = calloc(codes, sizeof *zeros);
    void *workspace = malloc(mg_workspace_bytes(program));
    mg_watch watch = {.layout = layout, .count = layout ? most : 0, .describing = 1};
    if (zeros && workspace) {
        const uint64_t *scale_a = zeros + 2 * (size_t)program->k;
        mg_dot_in(workspace, program, zeros, zeros + program->k, 0, scale_a, scale_a, &watch, NULL);
    }
    const int32_t found = zeros && workspace ? watch.at : -1;
    free(zeros);
    free(workspace);
    return found;
}

int32_t mg_observe_layout(const mg_program *program, mg_record *layout, int32_t most) {
    return mg_describe(program, layout, most);
}

int mg_observe(const mg_program *program, const mg_call *call, void *records, int32_t count) {
    int64_t dots = 1;
    for (int32_t d = 0; d < call->batch_dims; d++) dots *= call->batch_shape[d];
    mg_record *layout = malloc(((size_t)count + 1) * sizeof *layout);
    int32_t *ends = calloc((size_t)program->operation_count + 1, sizeof *ends);
    int status = -1;
    if (layout && ends) {
        const int32_t found = mg_describe(program, layout, count);
        status = found < 0 ? -1 : found == count && call->m == 1 && call->n == 1 ? 0 : -2;
    }
    if (status == 0) {
        for (int32_t i = 0; i < count; i++) ends[layout[i].operation] = i + 1;
        const mg_watch watch = {.records = records, .stride = dots, .count = count, .ends = ends};
        status = mg_run_watched(program, call, &watch);
    }
    free(layout);
    free(ends);
    return status;
}

#define MG_DESCRIBE_FIELD(type, name) \
    {#name, (int32_t)offsetof(mg_number, name), (int32_t)sizeof(type), (type) - 1 < (type)1},

int32_t mg_number_fields(mg_field *fields, int32_t most, int64_t *size) {
    static const mg_field all[] = {MG_NUMBER_FIELDS(MG_DESCRIBE_FIELD)};
    const int32_t count = (int32_t)(sizeof all / sizeof *all);
    for (int32_t i = 0; i < count && i < most; i++) fields[i] = all[i];
    *size = (int64_t)sizeof(mg_number);
    return count;
}

void mg_decode_codes(const mg_format *format, const uint64_t *codes, int64_t count, void *numbers) {
    mg_number *out = numbers;
    for (int64_t i = 0; i < count; i++) out[i] = mg_decode(format, codes[i]);
}
