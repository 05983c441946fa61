#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "attention/inputs/inputs.h"
#include "attention/kernels/common/block_map.h"
#include "attention/selection/cuda/block_selector.h"
#include "attention/selection/cuda/launch.h"
#include "attention/selection/exact_selection.h"
#include "attention/selection/select_blocks.h"
#include "gpu/gpu_test.h"
#include "mask/block_lists.h"

namespace longca::testing {
namespace {

/// Means and scores in float32, relative to |q| · |k|.
constexpr double kTie = 2e-6;

struct Shape {
  std::int64_t tokens;
  std::int64_t block;
  int heads_q, heads_k, dim;
};

class CudaSelection : public GpuTest {
 protected:
  static Problem problem_of(const Shape& shape, DType dtype, DeviceKind device) {
    Problem problem;
    problem.tokens_q = problem.tokens_k = shape.tokens;
    problem.heads_q = shape.heads_q;
    problem.heads_k = shape.heads_k;
    problem.head_dim = shape.dim;
    problem.dtype = dtype;
    problem.device = device;
    return problem;
  }
  static BlockLists lists_of(const CudaBlockSelector& selector, const BlockChoice& choice) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(selector.word_count()));
    gpu().copy(words.data(), selector.words(), selector.word_count() * 4);
    return lists_of_bits(choice.q_bounds, choice.k_bounds, choice.heads, words);
  }
  static BlockChoice choice_of(const Shape& shape, bool variable, bool causal, bool per_query,
                               double density) {
    PythonRandom random(static_cast<std::uint64_t>(shape.tokens));
    const auto bounds = [&] {
      return variable ? variable_bounds(shape.tokens, shape.block, random)
                      : uniform_bounds(shape.tokens, shape.block);
    };
    BlockChoice choice{bounds(), {}, per_query ? shape.heads_q : shape.heads_k, density, causal};
    choice.k_bounds = bounds();
    return choice;
  }
};

TEST_F(CudaSelection, KeepsTheHighestScoresByFloat64) {
  // One block; awkward sizes; dims of no vector; more blocks than a warp holds; many.
  const Shape shapes[] = {{1, 64, 1, 1, 8},      {1000, 64, 6, 2, 40}, {777, 16, 3, 1, 41},
                          {4096, 64, 4, 4, 128}, {3000, 5, 2, 1, 32},  {6000, 2, 2, 1, 16},
                          {36000, 2, 1, 1, 8}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Inputs host = make_inputs(problem_of(shape, dtype, DeviceKind::cpu), 7);
      const Problem problem = problem_of(shape, dtype, DeviceKind::cuda);
      const Inputs device = make_inputs(problem, 7);
      for (int variant = 0; variant < (shape.tokens > 5000 ? 2 : 6); ++variant) {
        const double densities[] = {0.5, 0.3, 0.02, 1.0, 0.9, 0.5};
        const BlockChoice choice = choice_of(shape, variant % 3 == 2, variant % 2 == 1,
                                             variant / 2 % 2 == 1, densities[variant]);
        // A slab of a few rows, of a few heads, of all.
        const std::int64_t slab = variant % 3 == 0 ? 1 << 16 : CudaBlockSelector::kSlabBytes;
        CudaBlockSelector selector(problem, choice, slab);
        selector.run(device.q.view(), device.k.view(), gpu().stream());
        ASSERT_EQ(fault_of_selection(problem, host.q.view(), host.k.view(), choice,
                                     lists_of(selector, choice), kTie),
                  "")
            << shape.tokens << " tokens by " << shape.block << ", " << to_string(dtype)
            << ", variant " << variant;
      }
    }
  }
}

TEST_F(CudaSelection, OfEqualScoresTheEarlierBlockIsKept) {
  // Every mean is the same: the first blocks are kept. Row lengths of all forms of the kernel.
  for (const std::int64_t tokens : {100, 600, 5000, 40000}) {
    const Shape shape{tokens, 1, 1, 1, 4};
    const Problem problem = problem_of(shape, DType::float32, DeviceKind::cuda);
    const std::vector<float> ones(static_cast<std::size_t>(tokens * 4), 1.0F);
    const Tensor q(gpu().memory(), DType::float32, tokens, 1, 4);
    const Tensor k(gpu().memory(), DType::float32, tokens, 1, 4);
    gpu().copy(q.view().data, ones.data(), q.bytes());
    gpu().copy(k.view().data, ones.data(), k.bytes());
    const BlockChoice choice{{0, 1, tokens}, uniform_bounds(tokens, 1), 1, 0.37, false};
    CudaBlockSelector selector(problem, choice);
    selector.run(q.view(), k.view(), gpu().stream());
    std::vector<std::int32_t> first(static_cast<std::size_t>(kept_blocks(0.37, tokens)));
    std::iota(first.begin(), first.end(), 0);
    const BlockLists lists = lists_of(selector, choice);
    for (const std::int64_t row : {0, 1}) {
      const auto kept = lists.kept(0, row);
      EXPECT_EQ(std::vector<std::int32_t>(kept.begin(), kept.end()), first) << tokens;
    }
  }
}

TEST_F(CudaSelection, RepeatsToTheBit) {
  const Shape shape{8192, 64, 8, 2, 128};
  const Problem problem = problem_of(shape, DType::bfloat16, DeviceKind::cuda);
  const Inputs inputs = make_inputs(problem, 1);
  const BlockChoice choice = choice_of(shape, false, true, true, 0.5);
  CudaBlockSelector selector(problem, choice);
  selector.run(inputs.q.view(), inputs.k.view(), gpu().stream());
  const BlockLists once = lists_of(selector, choice);
  gpu().fill(const_cast<std::uint32_t*>(selector.words()), 0xff, selector.word_count() * 4);
  selector.run(inputs.q.view(), inputs.k.view(), gpu().stream());
  EXPECT_EQ(lists_of(selector, choice), once);
}

TEST_F(CudaSelection, MakesAMaskWhoseBlocksAreOnTheDevice) {
  const Shape shape{2000, 64, 4, 2, 64};
  const Problem problem = problem_of(shape, DType::bfloat16, DeviceKind::cuda);
  const Inputs inputs = make_inputs(problem, 5);
  MaskSpec spec;
  spec.name = "block_sparse_variable";
  spec.tokens = shape.tokens;
  spec.block = shape.block;
  spec.heads_q = 4;
  spec.heads_k = 2;
  spec.block_causal = true;
  const Mask mask = selected_mask(spec, problem, inputs.q.view(), inputs.k.view()).mask;
  const BlockMap& map = BlockMap::of(mask);
  std::vector<std::uint32_t> words(
      static_cast<std::size_t>(map.bits().all_rows() * map.bits().row_words));
  gpu().copy(words.data(), map.bits().words, std::ssize(words) * 4);
  EXPECT_EQ(words, block_bits(*mask.blocks()));
  EXPECT_EQ(map.kept(), std::ssize(mask.blocks()->indices));
}

}  // namespace
}  // namespace longca::testing
