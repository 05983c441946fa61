#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/cuda/error.h"
#include "parallel/cuda/elementwise.h"

// How elementwise kernels walk over tensors of any strides.

namespace longca {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  ///< independent loads in flight
constexpr int kPerBlock = kThreads * kPerThread;

/// One piece of a tensor, which is one load or store of a thread.
struct Place {
  std::int64_t outer = 0;
  std::int64_t inner = 0;
  std::int64_t vector = 0;
};

/// How a [outer, inner, vectors] shape is walked: blocks take kPerBlock vectors in a row.
struct Walk {
  std::int64_t total = 0;
  std::uint32_t inner = 1;
  std::uint32_t vectors = 1;  ///< of a row

  /// The `i`-th vector from `base` on. Only the base needs a 64-bit division, the same in a block.
  __device__ Place place(std::int64_t base, std::uint32_t i) const {
    if (total <= vectors) return {0, 0, base + i};
    const std::uint32_t per_outer = inner * vectors;
    const std::uint32_t in_outer = static_cast<std::uint32_t>(base % per_outer) + i;
    const std::uint32_t in_inner = in_outer % per_outer;
    return {base / per_outer + in_outer / per_outer, in_inner / vectors, in_inner % vectors};
  }
};

template <typename Operation>
__global__ void __launch_bounds__(kThreads) elementwise(Walk walk, Operation operation) {
  const std::int64_t step = std::int64_t{gridDim.x} * kPerBlock;
  for (std::int64_t base = std::int64_t{blockIdx.x} * kPerBlock; base < walk.total; base += step) {
    Place places[kPerThread];
    typename Operation::Value values[kPerThread];
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const std::uint32_t i = threadIdx.x + j * kThreads;
      if (base + i >= walk.total) continue;
      places[j] = walk.place(base, i);
      values[j] = operation.load(places[j]);
    }
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      if (base + threadIdx.x + j * kThreads < walk.total) operation.store(places[j], values[j]);
    }
  }
}

template <typename Operation>
void run_elementwise(const Walk& walk, const Operation& operation, cudaStream_t stream,
                     int most_blocks = 0) {
  if (walk.total == 0) return;
  std::int64_t blocks = (walk.total + kPerBlock - 1) / kPerBlock;
  if (most_blocks > 0) blocks = std::min<std::int64_t>(blocks, most_blocks);
  elementwise<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(walk, operation);
  LONGCA_CUDA(cudaGetLastError());
}

/// Pieces of T of a ByteRows.
template <typename T>
struct Pieces {
  T* data = nullptr;
  std::int64_t outer_stride = 0;
  std::int64_t inner_stride = 0;

  Pieces() = default;
  explicit Pieces(const ByteRows& rows)
      : data(static_cast<T*>(rows.data)),
        outer_stride(rows.outer_stride / static_cast<std::int64_t>(sizeof(T))),
        inner_stride(rows.inner_stride / static_cast<std::int64_t>(sizeof(T))) {}
  __device__ T& at(const Place& place) const {
    return data[place.outer * outer_stride + place.inner * inner_stride + place.vector];
  }
};

/// Rows stay shorter, so that 32-bit numbers count their pieces of any width.
constexpr std::int64_t kMostRowBytes = std::int64_t{1} << 31;

/// Makes longer rows of all where all lie contiguously.
inline void join_rows(std::initializer_list<ByteRows*> all) {
  const auto join = [&](std::int64_t ByteRows::*count, std::int64_t ByteRows::*stride) {
    for (const ByteRows* rows : all) {
      if (rows->*count > 1 && rows->*stride != rows->row_bytes) return false;
      if (rows->row_bytes * rows->*count >= kMostRowBytes) return false;
    }
    for (ByteRows* rows : all) {
      rows->row_bytes *= rows->*count;
      rows->*count = 1;
    }
    return true;
  };
  if (join(&ByteRows::inner, &ByteRows::inner_stride))
    join(&ByteRows::outer, &ByteRows::outer_stride);
}

/// The bits that addresses and lengths have: a power of two divides them all if it divides this.
inline std::uint64_t alignment_bits(const ByteRows& rows) {
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(rows.data);
  bits |= static_cast<std::uint64_t>(rows.row_bytes);
  if (rows.outer > 1) bits |= static_cast<std::uint64_t>(rows.outer_stride);
  if (rows.inner > 1) bits |= static_cast<std::uint64_t>(rows.inner_stride);
  return bits;
}

template <typename T>
Walk walk_of(const ByteRows& rows) {
  const std::int64_t vectors = rows.row_bytes / static_cast<std::int64_t>(sizeof(T));
  return {rows.outer * rows.inner * vectors, static_cast<std::uint32_t>(rows.inner),
          static_cast<std::uint32_t>(vectors)};
}

}  // namespace longca
