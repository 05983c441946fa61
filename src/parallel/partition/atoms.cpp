#include "parallel/partition/atoms.h"

#include <algorithm>
#include <numeric>

#include "core/rounding.h"
#include "mask/mask_slice.h"

namespace longca {
namespace {

/// Fewer parts are taken for seams (of a mask of windows, say), not for documents.
constexpr std::size_t kFewParts = 6;

/// The smallest range with all queries and keys of the band's cells off the diagonal, which must
/// not be cut apart; empty if there are none.
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

/// Each group of overlapping spans, and each run between them, as one part.
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

std::vector<Range> mask_atoms(const Mask& mask, std::int64_t min_tokens) {
  const std::int64_t tokens = mask.q_tokens();
  std::vector<Range> parts = parts_of(spans_of(mask, tokens), tokens);
  if (parts.size() == 1) {
    parts = parts_of(spans_of(mask, tokens / 2), tokens);
    if (parts.size() < kFewParts || longest_of(parts) > tokens / 2) return {{0, tokens}};
  }
  std::vector<Range> joined;
  for (const Range part : parts) {
    if (!joined.empty() && joined.back().size() < min_tokens && part.size() < min_tokens) {
      joined.back().end = part.end;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

AtomAreas::AtomAreas(const Mask& mask, std::span<const Range> atoms, std::int64_t grain)
    : mask_(mask), grain_(grain) {
  for (const Range tokens : atoms) {
    atoms_.push_back({tokens, area(tokens), atoms_.size()});
  }
  areas_until_.resize(atoms_.size());
}

double AtomAreas::area(Range rows) const {
  return static_cast<double>(mask_.area_in(0, rows, {0, mask_.k_tokens()}));
}

AtomPart AtomAreas::end_of(const AtomPart& part, double excess, double filling,
                           std::int64_t max_tokens) {
  const std::int64_t origin = atoms_[part.atom].tokens.begin;
  const double* sums = areas_until(part.atom).data();
  const std::int64_t first = (part.tokens.begin - origin) / grain_;
  const std::int64_t last = ceil_div(part.tokens.end - origin, grain_);
  const auto tokens = [&](std::int64_t from) { return part.tokens.end - origin - from * grain_; };
  const auto missing = [&](std::int64_t from) {
    return excess - (sums[last] - sums[from] - filling * static_cast<double>(tokens(from)));
  };
  std::int64_t from = last - 1;
  while (from > first && missing(from) > 0 && tokens(from - 1) <= max_tokens) --from;
  if (from + 1 < last && -missing(from) > missing(from + 1)) ++from;
  return {{origin + from * grain_, part.tokens.end}, sums[last] - sums[from], part.atom};
}

double AtomAreas::about_area(std::size_t atom, Range rows) {
  const std::vector<double>& sums = areas_until(atom);
  const Range tokens = atoms_[atom].tokens;
  const auto until = [&](std::int64_t token) {
    const auto grain = static_cast<std::size_t>((token - tokens.begin) / grain_);
    if (grain + 1 == sums.size()) return sums[grain];
    const std::int64_t begin = tokens.begin + static_cast<std::int64_t>(grain) * grain_;
    const std::int64_t size = std::min(grain_, tokens.end - begin);
    const double part = static_cast<double>(token - begin) / static_cast<double>(size);
    return sums[grain] + part * (sums[grain + 1] - sums[grain]);
  };
  return until(rows.end) - until(rows.begin);
}

const std::vector<double>& AtomAreas::areas_until(std::size_t atom) {
  std::vector<double>& sums = areas_until_[atom];
  if (!sums.empty()) return sums;
  const Range tokens = atoms_[atom].tokens;
  sums.resize(static_cast<std::size_t>(ceil_div(tokens.size(), grain_)) + 1, 0.0);
  for (const MaskSlice& slice : mask_.slices()) {
    const Band band = Band::of(slice);
    const Range rows = intersect(band.rows(), tokens);
    if (rows.empty()) continue;
    for (std::int64_t i = (rows.begin - tokens.begin) / grain_;
         tokens.begin + i * grain_ < rows.end; ++i) {
      const std::int64_t begin = tokens.begin + i * grain_;
      const Range grain = {begin, std::min(begin + grain_, tokens.end)};
      sums[static_cast<std::size_t>(i) + 1] +=
          static_cast<double>(band.clipped(grain, {0, mask_.k_tokens()}).area());
    }
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  return sums;
}

}  // namespace longca
