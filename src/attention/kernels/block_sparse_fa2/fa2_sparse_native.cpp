#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/block_sparse_fa2/block_form.h"
#include "attention/kernels/block_sparse_fa2/launch.h"
#include "attention/kernels/block_sparse_fa2/work_order.h"
#include "attention/kernels/common/block_map.h"
#include "attention/kernels/common/mma/plan_tools.h"
#include "core/cuda/upload.h"
#include "core/device.h"
#include "core/error.h"

namespace longca {
namespace fa2_sparse {
namespace {

constexpr char kName[] = "fa2_sparse_native";

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

/// The largest backward tile that divides key blocks and fits in shared memory.
int tile_n_of_blocks(const BlockForm& form, int shared_bytes) {
  return form.k_block % 128 == 0 && backward_shared_bytes(128) <= shared_bytes ? 128 : 64;
}

/// Short query blocks use tiles of two heads if pairs of heads share their list and KV head.
ForwardTile forward_tile(const Problem& problem, const BlockForm& form, int lists) {
  if (form.q_block % 128 == 0) return {128, 1};
  const bool pairs = problem.group_size() % 2 == 0 && problem.heads_q % lists == 0 &&
                     problem.heads_q / lists % 2 == 0;
  return {64, pairs ? 2 : 1};
}

class SparsePlan final : public Plan {
 public:
  SparsePlan(const Problem& problem, const Mask& mask, int shared_bytes) : problem_(problem) {
    LONGCA_CHECK(block_form(mask, form_).ok(), "the mask has been found to have uniform blocks");
    const BlockMap& map = BlockMap::of(mask);
    plan_forward(map);
    if (problem.backward) plan_backward(map, shared_bytes);
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "fa2_sparse_native cannot merge into given outputs");
    const ForwardParams params{attention_args(kName, problem_, args), forward_};
    launch_forward(params, forward_tile_, problem_.dtype, problem_.head_dim,
                   static_cast<cudaStream_t>(args.stream));
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    LONGCA_CHECK(!args.accumulate, "fa2_sparse_native cannot add into given gradients");
    const BackwardParams params{attention_args(kName, problem_, args), sums_.args(kName, args),
                                backward_, heads_per_list_};
    launch_backward(params, problem_.dtype, problem_.head_dim,
                    static_cast<cudaStream_t>(args.stream));
  }

  std::int64_t workspace_bytes() const override {
    return forward_order_.bytes() + backward_order_.bytes() + columns_.buffer.bytes() +
           sums_.scratch().own_bytes();
  }
  PlanScratch* scratch() override { return &sums_.scratch(); }

 private:
  BlockArgs block_args(const BlockBits& bits) const {
    return {bits.words,    bits.heads,    bits.rows,  bits.row_words,
            form_.q_block, form_.k_block, form_.band, nullptr};
  }

  /// count_blocks, copied to the host.
  std::vector<std::int32_t> counts(const BlockArgs& blocks, const TileGrid& grid) const {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(blocks.lists) *
                                     static_cast<std::size_t>(grid.tiles()));
    if (counts.empty()) return counts;
    const Buffer buffer(gpu().memory(), std::ssize(counts) * 4);
    count_blocks(blocks, grid, buffer.as<std::int32_t>(), stream());
    gpu().copy(counts.data(), buffer.data(), buffer.bytes());
    return counts;
  }

  void plan_forward(const BlockMap& map) {
    forward_ = block_args(map.bits());
    forward_tile_ = forward_tile(problem_, form_, forward_.lists);
    const TileGrid grid{forward_tile_.tokens, static_cast<int>(problem_.tokens_q), form_.q_block,
                        form_.k_block, true};
    const int units_per_kv = problem_.group_size() / forward_tile_.heads;
    const std::int64_t key_bytes = 2 * problem_.tokens_k * problem_.head_dim * 2;
    const Work work = {.units = problem_.heads_k * units_per_kv,
                       .lists = forward_.lists,
                       .tiles = grid.tiles(),
                       .section_units = heads_in_cache(key_bytes, problem_.heads_k) * units_per_kv};
    forward_order_ = on_device(work_order(work, counts(forward_, grid)));
    forward_.order = forward_order_.as<std::int32_t>();
  }

  void plan_backward(const BlockMap& map, int shared_bytes) {
    columns_ = transposed_bits(map, gpu().stream());
    backward_ = block_args(columns_.bits);
    const int tile_n = tile_n_of_blocks(form_, shared_bytes);
    const TileGrid grid{tile_n, static_cast<int>(problem_.tokens_k), form_.k_block, form_.q_block,
                        false};
    // Q, dO and the float32 sums of dQ of a query head.
    const std::int64_t row_bytes = problem_.tokens_q * problem_.head_dim * (2 + 2 + 4);
    const BackwardWork work = {.group_size = problem_.group_size(),
                               .heads_k = problem_.heads_k,
                               .lists = backward_.lists,
                               .tiles = grid.tiles(),
                               .tiles_per_block = form_.q_block / kBackwardTileM,
                               .heads_in_cache = heads_in_cache(row_bytes, problem_.heads_q),
                               .concurrent_ctas = gpu().properties().sms};
    const std::vector<std::int32_t> visits = counts(backward_, grid);
    const int parts = head_parts(work, visits);
    backward_order_ = on_device(work_order(work.split(parts), visits));
    backward_.order = backward_order_.as<std::int32_t>();
    const bool shared = problem_.heads_k % backward_.lists == 0;
    heads_per_list_ = shared ? problem_.group_size() / parts : 1;
    sums_ = GradientSums(problem_, kBackwardTileM, tile_n, parts);
  }

  static cudaStream_t stream() { return static_cast<cudaStream_t>(gpu().stream()); }

  Problem problem_;
  BlockForm form_;
  BlockArgs forward_{};
  BlockArgs backward_{};
  ForwardTile forward_tile_;
  int heads_per_list_ = 1;
  Buffer forward_order_;
  Buffer backward_order_;
  OwnedBlockBits columns_;
  GradientSums sums_;
};

class Fa2SparseNative final : public Kernel {
 public:
  explicit Fa2SparseNative(int shared_bytes) : shared_bytes_(shared_bytes) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    const int needed = problem.backward ? backward_shared_bytes(64) : forward_shared_bytes();
    if (shared_bytes() < needed) {
      return Support::unsupported(
          fmt::format("fa2_sparse_native's {} pass needs {} bytes of shared memory per CTA, "
                      "and the {} gives {}",
                      problem.backward ? "backward" : "forward", needed, gpu().properties().name,
                      shared_bytes()));
    }
    return can_express(problem, mask);
  }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    return fa2_sparse_native_can_express(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<SparsePlan>(problem, mask, shared_bytes());
  }

 private:
  int shared_bytes() const { return shared_bytes_ > 0 ? shared_bytes_ : device_shared_bytes(); }

  Capabilities capabilities_ = fa2_sparse_native_capabilities();
  int shared_bytes_;
};

}  // namespace
}  // namespace fa2_sparse

std::unique_ptr<Kernel> make_fa2_sparse_native() {
  return make_fa2_sparse_native(0);
}

std::unique_ptr<Kernel> make_fa2_sparse_native(int shared_bytes) {
  return std::make_unique<fa2_sparse::Fa2SparseNative>(shared_bytes);
}

}  // namespace longca
