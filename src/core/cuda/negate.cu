#include <algorithm>

#include "core/cuda/cuda_device.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1024;

/// A column of adjacent heads, in bytes.
struct Column {
  unsigned char* data;
  std::int64_t tokens, heads;
  std::int64_t token_stride, head_stride;
  int element_bytes;
};

/// The columns of one launch, one per blockIdx.y.
struct ColumnTable {
  static constexpr int kMaxColumns = 16;
  Column columns[kMaxColumns];
};

template <typename T>
__device__ void negate_element(unsigned char* address) {
  constexpr T kMagnitude = static_cast<T>(~T{0}) >> 1;
  T* element = reinterpret_cast<T*>(address);
  const T value = *element;
  if ((value & kMagnitude) != 0) *element = static_cast<T>(value ^ static_cast<T>(~kMagnitude));
}

__global__ void __launch_bounds__(kThreads) negate(const __grid_constant__ ColumnTable table) {
  const Column& x = table.columns[blockIdx.y];
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < x.tokens * x.heads;
       i += stride) {
    unsigned char* address = x.data + i / x.heads * x.token_stride + i % x.heads * x.head_stride;
    x.element_bytes == 4 ? negate_element<std::uint32_t>(address)
                         : negate_element<std::uint16_t>(address);
  }
}

Column in_bytes(const HeadColumn& x) {
  const std::int64_t size = size_of(x.tensor.dtype);
  auto* data = static_cast<unsigned char*>(x.tensor.data);
  return {data + (x.first_head * x.tensor.head_stride + x.column) * size,
          x.tensor.tokens,
          x.heads,
          x.tensor.token_stride * size,
          x.tensor.head_stride * size,
          static_cast<int>(size)};
}

}  // namespace

void cuda_negate(std::span<const HeadColumn> columns, Stream stream) {
  while (!columns.empty()) {
    const auto some =
        columns.first(std::min(columns.size(), std::size_t{ColumnTable::kMaxColumns}));
    ColumnTable table{};
    std::transform(some.begin(), some.end(), table.columns, in_bytes);
    std::int64_t elements = 1;
    for (const Column& x : table.columns) elements = std::max(elements, x.tokens * x.heads);
    const std::int64_t blocks = std::min(ceil_div(elements, kThreads), kMaxBlocks);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(some.size()));
    negate<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(table);
    LONGCA_CUDA(cudaGetLastError());
    columns = columns.subspan(some.size());
  }
}

}  // namespace longca
