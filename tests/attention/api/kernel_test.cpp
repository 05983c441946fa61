#include "attention/api/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "attention/absent_kernel.h"
#include "attention/api/problem.h"
#include "attention/api/registry.h"
#include "core/error.h"

namespace longca {
namespace {

using testing::HasSubstr;

Mask full_mask(std::int64_t tokens) {
  return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::full}});
}

Mask block_mask() {
  BlockLists blocks;
  blocks.q_bounds = blocks.k_bounds = {0, 4};
  blocks.offsets = {0, 1};
  blocks.indices = {0};
  return Mask::from_blocks(4, 4, {{0, 4, 0, 4, MaskSliceType::full}}, blocks);
}

Problem problem_of(int heads_q, int heads_k, int head_dim, DType dtype) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 4;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.head_dim = head_dim;
  problem.dtype = dtype;
  return problem;
}

TEST(Problem, FlopsFollowTheDefinition) {
  Problem problem = problem_of(8, 2, 64, DType::float32);
  const Mask causal = Mask::from_slices(4, 4, {{0, 4, 0, 4, MaskSliceType::causal}});
  EXPECT_EQ(forward_flops(problem, causal), 4.0 * 10 * 8 * 64);
  EXPECT_EQ(backward_flops(problem, causal), 2.5 * forward_flops(problem, causal));
}

TEST(Problem, FlopsCountEachProductByItsOwnDimension) {
  Problem problem = problem_of(8, 2, 192, DType::float32);
  problem.head_dim_v = 128;
  const Mask causal = Mask::from_slices(4, 4, {{0, 4, 0, 4, MaskSliceType::causal}});
  EXPECT_EQ(forward_flops(problem, causal), 2.0 * 10 * 8 * (192 + 128));
  EXPECT_EQ(backward_flops(problem, causal), 2.0 * 10 * 8 * (3 * 192 + 2 * 128));
  EXPECT_EQ(problem.scale(), 1 / std::sqrt(192.0F));
}

TEST(Problem, TheDimensionOfVIsThatOfQAndKUnlessGiven) {
  Problem problem = problem_of(1, 1, 64, DType::float32);
  EXPECT_EQ(problem.value_dim(), 64);
  EXPECT_EQ(to_string(dims_of(problem)), "64");
  problem.head_dim_v = 48;
  EXPECT_EQ(problem.value_dim(), 48);
  EXPECT_EQ(to_string(dims_of(problem)), "64:48");
}

TEST(Problem, TheScaleIsOneOverTheRootOfTheDimensionUnlessGiven) {
  Problem problem = problem_of(1, 1, 64, DType::float32);
  EXPECT_EQ(problem.scale(), 0.125F);
  problem.softmax_scale = 0.3F;
  EXPECT_EQ(problem.scale(), 0.3F);
}

struct Refusal {
  const char* what;
  void (*limit)(Capabilities&);
  Problem problem;
  bool blocks;
  const char* sentence;
};

/// float32 on the CPU, and whatever else, but for one limit.
Capabilities limited(void (*limit)(Capabilities&)) {
  Capabilities capabilities;
  capabilities.name = "k";
  capabilities.dtypes = {DType::float32};
  limit(capabilities);
  return capabilities;
}

class RefusedProblem : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedProblem, IsUnsupportedWithASentenceThatNamesTheLimit) {
  const Refusal& refusal = GetParam();
  const Support support = check_capabilities(limited(refusal.limit), refusal.problem,
                                             refusal.blocks ? block_mask() : full_mask(4));
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_THAT(support.reason, HasSubstr(refusal.sentence));
}

INSTANTIATE_TEST_SUITE_P(
    Capabilities, RefusedProblem,
    testing::Values(Refusal{"device", [](Capabilities& c) { c.device = DeviceKind::cuda; },
                            problem_of(1, 1, 8, DType::float32), false, "runs on cuda, not on cpu"},
                    Refusal{"dtype", [](Capabilities&) {}, problem_of(1, 1, 8, DType::bfloat16),
                            false, "has no bfloat16, only float32"},
                    Refusal{"dimension",
                            [](Capabilities& c) {
                              c.head_dims = {64, 128};
                            },
                            problem_of(1, 1, 8, DType::float32), false,
                            "no head dimension 8, only 64, 128"},
                    Refusal{"gqa", [](Capabilities& c) { c.gqa = false; },
                            problem_of(8, 2, 8, DType::float32), false, "8:2"},
                    Refusal{"static", [](Capabilities& c) { c.static_masks = false; },
                            problem_of(1, 1, 8, DType::float32), false, "block-sparse masks only"},
                    Refusal{"blocks", [](Capabilities& c) { c.block_masks = false; },
                            problem_of(1, 1, 8, DType::float32), true, "no block-sparse mask"}),
    [](const auto& instance) { return instance.param.what; });

TEST(Capabilities, BackwardAndAccumulateAreAskedForByTheProblem) {
  Problem problem = problem_of(1, 1, 8, DType::float32);
  const Capabilities capabilities =
      limited([](Capabilities& c) { c.backward = c.accumulate = false; });
  EXPECT_TRUE(check_capabilities(capabilities, problem, full_mask(4)).ok());
  problem.backward = true;
  EXPECT_THAT(check_capabilities(capabilities, problem, full_mask(4)).reason,
              HasSubstr("no backward"));
  problem.backward = false;
  problem.accumulate = true;
  EXPECT_THAT(check_capabilities(capabilities, problem, full_mask(4)).reason,
              HasSubstr("cannot merge"));
  problem.accumulate = false;
  problem.deterministic = true;
  EXPECT_THAT(check_capabilities(capabilities, problem, full_mask(4)).reason,
              HasSubstr("no backward pass that gives the same bits"));
}

Support with_dims(void (*limit)(Capabilities&), DimPair dims) {
  Problem problem = problem_of(1, 1, dims.head_dim, DType::float32);
  problem.head_dim_v = dims.value_dim;
  return check_capabilities(limited(limit), problem, full_mask(4));
}

TEST(Capabilities, AVOfItsOwnDimensionIsRefusedUnlessAKernelTakesIt) {
  const auto any = [](Capabilities&) {};
  EXPECT_TRUE(with_dims(any, {192, 192}).ok());
  EXPECT_THAT(with_dims(any, {192, 128}).reason,
              HasSubstr("takes no head dimensions 192:128, only v of the same dimension"));
  const auto all = [](Capabilities& c) { c.value_dims = true; };
  EXPECT_TRUE(with_dims(all, {192, 128}).ok());
  EXPECT_THAT(with_dims(all, {192, 256}).reason,
              HasSubstr("no v of dimension 256, larger than 192 of q and k"));
  const auto listed = [](Capabilities& c) {
    c.head_dims = {64, 192};
    c.dim_pairs = {{192, 128}};
  };
  EXPECT_TRUE(with_dims(listed, {192, 128}).ok());
  EXPECT_TRUE(with_dims(listed, {192, 192}).ok());
  EXPECT_THAT(with_dims(listed, {192, 64}).reason,
              HasSubstr("has no head dimension 192:64, only 64, 192, 192:128"));
  EXPECT_THAT(with_dims(listed, {128, 128}).reason,
              HasSubstr("has no head dimension 128, only 64, 192, 192:128"));
  const auto of_head_dims = [](Capabilities& c) {
    c.head_dims = {64, 192};
    c.value_dims = true;
  };
  EXPECT_TRUE(with_dims(of_head_dims, {192, 64}).ok());
  EXPECT_THAT(with_dims(of_head_dims, {128, 64}).reason, HasSubstr("128:64, only 64, 192"));
}

TEST(Capabilities, DimensionsThatAnOptionBuildsAreNamedWithIt) {
  const auto built = [](Capabilities& c) {
    c.head_dims = {128};
    c.more_dims = "OPTION=ON builds 64";
  };
  EXPECT_THAT(with_dims(built, {64, 64}).reason,
              HasSubstr("has no head dimension 64, only 128 (OPTION=ON builds 64)"));
}

TEST(Capabilities, SinksAndSoftcapAreFalseUnlessAKernelSaysSo) {
  Problem problem = problem_of(1, 1, 8, DType::float32);
  const Capabilities without = limited([](Capabilities&) {});
  const Capabilities with = limited([](Capabilities& c) { c.sinks = c.softcap = true; });
  problem.sink = true;
  EXPECT_THAT(check_capabilities(without, problem, full_mask(4)).reason,
              HasSubstr("has no sinks in the softmax"));
  EXPECT_TRUE(check_capabilities(with, problem, full_mask(4)).ok());
  problem.sink = false;
  problem.softcap = 30;
  EXPECT_THAT(check_capabilities(without, problem, full_mask(4)).reason,
              HasSubstr("does not cap scores, so not at 30"));
  EXPECT_TRUE(check_capabilities(with, problem, full_mask(4)).ok());
}

TEST(Registry, KnowsTheBuiltInKernelsInOrder) {
  const auto names = KernelRegistry::global().names();
  ASSERT_GE(names.size(), 4U);
  EXPECT_EQ(std::vector(names.begin(), names.begin() + 3),
            (std::vector<std::string>{"naive", "flash", "block_sparse"}));
  EXPECT_THAT(names, testing::Contains("cudnn"));
  EXPECT_EQ(KernelRegistry::global().find("flash").capabilities().name, "flash");
}

TEST(Registry, FindsAKernelPerDeviceAndTheOtherDevicesWhereThereIsNone) {
  const KernelRegistry& registry = KernelRegistry::global();
  EXPECT_EQ(registry.find("naive", DeviceKind::cuda).capabilities().device, DeviceKind::cuda);
  EXPECT_EQ(registry.find("naive", DeviceKind::cpu).capabilities().device, DeviceKind::cpu);
  EXPECT_EQ(registry.find("flash", DeviceKind::cuda).capabilities().device, DeviceKind::cpu);
}

/// Those that were written for it; the others must not be called with a v of another row length.
TEST(Registry, OnlyKernelsThatSaySoTakeAVOfItsOwnDimension) {
  std::vector<std::string> takers;
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& can = kernel->capabilities();
    Problem problem = problem_of(4, 4, 192, DType::bfloat16);
    problem.head_dim_v = 128;
    problem.device = can.device;
    const Mask mask = can.static_masks ? full_mask(4) : block_mask();
    const Support support = kernel->can_express(problem, mask);
    if (support.ok()) {
      takers.push_back(can.name + " " + std::string(to_string(can.device)));
    } else {
      EXPECT_EQ(support.code, StatusCode::unsupported) << can.name;
      EXPECT_THAT(support.reason, HasSubstr("192:128"));
    }
  }
  std::vector<std::string> expected = {"naive cpu",  "flash cpu",  "block_sparse cpu",
                                       "naive cuda", "cudnn cuda", "fa4 cuda"};
  const Kernel& slice = KernelRegistry::global().find("slice", DeviceKind::cuda);
  if (slice.capabilities().head_dims.back() == 256) expected.push_back("slice cuda");
  EXPECT_THAT(takers, testing::UnorderedElementsAreArray(expected));
}

TEST(Registry, SliceNamesTheDimensionsThatAreBuiltAndTheOptionThatBuildsOthers) {
  const Kernel& slice = KernelRegistry::global().find("slice", DeviceKind::cuda);
  Problem problem = problem_of(4, 4, 192, DType::bfloat16);
  problem.head_dim_v = 64;
  problem.device = DeviceKind::cuda;
  const bool has_more = slice.capabilities().head_dims.front() == 64;
  EXPECT_THAT(
      slice.can_express(problem, full_mask(4)).reason,
      has_more ? testing::EndsWith("no head dimension 192:64, only 64, 80, 96, 128, 256, 192:128")
               : testing::EndsWith("no head dimension 192:64, only 80, 96, 128 "
                                   "(LONGCA_INSTANTIATIONS=all builds 64 and 128)"));
}

/// Of a GPU's kernel that this machine or this build lacks.
TEST(AbsentKernel, SaysWhatItCouldDoAndWhatToInstall) {
  Capabilities capabilities;
  capabilities.name = "k";
  capabilities.dtypes = {DType::float32};
  capabilities.head_dims = {8};
  const AbsentKernel kernel(capabilities, "install k");
  const Problem problem = problem_of(1, 1, 8, DType::float32);
  EXPECT_TRUE(kernel.can_express(problem, full_mask(4)).ok());
  EXPECT_EQ(kernel.supports(problem, full_mask(4)).code, StatusCode::unavailable);
  EXPECT_EQ(kernel.supports(problem, full_mask(4)).reason, "install k");
  const Problem other = problem_of(1, 1, 16, DType::float32);
  EXPECT_EQ(kernel.can_express(other, full_mask(4)).code, StatusCode::unsupported);
  EXPECT_EQ(kernel.supports(other, full_mask(4)).code, StatusCode::unsupported);
  EXPECT_THROW(kernel.plan(problem, full_mask(4)), InternalError);
}

TEST(AbsentKernel, HasTheWordsOfTheKernelItStandsFor) {
  Capabilities capabilities;
  capabilities.dtypes = {DType::float32};
  const AbsentKernel kernel(capabilities, "install k", [](const Problem&, const Mask&) {
    return Support::unsupported("no words");
  });
  const Problem problem = problem_of(1, 1, 8, DType::float32);
  EXPECT_EQ(kernel.can_express(problem, full_mask(4)).reason, "no words");
  EXPECT_EQ(kernel.supports(problem, full_mask(4)).reason, "no words");
}

TEST(Registry, AnUnknownNameSuggestsTheNearest) {
  try {
    KernelRegistry::global().find("flahs");
    FAIL() << "found";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("'flahs'"), HasSubstr("'flash'")));
  }
}

class Named final : public Kernel {
 public:
  explicit Named(const char* name, std::vector<DType> dtypes = {DType::float32}) {
    capabilities_.name = name;
    capabilities_.dtypes = std::move(dtypes);
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem&, const Mask&) const override { return {}; }
  std::unique_ptr<Plan> plan(const Problem&, const Mask&) const override { return nullptr; }

 private:
  Capabilities capabilities_;
};

TEST(Registry, ANameIsTakenOnce) {
  KernelRegistry registry;
  registry.add(std::make_unique<Named>("mine"));
  EXPECT_TRUE(registry.contains("mine"));
  EXPECT_THROW(registry.add(std::make_unique<Named>("mine")), InputError);
  // A name is part of file names, of lists and of lines.
  for (const char* name : {"", "..", "../PWN", "a,b", "a b", "a\n", "<b>", "\u202egnorw"}) {
    EXPECT_THROW(registry.add(std::make_unique<Named>(name)), InputError) << name;
  }
  EXPECT_EQ(registry.kernels().size(), 1U);
}

TEST(Registry, AKernelHasDtypes) {
  KernelRegistry registry;
  EXPECT_THROW(registry.add(std::make_unique<Named>("mine", std::vector<DType>{})), InputError);
  EXPECT_EQ(registry.kernels().size(), 0U);
}

}  // namespace
}  // namespace longca
