#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "mask/mask_slice.h"

namespace longca::slice {

/// What one band allows a row group in one half, relative to both: rows [row_begin, row_end) see
/// columns [begin, end) with lo ≤ column − row ≤ hi. Packed, so that equal views are equal words.
class BandWord {
 public:
  /// 0 if the band has nothing there. `rows` are the group's tokens.
  static std::uint64_t of(const Band& band, Range rows, std::int64_t k_begin);
  /// The same in the second half of a tile.
  static std::uint64_t second(std::uint64_t word) { return word | kSecond; }

  explicit BandWord(std::uint64_t word) : word_(word) {}
  int row_begin() const { return field(1); }
  int row_end() const { return field(8); }
  /// Columns of the tile that row `row` of these sees; may end before it begins.
  Range columns_of(int row) const;

 private:
  static constexpr std::uint64_t kSecond = 1;
  static constexpr int kDiagonalOffset = 64;  ///< diagonals are in [−64, 64]
  int field(int shift) const { return static_cast<int>(word_ >> shift & 127); }
  int wide_field(int shift) const { return static_cast<int>(word_ >> shift & 255); }

  std::uint64_t word_;
};

/// The patterns of a list's tiles, shared by what is alike.
class RowPatterns {
 public:
  /// What a row group sees: kFull, kNone, or the first of `levels` patterns one after the other,
  /// of which each gives its rows two intervals more.
  struct View {
    std::int32_t first = kNone;
    std::int32_t levels = 1;
  };

  RowPatterns(int group_tokens, std::vector<RowIntervals>& out);

  /// `words` are those of both sub-tiles, `tokens` those of the group that exist.
  View view(std::span<const std::uint64_t> words, int tokens);

 private:
  static constexpr int kSlotBits = 12;
  static constexpr std::size_t kMaxWords = 4;  ///< of what is looked up again
  struct Slot {
    std::uint64_t words[kMaxWords] = {};
    int tokens = -1;
    View view;
  };

  Slot& slot_of(std::span<const std::uint64_t> words, int tokens);
  View build(std::span<const std::uint64_t> words, int tokens);
  std::span<const Range> columns_of(std::span<const std::uint64_t> words, int row);

  int group_tokens_;
  std::vector<RowIntervals>& out_;
  std::vector<Slot> slots_;
  std::vector<Range> columns_;
};

}  // namespace longca::slice
