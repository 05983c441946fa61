#include <type_traits>

#include "parallel/cuda/elementwise.h"
#include "parallel/cuda/walk.cuh"

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

/// Calls `call` with a null pointer of the widest type that divides `bits`.
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
