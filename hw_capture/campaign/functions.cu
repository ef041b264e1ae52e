/* One function of the special-function unit for all codes of its width: the GPU's result against mg_@NAME@'s. A block
 * takes 2^18 codes, all of one digest. found[0] counts codes, found[1] differences, found[2] on are the first codes
 * that differ, MOST of them. */
__device__ __forceinline__ uint32_t gpu_@NAME@(uint32_t code)
{
    uint32_t result;
    asm volatile(@PTX@ : "=r"(result) : "r"(code));
    return result;
}

extern "C" __global__ void compare_@NAME@(uint64_t *found, uint64_t *digests)
{
    uint64_t sum = 0;
    uint32_t done = 0;
    for (uint32_t i = threadIdx.x; i < 1u << 18; i += blockDim.x) {
        uint32_t code = (blockIdx.x << 18) + i;
        if (code > @LAST@u)
            break;
        uint32_t result = gpu_@NAME@(code);
        sum += mg_digest(code, result);
        done++;
        if (result != mg_@NAME@(code)) {
            unsigned long long before = atomicAdd((unsigned long long *)found + 1, 1ull);
            if (before < @MOST@)
                found[2 + before] = code;
        }
    }
    atomicAdd((unsigned long long *)found, (unsigned long long)done);
    atomicAdd((unsigned long long *)digests + (blockIdx.x >> 5), (unsigned long long)sum);
}

extern "C" __global__ void answer_@NAME@(const uint32_t *codes, uint32_t *results, uint32_t count)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        results[i] = gpu_@NAME@(codes[i]);
}
