#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/device.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// GPU memory of all ranks, which each of them can write to (CUDA IPC). Blocks that were given back
/// are used again, and stay mapped: allocating and mapping synchronise with the device.
class PeerMemory {
 public:
  explicit PeerMemory(RankMessages& control);
  /// Unmaps the other ranks' memory and frees this rank's once all have unmapped it. Collective,
  /// unless an exception is in flight; does not wait for ranks that cannot be reached.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// An address in a rank's memory, as that rank describes it to others.
  struct Place {
    cudaIpcMemHandle_t handle{};
    std::int32_t block = 0;
    std::int64_t offset = 0;  ///< bytes
  };

  /// Returns zeroed memory of this rank's GPU, at least 2 MiB, in a driver allocation of its own.
  /// Collective; sizes may differ. If one rank fails, all throw (OutOfMemory if memory ran out).
  void* allocate(std::int64_t bytes);
  /// Takes a block back. The GPUs of all ranks are done with it.
  void release(void* data) noexcept;
  /// Describes an address of this rank's memory. Throws InternalError unless `bytes` from `data` on
  /// lie inside one block.
  Place place_of(const void* data, std::int64_t bytes) const;
  /// Returns where `place` of `rank`'s memory is mapped in this process, this rank's own included;
  /// maps its block when it is first asked for.
  void* address(int rank, const Place& place);

 private:
  struct Block {
    Buffer memory;
    cudaIpcMemHandle_t handle{};
    bool used = false;
  };
  Block& find_block(std::int64_t bytes);

  RankMessages& control_;
  Device& device_;
  std::vector<Block> own_;
  std::map<std::pair<int, std::int32_t>, void*> mapped_;  ///< by rank and its block
};

}  // namespace longca
