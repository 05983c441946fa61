#include "parallel/partition/atoms.h"

#include <algorithm>

#include "mask/mask_slice.h"

namespace longca {
namespace {

/// Fewer are the seams of a mask of windows, say, and not documents.
constexpr std::size_t kFewParts = 6;

/// The tokens that cells of the band hold together, from the least to the largest of a query and a
/// key that do not stand at the same place; empty where there is no such cell.
Range span_of(const Band& band) {
  const Range rows = band.rows();
  if (rows.empty()) return {};
  Range span = {rows.end, rows.begin};
  // The first key of a row never decreases, so the first row looks farthest back, the last ahead.
  const Range first = band.keys_of(rows.begin);
  const Range last = band.keys_of(rows.end - 1);
  if (band.lo < 0 && first.begin < rows.end - 1) span = {first.begin, rows.end};
  if (band.hi > 0 && rows.begin < last.end - 1) {
    span = {std::min(span.begin, rows.begin), std::max(span.end, last.end)};
  }
  return span;
}

std::vector<Range> spans_of(const Mask& mask, std::int64_t longest) {
  std::vector<Range> spans;
  for (const MaskSlice& slice : mask.slices()) {
    const Range span = span_of(Band::of(slice));
    if (!span.empty() && span.size() <= longest) spans.push_back(span);
  }
  std::sort(spans.begin(), spans.end(), [](Range a, Range b) { return a.begin < b.begin; });
  return spans;
}

/// Spans that share a token, and the runs between them, as one part each.
std::vector<Range> parts_of(const std::vector<Range>& spans, std::int64_t tokens) {
  std::vector<Range> parts;
  for (const Range span : spans) {
    const std::int64_t covered = parts.empty() ? 0 : parts.back().end;
    if (span.begin < covered) {
      parts.back().end = std::max(covered, span.end);
      continue;
    }
    if (span.begin > covered) parts.push_back({covered, span.begin});
    parts.push_back(span);
  }
  const std::int64_t covered = parts.empty() ? 0 : parts.back().end;
  if (covered < tokens) parts.push_back({covered, tokens});
  return parts;
}

std::int64_t longest_of(const std::vector<Range>& parts) {
  std::int64_t longest = 0;
  for (const Range part : parts) longest = std::max(longest, part.size());
  return longest;
}

}  // namespace

std::vector<Range> mask_atoms(const Mask& mask, std::int64_t least) {
  const std::int64_t tokens = mask.q_tokens();
  std::vector<Range> parts = parts_of(spans_of(mask, tokens), tokens);
  if (parts.size() == 1) {
    parts = parts_of(spans_of(mask, tokens / 2), tokens);
    if (parts.size() < kFewParts || longest_of(parts) > tokens / 2) return {{0, tokens}};
  }
  std::vector<Range> joined;
  for (const Range part : parts) {
    if (!joined.empty() && joined.back().size() < least && part.size() < least) {
      joined.back().end = part.end;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

}  // namespace longca
