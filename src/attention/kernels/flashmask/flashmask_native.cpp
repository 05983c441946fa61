#include "attention/kernels/flashmask/flashmask_native.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/common/mma/plan_tools.h"
#include "attention/kernels/flashmask/column_plan.h"
#include "attention/kernels/flashmask/launch.h"
#include "core/cuda/upload.h"
#include "core/device.h"
#include "core/error.h"
#include "core/rounding.h"
#include "mask/convert.h"

namespace longca {
namespace flashmask {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

/// A pass's plan of the mask in device memory.
struct DeviceTiles {
  Buffer bounds;
  Buffer order;
  int section_heads = 1;  ///< MaskArgs

  std::int64_t bytes() const { return bounds.bytes() + order.bytes(); }
};

constexpr char kName[] = "flashmask_native";

class FlashmaskPlan final : public Plan {
 public:
  FlashmaskPlan(const Problem& problem, const Mask& mask, int shared_bytes)
      : problem_(problem), backward_tile_n_(backward_tile_n(shared_bytes)) {
    const auto intervals = column_intervals(mask, 0);
    LONGCA_CHECK(intervals.has_value(), "the mask has been found to have column intervals");
    const std::vector<Column> columns = padded_columns(*intervals, kMaxTileN);
    columns_ = on_device(columns);
    plan_forward(columns);
    if (problem.backward) plan_backward(columns);
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot merge into given outputs");
    const ForwardParams params{attention_args(kName, problem_, args), mask_args(forward_)};
    launch_forward(params, problem_.dtype, problem_.head_dim,
                   static_cast<cudaStream_t>(args.stream));
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot add into given gradients");
    const BackwardParams params{attention_args(kName, problem_, args), sums_.args(kName, args),
                                mask_args(backward_)};
    launch_backward(params, problem_.dtype, problem_.head_dim,
                    static_cast<cudaStream_t>(args.stream));
  }

  std::int64_t workspace_bytes() const override {
    return columns_.bytes() + forward_.bytes() + backward_.bytes() + sums_.scratch().own_bytes();
  }
  PlanScratch* scratch() override { return &sums_.scratch(); }

 private:
  TilePlan plan(std::span<const Column> columns, int tile_m, int tile_n) const {
    const std::int64_t used = round_up(problem_.tokens_k, tile_n);
    return plan_tiles(columns.first(static_cast<std::size_t>(used)), problem_.tokens_q, tile_m,
                      tile_n);
  }

  void plan_forward(std::span<const Column> columns) {
    const TilePlan tiles = plan(columns, kForwardTileM, kForwardTileN);
    const std::int64_t key_bytes = 2 * problem_.tokens_k * problem_.head_dim * 2;
    forward_ = {on_device(tiles.bounds), on_device(tiles.row_order),
                heads_in_cache(key_bytes, problem_.heads_k) * problem_.group_size()};
  }

  void plan_backward(std::span<const Column> columns) {
    const TilePlan tiles = plan(columns, kBackwardTileM, backward_tile_n_);
    // Q, dO and the float32 sums of dQ of a query head.
    const std::int64_t row_bytes = problem_.tokens_q * problem_.head_dim * (2 + 2 + 4);
    const BackwardWork work = {.group_size = problem_.group_size(),
                               .heads_k = problem_.heads_k,
                               .heads_in_cache = heads_in_cache(row_bytes, problem_.heads_q),
                               .concurrent_ctas = gpu().properties().sms};
    const int parts = head_parts(tiles, work);
    backward_ = {on_device(tiles.bounds), on_device(tiles.column_order),
                 work.section_heads(parts) * parts};
    sums_ = GradientSums(problem_, kBackwardTileM, backward_tile_n_, parts);
  }

  MaskArgs mask_args(const DeviceTiles& tiles) const {
    return {columns_.as<Column>(), tiles.bounds.as<BlockBounds>(), tiles.order.as<std::int32_t>(),
            tiles.section_heads};
  }

  Problem problem_;
  Buffer columns_;
  DeviceTiles forward_;
  DeviceTiles backward_;
  int backward_tile_n_;
  GradientSums sums_;
};

class FlashmaskNative final : public Kernel {
 public:
  explicit FlashmaskNative(int shared_bytes) : shared_bytes_(shared_bytes) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    const int needed = problem.backward ? min_backward_shared_bytes() : min_forward_shared_bytes();
    if (shared_bytes() < needed) {
      return Support::unsupported(
          fmt::format("flashmask_native's {} pass needs {} bytes of shared memory per CTA, "
                      "and the {} gives {}",
                      problem.backward ? "backward" : "forward", needed, gpu().properties().name,
                      shared_bytes()));
    }
    return can_express(problem, mask);
  }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    return flashmask_native_can_express(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FlashmaskPlan>(problem, mask, shared_bytes());
  }

 private:
  int shared_bytes() const { return shared_bytes_ > 0 ? shared_bytes_ : device_shared_bytes(); }

  Capabilities capabilities_ = flashmask_native_capabilities();
  int shared_bytes_;
};

}  // namespace
}  // namespace flashmask

std::unique_ptr<Kernel> make_flashmask_native() {
  return make_flashmask_native(0);
}

std::unique_ptr<Kernel> make_flashmask_native(int shared_bytes) {
  return std::make_unique<flashmask::FlashmaskNative>(shared_bytes);
}

}  // namespace longca
