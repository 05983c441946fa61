#include "parallel/plan/deal_cost.h"

#include <algorithm>

#include "mask/total_size.h"

namespace longca {
namespace {

/// A call of a kernel takes about as long as so many keys take to travel, or rows to be merged.
constexpr double kCallTokens = 1000;

std::vector<Range> rows_of(const std::vector<Band>& bands) {
  std::vector<Range> rows;
  rows.reserve(bands.size());
  for (const Band& band : bands) rows.push_back(band.rows());
  return rows;
}

/// The first of ascending ranges that ends behind a token.
template <typename Ranges>
auto first_behind(const Ranges& ranges, std::int64_t token) {
  return std::partition_point(ranges.begin(), ranges.end(),
                              [&](const auto& range) { return range.end <= token; });
}

/// Appends what of `range` is not in `own`.
void append_rest(Range range, const std::vector<Range>& own, std::vector<Range>& rest) {
  for (auto it = first_behind(own, range.begin); it != own.end() && it->begin < range.end; ++it) {
    if (it->begin > range.begin) rest.push_back({range.begin, it->begin});
    range.begin = it->end;
  }
  if (!range.empty()) rest.push_back(range);
}

struct Owned {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t position = 0;
};

std::vector<Owned> owners_of(const std::vector<std::vector<Range>>& dealt) {
  std::vector<Owned> owners;
  for (std::size_t p = 0; p < dealt.size(); ++p) {
    for (const Range range : dealt[p]) owners.push_back({range.begin, range.end, p});
  }
  std::sort(owners.begin(), owners.end(),
            [](const Owned& a, const Owned& b) { return a.begin < b.begin; });
  return owners;
}

}  // namespace

DealCost::DealCost(const Mask& mask) {
  for (const Slice& slice : mask.slices()) bands_.push_back(Band::of(slice));
  rows_ = RangeIndex(rows_of(bands_));
}

DealCost::Foreign DealCost::foreign_of(const std::vector<Range>& own) const {
  Foreign foreign;
  std::int64_t shift = 0;  // from a token's number to that of its row
  for (const Range range : own) {
    shift += range.begin;
    rows_.for_each_overlapping(range, [&](std::uint32_t i) {
      const Band& band = bands_[i];
      const Range rows = intersect(band.rows(), range);
      const Range keys = {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end};
      const std::size_t before = foreign.keys.size();
      append_rest(keys, own, foreign.keys);
      if (foreign.keys.size() > before) {
        foreign.rows.push_back({rows.begin - shift, rows.end - shift});
      }
    });
    shift -= range.end;
  }
  join_ranges(foreign.keys);
  join_ranges(foreign.rows);
  return foreign;
}

std::vector<PositionCost> DealCost::of(const std::vector<std::vector<Range>>& dealt) const {
  const std::vector<Owned> owners = owners_of(dealt);
  std::vector<PositionCost> costs(dealt.size());
  for (std::size_t p = 0; p < dealt.size(); ++p) {
    const Foreign foreign = foreign_of(dealt[p]);
    costs[p].received = static_cast<double>(total_size(foreign.keys));
    costs[p].rows = static_cast<double>(total_size(foreign.rows)) +
                    kCallTokens * static_cast<double>(foreign.rows.size());
    for (const Range keys : foreign.keys) {
      for (auto it = first_behind(owners, keys.begin); it != owners.end() && it->begin < keys.end;
           ++it) {
        costs[it->position].sent +=
            static_cast<double>(intersect({it->begin, it->end}, keys).size());
      }
    }
  }
  return costs;
}

}  // namespace longca
