#include "parallel/executor/step_math.h"

#include "core/error.h"
#include "parallel/executor/step_math_cpu.h"
#include "parallel/executor/sum_segments.h"
#ifdef LONGCA_WITH_CUDA
#include "parallel/executor/cuda/cuda_step_math.h"
#endif

namespace longca {
namespace {

/// Adds up so many parts of the same rows that sum_all can take the rest, in the first of them.
void add_surplus(StepMath& math, std::vector<ConstTensorView>& parts, const TensorView& first,
                 Stream stream) {
  while (parts.size() > StepMath::kMaxParts) {
    const ConstTensorView last = parts.back();
    math.add(last, first, false, stream);
    parts.pop_back();
  }
}

}  // namespace

void StepMath::total_all(std::span<const SumOfRows> sums, Stream stream) {
  for (const SumOfRows& sum : sums) total_segments(sum, stream);
}

void StepMath::total_segments(const SumOfRows& sum, Stream stream) {
  const std::vector<RowsOfSum>& parts = sum.parts;
  for (const SumSegment& segment : sum_segments(parts, sum.to.tokens)) {
    const TensorView rows = token_rows(sum.to, segment.rows);
    if (segment.parts.empty()) {
      clear(rows, stream);
      continue;
    }
    std::vector<ConstTensorView> sources;
    const auto rows_of = [&](std::size_t index) {
      const RowsOfSum& part = parts[index];
      return token_rows(part.from, {segment.rows.begin - part.row, segment.rows.end - part.row});
    };
    for (const std::size_t index : segment.parts) sources.push_back(rows_of(index));
    add_surplus(*this, sources, rows_of(segment.parts.front()), stream);
    sum_all(sources, {}, rows, stream);
  }
}

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
