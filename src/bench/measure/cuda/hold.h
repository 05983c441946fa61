#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/cuda/pinned.h"

namespace longca {

/// Holds a stream back until the work behind it is queued, so that the host's launch time never
/// lies between two events. One thread on the device waits for a flag in host memory, and gives up
/// after kLimit: the host may itself be waiting for the device.
class StreamHold {
 public:
  static constexpr std::uint64_t kLimit = 1'000'000'000;  ///< ns

  explicit StreamHold(cudaStream_t stream) : stream_(stream) {}

  /// Holds what is queued from now on; released by `release`, or at the end of the object's life.
  void begin();
  /// Releases every hold so far.
  void release() noexcept;
  /// Whether any hold since the last call gave up. Certain once the stream is empty.
  bool take_gave_up() noexcept;

 private:
  enum Word : std::uint8_t { kReleased = 0, kGaveUp = 32 };  // in separate cache lines

  cudaStream_t stream_;
  PinnedArray<std::int32_t> words_{64};
  std::int32_t ticket_ = 0;  ///< of the last hold; all up to words_[kReleased] are released
};

}  // namespace longca
