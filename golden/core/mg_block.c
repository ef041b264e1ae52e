/* The block form of a program, for one thread: which programs fit it, its scratch, codes in and out. */
#include <stdlib.h>

#include "mg_internal.h"

/* mg_block.h runs these kinds of steps, with these members: a new one has to be written there, and counted here.
 * (mg_real.h runs what golden/model/doubles.py lets in.) */
_Static_assert(MG_STEP_COUNT == 13 && sizeof(mg_step) == 632, "a step that mg_block.h does not know");

struct mg_block_form {
    const mg_program *program;
    const mg_call *call;
    mg_block_runner run;
    mg_block_codes codes;
    void *memory;
    int32_t lanes;
    int fresh;
};

/* What a significand of one word, or of two, has room for: bits of a product, of F. */
typedef struct {
    int wide, storage, fraction_bits, operand, product, aligned;
} mg_room;

/* Floats with a zero and some normal number, integers where a word is enough; of 64 bits those of which no field
 * reaches the sign of a word. */
static int mg_fits_format(const mg_format *f, const mg_room *room) {
    const int ordinary = f->is_float ? f->has_zero && f->largest >> f->ignored_low >> f->fraction_bits : !room->wide;
    const int fields = f->storage <= 32 ||
        (f->sign_shift >= 0 && (f->specials == MG_SPECIALS_IEEE || f->exponent_bits + f->fraction_bits < 63));
    return f->storage <= room->storage && f->fraction_bits <= room->fraction_bits && ordinary && fields;
}

/* Bits of a significand. */
static int mg_width(const mg_format *f) { return f->is_float ? f->fraction_bits + 1 : f->bits; }

/* Two words have no registers of a width, nor AND and XOR of codes. */
static int mg_fits_step(const mg_step *step, const mg_room *room) {
    if (step->format.storage && !mg_fits_format(&step->format, room)) return 0;
    if (step->op == MG_STEP_SCALE && (step->by != MG_SIDE_BOTH || step->has_power)) return 0;
    if (step->op == MG_STEP_ROUND && step->has_random_bits) return 0;
    if (step->op == MG_STEP_PART && step->bits > room->operand) return 0;
    if (step->op == MG_STEP_REPLACE && step->places > room->aligned - 31) return 0;
    for (int r = 0; r < MG_BLOCK_TERMS; r++)
        if (step->fraction_bits[r] > room->aligned) return 0;
    return !room->wide ||
        (!step->has_width && (step->op != MG_STEP_MULTIPLY || step->operation == MG_OPERATION_PRODUCT));
}

/* Whether significands hold what this program reads and rounds to (scales have 8 bits of storage); what its sums need,
 * each lane finds out. */
static int mg_fits_room(const mg_program *p, const mg_room *room) {
    if (p->a.lone_zero || p->b.lone_zero || p->scale_a.lone_zero || p->scale_b.lone_zero) return 0;
    if (p->k > 128 || mg_width(&p->a) + mg_width(&p->b) > room->product || p->a.storage > room->storage ||
        p->b.storage > room->storage)
        return 0;
    if (room->wide && (!mg_fits_format(&p->a, room) || !mg_fits_format(&p->b, room))) return 0;
    if (!mg_fits_format(&p->c, room) || !mg_fits_format(&p->d, room)) return 0;
    for (int32_t i = 0; i < p->operation_count; i++) {
        const mg_operation *o = &p->operations[i];
        if (!mg_fits_format(&o->seed_format, room) || !mg_fits_format(&o->out_format, room)) return 0;
        if (o->has_operand_format &&
            (!mg_fits_format(&o->operand_format, room) || mg_width(&o->operand_format) > room->operand))
            return 0;
        for (int32_t j = 0; j < o->step_count; j++)
            if (!mg_fits_step(&o->steps[j], room)) return 0;
    }
    return 1;
}

int mg_fits_block(const mg_program *p) {
    static const mg_room one = {0, 32, MG_MOST_FRACTION_BITS, 25, 50, 58},
                         two = {1, 64, MG_MOST_WIDE_FRACTION_BITS, 55, 110, 116};
    if (mg_fits_room(p, &one)) return MG_FITS_BLOCK;
    return mg_choose()->run_wide_block && mg_fits_room(p, &two) ? MG_FITS_WIDE_BLOCK : MG_FITS_NO_BLOCK;
}

mg_block_form *mg_block_new(const mg_program *p, const mg_call *call) {
    const int wide = mg_fits_block(p) == MG_FITS_WIDE_BLOCK;
    const mg_kernels *kernels = mg_choose();
    const int32_t lanes = wide ? MG_WIDE_BLOCK_LANES : kernels->block_lanes;
    const size_t word = (size_t)lanes * sizeof(int64_t);
    const size_t slots = MG_BLOCK_SLOTS(p), number = (wide ? 7 : 6) * word,
                 scales = p->scale_block ? (size_t)(p->k / p->scale_block) : 0;
    const size_t numbers = (MG_REGISTER_COUNT + MG_BLOCK_SUMS) * slots * number,
                 results = ((size_t)p->operation_count + 2) * word;
    const size_t terms = MG_BLOCK_TERMS * slots * (2 * sizeof(void *) + sizeof(int32_t)), row = wide ? word : word / 2;
    size_t rounders = 0;
    for (int32_t i = 0; i < p->operation_count; i++) rounders += (size_t)p->operations[i].step_count * MG_BLOCK_ROUNDER;
    mg_block_form *f = malloc(
        sizeof *f + 64 + numbers + results + terms + rounders + (2 * (size_t)p->k + 2 + 2 * scales) * row);
    if (!f) return NULL;
    const mg_block_runner run = wide ? kernels->run_wide_block
        : p->in_doubles ? kernels->run_real_block
                                     : kernels->run_block;
    *f = (mg_block_form){.program = p, .call = call, .run = run, .lanes = lanes, .fresh = 1};
    char **const codes[] = {&f->codes.a, &f->codes.b, &f->codes.scale_a, &f->codes.scale_b, &f->codes.c, &f->codes.d};
    const size_t rows[] = {(size_t)p->k, (size_t)p->k, scales, scales, 1, 1};
    char *at = (char *)(((uintptr_t)(f + 1) + 63) / 64 * 64);
    for (int i = 0; i < 6; at += rows[i++] * row) *codes[i] = at; /* no vector of them across two lines of a cache */
    f->memory = at;
    return f;
}

int32_t mg_block_lanes(const mg_block_form *f) { return f->lanes; }

uint64_t mg_run_block(mg_block_form *f, const mg_lanes *lanes) {
    const mg_program *p = f->program;
    const struct {
        int operand;
        char *codes;
    } all[] = {{MG_OPERAND_A, f->codes.a}, {MG_OPERAND_B, f->codes.b}, {MG_OPERAND_C, f->codes.c},
        {MG_OPERAND_SCALE_A, f->codes.scale_a}, {MG_OPERAND_SCALE_B, f->codes.scale_b}};
    for (int i = 0; i < (p->scale_block ? 5 : 3); i++)
        mg_gather(p, f->call, lanes, all[i].operand, all[i].codes);
    const uint64_t left = f->run(f->memory, f->fresh, p, &f->codes);
    f->fresh = 0;
    mg_scatter(p, lanes, f->codes.d);
    return left;
}
