/* The fast form and blocks for any machine: SSE2 on x86-64, NEON on aarch64. */
#define MG_V 4
#include "mg_tile.h"
#include "mg_block.h"
#include "mg_real.h"

const mg_kernels mg_kernels_portable = {
    "portable", {&(const mg_tile_kernel)MG_TILE_KERNEL(NULL)}, MG_BLOCK_LANES, mg_run_block_steps,
    mg_run_real_block, NULL};
