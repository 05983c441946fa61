#include <type_traits>

#include "core/cuda/elementwise.cuh"
#include "core/cuda/rows.h"
#include "core/rounding.h"

namespace longca {
namespace {

template <typename T>
struct CopyPieces {
  using Value = T;
  Pieces<T> from, to;
  __device__ Value load(const Place& place) const { return from.at(place); }
  __device__ void store(const Place& place, const Value& value) const { to.at(place) = value; }
};

template <typename T>
struct FillPieces {
  struct Value {};
  Pieces<T> to;
  T value;
  __device__ Value load(const Place&) const { return {}; }
  __device__ void store(const Place& place, const Value&) const { to.at(place) = value; }
};

/// Copies in units of 16 bytes, and the first block of each.
struct CopyTable {
  static constexpr int kMaxCopies = 16;
  /// A copy's units, so that 32 bits number its blocks too.
  static constexpr std::int64_t kMaxUnits = std::int64_t{1} << 26;
  int count = 0;
  CopyPieces<uint4> copies[kMaxCopies];
  Walk walks[kMaxCopies];
  bool flat[kMaxCopies];
  std::uint32_t first_block[kMaxCopies + 1] = {};

  bool full() const { return count == kMaxCopies; }
  void add(const ByteRows& source, const ByteRows& target) {
    const Walk walk = Walk::of(target, target.row_bytes / 16, 0, target.outer);
    copies[count] = {Pieces<uint4>(source), Pieces<uint4>(target)};
    walks[count] = walk;
    flat[count] = target.outer * target.inner == 1;
    first_block[count + 1] = first_block[count] + ceil_div(walk.total, kPiecesPerBlock);
    ++count;
  }
};

template <bool kFlat>
__device__ void copy_block(const CopyTable& table, int copy) {
  const std::uint32_t first =
      (blockIdx.x - table.first_block[copy]) * kPiecesPerBlock + threadIdx.x;
  elementwise_block<kFlat>(table.walks[copy], table.copies[copy], first);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    copy_table(const __grid_constant__ CopyTable table) {
  int copy = 0;
  while (blockIdx.x >= table.first_block[copy + 1]) ++copy;
  if (table.flat[copy]) {
    copy_block<true>(table, copy);
  } else {
    copy_block<false>(table, copy);
  }
}

void launch(CopyTable& table, cudaStream_t stream) {
  if (table.count == 0) return;
  copy_table<<<table.first_block[table.count], kElementwiseThreads, 0, stream>>>(table);
  LONGCA_CUDA(cudaGetLastError());
  table = {};
}

/// Calls `call` with a null pointer to the widest type that `bits` are aligned to.
template <typename Call>
void with_width(std::uint64_t bits, Call&& call) {
  if (bits % 16 == 0) return call(static_cast<uint4*>(nullptr));
  if (bits % 8 == 0) return call(static_cast<uint2*>(nullptr));
  if (bits % 4 == 0) return call(static_cast<std::uint32_t*>(nullptr));
  if (bits % 2 == 0) return call(static_cast<std::uint16_t*>(nullptr));
  return call(static_cast<std::uint8_t*>(nullptr));
}

}  // namespace

ByteRows byte_rows(const TensorView& tensor) {
  const std::int64_t size = size_of(tensor.dtype);
  return {tensor.data,
          tensor.tokens,
          tensor.heads,
          tensor.dim * size,
          tensor.token_stride * size,
          tensor.head_stride * size};
}

ByteRows byte_rows(const ConstTensorView& tensor) {
  return byte_rows(TensorView{const_cast<void*>(tensor.data), tensor.dtype, tensor.tokens,
                              tensor.heads, tensor.dim, tensor.token_stride, tensor.head_stride});
}

ByteRows byte_rows(const LseView& lse) {
  return {lse.data, lse.heads, 1, lse.tokens * 4, lse.head_stride * 4, 0};
}

void copy_rows(const ByteRows& from, const ByteRows& to, cudaStream_t stream) {
  ByteRows source = from;
  ByteRows target = to;
  join_rows({&source, &target});
  with_width(alignment_bits(source) | alignment_bits(target), [&](auto* piece) {
    using T = std::remove_pointer_t<decltype(piece)>;
    run_elementwise(target, sizeof(T), CopyPieces<T>{Pieces<T>(source), Pieces<T>(target)}, stream);
  });
}

void copy_rows_all(std::span<const RowsCopy> copies, cudaStream_t stream) {
  CopyTable table;
  for (const RowsCopy& copy : copies) {
    ByteRows source = copy.from;
    ByteRows target = copy.to;
    join_rows({&source, &target});
    const std::int64_t units = target.outer * target.inner * (target.row_bytes / 16);
    if (units == 0 || units > CopyTable::kMaxUnits ||
        (alignment_bits(source) | alignment_bits(target)) % 16 != 0) {
      copy_rows(copy.from, copy.to, stream);
      continue;
    }
    if (table.full()) launch(table, stream);
    table.add(source, target);
  }
  launch(table, stream);
}

void fill_rows(const ByteRows& to, std::uint32_t word, cudaStream_t stream) {
  ByteRows target = to;
  join_rows({&target});
  const auto fill = [&](auto value) {
    using T = decltype(value);
    run_elementwise(target, sizeof(T), FillPieces<T>{Pieces<T>(target), value}, stream);
  };
  const std::uint64_t bits = alignment_bits(target);
  if (bits % 16 == 0) return fill(make_uint4(word, word, word, word));
  if (bits % 4 == 0) return fill(word);
  fill(static_cast<std::uint16_t>(word));
}

}  // namespace longca
