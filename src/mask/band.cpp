#include "mask/band.h"

#include <algorithm>
#include <array>

namespace longca {
namespace {

/// Sum over x < end of clamp(x, 0, top).
std::int64_t clamped_sum(std::int64_t end, std::int64_t top) {
  if (end <= 0) return 0;
  if (end <= top) return end * (end - 1) / 2;
  return top * (top - 1) / 2 + (end - top) * top;
}

/// Cells of the rectangle with k − q ≤ limit: row q has clamp(q + limit + 1 − k.begin, 0, keys).
std::int64_t area_up_to(const Band& band, std::int64_t limit) {
  const std::int64_t first =
      std::clamp(limit, band.k.begin - band.q.end, band.k.end - 1 - band.q.begin) + band.q.begin +
      1 - band.k.begin;
  const std::int64_t keys = band.k.size();
  return clamped_sum(first + band.q.size(), keys) - clamped_sum(first, keys);
}

}  // namespace

Band Band::of(const MaskSlice& slice) {
  Band band{{slice.q_begin, slice.q_end}, {slice.k_begin, slice.k_end}, -kNoLimit, kNoLimit};
  if (slice.type == MaskSliceType::causal || slice.type == MaskSliceType::bi_causal) {
    band.hi = slice.k_end - slice.q_end;
  }
  if (slice.type == MaskSliceType::inverse_causal || slice.type == MaskSliceType::bi_causal) {
    band.lo = slice.k_begin - slice.q_begin;
  }
  return band;
}

Range Band::rows() const {
  const Range rows = {std::max(q.begin, k.begin - hi), std::min(q.end, k.end - lo)};
  if (lo > hi || k.empty() || rows.empty()) return {q.begin, q.begin};
  return rows;
}

Range Band::keys_of(std::int64_t row) const {
  return {std::max(k.begin, row + lo), std::min(k.end, row + hi + 1)};
}

std::int64_t Band::area() const {
  if (q.empty() || k.empty() || lo > hi) return 0;
  return area_up_to(*this, hi) - area_up_to(*this, lo - 1);
}

Band Band::clipped(Range q_range, Range k_range) const {
  return {intersect(q, q_range), intersect(k, k_range), lo, hi};
}

Band Band::intersected(const Band& other) const {
  return {intersect(q, other.q), intersect(k, other.k), std::max(lo, other.lo),
          std::min(hi, other.hi)};
}

void append_band(std::vector<MaskSlice>& slices, const Band& band) {
  const Range rows = band.rows();
  // Rows before `upper` are limited by the upper diagonal, rows from `lower` on by the lower one.
  const std::int64_t upper = std::clamp(band.k.end - band.hi, rows.begin, rows.end);
  const std::int64_t lower = std::clamp(band.k.begin - band.lo, rows.begin, rows.end);
  const std::array<std::int64_t, 4> cuts = {rows.begin, std::min(upper, lower),
                                            std::max(upper, lower), rows.end};
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Range part = {cuts[i], cuts[i + 1]};
    if (part.empty()) continue;
    const bool limited_above = part.end <= upper;
    const bool limited_below = part.begin >= lower;
    const MaskSliceType type =
        limited_above ? (limited_below ? MaskSliceType::bi_causal : MaskSliceType::causal)
                      : (limited_below ? MaskSliceType::inverse_causal : MaskSliceType::full);
    slices.push_back({part.begin, part.end, limited_below ? part.begin + band.lo : band.k.begin,
                      limited_above ? part.end + band.hi : band.k.end, type});
  }
}

void join_ranges(std::vector<Range>& ranges) {
  std::erase_if(ranges, [](Range range) { return range.empty(); });
  const auto before = [](Range a, Range b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) {
    std::sort(ranges.begin(), ranges.end(), before);
  }
  std::size_t count = 0;
  for (const Range range : ranges) {
    if (count > 0 && range.begin <= ranges[count - 1].end) {
      ranges[count - 1].end = std::max(ranges[count - 1].end, range.end);
    } else {
      ranges[count++] = range;
    }
  }
  ranges.resize(count);
}

}  // namespace longca
