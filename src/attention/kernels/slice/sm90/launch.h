#pragma once

#include <cuda.h>

#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/slice/instance_dim.h"
#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// The tensor map of a [tokens, heads, dim] tensor of 16-bit elements. Boxes are 64 elements wide,
/// `box_heads` × `box_tokens` high: in shared memory rows of 128 bytes in (token, head) order,
/// 128-byte swizzled. Errors call the tensor `name`.
CUtensorMap tensor_map(const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens, DType dtype);

/// Whether there is an instance that looks at no sums of full tiles (ForwardShape::kUnchecked).
constexpr bool has_unchecked(DType dtype, const DimPair& dims) {
  return dtype == DType::bfloat16 && instance_dim(dims) == 128;
}

/// Whether there is an instance of 96 dimensions, which computes no more columns than that. Calls
/// with a softcap take that of 128, and forward ones that merge.
constexpr bool has_96(DType dtype, const DimPair& dims) {
  return mma::has_wide(dtype) && instance_dim(dims) == 128 && dims.head_dim <= 96;
}

/// The dimensions of q and k, and of v and o, for which a kernel is compiled.
template <int kDim_, int kValueDim_ = kDim_>
struct HeadDims {
  static constexpr int kDim = kDim_;
  static constexpr int kValueDim = kValueDim_;
};

/// SMs of the current device.
int sm_count();

/// Throws InternalError unless `pack` is 1, 2, 4 or 8 and divides the query heads of a KV
/// head.
void check_pack(int pack, int group_size);

/// Launch an instance of the forward kernel: `store` writes O and LSE, `pairs` the same by clusters
/// of two CTAs, `merge` merges into float32 O and LSE, `capped` stores or merges without clusters,
/// with a softcap; `earlier` stores the merge with an earlier result, in `pairs` or not;
/// `unchecked` stores, with an earlier result or without, in `pairs` or not, for many full tiles
/// (ForwardShape::kUnchecked); `in_turn` stores, for lists with in_turn; `96` stores where has_96,
/// in `pairs` or not, without an earlier result; `192` and `256` any of the first four for wider
/// heads, in `pairs` where that is possible. False if this build has none for the dtype and head
/// dimensions. One source file each, so that they compile in parallel.
bool dispatch_store(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream);
bool dispatch_pairs(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream);
bool dispatch_unchecked(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                        cudaStream_t stream);
bool dispatch_in_turn(const ForwardParams& params, DType dtype, const DimPair& dims,
                      cudaStream_t stream);
bool dispatch_merge(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream);
bool dispatch_capped(const ForwardParams& params, DType dtype, const DimPair& dims,
                     cudaStream_t stream);
bool dispatch_earlier(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                      cudaStream_t stream);
bool dispatch_96(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                 cudaStream_t stream);
bool dispatch_192(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                  cudaStream_t stream);
bool dispatch_256(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                  cudaStream_t stream);
/// The backward kernels for such heads, likewise; `96` without a softcap.
bool backward_96(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
                 cudaStream_t stream);
bool backward_192(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
                  cudaStream_t stream);
bool backward_256(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
                  cudaStream_t stream);

}  // namespace longca::slice::sm90
