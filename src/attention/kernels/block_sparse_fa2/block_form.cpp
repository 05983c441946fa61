#include "attention/kernels/block_sparse_fa2/block_form.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "attention/absent_kernel.h"
#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"
#include "attention/kernels/common/mma/instances.h"
#include "core/error.h"
#include "mask/convert.h"

namespace longca::fa2_sparse {
namespace {

/// The common length of all blocks but the last, which may be shorter; of a single block, or none,
/// the first even multiple of kBlockUnit beyond its tokens. Nothing if lengths differ.
std::optional<std::int64_t> block_length(const std::vector<std::int64_t>& bounds) {
  const std::int64_t tokens = bounds.back();
  if (bounds.size() <= 2) return (tokens / (2 * kBlockUnit) + 1) * (2 * kBlockUnit);
  const std::int64_t block = bounds[1];
  for (std::size_t i = 1; i + 1 < bounds.size(); ++i) {
    const std::int64_t length = bounds[i + 1] - bounds[i];
    const bool last = i + 2 == bounds.size();
    if (length > block || (length < block && !last)) return std::nullopt;
  }
  return block;
}

Support check_blocks(const char* side, const std::vector<std::int64_t>& bounds, int& block) {
  const std::optional<std::int64_t> length = block_length(bounds);
  if (!length) {
    return Support::unsupported(fmt::format(
        "fa2_sparse_native walks {} blocks of one length, and those of this mask differ", side));
  }
  if (*length % kBlockUnit != 0) {
    return Support::unsupported(
        fmt::format("fa2_sparse_native walks {} blocks of multiples of {} tokens, not of {}", side,
                    kBlockUnit, *length));
  }
  block = static_cast<int>(*length);
  return {};
}

/// The band of the slices, if they are one.
std::optional<Band> band_of(const Mask& mask) {
  const std::int64_t q = mask.q_tokens();
  const std::int64_t k = mask.k_tokens();
  Band band{static_cast<std::int32_t>(-q), static_cast<std::int32_t>(k),
            static_cast<std::int32_t>(q), static_cast<std::int32_t>(k)};
  if (mask.slices().empty()) {
    band.high = static_cast<std::int32_t>(-q);  // below every key: no cell is allowed
    return band;
  }
  const Mask whole = Mask::from_slices(q, k, {mask.slices().begin(), mask.slices().end()});
  const std::optional<WindowForm> window = window_form(whole);
  if (!window) return std::nullopt;
  if (window->left >= 0) band.low = static_cast<std::int32_t>(k - q - window->left);
  if (window->right >= 0) band.high = static_cast<std::int32_t>(k - q + window->right + 1);
  return band;
}

}  // namespace

Support block_form(const Mask& mask, BlockForm& form) {
  LONGCA_CHECK(mask.blocks() != nullptr, "a mask of {} × {} tokens without blocks", mask.q_tokens(),
               mask.k_tokens());
  const BlockLists& blocks = *mask.blocks();
  if (auto support = check_blocks("query", blocks.q_bounds, form.q_block); !support.ok()) {
    return support;
  }
  if (auto support = check_blocks("key", blocks.k_bounds, form.k_block); !support.ok()) {
    return support;
  }
  const std::optional<Band> band = band_of(mask);
  if (!band) {
    return Support::unsupported(
        "fa2_sparse_native cuts its blocks by one band of diagonals (none, causal or a window), "
        "and "
        "the slices of this mask are none");
  }
  form.band = *band;
  return {};
}

}  // namespace longca::fa2_sparse

namespace longca {

Capabilities fa2_sparse_native_capabilities() {
  Capabilities can;
  can.name = "fa2_sparse_native";
  can.description = "lists of kept blocks over FlashAttention-2 tiles";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can, mma::kOtherInstances);
  can.static_masks = false;
  can.accumulate = false;
  can.backward_bytes = {.per_q = 4, .per_row = 8, .grouped_per_k = 8};
  return can;
}

Support fa2_sparse_native_can_express(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = fa2_sparse_native_capabilities();
  if (Support support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  fa2_sparse::BlockForm form;
  return fa2_sparse::block_form(mask, form);
}

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Kernel> make_fa2_sparse_native() {
  return std::make_unique<AbsentKernel>(fa2_sparse_native_capabilities(), "",
                                        fa2_sparse_native_can_express);
}
#endif

}  // namespace longca
