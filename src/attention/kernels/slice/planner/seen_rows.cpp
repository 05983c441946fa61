#include "attention/kernels/slice/planner/seen_rows.h"

#include <algorithm>
#include <array>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {
namespace {

/// Bits [begin, end).
std::uint64_t bits(std::int64_t begin, std::int64_t end) {
  const std::uint64_t below_end = end >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
  return below_end & ~((std::uint64_t{1} << begin) - 1);
}

}  // namespace

SeenRows::SeenRows(int tile_tokens, std::vector<std::uint64_t>& out)
    : tile_tokens_(tile_tokens), patterns_(out), slots_(kSlots) {}

std::int32_t SeenRows::pattern(std::span<const Band> bands, Range keys, Range queries) {
  find_views(bands, keys, queries);
  if (views_.empty()) return kNone;
  if (views_.size() > kMaxViews) return build(keys, queries);
  const std::int64_t shape = keys.size() * kBackwardRows * 2 + queries.size();
  auto hash = static_cast<std::uint64_t>(shape);
  for (const View& view : views_) {
    for (const std::uint64_t word : {view.rows, view.limits}) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
  }
  Slot& slot = slots_[hash % kSlots];
  if (slot.shape != shape || slot.count != views_.size() ||
      !std::equal(views_.begin(), views_.end(), slot.views)) {
    slot.pattern = build(keys, queries);
    slot.shape = shape;
    slot.count = views_.size();
    std::copy(views_.begin(), views_.end(), slot.views);
  }
  return slot.pattern;
}

void SeenRows::find_views(std::span<const Band> bands, Range keys, Range queries) {
  cut_.clear();
  views_.clear();
  for (const Band& band : bands) {
    if (band.k.begin >= queries.end) break;
    const Range rows = intersect(band.q, keys);
    const Range columns = intersect(band.k, queries);
    if (rows.empty() || columns.empty()) continue;
    // Column − row is between −127 and 63: a limit beyond cuts nothing, or everything.
    const std::int64_t shift = keys.begin - queries.begin;
    const std::int64_t lo = std::max<std::int64_t>(band.lo + shift, -kTileKeys);
    const std::int64_t hi = std::min<std::int64_t>(band.hi + shift, kBackwardRows);
    if (lo > kBackwardRows || hi < -kTileKeys) continue;
    Band cut{{rows.begin - keys.begin, rows.end - keys.begin},
             {columns.begin - queries.begin, columns.end - queries.begin},
             lo,
             hi};
    cut.q = cut.rows();
    if (cut.q.empty()) continue;
    cut_.push_back(cut);
    const auto word = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
      return static_cast<std::uint64_t>(a << 48 | b << 32 | c << 16 | d);
    };
    views_.push_back({word(cut.q.begin, cut.q.end, cut.k.begin, cut.k.end),
                      word(0, 0, lo + kTileKeys, hi + kTileKeys)});
  }
}

std::int32_t SeenRows::build(Range keys, Range queries) {
  std::array<std::uint64_t, kTileKeys> words{};
  const std::int64_t heads = kBackwardRows / tile_tokens_;
  for (const Band& band : cut_) {
    for (std::int64_t row = band.q.begin; row < band.q.end; ++row) {
      const Range columns = band.keys_of(row);
      words[static_cast<std::size_t>(row)] |= bits(columns.begin * heads, columns.end * heads);
    }
  }
  // Rows of tokens that do not exist may be seen: they carry nothing.
  const std::uint64_t all = bits(0, queries.size() * heads);
  if (keys.size() == kTileKeys &&
      std::all_of(words.begin(), words.end(), [&](std::uint64_t word) { return word == all; })) {
    return kFull;
  }
  return patterns_.add_one(words);
}

}  // namespace longca::slice
