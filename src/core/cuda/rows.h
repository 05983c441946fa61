#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace longca {

/// `outer` × `inner` rows of `row_bytes` each in device memory; strides in bytes.
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

/// Copies rows between two of one shape, with the widest accesses that addresses and strides allow.
void copy_rows(const ByteRows& from, const ByteRows& to, cudaStream_t stream);
struct RowsCopy {
  ByteRows from, to;
};
/// Makes independent copies: none may touch what another one writes. Those of whole 16-byte units,
/// of at most 1 GiB each, share a launch, up to 16 of them; each of the others has its own.
void copy_rows_all(std::span<const RowsCopy> copies, cudaStream_t stream);
/// Fills rows with the 4-byte `word`; rows that are not a multiple of 4 bytes get its lower half in
/// every 2 bytes.
void fill_rows(const ByteRows& to, std::uint32_t word, cudaStream_t stream);

}  // namespace longca
