#include "attention/adapters/flashmask_native/flashmask_native.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/adapters/flashmask_native/column_plan.h"
#include "attention/adapters/flashmask_native/launch.h"
#include "core/cuda/error.h"
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
  int section_heads = 1;  ///< CommonParams

  std::int64_t bytes() const { return bounds.bytes() + order.bytes(); }
};

/// Tokens rounded up to whole blocks.
std::int64_t padded(std::int64_t tokens, int block) {
  return (tokens + block - 1) / block * block;
}

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
  FlashmaskPlan(const Problem& problem, const Mask& mask, int shared_bytes)
      : problem_(problem), backward_tile_n_(backward_tile_n(shared_bytes)) {
    const auto intervals = column_intervals(mask, 0);
    LONGCA_CHECK(intervals.has_value(), "the mask has been found to have column intervals");
    const std::vector<Column> columns = padded_columns(*intervals, kMostTileN);
    columns_ = on_device(columns);
    plan_forward(columns);
    if (problem.backward) plan_backward(columns);
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot merge into given outputs");
    ForwardParams params;
    fill(params, args, forward_);
    params.lse = args.lse.data;
    params.section_heads = forward_.section_heads;
    launch_forward(params, problem_.dtype, problem_.head_dim,
                   static_cast<cudaStream_t>(args.stream));
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    LONGCA_CHECK(!args.accumulate, "flashmask_native cannot add into given gradients");
    BackwardParams params;
    fill(params, args, backward_);
    params.lse = const_cast<float*>(args.lse.data);
    params.section_heads = backward_.section_heads;
    params.dout = argument(args.dout);
    params.dq = argument(args.dq);
    params.dk = argument(args.dk);
    params.dv = argument(args.dv);
    params.row_terms = row_terms_.as<float>();
    params.dq_sum = dq_sum_.as<float>();
    params.dk_sum = dk_sum_.as<float>();
    params.dv_sum = dv_sum_.as<float>();
    params.tile_n = backward_tile_n_;
    params.head_parts = head_parts_;
    launch_backward(params, problem_.dtype, problem_.head_dim,
                    static_cast<cudaStream_t>(args.stream));
  }

  std::int64_t workspace_bytes() const override {
    return columns_.bytes() + forward_.bytes() + backward_.bytes() + row_terms_.bytes() +
           dq_sum_.bytes() + dk_sum_.bytes() + dv_sum_.bytes();
  }

 private:
  TilePlan plan(std::span<const Column> columns, int tile_m, int tile_n) const {
    const std::int64_t used = padded(problem_.tokens_k, tile_n);
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
                               .slots = gpu().properties().multiprocessors};
    head_parts_ = head_parts(tiles, work);
    backward_ = {on_device(tiles.bounds), on_device(tiles.column_order),
                 work.section_heads(head_parts_) * head_parts_};

    const auto sums = [&](std::int64_t tile_rows, int heads) {
      return Buffer(gpu().memory(), tile_rows * heads * problem_.head_dim * 4);
    };
    const std::int64_t q_rows = padded(problem_.tokens_q, kBackwardTileM);
    row_terms_ = Buffer(gpu().memory(), q_rows * problem_.heads_q * 2 * 4);
    dq_sum_ = sums(q_rows, problem_.heads_q);
    if (head_parts_ == 1) return;
    dk_sum_ = sums(padded(problem_.tokens_k, backward_tile_n_), problem_.heads_k);
    dv_sum_ = sums(padded(problem_.tokens_k, backward_tile_n_), problem_.heads_k);
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
  int backward_tile_n_;
  int head_parts_ = 1;
  Buffer row_terms_;
  Buffer dq_sum_;
  Buffer dk_sum_;
  Buffer dv_sum_;
};

/// What the device gives a work group that asks.
int device_shared_bytes() {
  int device = 0;
  int bytes = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

class FlashmaskNative final : public Kernel {
 public:
  explicit FlashmaskNative(int shared_bytes) : shared_bytes_(shared_bytes) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    const int needed =
        problem.backward ? least_backward_shared_bytes() : least_forward_shared_bytes();
    if (shared_bytes() < needed) {
      return Support::unsupported(
          fmt::format("flashmask_native's {} pass needs {} bytes of shared memory per work group, "
                      "and the {} gives {}",
                      problem.backward ? "backward" : "forward", needed, gpu().properties().name,
                      shared_bytes()));
    }
    return expresses(problem, mask);
  }

  Support expresses(const Problem& problem, const Mask& mask) const override {
    return flashmask_native_expresses(problem, mask);
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

std::unique_ptr<Kernel> make_flashmask_native(int shared_bytes) {
  return std::make_unique<flashmask::FlashmaskNative>(shared_bytes);
}

}  // namespace longca
