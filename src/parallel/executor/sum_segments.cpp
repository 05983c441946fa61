#include "parallel/executor/sum_segments.h"

#include <algorithm>

#include "core/error.h"

namespace longca {

std::vector<SumSegment> sum_segments(std::span<const RowsOfSum> parts, std::int64_t tokens) {
  std::vector<std::int64_t> cuts = {0, tokens};
  for (const RowsOfSum& part : parts) {
    LONGCA_CHECK(part.row >= 0 && part.row + part.from.tokens <= tokens,
                 "rows [{}, {}) of a sum of {}", part.row, part.row + part.from.tokens, tokens);
    cuts.insert(cuts.end(), {part.row, part.row + part.from.tokens});
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
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
    // Nothing follows nothing: one stretch of zeros. Equal parts always touch.
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

}  // namespace longca
