#include "parallel/transport/peer/peer_memory.h"

#include <cuda_runtime_api.h>
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

/// Runs `call` and returns its exception as a status.
template <typename Call>
Support attempt(Call&& call) {
  try {
    call();
    return {};
  } catch (const OutOfMemory& error) {
    return {StatusCode::oom, error.what()};
  } catch (const std::exception& error) {
    return {StatusCode::crash, error.what()};
  }
}

/// Throws on every rank if one of them failed, so that none waits for it. Collective.
void throw_together(RankControl& control, const Support& mine) {
  const Support all = agree(control, mine);
  if (all.code == StatusCode::oom) throw OutOfMemory(all.reason);
  if (!all.ok()) throw std::runtime_error(all.reason);
}

}  // namespace

PeerMemory::PeerMemory(RankControl& control)
    : control_(control), device_(Device::get(DeviceKind::cuda)) {
  device_.stream();  // makes this process's device the current one
}

PeerMemory::~PeerMemory() {
  cudaDeviceSynchronize();
  for (const std::vector<void*>& buffer : mapped_) {
    for (int rank = 0; rank < static_cast<int>(buffer.size()); ++rank) {
      if (rank != control_.rank()) cudaIpcCloseMemHandle(buffer[static_cast<std::size_t>(rank)]);
    }
  }
  cudaGetLastError();
  if (std::uncaught_exceptions() == 0) control_.barrier();
}

void* PeerMemory::allocate(std::int64_t bytes) {
  cudaIpcMemHandle_t handle{};
  Buffer buffer;
  throw_together(control_, attempt([&] {
                   buffer = Buffer(device_.memory(), std::max(bytes, kMinBytes));
                   device_.fill(buffer.data(), 0, buffer.bytes());
                   device_.synchronize();
                   LONGCA_CUDA(cudaIpcGetMemHandle(&handle, buffer.data()));
                 }));
  const auto handles = exchange_records(control_, handle);
  std::vector<void*> mapped(handles.size());
  throw_together(control_, attempt([&] {
                   for (std::size_t rank = 0; rank < handles.size(); ++rank) {
                     if (static_cast<int>(rank) == control_.rank()) continue;
                     LONGCA_CUDA(cudaIpcOpenMemHandle(&mapped[rank], handles[rank],
                                                      cudaIpcMemLazyEnablePeerAccess));
                   }
                 }));
  mapped[static_cast<std::size_t>(control_.rank())] = buffer.data();
  mapped_.push_back(std::move(mapped));
  own_.push_back(std::move(buffer));
  return own_.back().data();
}

PeerMemory::Place PeerMemory::place_of(const void* data, std::int64_t bytes) const {
  const auto address = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto* begin = own_[i].as<const std::byte>();
    if (address >= begin && address + bytes <= begin + own_[i].bytes()) {
      return {static_cast<std::int32_t>(i), address - begin};
    }
  }
  throw_internal_error(__FILE__, __LINE__, "inside",
                       fmt::format("rank {}: a message of {} bytes ends outside of the memory that "
                                   "the transport allocated",
                                   control_.rank(), bytes));
}

void* PeerMemory::address(int rank, const Place& place) const {
  void* base = mapped_[static_cast<std::size_t>(place.buffer)][static_cast<std::size_t>(rank)];
  return static_cast<std::byte*>(base) + place.offset;
}

}  // namespace longca
