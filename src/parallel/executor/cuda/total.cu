#include <algorithm>
#include <type_traits>

#include "core/cuda/error.h"
#include "core/rounding.h"
#include "parallel/executor/cuda/step_math_kernels.h"
#include "parallel/executor/cuda/vectors.cuh"

namespace longca {
namespace {

constexpr int kWidth = 4;  ///< elements per load
constexpr int kThreads = 256;
constexpr int kPerThread = 4;  ///< independent loads in flight
constexpr unsigned kPerBlock = kThreads * kPerThread;
constexpr int kMaxSegments = 32;  ///< per launch: the table is a kernel argument
constexpr int kMaxSources = 96;

/// Rows of a sum with the same sources, in pieces of kWidth elements.
struct Stretch {
  void* to;
  std::int64_t pieces;
  unsigned first_block;
  int first_source, end_source;
};

/// The segments of one launch: one dtype, of any sums.
struct Tables {
  Stretch stretches[kMaxSegments];
  const float* sources[kMaxSources];  ///< at the first piece of the segment
  int count = 0;
  int source_count = 0;
  unsigned blocks = 0;
};

template <typename To>
__global__ void __launch_bounds__(kThreads) total_kernel(const __grid_constant__ Tables tables) {
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
      // Threads past the end load the last piece again: no load waits for a branch.
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
      store_rounded<To, kWidth>(static_cast<To*>(stretch.to) + piece * kWidth, sums[j]);
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

bool is_dense(const SumOfRows& sum) {
  return is_dense(sum.to) &&
         std::ranges::all_of(sum.parts, [](const RowsOfSum& part) { return is_dense(part.from); });
}

/// Batches the segments of sums into launches.
class Launches {
 public:
  explicit Launches(cudaStream_t stream) : stream_(stream) {}

  void add(const SumOfRows& sum, const std::vector<SumSegment>& segments) {
    if (sum.to.dtype != dtype_) flush();
    dtype_ = sum.to.dtype;
    for (const SumSegment& segment : segments) add(sum, segment);
  }

  void flush() {
    if (tables_.blocks > 0) {
      with_type(dtype_, [&](auto* result) {
        using To = std::remove_pointer_t<decltype(result)>;
        total_kernel<To><<<tables_.blocks, kThreads, 0, stream_>>>(tables_);
      });
      LONGCA_CUDA(cudaGetLastError());
    }
    tables_ = {};
  }

 private:
  void add(const SumOfRows& sum, const SumSegment& segment) {
    const auto sources = static_cast<int>(segment.parts.size());
    if (tables_.count == kMaxSegments || tables_.source_count + sources > kMaxSources) flush();
    const std::int64_t row = sum.to.heads * sum.to.dim;
    const std::int64_t pieces = segment.rows.size() * row / kWidth;
    tables_.stretches[tables_.count++] = {token_rows(sum.to, segment.rows).data, pieces,
                                          tables_.blocks, tables_.source_count,
                                          tables_.source_count + sources};
    for (const std::size_t index : segment.parts) {
      const RowsOfSum& part = sum.parts[index];
      tables_.sources[tables_.source_count++] =
          static_cast<const float*>(part.from.data) + (segment.rows.begin - part.row) * row;
    }
    tables_.blocks += static_cast<unsigned>(ceil_div(pieces, kPerBlock));
  }

  cudaStream_t stream_;
  DType dtype_ = DType::float32;
  Tables tables_{};
};

}  // namespace

std::vector<const SumOfRows*> total_tensors(std::span<const SumOfRows> sums, cudaStream_t stream) {
  std::vector<const SumOfRows*> left;
  Launches launches(stream);
  for (const SumOfRows& sum : sums) {
    const std::vector<SumSegment> segments = sum_segments(sum.parts, sum.to.tokens);
    const bool fits = is_dense(sum) && std::ranges::all_of(segments, [](const SumSegment& segment) {
                        return segment.parts.size() <= kMaxSources;
                      });
    if (fits) {
      launches.add(sum, segments);
    } else {
      left.push_back(&sum);
    }
  }
  launches.flush();
  return left;
}

}  // namespace longca
