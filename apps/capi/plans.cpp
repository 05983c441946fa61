// Plans of longca.h.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "answer.h"
#include "core/device.h"
#include "core/lent_memory.h"
#include "core/memory.h"
#include "handles.h"
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

 private:
  longca_allocator allocator_;
};

std::unique_ptr<longca_plan> make_plan(const longca_problem& p, const Mask& mask) {
  const Problem problem = to_problem(p, mask);
  const Kernel& kernel = find_kernel(p, problem, mask);
  auto made = std::make_unique<longca_plan>(mask, problem, kernel);
  if (p.allocator != nullptr) {
    if (p.allocator->allocate == nullptr || p.allocator->release == nullptr) {
      throw_input_error("the allocator lacks allocate or release");
    }
    const LentMemory lent(problem.device, CallersMemory::of(*p.allocator));
    made->plan = kernel.plan(problem, mask);
  } else {
    made->plan = kernel.plan(problem, mask);
  }
  // What a plan uploads must be there whatever stream calls it.
  Device::get(problem.device).synchronize();
  return made;
}

LseView view_of(const longca_lse& lse, const Problem& p) {
  const std::int64_t stride = lse.heads == 1 ? lse.tokens : lse.head_stride;
  if (lse.heads != p.heads_q || lse.tokens != p.tokens_q || stride < lse.tokens) {
    throw_input_error("lse is [{}, {}] of head stride {}, the plan's is [{}, {}]", lse.heads,
                      lse.tokens, lse.head_stride, p.heads_q, p.tokens_q);
  }
  if (lse.data == nullptr) throw_input_error("lse has no data");
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
    constexpr longca_problem kDefaults = LONGCA_PROBLEM_INIT;
    const auto given = known_part(required(problem, "problem"), kDefaults, "longca_problem");
    const Mask& m = required(mask, "mask").mask;
    give(plan, "plan", [&] { return make_plan(given, m); });
  });
}

const char* longca_plan_kernel(const longca_plan* plan) {
  return plan == nullptr ? nullptr : plan->kernel->capabilities().name.c_str();
}
int64_t longca_plan_workspace_bytes(const longca_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->workspace_bytes();
}
void longca_plan_release(longca_plan* plan) {
  delete plan;
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
    const std::scoped_lock lock(plan->calls);
    plan->plan->forward(args);
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
    const std::scoped_lock lock(plan->calls);
    plan->plan->backward(args);
  });
}

}  // extern "C"
