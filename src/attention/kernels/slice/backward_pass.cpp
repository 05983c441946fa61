#include "attention/kernels/slice/backward_pass.h"

#include <utility>

#include "attention/kernels/common/mma/plan_tools.h"
#include "attention/kernels/slice/planner/pack.h"
#include "core/device.h"
#include "core/error.h"
#include "cost/platform.h"

namespace longca::slice {
namespace {

constexpr char kName[] = "slice";

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

/// The sm80 kernel takes packs of one head.
int pack_of(const Problem& problem, const Mask& mask, SlicePath path) {
  if (path == SlicePath::sm80) return 1;
  return choose_backward_pack(mask, shared_heads(problem.heads_q, problem.heads_k, mask.heads()));
}

std::int64_t workspace_bytes(const BackwardParams& params, const Problem& problem, SlicePath path) {
  return path == SlicePath::sm80
             ? sm80_workspace_bytes(params, problem.head_dim)
             : backward_workspace_bytes(params, problem.dtype, dims_of(problem));
}

/// Bytes of BackwardParams::rows, which keep_rows can allocate apart; the sm80 kernels have none.
std::int64_t rows_bytes(const BackwardParams& params, const Problem& problem, SlicePath path) {
  return path == SlicePath::sm80 ? 0 : backward_rows_bytes(params, problem.dtype, dims_of(problem));
}

StoreMode dkv_mode(const BackwardArgs& args) {
  switch (args.key_gradients) {
    case KeyGradients::overwrite_float32:
      return StoreMode::overwrite_float32;
    case KeyGradients::add_float32:
      return StoreMode::add_float32;
    case KeyGradients::as_dq:
      break;
  }
  return args.accumulate ? StoreMode::add_float32 : StoreMode::overwrite;
}

BackwardWork work_of(const Problem& problem, SlicePath path) {
  const cost::Platform& platform = cost::platform_of_card(gpu().properties().name);
  const DimPair dims = dims_of(problem);
  return {.platform = platform,
          .heads_q = problem.heads_q,
          .heads_k = problem.heads_k,
          .ctas = gpu().properties().sms,
          .chunk_visits = backward_chunk_visits(platform, dims),
          .tile_keys = backward_tile_keys(dims),
          .ordered = problem.deterministic,
          // The sm80 kernel adds dK and dV of split key tiles in any order.
          .has_chunks = path != SlicePath::sm80 || !problem.deterministic,
          .tells_halves = path != SlicePath::sm80 && takes_halves(dims) && problem.softcap == 0};
}

}  // namespace

BackwardPass::BackwardPass(const Problem& problem, const Mask& mask, SlicePath path)
    : problem_(problem),
      path_(path),
      lists_(mask, pack_of(problem, mask, path), work_of(problem, path)),
      scratch_(gpu().memory(),
               workspace_bytes(params(), problem, path) + rows_bytes(params(), problem, path)) {}

BackwardParams BackwardPass::params(const AttentionArgs& tensors,
                                    const GradientTensors& gradients) const {
  BackwardParams params{tensors, gradients};
  params.tokens_q = static_cast<int>(problem_.tokens_q);
  params.tokens_k = static_cast<int>(problem_.tokens_k);
  params.heads_q = problem_.heads_q;
  params.heads_k = problem_.heads_k;
  params.lists = lists_.args();
  params.ordered = problem_.deterministic;
  params.softcap = make_softcap(problem_.softcap, problem_.scale());
  return params;
}

BackwardParams BackwardPass::params_of(const BackwardArgs& args) {
  BackwardParams params =
      this->params(attention_args(kName, problem_, args), gradient_tensors(kName, args));
  params.sink = args.sink;
  params.dsink = args.dsink;
  params.workspace = scratch_.data();
  params.rows = rows_.bytes() > 0 ? rows_.as<std::byte>()
                                  : scratch_.data() + workspace_bytes(params, problem_, path_);
  params.dq_mode = args.accumulate ? StoreMode::add_float32 : StoreMode::overwrite;
  params.dkv_mode = dkv_mode(args);
  if (!args.held.empty()) {
    params.held = {static_cast<int>(args.held.rows.begin), static_cast<int>(args.held.rows.end),
                   static_cast<int>(args.held.heads.begin), static_cast<int>(args.held.heads.end)};
  }
  return params;
}

BackwardPass::Rows BackwardPass::rows_of(const BackwardParams& params) {
  return {params.dout, params.o, params.lse, params.lse_head_stride, params.dkv_mode};
}

std::int64_t BackwardPass::keep_rows(std::int64_t max_bytes) {
  const std::int64_t bytes = rows_bytes(params(), problem_, path_);
  if (bytes == 0 || bytes > max_bytes) return 0;
  rows_ = Buffer(gpu().memory(), bytes);
  scratch_ = PlanScratch(gpu().memory(), workspace_bytes(params(), problem_, path_));
  return bytes;
}

void BackwardPass::prepare_rows(const BackwardArgs& args) {
  LONGCA_CHECK(rows_.bytes() > 0, "slice prepares rows for which it keeps no memory");
  const BackwardParams params = params_of(args);
  launch_backward(params, problem_.dtype, dims_of(problem_), BackwardPart::rows,
                  static_cast<cudaStream_t>(args.stream));
  prepared_ = rows_of(params);
}

void BackwardPass::run(const BackwardArgs& args) {
  const BackwardParams params = params_of(args);
  const auto stream = static_cast<cudaStream_t>(args.stream);
  if (path_ == SlicePath::sm80) {
    return launch_sm80_backward(params, problem_.dtype, problem_.head_dim,
                                mma::device_shared_bytes(), stream);
  }
  const bool prepared = std::exchange(prepared_, std::nullopt) == rows_of(params);
  launch_backward(params, problem_.dtype, dims_of(problem_),
                  prepared ? BackwardPart::rest : BackwardPart::all, stream);
}

}  // namespace longca::slice
