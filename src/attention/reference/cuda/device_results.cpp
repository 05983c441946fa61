#include "attention/reference/cuda/device_results.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attention/reference/interval_lists.h"
#include "core/cuda/error.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

std::int64_t size(const std::vector<int>& values) {
  return static_cast<std::int64_t>(values.size());
}

void check_limits(const Problem& problem) {
  const int largest = largest_reference_dim(problem.dtype);
  if (problem.head_dim > largest) {
    throw_input_error("the reference on a GPU takes head dimensions up to {} in {}: not {}",
                      largest, to_string(problem.dtype), problem.head_dim);
  }
  int device = 0;
  int limit = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const int needed = reference_shared_bytes(problem.dtype, problem.head_dim);
  if (needed > limit) {
    throw_input_error(
        "the reference needs {} bytes of shared memory per CTA for head dimension "
        "{} in {}: this GPU has {}",
        needed, problem.head_dim, to_string(problem.dtype), limit);
  }
}

/// Every head's order restricted to the drawn tiles.
std::vector<std::int32_t> drawn_of(const IntervalLists& lists,
                                   const std::vector<std::int32_t>& drawn) {
  std::vector<std::int32_t> order;
  std::ranges::copy_if(lists.order, std::back_inserter(order),
                       [&](std::int32_t tile) { return std::ranges::binary_search(drawn, tile); });
  return order;
}

std::vector<int> query_heads_of(const std::vector<int>& heads_k, int group) {
  std::vector<int> heads;
  for (const int head_k : heads_k) {
    for (int i = 0; i < group; ++i) heads.push_back(head_k * group + i);
  }
  return heads;
}

/// The statistics of a query tile by these members, the exact ones or the emulation's.
template <typename Real>
RowStatistics<Real> statistics_of_tile(std::span<const RowStatistic> rows, std::int64_t tile,
                                       Real RowStatistic::*lse, Real RowStatistic::*delta) {
  RowStatistics<Real> out;
  rows = rows.subspan(static_cast<std::size_t>(tile * kTile));
  for (std::size_t i = 0; i < std::min<std::size_t>(kTile, rows.size()); ++i) {
    out.lse[i] = rows[i].*lse;
    out.delta[i] = rows[i].*delta;
    out.delta_magnitude[i] = static_cast<Real>(rows[i].delta_magnitude);
  }
  return out;
}

}  // namespace

DeviceIntervals DeviceResults::Lists::view() const {
  return {list_of.as<std::int32_t>(), list_offsets.as<std::int64_t>(),
          intervals.as<TokenInterval>(), run_offsets.as<std::int64_t>(), runs.as<PartnerRun>()};
}

DeviceResults::DeviceResults(const ReferenceProblem& problem, DrawnTiles drawn)
    : problem_(problem),
      device_(Device::get(DeviceKind::cuda)),
      drawn_(std::move(drawn)),
      heads_q_(query_heads_of(drawn_.heads_k, problem.shape.group_size())) {
  const Problem& p = problem.shape;
  check_limits(p);
  std::vector<int> mask_heads;
  std::vector<int> mask_indices(static_cast<std::size_t>(p.heads_q));
  std::vector<int> query_indices(mask_indices.size());
  for (std::size_t head_index = 0; head_index < heads_q_.size(); ++head_index) {
    const int mask_head = problem.mask_head(heads_q_[head_index]);
    if (mask_heads.empty() || mask_heads.back() != mask_head) mask_heads.push_back(mask_head);
    mask_indices[heads_q_[head_index]] = static_cast<int>(mask_heads.size()) - 1;
    query_indices[heads_q_[head_index]] = static_cast<int>(head_index);
  }
  query_heads_ = upload(heads_q_);
  key_heads_ = upload(drawn_.heads_k);
  mask_indices_ = upload(mask_indices);
  query_indices_ = upload(query_indices);
  query_lists_ = upload_lists(make_interval_lists(problem.mask, TileOwner::queries, mask_heads),
                              drawn_.queries);
  key_lists_ =
      upload_lists(make_interval_lists(problem.mask, TileOwner::keys, mask_heads), drawn_.keys);
  q_squared_ = allocate(p.tokens_q * p.heads_q * 4);
  dout_squared_ = allocate(p.tokens_q * p.heads_q * 4);
  k_squared_ = allocate(p.tokens_k * p.heads_k * 4);
  v_squared_ = allocate(p.tokens_k * p.heads_k * 4);
  rows_ = allocate(size(heads_q_) * p.tokens_q * static_cast<std::int64_t>(sizeof(RowStatistic)));
  if (!whole()) given_rows_ = allocate(rows_.bytes());
  const auto of_queries = [&](int dim) {
    return make_output(heads_q_, query_heads_, query_lists_, drawn_.queries, p.tokens_q, dim);
  };
  const auto of_keys = [&](int dim) {
    return make_output(drawn_.heads_k, key_heads_, key_lists_, drawn_.keys, p.tokens_k, dim);
  };
  o_ = of_queries(p.value_dim());
  dq_ = of_queries(p.head_dim);
  dk_ = of_keys(p.head_dim);
  dv_ = of_keys(p.value_dim());
}

Buffer DeviceResults::allocate(std::int64_t bytes) {
  bytes_ += bytes;
  return Buffer(device_.memory(), bytes);
}

template <typename T>
Buffer DeviceResults::upload(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  Buffer buffer = allocate(bytes);
  if (bytes > 0) device_.copy(buffer.data(), values.data(), bytes);
  return buffer;
}

DeviceResults::Lists DeviceResults::upload_lists(const IntervalLists& lists,
                                                 const std::vector<std::int32_t>& drawn) {
  return {upload(lists.list_of),
          upload(lists.list_offsets),
          upload(lists.intervals),
          upload(lists.run_offsets),
          upload(lists.runs),
          upload(lists.order),
          upload(whole() ? std::vector<std::int32_t>{} : drawn_of(lists, drawn)),
          upload(drawn)};
}

DeviceResults::Output DeviceResults::make_output(std::span<const int> heads,
                                                 const Buffer& device_heads, const Lists& lists,
                                                 std::span<const std::int32_t> drawn,
                                                 std::int64_t tokens, int dim) {
  Output output;
  output.heads = heads;
  output.device_heads = device_heads.as<int>();
  output.drawn = drawn;
  output.device_drawn = lists.drawn.as<std::int32_t>();
  output.tokens = tokens;
  const auto head_count = static_cast<std::int64_t>(heads.size());
  output.values = allocate(head_count * tokens * dim * 4);
  output.statistics.resize(static_cast<std::size_t>(head_count * output.tiles()));
  output.device_statistics =
      allocate(static_cast<std::int64_t>(output.statistics.size() * sizeof(TileStatistics)));
  device_.fill(output.device_statistics.data(), 0, output.device_statistics.bytes());
  return output;
}

PassArgs DeviceResults::arguments(ReferencePass pass, bool all) const {
  const bool queries = pass == ReferencePass::forward || pass == ReferencePass::query_gradient;
  const Lists& lists = queries ? query_lists_ : key_lists_;
  const Problem& p = problem_.shape;
  const Inputs& inputs = *problem_.inputs;
  PassArgs args;
  args.q = inputs.q.view();
  args.k = inputs.k.view();
  args.v = inputs.v.view();
  args.dout = inputs.dout.view();
  args.scale = p.scale();
  args.softcap = p.softcap;
  if (p.sink) args.sink = inputs.sink_logits();
  args.group = problem_.shape.group_size();
  args.heads = (queries ? query_heads_ : key_heads_).as<int>();
  args.head_count = static_cast<int>((queries ? heads_q_ : drawn_.heads_k).size());
  args.mask_index = mask_indices_.as<int>();
  args.query_index = query_indices_.as<int>();
  args.mask = lists.view();
  args.order = (all ? lists.order : lists.drawn_order).as<std::int32_t>();
  args.tiles = static_cast<int>(all       ? tile_count(queries ? p.tokens_q : p.tokens_k)
                                : queries ? drawn_.queries.size()
                                          : drawn_.keys.size());
  args.q_squared = q_squared_.as<float>();
  args.k_squared = k_squared_.as<float>();
  args.v_squared = v_squared_.as<float>();
  args.dout_squared = dout_squared_.as<float>();
  return args;
}

void DeviceResults::compute(ReferencePass pass, const Buffer& rows, bool all, Output& output) {
  PassArgs args = arguments(pass, all);
  args.rows = rows.as<RowStatistic>();
  args.out = output.values.as<float>();
  args.statistics = output.device_statistics.as<TileStatistics>();
  run_pass(pass, args, static_cast<cudaStream_t>(device_.stream()));
}

void DeviceResults::copy_statistics(Output& output) const {
  device_.copy(output.statistics.data(), output.device_statistics.data(),
               output.device_statistics.bytes());
}

void DeviceResults::compute_rows(bool all) {
  compute(ReferencePass::forward, rows_, all, o_);
  copy_statistics(o_);
  host_rows_.resize(heads_q_.size() * static_cast<std::size_t>(problem_.shape.tokens_q));
  device_.copy(host_rows_.data(), rows_.data(), rows_.bytes());
  has_all_rows_ = all;
}

void DeviceResults::compute_forward() {
  if (std::exchange(has_forward_, true)) return;
  const auto stream = static_cast<cudaStream_t>(device_.stream());
  const Inputs& inputs = *problem_.inputs;
  squared_norms(inputs.q.view(), q_squared_.as<float>(), stream);
  squared_norms(inputs.k.view(), k_squared_.as<float>(), stream);
  squared_norms(inputs.v.view(), v_squared_.as<float>(), stream);
  squared_norms(inputs.dout.view(), dout_squared_.as<float>(), stream);
  if (!whole()) device_.fill(rows_.data(), 0, rows_.bytes());
  compute_rows(whole());
}

void DeviceResults::compute_query_gradients() {
  compute_forward();
  if (std::exchange(has_query_gradients_, true)) return;
  compute(ReferencePass::query_gradient, rows_, whole(), dq_);
  copy_statistics(dq_);
}

void DeviceResults::compute_key_gradients() {
  compute_forward();
  if (!has_all_rows_) compute_rows(true);
  if (std::exchange(has_key_gradients_, true)) return;
  compute_key_gradients_of(rows_);
}

void DeviceResults::compute_key_gradients_from(const ConstTensorView& o, const ConstLseView& lse) {
  LONGCA_CHECK(!whole(), "the reference has rows of its own");
  compute_forward();
  statistics_of(o, lse, problem_.inputs->dout.view(), query_heads_.as<int>(),
                static_cast<int>(heads_q_.size()), query_indices_.as<int>(),
                given_rows_.as<RowStatistic>(), static_cast<cudaStream_t>(device_.stream()));
  const std::uint64_t rows = device_.hash(0, given_rows_.data(), given_rows_.bytes());
  if (std::exchange(given_, rows) == rows) return;
  has_key_gradients_ = false;
  compute_key_gradients_of(given_rows_);
}

void DeviceResults::compute_key_gradients_of(const Buffer& rows) {
  rows_of_keys_ = &rows;
  compute(ReferencePass::value_gradient, rows, whole(), dv_);
  compute(ReferencePass::key_gradient, rows, whole(), dk_);
  copy_statistics(dv_);
  copy_statistics(dk_);
}

std::vector<RowStatistic> DeviceResults::rows_of_keys() const {
  LONGCA_CHECK(rows_of_keys_ != nullptr, "no gradients of keys were computed");
  std::vector<RowStatistic> rows(host_rows_.size());
  device_.copy(rows.data(), rows_of_keys_->data(), rows_of_keys_->bytes());
  return rows;
}

std::vector<SinkGradient> DeviceResults::sink_gradients() const {
  const Problem& p = problem_.shape;
  if (!p.sink) return {};
  const std::vector<RowStatistic> rows = rows_of_keys();
  std::vector<float> sinks(static_cast<std::size_t>(p.heads_q));
  device_.copy(sinks.data(), problem_.inputs->sink_logits(), std::int64_t{p.heads_q} * 4);
  std::vector<SinkGradient> gradients(heads_q_.size());
  ThreadPool::global().parallel_for(size(heads_q_), [&](std::int64_t index, int) {
    const std::span of_head(rows.data() + index * p.tokens_q, static_cast<std::size_t>(p.tokens_q));
    const int head = heads_q_[static_cast<std::size_t>(index)];
    gradients[static_cast<std::size_t>(index)] = sink_gradient(
        head, sinks[static_cast<std::size_t>(head)], p.tokens_q,
        [&](std::int64_t, std::int64_t tile) {
          return statistics_of_tile(of_head, tile, &RowStatistic::lse, &RowStatistic::delta);
        },
        [&](std::int64_t, std::int64_t tile) {
          return statistics_of_tile(of_head, tile, &RowStatistic::same_lse,
                                    &RowStatistic::same_delta);
        },
        p.dtype);
  });
  return gradients;
}

std::int64_t DeviceResults::bytes_for(const Problem& problem, const Mask& mask,
                                      std::int64_t heads_k) {
  const std::int64_t heads_q = heads_k * problem.group_size();
  const std::int64_t rows_q = heads_q * problem.tokens_q;
  const std::int64_t rows_k = heads_k * problem.tokens_k;
  const std::int64_t values = (rows_q + rows_k) * (problem.head_dim + problem.value_dim()) * 4;
  const std::int64_t norms =
      (problem.tokens_q * problem.heads_q + problem.tokens_k * problem.heads_k) * 2 * 4;
  // One interval per token (diagonals); the rows of a block share their list.
  const std::int64_t list_heads = mask.blocks() != nullptr ? heads_q : 1;
  const std::int64_t lists = (problem.tokens_q + problem.tokens_k) * list_heads * 20;
  return values + norms + lists + rows_q * 2 * static_cast<std::int64_t>(sizeof(RowStatistic)) +
         (rows_q + rows_k) / kTile * 2 * static_cast<std::int64_t>(sizeof(TileStatistics));
}

}  // namespace longca
