#include "attention/reference/cuda/copy_head.h"

#include <algorithm>

#include "core/cuda/error.h"
#include "core/device.h"
#include "core/rounding.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

constexpr std::int64_t kChunk = 1 << 18;  ///< elements converted per task

/// Packs rows [first, first + tokens) of a head densely into `to`.
void copy_head_rows(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                    std::int64_t tokens, void* to) {
  if (tokens == 0 || x.dim == 0) return;
  const std::int64_t element = size_of(x.dtype);
  const auto width = static_cast<std::size_t>(x.dim * element);
  const char* from =
      static_cast<const char*>(x.data) + (first * x.token_stride + head * x.head_stride) * element;
  const auto stream = static_cast<cudaStream_t>(Device::get(DeviceKind::cuda).stream());
  LONGCA_CUDA(cudaMemcpy2DAsync(to, width, from, static_cast<std::size_t>(x.token_stride * element),
                                width, static_cast<std::size_t>(tokens), cudaMemcpyDeviceToHost,
                                stream));
  LONGCA_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace

HostTensor copy_tokens(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::int64_t tokens) {
  HostTensor out(x.dtype, tokens, 1, x.dim);
  copy_head_rows(x, head, first, tokens, out.view().data);
  return out;
}

void HeadCopier::copy(const ConstTensorView& x, std::int64_t head, std::vector<float>& values) {
  const std::int64_t count = x.tokens * x.dim;
  values.resize(static_cast<std::size_t>(count));
  if (x.dtype == DType::float32) return copy_head_rows(x, head, 0, x.tokens, values.data());
  if (staging_.bytes() < 2 * count) staging_ = HostBuffer(2 * count);
  copy_head_rows(x, head, 0, x.tokens, staging_.data());
  with_type_of(x.dtype, [&]<typename T>(T) {
    const auto* from = staging_.as<T>();
    ThreadPool::global().parallel_for(ceil_div(count, kChunk), [&](std::int64_t i, int) {
      std::transform(from + i * kChunk, from + std::min((i + 1) * kChunk, count),
                     values.data() + i * kChunk,
                     [](T element) { return static_cast<float>(element); });
    });
  });
}

}  // namespace longca
