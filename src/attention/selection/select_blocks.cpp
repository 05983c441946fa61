#include "attention/selection/select_blocks.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/smallest.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/kernels/common/block_map.h"
#include "attention/selection/cuda/block_selector.h"
#include "core/device.h"
#include "mask/block_lists.h"
#endif

namespace longca {
namespace {

constexpr std::int64_t kRowsPerTask = 16;

template <typename T>
void add_row(const ConstTensorView& x, std::int64_t token, std::int64_t head,
             std::vector<double>& sum) {
  const T* row = x.row<T>(token, head);
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<float>(row[c]);
}

/// Transposes the pooled keys of one head to [dim, blocks], so that score_row vectorizes over
/// blocks.
std::vector<float> transposed(const float* rows, std::int64_t blocks, std::int64_t dim) {
  std::vector<float> columns(static_cast<std::size_t>(blocks * dim));
  for (std::int64_t j = 0; j < blocks; ++j) {
    for (std::int64_t c = 0; c < dim; ++c) {
      columns[static_cast<std::size_t>(c * blocks + j)] = rows[j * dim + c];
    }
  }
  return columns;
}

/// scores[j] = scale · q · key j for the first scores.size() key blocks.
void score_row(const float* q, float scale, const std::vector<float>& key_columns,
               std::int64_t k_blocks, std::int64_t dim, std::vector<float>& scores) {
  std::ranges::fill(scores, 0.0F);
  for (std::int64_t c = 0; c < dim; ++c) {
    const float factor = q[c] * scale;
    const float* column = key_columns.data() + c * k_blocks;
    for (std::size_t j = 0; j < scores.size(); ++j) scores[j] += factor * column[j];
  }
}

/// An order-reversing map of scores to integers; −0 equals 0, NaN counts as the lowest score.
std::uint32_t in_descending_order(float score) {
  if (score != score) return 0xffffffffU;
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits & 0x80000000U) != 0 ? bits : bits ^ 0x7fffffffU;
}

}  // namespace

void check_choice(const Problem& problem, const BlockChoice& choice) {
  if (choice.heads != problem.heads_q && choice.heads != problem.heads_k) {
    throw_input_error("blocks are selected per query head or per KV head: {} lists for heads {}:{}",
                      choice.heads, problem.heads_q, problem.heads_k);
  }
  if (problem.dtype != DType::float32 && problem.dtype != DType::bfloat16) {
    throw_input_error("blocks are selected from float32 and bfloat16 tensors, not from {}",
                      to_string(problem.dtype));
  }
}

std::vector<float> pooled(const ConstTensorView& x, const std::vector<std::int64_t>& bounds,
                          int heads) {
  const auto blocks = static_cast<std::int64_t>(bounds.size()) - 1;
  const std::int64_t group = x.heads / heads;
  std::vector<float> means(static_cast<std::size_t>(heads * blocks * x.dim));
  ThreadPool::global().parallel_for(heads * blocks, [&](std::int64_t i, int) {
    const auto block = static_cast<std::size_t>(i % blocks);
    std::vector<double> sum(static_cast<std::size_t>(x.dim), 0);
    for (std::int64_t token = bounds[block]; token < bounds[block + 1]; ++token) {
      for (std::int64_t head = i / blocks * group; head < (i / blocks + 1) * group; ++head) {
        x.dtype == DType::float32 ? add_row<float>(x, token, head, sum)
                                  : add_row<BFloat16>(x, token, head, sum);
      }
    }
    const auto count = static_cast<double>((bounds[block + 1] - bounds[block]) * group);
    std::ranges::transform(sum, means.begin() + i * x.dim,
                           [&](double s) { return static_cast<float>(s / count); });
  });
  return means;
}

BlockLists select_blocks(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                         const BlockChoice& choice) {
  check_choice(problem, choice);
  BlockLists lists = lists_to_fill(choice);
  const std::vector<std::int64_t> visible = choice.visible();
  const std::int64_t q_blocks = lists.q_blocks();
  const std::int64_t k_blocks = lists.k_blocks();
  const std::int64_t dim = problem.head_dim;
  const std::vector<float> queries = pooled(q, choice.q_bounds, choice.heads);
  const std::vector<float> keys = pooled(k, choice.k_bounds, problem.heads_k);
  std::vector<std::vector<float>> key_columns;
  for (std::int64_t head = 0; head < problem.heads_k; ++head) {
    key_columns.push_back(transposed(keys.data() + head * k_blocks * dim, k_blocks, dim));
  }
  const auto select_row = [&](std::int64_t row, std::vector<float>& scores,
                              std::vector<std::uint32_t>& numbers,
                              std::vector<std::int32_t>& indices) {
    const auto visible_blocks =
        static_cast<std::size_t>(visible[static_cast<std::size_t>(row % q_blocks)]);
    const std::int64_t head_k = row / q_blocks * problem.heads_k / choice.heads;
    scores.resize(visible_blocks);
    numbers.resize(visible_blocks);
    score_row(queries.data() + row * dim, problem.scale(),
              key_columns[static_cast<std::size_t>(head_k)], k_blocks, dim, scores);
    std::ranges::transform(scores, numbers.begin(), in_descending_order);
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t kept = lists.offsets[at + 1] - lists.offsets[at];
    indices_of_smallest(numbers, kept, indices);
    std::copy_n(indices.begin(), kept, lists.indices.begin() + lists.offsets[at]);
  };
  const std::int64_t rows = lists.heads * q_blocks;
  ThreadPool::global().parallel_for(ceil_div(rows, kRowsPerTask), [&](std::int64_t task, int) {
    std::vector<float> scores;
    std::vector<std::uint32_t> numbers;
    std::vector<std::int32_t> indices(static_cast<std::size_t>(k_blocks));
    const std::int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (std::int64_t row = task * kRowsPerTask; row < end; ++row) {
      select_row(row, scores, numbers, indices);
    }
  });
  return lists;
}

namespace {

#ifdef LONGCA_WITH_CUDA
GeneratedMask selected_on_gpu(const MaskSpec& spec, const Problem& problem,
                              const ConstTensorView& q, const ConstTensorView& k) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const BlockChoice choice = block_choice(spec);
  CudaBlockSelector selector(problem, choice);
  selector.run(q, k, gpu.stream());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(selector.word_count()));
  if (!words.empty()) gpu.copy(words.data(), selector.words(), selector.word_count() * 4);
  GeneratedMask mask =
      mask_of_blocks(spec, lists_of_bits(choice.q_bounds, choice.k_bounds, choice.heads, words));
  BlockMap::adopt(mask.mask, selector.take_words());
  return mask;
}
#endif

}  // namespace

GeneratedMask selected_mask(const MaskSpec& spec, const Problem& problem, const ConstTensorView& q,
                            const ConstTensorView& k) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) return selected_on_gpu(spec, problem, q, k);
#endif
  return mask_of_blocks(spec, select_blocks(problem, q, k, block_choice(spec)));
}

}  // namespace longca
