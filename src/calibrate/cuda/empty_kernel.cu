#include "calibrate/cuda/empty_kernel.h"
#include "core/cuda/error.h"

namespace longca::calibrate {
namespace {

__global__ void do_nothing() {}

}  // namespace

void queue_empty_kernel(cudaStream_t stream) {
  do_nothing<<<1, 1, 0, stream>>>();
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::calibrate
