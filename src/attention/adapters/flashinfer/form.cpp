#include <fmt/format.h>

#include <limits>

#include "attention/absent_kernel.h"
#include "attention/adapters/block_form.h"
#include "attention/adapters/flashinfer/flashinfer.h"
#include "attention/adapters/flashinfer/pages.h"

namespace longca {

Capabilities flashinfer_capabilities() {
  Capabilities can;
  can.name = "flashinfer";
  can.description = "FlashInfer's prefill for Hopper over lists of key pages per query block";
  can.origin = "flashinfer-python 0.7.2";
  can.device = DeviceKind::cuda;
  can.only_architecture = 90;
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
  can.static_masks = false;
  can.backward = false;
  can.accumulate = false;
  can.strided = false;  // K and V have to lie alike
  return can;
}

Support flashinfer_can_express(const Problem& problem, const Mask& mask) {
  if (auto support = check_problem(flashinfer_capabilities(), problem, mask); !support.ok()) {
    return support;
  }
  if (!keeps_whole_blocks(mask)) {
    return Support::unsupported(
        "its lists keep whole pages of keys: none that a causal or other mask cuts");
  }
  if (mask.q_tokens() == 0 || mask.k_tokens() == 0) {
    return Support::unsupported("its TMA takes no tensor without tokens");
  }
  const std::int64_t entries = flashinfer::page_entries(*mask.blocks());
  if (entries > std::numeric_limits<std::int32_t>::max()) {
    return Support::unsupported(
        fmt::format("its lists are numbered in 32 bits: this mask needs {} entries", entries));
  }
  return {};
}

#ifndef LONGCA_WITH_FLASHINFER
std::unique_ptr<Kernel> make_flashinfer() {
  return std::make_unique<AbsentKernel>(
      flashinfer_capabilities(),
      "this build is without FlashInfer's headers: let scripts/setup fetch them (PyPI's "
      "flashinfer-python) and build again",
      flashinfer_can_express);
}
#endif

}  // namespace longca
