
// {{ instruction }}: A and B in shared memory, D (which holds C before) in tensor memory, a row a lane.
static __device__ __forceinline__ void {{ function }}(u32 d, u64 a, u64 b)
{
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; {{ text }} }" ::"r"(d), "l"(a), "l"(b), "r"({{ descriptor }}u));
}

extern "C" __global__ void __launch_bounds__(128)
{{ name }}(const u32 *a, const u32 *b, const u32 *c, const u32 *metadata, const u32 *scale_a, const u32 *scale_b, u32 *d,
    u32 count)
{
    __shared__ __align__(1024) u32 shared_a[{{ a_bytes }} / 4];
    __shared__ __align__(1024) u32 shared_b[{{ b_bytes }} / 4];
    __shared__ __align__(8) u64 barrier;
    __shared__ u32 allocated;
    const u32 arrived = (u32)__cvta_generic_to_shared(&barrier);
    const u32 warp = threadIdx.x / 32;
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], {{ columns }};"
                     ::"r"((u32)__cvta_generic_to_shared(&allocated)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const u32 tensor = allocated, own = tensor + (warp * 32 << 16); // a warp reaches the 32 lanes of its own
    u32 phase = 0;
    for (u32 tile = blockIdx.x; tile < count; tile += gridDim.x) {
        const size_t thread = (size_t)tile * 128 + threadIdx.x;
        for (u32 i = threadIdx.x; i < {{ a_bytes }} / 4; i += 128)
            shared_a[i] = a[(size_t)tile * ({{ a_bytes }} / 4) + i];
        for (u32 i = threadIdx.x; i < {{ b_bytes }} / 4; i += 128)
            shared_b[i] = b[(size_t)tile * ({{ b_bytes }} / 4) + i];
        for (u32 n = 0; n < {{ n }}; n += 8) {
            const u32 *of = c + thread * {{ n }} + n;
            asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], { %1,%2,%3,%4,%5,%6,%7,%8 };"
                         ::"r"(own + n), "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3]), "r"(of[4]), "r"(of[5]), "r"(of[6]),
                         "r"(of[7]) : "memory");
        }
        asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // tcgen05 reads shared memory through the async proxy
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        __syncthreads();
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        if (threadIdx.x == 0) {
            const u64 version = 1ull << 46; // of descriptors of shared memory, from Blackwell on
            {{ function }}(tensor, descriptor(shared_a, {{ a_stride }}) | version, descriptor(shared_b, {{ b_stride }}) | version);
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(arrived) : "memory");
        }
        asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }"
                     ::"r"(arrived), "r"(phase) : "memory");
        phase ^= 1;
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (u32 n = 0; n < {{ n }}; n += 8) {
            u32 of[8];
            asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 { %0,%1,%2,%3,%4,%5,%6,%7 }, [%8];"
                         : "=r"(of[0]), "=r"(of[1]), "=r"(of[2]), "=r"(of[3]), "=r"(of[4]), "=r"(of[5]), "=r"(of[6]), "=r"(of[7])
                         : "r"(own + n));
            asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < 8; i++)
                d[thread * {{ n }} + n + i] = of[i];
        }
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        __syncthreads(); // nobody reads this tile's operands any more
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    }
    if (warp == 0)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, {{ columns }};" ::"r"(tensor));
}
