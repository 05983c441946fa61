// What a build without CUDA says of GPUs.
#include "core/cuda/cuda_device.h"

namespace longca {

std::unique_ptr<Device> make_cuda_device(Support& support) {
  support = Support::unavailable(
      "this build is without CUDA: install the CUDA toolkit (nvcc, 12.4 or later) and build again");
  return nullptr;
}

int count_cuda_devices() {
  return 0;
}

}  // namespace longca
