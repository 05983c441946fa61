#include <algorithm>
#include <type_traits>

#include "core/cuda/error.h"
#include "parallel/cuda/total.h"
#include "parallel/cuda/vectors.cuh"
#include "parallel/executor/sum_segments.h"

namespace longca {
namespace {

constexpr int kWidth = 4;  ///< elements of a load
constexpr int kThreads = 256;
constexpr int kPerThread = 4;  ///< independent loads in flight
constexpr unsigned kPerBlock = kThreads * kPerThread;
constexpr int kMostSegments = 32;  ///< of a launch, so that tables fit among its arguments
constexpr int kMostSources = 96;

/// Rows of the sum that the same sources reach, in pieces of kWidth elements.
struct Stretch {
  std::int64_t to;  ///< its first piece
  std::int64_t pieces;
  unsigned first_block;
  int first_source, end_source;
};

struct Tables {
  Stretch stretches[kMostSegments];
  const float* sources[kMostSources];  ///< at the first piece of their stretch
  int count = 0;
  int source_count = 0;
  unsigned blocks = 0;
};

template <typename To>
__global__ void __launch_bounds__(kThreads)
    total_kernel(const __grid_constant__ Tables tables, To* to) {
  int at = 0;
  while (at + 1 < tables.count && tables.stretches[at + 1].first_block <= blockIdx.x) ++at;
  const Stretch& stretch = tables.stretches[at];
  const std::int64_t first =
      std::int64_t{blockIdx.x - stretch.first_block} * kPerBlock + threadIdx.x;
  Vector<float, kWidth> sums[kPerThread] = {};
  for (int source = stretch.first_source; source < stretch.end_source; ++source) {
    const float* from = tables.sources[source];
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      // Past the end the last piece is loaded once more, so that no load waits for a branch.
      const std::int64_t piece = min(first + j * kThreads, stretch.pieces - 1);
      const auto summand = load_wide<float, kWidth>(from + piece * kWidth);
#pragma unroll
      for (int e = 0; e < kWidth; ++e) sums[j].values[e] += summand.values[e];
    }
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const std::int64_t piece = first + j * kThreads;
    if (piece < stretch.pieces) {
      store_rounded<To, kWidth>(to + (stretch.to + piece) * kWidth, sums[j]);
    }
  }
}

bool is_dense(const TensorView& tensor) {
  const std::int64_t row = tensor.heads * tensor.dim;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  return tensor.head_stride == tensor.dim && (tensor.token_stride == row || tensor.tokens <= 1) &&
         row % kWidth == 0 &&
         address % (kWidth * static_cast<std::size_t>(size_of(tensor.dtype))) == 0;
}

void launch(const Tables& tables, const TensorView& to, cudaStream_t stream) {
  if (tables.blocks == 0) return;
  with_type(to.dtype, [&](auto* result) {
    using To = std::remove_pointer_t<decltype(result)>;
    total_kernel<To><<<tables.blocks, kThreads, 0, stream>>>(tables, static_cast<To*>(to.data));
  });
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

bool total_tensors(std::span<const RowsOfSum> parts, const TensorView& to, cudaStream_t stream) {
  if (!is_dense(to)) return false;
  for (const RowsOfSum& part : parts) {
    if (!is_dense(part.from)) return false;
  }
  const std::vector<SumSegment> segments = sum_segments(parts, to.tokens);
  for (const SumSegment& segment : segments) {
    if (segment.parts.size() > kMostSources) return false;
  }
  const std::int64_t row = to.heads * to.dim;
  Tables tables;
  for (const SumSegment& segment : segments) {
    const auto sources = static_cast<int>(segment.parts.size());
    if (tables.count == kMostSegments || tables.source_count + sources > kMostSources) {
      launch(tables, to, stream);
      tables = {};
    }
    Stretch& stretch = tables.stretches[tables.count++];
    stretch = {segment.rows.begin * row / kWidth, segment.rows.size() * row / kWidth, tables.blocks,
               tables.source_count, tables.source_count + sources};
    for (const std::size_t index : segment.parts) {
      const RowsOfSum& part = parts[index];
      tables.sources[tables.source_count++] =
          static_cast<const float*>(part.from.data) + (segment.rows.begin - part.row) * row;
    }
    tables.blocks += static_cast<unsigned>((stretch.pieces + kPerBlock - 1) / kPerBlock);
  }
  launch(tables, to, stream);
  return true;
}

}  // namespace longca
