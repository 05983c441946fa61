#include "attention/cpu/blocked_plan.h"

#include <numbers>

#include "attention/cpu/backward.h"
#include "attention/cpu/forward.h"
#include "attention/cpu/kernels.h"
#include "core/error.h"

namespace longca::cpu {
namespace {

const MicroKernels& choose_kernels(const Problem& problem, const BlockedOptions& options) {
  const bool want_pairs = problem.dtype == DType::bfloat16 && options.bf16_products;
  const MicroKernels* pairs = want_pairs ? bfloat16_kernels() : nullptr;
  return pairs ? *pairs : float32_kernels();
}

std::vector<HeadTiles> plan_heads(const Mask& mask, TileCut cut, ThreadPool& pool) {
  std::vector<std::int64_t> bounds{0, mask.q_tokens()};
  if (cut == TileCut::blocks && mask.blocks()) bounds = mask.blocks()->q_bounds;
  std::vector<HeadTiles> heads(static_cast<std::size_t>(mask.heads()));
  pool.parallel_for(mask.heads(), [&](std::int64_t head, int) {
    heads[static_cast<std::size_t>(head)] = plan_tiles(mask, static_cast<int>(head), bounds);
  });
  return heads;
}

class BlockedPlan final : public Plan {
 public:
  BlockedPlan(const Problem& problem, const Mask& mask, const BlockedOptions& options)
      : setup_(problem, mask, options), forward_(setup_) {
    if (problem.backward) backward_ = std::make_unique<Backward>(setup_);
  }

  void forward(const ForwardArgs& args) override { forward_.run(args); }
  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(backward_ != nullptr, "the problem was planned without its backward pass");
    backward_->run(args);
  }
  std::int64_t workspace_bytes() const override {
    return setup_.bytes() + forward_.bytes() + (backward_ ? backward_->bytes() : 0);
  }

 private:
  BlockedSetup setup_;
  Forward forward_;
  std::unique_ptr<Backward> backward_;
};

}  // namespace

BlockedSetup::BlockedSetup(const Problem& shape, const Mask& mask, const BlockedOptions& options)
    : problem(shape),
      kernels(&choose_kernels(shape, options)),
      packing(shape.dtype, shape.head_dim, *kernels),
      value_packing(shape.dtype, shape.value_dim(), *kernels),
      pool(options.pool ? options.pool : &ThreadPool::global()),
      heads(plan_heads(mask, options.cut, *pool)) {}

int BlockedSetup::mask_head(int query_head) const {
  return static_cast<int>(std::int64_t{query_head} * static_cast<std::int64_t>(heads.size()) /
                          problem.heads_q);
}

const HeadTiles& BlockedSetup::tiles(int query_head) const {
  return heads[static_cast<std::size_t>(mask_head(query_head))];
}

float BlockedSetup::scale_log2() const {
  return (capped() ? problem.softcap : problem.scale()) * std::numbers::log2e_v<float>;
}

std::int64_t BlockedSetup::bytes() const {
  std::int64_t sum = 0;
  for (const HeadTiles& head : heads) sum += head.bytes();
  return sum;
}

std::unique_ptr<Plan> make_blocked_plan(const Problem& problem, const Mask& mask,
                                        const BlockedOptions& options) {
  return std::make_unique<BlockedPlan>(problem, mask, options);
}

}  // namespace longca::cpu

namespace longca {
namespace {

/// The kernels `flash` and `block_sparse`.
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
                   .dtypes = {DType::float32, DType::bfloat16, DType::float16},
                   .head_dims = {},
                   .value_dims = true,
                   .deterministic = true,
                   .sinks = true,
                   .softcap = true},
      cpu::TileCut::grid);
}

std::unique_ptr<Kernel> make_block_sparse_cpu() {
  return std::make_unique<BlockedKernel>(
      Capabilities{
          .name = "block_sparse",
          .description = "flash with query tiles that follow the blocks of a block-sparse mask",
          .origin = "here",
          .dtypes = {DType::float32, DType::bfloat16, DType::float16},
          .head_dims = {},
          .value_dims = true,
          .static_masks = false,
          .deterministic = true,
          .sinks = true,
          .softcap = true},
      cpu::TileCut::blocks);
}

}  // namespace longca
