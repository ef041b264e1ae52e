
// Four columns of this warp's lanes of tensor memory, and the meeting of the two CTAs of a pair.
static __device__ __forceinline__ void tensor_store(u32 at, const u32 *of)
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], { %1,%2,%3,%4 };"
                 ::"r"(at), "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3]) : "memory");
}
static __device__ __forceinline__ void tensor_load(u32 *to, u32 at)
{
    u32 of[4];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 { %0,%1,%2,%3 }, [%4];"
                 : "=r"(of[0]), "=r"(of[1]), "=r"(of[2]), "=r"(of[3]) : "r"(at));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = of[i];
}
static __device__ __forceinline__ void pair_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
