#include "callers_tensors.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/rounding.h"
#include "parallel/executor/op_analysis.h"
#include "parallel/executor/staging.h"
#include "problems.h"

namespace longca::capi {
namespace {

constexpr TensorRole kTensors[] = {TensorRole::q,  TensorRole::k,    TensorRole::v,
                                   TensorRole::o,  TensorRole::dout, TensorRole::dq,
                                   TensorRole::dk, TensorRole::dv};

bool is_of_backward(TensorRole role) {
  return role >= TensorRole::dout;
}

std::int64_t bytes_of(const TensorView& view) {
  return view.tokens * view.heads * view.dim * size_of(view.dtype);
}

/// Addresses for what stands for a tensor, and the gap behind it.
std::int64_t reserved_for(const TensorView& view) {
  constexpr std::int64_t kPage = std::int64_t{64} << 10;
  return round_up(bytes_of(view), kPage) + AddressMap::kApart;
}

/// As one row of 2-byte elements: all that plans keep are whole ones.
TensorView bytes_at(void* data, std::int64_t bytes) {
  const std::int64_t elements = bytes / 2;
  return {data, DType::bfloat16, 1, 1, elements, elements, elements};
}

}  // namespace

CallersTensors::Reserved::Reserved(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
  begin_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin_ == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "reserving addresses of tensors");
  }
}

CallersTensors::Reserved::~Reserved() {
  munmap(begin_, bytes_);
}

CallersTensors::CallersTensors(const RankPlan& plan, const Problem& problem, std::int64_t rows,
                               std::int64_t padded_rows, Communicator& communicator)
    : problem_(problem), local_(problem) {
  local_.tokens_q = local_.tokens_k = rows;
  const std::vector<TensorRole> landed = tensors_that_messages_land_in(plan);
  const bool on_cpu = problem.device == DeviceKind::cpu;
  std::int64_t bytes = aligned(4 * padded_rows * problem.heads_q);
  std::int64_t reserved_bytes = 0;
  std::vector<Tensor*> real;
  for (const TensorRole role : kTensors) {
    if (is_of_backward(role) && !problem.backward) continue;
    const auto [_, heads, dim] = shape_of(role, problem);
    Tensor& t = of(role);
    t.view = {nullptr, problem.dtype, padded_rows, heads, dim, heads * dim, dim};
    t.stands_in = !on_cpu && std::ranges::find(landed, role) == landed.end();
    if (t.stands_in) {
      reserved_bytes += reserved_for(t.view);
    } else {
      bytes += aligned(bytes_of(t.view));
      real.push_back(&t);
    }
  }
  auto* at = static_cast<std::byte*>(communicator.allocate(bytes));
  for (Tensor* t : real) {
    t->view.data = at;
    at += aligned(bytes_of(t->view));
  }
  tensors_.lse = {reinterpret_cast<float*>(at), problem.heads_q, padded_rows, padded_rows};
  if (reserved_bytes > 0) {
    std::byte* stand_in = reserved_.emplace(reserved_bytes).begin();
    for (Tensor& t : all_) {
      if (!t.stands_in) continue;
      t.view.data = stand_in;
      stand_in += reserved_for(t.view);
    }
    communicator.map_sends(map_);
  }
  tensors_.q = of(TensorRole::q).view;
  tensors_.k = of(TensorRole::k).view;
  tensors_.v = of(TensorRole::v).view;
  tensors_.o = of(TensorRole::o).view;
  tensors_.dout = of(TensorRole::dout).view;
  tensors_.dq = of(TensorRole::dq).view;
  tensors_.dk = of(TensorRole::dk).view;
  tensors_.dv = of(TensorRole::dv).view;
  if (!problem.sink) return;
  sinks_ = Buffer(Device::get(problem.device).memory(), 2 * sink_bytes());
  tensors_.sink = sinks_.as<float>();
  tensors_.dsink = sinks_.as<float>() + problem.heads_q;
}

TensorView CallersTensors::settle(TensorRole role, const TensorView& callers) {
  Tensor& t = of(role);
  const std::int64_t bytes = bytes_of(t.view);
  if (!t.stands_in || bytes == 0) return t.view;
  constexpr std::uintptr_t kAlignment = 16;
  if (callers.tokens == t.view.tokens && is_contiguous(callers) &&
      reinterpret_cast<std::uintptr_t>(callers.data) % kAlignment == 0) {
    map_.bind(t.view.data, bytes, callers.data);
    return callers;
  }
  if (t.staged.bytes() == 0) {
    Device& device = Device::get(problem_.device);
    t.staged = Buffer(device.memory(), bytes);
    device.fill(t.staged.data(), 0, bytes);  // rows of padding stay 0
    device.synchronize();
  }
  map_.bind(t.view.data, bytes, t.staged.data());
  TensorView staged = t.view;
  staged.data = t.staged.data();
  return staged;
}

void CallersTensors::begin_call() {
  in_.clear();
  out_.clear();
}

void CallersTensors::take_in(TensorRole role, const longca_tensor& from) {
  const TensorView callers = view_of(from, role, local_);
  const TensorView plans = settle(role, callers);
  if (plans.data != callers.data && callers.tokens > 0) {
    in_.push_back({callers, token_rows(plans, {0, callers.tokens})});
  }
}

void CallersTensors::give_out(TensorRole role, const longca_tensor& to) {
  const TensorView callers = written_view_of(to, role, local_);
  const TensorView plans = settle(role, callers);
  if (plans.data != callers.data && callers.tokens > 0) {
    out_.push_back({token_rows(plans, {0, callers.tokens}), callers});
  }
}

std::int64_t CallersTensors::sink_bytes() const {
  return 4 * std::int64_t{problem_.heads_q};
}

void CallersTensors::take_in_sinks(const float& from) {
  add_in(const_cast<float*>(&from), sinks_.data(), sink_bytes());
}

void CallersTensors::give_out_sink_gradients(float& to) {
  add_out(tensors_.dsink, &to, sink_bytes());
}

void CallersTensors::add_in(void* from, void* to, std::int64_t bytes) {
  if (bytes > 0) in_.push_back({bytes_at(from, bytes), bytes_at(to, bytes)});
}

void CallersTensors::add_out(void* from, void* to, std::int64_t bytes) {
  if (bytes > 0) out_.push_back({bytes_at(from, bytes), bytes_at(to, bytes)});
}

void CallersTensors::queue_in(Stream stream) {
  step_math(problem_.device).copy_all(std::exchange(in_, {}), stream);
}

void CallersTensors::queue_out(Stream stream) {
  step_math(problem_.device).copy_all(std::exchange(out_, {}), stream);
}

}  // namespace longca::capi
