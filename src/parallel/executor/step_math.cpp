#include "parallel/executor/step_math.h"

#include <algorithm>

#include "core/error.h"

namespace longca {
namespace {

/// Adds the last parts into the first one until sum_all can take the rest.
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

std::vector<SumSegment> sum_segments(std::span<const RowsOfSum> parts, std::int64_t tokens) {
  std::vector<std::int64_t> cuts = {0, tokens};
  for (const RowsOfSum& part : parts) {
    LONGCA_CHECK(part.row >= 0 && part.row + part.from.tokens <= tokens,
                 "rows [{}, {}) of a sum of {}", part.row, part.row + part.from.tokens, tokens);
    cuts.insert(cuts.end(), {part.row, part.row + part.from.tokens});
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<SumSegment> segments;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    SumSegment segment{{cuts[i], cuts[i + 1]}, {}};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::int64_t begin = parts[p].row;
      if (begin <= cuts[i] && cuts[i + 1] <= begin + parts[p].from.tokens) {
        segment.parts.push_back(p);
      }
    }
    const bool same = !segments.empty() && segments.back().parts == segment.parts;
    // Equal neighbours become one segment, two without parts too.
    if (same) {
      segments.back().rows.end = segment.rows.end;
    } else {
      segments.push_back(std::move(segment));
    }
  }
  return segments;
}

TensorView token_rows(TensorView tensor, Range rows) {
  tensor.data = static_cast<std::byte*>(tensor.data) +
                rows.begin * tensor.token_stride * size_of(tensor.dtype);
  tensor.tokens = rows.size();
  return tensor;
}

StepMath& step_math(DeviceKind device) {
#ifdef LONGCA_WITH_CUDA
  if (device == DeviceKind::cuda) return cuda_step_math();
#endif
  LONGCA_CHECK(device == DeviceKind::cpu, "this build computes no steps on {}", to_string(device));
  return cpu_step_math();
}

}  // namespace longca
