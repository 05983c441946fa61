// Which masks the kernels of Python packages can express, without a Python process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attention/adapters/python/python_kernel.h"
#include "attention/api/registry.h"
#include "mask/generators.h"

namespace longca {
namespace {

/// Names of the masks that a kernel can express, of documents where masks have some.
std::set<std::string> expressed(const std::string& name, std::int64_t block = 128) {
  const Kernel& kernel = KernelRegistry::global().find(name, DeviceKind::cuda);
  Problem problem;
  problem.tokens_q = problem.tokens_k = 2048;
  problem.heads_q = problem.heads_k = 2;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  std::set<std::string> names;
  for (const MaskTraits& mask : mask_table()) {
    MaskSpec spec;
    spec.name = mask.name;
    spec.tokens = problem.tokens_q;
    spec.window = spec.block_tokens = 128;
    spec.block = block;
    spec.heads_q = spec.heads_k = 2;
    const Support support = kernel.can_express(problem, generate_mask(spec).mask);
    if (support.ok()) {
      names.insert(mask.name);
    } else {
      EXPECT_EQ(support.code, StatusCode::unsupported);
      EXPECT_NE(support.reason, "");
    }
  }
  return names;
}

std::set<std::string> joined(std::set<std::string> a, const std::set<std::string>& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const std::set<std::string> kPlain = {"full", "causal"};
const std::set<std::string> kDocuments = {"document", "causal_document"};
const std::set<std::string> kBlocks = {"block_sparse"};
const std::set<std::string> kVariableBlocks = {"block_sparse_variable"};
const std::set<std::string> kWindows = {"sliding_window", "sliding_window_causal"};

std::set<std::string> static_masks() {
  std::set<std::string> names;
  for (const MaskTraits& mask : mask_table()) {
    if (!mask.uses_blocks) names.insert(mask.name);
  }
  return names;
}

TEST(PythonRows, ExpressWhatTheirArgumentsCanSay) {
  EXPECT_EQ(expressed("sdpa"), kPlain);
  EXPECT_EQ(expressed("sdpa_mask"), static_masks());
  EXPECT_EQ(expressed("fa1"), joined(kPlain, kDocuments));
  EXPECT_EQ(expressed("fa2"), joined(joined(kPlain, kDocuments), kWindows));
  EXPECT_EQ(expressed("fa3"), joined(joined(kPlain, kDocuments), kWindows));
  EXPECT_EQ(expressed("flex"), joined(joined(static_masks(), kBlocks), kVariableBlocks));
  EXPECT_EQ(expressed("fa4"), joined(static_masks(), kBlocks));
  EXPECT_EQ(expressed("ffa"), static_masks());
  EXPECT_EQ(expressed("flashmask"), static_masks());
}

TEST(PythonRows, ExpressBlocksOfTheirSizes) {
  for (const char* name : {"vsa", "vsa_triton"}) {
    EXPECT_EQ(expressed(name, 32), joined(kBlocks, kVariableBlocks));  // up to 47 tokens
    EXPECT_EQ(expressed(name, 64), kBlocks);                           // up to 95
    EXPECT_EQ(expressed(name, 96), std::set<std::string>{});
    EXPECT_EQ(expressed(name, 128), kBlocks);  // as two of 64
  }
  EXPECT_EQ(expressed("fa4", 64), static_masks());
  EXPECT_EQ(expressed("cudnn_bsa", 32), std::set<std::string>{});
  for (const std::int64_t block : {64, 128, 192}) {
    EXPECT_EQ(expressed("cudnn_bsa", block), kBlocks);
  }
  EXPECT_EQ(expressed("fa2_sparse", 64), std::set<std::string>{});
  EXPECT_EQ(expressed("fa2_sparse", 128), kBlocks);
  EXPECT_EQ(expressed("fa2_sparse", 256), kBlocks);
}

TEST(PythonRows, ExpressBlocksUnderACausalMaskIfTheyTestCells) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 256;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const BlockLists lists{{0, 128, 256}, {0, 128, 256}, 1, {0, 1, 3}, {0, 0, 1}};
  const Mask mask = Mask::from_blocks(256, 256, {{0, 256, 0, 256, MaskSliceType::causal}}, lists);
  const auto can_express = [&](const char* name) {
    return KernelRegistry::global().find(name, DeviceKind::cuda).can_express(problem, mask);
  };
  EXPECT_TRUE(can_express("flex").ok());
  EXPECT_TRUE(can_express("fa2_sparse").ok());
  EXPECT_EQ(can_express("vsa").code, StatusCode::unsupported);
}

TEST(PythonRows, SayWhatVideoSparseAttentionLacks) {
  const Kernel& vsa = KernelRegistry::global().find("vsa", DeviceKind::cuda);
  Problem problem;
  problem.tokens_q = problem.tokens_k = 256;
  problem.heads_q = 4;
  problem.heads_k = 2;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const BlockLists lists{{0, 96, 256}, {0, 96, 256}, 1, {0, 1, 2}, {0, 1}};
  const Mask mask = Mask::from_blocks(256, 256, {{0, 256, 0, 256, MaskSliceType::full}}, lists);
  EXPECT_EQ(vsa.can_express(problem, mask).reason,
            "vsa needs as many KV heads as query heads, not 4:2");
  problem.heads_k = 4;
  EXPECT_EQ(vsa.can_express(problem, mask).reason,
            "its blocks hold up to 64 tokens: this mask has blocks of up to 160, which are no "
            "multiples");
}

TEST(PythonRows, NeedPythonAndOtherKernelsDoNot) {
  for (const PythonRow& row : python_rows()) {
    EXPECT_TRUE(
        needs_python(KernelRegistry::global().find(row.capabilities.name, DeviceKind::cuda)));
  }
  EXPECT_FALSE(needs_python(KernelRegistry::global().find("naive")));
}

TEST(PythonRows, SayThatThereIsNoGpuBeforePythonIsAsked) {
  const Support& gpu = Device::available(DeviceKind::cuda);
  if (gpu.ok()) GTEST_SKIP() << "there is one";
  Problem problem;
  problem.tokens_q = problem.tokens_k = 4;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const Mask mask = Mask::from_slices(4, 4, {{0, 4, 0, 4, MaskSliceType::full}});
  const Support support =
      KernelRegistry::global().find("flex", DeviceKind::cuda).supports(problem, mask);
  EXPECT_EQ(support.code, StatusCode::unavailable);
  EXPECT_EQ(support.reason, gpu.reason);
}

}  // namespace
}  // namespace longca
