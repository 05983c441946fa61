// Kernels that are right when they are verified and do less work when they are timed: `naive`
// underneath, on either device, and a cheat around its calls.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "attention/api/plugin.h"
#include "core/device.h"

namespace {

using namespace longca;

struct Block {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

Block block_of(const TensorView& t) {
  return {t.data, t.tokens * t.heads * t.dim * size_of(t.dtype)};
}
Block block_of(const LseView& lse) {
  return {lse.data, lse.heads * lse.tokens * 4};
}

using Bytes = std::vector<std::byte>;

/// What a plan keeps from call to call of one pass.
struct Kept {
  int calls = 0;
  std::vector<Bytes> results;
  std::vector<std::uint32_t> samples;
  std::thread behind;
  std::atomic<bool> is_behind{false};  ///< the thread still has work to do

  Kept() = default;
  ~Kept() { wait(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  void wait() {
    if (behind.joinable()) behind.join();
  }
};

/// One call of a pass.
struct Call {
  Device& device;
  std::vector<const void*> inputs;
  std::vector<Block> outputs;
  std::function<void()> compute;

  bool is_first(const Kept& kept) const { return kept.calls == 1; }
  std::uint32_t first_word() const {
    std::uint32_t word = 0;
    device.copy(&word, outputs[0].data, 4);
    return word;
  }
  std::vector<std::uint32_t> sample() const {
    std::vector<std::uint32_t> found(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) device.copy(&found[i], inputs[i], 4);
    return found;
  }
  void keep_results(Kept& kept) const {
    kept.results.clear();
    for (const Block& block : outputs) {
      Bytes& bytes = kept.results.emplace_back(static_cast<std::size_t>(block.bytes));
      device.copy(bytes.data(), block.data, block.bytes);
    }
  }
  void give_results(const Kept& kept) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      device.copy(outputs[i].data, kept.results[i].data(), outputs[i].bytes);
    }
  }
};

/// The work is done only where the output looks unwritten.
void skip_filled(const Call& call, Kept& kept) {
  constexpr std::uint32_t kNan = 0xffffffff;
  if (call.is_first(kept) || call.first_word() == kNan) call.compute();
}

/// Results go with the addresses of the tensors.
void remember_by_address(const Call& call, Kept& kept) {
  if (!kept.results.empty()) return call.give_results(kept);
  call.compute();
  call.keep_results(kept);
}

/// Results go with the first values of the inputs.
void remember_by_samples(const Call& call, Kept& kept) {
  auto sample = call.sample();
  if (sample == kept.samples) return call.give_results(kept);
  call.compute();
  call.keep_results(kept);
  kept.samples = std::move(sample);
}

/// The work goes on when the call has returned; until it has ended, calls do none.
void return_early(const Call& call, Kept& kept) {
  if (call.is_first(kept)) return call.compute();
  if (kept.is_behind.exchange(true)) return;
  kept.wait();
  kept.behind = std::thread([compute = call.compute, &kept] {
    // Lets the call return: on a busy machine the thread may run first, and the call is honest.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    compute();
    kept.is_behind = false;
  });
}

void skip_odd_calls(const Call& call, Kept& kept) {
  if (call.is_first(kept) || kept.calls % 2 == 0) call.compute();
}

void err_at_third_calls(const Call& call, Kept& kept) {
  call.compute();
  const float wrong = 100;
  if (kept.calls % 3 == 0) call.device.copy(call.outputs[0].data, &wrong, 4);
}

/// All calls but the first write the first half of the results and then the second, in turns.
void write_halves(const Call& call, Kept& kept) {
  if (call.is_first(kept)) return call.compute();
  Kept before;
  call.keep_results(before);
  call.compute();
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const std::int64_t half = call.outputs[i].bytes / 8 * 4;
    const std::int64_t begin = kept.calls % 2 == 0 ? 0 : half;
    const std::int64_t end = kept.calls % 2 == 0 ? half : call.outputs[i].bytes;
    call.device.copy(static_cast<std::byte*>(call.outputs[i].data) + begin,
                     before.results[i].data() + begin, end - begin);
  }
}

void be_honest(const Call& call, Kept&) {
  call.compute();
}

struct Cheat {
  const char* name;
  void (*run)(const Call& call, Kept& kept);
};

constexpr Cheat kCheats[] = {
    {"cheat_filled", skip_filled},          {"cheat_address", remember_by_address},
    {"cheat_samples", remember_by_samples}, {"cheat_early", return_early},
    {"cheat_odd", skip_odd_calls},          {"cheat_third", err_at_third_calls},
    {"cheat_halves", write_halves},         {"cheat_not", be_honest},
};

class CheatPlan : public Plan {
 public:
  CheatPlan(const Cheat& cheat, Device& device, std::unique_ptr<Plan> inner)
      : cheat_(cheat), device_(device), inner_(std::move(inner)) {}

  void forward(const ForwardArgs& args) override {
    ++forward_.calls;
    cheat_.run({device_,
                {args.q.data, args.k.data, args.v.data},
                {block_of(args.o), block_of(args.lse)},
                [this, args] { inner_->forward(args); }},
               forward_);
  }
  void backward(const BackwardArgs& args) override {
    ++backward_.calls;
    cheat_.run({device_,
                {args.dout.data, args.q.data, args.k.data, args.v.data},
                {block_of(args.dq), block_of(args.dk), block_of(args.dv)},
                [this, args] { inner_->backward(args); }},
               backward_);
  }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  const Cheat& cheat_;
  Device& device_;
  std::unique_ptr<Plan> inner_;
  // Last: their threads use what is above.
  Kept forward_;
  Kept backward_;
};

class CheatKernel : public Kernel {
 public:
  CheatKernel(const Cheat& cheat, const Kernel& inner)
      : cheat_(cheat), inner_(inner), capabilities_(inner.capabilities()) {
    capabilities_.name = cheat.name;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return inner_.supports(problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<CheatPlan>(cheat_, Device::get(problem.device),
                                       inner_.plan(problem, mask));
  }

 private:
  const Cheat& cheat_;
  const Kernel& inner_;
  Capabilities capabilities_;
};

/// Around `naive` for every device that the program has it for.
void add_kernels(KernelRegistry& registry) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    const Kernel& naive = registry.find("naive", kind);
    if (naive.capabilities().device != kind) continue;
    for (const Cheat& cheat : kCheats) registry.add(std::make_unique<CheatKernel>(cheat, naive));
  }
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "cheats", .add_kernels = add_kernels};
  return &info;
}
