#include "attention/adapters/cudnn/cudnn.h"

#include <gmock/gmock.h>

#include <string>

#include "attention/adapters/cudnn/library.h"
#include "gpu/adapters/expect_right.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

/// Of whichever cuDNN is there: $LONGCA_CUDNN chooses another.
class CudnnTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const Support& library = cudnn_library().support; !library.ok()) {
      GTEST_SKIP() << library.reason;
    }
  }
  /// Right, or refused by cuDNN itself.
  void expect_right_or_refused(const Problem& problem, const Mask& mask) {
    const Support support = kernel_->supports(problem, mask);
    if (support.ok()) return expect_right(*kernel_, problem, mask);
    EXPECT_EQ(support.code, StatusCode::unsupported);
    EXPECT_THAT(support.reason, HasSubstr("cuDNN " + cudnn_version_text(cudnn_library().version)));
  }

  const std::unique_ptr<Kernel> kernel_ = make_cudnn();
};

class CudnnMask : public CudnnTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CudnnMask, BothPassesAtManyLengths) {
  for (const std::int64_t tokens : {2, 65, 128, 200, 1000, 1024, 2048, 4095}) {
    SCOPED_TRACE(tokens);
    const Problem problem = gpu_problem(tokens, 4, 2);
    const Mask mask = small_mask(GetParam(), problem);
    // Two-sided windows have a bug in some versions, which cuDNN names when it refuses them.
    if (std::string(GetParam()) == "sliding_window") {
      expect_right_or_refused(problem, mask);
    } else {
      expect_right(*kernel_, problem, mask);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cudnn, CudnnMask,
                         ::testing::Values("full", "causal", "sliding_window",
                                           "sliding_window_causal", "document", "causal_document"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_F(CudnnTest, HeadsAndDimensions) {
  for (const auto& [heads_q, heads_k] : {std::pair{8, 8}, std::pair{8, 1}, std::pair{6, 3}}) {
    for (const int head_dim : {64, 96, 128}) {
      for (const char* name : {"causal", "document"}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(heads_q) + ":" +
                     std::to_string(heads_k) + " d " + std::to_string(head_dim));
        Problem problem = gpu_problem(600, heads_q, heads_k);
        problem.head_dim = head_dim;
        expect_right(*kernel_, problem, small_mask(name, problem));
      }
    }
  }
}

TEST_F(CudnnTest, AVOfItsOwnDimension) {
  for (const auto& [head_dim, value_dim] : {std::pair{192, 128}, std::pair{128, 64}}) {
    for (const char* name : {"full", "causal", "document", "causal_document"}) {
      SCOPED_TRACE(std::string(name) + " d " + std::to_string(head_dim) + ":" +
                   std::to_string(value_dim));
      Problem problem = gpu_problem(600, 8, 2);
      problem.head_dim = head_dim;
      problem.head_dim_v = value_dim;
      expect_right(*kernel_, problem, small_mask(name, problem));
    }
  }
}

TEST_F(CudnnTest, MoreKeysThanQueries) {
  Problem problem = gpu_problem(300, 4, 2);
  problem.tokens_k = 900;
  for (const MaskSliceType type : {MaskSliceType::full, MaskSliceType::causal}) {
    expect_right(*kernel_, problem, Mask::from_slices(300, 900, {{0, 300, 0, 900, type}}));
  }
}

TEST_F(CudnnTest, FewerKeysThanQueries) {
  Problem problem = gpu_problem(900, 4, 2);
  problem.tokens_k = 300;
  expect_right(*kernel_, problem,
               Mask::from_slices(900, 300, {{0, 900, 0, 300, MaskSliceType::full}}));
}

TEST_F(CudnnTest, TellsItsVersionAndWorkspace) {
  EXPECT_THAT(kernel_->version(), HasSubstr("cuDNN 9."));
  const Problem problem = gpu_problem(512, 4, 2);
  const Inputs inputs = make_inputs(problem, 7);
  const Outputs outputs = Outputs::for_problem(problem);
  const std::int64_t before = gpu().memory().bytes_in_use();
  const auto plan = kernel_->plan(problem, small_mask("causal", problem));
  // What nobody lent it, it allocates with its first call.
  plan->forward(outputs.forward_args(inputs));
  plan->backward(outputs.backward_args(inputs));
  gpu().synchronize();
  EXPECT_EQ(gpu().memory().bytes_in_use() - before, plan->workspace_bytes());
}

}  // namespace
}  // namespace longca::testing
