#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "core/cuda/error.h"

namespace longca {

/// An owned, zeroed array of pinned host memory, mapped into the device under the same address.
/// Throws OutOfMemory if the system refuses it.
template <typename T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) {
    void* data = nullptr;
    LONGCA_CUDA(cudaHostAlloc(&data, count * sizeof(T), cudaHostAllocMapped));
    data_.reset(static_cast<T*>(data));
    for (std::size_t i = 0; i < count; ++i) data_.get()[i] = T{};
  }

  T* data() const { return data_.get(); }
  T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Release {
    void operator()(T* data) const noexcept { cudaFreeHost(data); }
  };
  std::unique_ptr<T, Release> data_;
};

}  // namespace longca
