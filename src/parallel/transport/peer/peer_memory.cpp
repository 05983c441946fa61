#include "parallel/transport/peer/peer_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <utility>

#include "core/cuda/error.h"
#include "core/error.h"
#include "parallel/transport/rank_exchange.h"

namespace longca {
namespace {

/// A smaller allocation may share its driver allocation, and so its IPC handle, with others.
constexpr std::int64_t kMinBytes = std::int64_t{2} << 20;

/// A free block serves a request that needs at least this share of it.
constexpr double kMinUse = 0.75;

}  // namespace

PeerMemory::PeerMemory(RankMessages& control)
    : control_(control), device_(Device::get(DeviceKind::cuda)) {
  device_.stream();  // makes this process's device the current one
}

PeerMemory::~PeerMemory() {
  cudaDeviceSynchronize();
  for (const auto& [place, data] : mapped_) cudaIpcCloseMemHandle(data);
  cudaGetLastError();
  if (std::uncaught_exceptions() > 0) return;
  try {
    control_.barrier();
  } catch (const std::exception&) {  // a rank that is gone has nothing mapped
  }
}

/// The smallest free block that is not much too large, or a new one.
PeerMemory::Block& PeerMemory::find_block(std::int64_t bytes) {
  const std::int64_t size = std::max(bytes, kMinBytes);
  Block* best = nullptr;
  for (Block& block : own_) {
    const std::int64_t has = block.memory.bytes();
    const auto min_bytes = static_cast<std::int64_t>(kMinUse * static_cast<double>(has));
    if (block.used || has < size || size < min_bytes) continue;
    if (best == nullptr || has < best->memory.bytes()) best = &block;
  }
  if (best != nullptr) return *best;
  Block block;
  block.memory = Buffer(device_.memory(), size);
  LONGCA_CUDA(cudaIpcGetMemHandle(&block.handle, block.memory.data()));
  return own_.emplace_back(std::move(block));
}

void* PeerMemory::allocate(std::int64_t bytes) {
  Block* block = nullptr;
  throw_together(control_, attempt([&] {
                   block = &find_block(bytes);
                   device_.fill(block->memory.data(), 0, block->memory.bytes());
                   device_.synchronize();
                 }));
  block->used = true;  // not before: where another rank fails, nobody is given a block
  return block->memory.data();
}

void PeerMemory::release(void* data) noexcept {
  for (Block& block : own_) {
    if (block.memory.data() == data) block.used = false;
  }
}

PeerMemory::Place PeerMemory::place_of(const void* data, std::int64_t bytes) const {
  const auto address = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Buffer& memory = own_[i].memory;
    const auto* begin = memory.as<const std::byte>();
    if (address >= begin && address + bytes <= begin + memory.bytes()) {
      return {own_[i].handle, static_cast<std::int32_t>(i), address - begin};
    }
  }
  throw_internal_error(__FILE__, __LINE__, "inside",
                       fmt::format("rank {}: a message of {} bytes ends outside of the memory that "
                                   "the transport allocated",
                                   control_.rank(), bytes));
}

void* PeerMemory::address(int rank, const Place& place) {
  const auto index = static_cast<std::size_t>(place.block);
  void* base = nullptr;
  if (rank == control_.rank()) {
    base = own_[index].memory.data();
  } else {
    void*& mapped = mapped_[{rank, place.block}];
    if (mapped == nullptr) {
      LONGCA_CUDA(cudaIpcOpenMemHandle(&mapped, place.handle, cudaIpcMemLazyEnablePeerAccess));
    }
    base = mapped;
  }
  return static_cast<std::byte*>(base) + place.offset;
}

}  // namespace longca
