#include "kernel_survey.h"

#include "mask/generators.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 2048;  ///< four documents: with one, masks turn into another
constexpr std::int64_t kBlock = 32;
constexpr int kHeadsK = 2;

MaskSpec small_spec(const std::string& mask, int heads_q) {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = kTokens;
  spec.window = kBlock;
  spec.block_tokens = kBlock;
  spec.block = kBlock;
  spec.heads_q = heads_q;
  spec.heads_k = kHeadsK;
  return spec;
}

}  // namespace

KernelSurvey survey_kernel(const Kernel& kernel) {
  const Capabilities& can = kernel.capabilities();
  Problem problem;
  problem.tokens_q = kTokens;
  problem.tokens_k = kTokens;
  problem.heads_q = can.gqa ? 2 * kHeadsK : kHeadsK;
  problem.heads_k = kHeadsK;
  if (!can.head_dims.empty()) problem.head_dim = can.head_dims.front();
  if (!can.dtypes.empty()) problem.dtype = can.dtypes.front();
  problem.device = can.device;
  problem.backward = can.backward;

  KernelSurvey survey;
  std::vector<std::string> expressed;
  Support refusal;
  for (const MaskTraits& mask : mask_table()) {
    const GeneratedMask generated = generate_mask(small_spec(mask.name, problem.heads_q));
    if (kernel.expresses(problem, generated.mask).ok()) expressed.push_back(mask.name);
    Support support = kernel.supports(problem, generated.mask);
    if (support.ok()) {
      survey.masks.push_back(mask.name);
    } else if (refusal.ok() || refusal.code == StatusCode::unsupported) {
      refusal = std::move(support);  // "unavailable" says more: what to install
    }
  }
  if (survey.masks.empty()) {
    survey.masks = std::move(expressed);
    survey.support = std::move(refusal);
  }
  return survey;
}

}  // namespace longca
