// mma_baseline.cu and, with PERMUTED, mma_permuted.cu of W. Sun et al., appendix A: every step of K waits for its copy.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    run(const bf16 *a, const bf16 *b, float *d, u64 *clocks, u32 m, u32 n, u32 k)
{
    __shared__ __align__(128) u8 tiles[STAGE_BYTES];
    const Time start = now();
    u32 row, column;
    tile_of_block(m, n, row, column);
    const Tiles from(a, b, row, column, k);
    Accumulators sums;
#pragma unroll 1
    for (u32 at = 0; at < k; at += TILE_K) {
        uint4 held[COPIES_A + COPIES_B];
#pragma unroll
        for (int i = 0; i < COPIES_A; i++)
            held[i] = *(const uint4 *)from.from_a(i, at);
#pragma unroll
        for (int i = 0; i < COPIES_B; i++)
            held[COPIES_A + i] = *(const uint4 *)from.from_b(i, at);
        __syncthreads(); // the step before has been read
#pragma unroll
        for (int i = 0; i < COPIES_A; i++)
            *(uint4 *)(tiles + copied(threadIdx.x + i * THREADS)) = held[i];
#pragma unroll
        for (int i = 0; i < COPIES_B; i++)
            *(uint4 *)(tiles + TILE_M * ROW_BYTES + copied(threadIdx.x + i * THREADS)) = held[COPIES_A + i];
        __syncthreads();
        sums.multiply(shared_address(tiles));
    }
    sums.store(d, n, row, column);
    __syncthreads();
    if (threadIdx.x == 0)
        write_clocks(clocks, start);
}
