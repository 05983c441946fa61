#include "gpu/reference/honest_kernel.h"

#include "attention/reference/tile_mask.h"
#include "core/thread_pool.h"

namespace longca::test {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

Buffer upload(const std::vector<std::int64_t>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(std::int64_t));
  Buffer buffer(gpu().memory(), bytes);
  if (bytes > 0) gpu().copy(buffer.data(), values.data(), bytes);
  return buffer;
}

DeviceRows rows_of(const Mask& mask, TileOwner owner) {
  const bool queries = owner == TileOwner::queries;
  const std::int64_t tokens = queries ? mask.q_tokens() : mask.k_tokens();
  std::vector<std::vector<Range>> rows(static_cast<std::size_t>(tokens * mask.heads()));
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, int) {
        const auto head = static_cast<int>(i / tokens);
        rows[static_cast<std::size_t>(i)] =
            queries ? mask.key_intervals(head, i % tokens) : mask.query_intervals(head, i % tokens);
      });
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> ranges;
  for (const auto& row : rows) {
    for (const Range& range : row) {
      ranges.push_back(range.begin);
      ranges.push_back(range.end);
    }
    offsets.push_back(static_cast<std::int64_t>(ranges.size() / 2));
  }
  return {upload(offsets), upload(ranges), mask.heads()};
}

RowsView view(const DeviceRows& rows) {
  return {rows.offsets.as<std::int64_t>(), rows.ranges.as<std::int64_t>(), rows.heads};
}

}  // namespace

HonestKernel::HonestKernel(const Problem& problem, const Mask& mask)
    : problem_(problem),
      keys_of_queries_(rows_of(mask, TileOwner::queries)),
      queries_of_keys_(rows_of(mask, TileOwner::keys)),
      delta_(gpu().memory(), problem.tokens_q * problem.heads_q * 4) {}

void HonestKernel::forward(const ForwardArgs& args) const {
  launch_forward(args, view(keys_of_queries_), problem_.scale(), gpu().stream());
}

void HonestKernel::backward(const BackwardArgs& args) const {
  launch_backward(args, view(keys_of_queries_), view(queries_of_keys_), problem_.scale(),
                  delta_.as<float>(), gpu().stream());
}

DeviceOutputs solve_on_gpu(const Problem& problem, const Mask& mask, const Inputs& inputs) {
  DeviceOutputs outputs(problem);
  const HonestKernel kernel(problem, mask);
  kernel.forward(outputs.forward_args(inputs));
  kernel.backward(outputs.backward_args(inputs));
  gpu().synchronize();
  return outputs;
}

}  // namespace longca::test
