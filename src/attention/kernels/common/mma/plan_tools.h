#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/kernels/common/mma/params.h"
#include "core/device.h"

/// Host side of the plans of kernels on mma.sync, for the current GPU.
namespace longca::mma {

/// A copy in the device's memory; empty for no values.
template <typename T>
Buffer on_device(const std::vector<T>& values) {
  if (values.empty()) return {};
  Device& gpu = Device::get(DeviceKind::cuda);
  Buffer buffer(gpu.memory(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  gpu.copy(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

/// Tokens rounded up to whole blocks.
constexpr std::int64_t padded(std::int64_t tokens, int block) {
  return (tokens + block - 1) / block * block;
}

/// How many of `heads`, which work on `bytes_per_head` each, fit in half of the L2 cache; at
/// least one.
int heads_in_cache(std::int64_t bytes_per_head, int heads);

/// Bytes of shared memory that a CTA can opt in to.
int device_shared_bytes();

/// Global memory of a backward pass: terms per row, float32 sums.
class GradientSums {
 public:
  GradientSums() = default;
  /// For tiles of `tile_m` query rows × `tile_n` keys, KV heads split in `head_parts`.
  GradientSums(const Problem& problem, int tile_m, int tile_n, int head_parts);

  GradientArgs args(const char* kernel, const BackwardArgs& args);
  PlanScratch& scratch() { return scratch_; }
  const PlanScratch& scratch() const { return scratch_; }

 private:
  std::int64_t take(std::int64_t bytes);

  int tile_n_ = 0;
  int head_parts_ = 1;
  /// Offsets in the scratch; −1: not used.
  std::int64_t row_terms_ = -1;
  std::int64_t dq_sum_ = -1;
  std::int64_t dk_sum_ = -1;  ///< as dv_sum_, unless head_parts > 1
  std::int64_t dv_sum_ = -1;
  std::int64_t taken_ = 0;
  PlanScratch scratch_;
};

}  // namespace longca::mma
