#include "attention/adapters/python/python_kernel.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

std::optional<LongcaCallbacks>& python() {
  static std::optional<LongcaCallbacks> callbacks;
  return callbacks;
}

std::map<std::string, PythonRowState>& surveyed() {
  static std::map<std::string, PythonRowState> rows;
  return rows;
}

std::string& unavailable_reason() {
  static std::string reason;
  return reason;
}

LongcaTensor tensor_to_c(const ConstTensorView& t, DeviceKind device) {
  // Which tensors Python may write to depends on the call, not on the type.
  return {const_cast<void*>(t.data),
          t.tokens,
          t.heads,
          t.dim,
          t.token_stride,
          t.head_stride,
          static_cast<std::int32_t>(t.dtype),
          static_cast<std::int32_t>(device)};
}

LongcaLse lse_to_c(const ConstLseView& lse, DeviceKind device) {
  return {const_cast<float*>(lse.data), lse.heads, lse.tokens, lse.head_stride,
          static_cast<std::int32_t>(device)};
}

/// Throws the exception that the status of a failed call becomes.
void expect_done(const PythonReply& reply) {
  if (reply.status.ok()) return;
  if (reply.status.code == StatusCode::oom) throw OutOfMemory(reply.status.reason);
  throw std::runtime_error(reply.status.reason);
}

class PythonPlan : public Plan {
 public:
  PythonPlan(std::int64_t number, DeviceKind device) : number_(number), device_(device) {}
  ~PythonPlan() override { python()->release(number_); }
  PythonPlan(const PythonPlan&) = delete;
  PythonPlan& operator=(const PythonPlan&) = delete;

  void forward(const ForwardArgs& a) override {
    const LongcaForward arguments{tensor_to_c(a.q, device_),
                                  tensor_to_c(a.k, device_),
                                  tensor_to_c(a.v, device_),
                                  tensor_to_c(a.o, device_),
                                  lse_to_c(a.lse, device_),
                                  a.sink,
                                  a.stream};
    PythonReply reply;
    python()->forward(&reply, number_, &arguments);
    expect_done(reply);
  }

  void backward(const BackwardArgs& a) override {
    const LongcaBackward arguments{tensor_to_c(a.dout, device_),
                                   tensor_to_c(a.q, device_),
                                   tensor_to_c(a.k, device_),
                                   tensor_to_c(a.v, device_),
                                   tensor_to_c(a.o, device_),
                                   lse_to_c(a.lse, device_),
                                   tensor_to_c(a.dq, device_),
                                   tensor_to_c(a.dk, device_),
                                   tensor_to_c(a.dv, device_),
                                   a.sink,
                                   a.dsink,
                                   a.stream};
    PythonReply reply;
    python()->backward(&reply, number_, &arguments);
    expect_done(reply);
  }

  std::int64_t workspace_bytes() const override {
    const double bytes = number("workspace_bytes");
    constexpr double kMaxBytes = 1LL << 53;
    if (bytes >= 0 && bytes <= kMaxBytes) return static_cast<std::int64_t>(bytes);
    throw std::runtime_error(
        fmt::format("the plan's workspace_bytes is {}: at least 0, at most 2^53", bytes));
  }
  double compile_ms() const override { return number("compile_ms"); }
  std::map<std::string, std::string> notes() const override { return facts().notes; }

 private:
  PythonReply facts() const {
    PythonReply reply;
    python()->facts(&reply, number_);
    expect_done(reply);
    return reply;
  }

  double number(const char* name) const {
    const PythonReply reply = facts();
    const auto found = reply.numbers.find(name);
    return found == reply.numbers.end() ? 0 : found->second;
  }

  const std::int64_t number_;
  const DeviceKind device_;
};

class PythonKernel : public Kernel {
 public:
  explicit PythonKernel(PythonRow row) : row_(std::move(row)) {}

  const Capabilities& capabilities() const override { return row_.capabilities; }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    Support support = check_problem(row_.capabilities, problem, mask);
    if (!support.ok() || row_.can_express == nullptr) return support;
    return row_.can_express(mask);
  }

  Support supports(const Problem& problem, const Mask& mask) const override {
    Support support = check_capabilities(row_.capabilities, problem, mask);
    if (support.ok()) support = can_express(problem, mask);
    if (!support.ok()) return support;
    if (!unavailable_reason().empty()) return Support::unavailable(unavailable_reason());
    if (!python()) {
      const std::string reason = surveyed()[name()].reason;
      return reason.empty() ? support : Support::unavailable(reason);
    }
    const LongcaProblem asked = to_c(problem);
    PythonReply reply;
    python()->supports(&reply, name(), &asked, &mask);
    return reply.status;
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    LONGCA_CHECK(python().has_value(), "{} is planned outside of Python", name());
    const LongcaProblem asked = to_c(problem);
    PythonReply reply;
    const std::int64_t number = python()->plan(&reply, name(), &asked, &mask);
    expect_done(reply);
    return std::make_unique<PythonPlan>(number, problem.device);
  }

  std::string version() const override {
    if (!python()) return surveyed()[name()].version;
    PythonReply reply;
    python()->version(&reply, name());
    return reply.notes["version"];
  }

 private:
  const char* name() const { return row_.capabilities.name.c_str(); }

  const PythonRow row_;
};

}  // namespace

LongcaProblem to_c(const Problem& p) {
  return {p.tokens_q,
          p.tokens_k,
          p.heads_q,
          p.heads_k,
          p.head_dim,
          static_cast<std::int32_t>(p.dtype),
          static_cast<std::int32_t>(p.device),
          p.backward,
          p.deterministic,
          p.sink,
          static_cast<double>(p.scale()),
          static_cast<double>(p.softcap),
          p.value_dim(),
          0};
}

std::unique_ptr<Kernel> make_python_kernel(PythonRow row) {
  return std::make_unique<PythonKernel>(std::move(row));
}

bool needs_python(const Kernel& kernel) {
  return dynamic_cast<const PythonKernel*>(&kernel) != nullptr;
}

void set_python_callbacks(const LongcaCallbacks& callbacks) {
  python() = callbacks;
}

void set_python_row(const std::string& name, PythonRowState state) {
  surveyed()[name] = std::move(state);
}

void set_python_unavailable(std::string reason) {
  unavailable_reason() = std::move(reason);
}

}  // namespace longca
