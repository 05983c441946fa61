#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor.h"

namespace longca::flashinfer {

inline constexpr int kTileQ = 128;  ///< queries of a tile of FlashInfer's kernel

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

/// bfloat16 of 128 dimensions; q, k and v with rows at multiples of 16 bytes, k and v alike.
struct ForwardCall {
  ConstTensorView q, k, v;
  TensorView o;
  float* row_lse;  ///< [tokens, heads], base 2: as the kernel writes it
  float scale;
  DeviceWork work;
  std::int32_t* pages;  ///< the lists' page numbers
  std::int64_t page_size;
};

/// Queues the kernel. Throws CudaError.
void launch_forward(const ForwardCall& call, cudaStream_t stream);

/// lse[head][token] = the natural logarithm of what row_lse says.
void launch_turn_lse(const float* row_lse, const LseView& lse, cudaStream_t stream);

/// Numbers of pages of one key for blocks of differing sizes: row r of all lists' rows has the
/// blocks indices[offsets[r] … offsets[r + 1]), whose keys go to pages[first[r]] and on.
struct KeyNumbers {
  const std::int64_t* offsets;
  const std::int32_t* indices;
  const std::int32_t* k_bounds;
  const std::int64_t* first;
  std::int64_t rows;
};
void launch_number_keys(const KeyNumbers& numbers, std::int32_t* pages, cudaStream_t stream);

}  // namespace longca::flashinfer
