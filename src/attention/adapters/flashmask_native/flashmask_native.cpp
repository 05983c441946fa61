#include "attention/adapters/flashmask_native/flashmask_native.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/adapters/flashmask_native/column_plan.h"
#include "attention/adapters/flashmask_native/launch.h"
#include "core/device.h"
#include "core/error.h"
#include "mask/convert.h"

namespace longca {
namespace flashmask {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

template <typename T>
Buffer on_device(const std::vector<T>& values) {
  if (values.empty()) return {};
  Buffer buffer(gpu().memory(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  gpu().copy(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

/// A pass's view of the mask on the device.
struct DeviceTiles {
  Buffer bounds;
  Buffer order;
  int section_heads = 1;  ///< of those that share keys

  std::int64_t bytes() const { return bounds.bytes() + order.bytes(); }
};

/// How many of `heads` work on `bytes_per_head` each within half of the L2 cache; at least one.
int heads_in_cache(std::int64_t bytes_per_head, int heads) {
  const std::int64_t fit =
      gpu().properties().cache_bytes / 2 / std::max<std::int64_t>(1, bytes_per_head);
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, heads));
}

template <typename View>
TensorArg argument(const View& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  LONGCA_CHECK(address % 16 == 0 && view.token_stride % 8 == 0 && view.head_stride % 8 == 0,
               "rows of flashmask_native's tensors begin at multiples of 16 bytes, not at {:#x} "
               "with strides of {} and {} elements",
               address, view.token_stride, view.head_stride);
  return {const_cast<void*>(static_cast<const void*>(view.data)), view.token_stride,
          view.head_stride};
}

class FlashmaskPlan final : public Plan {
 public:
  FlashmaskPlan(const Problem& problem, const Mask& mask) : problem_(problem) {
    const auto intervals = column_intervals(mask, 0);
    LONGCA_CHECK(intervals.has_value(), "the mask has been found to have column intervals");
    const std::vector<Column> columns =
        padded_columns(*intervals, std::max(kForwardTile.n, kBackwardTile.n));
    columns_ = on_device(columns);
    plan_forward(columns);
    if (problem.backward) plan_backward(columns);
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot merge into given outputs");
    ForwardParams params;
    fill(params, args, forward_);
    params.lse = args.lse.data;
    params.section_heads = forward_.section_heads * problem_.group_size();
    launch_forward(params, problem_.dtype, problem_.head_dim,
                   static_cast<cudaStream_t>(args.stream));
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot add into given gradients");
    BackwardParams params;
    fill(params, args, backward_);
    params.lse = const_cast<float*>(args.lse.data);
    params.section_heads = backward_.section_heads * head_parts_;
    params.dout = argument(args.dout);
    params.dq = argument(args.dq);
    params.dk = argument(args.dk);
    params.dv = argument(args.dv);
    params.row_terms = row_terms_.as<float>();
    params.dq_sum = dq_sum_.as<float>();
    params.dk_sum = dk_sum_.as<float>();
    params.dv_sum = dv_sum_.as<float>();
    params.head_parts = head_parts_;
    launch_backward(params, problem_.dtype, problem_.head_dim,
                    static_cast<cudaStream_t>(args.stream));
  }

  std::int64_t workspace_bytes() const override {
    return columns_.bytes() + forward_.bytes() + backward_.bytes() + row_terms_.bytes() +
           dq_sum_.bytes() + dk_sum_.bytes() + dv_sum_.bytes();
  }

 private:
  void plan_forward(const std::vector<Column>& columns) {
    const TilePlan tiles = plan_tiles(columns, problem_.tokens_q, kForwardTile.m, kForwardTile.n);
    const std::int64_t key_bytes = 2 * problem_.tokens_k * problem_.head_dim * 2;
    forward_ = {on_device(tiles.bounds), on_device(tiles.row_order),
                heads_in_cache(key_bytes, problem_.heads_k)};
  }

  void plan_backward(const std::vector<Column>& columns) {
    const TilePlan tiles = plan_tiles(columns, problem_.tokens_q, kBackwardTile.m, kBackwardTile.n);
    const int group = problem_.group_size();
    // Q, dO and the float32 sums of dQ.
    const std::int64_t row_bytes = problem_.tokens_q * problem_.head_dim * (2 + 2 + 4) * group;
    backward_ = {on_device(tiles.bounds), on_device(tiles.column_order),
                 heads_in_cache(row_bytes, problem_.heads_k)};
    head_parts_ = head_parts(tiles, group, problem_.heads_k, gpu().properties().multiprocessors);

    const auto rows = [](std::int64_t tokens, int tile) {
      return (tokens + tile - 1) / tile * tile;
    };
    const auto sums = [&](std::int64_t tile_rows, int heads) {
      return Buffer(gpu().memory(), tile_rows * heads * problem_.head_dim * 4);
    };
    const std::int64_t q_rows = rows(problem_.tokens_q, kBackwardTile.m);
    row_terms_ = Buffer(gpu().memory(), q_rows * problem_.heads_q * 2 * 4);
    dq_sum_ = sums(q_rows, problem_.heads_q);
    if (head_parts_ == 1) return;
    dk_sum_ = sums(rows(problem_.tokens_k, kBackwardTile.n), problem_.heads_k);
    dv_sum_ = sums(rows(problem_.tokens_k, kBackwardTile.n), problem_.heads_k);
  }

  template <typename Args>
  void fill(CommonParams& params, const Args& args, const DeviceTiles& tiles) const {
    params.q = argument(args.q);
    params.k = argument(args.k);
    params.v = argument(args.v);
    params.o = argument(args.o);
    params.lse_head_stride = args.lse.head_stride;
    params.tokens_q = static_cast<int>(problem_.tokens_q);
    params.tokens_k = static_cast<int>(problem_.tokens_k);
    params.heads_q = problem_.heads_q;
    params.heads_k = problem_.heads_k;
    params.scale = problem_.scale();
    params.columns = columns_.as<Column>();
    params.bounds = tiles.bounds.template as<BlockBounds>();
    params.order = tiles.order.template as<std::int32_t>();
  }

  Problem problem_;
  Buffer columns_;
  DeviceTiles forward_;
  DeviceTiles backward_;
  int head_parts_ = 1;
  Buffer row_terms_;
  Buffer dq_sum_;
  Buffer dk_sum_;
  Buffer dv_sum_;
};

class FlashmaskNative final : public Kernel {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    return expresses(problem, mask);
  }

  Support expresses(const Problem& problem, const Mask& mask) const override {
    return flashmask_native_expresses(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FlashmaskPlan>(problem, mask);
  }

 private:
  Capabilities capabilities_ = flashmask_native_capabilities();
};

}  // namespace
}  // namespace flashmask

std::unique_ptr<Kernel> make_flashmask_native() {
  return std::make_unique<flashmask::FlashmaskNative>();
}

}  // namespace longca
