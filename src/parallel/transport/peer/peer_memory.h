#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Memory of all ranks' GPUs, each rank's mapped into every other's process (CUDA IPC).
class PeerMemory {
 public:
  explicit PeerMemory(RankControl& control);
  /// Unmaps the others' memory; this rank's is freed when all have. Collective, unless an exception
  /// is on its way.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// A place in a rank's memory that means the same to all ranks.
  struct Place {
    std::int32_t buffer = 0;
    std::int64_t offset = 0;  ///< bytes
  };

  /// Zeroed memory of this rank's GPU, at least 2 MiB, in a driver's block of its own. Collective,
  /// with sizes of each rank's own. If one rank fails, all throw: OutOfMemory if it has too little.
  void* allocate(std::int64_t bytes);
  /// Of this rank's memory. Throws InternalError if `bytes` from `data` on are not inside a buffer.
  Place place_of(const void* data, std::int64_t bytes) const;
  /// The address of a rank's memory in this process.
  void* address(int rank, const Place& place) const;

 private:
  RankControl& control_;
  Device& device_;
  std::vector<Buffer> own_;
  std::vector<std::vector<void*>> mapped_;  ///< [buffer][rank]; the own rank's too
};

}  // namespace longca
