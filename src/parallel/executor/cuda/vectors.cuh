#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/cuda/element_type.cuh"
#include "core/dtype.h"

namespace longca {

/// `kWidth` elements that one instruction loads or stores.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T values[kWidth];
};

__device__ inline float widen(float x) {
  return x;
}
__device__ inline float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float widen(__half x) {
  return __half2float(x);
}

template <typename T>
__device__ T rounded(float x);
template <>
__device__ inline float rounded<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 rounded<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half rounded<__half>(float x) {
  return __float2half_rn(x);
}

template <typename T, int kWidth>
__device__ Vector<float, kWidth> load_wide(const T* data) {
  const auto raw = *reinterpret_cast<const Vector<T, kWidth>*>(data);
  Vector<float, kWidth> wide;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) wide.values[i] = widen(raw.values[i]);
  return wide;
}

template <typename T, int kWidth>
__device__ void store_rounded(T* data, const Vector<float, kWidth>& wide) {
  Vector<T, kWidth> raw;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) raw.values[i] = rounded<T>(wide.values[i]);
  *reinterpret_cast<Vector<T, kWidth>*>(data) = raw;
}

}  // namespace longca
