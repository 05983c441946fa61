#include "parallel/partition/atom_areas.h"

#include <algorithm>
#include <numeric>

#include "mask/mask_slice.h"

namespace longca {
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

AtomPart AtomAreas::end_of(const AtomPart& part, double excess, double filling, std::int64_t most) {
  const std::int64_t origin = atoms_[part.atom].tokens.begin;
  const double* sums = areas_until(part.atom).data();
  const std::int64_t first = (part.tokens.begin - origin) / grain_;
  const std::int64_t last = (part.tokens.end - origin + grain_ - 1) / grain_;
  const auto tokens = [&](std::int64_t from) { return part.tokens.end - origin - from * grain_; };
  const auto missing = [&](std::int64_t from) {
    return excess - (sums[last] - sums[from] - filling * static_cast<double>(tokens(from)));
  };
  std::int64_t from = last - 1;
  while (from > first && missing(from) > 0 && tokens(from - 1) <= most) --from;
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
  sums.resize(static_cast<std::size_t>((tokens.size() + grain_ - 1) / grain_) + 1, 0.0);
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
