
// {{ title }}: a chain through C as the public benchmarks of W. Sun et al. have it: no pass before, the result a
// register of its own, a clock of 32 bits
extern "C" __global__ void {{ name }}(const u32 *data, u64 *clocks, u32 *sink, u32 turns)
{
    const u32 lane = threadIdx.x % 32;
{{ setup }}
    u32 start, stop;
    __syncthreads();
    asm volatile("mov.u32 %0, %%clock;" : "=r"(start)::"memory");
#pragma unroll {{ unroll }}
    for (u32 round = 0; round < {{ rounds }}; round++) {
        mma(d[0], a, b, c);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < {{ count }}; j++)
            c[j] = d[0][j];
    }
    asm volatile("mov.u32 %0, %%clock;" : "=r"(stop)::"memory");
    if (lane == 0) {
        clocks[threadIdx.x / 32 * 2] = 1;
        clocks[threadIdx.x / 32 * 2 + 1] = 1 + (stop - start);
    }
{{ finish }}
    if (!turns)
        sink[0] = 0;
}
