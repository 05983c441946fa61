#include "transport.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "core/device.h"
#include "core/error.h"
#include "parallel/transport/pushes.h"

namespace longca::capi {

void* CallersCommunicator::allocate(std::int64_t bytes) {
  Buffer& buffer = memory_.emplace_back(MemoryTracker::host(), bytes);
  if (bytes > 0) std::memset(buffer.data(), 0, static_cast<std::size_t>(bytes));
  return buffer.data();
}

void CallersCommunicator::Packed::copy(bool out) const {
  if (staging.bytes() == 0) return;
  Device& cpu = Device::get(DeviceKind::cpu);
  const Transfer& t = transfer;
  out ? cpu.copy_rows(staging.data(), t.row_bytes, t.data, t.stride_bytes, t.rows, t.row_bytes)
      : cpu.copy_rows(t.data, t.stride_bytes, staging.data(), t.row_bytes, t.rows, t.row_bytes);
}

void CallersCommunicator::add(const Transfer& transfer, std::vector<Packed>& packed,
                              std::vector<longca_message>& messages) {
  Packed& made = packed.emplace_back();
  made.transfer = transfer;
  if (!is_contiguous(transfer)) made.staging = Buffer(MemoryTracker::host(), transfer.bytes());
  void* data = made.staging.bytes() > 0 ? made.staging.data() : transfer.data;
  messages.push_back({transfer.peer, 0, data, transfer.bytes()});
}

int CallersCommunicator::prepare(const TransferGroup& group) {
  Group& made = groups_.emplace_back();
  for (const Transfer& t : group.sends) add(t, made.sends, made.send_messages);
  for (const Transfer& t : group.receives) add(t, made.receives, made.receive_messages);
  return static_cast<int>(groups_.size()) - 1;
}

CallersCommunicator::Group& CallersCommunicator::group(int number) {
  LONGCA_CHECK(number >= 0 && number < static_cast<int>(groups_.size()), "no group {}", number);
  return groups_[static_cast<std::size_t>(number)];
}

void CallersCommunicator::start(int number, Stream /*stream*/) {
  const Group& g = group(number);
  for (const Packed& send : g.sends) {
    send.copy(true);
    count_sent(send.transfer.bytes());
  }
  const std::int32_t failed =
      transport_.start(transport_.context, number, g.receive_messages.data(),
                       g.receive_messages.size(), g.send_messages.data(), g.send_messages.size());
  if (failed != 0) {
    throw std::runtime_error(
        fmt::format("rank {}: the caller's transport answers {} to start of group {}, {} receives "
                    "and {} sends",
                    rank_, failed, number, g.receive_messages.size(), g.send_messages.size()));
  }
}

void CallersCommunicator::finish(int number) {
  if (const int failed = transport_.finish(transport_.context, number); failed != 0) {
    throw std::runtime_error(fmt::format(
        "rank {}: the caller's transport answers {} to finish of group {}", rank_, failed, number));
  }
  for (const Packed& receive : group(number).receives) receive.copy(false);
}

int CallersCommunicator::prepare_barrier() {
  TransferGroup group;
  auto* bytes = static_cast<std::byte*>(allocate(2 * std::int64_t{size_}));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    group.sends.push_back({peer, bytes + peer, 1, 1, 1});
    group.receives.push_back({peer, bytes + size_ + peer, 1, 1, 1});
  }
  return prepare(group);
}

void CallersCommunicator::barrier(Stream stream) {
  if (barrier_ < 0) barrier_ = prepare_barrier();
  start(barrier_, stream);
  finish(barrier_);
}

}  // namespace longca::capi
