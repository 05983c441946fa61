#pragma once

#include <cuda_runtime_api.h>

#include "core/tensor.h"

namespace longca {

/// dsink[head] = −Σ over rows of exp(sink − lse) (dO · O), or += it: the gradient of the sinks
/// (Problem::sink) where no kernel has each row's dO · O. The order of the sum is fixed. o and dout
/// are [tokens, heads, dim] of one dtype, lse [heads, tokens], sink and dsink [heads].
void sum_sink_gradients(const float* sink, float* dsink, bool added, const ConstTensorView& o,
                        const ConstTensorView& dout, const ConstLseView& lse, cudaStream_t stream);

}  // namespace longca
