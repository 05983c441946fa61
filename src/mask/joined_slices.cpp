#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "mask/band.h"

namespace longca {
namespace {

/// The keys of all rows of a band that has a cell; consecutive.
Range touched_keys(const Band& band) {
  const Range rows = band.rows();
  return {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end};
}

/// The one slice that allows what two disjoint slices allow, if there is one: it has their bounding
/// box, contains both and has no other cell.
std::optional<Slice> union_of(const Slice& first, const Slice& second) {
  const Band a = Band::of(first);
  const Band b = Band::of(second);
  const Range a_keys = touched_keys(a);
  const Range b_keys = touched_keys(b);
  if (a_keys.end < b_keys.begin || b_keys.end < a_keys.begin) return std::nullopt;
  Slice box = {std::min(a.rows().begin, b.rows().begin), std::max(a.rows().end, b.rows().end),
               std::min(a_keys.begin, b_keys.begin), std::max(a_keys.end, b_keys.end)};
  const std::int64_t a_area = a.area();
  const std::int64_t b_area = b.area();
  constexpr std::array kTypes = {SliceType::full, SliceType::causal, SliceType::inverse_causal,
                                 SliceType::bi_causal};
  for (const SliceType type : kTypes) {
    box.type = type;
    const Band candidate = Band::of(box);
    if (candidate.area() == a_area + b_area && candidate.intersected(a).area() == a_area &&
        candidate.intersected(b).area() == b_area) {
      return box;
    }
  }
  return std::nullopt;
}

std::vector<Slice> joined_sideways(std::vector<Slice> slices) {
  const auto before = [](const Slice& a, const Slice& b) {
    return std::tie(a.q_begin, a.q_end, a.k_begin) < std::tie(b.q_begin, b.q_end, b.k_begin);
  };
  if (!std::is_sorted(slices.begin(), slices.end(), before)) {
    std::sort(slices.begin(), slices.end(), before);
  }
  std::vector<Slice> joined;
  for (const Slice& slice : slices) {
    const bool same_rows = !joined.empty() && joined.back().q_begin == slice.q_begin &&
                           joined.back().q_end == slice.q_end;
    const auto both = same_rows ? union_of(joined.back(), slice) : std::nullopt;
    if (both) {
      joined.back() = *both;
    } else {
      joined.push_back(slice);
    }
  }
  return joined;
}

/// `slices` by first row.
std::vector<Slice> joined_downwards(const std::vector<Slice>& slices) {
  std::vector<Slice> joined;
  joined.reserve(slices.size());
  std::multimap<std::int64_t, std::size_t> by_end;  // where a slice ends → its number in `joined`
  const auto join_to_one_above = [&](const Slice& slice) {
    const auto [first, last] = by_end.equal_range(slice.q_begin);
    for (auto it = first; it != last; ++it) {
      const auto both = union_of(joined[it->second], slice);
      if (!both) continue;
      const std::size_t number = it->second;
      joined[number] = *both;
      by_end.erase(it);
      by_end.emplace(both->q_end, number);
      return true;
    }
    return false;
  };
  for (const Slice& slice : slices) {
    if (join_to_one_above(slice)) continue;
    by_end.emplace(slice.q_end, joined.size());
    joined.push_back(slice);
  }
  return joined;
}

}  // namespace

std::vector<Slice> joined_slices(std::vector<Slice> slices) {
  return joined_downwards(joined_sideways(std::move(slices)));
}

}  // namespace longca
