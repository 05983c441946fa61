#include "attention/kernels/slice/sm90/launch.h"

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>

#include "attention/kernels/slice/planner/cta_pairs.h"
#include "attention/kernels/slice/planner/pack.h"
#include "core/cuda/driver_function.h"
#include "core/cuda/error.h"
#include "core/device.h"
#include "core/error.h"

namespace longca::slice::sm90 {
namespace {

auto encode_function() {
  static const auto function = [] {
    void* pointer = find_driver_function("cuTensorMapEncodeTiled");
    LONGCA_CHECK(pointer != nullptr, "the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(pointer);
  }();
  return function;
}

}  // namespace

CUtensorMap tensor_map(const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens, DType dtype) {
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * 2; };
  // The stride of an extent of 1 may be anything here, but the driver demands a positive one.
  const std::uint64_t head_stride = heads > 1 ? bytes(tensor.head_stride) : bytes(dim);
  const std::uint64_t token_stride = tokens > 1 ? bytes(tensor.token_stride) : head_stride * heads;
  const cuuint64_t extents[3] = {static_cast<cuuint64_t>(dim), static_cast<cuuint64_t>(heads),
                                 static_cast<cuuint64_t>(tokens)};
  const cuuint64_t strides[2] = {head_stride, token_stride};
  const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(box_heads),
                             static_cast<cuuint32_t>(box_tokens)};
  const cuuint32_t element_strides[3] = {1, 1, 1};
  CUtensorMap map{};
  const CUresult result = encode_function()(
      &map,
      dtype == DType::bfloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      3, tensor.data, extents, strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  LONGCA_CHECK(result == CUDA_SUCCESS,
               "no tensor map for {} of {} tokens, {} heads, head dimension {}, strides {} and {} "
               "bytes: CUDA driver error {}",
               name, tokens, heads, dim, head_stride, token_stride, static_cast<int>(result));
  return map;
}

int sm_count() {
  return Device::get(DeviceKind::cuda).properties().sms;
}

void check_pack(int pack, int group_size) {
  LONGCA_CHECK(pack >= 1 && pack <= 8 && std::has_single_bit(static_cast<unsigned>(pack)) &&
                   group_size % pack == 0,
               "a pack of {} heads is not 1, 2, 4 or 8, or does not divide the {} query heads of a "
               "KV head",
               pack, group_size);
}

}  // namespace longca::slice::sm90

namespace longca::slice {
namespace {

void check(const ForwardParams& params) {
  LONGCA_CHECK(params.scale > 0, "the scale is {}", params.scale);
  sm90::check_pack(params.lists.pack, params.heads_q / params.heads_k);
}

}  // namespace

void throw_no_instance(const char* what, DType dtype, const DimPair& dims) {
  throw InternalError(fmt::format("slice has no {} in this build for {} of head dimension {}", what,
                                  to_string(dtype), to_string(dims)));
}

void launch_forward(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream) {
  check(params);
  const bool stores = params.softcap.cap == 0 && !params.accumulate;
  const bool in_turn = stores && params.lists.in_turn && params.earlier.o.data == nullptr &&
                       sm90::has_unchecked(dtype, dims);
  const bool pairs = has_cta_pairs(
      {.pack = params.lists.pack, .row_pairs = params.lists.row_pairs}, in_turn,
      shared_heads(params.heads_q, params.heads_k, params.lists.list_heads), dims.head_dim);
  if (in_turn && sm90::dispatch_in_turn(params, dtype, dims, stream)) return;
  if (stores && params.earlier.o.data == nullptr &&
      sm90::dispatch_96(params, dtype, dims, pairs, stream)) {
    return;
  }
  if (stores && params.lists.unchecked &&
      sm90::dispatch_unchecked(params, dtype, dims, pairs, stream)) {
    return;
  }
  if (params.earlier.o.data != nullptr) {
    if (stores && sm90::dispatch_earlier(params, dtype, dims, pairs, stream)) return;
    throw_no_instance(stores ? "forward kernel that merges an earlier result"
                             : "forward kernel that merges one with a softcap or into float32",
                      dtype, dims);
  }
  const auto dispatch = params.softcap.cap > 0 ? sm90::dispatch_capped
                        : params.accumulate    ? sm90::dispatch_merge
                        : pairs                ? sm90::dispatch_pairs
                                               : sm90::dispatch_store;
  if (dispatch(params, dtype, dims, stream)) return;
  if (sm90::dispatch_192(params, dtype, dims, pairs, stream)) return;
  if (sm90::dispatch_256(params, dtype, dims, pairs, stream)) return;
  throw_no_instance("forward kernel", dtype, dims);
}

}  // namespace longca::slice
