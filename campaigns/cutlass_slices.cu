// f16 x f16 -> f32 by CUTLASS's GemmSplitKParallel: ... M N K SLICES A B D, the last three files of raw numbers;
// A and D row by row, B column by column.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cutlass/gemm/device/gemm_splitk_parallel.h"

using code = cutlass::half_t;
using rows = cutlass::layout::RowMajor;
using columns = cutlass::layout::ColumnMajor;
using gemm = cutlass::gemm::device::GemmSplitKParallel<
    code, rows, code, columns, float, rows, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>>;

static void *uploaded(const char *path, size_t bytes)
{
    std::vector<char> data(bytes);
    FILE *file = fopen(path, "rb");
    void *there;
    if (!file || fread(data.data(), 1, bytes, file) != bytes || cudaMalloc(&there, bytes) != cudaSuccess)
        exit(3);
    fclose(file);
    cudaMemcpy(there, data.data(), bytes, cudaMemcpyHostToDevice);
    return there;
}

int main(int, char **given)
{
    const int m = atoi(given[1]), n = atoi(given[2]), k = atoi(given[3]), slices = atoi(given[4]);
    code *a = (code *)uploaded(given[5], 2ull * m * k), *b = (code *)uploaded(given[6], 2ull * n * k);
    std::vector<float> d(1ull * m * n);
    float *there;
    void *room;
    cudaMalloc((void **)&there, 4 * d.size());
    cudaMemset(there, 0xff, 4 * d.size());
    gemm::Arguments arguments({m, n, k}, {a, k}, {b, k}, {there, n}, {there, n}, {1.f, 0.f}, slices);
    cudaMalloc(&room, gemm::get_workspace_size(arguments));
    gemm kernel;
    if (kernel.initialize(arguments, room) != cutlass::Status::kSuccess || kernel() != cutlass::Status::kSuccess)
        return 4;
    if (cudaMemcpy(d.data(), there, 4 * d.size(), cudaMemcpyDeviceToHost) != cudaSuccess)
        return 5;
    FILE *file = fopen(given[7], "wb");
    return !file || fwrite(d.data(), 4, d.size(), file) != d.size() || fclose(file);
}
