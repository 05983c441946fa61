#include "attention/selection/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "attention/reference/float64_samples.h"
#include "core/device.h"
#include "core/error.h"
#include "core/python_random.h"
#include "core/thread_pool.h"
#include "mask/list_of_head.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/reference/cuda/copy_head.h"
#endif

namespace longca {
namespace {

constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kRowsPerHead = 8;

/// Copies one head to host memory as float32 [tokens, dim].
std::vector<float> head_of(DeviceKind device, const ConstTensorView& x, std::int64_t head) {
  std::vector<float> values(static_cast<std::size_t>(x.tokens * x.dim));
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) {
    HeadCopier().copy(x, head, values);
    return values;
  }
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "a tensor on {}", to_string(device));
  for (std::int64_t token = 0; token < x.tokens; ++token) {
    float* out = values.data() + token * x.dim;
    with_type_of(x.dtype, [&]<typename T>(T) {
      std::transform(x.row<T>(token, head), x.row<T>(token, head) + x.dim, out,
                     [](T value) { return static_cast<float>(value); });
    });
  }
  return values;
}

struct Attended {
  double lse = -std::numeric_limits<double>::infinity();  ///< of the keys, without the sink
  std::vector<double> o;
};

/// Attention of one row to `keys`, by definition, in float64.
Attended attend(const HeadValues& head, std::int64_t row, const std::vector<Range>& keys) {
  const auto value_dim = static_cast<std::size_t>(head.value_dim);
  Attended out{.o = std::vector<double>(value_dim, 0)};
  const std::span<const float> q = std::span(head.q).subspan(
      static_cast<std::size_t>(row * head.dim), static_cast<std::size_t>(head.dim));
  const std::vector<double> scores =
      exact_scores(q, head.k, head.dim, head.scale, head.softcap, keys);
  if (scores.empty()) return out;
  const double largest = *std::ranges::max_element(scores);
  double weight = 0;  // of the keys
  auto score = scores.begin();
  for (const Range& range : keys) {
    for (std::int64_t key = range.begin; key < range.end; ++key) {
      const double p = std::exp(*score++ - largest);
      weight += p;
      const float* v = head.v.data() + key * head.value_dim;
      for (std::size_t c = 0; c < value_dim; ++c) out.o[c] += p * double{v[c]};
    }
  }
  out.lse = largest + std::log(weight);
  // The sink has no value: of all weights 1 / (1 + e^(sink − lse)) are the keys'.
  if (head.sink) weight *= 1 + std::exp(double{*head.sink} - out.lse);
  for (double& value : out.o) value /= weight;
  return out;
}

std::optional<float> sink_of(const Problem& problem, const Inputs& inputs, std::int64_t head) {
  if (!problem.sink) return std::nullopt;
  return head_of(problem.device, inputs.sink.view(), head).front();
}

struct Sums {
  double mass = 0, error = 0, size = 0;
  int rows = 0;
};

Sums quality_of_row(const HeadValues& head, std::int64_t row, const std::vector<Range>& all,
                    const std::vector<Range>& kept) {
  if (all.empty()) return {};
  const Attended full = attend(head, row, all);
  const Attended sparse = attend(head, row, kept);
  Sums sums{.mass = std::exp(sparse.lse - full.lse), .rows = 1};
  for (std::size_t c = 0; c < full.o.size(); ++c) {
    sums.error += (sparse.o[c] - full.o[c]) * (sparse.o[c] - full.o[c]);
    sums.size += full.o[c] * full.o[c];
  }
  return sums;
}

}  // namespace

SelectionQuality selection_quality(const Problem& problem, const Mask& mask, const Inputs& inputs,
                                   std::uint64_t seed) {
  const std::vector<MaskSlice> slices(mask.slices().begin(), mask.slices().end());
  const Mask frame = Mask::from_slices(mask.q_tokens(), mask.k_tokens(), slices);
  const std::int64_t heads = std::min<std::int64_t>(kHeads, problem.heads_q);
  PythonRandom random(seed);
  Sums total;
  for (std::int64_t h = 0; h < heads && problem.tokens_q > 0; ++h) {
    const std::int64_t head_q = h * problem.heads_q / heads;
    const std::int64_t head_k = head_q * problem.heads_k / problem.heads_q;
    const HeadValues head{.q = head_of(problem.device, inputs.q.view(), head_q),
                          .k = head_of(problem.device, inputs.k.view(), head_k),
                          .v = head_of(problem.device, inputs.v.view(), head_k),
                          .dout = {},
                          .dim = problem.head_dim,
                          .value_dim = problem.value_dim(),
                          .scale = problem.scale(),
                          .softcap = problem.softcap,
                          .sink = sink_of(problem, inputs, head_q)};
    const auto mask_head = static_cast<int>(list_of_head(head_q, mask.heads(), problem.heads_q));
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < std::min(kRowsPerHead, problem.tokens_q); ++i) {
      rows.push_back(random.randint(0, problem.tokens_q - 1));
    }
    std::vector<Sums> sums(rows.size());
    ThreadPool::global().parallel_for(std::ssize(rows), [&](std::int64_t i, int) {
      const auto at = static_cast<std::size_t>(i);
      sums[at] = quality_of_row(head, rows[at], frame.key_intervals(0, rows[at]),
                                mask.key_intervals(mask_head, rows[at]));
    });
    for (const Sums& s : sums) {  // in order, so that results do not depend on threads
      total.mass += s.mass;
      total.error += s.error;
      total.size += s.size;
      total.rows += s.rows;
    }
  }
  if (total.rows == 0) return {};
  return {total.mass / total.rows, std::sqrt(total.error / total.size), total.rows};
}

}  // namespace longca
