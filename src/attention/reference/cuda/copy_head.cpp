#include "attention/reference/cuda/copy_head.h"

#include <algorithm>

#include "core/cuda/error.h"
#include "core/device.h"

namespace longca {

HostTensor copy_tokens(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::int64_t tokens) {
  HostTensor out(x.dtype, tokens, 1, x.dim);
  if (tokens == 0 || x.dim == 0) return out;
  const std::int64_t element = size_of(x.dtype);
  const auto width = static_cast<std::size_t>(x.dim * element);
  const char* from =
      static_cast<const char*>(x.data) + (first * x.token_stride + head * x.head_stride) * element;
  const auto stream = static_cast<cudaStream_t>(Device::get(DeviceKind::cuda).stream());
  LONGCA_CUDA(cudaMemcpy2DAsync(out.view().data, width, from,
                                static_cast<std::size_t>(x.token_stride * element), width,
                                static_cast<std::size_t>(tokens), cudaMemcpyDeviceToHost, stream));
  LONGCA_CUDA(cudaStreamSynchronize(stream));
  return out;
}

std::vector<float> copy_head(const ConstTensorView& x, std::int64_t head) {
  const HostTensor copy = copy_tokens(x, head, 0, x.tokens);
  std::vector<float> values(static_cast<std::size_t>(x.tokens * x.dim));
  if (x.dtype == DType::float32) {
    std::copy_n(copy.view().row<float>(0, 0), values.size(), values.begin());
  } else {
    const BFloat16* from = copy.view().row<BFloat16>(0, 0);
    std::transform(from, from + values.size(), values.begin(),
                   [](BFloat16 element) { return static_cast<float>(element); });
  }
  return values;
}

}  // namespace longca
