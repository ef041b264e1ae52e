{# How chains begin. `type`: of the register that the chain runs through. #}
{% macro addresses(type) %}    u64 at = first;{% endmacro %}
{% macro indices(type) %}    u64 at = 0;{% endmacro %}
{% macro constants(type) %}    u64 at = first; u32 word = (u32)first;{% endmacro %}
{% macro touched(type) %}    touch(stride, size, apart, out); // `stride` is the buffer
    if (threadIdx.x)
        return;
    u64 at = first;{% endmacro %}
{# On one multiprocessor, of a grid whose other blocks end at once. #}
{% macro on_one(type) %}    // out[2]: the multiprocessor that is to measure; out[3]: whether a block of it has begun
    __shared__ u32 chosen;
    if (!threadIdx.x) {
        u32 here;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
        chosen = here == out[2] && !atomicExch((unsigned long long *)(out + 3), 1ull);
    }
    __syncthreads();
    if (!chosen)
        return;
{{ touched(type) }}{% endmacro %}
{% macro shared(type) %}    __shared__ __align__(128) u32 table[WORDS];
    for (u32 k = threadIdx.x; k < WORDS; k += blockDim.x)
        table[k] = shared_address(table) + 4 * ((421 * k + 11) % WORDS);
    __syncthreads();
    u32 at = shared_address(table);{% endmacro %}
{% macro local(type) %}    u32 table[LOCAL_WORDS];
    const u32 count = (u32)size / 4, base = (u32)__cvta_generic_to_local(table);
    for (u32 k = 0; k < count; k++)
        table[k] = base + 4 * ((421 * k + 11) % count);
    u32 at = base;{% endmacro %}
{% macro cluster(type) %}    __shared__ __align__(128) u32 table[WORDS];
    u32 own, rank, at;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(own) : "r"(shared_address(table)), "r"(rank));
    for (u32 k = threadIdx.x; k < WORDS; k += blockDim.x)
        table[k] = own + 4 * ((421 * k + 11) % WORDS);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at) : "r"(shared_address(table)), "r"((u32)size));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (rank) // the first block alone measures
        warm = rounds = 0;{% endmacro %}
{% macro here(type) %}    __shared__ __align__(128) u32 table[1024];
    table[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const u32 place = shared_address(table) + (u32)stride * threadIdx.x;
    {{ type }} at = threadIdx.x;{% endmacro %}
{% macro there(type) %}    const u64 place = first + stride * threadIdx.x;
    {{ type }} at = threadIdx.x;{% endmacro %}
{% macro copied(type) %}    __shared__ __align__(128) u32 table[1024];
    table[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const u32 place = shared_address(table) + (u32)stride * threadIdx.x;
    {{ type }} at = threadIdx.x;
    u64 from = first + stride * threadIdx.x;{% endmacro %}
{% macro barrier(type) %}    __shared__ __align__(128) u32 table[WORDS - 16];
    __shared__ __align__(8) u64 barrier;
    const u32 place = shared_address(table), bar = shared_address(&barrier);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(bar) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    u32 at = 0;{% endmacro %}
{# How flows begin. #}
{% macro from_global(type) %}    const u64 end = first + size;
    u64 at = first + 16 * (blockIdx.x * (u64)blockDim.x + threadIdx.x);{% endmacro %}
{% macro of_block(type) %}    first += size * blockIdx.x;
    const u64 end = first + size;
    u64 at = first + 16 * threadIdx.x;{% endmacro %}
{% macro tile() %}    extern __shared__ __align__(128) uint4 tile[];
    for (u32 k = threadIdx.x; k < size / 16; k += blockDim.x)
        tile[k] = make_uint4(k, 1, 2, 3);{% endmacro %}
{% macro in_tile(type) %}{{ tile() }}
    u64 at = shared_address(tile) + 16 * threadIdx.x;{% endmacro %}
{% macro in_cluster(type) %}{{ tile() }}
    u32 rank, ranks, there;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there) : "r"(shared_address(tile)), "r"((rank + 1) % ranks));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    u64 at = there + 16 * threadIdx.x;{% endmacro %}
{# How kernels end. #}
{% macro nothing(type) %}{% endmacro %}
{% macro taken(type) %}    at = word;{% endmacro %}
{% macro leave(type) %}    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (rank)
        return;{% endmacro %}
{% macro stay(type) %}    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");{% endmacro %}
