#pragma once

#include <cstdint>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "core/device.h"
#include "mask/mask.h"

namespace longca::test {

/// The outputs of both passes in device memory, poisoned.
struct DeviceOutputs {
  explicit DeviceOutputs(const Problem& p)
      : o(memory(), p.dtype, p.tokens_q, p.heads_q, p.value_dim()),
        lse(memory(), p.heads_q, p.tokens_q),
        dq(memory(), p.dtype, p.tokens_q, p.heads_q, p.head_dim),
        dk(memory(), p.dtype, p.tokens_k, p.heads_k, p.head_dim),
        dv(memory(), p.dtype, p.tokens_k, p.heads_k, p.value_dim()) {
    for (const Tensor* tensor : {&o, &dq, &dk, &dv}) poison(*tensor);
    Device::get(DeviceKind::cuda).fill(lse.view().data, 0xff, lse.bytes());
  }
  static void poison(const Tensor& tensor) {
    Device::get(DeviceKind::cuda).fill(tensor.view().data, 0xff, tensor.bytes());
  }
  static MemoryTracker& memory() { return Device::get(DeviceKind::cuda).memory(); }

  ForwardArgs forward_args(const Inputs& in) const {
    return {in.q.view(), in.k.view(), in.v.view(), o.view(), lse.view()};
  }
  BackwardArgs backward_args(const Inputs& in) const {
    return {in.dout.view(), in.q.view(), in.k.view(), in.v.view(), o.view(),
            lse.view(),     dq.view(),   dk.view(),   dv.view()};
  }

  Tensor o;
  Lse lse;
  Tensor dq, dk, dv;
};

/// What the tokens of one side see, head by head of the mask, in device memory.
struct DeviceRows {
  Buffer offsets;  ///< [heads · tokens + 1] int64
  Buffer ranges;   ///< begin and end, int64
  int heads = 1;
};

/// An honest kernel on the GPU, as straightforward as can be and of another make than the
/// reference: a warp per query row (per key for dK and dV), 32 partners at a time, float32 sums,
/// and P, dS and the results rounded to the dtype. Head dimensions up to 128 that 8 divides.
class HonestKernel {
 public:
  HonestKernel(const Problem& problem, const Mask& mask);

  void forward(const ForwardArgs& args) const;
  void backward(const BackwardArgs& args) const;

 private:
  Problem problem_;
  DeviceRows keys_of_queries_, queries_of_keys_;
  Buffer delta_;
};

/// Both passes of it.
DeviceOutputs solve_on_gpu(const Problem& problem, const Mask& mask, const Inputs& inputs);

/// Launches, in honest_kernel.cu.
struct RowsView {
  const std::int64_t* offsets;
  const std::int64_t* ranges;
  int heads;
};
void launch_forward(const ForwardArgs& args, RowsView rows, float scale, void* stream);
void launch_backward(const BackwardArgs& args, RowsView keys_of_queries, RowsView queries_of_keys,
                     float scale, float* delta, void* stream);

}  // namespace longca::test
