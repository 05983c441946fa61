// The reference on the GPU computes what the CPU's computes, and judges as strictly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <tuple>

#include "attention/reference/cuda/cuda_reference.h"
#include "attention/reference/cuda/device_results.h"
#include "attention/reference/faulty_masks.h"
#include "attention/reference/results.h"
#include "attention/solved.h"
#include "gpu/gpu_test.h"
#include "gpu/reference/honest_kernel.h"

namespace longca {
namespace {

using test::small_mask;
using test::square_problem;
using testing::GpuTest;

Problem on_gpu(Problem problem) {
  problem.device = DeviceKind::cuda;
  return problem;
}

/// Both references of one problem, everything computed.
class Both {
 public:
  Both(const Problem& shape, const Mask& mask)
      : host_inputs_(make_inputs(shape, 5)),
        device_inputs_(make_inputs(on_gpu(shape), 5)),
        host_problem_{shape, mask, &host_inputs_},
        device_problem_{on_gpu(shape), mask, &device_inputs_},
        heads_(heads_of(shape)),
        host(host_problem_, selection_of(shape, all_tiles(shape, heads_))),
        device(device_problem_, all_tiles(shape, heads_)) {
    host.compute_query_gradients();
    host.compute_key_gradients();
    device.compute_query_gradients();
    device.compute_key_gradients();
  }

  /// `luck` is how far bounds of a tile may be apart: each is one draw of rounding errors.
  void expect_agreement(double luck = 1.4) {
    luck_ = luck;
    const auto& queries = host.selection().queries;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      SCOPED_TRACE("head " + std::to_string(queries[i].head) + ", query tile " +
                   std::to_string(queries[i].tile));
      const auto& tile = host.query_tile(i);
      EXPECT_EQ(device.o().statistics[i].seen, tile.reached);
      expect_rows(i, tile);
      expect_tile(device.o(), i, host.o(i), tile.o, tile.reached);
      expect_tile(device.dq(), i, host.dq(i), tile.dq, tile.reached);
    }
    for (std::size_t i = 0; i < host.selection().keys.size(); ++i) {
      SCOPED_TRACE("key tile " + std::to_string(i));
      const auto& tile = host.key_tile(i);
      EXPECT_EQ(device.dk().statistics[i].seen, tile.reached);
      EXPECT_EQ(device.dv().statistics[i].seen, tile.reached);
      const Problem& p = host_problem_.shape;
      const auto draws =
          std::min<std::int64_t>(std::popcount(tile.reached), p.tokens_q * p.group_size());
      expect_tile(device.dk(), i, host.dk(i), tile.dk, draws);
      expect_tile(device.dv(), i, host.dv(i), tile.dv, draws);
    }
    expect_sink_gradients();
  }

 private:
  static std::vector<int> heads_of(const Problem& shape) {
    std::vector<int> heads;
    for (int head = 0; head < shape.heads_k; ++head) heads.push_back(head);
    return heads;
  }

  void expect_sink_gradients() const {
    const auto found = device.sink_gradients();
    ASSERT_EQ(found.size(), host.sink_gradients().size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE("dsink of head " + std::to_string(i));
      const SinkGradient& expected = host.sink_gradients()[i];
      EXPECT_EQ(found[i].head, expected.head);
      EXPECT_NEAR(found[i].value, expected.value, 0.1 * expected.bound.norm);
      EXPECT_LT(std::abs(std::log(found[i].bound.norm / expected.bound.norm)), std::log(2));
    }
  }

  void expect_rows(std::size_t i, const ReferenceResults::QueryTile& tile) const {
    const std::int64_t tokens = host_problem_.shape.tokens_q;
    const auto [head, number] = host.selection().queries[i];
    EXPECT_NEAR(device.o().statistics[i].score, tile.score_magnitude, 1e-4 * tile.score_magnitude);
    for (std::int64_t row = 0; row < std::min(kTile, tokens - number * kTile); ++row) {
      const double found =
          device.rows()[static_cast<std::size_t>(head * tokens + number * kTile + row)].lse;
      if (found == tile.rows.lse[row]) continue;  // −∞, too
      EXPECT_LE(std::abs(found - tile.rows.lse[row]),
                lse_bound(tile.score_magnitude, tile.rows.lse[row], 0) / 8);
    }
  }

  void expect_tile(const DeviceResults::Output& output, std::size_t i,
                   std::span<const double> exact, const TileBound& bound,
                   std::uint64_t reached) const {
    expect_tile(output, i, exact, bound, std::int64_t{std::popcount(reached)});
  }
  /// The values: far closer than the bound. The bound: that of the CPU, up to luck.
  void expect_tile(const DeviceResults::Output& output, std::size_t i,
                   std::span<const double> exact, const TileBound& bound,
                   std::int64_t draws) const {
    const std::int64_t dim = std::ssize(exact) / kTile;
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t first = index % output.tiles() * kTile;
    const std::int64_t row = index / output.tiles() * output.tokens + first;
    const std::int64_t count = std::min(kTile, output.tokens - first) * dim;
    std::vector<float> values(static_cast<std::size_t>(count));
    Device::get(DeviceKind::cuda)
        .copy(values.data(), output.values.as<float>() + row * dim, count * 4);
    double squared = 0;
    for (std::size_t c = 0; c < values.size(); ++c) {
      squared += std::pow(double{values[c]} - exact[c], 2);
    }
    EXPECT_LE(std::sqrt(squared), 0.1 * bound.norm);
    const TileStatistics& tile = output.statistics[i];
    const TileBound found = make_bound(tile.squared, tile.error_squared, tile.largest, tile.terms,
                                       draws, host_problem_.shape.dtype);
    if (bound.norm == 0) {
      EXPECT_EQ(found.norm, 0);
      return;
    }
    EXPECT_LT(std::abs(std::log(found.norm / bound.norm)), std::log(luck_));
    EXPECT_LT(std::abs(std::log(found.element / bound.element)), std::log(1.4 * luck_));
  }

  Inputs host_inputs_, device_inputs_;
  ReferenceProblem host_problem_, device_problem_;
  std::vector<int> heads_;
  double luck_ = 0;

 public:
  ReferenceResults host;
  DeviceResults device;
};

std::vector<std::string> all_masks() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) names.push_back(traits.name);
  return names;
}

Mask make_mask(const std::string& name, const Problem& problem) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = problem.tokens_q;
  spec.window = std::min<std::int64_t>(test::kSmallWindow, problem.tokens_q);
  spec.block_tokens = 96;
  spec.heads_q = problem.heads_q;
  spec.heads_k = problem.heads_k;
  spec.block = 24;
  return generate_mask(spec).mask;
}

/// With room to spare.
void expect_honest_kernel_passes(const Problem& problem, const Mask& mask) {
  const Inputs inputs = make_inputs(problem, 3);
  const test::DeviceOutputs outputs = test::solve_on_gpu(problem, mask, inputs);
  const CudaReference reference(problem, mask, inputs, {}, 1);
  const ConstLseView lse(outputs.lse.view());
  const Verdict forward = reference.check_forward(outputs.o.view(), &lse);
  const Verdict backward = reference.check_backward(outputs.backward_args(inputs));
  EXPECT_TRUE(forward.ok) << forward.reason;
  EXPECT_TRUE(backward.ok) << backward.reason;
  EXPECT_LE(std::max(forward.worst_ratio, backward.worst_ratio), 0.8);
  EXPECT_EQ(reference.fraction(), 1);
}

class Agreement : public GpuTest,
                  public ::testing::WithParamInterface<std::tuple<std::string, DType>> {};

INSTANTIATE_TEST_SUITE_P(Masks, Agreement,
                         ::testing::Combine(::testing::ValuesIn(all_masks()),
                                            ::testing::Values(DType::float32, DType::bfloat16,
                                                              DType::float16)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

TEST_P(Agreement, WithTheCpuOnEveryTile) {
  const auto& [name, dtype] = GetParam();
  for (const auto& [tokens, dim] : {std::pair{1, 64}, {65, 128}, {333, 32}, {640, 128}}) {
    SCOPED_TRACE(std::to_string(tokens) + " tokens");
    const Problem problem = square_problem(tokens, 4, 2, dim, dtype);
    Both(problem, make_mask(name, problem)).expect_agreement();
  }
}

TEST_P(Agreement, ThatAnHonestKernelIsRight) {
  const auto& [name, dtype] = GetParam();
  for (const std::int64_t tokens : {1, 127, 1000}) {
    SCOPED_TRACE(tokens);
    const Problem problem = on_gpu(square_problem(tokens, 4, 2, 64, dtype));
    expect_honest_kernel_passes(problem, make_mask(name, problem));
  }
}

class OtherShapes : public GpuTest {
 protected:
  static void expect_agreement(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q,
                               int heads_k, int dim, std::vector<MaskSlice> slices) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      if (dim > largest_reference_dim(dtype)) continue;
      Problem problem = square_problem(tokens_q, heads_q, heads_k, dim, dtype);
      problem.tokens_k = tokens_k;
      Both(problem, Mask::from_slices(tokens_q, tokens_k, slices)).expect_agreement();
    }
  }
};

TEST_F(OtherShapes, FewerAndMoreQueriesThanKeys) {
  expect_agreement(130, 257, 6, 2, 64, {{0, 130, 0, 257, MaskSliceType::causal}});
  expect_agreement(300, 70, 2, 2, 64, {{0, 300, 0, 70, MaskSliceType::causal}});
}

TEST_F(OtherShapes, RowsAndKeysThatNothingReaches) {
  expect_agreement(200, 200, 2, 1, 32, {{10, 200, 0, 150, MaskSliceType::full}});
  expect_agreement(200, 200, 2, 1, 32, {{70, 80, 10, 20, MaskSliceType::bi_causal}});
  expect_agreement(100, 100, 2, 1, 32, {});
}

TEST_F(OtherShapes, HeadDimensionsThatFillNoVectorAndTheLargest) {
  expect_agreement(150, 150, 2, 1, 20, {{0, 150, 0, 150, MaskSliceType::causal}});
  expect_agreement(150, 150, 2, 1, 3, {{0, 150, 0, 150, MaskSliceType::causal}});
  expect_agreement(150, 150, 2, 1, 96, {{0, 150, 0, 150, MaskSliceType::causal}});
  expect_agreement(150, 150, 2, 1, 192, {{0, 150, 0, 150, MaskSliceType::causal}});
  expect_agreement(150, 150, 2, 1, 256, {{0, 150, 0, 150, MaskSliceType::causal}});
}

TEST_F(OtherShapes, AVOfItsOwnDimension) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const auto& [dim, value_dim] :
         {std::pair{24, 16}, {96, 80}, {128, 64}, {80, 33}, {192, 128}}) {
      if (dim > largest_reference_dim(dtype)) continue;
      SCOPED_TRACE(std::to_string(dim) + ":" + std::to_string(value_dim));
      Problem problem = square_problem(333, 4, 2, dim, dtype);
      problem.head_dim_v = value_dim;
      problem.sink = value_dim == 16;
      Both(problem, make_mask("causal_document", problem)).expect_agreement();
    }
  }
}

TEST_F(OtherShapes, ATooLargeHeadDimensionIsRefused) {
  const Problem problem = on_gpu(square_problem(64, 1, 1, 136, DType::float32));
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = small_mask("full", 64);
  EXPECT_THROW(CudaReference(problem, mask, inputs, {}, 1), InputError);
}

TEST_F(OtherShapes, SinksAndSoftcaps) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const auto& [sink, softcap] : {std::pair{true, 0.0F}, {false, 30.0F}, {true, 0.5F}}) {
      for (const std::string mask : {"causal", "causal_document", "block_sparse"}) {
        SCOPED_TRACE(mask + ", sink " + std::to_string(sink) + ", softcap " +
                     std::to_string(softcap) + ", " + std::string(to_string(dtype)));
        Problem problem = square_problem(333, 4, 2, 64, dtype);
        problem.sink = sink;
        problem.softcap = softcap;
        Both(problem, make_mask(mask, problem)).expect_agreement();
      }
    }
  }
}

TEST_F(OtherShapes, RowsThatSeeOnlyASink) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    Problem problem = square_problem(200, 2, 1, 32, dtype);
    problem.sink = true;
    Both(problem, Mask::from_slices(200, 200, {{70, 80, 10, 20, MaskSliceType::bi_causal}}))
        .expect_agreement();
  }
}

TEST_F(OtherShapes, OtherScales) {
  for (const float scale : {1e-3F, 0.5F, 4.0F}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      SCOPED_TRACE(scale);
      Problem problem = square_problem(200, 2, 1, 64, dtype);
      problem.softmax_scale = scale;
      // Where scores are sharp, a tile's errors are those of few cells.
      Both(problem, small_mask("causal", 200)).expect_agreement(scale > 1 ? 4 : 1.4);
      expect_honest_kernel_passes(on_gpu(problem), small_mask("causal", 200));
    }
  }
}

}  // namespace
}  // namespace longca
