
extern "C" __global__ void __launch_bounds__(128)
{{ name }}(const u32 *a, const u32 *b, const u32 *c, const u32 *metadata, const u32 *scale_a, const u32 *scale_b, u32 *d,
    u32 count)
{
{%- if in_shared %}
    __shared__ __align__(1024) u32 shared_a[{{ a_bytes }} / 4];
{%- endif %}
    __shared__ __align__(1024) u32 shared_b[{{ b_bytes }} / 4];
    for (u32 tile = blockIdx.x; tile < count; tile += gridDim.x) {
        const size_t thread = (size_t)tile * 128 + threadIdx.x;
        u32 of_d[{{ d.count }}];
#pragma unroll
        for (int i = 0; i < {{ d.count }}; i++)
            of_d[i] = c[thread * {{ d.count }} + i];
        __syncthreads(); // nobody reads the tile before this one any more
{%- if in_shared %}
        for (u32 i = threadIdx.x; i < {{ a_bytes }} / 4; i += 128)
            shared_a[i] = a[(size_t)tile * ({{ a_bytes }} / 4) + i];
{%- else %}
        u32 of_a[{{ a.count }}];
#pragma unroll
        for (int i = 0; i < {{ a.count }}; i++)
            of_a[i] = a[thread * {{ a.count }} + i];
{%- endif %}
        for (u32 i = threadIdx.x; i < {{ b_bytes }} / 4; i += 128)
            shared_b[i] = b[(size_t)tile * ({{ b_bytes }} / 4) + i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads shared memory through the async proxy
        __syncthreads();
        wgmma_begin();
        {{ inline }}(of_d, {% if in_shared %}descriptor(shared_a, {{ a_stride }}){% else %}of_a{% endif %}, descriptor(shared_b, {{ b_stride }})
            {%- for extra in extras %}, {{ extra }}[thread]{% endfor %});
        wgmma_end();
#pragma unroll
        for (int i = 0; i < {{ d.count }}; i++)
            d[thread * {{ d.count }} + i] = of_d[i];
    }
}
