#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace longca {

/// Pieces of bytes in device memory: `outer` × `inner` of `row_bytes` each, strides in bytes.
struct ByteRows {
  void* data = nullptr;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  std::int64_t row_bytes = 0;
  std::int64_t outer_stride = 0;
  std::int64_t inner_stride = 0;
};

ByteRows byte_rows(const TensorView& tensor);
ByteRows byte_rows(const ConstTensorView& tensor);  ///< to read from
ByteRows byte_rows(const LseView& lse);

/// Copies between two of one shape, with the widest accesses that addresses and strides allow.
void copy_rows(const ByteRows& from, const ByteRows& to, cudaStream_t stream);
/// Such copies, none of which touches what another one writes: in one launch where 16 of them or
/// fewer lie contiguously, in whole units of 16 bytes.
struct RowsCopy {
  ByteRows from, to;
};
void copy_rows_all(std::span<const RowsCopy> copies, cudaStream_t stream);
/// Sets 4-byte words, or where rows are not made of them 2-byte ones to the lower half of `word`.
void fill_rows(const ByteRows& to, std::uint32_t word, cudaStream_t stream);

/// StepMath::sum_all, with one part and no accumulator a conversion; all dtypes.
void sum_tensors(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                 const TensorView& to, cudaStream_t stream);

}  // namespace longca
