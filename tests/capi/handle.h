#pragma once

#include <longca.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace longca::testing {

/// Masks and plans that release themselves.
using MaskHandle = std::unique_ptr<longca_mask, decltype(&longca_mask_release)>;
using PlanHandle = std::unique_ptr<longca_plan, decltype(&longca_plan_release)>;

inline MaskHandle own(longca_mask* mask) {
  return {mask, &longca_mask_release};
}
inline PlanHandle own(longca_plan* plan) {
  return {plan, &longca_plan_release};
}

/// Causal documents with these bounds; null if they are refused.
inline MaskHandle packed_documents(const std::vector<std::int64_t>& cu_seqlens) {
  longca_mask* mask = nullptr;
  longca_mask_from_cu_seqlens(cu_seqlens.data(), cu_seqlens.size(), 1, -1, -1, &mask);
  return own(mask);
}

}  // namespace longca::testing
