// What the kernels with mma.sync share: four warps, each with 64 x 64 of the block's 128 x 128 accumulators.

enum { STAGE_BYTES = (TILE_M + TILE_N) * ROW_BYTES, COPIES_A = TILE_M * CHUNKS / THREADS, COPIES_B = TILE_N * CHUNKS / THREADS };

// The tiles of A and B of one step of K, and where a thread's first 16 bytes of each come from.
struct Tiles {
    const bf16 *a, *b;
    u32 k;

    __device__ Tiles(const bf16 *a, const bf16 *b, u32 row, u32 column, u32 k)
        : a(a + (size_t)(row + threadIdx.x / CHUNKS) * k + threadIdx.x % CHUNKS * 8),
          b(b + (size_t)(column + threadIdx.x / CHUNKS) * k + threadIdx.x % CHUNKS * 8), k(k)
    {
    }
    __device__ const bf16 *from_a(u32 i, u32 at) const { return a + (size_t)(i * (THREADS / CHUNKS)) * k + at; }
    __device__ const bf16 *from_b(u32 i, u32 at) const { return b + (size_t)(i * (THREADS / CHUNKS)) * k + at; }
};

static __device__ __forceinline__ void load_matrices(u32 (&to)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

struct Accumulators {
    u32 sum[4][8][4];

    __device__ Accumulators()
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[i][j][e] = 0;
    }

    // Adds the products of one stage: K ascending, one mma.m16n8k16 after the other on the same accumulators.
    __device__ __forceinline__ void multiply(u32 stage)
    {
        const u32 lane = threadIdx.x % 32, row = threadIdx.x / 32 / 2 * 64, column = threadIdx.x / 32 % 2 * 64;
#pragma unroll
        for (int k16 = 0; k16 < TILE_K / 16; k16++) {
            u32 a[4][4], b[4][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                load_matrices(a[i], stage + a_address(row + 16 * i, k16, lane));
#pragma unroll
            for (int j = 0; j < 4; j++)
                load_matrices(b[j], stage + TILE_M * ROW_BYTES + b_address(column + 16 * j, k16, lane));
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const u32 half[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
                    mma(sum[i][j], a[i], half, sum[i][j]);
                }
        }
    }

    static __device__ __forceinline__ float4 values(const u32 (&bits)[4])
    {
        return make_float4(__uint_as_float(bits[0]), __uint_as_float(bits[1]), __uint_as_float(bits[2]), __uint_as_float(bits[3]));
    }

    __device__ __forceinline__ void store(float *d, u32 n, u32 row, u32 column) const
    {
        row += threadIdx.x / 32 / 2 * 64, column += threadIdx.x / 32 % 2 * 64;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                store_16x8(d, n, row + 16 * i, column + 8 * j, values(sum[i][j]));
    }
};
