#include "attention/kernels/slice/planner/patterns.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/rounding.h"

namespace longca::slice {

namespace {

/// Bits [begin, end).
std::uint64_t cell_bits(std::int64_t begin, std::int64_t end) {
  const std::uint64_t below_end = end >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
  return below_end & ~((std::uint64_t{1} << begin) - 1);
}

}  // namespace

std::uint64_t BandWord::of(const Band& band, Range rows, std::int64_t k_begin) {
  const Range q = intersect(band.q, rows);
  const Range k = intersect(band.k, {k_begin, k_begin + kSubTileKeys});
  if (q.empty() || k.empty()) return 0;
  // column − row is within ±63 here: a bound beyond that excludes nothing, or everything.
  const std::int64_t shift = rows.begin - k_begin;
  const std::int64_t lo = std::max<std::int64_t>(band.lo + shift, -kDiagonalOffset);
  const std::int64_t hi = std::min<std::int64_t>(band.hi + shift, kDiagonalOffset);
  if (lo > kDiagonalOffset || hi < -kDiagonalOffset) return 0;
  const auto bits = [](std::int64_t value, int place) {
    return static_cast<std::uint64_t>(value) << place;
  };
  return bits(q.begin - rows.begin, 1) | bits(q.end - rows.begin, 8) | bits(k.begin - k_begin, 15) |
         bits(k.end - k_begin, 22) | bits(lo + kDiagonalOffset, 29) |
         bits(hi + kDiagonalOffset, 37);
}

Range BandWord::columns_of(int row) const {
  const int lo = row + wide_field(29) - kDiagonalOffset;
  const int hi = row + wide_field(37) - kDiagonalOffset;
  const int offset = (word_ & kSecond) != 0 ? kSubTileKeys : 0;
  return {std::max(field(15), lo) + offset, std::min(field(22), hi + 1) + offset};
}

int BandWord::prefix_end() const {
  const int lo = wide_field(29) - kDiagonalOffset;
  const int hi = wide_field(37) - kDiagonalOffset;
  const int end = field(22);
  // columns_of the last row, which the lower diagonal cuts most, and of the first one
  const bool whole = row_end() - 1 + lo <= 0 && row_begin() + hi >= end - 1;
  return field(15) == 0 && whole ? end : 0;
}

std::uint64_t BandWord::moved(std::uint64_t word, int by) {
  const std::uint64_t below_diagonals = word & ((std::uint64_t{1} << 29) - 1);
  const auto move = static_cast<std::uint64_t>(by);
  // Diagonals that exclude no column.
  return (below_diagonals | std::uint64_t{2 * kDiagonalOffset} << 37) + (move << 15) + (move << 22);
}

RowPatterns::RowPatterns(int group_tokens, std::vector<RowIntervals>& out)
    : group_tokens_(group_tokens), out_(out), entries_(std::size_t{1} << kEntryBits) {}

RowPatterns::View RowPatterns::view(std::span<const std::uint64_t> words, int tokens) {
  if (words.empty() || tokens == 0) return {kNone, 1};
  if (words.size() > kMaxWords) return build(words, tokens);
  Entry& entry = entry_of(words, tokens);
  const bool known = entry.tokens == tokens &&
                     std::equal(words.begin(), words.end(), entry.words) &&
                     (words.size() == kMaxWords || entry.words[words.size()] == 0);
  if (!known) {
    entry.view = build(words, tokens);
    entry.tokens = tokens;
    std::fill(std::copy(words.begin(), words.end(), entry.words), std::end(entry.words), 0);
  }
  return entry.view;
}

RowPatterns::Entry& RowPatterns::entry_of(std::span<const std::uint64_t> words, int tokens) {
  auto hash = static_cast<std::uint64_t>(tokens);
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return entries_[hash * 0x9E3779B97F4A7C15U >> (64 - kEntryBits)];
}

/// The columns that a row sees: ascending ranges, disjoint and not adjacent.
std::span<const Range> RowPatterns::columns_of(std::span<const std::uint64_t> words, int row) {
  columns_.clear();
  bool ascending = true;
  for (const std::uint64_t word : words) {
    const BandWord band(word);
    if (row < band.row_begin() || row >= band.row_end()) continue;
    const Range columns = band.columns_of(row);
    if (columns.empty()) continue;
    if (columns_.empty() || columns.begin > columns_.back().end) {
      columns_.push_back(columns);
    } else if (columns.begin == columns_.back().end) {  // mostly at the border of the sub-tiles
      columns_.back().end = columns.end;
    } else {
      columns_.push_back(columns);
      ascending = false;
    }
  }
  if (!ascending) join_ranges(columns_);
  return columns_;
}

RowPatterns::View RowPatterns::build(std::span<const std::uint64_t> words, int tokens) {
  const std::size_t begin = out_.size();
  const auto row_size = static_cast<std::size_t>(group_tokens_);
  std::size_t levels = 0;
  bool full = true;
  for (int row = 0; row < tokens; ++row) {
    const std::span<const Range> columns = columns_of(words, row);
    full &= columns.size() == 1 && columns[0] == Range{0, kTileKeys};
    if (const std::size_t pairs = ceil_div(columns.size(), 2); pairs > levels) {
      levels = pairs;
      out_.resize(begin + levels * row_size);
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      RowIntervals& of_row = out_[begin + i / 2 * row_size + static_cast<std::size_t>(row)];
      const auto lo = static_cast<std::uint8_t>(columns[i].begin);
      const auto hi = static_cast<std::uint8_t>(columns[i].end);
      if (i % 2 == 0) {
        of_row.lo0 = lo;
        of_row.hi0 = hi;
      } else {
        of_row.lo1 = lo;
        of_row.hi1 = hi;
      }
    }
  }
  if (full) out_.resize(begin);
  if (full || levels == 0) return {full ? kFull : kNone, 1};
  return {static_cast<std::int32_t>(begin / row_size), static_cast<std::int32_t>(levels)};
}

std::vector<std::int32_t> UniquePatterns::add(std::span<const std::uint64_t> patterns) {
  std::vector<std::int32_t> places;
  places.reserve(patterns.size() / kTileKeys);
  for (; !patterns.empty(); patterns = patterns.subspan(kTileKeys)) {
    places.push_back(add_one(patterns.first(kTileKeys)));
  }
  return places;
}

std::int32_t UniquePatterns::add_one(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  const auto [begin, end] = places_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::equal(words.begin(), words.end(),
                   out_.begin() + std::ptrdiff_t{it->second} * kTileKeys)) {
      return it->second;
    }
  }
  const auto next = static_cast<std::int32_t>(out_.size() / kTileKeys);
  places_.emplace(hash, next);
  out_.insert(out_.end(), words.begin(), words.end());
  return next;
}

SeenRows::SeenRows(int tile_tokens, int tile_keys, std::vector<std::uint64_t>& out)
    : tile_tokens_(tile_tokens), tile_keys_(tile_keys), patterns_(out), entries_(kEntries) {}

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
  Entry& entry = entries_[hash % kEntries];
  if (entry.shape != shape || entry.count != views_.size() ||
      !std::equal(views_.begin(), views_.end(), entry.views)) {
    entry.pattern = build(keys, queries);
    entry.shape = shape;
    entry.count = views_.size();
    std::copy(views_.begin(), views_.end(), entry.views);
  }
  return entry.pattern;
}

void SeenRows::find_views(std::span<const Band> bands, Range keys, Range queries) {
  cut_.clear();
  views_.clear();
  for (const Band& band : bands) {
    if (band.k.begin >= queries.end) break;
    const Range rows = intersect(band.q, keys);
    const Range columns = intersect(band.k, queries);
    if (rows.empty() || columns.empty()) continue;
    // column − row is within [−127, 63] here: a bound beyond that excludes nothing, or everything.
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
      words[static_cast<std::size_t>(row)] |= cell_bits(columns.begin * heads, columns.end * heads);
    }
  }
  // Rows of tokens past the end may be seen: their LSE is +∞, so that they contribute nothing.
  const std::uint64_t all = cell_bits(0, queries.size() * heads);
  if (keys.size() == tile_keys_ && std::all_of(words.begin(), words.begin() + tile_keys_,
                                               [&](std::uint64_t word) { return word == all; })) {
    return kFull;
  }
  return patterns_.add_one(words);
}

}  // namespace longca::slice
