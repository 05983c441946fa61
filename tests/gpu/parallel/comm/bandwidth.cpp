#include "gpu/parallel/comm/bandwidth.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "core/cuda/event.h"
#include "gpu/bench/spin.h"
#include "parallel/executor/step_math.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kHold = 4'000'000;  ///< ns

cudaStream_t stream() {
  return static_cast<cudaStream_t>(Device::get(DeviceKind::cuda).stream());
}

/// ms of one call, over `count` back to back between two events; `begin` is queued before the
/// first event.
double time_calls(int count, const std::function<void()>& begin,
                  const std::function<void()>& call) {
  const TimedCudaEvent first;
  const TimedCudaEvent last;
  begin();
  first.record(stream());
  for (int i = 0; i < count; ++i) call();
  last.record(stream());
  Device::get(DeviceKind::cuda).synchronize();
  return last.ms_since(first) / count;
}

/// An exchange among all ranks of `bytes` per rank.
struct Shape {
  const char* name;
  std::int64_t row_bytes;  ///< 0: contiguous
  bool ring;
  bool gathers_rows;    ///< strided where it lands instead of where it starts
  int messages = 1;     ///< of a ring, with 256 bytes between them
  bool turned = false;  ///< they land in the other order, so that none can be joined
};

constexpr Shape kShapes[] = {
    {"ring", 0, true, false},
    {"ring, 2 messages", 0, true, false, 2},
    {"ring, 2 messages, turned", 0, true, false, 2, true},
    {"ring, 8 messages, turned", 0, true, false, 8, true},
    {"all-gather", 0, false, false},
    {"all-to-all, rows of 64 B out", 64, false, false},
    {"all-to-all, rows of 128 B out", 128, false, false},
    {"all-to-all, rows of 256 B out", 256, false, false},
    {"all-to-all, rows of 256 B in", 256, false, true},
    {"all-to-all, rows of 1 KiB out", 1024, false, false},
    {"all-to-all, rows of 4 KiB out", 4096, false, false},
    {"all-to-all, rows of 4 KiB in", 4096, false, true},
};

TransferGroup group_of(const Shape& shape, const Communicator& communicator, std::byte* sent,
                       std::byte* received, std::int64_t bytes) {
  const int size = communicator.size();
  const int rank = communicator.rank();
  TransferGroup group;
  if (shape.ring) {
    const std::int64_t pitch = bytes / shape.messages;
    const std::int64_t one = shape.messages == 1 ? bytes : pitch - 256;
    for (int i = 0; i < shape.messages; ++i) {
      const int place = shape.turned ? shape.messages - 1 - i : i;
      group.sends.push_back({(rank + 1) % size, sent + i * pitch, 1, one, one});
      group.receives.push_back({(rank + size - 1) % size, received + place * pitch, 1, one, one});
    }
    return group;
  }
  group.pattern = Pattern::all_to_all;
  const std::int64_t part = bytes / size;
  const std::int64_t row_bytes = shape.row_bytes == 0 ? part : shape.row_bytes;
  const auto at = [&](std::byte* data, int peer, bool strided) {
    return strided ? Transfer{peer, data + peer * row_bytes, part / row_bytes, row_bytes,
                              row_bytes * size}
                   : Transfer{peer, data + peer * part, part / row_bytes, row_bytes, row_bytes};
  };
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    group.sends.push_back(at(sent, peer, !shape.gathers_rows));
    group.receives.push_back(at(received, peer, shape.gathers_rows));
  }
  return group;
}

/// ms of one call on the slowest rank.
double time_on_all(Communicator& communicator, RankControl& control, int count,
                   const std::function<void()>& call) {
  // All begin together, and not before the host has queued the calls.
  const auto begin = [&] {
    communicator.barrier(stream());
    queue_spin(kHold, stream());
  };
  time_calls(2, begin, call);
  return control.max(time_calls(count, begin, call));
}

/// GB/s that leave a GPU, and the time.
std::string bandwidth(const TransferGroup& group, Communicator& communicator,
                      RankControl& control) {
  const int prepared = communicator.prepare(group);
  std::int64_t bytes = 0;
  for (const Transfer& send : group.sends) bytes += send.bytes();
  const int count = static_cast<int>(std::clamp<std::int64_t>(512 * kMiB / bytes, 4, 40));
  const double ms =
      time_on_all(communicator, control, count, [&] { communicator.start(prepared, stream()); });
  return fmt::format("{:9.1f} {:9.1f}", static_cast<double>(bytes) / ms / 1e6, ms * 1e3);
}

}  // namespace

void print_bandwidths(std::vector<NamedCommunicator>& communicators, RankControl& control) {
  const auto print = [&](const std::string& text) {
    if (control.rank() == 0) fmt::print("{}", text);
  };
  constexpr std::int64_t kMost = 256 * kMiB;
  std::vector<std::pair<std::byte*, std::byte*>> buffers;
  for (NamedCommunicator& named : communicators) {
    auto* sent = static_cast<std::byte*>(named.communicator->allocate(kMost));
    buffers.emplace_back(sent, static_cast<std::byte*>(named.communicator->allocate(kMost)));
  }
  print(fmt::format("{} ranks{:29}KiB", control.size(), ""));
  for (const NamedCommunicator& named : communicators) {
    print(fmt::format("{:>5} GB/s       µs", named.name));
  }
  print(fmt::format("\n{:<39}", "barrier"));
  for (NamedCommunicator& named : communicators) {
    const auto call = [&] { named.communicator->barrier(stream()); };
    print(fmt::format("{:19.1f}", 1e3 * time_on_all(*named.communicator, control, 40, call)));
  }
  print("\n");
  for (const Shape& shape : kShapes) {
    for (const std::int64_t bytes : {kMiB / 64, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, kMost}) {
      print(fmt::format("{:<30}{:9}", shape.name, bytes / 1024));
      for (std::size_t i = 0; i < communicators.size(); ++i) {
        Communicator& communicator = *communicators[i].communicator;
        const auto [sent, received] = buffers[i];
        const TransferGroup group = group_of(shape, communicator, sent, received, bytes);
        print(bandwidth(group, communicator, control));
      }
      print("\n");
    }
  }
}

void print_step_math() {
  constexpr std::int64_t kTokens = 8192;
  constexpr std::int64_t kHeads = 64;
  constexpr std::int64_t kDim = 128;
  MemoryTracker& memory = Device::get(DeviceKind::cuda).memory();
  std::vector<Tensor> narrow;
  std::vector<Lse> lses;
  std::vector<Partial> parts;
  for (int i = 0; i < 5; ++i) {
    narrow.emplace_back(memory, DType::bfloat16, kTokens, kHeads, kDim);
    lses.emplace_back(memory, kHeads, kTokens);
    cuda_step_math().clear(narrow.back().view(), stream());
    LONGCA_CUDA(cudaMemsetAsync(lses.back().view().data, 0, lses.back().bytes(), stream()));
    parts.push_back({narrow.back().view(), lses.back().view()});
  }
  const Tensor wide(memory, DType::float32, kTokens, kHeads, kDim);
  const Tensor wider(memory, DType::float32, kTokens, kHeads, kDim);
  const Partial sum{wide.view(), lses.back().view()};
  const TensorView result = narrow.back().view();
  TensorView half_heads = wide.view();
  half_heads.heads /= 2;
  TensorView half_result = result;
  half_result.heads /= 2;
  StepMath& math = cuda_step_math();
  const auto n = static_cast<double>(narrow.front().bytes());
  const auto print = [&](const char* name, double bytes, const std::function<void()>& call) {
    time_calls(
        2, [] {}, call);
    fmt::print("{:<44}{:6.2f} TB/s\n", name,
               bytes /
                   time_calls(
                       20, [] {}, call) /
                   1e9);
  };
  cudaStream_t on = stream();
  math.clear(wide.view(), on);
  math.clear(wider.view(), on);
  print("clear float32", 2 * n, [&] { math.clear(wide.view(), on); });
  print("copy float32", 4 * n, [&] { math.copy(wide.view(), wider.view(), on); });
  print("copy bf16", 2 * n, [&] { math.copy(parts[0].o, result, on); });
  print("convert float32 to bf16", 3 * n, [&] { math.convert(wide.view(), result, on); });
  print("convert float32 to bf16, half the heads", 1.5 * n,
        [&] { math.convert(half_heads, half_result, on); });
  print("add bf16 to float32", 5 * n, [&] { math.add(parts[0].o, wide.view(), false, on); });
  print("add float32 to float32", 6 * n, [&] { math.add(wider.view(), wide.view(), false, on); });
  print("merge bf16 into float32", 5 * n, [&] { math.merge(parts[0], sum.o, sum.lse, false, on); });
  for (const std::size_t count : {2, 3, 4}) {
    const std::span<const Partial> some(parts.data(), count);
    const auto c = static_cast<double>(count);
    print(fmt::format("merge {} bf16 to bf16", count).c_str(), (c + 1) * n,
          [&] { math.merge_all(some, {}, result, sum.lse, on); });
    print(fmt::format("merge {} bf16 and float32 to bf16", count).c_str(), (c + 3) * n,
          [&] { math.merge_all(some, sum, result, sum.lse, on); });
  }
}

}  // namespace longca::testing
