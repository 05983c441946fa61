// Instantiates FlashInfer's paged prefill for Hopper: FlashAttention 3's main loop with K and V
// gathered by cp.async, and persistent CTAs over lists of items.

#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

#include "attention/adapters/flashinfer/launch.h"
#include "core/cuda/error.h"

namespace longca::flashinfer {
namespace {

using Element = cutlass::bfloat16_t;
using Params = ::flashinfer::BatchPrefillPagedParams<Element, Element, Element, std::int32_t>;
// The choice of ::flashinfer::BatchPrefillWithPagedKVCacheDispatched for head dimension 128.
using Traits =
    ::flashinfer::AttentionKernelTraits</*USE_TMA_LOAD_KV=*/false, /*HEAD_DIM_QK=*/128,
                                        /*HEAD_DIM_VO=*/128, /*CTA_Q=*/kTileQ, /*CTA_KV=*/96,
                                        /*NUM_STAGES=*/2, Element, Element, Element, std::int32_t,
                                        ::flashinfer::StandardAttention>;

Element* elements(const ConstTensorView& tensor) {
  return static_cast<Element*>(const_cast<void*>(tensor.data));  // the parameters are not const
}

}  // namespace

void launch_forward(const ForwardCall& call, cudaStream_t stream) {
  Params params{};
  params.q_ptr = elements(call.q);
  params.k_ptr = elements(call.k);
  params.v_ptr = elements(call.v);
  params.o_ptr = elements(call.o);
  params.lse_ptr = call.row_lse;
  params.qo_tile_indices = call.work.tile;
  params.qo_indptr = call.work.q_begin;
  params.kv_indptr = call.work.first;
  params.kv_indices = call.pages;
  params.qo_lens = call.work.q_size;
  params.kv_lens = call.work.keys;
  params.head_indices = call.work.head;
  params.work_indptr = call.work.work_begin;
  params.batch_indices = call.work.head;  // unused by StandardAttention
  params.additional_params.sm_scale = call.scale;
  params.q_stride_n = call.q.token_stride;
  params.q_stride_h = call.q.head_stride;
  params.o_stride_n = call.o.token_stride;
  params.o_stride_h = call.o.head_stride;
  params.k_stride_n = params.v_stride_n = call.k.token_stride;
  params.k_stride_h = call.k.head_stride;
  params.v_stride_h = call.v.head_stride;
  params.k_page_stride = params.v_page_stride = call.page_size * call.k.token_stride;
  params.nnz_qo = call.q.tokens;
  params.num_qo_heads = static_cast<int>(call.q.heads);
  params.num_kv_heads = static_cast<int>(call.k.heads);
  params.group_size = params.num_qo_heads / params.num_kv_heads;
  params.page_size = static_cast<int>(call.page_size);
  params.window_left = -1;
  params.causal = false;
  LONGCA_CUDA((::flashinfer::BatchPrefillWithPagedKVCacheKernelTraitsDispatched<
               Traits, /*LEFT_SLIDING_WINDOW=*/false, /*CAUSAL=*/false,
               /*SAME_SCHEDULE_FOR_ALL_HEADS=*/false>(params, stream)));
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::flashinfer
