// The same idea one generation on: one thread has the bulk tensor copy engine (TMA) fill STAGES stages, two warpgroups
// multiply them with wgmma, 64 rows each. Tiles lie in shared memory as 128 bytes a row, the copy engine permutes their
// chunks (SWIZZLE_128B). In a cluster of two blocks, which have the same columns, each copies half of B for both.
#include <cuda.h>

enum {
    A_BYTES = TILE_M * 2 * TILE_K,
    B_BYTES = TILE_N * 2 * TILE_K,
    STAGE_BYTES = A_BYTES + B_BYTES,
    CONSUMERS = TILE_M / 64,
    REGISTERS = TILE_N / 2,
};

// Barriers: full[i] is complete when both tiles of stage i have come, empty[i] when nobody reads it any more.
static __device__ __forceinline__ void make_barrier(u32 barrier, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
static __device__ __forceinline__ void expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void arrive(u32 barrier, u32 block)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 "  mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
                 "r"(block)
                 : "memory");
}
static __device__ __forceinline__ void wait(u32 barrier, u32 phase)
{
    asm volatile("{ .reg .pred done;\n"
                 "again:\n"
                 "  mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "  @!done bra again; }" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}
// Maps lie in global memory, where the host has written them.
static __device__ __forceinline__ void acquire(const CUtensorMap *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}
static __device__ __forceinline__ void copy_tile(u32 to, const CUtensorMap *map, u32 barrier, u32 at, u32 row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                     "r"(to), "l"(map), "r"(barrier), "r"(at), "r"(row)
                 : "memory");
}
static __device__ __forceinline__ void copy_tile_to_all(u32 to, const CUtensorMap *map, u32 barrier, u32 at, u32 row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(at), "r"(row), "h"((uint16_t)((1 << CLUSTER) - 1))
                 : "memory");
}
static __device__ __forceinline__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Descriptor of K-major rows of 128 bytes, swizzled: 8 rows are 1024 bytes (PTX ISA, matrix descriptor of wgmma).
static __device__ __forceinline__ u64 swizzled(u32 address)
{
    return (u64)((address & 0x3FFFF) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

static __device__ __forceinline__ void produce(const CUtensorMap *a, const CUtensorMap *b, u32 tiles, u32 full, u32 empty,
                                               u32 row, u32 column, u32 k)
{
    const u32 block = CLUSTER == 1 ? 0 : blockIdx.x % CLUSTER, part = TILE_N / CLUSTER;
    u32 stage = 0, phase = 1;
    acquire(a), acquire(b);
#pragma unroll 1
    for (u32 at = 0; at < k; at += TILE_K) {
        const u32 to = tiles + stage * STAGE_BYTES;
        wait(empty + 8 * stage, phase);
        expect(full + 8 * stage, STAGE_BYTES);
        copy_tile(to, a, full + 8 * stage, at, row);
        if (CLUSTER == 1)
            copy_tile(to + A_BYTES, b, full + 8 * stage, at, column);
        else
            copy_tile_to_all(to + A_BYTES + block * part * 2 * TILE_K, b, full + 8 * stage, at, column + block * part);
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
}

static __device__ __forceinline__ void consume(float (&sum)[REGISTERS], u32 tiles, u32 full, u32 empty, u32 half, u32 k)
{
    u32 stage = 0, phase = 0, before = 0;
#pragma unroll 1
    for (u32 at = 0; at < k; at += TILE_K) {
        const u32 from = tiles + stage * STAGE_BYTES;
        const u64 at_a = swizzled(from + half * 64 * 2 * TILE_K), at_b = swizzled(from + A_BYTES);
        wait(full + 8 * stage, phase);
        wgmma_begin();
#pragma unroll
        for (int k16 = 0; k16 < TILE_K / 16; k16++) // 16 elements are 32 bytes, 2 units of the descriptor
            mma(sum, at_a + 2 * k16, at_b + 2 * k16);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the step before has been read
        if (at > 0 && threadIdx.x % 128 < CLUSTER)
            arrive(empty + 8 * before, threadIdx.x % 128);
        before = stage;
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    run(const CUtensorMap *a, const CUtensorMap *b, float *d, u64 *clocks, u32 m, u32 n, u32 k)
{
    extern __shared__ __align__(1024) u8 tiles[];
    const Time start = now();
    const u32 first = shared_address(tiles), full = first + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;
    u32 row, column;
    tile_of_block(m, n, row, column);
    if (threadIdx.x == 0) {
        if (first % 1024 != 0) // the copy engine and wgmma would permute differently
            __trap();
        for (int i = 0; i < STAGES; i++) {
            make_barrier(full + 8 * i, 1);
            make_barrier(empty + 8 * i, CONSUMERS * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    meet();
    const u32 group = threadIdx.x / 128;
    if (group == CONSUMERS) {
        if (threadIdx.x % 128 == 0)
            produce(a, b, first, full, empty, row, column, k);
    } else {
        float sum[REGISTERS];
#pragma unroll
        for (int i = 0; i < REGISTERS; i++)
            sum[i] = 0;
        consume(sum, first, full, empty, group, k);
        const u32 mine = row + threadIdx.x / 32 * 16;
#pragma unroll
        for (int j = 0; j < REGISTERS / 4; j++)
            store_16x8(d, n, mine, column + 8 * j, make_float4(sum[4 * j], sum[4 * j + 1], sum[4 * j + 2], sum[4 * j + 3]));
    }
    __syncwarp();
    meet(); // no block ends while another one copies into it or signals it
    if (threadIdx.x == 0)
        write_clocks(clocks, start);
}
