#include "kernel_survey.h"

#include <algorithm>
#include <array>
#include <vector>

#include "mask/generators.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 2048;  ///< four documents: with one, masks become equal to others
constexpr std::int64_t kBlock = 32;
/// Kernels of block lists are written for one size or another.
constexpr std::array<std::int64_t, 3> kBlockSizes = {32, 64, 128};
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

/// A mask by its name, in each size of blocks if it has any.
std::vector<Mask> small_masks(const MaskTraits& traits, int heads_q) {
  MaskSpec spec = small_spec(traits.name, heads_q);
  std::vector<Mask> masks;
  for (const std::int64_t block : kBlockSizes) {
    spec.block = block;
    masks.push_back(generate_mask(spec).mask);
    if (!traits.uses_blocks) break;
  }
  return masks;
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
    const std::vector<Mask> masks = small_masks(mask, problem.heads_q);
    const auto can_express = [&](const Mask& m) { return kernel.can_express(problem, m).ok(); };
    const auto found = std::ranges::find_if(masks, can_express);
    if (found != masks.end()) expressed.push_back(mask.name);
    Support support = kernel.supports(problem, found == masks.end() ? masks.front() : *found);
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
