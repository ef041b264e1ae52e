/* What the core's translation units share; not part of the C ABI. */
#ifndef MG_INTERNAL_H
#define MG_INTERNAL_H

#include <stddef.h>

#include "mmagold.h"

#define MG_LANES 16

/* Bytes of scratch that mg_dot_in needs; aligned for any type. */
size_t mg_workspace_bytes(const mg_program *program);
uint64_t mg_dot_in(void *workspace, const mg_program *program, const uint64_t *a, const uint64_t *b, uint64_t c,
                   const uint64_t *scale_a, const uint64_t *scale_b);

#endif
