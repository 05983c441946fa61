#include "attention/kernels/slice/planner/row_patterns.h"

#include <algorithm>

namespace longca::slice {

std::uint64_t BandWord::of(const Band& band, Range rows, std::int64_t k_begin) {
  const Range q = intersect(band.q, rows);
  const Range k = intersect(band.k, {k_begin, k_begin + kSubTileKeys});
  if (q.empty() || k.empty()) return 0;
  // Column − row is between −63 and 63: a limit beyond cuts nothing, or everything.
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

RowPatterns::RowPatterns(int group_tokens, std::vector<RowIntervals>& out)
    : group_tokens_(group_tokens), out_(out), slots_(std::size_t{1} << kSlotBits) {}

RowPatterns::View RowPatterns::view(std::span<const std::uint64_t> words, int tokens) {
  if (words.empty() || tokens == 0) return {kNone, 1};
  if (words.size() > kMaxWords) return build(words, tokens);
  Slot& slot = slot_of(words, tokens);
  const bool known = slot.tokens == tokens && std::equal(words.begin(), words.end(), slot.words) &&
                     (words.size() == kMaxWords || slot.words[words.size()] == 0);
  if (!known) {
    slot.view = build(words, tokens);
    slot.tokens = tokens;
    std::fill(std::copy(words.begin(), words.end(), slot.words), std::end(slot.words), 0);
  }
  return slot.view;
}

RowPatterns::Slot& RowPatterns::slot_of(std::span<const std::uint64_t> words, int tokens) {
  auto hash = static_cast<std::uint64_t>(tokens);
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return slots_[hash * 0x9E3779B97F4A7C15U >> (64 - kSlotBits)];
}

/// The columns of a row, ascending, none touching the next.
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
    } else if (columns.begin == columns_.back().end) {  // the other half, most often
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
    if ((columns.size() + 1) / 2 > levels) {
      levels = (columns.size() + 1) / 2;
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

}  // namespace longca::slice
