// Where 16 bytes of a tile lie in shared memory, and which of them each lane of a warp asks for: plain C, so that a
// test on a CPU can hold it against machine_code.py, which counts the bank conflicts.
#ifndef MMAGOLD_ABLATION_LAYOUT_H
#define MMAGOLD_ABLATION_LAYOUT_H

#ifdef __CUDACC__
#define LAYOUT_FUNCTION static __device__ __forceinline__
#else
#define LAYOUT_FUNCTION static inline
#endif

enum { ROW_BYTES = 2 * TILE_K, CHUNKS = ROW_BYTES / 16, ROWS_OF_LINE = 128 / ROW_BYTES };

// Byte offset of chunk `chunk` (16 bytes, 8 elements of K) of row `row` in a tile of rows of ROW_BYTES. Permuted: the
// chunks of a row change places by exclusive or, so that 8 rows that follow one another meet in no bank.
LAYOUT_FUNCTION unsigned place(unsigned row, unsigned chunk)
{
    return row * ROW_BYTES + 16 * (PERMUTED ? chunk ^ (row / ROWS_OF_LINE % CHUNKS) : chunk);
}

// Copying a tile: 16 bytes a thread, neighbours in a row.
LAYOUT_FUNCTION unsigned copied(unsigned item) { return place(item / CHUNKS, item % CHUNKS); }

// ldmatrix.x4 takes one address a lane: rows 0 to 7 of four 8 x 8 matrices. A of m16n8k16 is rows 0 and 8 of the first
// 8 elements of K, then of the next 8; B, of two n8 at once, is both halves of K of columns 0 to 7, then of 8 to 15.
LAYOUT_FUNCTION unsigned a_address(unsigned row, unsigned k16, unsigned lane)
{
    return place(row + lane % 16, 2 * k16 + lane / 16);
}
LAYOUT_FUNCTION unsigned b_address(unsigned column, unsigned k16, unsigned lane)
{
    return place(column + lane % 8 + lane / 16 * 8, 2 * k16 + lane / 8 % 2);
}

#endif
