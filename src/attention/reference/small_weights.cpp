#include "attention/reference/small_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attention/reference/float64_samples.h"
#include "core/device.h"

namespace longca {
namespace {

/// Tokens `tokens` of a head of a tensor on the device, as float32 [tokens, dim].
std::vector<float> values_on_host(Device& device, const ConstTensorView& x, std::int64_t head,
                                  Range tokens) {
  const std::int64_t element = size_of(x.dtype);
  const HostTensor copy(x.dtype, tokens.size(), 1, x.dim);
  const auto* from = static_cast<const char*>(x.data) +
                     (tokens.begin * x.token_stride + head * x.head_stride) * element;
  device.copy_rows(copy.view().data, x.dim * element, from, x.token_stride * element, tokens.size(),
                   x.dim * element);
  const std::int64_t count = tokens.size() * x.dim;
  std::vector<float> values(static_cast<std::size_t>(count));
  with_type_of(x.dtype, [&]<typename T>(T) {
    std::transform(copy.view().row<T>(0, 0), copy.view().row<T>(0, 0) + count, values.begin(),
                   [](T value) { return static_cast<float>(value); });
  });
  return values;
}

}  // namespace

double share_of_small_weights(const ReferenceProblem& problem, std::int64_t head_q,
                              std::int64_t row) {
  const Problem& shape = problem.shape;
  const Inputs& inputs = *problem.inputs;
  std::vector<Range> keys = problem.mask.key_intervals(problem.mask_head(head_q), row);
  if (keys.empty()) return 0;
  Device& device = Device::get(shape.device);
  const Range all = {keys.front().begin, keys.back().end};
  const std::vector<float> q = values_on_host(device, inputs.q.view(), head_q, Range{row, row + 1});
  const std::vector<float> k =
      values_on_host(device, inputs.k.view(), head_q / shape.group_size(), all);
  for (Range& range : keys) range = {range.begin - all.begin, range.end - all.begin};
  std::vector<double> weights =
      exact_scores(q, k, shape.head_dim, static_cast<double>(shape.scale()),
                   static_cast<double>(shape.softcap), keys);
  if (shape.sink) {
    float sink = 0;
    device.copy(&sink, inputs.sink_logits() + head_q, sizeof sink);
    weights.push_back(static_cast<double>(sink));
  }
  const double largest = *std::ranges::max_element(weights);
  for (double& weight : weights) weight = std::exp(weight - largest);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto add_small = [&](double small, double weight) {
    return weight < 0x1p-24 * sum ? small + weight : small;
  };
  return std::accumulate(weights.begin(), weights.end(), 0.0, add_small) / sum;
}

}  // namespace longca
