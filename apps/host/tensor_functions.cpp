// Copies between tensors of different layouts, which PyTorch's own copy makes at a third of the
// memory's bandwidth.

#include "attention/adapters/python/host_interface.h"
#include "core/error.h"
#include "guarded.h"
#include "parallel/executor/step_math.h"

namespace {

using namespace longca;

TensorView to_view(const LongcaTensor& t) {
  return {t.data,       static_cast<DType>(t.dtype), t.tokens, t.heads, t.dim, t.token_stride,
          t.head_stride};
}

}  // namespace

extern "C" {

/// Queues a copy between two tensors of one shape and device, of any strides; of one dtype, or from
/// float32 to another. −1 if that fails.
int longca_copy_tensor(const LongcaTensor* from, const LongcaTensor* to, void* stream) {
  return guarded(-1, [&] {
    LONGCA_CHECK(from->device == to->device, "a copy from one device to the other");
    StepMath& math = step_math(static_cast<DeviceKind>(from->device));
    const TensorView source = to_view(*from);
    const TensorView target = to_view(*to);
    if (source.dtype == target.dtype) {
      math.copy(source, target, stream);
    } else {
      math.convert(source, target, stream);
    }
    return 0;
  });
}

}  // extern "C"
