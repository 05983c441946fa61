#include <numeric>
#include <stdexcept>
#include <string>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/sm90/dispatch.h"
#include "attention/kernels/slice/sm90/launch_tools.h"

namespace longca::slice {
namespace {

void check(const ForwardParams& params) {
  if (!(params.scale > 0)) {
    throw std::invalid_argument("slice: the scale " + std::to_string(params.scale) +
                                " is not above 0");
  }
  sm90::check_pack(params.lists.pack, params.heads_q / params.heads_k);
}

/// Query heads that share a KV head and a list of the mask.
int group_size(const ForwardParams& params) {
  return std::gcd(params.heads_q / params.heads_k, params.heads_q / params.lists.list_heads);
}

}  // namespace

void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  check(params);
  const bool pairs = pairs_fit(group_size(params), params.lists.pack);
  const auto dispatch = params.accumulate ? sm90::dispatch_merge
                        : pairs           ? sm90::dispatch_pairs
                                          : sm90::dispatch_store;
  if (dispatch(params, dtype, head_dim, stream)) return;
  throw std::invalid_argument("slice: this build has no forward kernel for " +
                              std::string(to_string(dtype)) + " of head dimension " +
                              std::to_string(head_dim));
}

}  // namespace longca::slice
