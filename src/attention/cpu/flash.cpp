#include "attention/cpu/blocked_plan.h"
#include "attention/cpu/kernels.h"

namespace longca {
namespace {

/// A row of the benchmark that runs blocked attention on the CPU.
class BlockedKernel final : public Kernel {
 public:
  BlockedKernel(Capabilities capabilities, cpu::TileCut cut)
      : capabilities_(std::move(capabilities)), cut_(cut) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities_, problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return cpu::make_blocked_plan(problem, mask, {.cut = cut_});
  }

 private:
  Capabilities capabilities_;
  cpu::TileCut cut_;
};

}  // namespace

std::unique_ptr<Kernel> make_flash_cpu() {
  return std::make_unique<BlockedKernel>(
      Capabilities{.name = "flash",
                   .description =
                       "blocked online softmax, SIMD, all cores, skips what the mask leaves empty",
                   .origin = "here",
                   .dtypes = {DType::float32, DType::bfloat16},
                   .head_dims = {},
                   .deterministic = true},
      cpu::TileCut::grid);
}

std::unique_ptr<Kernel> make_block_sparse_cpu() {
  return std::make_unique<BlockedKernel>(
      Capabilities{
          .name = "block_sparse",
          .description = "flash with query tiles that follow the blocks of a block-sparse mask",
          .origin = "here",
          .dtypes = {DType::float32, DType::bfloat16},
          .head_dims = {},
          .static_masks = false,
          .deterministic = true},
      cpu::TileCut::blocks);
}

}  // namespace longca
