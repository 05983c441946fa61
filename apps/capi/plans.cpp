// Plans of longca.h.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "answer.h"
#include "core/device.h"
#include "core/lent_memory.h"
#include "core/memory.h"
#include "handles.h"
#include "keep_released.h"
#include "longca.h"
#include "problems.h"

namespace longca::capi {
namespace {

/// Memory of a caller's allocator.
class CallersMemory final : public MemoryTracker {
 public:
  explicit CallersMemory(const longca_allocator& allocator) : allocator_(allocator) {}

  /// The one for `allocator`. It stays: what a mask caches for its kernels outlives the plan.
  static CallersMemory& of(const longca_allocator& allocator) {
    using Key = std::tuple<void*, decltype(allocator.allocate), decltype(allocator.release)>;
    static std::mutex mutex;
    static std::map<Key, std::unique_ptr<CallersMemory>> all;
    const std::scoped_lock lock(mutex);
    auto& memory = all[{allocator.context, allocator.allocate, allocator.release}];
    if (!memory) memory = std::make_unique<CallersMemory>(allocator);
    return *memory;
  }

 protected:
  void* obtain(std::int64_t bytes) override {
    return allocator_.allocate(allocator_.context,
                               static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  }
  void give_back(void* pointer, std::int64_t bytes) noexcept override {
    allocator_.release(allocator_.context, pointer,
                       static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  }
  std::string refusal(std::int64_t bytes, std::int64_t in_use) const override {
    return fmt::format("the caller's allocator gave no {} bytes, beside {} in use", bytes, in_use);
  }

 private:
  longca_allocator allocator_;
};

/// Plans that were released while the device still had calls of theirs to do. Their memory would
/// serve the next plan, whose lists are uploaded at once, in another stream.
class ReleasedPlans {
 public:
  /// Never destroyed: the device may work until the process ends.
  static ReleasedPlans& all() {
    static auto* plans = new ReleasedPlans;
    return *plans;
  }

  void add(std::unique_ptr<longca_plan> plan) noexcept {
    if (has_ended(plan->mark.get())) return;
    const std::scoped_lock lock(mutex_);
    keep_released(std::move(plan), plans_);
  }
  void end_idle() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(plans_, [](const auto& plan) { return has_ended(plan->mark.get()); });
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<longca_plan>> plans_;
};

std::unique_ptr<longca_plan> make_plan(const longca_problem& p, const Mask& mask) {
  const Problem problem = to_problem(p, mask);
  const Kernel& kernel = find_kernel(p, problem, mask);
  const DeviceScope scope(problem.device);
  auto made = std::make_unique<longca_plan>(mask, problem, kernel);
  if (problem.device == DeviceKind::cuda) {
    ReleasedPlans::all().end_idle();
    made->mark = make_stream_mark(problem.device);
  }
  if (p.allocator != nullptr) {
    if (p.allocator->allocate == nullptr) throw_input_error("allocator.allocate is NULL");
    if (p.allocator->release == nullptr) throw_input_error("allocator.release is NULL");
    const LentMemory lent(problem.device, CallersMemory::of(*p.allocator));
    made->plan = kernel.plan(problem, mask);
  } else {
    made->plan = kernel.plan(problem, mask);
  }
  // What a plan uploads must be there whatever stream calls it.
  Device::get(problem.device).synchronize();
  return made;
}

/// Runs call(), which queues work of the plan on the stream, and marks its end.
template <typename Call>
void run(longca_plan& plan, Stream stream, const Call& call) {
  const std::scoped_lock lock(plan.calls);
  const DeviceScope scope(plan.problem.device);
  const EndOfCall end(plan.mark.get(), stream);
  call();
}

LseView view_of(const longca_lse& lse, const Problem& p) {
  const std::int64_t stride = lse.heads == 1 ? lse.tokens : lse.head_stride;
  if (lse.heads != p.heads_q || lse.tokens != p.tokens_q || stride < lse.tokens) {
    throw_input_error("lse is [{}, {}] of head stride {}, the plan's is [{}, {}]", lse.heads,
                      lse.tokens, lse.head_stride, p.heads_q, p.tokens_q);
  }
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(stride, lse.heads * std::int64_t{sizeof(float)}, &elements)) {
    throw_input_error("lse has head stride {}, too large for {} heads", stride, lse.heads);
  }
  if (lse.data == nullptr) throw_input_error("lse has no data");
  require_aligned(lse.data, sizeof(float), "lse");
  return {lse.data, lse.heads, lse.tokens, stride};
}

}  // namespace
}  // namespace longca::capi

extern "C" {

using namespace longca;
using namespace longca::capi;

longca_status longca_plan_create(const longca_problem* problem, const longca_mask* mask,
                                 longca_plan** plan) {
  return answer([&] {
    const longca_problem given = known_problem(problem);
    const Mask& m = required(mask, "mask").mask;
    give(plan, "plan", [&] { return make_plan(given, m); });
  });
}

const char* longca_plan_kernel(const longca_plan* plan) {
  return plan == nullptr ? nullptr : plan->kernel->capabilities().name.c_str();
}
int64_t longca_plan_workspace_bytes(const longca_plan* plan) {
  if (plan == nullptr) return 0;
  return guarded(int64_t{0}, [&] { return plan->plan->workspace_bytes(); });
}
void longca_plan_release(longca_plan* plan) {
  if (plan == nullptr) return;
  guarded(0, [&] {
    std::unique_ptr<longca_plan> released(plan);
    const DeviceScope scope(released->problem.device);
    ReleasedPlans::all().add(std::move(released));
    return 0;
  });
}

longca_status longca_forward(longca_plan* plan, const longca_forward_arguments* arguments) {
  return answer([&] {
    const Problem& p = required(plan, "plan").problem;
    const auto& a = required(arguments, "arguments");
    using enum TensorRole;
    const ForwardArgs args{.q = view_of(a.q, q, p),
                           .k = view_of(a.k, k, p),
                           .v = view_of(a.v, v, p),
                           .o = written_view_of(a.o, o, p),
                           .lse = view_of(a.lse, p),
                           .sink = p.sink ? &required(a.sink, "sink") : nullptr,
                           .stream = a.stream};
    run(*plan, a.stream, [&] { plan->plan->forward(args); });
  });
}

longca_status longca_backward(longca_plan* plan, const longca_backward_arguments* arguments) {
  return answer([&] {
    const Problem& p = required(plan, "plan").problem;
    const auto& a = required(arguments, "arguments");
    if (!p.backward) throw_input_error("the plan was made with problem.backward = 0");
    using enum TensorRole;
    BackwardArgs args{
        view_of(a.dout, dout, p),     view_of(a.q, q, p),           view_of(a.k, k, p),
        view_of(a.v, v, p),           view_of(a.o, o, p),           view_of(a.lse, p),
        written_view_of(a.dq, dq, p), written_view_of(a.dk, dk, p), written_view_of(a.dv, dv, p)};
    if (p.sink) {
      args.sink = &required(a.sink, "sink");
      args.dsink = &required(a.dsink, "dsink");
    }
    args.stream = a.stream;
    run(*plan, a.stream, [&] { plan->plan->backward(args); });
  });
}

}  // extern "C"
