// The faults of tests/attention/reference/planted_faults_test.cpp at 8192 and 32768 tokens, planted
// on the device: each must be called wrong, under the name of the output that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "attention/reference/cuda/cuda_reference.h"
#include "attention/reference/drawn_tiles.h"
#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"
#include "gpu/gpu_test.h"
#include "gpu/reference/honest_kernel.h"

namespace longca {
namespace {

using test::DeviceOutputs;
using test::square_problem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Size {
  std::int64_t tokens;
  int heads_q, heads_k;
  DType dtype;
};

/// A problem of some size; tests spoil what an honest kernel returns.
class PlantedFault : public testing::GpuTest, public ::testing::WithParamInterface<Size> {
 protected:
  static constexpr VerifyBudget kAll{1000, 0};

  std::int64_t tokens() const { return GetParam().tokens; }
  Problem problem() const {
    Problem p =
        square_problem(tokens(), GetParam().heads_q, GetParam().heads_k, 128, GetParam().dtype);
    p.device = DeviceKind::cuda;
    return p;
  }
  Mask mask(const std::string& name, std::int64_t window = 1024) const {
    return test::small_mask(name, tokens(), window);
  }
  static Verdict check_forward(const CudaReference& reference, const DeviceOutputs& outputs) {
    const ConstLseView lse(outputs.lse.view());
    return reference.check_forward(outputs.o.view(), &lse);
  }

  /// What kernels return that take each of `wrong` for the mask must be called wrong, and what the
  /// honest one returns right.
  void expect_mask_faults(const Mask& right, const std::vector<Mask>& wrong) const {
    const Problem p = problem();
    const Inputs inputs = make_inputs(p, 1);
    const CudaReference reference(p, right, inputs, kAll, 1);
    const DeviceOutputs honest = test::solve_on_gpu(p, right, inputs);
    expect_right(reference, honest, inputs);
    for (const Mask& mask : wrong) {
      const test::HonestKernel kernel(p, mask);
      const DeviceOutputs outputs(p);
      kernel.forward(outputs.forward_args(inputs));
      const Verdict forward = check_forward(reference, outputs);
      EXPECT_FALSE(forward.ok);
      EXPECT_THAT(forward.reason, StartsWith("lse "));
      // The backward pass alone, after a right forward pass.
      BackwardArgs args = honest.backward_args(inputs);
      args.dq = outputs.dq.view();
      args.dk = outputs.dk.view();
      args.dv = outputs.dv.view();
      kernel.backward(args);
      EXPECT_FALSE(reference.check_backward(args).ok);
    }
  }

  static void expect_right(const CudaReference& reference, const DeviceOutputs& outputs,
                           const Inputs& inputs) {
    const Verdict forward = check_forward(reference, outputs);
    const Verdict backward = reference.check_backward(outputs.backward_args(inputs));
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_LE(std::max(forward.worst_ratio, backward.worst_ratio), 0.8);
    EXPECT_EQ(forward.fraction, 1);
    EXPECT_EQ(backward.fraction, 1);
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, PlantedFault,
                         ::testing::Values(Size{8192, 4, 2, DType::bfloat16},
                                           Size{8192, 4, 2, DType::float16},
                                           Size{8192, 4, 2, DType::float32},
                                           Size{32768, 2, 1, DType::bfloat16}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.tokens) + "_" +
                                  std::string(to_string(instance.param.dtype));
                         });

TEST_P(PlantedFault, OneTileOfOneHeadWronglyMasked) {
  for (const char* name : {"causal", "document"}) {
    SCOPED_TRACE(name);
    const Mask right = mask(name);
    const std::int64_t tile = tokens() / kTile / 2;
    expect_mask_faults(right, {test::without_tile(right, GetParam().heads_q, 1, tile, tile),
                               test::without_tile(right, GetParam().heads_q, 0, tile, tile - 1)});
  }
}

TEST_P(PlantedFault, WindowOffByOne) {
  for (const char* name : {"sliding_window", "sliding_window_causal", "global_sliding_window"}) {
    SCOPED_TRACE(name);
    expect_mask_faults(mask(name), {mask(name, 1023), mask(name, 1025)});
  }
}

TEST_P(PlantedFault, DiagonalOffByOne) {
  expect_mask_faults(mask("causal"),
                     {test::shifted_causal(tokens(), -1), test::shifted_causal(tokens(), 1)});
}

TEST_P(PlantedFault, OneDocumentBoundaryMovedByOne) {
  const std::int64_t a = tokens() / 4;
  const std::int64_t b = tokens() / 2 + 17;
  const std::int64_t c = tokens() - a - b;
  for (const MaskSliceType type : {MaskSliceType::full, MaskSliceType::causal}) {
    expect_mask_faults(
        test::documents({a, b, c}, type),
        {test::documents({a, b - 1, c + 1}, type), test::documents({a, b + 1, c - 1}, type)});
  }
}

TEST_P(PlantedFault, ScaleOffByOnePercent) {
  const Problem p = problem();
  const Inputs inputs = make_inputs(p, 1);
  const Mask right = mask("causal");
  const CudaReference reference(p, right, inputs, kAll, 1);
  Problem wrong = p;
  wrong.softmax_scale = p.scale() * 1.01F;
  EXPECT_THAT(check_forward(reference, test::solve_on_gpu(wrong, right, inputs)).reason,
              StartsWith("lse "));
  const DeviceOutputs mixed = test::solve_on_gpu(p, right, inputs);
  test::HonestKernel(wrong, right).backward(mixed.backward_args(inputs));
  EXPECT_THAT(reference.check_backward(mixed.backward_args(inputs)).reason, StartsWith("dq "));
}

/// Lengths that no tile divides.
class LastKey : public PlantedFault {
 protected:
  static std::int64_t odd(std::int64_t tokens) { return tokens - 27; }
};

INSTANTIATE_TEST_SUITE_P(Sizes, LastKey,
                         ::testing::Values(Size{8192 - 27, 4, 2, DType::bfloat16},
                                           Size{32768 - 27, 2, 1, DType::bfloat16}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.tokens);
                         });

TEST_P(LastKey, Dropped) {
  for (const char* name : {"full", "causal"}) {
    const Mask right = mask(name);
    expect_mask_faults(right, {test::without_last_key(right)});
  }
}

/// Faults in one output of an otherwise right result.
class SpoiltOutput : public PlantedFault {
 protected:
  void SetUp() override {
    PlantedFault::SetUp();
    if (IsSkipped()) return;
    p_ = problem();
    inputs_ = make_inputs(p_, 1);
    mask_ = mask("causal");
    reference_ = std::make_unique<CudaReference>(p_, *mask_, inputs_, kAll, 1);
    outputs_ = std::make_unique<DeviceOutputs>(test::solve_on_gpu(p_, *mask_, inputs_));
  }

  std::string forward_reason() const {
    const Verdict verdict = check_forward(*reference_, *outputs_);
    EXPECT_FALSE(verdict.ok);
    EXPECT_GT(verdict.worst_ratio, 1);
    return verdict.reason;
  }
  std::string backward_reason() const {
    const Verdict verdict = reference_->check_backward(outputs_->backward_args(inputs_));
    EXPECT_FALSE(verdict.ok);
    EXPECT_GT(verdict.worst_ratio, 1);
    return verdict.reason;
  }
  static void set(const Tensor& tensor, std::int64_t token, std::int64_t head, std::int64_t column,
                  float value) {
    const TensorView& view = tensor.view();
    with_type_of(view.dtype, [&]<typename T>(T) {
      const T rounded(value);
      gpu().copy(view.row<T>(token, head) + column, &rounded, sizeof rounded);
    });
  }
  void set_lse(std::int64_t head, std::int64_t row, float value) const {
    gpu().copy(outputs_->lse.view().head(head) + row, &value, 4);
  }
  std::int64_t last() const { return tokens() - 1; }

  Problem p_;
  Inputs inputs_;
  std::optional<Mask> mask_;
  std::unique_ptr<CudaReference> reference_;
  std::unique_ptr<DeviceOutputs> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, SpoiltOutput,
                         ::testing::Values(Size{8192, 4, 2, DType::bfloat16},
                                           Size{8192, 4, 2, DType::float16},
                                           Size{8192, 4, 2, DType::float32},
                                           Size{32768, 2, 1, DType::bfloat16}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.tokens) + "_" +
                                  std::string(to_string(instance.param.dtype));
                         });

TEST_P(SpoiltOutput, NothingSpoiltIsRight) {
  expect_right(*reference_, *outputs_, inputs_);
}

TEST_P(SpoiltOutput, LseInBaseTwo) {
  const LseView& lse = outputs_->lse.view();
  std::vector<float> values(static_cast<std::size_t>(lse.heads * lse.tokens));
  gpu().copy(values.data(), lse.data, outputs_->lse.bytes());
  for (float& value : values) value *= 1.442695041F;
  gpu().copy(lse.data, values.data(), outputs_->lse.bytes());
  EXPECT_THAT(forward_reason(), StartsWith("lse "));
}

TEST_P(SpoiltOutput, AGqaGroupNotSummedInDk) {
  // Every KV head gets the gradient of its last query head alone: the problem with one head each.
  const auto last_of_group = [](auto view) {
    view.data = static_cast<const char*>(view.data) + view.head_stride * size_of(view.dtype);
    view.heads /= 2;
    view.head_stride *= 2;
    return view;
  };
  const DeviceOutputs spare(p_);
  BackwardArgs args = outputs_->backward_args(inputs_);
  args.q = last_of_group(ConstTensorView(args.q));
  args.dout = last_of_group(ConstTensorView(args.dout));
  args.o = last_of_group(ConstTensorView(args.o));
  args.lse.data += args.lse.head_stride;
  args.lse.heads /= 2;
  args.lse.head_stride *= 2;
  args.dq = spare.dq.view();
  args.dv = spare.dv.view();
  Problem single = p_;
  single.heads_q = p_.heads_k;
  test::HonestKernel(single, *mask_).backward(args);
  EXPECT_THAT(backward_reason(), StartsWith("dk "));
}

TEST_P(SpoiltOutput, ATileMissingFromDv) {
  const int head = p_.heads_q - 1;
  const DeviceOutputs spare(p_);
  BackwardArgs args = outputs_->backward_args(inputs_);
  args.dq = spare.dq.view();
  args.dk = spare.dk.view();
  test::HonestKernel(p_, test::without_tile(*mask_, p_.heads_q, head, 2, 1)).backward(args);
  EXPECT_THAT(backward_reason(),
              StartsWith("dv of KV head " + std::to_string(p_.heads_k - 1) + ", keys 64 to 127"));
}

TEST_P(SpoiltOutput, OneNaN) {
  const float nan = std::nanf("");
  set(outputs_->o, 70, 1, 5, nan);
  EXPECT_THAT(forward_reason(), StartsWith("o is nan at head 1, row 70, column 5"));
  set(outputs_->dv, 3, 0, 0, nan);
  EXPECT_THAT(backward_reason(), StartsWith("dv is nan at KV head 0, key 3, column 0"));
  set(outputs_->dk, last(), 0, 31, nan);
  EXPECT_THAT(backward_reason(),
              StartsWith("dk is nan at KV head 0, key " + std::to_string(last()) + ", column 31"));
  set(outputs_->dq, 0, 1, 0, nan);
  EXPECT_THAT(backward_reason(), StartsWith("dq is nan at head 1, row 0"));
  set_lse(1, 9, nan);
  EXPECT_THAT(forward_reason(), StartsWith("lse is nan instead of"));
}

TEST_P(SpoiltOutput, OneElementFarOff) {
  set(outputs_->o, 150, 0, 7, 0.9F);
  EXPECT_THAT(forward_reason(), ::testing::AllOf(StartsWith("o "), HasSubstr("head 0, row")));
  set(outputs_->dk, 20, 0, 7, 1e20F);
  EXPECT_THAT(backward_reason(), StartsWith("dk "));
}

TEST_P(SpoiltOutput, OutputsNeverWritten) {
  DeviceOutputs::poison(outputs_->dv);
  EXPECT_THAT(backward_reason(), StartsWith("dv is nan"));
  DeviceOutputs::poison(outputs_->dk);
  EXPECT_THAT(backward_reason(), StartsWith("dk is nan"));
  DeviceOutputs::poison(outputs_->dq);
  EXPECT_THAT(backward_reason(), StartsWith("dq is nan"));
  DeviceOutputs::poison(outputs_->o);
  EXPECT_THAT(forward_reason(), StartsWith("o is nan"));
  gpu().fill(outputs_->lse.view().data, 0xff, outputs_->lse.bytes());
  EXPECT_THAT(forward_reason(), StartsWith("lse is nan"));
}

TEST_P(SpoiltOutput, ResultsOfThePreviousCaseReturned) {
  const Inputs previous = make_inputs(p_, 2);
  const DeviceOutputs stale = test::solve_on_gpu(p_, *mask_, previous);
  EXPECT_THAT(check_forward(*reference_, stale).reason, StartsWith("lse "));
  EXPECT_THAT(reference_->check_forward(stale.o.view(), nullptr).reason, StartsWith("o "));
  EXPECT_THAT(reference_->check_backward(stale.backward_args(inputs_)).reason, StartsWith("dq "));
  BackwardArgs args = outputs_->backward_args(inputs_);
  args.dk = stale.dk.view();
  EXPECT_THAT(reference_->check_backward(args).reason, StartsWith("dk "));
  args = outputs_->backward_args(inputs_);
  args.dv = stale.dv.view();
  EXPECT_THAT(reference_->check_backward(args).reason, StartsWith("dv "));
}

TEST_P(SpoiltOutput, RowsWithoutKeysMustBeExactlyNothing) {
  const Mask holes =
      Mask::from_slices(tokens(), tokens(), {{10, tokens(), 0, 3000, MaskSliceType::full}});
  const CudaReference reference(p_, holes, inputs_, kAll, 1);
  const DeviceOutputs outputs = test::solve_on_gpu(p_, holes, inputs_);
  expect_right(reference, outputs, inputs_);
  const float tiny = -1e30F;
  gpu().copy(outputs.lse.view().head(1) + 4, &tiny, 4);
  EXPECT_THAT(check_forward(reference, outputs).reason,
              StartsWith("lse is -1e+30 instead of -inf"));
  const float nothing = -std::numeric_limits<float>::infinity();
  gpu().copy(outputs.lse.view().head(1) + 4, &nothing, 4);
  const float least = p_.dtype == DType::float16 ? 0x1p-24F : 1e-30F;
  set(outputs.o, 9, 1, 2, least);
  EXPECT_THAT(check_forward(reference, outputs).reason,
              ::testing::AllOf(StartsWith("o is "), HasSubstr("at head 1, row 9, column 2"),
                               HasSubstr("exactly 0")));
  set(outputs.dk, 3100, 0, 0, least);
  EXPECT_THAT(reference.check_backward(outputs.backward_args(inputs_)).reason,
              ::testing::AllOf(StartsWith("dk is"), HasSubstr("key 3100"), HasSubstr("exactly 0")));
}

TEST_P(SpoiltOutput, DrawnHeadsAreJudgedAndTheFractionSaysSo) {
  if (p_.heads_k < 2) GTEST_SKIP() << "one KV head";
  VerifyBudget one_head;
  one_head.seconds *= 1.5 * estimated_seconds(p_, *mask_, {}) / device_seconds(one_head);
  const CudaReference part(p_, *mask_, inputs_, one_head, 1);
  EXPECT_EQ(part.fraction(), 0.5);
  EXPECT_LT(part.bytes(), reference_->bytes());
  EXPECT_TRUE(check_forward(part, *outputs_).ok);
  EXPECT_EQ(check_forward(part, *outputs_).fraction, 0.5);
  DeviceOutputs::poison(outputs_->dv);
  EXPECT_THAT(part.check_backward(outputs_->backward_args(inputs_)).reason,
              StartsWith("dv is nan"));
}

/// No whole head is affordable: a few tiles of one are judged, the last among them.
class DrawnTilesOfAHead : public SpoiltOutput {
 protected:
  static constexpr VerifyBudget kNone{1e-6, 0};

  CudaReference part() const { return {p_, *mask_, inputs_, kNone, 1}; }
  DrawnTiles drawn() const { return draw_tiles(p_, *mask_, kNone, 1); }
  std::string reason(const CudaReference& reference, const BackwardArgs& args) const {
    EXPECT_TRUE(check_forward(reference, *outputs_).ok);
    const Verdict verdict = reference.check_backward(args);
    EXPECT_FALSE(verdict.ok);
    return verdict.reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, DrawnTilesOfAHead,
                         ::testing::Values(Size{8192, 4, 2, DType::bfloat16},
                                           Size{8192 - 27, 4, 2, DType::float32},
                                           Size{32768, 2, 2, DType::bfloat16}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.tokens) + "_" +
                                  std::string(to_string(instance.param.dtype));
                         });

TEST_P(DrawnTilesOfAHead, HonestResultsPassWithAndWithoutLse) {
  for (const bool has_lse : {true, false}) {
    SCOPED_TRACE(has_lse);
    const CudaReference reference = part();
    const ConstLseView lse(outputs_->lse.view());
    BackwardArgs args = outputs_->backward_args(inputs_);
    if (!has_lse) args.lse.data = nullptr;
    const Verdict forward = reference.check_forward(outputs_->o.view(), has_lse ? &lse : nullptr);
    const Verdict backward = reference.check_backward(args);
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_LE(std::max(forward.worst_ratio, backward.worst_ratio), 0.8);
    EXPECT_TRUE(backward.error_dq && backward.error_dk && backward.error_dv);
    EXPECT_NEAR(forward.fraction, 64.0 / static_cast<double>(tile_count(tokens())) / p_.heads_k,
                1e-3);
    EXPECT_NEAR(backward.fraction, forward.fraction, 1e-3);
  }
}

TEST_P(DrawnTilesOfAHead, FaultsInThemAreFound) {
  const int head_k = drawn().heads_k.front();
  const int head_q = head_k * p_.group_size();
  const BackwardArgs args = outputs_->backward_args(inputs_);
  const float nan = std::nanf("");
  set(outputs_->dv, last(), head_k, 3, nan);
  EXPECT_THAT(reason(part(), args), StartsWith("dv is nan at KV head"));
  set(outputs_->dk, last(), head_k, 3, nan);
  EXPECT_THAT(reason(part(), args), StartsWith("dk is nan at KV head"));
  set(outputs_->dq, last(), head_q, 3, nan);
  EXPECT_THAT(reason(part(), args), StartsWith("dq is nan at head"));
  set(outputs_->o, last(), head_q, 3, nan);
  EXPECT_THAT(check_forward(part(), *outputs_).reason, StartsWith("o is nan at head"));
}

TEST_P(DrawnTilesOfAHead, AnLseThatIsWrongIsFoundAndIsNoFaultOfTheReference) {
  const CudaReference reference = part();
  for (const float value : {std::nanf(""), -std::numeric_limits<float>::infinity(), -200.0F}) {
    for (std::int64_t row = tokens() - 64; row < tokens(); ++row) {
      for (int head = 0; head < p_.heads_q; ++head) set_lse(head, row, value);
    }
    EXPECT_THAT(check_forward(reference, *outputs_).reason, StartsWith("lse is "));
    EXPECT_NO_THROW(reference.check_backward(outputs_->backward_args(inputs_)));
  }
}

TEST_P(DrawnTilesOfAHead, AMaskOffByOneIsFound) {
  const CudaReference reference = part();
  const DeviceOutputs wrong = test::solve_on_gpu(p_, test::shifted_causal(tokens(), -1), inputs_);
  EXPECT_THAT(check_forward(reference, wrong).reason, StartsWith("lse is "));
  BackwardArgs args = outputs_->backward_args(inputs_);
  args.dk = wrong.dk.view();
  EXPECT_THAT(reason(reference, args), StartsWith("dk "));
  args = outputs_->backward_args(inputs_);
  args.dv = wrong.dv.view();
  EXPECT_THAT(reason(reference, args), StartsWith("dv "));
}

}  // namespace
}  // namespace longca
