#include "core/error.h"
#include "parallel/executor/step_math.h"

namespace longca {

void StepMath::merge_all(std::span<const Partial> parts, const Partial& accumulator,
                         const TensorView& o, const LseView& lse, Stream stream) {
  LONGCA_CHECK(!parts.empty() && parts.size() <= kMostParts, "{} partial results", parts.size());
  if (o.dtype != DType::float32) {
    // One after the other needs a float32 sum: the accumulator, or for the length of this call one
    // in host memory, as a device has its own way.
    HostTensor own;
    TensorView sum = accumulator.o;
    if (sum.data == nullptr) {
      own = HostTensor(DType::float32, o.tokens, o.heads, o.dim);
      sum = own.view();
    } else {
      copy(accumulator.lse, lse, stream);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      merge(parts[i], sum, lse, i == 0 && accumulator.o.data == nullptr, stream);
    }
    convert(sum, o, stream);
    return;
  }
  const bool in_place = accumulator.o.data == o.data;
  if (accumulator.o.data != nullptr && !in_place) {
    copy(accumulator.o, o, stream);
    copy(accumulator.lse, lse, stream);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    merge(parts[i], o, lse, i == 0 && accumulator.o.data == nullptr, stream);
  }
}

}  // namespace longca
