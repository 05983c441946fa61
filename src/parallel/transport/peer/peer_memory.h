#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// GPU memory of all ranks, each rank's mapped into every other process (CUDA IPC).
class PeerMemory {
 public:
  explicit PeerMemory(RankControl& control);
  /// Unmaps the other ranks' memory and frees this rank's once all have unmapped it. Collective,
  /// unless an exception is in flight.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// An address in a rank's memory that is valid on all ranks.
  struct Place {
    std::int32_t buffer = 0;
    std::int64_t offset = 0;  ///< bytes
  };

  /// Returns zeroed memory of this rank's GPU, at least 2 MiB, in a driver allocation of its own.
  /// Collective; sizes may differ. If one rank fails, all throw (OutOfMemory if memory ran out).
  void* allocate(std::int64_t bytes);
  /// Describes an address of this rank's memory. Throws InternalError unless `bytes` from `data` on
  /// lie inside one buffer.
  Place place_of(const void* data, std::int64_t bytes) const;
  /// Returns where `place` of `rank`'s memory is mapped in this process.
  void* address(int rank, const Place& place) const;

 private:
  RankControl& control_;
  Device& device_;
  std::vector<Buffer> own_;
  std::vector<std::vector<void*>> mapped_;  ///< [buffer][rank], this rank's own included
};

}  // namespace longca
