#include "parallel/executor/step_math.h"

#include "core/error.h"
#include "parallel/executor/step_math_cpu.h"
#ifdef LONGCA_WITH_CUDA
#include "parallel/cuda/cuda_step_math.h"
#endif

namespace longca {

void StepMath::copy_all(std::span<const TensorCopy> copies, Stream stream) {
  for (const auto& [from, to] : copies) copy(from, to, stream);
}

StepMath& step_math(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return cuda_step_math();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build computes no steps on {}", to_string(device));
  return cpu_step_math();
}

}  // namespace longca
