
// {{ title }}: once, and a use of its result, between two readings of the clock
extern "C" __global__ void {{ name }}(const u32 *data, u64 *clocks, u32 *sink, u32)
{
    __shared__ {{ word }} used[1024];
    const u32 lane = threadIdx.x % 32;
{{ setup }}
    u64 start, stop;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) { // pass 0 brings the code into the instruction cache
        __syncthreads();
        start = now();
{{ step }}
        *(volatile {{ word }} *)(used + threadIdx.x) = d[0][{{ last }}];
        stop = now();
    }
    if (lane == 0) {
        clocks[threadIdx.x / 32 * 2] = start;
        clocks[threadIdx.x / 32 * 2 + 1] = stop;
    }
{{ finish }}
}
