
// {{ instruction }}: B in shared memory, A {{ "there" if in_shared else "in tensor memory" }}, D (which holds C before) in tensor memory.
static __device__ __forceinline__ void {{ function }}(u32 d, {{ "u64" if in_shared else "u32" }} a, u64 b{{ ", u32 scale_a, u32 scale_b" if scaled }})
{
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; {{ text }} }" ::"r"(d), "{{ "l" if in_shared else "r" }}"(a), "l"(b), "r"({{ descriptor }}u){{ ', "r"(scale_a), "r"(scale_b)' if scaled }});
}

extern "C" __global__ void {{ "__cluster_dims__(2, 1, 1) " if pair }}__launch_bounds__(128)
{{ name }}(const u32 *a, const u32 *b, const u32 *c, const u32 *metadata, const u32 *scale_a, const u32 *scale_b, u32 *d,
    u32 count)
{
{%- set group = "2" if pair else "1" %}
{%- if in_shared %}
    __shared__ __align__(1024) u32 shared_a[{{ a_bytes }} / 4];
{%- endif %}
    __shared__ __align__(1024) u32 shared_b[{{ b_bytes }} / 4];
    __shared__ __align__(8) u64 barrier;
    __shared__ u32 allocated;
    const u32 arrived = (u32)__cvta_generic_to_shared(&barrier);
    const u32 warp = threadIdx.x / 32;
{%- if pair %}
    u32 rank; // of this CTA in its pair
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
{%- else %}
    const u32 rank = 0;
{%- endif %}
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::{{ group }}.sync.aligned.shared::cta.b32 [%0], {{ allocated }};"
                     ::"r"((u32)__cvta_generic_to_shared(&allocated)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::{{ group }}.sync.aligned;");
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    {{ "pair_sync" if pair else "__syncthreads" }}();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const u32 tensor = allocated, own = tensor + (warp * 32 << 16); // a warp reaches the 32 lanes of its own
    u32 phase = 0;
    for (u32 tile = blockIdx.x{{ " / 2" if pair }}; tile < count; tile += gridDim.x{{ " / 2" if pair }}) {
        const size_t part = (size_t)tile * {{ group }} + rank, thread = part * 128 + threadIdx.x;
{%- if in_shared %}
        for (u32 i = threadIdx.x; i < {{ a_bytes }} / 4; i += 128)
            shared_a[i] = a[part * ({{ a_bytes }} / 4) + i];
{%- endif %}
        for (u32 i = threadIdx.x; i < {{ b_bytes }} / 4; i += 128)
            shared_b[i] = b[part * ({{ b_bytes }} / 4) + i];
        for (u32 n = 0; n < {{ columns }}; n += 4)
            tensor_store(own + n, c + thread * {{ columns }} + n);
{%- for parameter, width, first in held %}
        for (u32 n = 0; n < {{ width }}; n += 4)
            tensor_store(own + {{ first }} + n, {{ parameter }} + thread * {{ width }} + n);
{%- endfor %}
        asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // tcgen05 reads shared memory through the async proxy
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        {{ "pair_sync" if pair else "__syncthreads" }}();
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        if (threadIdx.x == 0 && rank == 0) {
            const u64 version = 1ull << 46; // of descriptors of shared memory, from Blackwell on
            {{ function }}(tensor, {{ "descriptor(shared_a, 256) | version" if in_shared else "tensor + %d" % held[0][2] }}, descriptor(shared_b, 256) | version
{%- for parameter, width, first in held if parameter != "a" %}, tensor + {{ first }}{% endfor %});
{%- if pair %}
            asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                         ::"r"(arrived), "h"((unsigned short)3) : "memory"); // the barrier at this address of both CTAs
{%- else %}
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(arrived) : "memory");
{%- endif %}
        }
        asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }"
                     ::"r"(arrived), "r"(phase) : "memory");
        phase ^= 1;
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (u32 n = 0; n < {{ columns }}; n += 4)
            tensor_load(d + thread * {{ columns }} + n, own + n);
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        {{ "pair_sync" if pair else "__syncthreads" }}(); // nobody reads this tile's operands any more
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    }
    if (warp == 0)
        asm volatile("tcgen05.dealloc.cta_group::{{ group }}.sync.aligned.b32 %0, {{ allocated }};" ::"r"(tensor));
}
