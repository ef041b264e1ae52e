/* The fast form for any machine: SSE2 on x86-64, NEON on aarch64. */
#include <math.h>
#include <string.h>

#include "mg_internal.h"

#define MG_V 4
#include "mg_tile.h"

const mg_tile_kernels mg_tiles_portable = {"portable", {{4, mg_run_tile_4, mg_decode_plane_4}}};
