#include "attention/adapters/flashinfer/flashinfer.h"

#include <gtest/gtest.h>

#include "gpu/adapters/expect_right.h"
#include "gpu/gpu_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

class FlashinferTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (gpu().properties().architecture != 90) GTEST_SKIP() << "its kernel is for Hopper";
  }

  static Problem forward_problem(std::int64_t tokens, int heads_q, int heads_k) {
    Problem problem = gpu_problem(tokens, heads_q, heads_k);
    problem.backward = false;
    return problem;
  }

  static Mask drawn(const char* name, const Problem& problem, std::int64_t block, double density,
                    const char* block_heads = "kv") {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = problem.tokens_q;
    spec.heads_q = problem.heads_q;
    spec.heads_k = problem.heads_k;
    spec.block = block;
    spec.density = density;
    spec.block_heads = block_heads;
    return generate_mask(spec).mask;
  }

  const std::unique_ptr<Kernel> kernel_ = make_flashinfer();
};

TEST_F(FlashinferTest, ManyLengthsAndBlocks) {
  for (const std::int64_t tokens : {1, 65, 200, 1000, 2048}) {
    for (const std::int64_t block : {16, 64, 100, 128, 256}) {
      for (const double density : {0.1, 0.5, 1.0}) {
        SCOPED_TRACE(::testing::Message()
                     << tokens << " tokens, blocks of " << block << ", density " << density);
        const Problem problem = forward_problem(tokens, 4, 2);
        expect_right(*kernel_, problem, drawn("block_sparse", problem, block, density));
      }
    }
  }
}

TEST_F(FlashinferTest, VariableBlocks) {
  for (const std::int64_t tokens : {65, 1000, 2048}) {
    for (const std::int64_t block : {10, 64, 128}) {
      SCOPED_TRACE(::testing::Message() << tokens << " tokens, blocks of " << block);
      const Problem problem = forward_problem(tokens, 4, 4);
      expect_right(*kernel_, problem, drawn("block_sparse_variable", problem, block, 0.4));
    }
  }
}

TEST_F(FlashinferTest, Heads) {
  for (const auto& [heads_q, heads_k] : {std::pair{8, 8}, std::pair{8, 1}, std::pair{6, 3}}) {
    for (const char* block_heads : {"kv", "query"}) {
      SCOPED_TRACE(::testing::Message() << heads_q << ":" << heads_k << " " << block_heads);
      const Problem problem = forward_problem(777, heads_q, heads_k);
      expect_right(*kernel_, problem, drawn("block_sparse", problem, 64, 0.5, block_heads));
    }
  }
}

TEST_F(FlashinferTest, RowsWithoutKeysAndMoreKeysThanQueries) {
  Problem problem = forward_problem(128, 2, 2);
  problem.tokens_k = 320;
  const BlockLists lists{{0, 64, 128}, {0, 128, 256, 320}, 2, {0, 0, 2, 3, 3}, {0, 2, 1}};
  expect_right(*kernel_, problem,
               Mask::from_blocks(128, 320, {{0, 128, 0, 320, MaskSliceType::full}}, lists));
}

TEST_F(FlashinferTest, TellsItsWorkspace) {
  const Problem problem = forward_problem(1000, 4, 2);
  for (const char* name : {"block_sparse", "block_sparse_variable"}) {
    const Mask mask = drawn(name, problem, 64, 0.5);
    kernel_->plan(problem, mask);  // what belongs to the mask is there after the first
    const std::int64_t before = gpu().memory().bytes_in_use();
    const auto plan = kernel_->plan(problem, mask);
    EXPECT_EQ(gpu().memory().bytes_in_use() - before, plan->workspace_bytes()) << name;
  }
}

}  // namespace
}  // namespace longca::testing
