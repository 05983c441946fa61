#include "attention/selection/cuda/block_selector.h"

#include <algorithm>
#include <vector>

#include "attention/selection/cuda/launch.h"
#include "attention/selection/select_blocks.h"
#include "core/error.h"
#include "core/rounding.h"
#include "mask/block_lists.h"

namespace longca {
namespace {

constexpr std::int64_t kRowUnit = 128;  ///< row unit of a slab within a head: whole tiles

Buffer device_buffer(std::int64_t bytes) {
  return {Device::get(DeviceKind::cuda).memory(), bytes};
}

Buffer uploaded(const std::vector<std::int64_t>& values) {
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  Buffer buffer = device_buffer(std::ssize(narrow) * 4);
  if (!narrow.empty()) {
    Device::get(DeviceKind::cuda).copy(buffer.data(), narrow.data(), buffer.bytes());
  }
  return buffer;
}

}  // namespace

CudaBlockSelector::CudaBlockSelector(const Problem& problem, const BlockChoice& choice,
                                     std::int64_t slab_bytes)
    : problem_(problem),
      heads_(choice.heads),
      q_blocks_(choice.q_blocks()),
      k_blocks_(choice.k_blocks()),
      pitch_(static_cast<int>(round_up(problem.head_dim, kPoolUnit))),
      key_pitch_(static_cast<int>(round_up(k_blocks_, kBlocksPerWord))) {
  check_choice(problem, choice);
  const std::vector<std::int64_t> visible = choice.visible();
  std::vector<std::int64_t> kept;
  for (const std::int64_t count : visible) kept.push_back(kept_blocks(choice.density, count));
  const std::int64_t max_rows = std::max<std::int64_t>(slab_bytes / 4 / std::max(key_pitch_, 1), 1);
  const std::int64_t heads = max_rows / std::max<std::int64_t>(q_blocks_, 1);
  slab_heads_ = static_cast<int>(std::clamp<std::int64_t>(heads, 1, heads_));
  const std::int64_t unit_rows = std::max(max_rows / kRowUnit * kRowUnit, kRowUnit);
  slab_rows_ = static_cast<int>(heads >= 1 ? q_blocks_ : std::min(unit_rows, q_blocks_));
  q_bounds_ = uploaded(choice.q_bounds);
  k_bounds_ = uploaded(choice.k_bounds);
  visible_ = uploaded(visible);
  kept_ = uploaded(kept);
  pooled_q_ = device_buffer(heads_ * q_blocks_ * pitch_ * 4);
  pooled_k_ = device_buffer(problem.heads_k * k_blocks_ * pitch_ * 4);
  slab_ = device_buffer(std::int64_t{slab_heads_} * slab_rows_ * key_pitch_ * 4);
  words_ = device_buffer(heads_ * q_blocks_ * words_per_row(k_blocks_) * 4);
}

void CudaBlockSelector::pool(const ConstTensorView& x, const Buffer& bounds, std::int64_t blocks,
                             int lists, const Buffer& out, Stream stream) const {
  launch_pool({.x = x,
               .bounds = bounds.as<std::int32_t>(),
               .blocks = static_cast<int>(blocks),
               .lists = lists,
               .pitch = pitch_,
               .out = out.as<float>()},
              static_cast<cudaStream_t>(stream));
}

void CudaBlockSelector::run(const ConstTensorView& q, const ConstTensorView& k, Stream stream) {
  LONGCA_CHECK(words_.data() != nullptr, "a selection after its words were taken");
  pool(q, q_bounds_, q_blocks_, heads_, pooled_q_, stream);
  pool(k, k_bounds_, k_blocks_, problem_.heads_k, pooled_k_, stream);
  ScoreArgs scores{.q = pooled_q_.as<float>(),
                   .k = pooled_k_.as<float>(),
                   .lists = heads_,
                   .heads_k = problem_.heads_k,
                   .q_blocks = static_cast<int>(q_blocks_),
                   .k_blocks = static_cast<int>(k_blocks_),
                   .pitch = pitch_,
                   .visible = visible_.as<std::int32_t>(),
                   .keys = slab_.as<std::uint32_t>(),
                   .key_pitch = key_pitch_};
  TopArgs top{.keys = scores.keys,
              .key_pitch = key_pitch_,
              .q_blocks = scores.q_blocks,
              .k_blocks = scores.k_blocks,
              .visible = scores.visible,
              .kept = kept_.as<std::int32_t>(),
              .words = words_.as<std::uint32_t>(),
              .row_words = static_cast<int>(words_per_row(k_blocks_))};
  auto* queue = static_cast<cudaStream_t>(stream);
  for (int head = 0; head < heads_; head += slab_heads_) {
    for (int row = 0; row < scores.q_blocks; row += slab_rows_) {
      scores.head_begin = top.head_begin = head;
      scores.row_begin = top.row_begin = row;
      scores.heads = top.heads = std::min(slab_heads_, heads_ - head);
      scores.rows = top.rows = std::min(slab_rows_, scores.q_blocks - row);
      launch_scores(scores, queue);
      launch_top(top, queue);
    }
  }
}

std::int64_t CudaBlockSelector::bytes() const {
  std::int64_t sum = 0;
  for (const Buffer* b :
       {&q_bounds_, &k_bounds_, &visible_, &kept_, &pooled_q_, &pooled_k_, &slab_, &words_}) {
    sum += b->bytes();
  }
  return sum;
}

}  // namespace longca
