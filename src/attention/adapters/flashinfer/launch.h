#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor.h"

namespace longca::flashinfer {

inline constexpr int kTileQ = 128;  ///< queries per tile of FlashInfer's kernel

/// WorkList in device memory.
struct DeviceWork {
  std::int32_t* work_begin;
  std::int32_t* tile;
  std::int32_t* head;
  std::int32_t* q_begin;
  std::int32_t* q_size;
  std::int32_t* first;
  std::int32_t* keys;
};

/// bfloat16 with head dimension 128; rows of q, k and v are 16-byte aligned, k and v have equal
/// strides.
struct ForwardCall {
  ConstTensorView q, k, v;
  TensorView o;
  float* row_lse;  ///< [tokens, heads], base 2: the kernel's format
  float scale;
  DeviceWork work;
  std::int32_t* pages;  ///< the lists' page numbers
  std::int64_t page_size;
};

/// Launches the kernel. Throws CudaError.
void launch_forward(const ForwardCall& call, cudaStream_t stream);

/// Transposes row_lse to [heads, tokens] and converts it to the natural logarithm.
void launch_transpose_lse(const float* row_lse, const LseView& lse, cudaStream_t stream);

/// Lists pages of one key, for blocks of differing sizes: the keys of the blocks
/// indices[offsets[r] … offsets[r + 1]) of row r are written from pages[first[r]] on.
struct KeyPages {
  const std::int64_t* offsets;
  const std::int32_t* indices;
  const std::int32_t* k_bounds;
  const std::int64_t* first;
  std::int64_t rows;
};
void launch_list_keys(const KeyPages& keys, std::int32_t* pages, cudaStream_t stream);

}  // namespace longca::flashinfer
