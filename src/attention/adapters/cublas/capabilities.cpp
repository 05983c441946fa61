#include "attention/absent_kernel.h"
#include "attention/adapters/cublas/naive_cuda.h"

namespace longca {

Capabilities naive_cuda_capabilities() {
  Capabilities can;
  can.name = "naive";
  can.description = "scores, softmax, product with the score matrices of all heads; any mask";
  can.origin = "here, products by cuBLAS";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  can.deterministic = true;
  can.dtypes = {DType::bfloat16, DType::float16, DType::float32};
  can.value_dims = true;
  can.sinks = true;
  can.softcap = true;
  return can;
}

#ifndef LONGCA_WITH_CUBLAS
std::unique_ptr<Kernel> make_naive_cuda() {
  return std::make_unique<AbsentKernel>(
      naive_cuda_capabilities(),
      "this build is without cuBLAS: only builds of the program have this kernel");
}
#endif

}  // namespace longca
