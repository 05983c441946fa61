#include "gpu/parallel/comm/checks.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "core/cuda/error.h"
#include "gpu/bench/spin.h"
#include "gpu/parallel/comm/exchanges.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  ///< in ns

template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw std::runtime_error(fmt::format(format, std::forward<Args>(args)...));
}

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

cudaStream_t stream() {
  return static_cast<cudaStream_t>(gpu().stream());
}

std::vector<unsigned char> contents(int rank, std::int64_t bytes) {
  std::vector<unsigned char> result(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < bytes; ++i) result[static_cast<std::size_t>(i)] = content(rank, i);
  return result;
}

/// The first difference, in words.
void require_equal(const std::vector<unsigned char>& found,
                   const std::vector<unsigned char>& expected, const std::string& where) {
  if (found == expected) return;
  std::size_t i = 0;
  while (found[i] == expected[i]) ++i;
  throw std::runtime_error(
      fmt::format("{}: byte {} is {}, expected {}", where, i, found[i], expected[i]));
}

std::vector<unsigned char> read(const void* data, std::int64_t bytes) {
  std::vector<unsigned char> found(static_cast<std::size_t>(bytes));
  gpu().copy(found.data(), data, bytes);
  return found;
}

double now_ns() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

void check_random_exchanges(Communicator& communicator, RankControl& control) {
  constexpr int kRounds = 12;
  constexpr int kExchanges = 8;
  constexpr std::int64_t kBytes = std::int64_t{80} << 20;
  constexpr unsigned char kPoison = 0xa5;
  const int rank = communicator.rank();
  void* sent = communicator.allocate(kBytes);
  void* received = communicator.allocate(kBytes);
  gpu().copy(sent, contents(rank, kBytes).data(), kBytes);
  std::mt19937_64 random(42);
  for (int round = 0; round < kRounds; ++round) {
    const auto exchanges = random_exchanges(random, communicator.size(), kExchanges, kBytes);
    gpu().fill(received, kPoison, kBytes);
    communicator.reset_bytes_sent();
    std::int64_t bytes = 0;
    std::vector<int> groups;
    for (const GlobalExchange& exchange : exchanges) {
      const TransferGroup group = group_of(exchange, rank, sent, received);
      for (const Transfer& send : group.sends) bytes += send.bytes();
      groups.push_back(communicator.prepare(group));
    }
    const auto late = static_cast<int>(random() % static_cast<unsigned>(communicator.size()));
    if (late == rank) queue_spin(2 * kMillisecond, stream());
    if (round % 3 > 0) communicator.expect(groups, stream());
    for (const int group : groups) communicator.start(group, stream());
    for (const int group : groups) communicator.finish(group);
    gpu().synchronize();
    require_equal(read(received, kBytes), expected_bytes(exchanges, rank, kBytes, kPoison),
                  fmt::format("round {}", round));
    require(communicator.bytes_sent() == bytes, "{} bytes sent, but {} counted", bytes,
            communicator.bytes_sent());
    control.barrier();
  }
}

void check_relay(Communicator& communicator) {
  constexpr std::int64_t kBytes = std::int64_t{3} << 20;
  constexpr int kTimesAround = 5;
  const int rank = communicator.rank();
  const int size = communicator.size();
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  const std::array<void*, 2> buffers{communicator.allocate(kBytes), communicator.allocate(kBytes)};
  gpu().copy(buffers[0], contents(rank, kBytes).data(), kBytes);
  std::array<int, 2> passes{};
  for (std::size_t from = 0; from < 2; ++from) {
    TransferGroup group;
    group.sends.push_back({next, buffers[from], 1, kBytes, kBytes});
    group.receives.push_back({previous, buffers[1 - from], 1, kBytes, kBytes});
    passes[from] = communicator.prepare(group);
  }
  const int count = kTimesAround * size;
  for (int pass = 0; pass < count; ++pass) {
    if (pass % size == rank) queue_spin(kMillisecond, stream());
    communicator.start(passes[static_cast<std::size_t>(pass % 2)], stream());
  }
  gpu().synchronize();
  require_equal(read(buffers[static_cast<std::size_t>(count % 2)], kBytes), contents(rank, kBytes),
                "what went around");
  require_equal(read(buffers[static_cast<std::size_t>((count + 1) % 2)], kBytes),
                contents(next, kBytes), "what was passed on last");
}

void check_early_landing(Communicator& communicator, RankControl& control) {
  if (communicator.name() != "peer") return;  // others meet first
  constexpr double kLate = 30 * kMillisecond;
  constexpr std::int64_t kBytes = std::int64_t{3} << 20;
  const int rank = communicator.rank();
  void* sent = communicator.allocate(kBytes);
  void* received = communicator.allocate(kBytes);
  gpu().copy(sent, contents(rank, kBytes).data(), kBytes);
  for (int late = 0; late < communicator.size(); ++late) {
    const int sender = (late + 1) % communicator.size();
    TransferGroup group;
    group.lands_early = true;
    if (rank == sender) group.sends.push_back({late, sent, 1, kBytes, kBytes});
    if (rank == late) group.receives.push_back({sender, received, 1, kBytes, kBytes});
    const int message = communicator.prepare(group);
    gpu().synchronize();
    control.barrier();
    const double begin = now_ns();
    communicator.expect({&message, 1}, stream());
    if (rank == late) queue_spin(static_cast<std::int64_t>(kLate), stream());
    communicator.start(message, stream());
    gpu().synchronize();
    const double took = now_ns() - begin;
    require(rank != sender || took < kLate, "rank {} waited {} ns for rank {}, which expected it",
            rank, took, late);
    if (rank == late) require_equal(read(received, kBytes), contents(sender, kBytes), "early");
  }
}

void check_barrier(Communicator& communicator, RankControl& control) {
  constexpr double kLate = 30 * kMillisecond;
  for (int late = 0; late < communicator.size(); ++late) {
    gpu().synchronize();
    control.barrier();
    // The clock is the host's, so that the moments of its processes can be compared.
    const double begin = now_ns();
    if (communicator.rank() == late) queue_spin(static_cast<std::int64_t>(kLate), stream());
    communicator.barrier(stream());
    gpu().synchronize();
    const double passed = now_ns();
    // The late rank's spin cannot have begun before that rank's `begin`.
    const double came = control.max(communicator.rank() == late ? begin : 0) + kLate;
    require(passed >= came, "the barrier let rank {} pass {} ns before rank {} came",
            communicator.rank(), came - passed, late);
  }
}

}  // namespace longca::testing
