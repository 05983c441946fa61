#include "attention/slice/backward_pass.h"

#include <numeric>

#include "attention/cuda/mma/plan_tools.h"
#include "attention/slice/backward_pack.h"
#include "attention/slice/transposed_lists.h"
#include "core/error.h"

namespace longca::slice {
namespace {

constexpr char kName[] = "slice";

TensorArg argument(const mma::TensorArg& tensor) {
  return {tensor.data, tensor.token_stride, tensor.head_stride};
}

template <typename View>
TensorArg argument(const char* name, const View& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  LONGCA_CHECK(address % 16 == 0 && view.token_stride % 8 == 0 && view.head_stride % 8 == 0,
               "rows of slice's {} begin at multiples of 16 bytes, not at {:#x} with strides of {} "
               "and {} elements",
               name, address, view.token_stride, view.head_stride);
  return {const_cast<void*>(static_cast<const void*>(view.data)), view.token_stride,
          view.head_stride};
}

/// Query heads that share a KV head and a list of the mask.
int group_size(const Problem& problem, const Mask& mask) {
  return std::gcd(problem.group_size(), problem.heads_q / mask.heads());
}

Sink keys_sink(const BackwardArgs& args, KeyGradients keys) {
  switch (keys) {
    case KeyGradients::overwrite_float32:
      return Sink::overwrite_float32;
    case KeyGradients::add_float32:
      return Sink::add_float32;
    case KeyGradients::as_dq:
      break;
  }
  return args.accumulate ? Sink::add_float32 : Sink::overwrite;
}

}  // namespace

BackwardPass::BackwardPass(const Problem& problem, const Mask& mask, bool ordered)
    : problem_(problem), ordered_(ordered) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const BackwardWork work = {.heads_q = problem.heads_q,
                             .heads_k = problem.heads_k,
                             .work_groups = gpu.properties().multiprocessors,
                             .ordered = ordered};
  const TransposedLists lists =
      make_transposed_lists(mask, choose_backward_pack(mask, group_size(problem, mask)), work);
  pack_ = lists.pack;
  list_heads_ = static_cast<int>(lists.list_heads);
  tiles_per_list_ = static_cast<int>(lists.tiles_per_list);
  items_per_order_ = static_cast<int>(lists.items_per_order);
  shared_tiles_ = static_cast<int>(lists.shared_keys.size());
  section_heads_ = lists.section_heads;
  tiles_ = mma::on_device(lists.tiles);
  segments_ = mma::on_device(lists.segments);
  patterns_ = mma::on_device(lists.patterns);
  order_ = mma::on_device(lists.order);
  shared_keys_ = mma::on_device(lists.shared_keys);
  scratch_ = PlanScratch(gpu.memory(), backward_workspace_bytes(params(), problem.head_dim));
}

BackwardParams BackwardPass::params() const {
  BackwardParams params;
  params.tokens_q = static_cast<int>(problem_.tokens_q);
  params.tokens_k = static_cast<int>(problem_.tokens_k);
  params.heads_q = problem_.heads_q;
  params.heads_k = problem_.heads_k;
  params.lists = {.pack = pack_,
                  .list_heads = list_heads_,
                  .tiles_per_list = tiles_per_list_,
                  .items_per_order = items_per_order_,
                  .shared_tiles = shared_tiles_,
                  .section_heads = section_heads_,
                  .tiles = tiles_.as<KeyTile>(),
                  .segments = segments_.as<QuerySegment>(),
                  .patterns = patterns_.as<std::uint64_t>(),
                  .order = order_.as<WorkItem>(),
                  .shared_keys = shared_keys_.as<KeyRange>()};
  params.ordered = ordered_;
  return params;
}

void BackwardPass::run(const BackwardArgs& args, KeyGradients keys) {
  const mma::AttentionArgs from = mma::attention_args(kName, problem_, args);
  BackwardParams params = this->params();
  params.workspace = scratch_.data();
  params.q = argument(from.q);
  params.k = argument(from.k);
  params.v = argument(from.v);
  params.o = argument(from.o);
  params.dout = argument("dout", args.dout);
  params.dq = argument("dq", args.dq);
  params.dk = argument("dk", args.dk);
  params.dv = argument("dv", args.dv);
  params.lse = from.lse;
  params.lse_head_stride = from.lse_head_stride;
  params.scale = from.scale;
  params.dq_sink = args.accumulate ? Sink::add_float32 : Sink::overwrite;
  params.keys_sink = keys_sink(args, keys);
  launch_backward(params, problem_.dtype, problem_.head_dim,
                  static_cast<cudaStream_t>(args.stream));
}

std::int64_t BackwardPass::list_bytes() const {
  return tiles_.bytes() + segments_.bytes() + patterns_.bytes() + order_.bytes() +
         shared_keys_.bytes();
}

}  // namespace longca::slice
