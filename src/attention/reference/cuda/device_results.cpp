#include "attention/reference/cuda/device_results.h"

#include <algorithm>
#include <utility>

#include "attention/reference/interval_lists.h"
#include "core/cuda/error.h"
#include "core/error.h"

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
        "the reference needs {} bytes of shared memory per block for head dimension "
        "{} in {}: this GPU has {}",
        needed, problem.head_dim, to_string(problem.dtype), limit);
  }
}

std::vector<int> query_heads_of(const std::vector<int>& heads_k, int group) {
  std::vector<int> heads;
  for (const int head_k : heads_k) {
    for (int i = 0; i < group; ++i) heads.push_back(head_k * group + i);
  }
  return heads;
}

}  // namespace

DeviceIntervals DeviceResults::Lists::view() const {
  return {list_of.as<std::int32_t>(),    list_offsets.as<std::int64_t>(),
          intervals.as<TokenInterval>(), run_offsets.as<std::int64_t>(),
          runs.as<PartnerRun>(),         order.as<std::int32_t>()};
}

DeviceResults::DeviceResults(const ReferenceProblem& problem, const std::vector<int>& heads_k)
    : problem_(problem),
      device_(Device::get(DeviceKind::cuda)),
      heads_q_(query_heads_of(heads_k, problem.shape.group_size())),
      heads_k_(heads_k) {
  const Problem& p = problem.shape;
  check_limits(p);
  std::vector<int> mask_heads;
  std::vector<int> mask_slots(static_cast<std::size_t>(p.heads_q));
  std::vector<int> query_slots(mask_slots.size());
  for (std::size_t slot = 0; slot < heads_q_.size(); ++slot) {
    const int mask_head = problem.mask_head(heads_q_[slot]);
    if (mask_heads.empty() || mask_heads.back() != mask_head) mask_heads.push_back(mask_head);
    mask_slots[heads_q_[slot]] = static_cast<int>(mask_heads.size()) - 1;
    query_slots[heads_q_[slot]] = static_cast<int>(slot);
  }
  query_heads_ = upload(heads_q_);
  key_heads_ = upload(heads_k_);
  mask_slots_ = upload(mask_slots);
  query_slots_ = upload(query_slots);
  query_lists_ = upload_lists(make_interval_lists(problem.mask, TileOwner::queries, mask_heads));
  key_lists_ = upload_lists(make_interval_lists(problem.mask, TileOwner::keys, mask_heads));
  q_squared_ = allocate(p.tokens_q * p.heads_q * 4);
  dout_squared_ = allocate(p.tokens_q * p.heads_q * 4);
  k_squared_ = allocate(p.tokens_k * p.heads_k * 4);
  v_squared_ = allocate(p.tokens_k * p.heads_k * 4);
  rows_ = allocate(size(heads_q_) * p.tokens_q * static_cast<std::int64_t>(sizeof(RowStatistic)));
  o_ = make_output(heads_q_, query_heads_, p.tokens_q);
  dq_ = make_output(heads_q_, query_heads_, p.tokens_q);
  dk_ = make_output(heads_k_, key_heads_, p.tokens_k);
  dv_ = make_output(heads_k_, key_heads_, p.tokens_k);
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

DeviceResults::Lists DeviceResults::upload_lists(const IntervalLists& lists) {
  return {upload(lists.list_of),     upload(lists.list_offsets), upload(lists.intervals),
          upload(lists.run_offsets), upload(lists.runs),         upload(lists.order)};
}

DeviceResults::Output DeviceResults::make_output(std::span<const int> heads,
                                                 const Buffer& device_heads, std::int64_t tokens) {
  Output output;
  output.heads = heads;
  output.device_heads = device_heads.as<int>();
  output.tokens = tokens;
  const auto slots = static_cast<std::int64_t>(heads.size());
  output.values = allocate(slots * tokens * problem_.shape.head_dim * 4);
  output.figures.resize(static_cast<std::size_t>(slots * output.tiles()));
  output.device_figures =
      allocate(static_cast<std::int64_t>(output.figures.size() * sizeof(TileFigure)));
  return output;
}

PassArgs DeviceResults::arguments(ReferencePass pass) const {
  const bool queries = pass == ReferencePass::forward || pass == ReferencePass::query_gradient;
  const Inputs& inputs = *problem_.inputs;
  PassArgs args;
  args.q = inputs.q.view();
  args.k = inputs.k.view();
  args.v = inputs.v.view();
  args.dout = inputs.dout.view();
  args.scale = problem_.shape.scale();
  args.group = problem_.shape.group_size();
  args.heads = (queries ? query_heads_ : key_heads_).as<int>();
  args.slots = static_cast<int>((queries ? heads_q_ : heads_k_).size());
  args.mask_slot = mask_slots_.as<int>();
  args.query_slot = query_slots_.as<int>();
  args.mask = (queries ? query_lists_ : key_lists_).view();
  args.rows = rows_.as<RowStatistic>();
  args.q_squared = q_squared_.as<float>();
  args.k_squared = k_squared_.as<float>();
  args.v_squared = v_squared_.as<float>();
  args.dout_squared = dout_squared_.as<float>();
  return args;
}

void DeviceResults::compute(ReferencePass pass, Output& output) {
  PassArgs args = arguments(pass);
  args.out = output.values.as<float>();
  args.figures = output.device_figures.as<TileFigure>();
  run_pass(pass, args, static_cast<cudaStream_t>(device_.stream()));
}

void DeviceResults::compute_forward() {
  if (std::exchange(has_forward_, true)) return;
  const auto stream = static_cast<cudaStream_t>(device_.stream());
  const Inputs& inputs = *problem_.inputs;
  squared_norms(inputs.q.view(), q_squared_.as<float>(), stream);
  squared_norms(inputs.k.view(), k_squared_.as<float>(), stream);
  squared_norms(inputs.v.view(), v_squared_.as<float>(), stream);
  squared_norms(inputs.dout.view(), dout_squared_.as<float>(), stream);
  compute(ReferencePass::forward, o_);
  host_rows_.resize(heads_q_.size() * static_cast<std::size_t>(problem_.shape.tokens_q));
  device_.copy(host_rows_.data(), rows_.data(), rows_.bytes());
  device_.copy(o_.figures.data(), o_.device_figures.data(), o_.device_figures.bytes());
}

void DeviceResults::compute_gradients() {
  compute_forward();
  if (std::exchange(has_gradients_, true)) return;
  compute(ReferencePass::query_gradient, dq_);
  compute(ReferencePass::value_gradient, dv_);
  compute(ReferencePass::key_gradient, dk_);
  for (Output* output : {&dq_, &dv_, &dk_}) {
    device_.copy(output->figures.data(), output->device_figures.data(),
                 output->device_figures.bytes());
  }
}

std::int64_t DeviceResults::bytes_for(const Problem& problem, const Mask& mask,
                                      std::int64_t heads_k) {
  const std::int64_t heads_q = heads_k * problem.group_size();
  const std::int64_t rows_q = heads_q * problem.tokens_q;
  const std::int64_t rows_k = heads_k * problem.tokens_k;
  const std::int64_t values = (rows_q + rows_k) * 2 * problem.head_dim * 4;
  const std::int64_t norms =
      (problem.tokens_q * problem.heads_q + problem.tokens_k * problem.heads_k) * 2 * 4;
  // Lists of one interval per token where diagonals cut; those of blocks are shared by their rows.
  const std::int64_t list_heads = mask.blocks() != nullptr ? heads_q : 1;
  const std::int64_t lists = (problem.tokens_q + problem.tokens_k) * list_heads * 20;
  return values + norms + lists + rows_q * static_cast<std::int64_t>(sizeof(RowStatistic)) +
         (rows_q + rows_k) / kTile * 2 * static_cast<std::int64_t>(sizeof(TileFigure));
}

}  // namespace longca
