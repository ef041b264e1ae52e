/* Lane kernels for any machine: SSE2 on x86-64, NEON on aarch64. */
#define MG_LANE_TABLE mg_lanes_portable
#define MG_LANE_NAME "portable"
#include "mg_lanes.h"
