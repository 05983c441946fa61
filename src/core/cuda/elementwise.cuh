#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>

#include "core/cuda/error.h"
#include "core/cuda/rows.h"
#include "core/rounding.h"

// Elementwise kernels over rows of any strides.

namespace longca {

constexpr int kElementwiseThreads = 256;
constexpr int kPiecesPerThread = 4;  ///< independent loads in flight
constexpr int kPiecesPerBlock = kElementwiseThreads * kPiecesPerThread;

/// Division of numbers below 2³¹ by one divisor, as a product (Granlund and Montgomery, 1994).
struct Divisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t d) : divisor(d) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(d - 1));
    shift = 31 + bits;
    multiplier = static_cast<std::uint32_t>(ceil_div(std::uint64_t{1} << shift, d));
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> shift);
  }
};

/// Coordinates of one piece: what a thread loads or stores with one instruction.
struct Place {
  std::int64_t outer = 0;
  std::uint32_t inner = 0;
  std::uint32_t piece = 0;
};

/// A shape [outer, inner, pieces of a row], or outer rows of it few enough for 32-bit piece
/// numbers.
struct Walk {
  std::int64_t first_outer = 0;
  std::uint32_t total = 0;
  Divisor per_outer;
  Divisor per_row;

  /// Of `outers` outer rows from `first` on, of at most 2³⁰ pieces together, `per_row` to a row.
  static Walk of(const ByteRows& rows, std::int64_t per_row, std::int64_t first,
                 std::int64_t outers) {
    const std::int64_t per_outer = rows.inner * per_row;
    return {first, static_cast<std::uint32_t>(outers * per_outer),
            Divisor(static_cast<std::uint32_t>(per_outer)),
            Divisor(static_cast<std::uint32_t>(per_row))};
  }
  template <bool kFlat>
  __device__ Place place(std::uint32_t i) const {
    if constexpr (kFlat) return {0, 0, i};
    const std::uint32_t outer = per_outer.quotient(i);
    const std::uint32_t in_outer = i - outer * per_outer.divisor;
    const std::uint32_t inner = per_row.quotient(in_outer);
    return {first_outer + outer, inner, in_outer - inner * per_row.divisor};
  }
};

/// A block's pieces, those of this thread from `first` on.
template <bool kFlat, typename Operation>
__device__ void elementwise_block(const Walk& walk, const Operation& operation,
                                  std::uint32_t first) {
  Place places[kPiecesPerThread];
  typename Operation::Value values[kPiecesPerThread];
#pragma unroll
  for (int j = 0; j < kPiecesPerThread; ++j) {
    // Threads past the end load the last piece again: no load waits for a branch.
    places[j] = walk.place<kFlat>(min(first + j * kElementwiseThreads, walk.total - 1));
    values[j] = operation.load(places[j]);
  }
#pragma unroll
  for (int j = 0; j < kPiecesPerThread; ++j) {
    if (first + j * kElementwiseThreads < walk.total) operation.store(places[j], values[j]);
  }
}

template <bool kFlat, typename Operation>
__global__ void __launch_bounds__(kElementwiseThreads) elementwise(Walk walk, Operation operation) {
  elementwise_block<kFlat>(walk, operation, blockIdx.x * kPiecesPerBlock + threadIdx.x);
}

/// Runs `operation` on every piece of `piece_bytes` of `rows`.
template <typename Operation>
void run_elementwise(const ByteRows& rows, std::int64_t piece_bytes, const Operation& operation,
                     cudaStream_t stream) {
  constexpr std::int64_t kMaxPieces = std::int64_t{1} << 30;
  const std::int64_t per_row = rows.row_bytes / piece_bytes;
  const std::int64_t per_outer = rows.inner * per_row;
  if (rows.outer * per_outer == 0) return;
  const bool flat = rows.outer == 1 && rows.inner == 1;
  const std::int64_t max_outer = std::max<std::int64_t>(1, kMaxPieces / per_outer);
  for (std::int64_t first = 0; first < rows.outer; first += max_outer) {
    const Walk walk = Walk::of(rows, per_row, first, std::min(max_outer, rows.outer - first));
    const unsigned blocks = ceil_div(walk.total, kPiecesPerBlock);
    if (flat) {
      elementwise<true><<<blocks, kElementwiseThreads, 0, stream>>>(walk, operation);
    } else {
      elementwise<false><<<blocks, kElementwiseThreads, 0, stream>>>(walk, operation);
    }
    LONGCA_CUDA(cudaGetLastError());
  }
}

/// A ByteRows as pieces of type T.
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
    return data[place.outer * outer_stride + place.inner * inner_stride + place.piece];
  }
};

/// Joined rows stay shorter than this, so that 32 bits number their pieces of any width.
constexpr std::int64_t kMaxRowBytes = std::int64_t{1} << 30;

/// Joins rows into longer ones where they are contiguous in all operands.
inline void join_rows(std::initializer_list<ByteRows*> all) {
  const auto join = [&](std::int64_t ByteRows::*count, std::int64_t ByteRows::*stride) {
    for (const ByteRows* rows : all) {
      if (rows->*count > 1 && rows->*stride != rows->row_bytes) return false;
      if (rows->row_bytes * rows->*count >= kMaxRowBytes) return false;
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

/// The union of the bits of address, lengths and strides: a power of two divides all of them iff it
/// divides this.
inline std::uint64_t alignment_bits(const ByteRows& rows) {
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(rows.data);
  bits |= static_cast<std::uint64_t>(rows.row_bytes);
  if (rows.outer > 1) bits |= static_cast<std::uint64_t>(rows.outer_stride);
  if (rows.inner > 1) bits |= static_cast<std::uint64_t>(rows.inner_stride);
  return bits;
}

}  // namespace longca
