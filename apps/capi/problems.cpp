#include "problems.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "answer.h"
#include "attention/api/registry.h"
#include "attention/api/softcap.h"
#include "core/device.h"
#include "parallel/plan/rank_limits.h"

namespace longca::capi {
namespace {

/// The kernel for a device and mask, where the caller names none.
std::string_view chosen_kernel(DeviceKind device, const Mask& mask) {
  if (device == DeviceKind::cuda) return "slice";
  return mask.blocks() != nullptr ? "block_sparse" : "flash";
}

void check_shape(const longca_problem& p) {
  check_count(p.heads_q, "heads_q");
  check_count(p.heads_k, "heads_k");
  check_count(p.head_dim, "head_dim");
  if (p.head_dim_v < 0 || p.head_dim_v > p.head_dim) {
    throw_input_error("head_dim_v = {}: from 1 to head_dim = {}, or 0 for as many", p.head_dim_v,
                      p.head_dim);
  }
  if (p.heads_q % p.heads_k != 0) {
    throw_input_error("heads {}:{}: the KV heads must divide the query heads", p.heads_q,
                      p.heads_k);
  }
  if (p.dtype < LONGCA_FLOAT32 || p.dtype > LONGCA_FLOAT16) {
    throw_input_error("dtype = {}: LONGCA_FLOAT32, LONGCA_BFLOAT16 or LONGCA_FLOAT16", p.dtype);
  }
  if (p.device != LONGCA_CPU && p.device != LONGCA_CUDA) {
    throw_input_error("device = {}: LONGCA_CPU or LONGCA_CUDA", p.device);
  }
  using Float = std::numeric_limits<float>;
  if (p.scale != 0 && !(p.scale >= Float::min() && p.scale <= Float::max())) {
    throw_input_error("scale = {}: from {} to {}, or 0 for 1/√head_dim", p.scale, Float::min(),
                      Float::max());
  }
  if (p.softcap != 0 && !(p.softcap >= kMinSoftcap && p.softcap <= kMaxSoftcap)) {
    throw_input_error("softcap = {}: 0, or from {} to {}", p.softcap, kMinSoftcap, kMaxSoftcap);
  }
  if (p.sink != 0 && p.sink != 1) throw_input_error("sink = {}: 0 or 1", p.sink);
}

/// Whether `count` rows of `dim` elements, `stride` apart, are apart and end before the next ones,
/// of which there are `outer_count`, `outer_stride` apart.
bool lie_within(std::int64_t count, std::int64_t stride, std::int64_t outer_count,
                std::int64_t outer_stride, std::int64_t dim) {
  if (count > 1 && stride < dim) return false;
  if (outer_count <= 1) return true;
  return outer_stride >= dim && (count <= 1 || stride <= (outer_stride - dim) / (count - 1));
}

/// Whether every element's offset in bytes is a number that pointers can be moved by.
bool can_be_addressed(const longca_tensor& t, DType dtype) {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t last = 0;
  std::int64_t bytes = 0;
  return !__builtin_mul_overflow(t.token_stride, t.tokens, &tokens) &&
         !__builtin_mul_overflow(t.head_stride, t.heads, &heads) &&
         !__builtin_add_overflow(tokens, heads, &last) &&
         !__builtin_add_overflow(last, t.dim, &last) &&
         !__builtin_mul_overflow(last, static_cast<std::int64_t>(size_of(dtype)), &bytes);
}

}  // namespace

void check_count(std::int64_t value, const char* name) {
  constexpr std::int64_t kMax = 1 << 20;
  if (value < 1 || value > kMax) {
    throw_input_error("{} = {}: at least 1, at most {}", name, value, kMax);
  }
}

void check_rank(std::int64_t rank, std::int64_t ranks) {
  if (ranks < 1 || ranks > kMaxRunningRanks) {
    throw_input_error("ranks = {}: at least 1, at most {}", ranks, kMaxRunningRanks);
  }
  if (rank < 0 || rank >= ranks) {
    throw_input_error("rank = {} of {} ranks: 0 to ranks − 1", rank, ranks);
  }
}

longca_problem known_problem(const longca_problem* problem) {
  constexpr longca_problem kDefaults = LONGCA_PROBLEM_INIT;
  return known_part(required(problem, "problem"), kDefaults, "longca_problem");
}

Problem to_problem(const longca_problem& p, const Mask& mask) {
  check_shape(p);
  if (mask.heads() != 1 && mask.heads() != p.heads_q && mask.heads() != p.heads_k) {
    throw_input_error("the mask has block lists for {} heads, the attention {}:{} heads",
                      mask.heads(), p.heads_q, p.heads_k);
  }
  Problem problem;
  problem.tokens_q = mask.q_tokens();
  problem.tokens_k = mask.k_tokens();
  problem.heads_q = p.heads_q;
  problem.heads_k = p.heads_k;
  problem.head_dim = p.head_dim;
  problem.head_dim_v = p.head_dim_v;
  problem.dtype = static_cast<DType>(p.dtype);
  problem.softmax_scale = static_cast<float>(p.scale);
  problem.device = static_cast<DeviceKind>(p.device);
  problem.backward = p.backward != 0;
  problem.deterministic = p.deterministic != 0;
  problem.softcap = static_cast<float>(p.softcap);
  problem.sink = p.sink != 0;
  return problem;
}

const Kernel& find_kernel(const longca_problem& given, const Problem& problem, const Mask& mask) {
  const std::string name(given.kernel != nullptr ? given.kernel
                                                 : chosen_kernel(problem.device, mask));
  const Kernel& kernel = KernelRegistry::global().find(name, problem.device);
  if (const Support s = kernel.supports(problem, mask); !s.ok()) {
    throw Refusal(s.code == StatusCode::unavailable ? LONGCA_UNAVAILABLE : LONGCA_UNSUPPORTED,
                  s.reason);
  }
  if (problem.backward && !kernel.capabilities().gradient_of_parts) {
    throw Refusal(LONGCA_UNSUPPORTED,
                  name + "'s backward pass goes by its own forward pass, not by o and lse");
  }
  return kernel;
}

TensorShape shape_of(TensorRole role, const Problem& p) {
  using enum TensorRole;
  const bool of_keys = role == k || role == v || role == dk || role == dv;
  const bool of_values = role == v || role == o || role == dv || role == dout;
  return {of_keys ? p.tokens_k : p.tokens_q, of_keys ? p.heads_k : p.heads_q,
          of_values ? p.value_dim() : p.head_dim};
}

TensorView view_of(const longca_tensor& t, TensorRole role, const Problem& p) {
  const std::string_view name = to_string(role);
  const TensorShape plans = shape_of(role, p);
  if (t.tokens != plans.tokens || t.heads != plans.heads || t.dim != plans.dim) {
    throw_input_error("{} is [{}, {}, {}], the plan's is [{}, {}, {}]", name, t.tokens, t.heads,
                      t.dim, plans.tokens, plans.heads, plans.dim);
  }
  if (t.data == nullptr && t.tokens > 0) throw_input_error("{} has no data", name);
  require_aligned(t.data, static_cast<std::size_t>(size_of(p.dtype)), name);
  if (t.token_stride < 0 || t.head_stride < 0) {
    throw_input_error("{} has strides ({}, {}): at least 0", name, t.token_stride, t.head_stride);
  }
  if (!can_be_addressed(t, p.dtype)) {
    throw_input_error("{} has strides ({}, {}), too large for {} tokens and {} heads", name,
                      t.token_stride, t.head_stride, t.tokens, t.heads);
  }
  return {t.data, p.dtype, t.tokens, t.heads, t.dim, t.token_stride, t.head_stride};
}

TensorView written_view_of(const longca_tensor& t, TensorRole role, const Problem& p) {
  const TensorView view = view_of(t, role, p);
  if (!lie_within(t.heads, t.head_stride, t.tokens, t.token_stride, t.dim) &&
      !lie_within(t.tokens, t.token_stride, t.heads, t.head_stride, t.dim)) {
    throw_input_error("{} is written, and with strides ({}, {}) its rows of {} elements overlap",
                      to_string(role), t.token_stride, t.head_stride, t.dim);
  }
  return view;
}

}  // namespace longca::capi
