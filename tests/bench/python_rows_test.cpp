// Which masks the kernels from Python packages have words for: asked without Python.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attention/adapters/python/python_kernel.h"
#include "attention/registry.h"
#include "mask/generators.h"

namespace longca {
namespace {

/// The names of the masks that a kernel expresses, of documents where masks have some.
std::set<std::string> expressed(const std::string& name) {
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
    spec.window = spec.block_tokens = spec.block = 128;
    spec.heads_q = spec.heads_k = 2;
    const Support support = kernel.expresses(problem, generate_mask(spec).mask);
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
  EXPECT_EQ(expressed("fa1"), joined(kPlain, kDocuments));
  EXPECT_EQ(expressed("fa2"), joined(joined(kPlain, kDocuments), kWindows));
  EXPECT_EQ(expressed("fa3"), joined(joined(kPlain, kDocuments), kWindows));
  EXPECT_EQ(expressed("flex"), static_masks());
  EXPECT_EQ(expressed("ffa"), static_masks());
  EXPECT_EQ(expressed("flashmask"), static_masks());
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
  const Mask mask = Mask::from_slices(4, 4, {{0, 4, 0, 4, SliceType::full}});
  const Support support =
      KernelRegistry::global().find("flex", DeviceKind::cuda).supports(problem, mask);
  EXPECT_EQ(support.code, StatusCode::unavailable);
  EXPECT_EQ(support.reason, gpu.reason);
}

}  // namespace
}  // namespace longca
