#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "mask/mask_slice.h"

// Patterns of partial tiles. In the forward pass a pattern says which keys of a key tile each token
// sees, in the backward pass which rows of a query tile see each key. Equal tiles share a pattern.
namespace longca::slice {

/// What one band allows a row group in one sub-tile, relative to both: rows [row_begin, row_end),
/// here tokens, see columns [begin, end) with lo ≤ column − row ≤ hi. Packed, so that equal masks
/// are equal words. Bit 0: the second sub-tile; 7 bits each from 1, 8, 15, 22: row_begin, row_end,
/// begin, end; 8 bits each from 29, 37: lo + 64, hi + 64.
class BandWord {
 public:
  /// 0 if the band has no cell there. `rows` are the group's tokens.
  static std::uint64_t of(const Band& band, Range rows, std::int64_t k_begin);
  /// The word for the second sub-tile of a key tile.
  static std::uint64_t second(std::uint64_t word) { return word | kSecond; }

  explicit BandWord(std::uint64_t word) : word_(word) {}
  int row_begin() const { return field(1); }
  int row_end() const { return field(8); }
  /// Columns of the key tile that row `row` sees; empty if the end is not above the begin.
  Range columns_of(int row) const;
  /// If each of its rows sees columns [0, end) of the sub-tile: the end; else 0.
  int prefix_end() const;
  /// The word of a prefix, for the columns that are `by` further on, of which there are enough.
  static std::uint64_t moved(std::uint64_t word, int by);

 private:
  static constexpr std::uint64_t kSecond = 1;
  static constexpr int kDiagonalOffset = 64;  ///< diagonals are in [−64, 64]
  int field(int shift) const { return static_cast<int>(word_ >> shift & 127); }
  int wide_field(int shift) const { return static_cast<int>(word_ >> shift & 255); }

  std::uint64_t word_;
};

/// Patterns of the forward pass. A small direct-mapped cache finds most of the equal ones.
class RowPatterns {
 public:
  /// What a row group sees: kFull, kNone, or the first of `levels` consecutive patterns: pattern i
  /// has intervals 2 i and 2 i + 1 of each row.
  struct View {
    std::int32_t first = kNone;
    std::int32_t levels = 1;
  };

  RowPatterns(int group_tokens, std::vector<RowIntervals>& out);

  /// `words`: a BandWord for each band and both sub-tiles. `tokens`: how many of the group exist.
  View view(std::span<const std::uint64_t> words, int tokens);

 private:
  static constexpr int kEntryBits = 12;
  static constexpr std::size_t kMaxWords = 4;  ///< views of more words are not cached
  struct Entry {
    std::uint64_t words[kMaxWords] = {};
    int tokens = -1;
    View view;
  };

  Entry& entry_of(std::span<const std::uint64_t> words, int tokens);
  View build(std::span<const std::uint64_t> words, int tokens);
  std::span<const Range> columns_of(std::span<const std::uint64_t> words, int row);

  int group_tokens_;
  std::vector<RowIntervals>& out_;
  std::vector<Entry> entries_;
  std::vector<Range> columns_;
};

/// Stores each pattern of the backward pass once: key tiles whose blocks or documents begin at the
/// same offset have equal ones.
class UniquePatterns {
 public:
  /// Appends to `out`, 128 words per pattern; nobody else may.
  explicit UniquePatterns(std::vector<std::uint64_t>& out) : out_(out) {}

  /// The index of each of `patterns`, 128 words each, among the patterns of `out`.
  std::vector<std::int32_t> add(std::span<const std::uint64_t> patterns);
  std::int32_t add_one(std::span<const std::uint64_t> words);

 private:
  std::vector<std::uint64_t>& out_;
  std::unordered_multimap<std::uint64_t, std::int32_t> places_;  ///< hash to index
};

/// Makes patterns of the backward pass: which rows of a query tile see each key of a key tile.
class SeenRows {
 public:
  /// Appends to `out`, 128 words per pattern. A query tile has `tile_tokens` tokens, a key tile
  /// `tile_keys` keys.
  SeenRows(int tile_tokens, int tile_keys, std::vector<std::uint64_t>& out);

  /// What the query tile `queries`, at most tile_tokens tokens, sees of `keys`: kFull, kNone, or
  /// the index of a pattern. `bands` are of a transposed view (q: keys, k: queries), sorted by
  /// first query and cut to `keys`. A key tile of fewer than tile_keys keys is never kFull.
  std::int32_t pattern(std::span<const Band> bands, Range keys, Range queries);

 private:
  /// A band relative to the tile's corner (first key, first query), packed, so that equal masks are
  /// equal words.
  struct View {
    std::uint64_t rows;
    std::uint64_t limits;
    bool operator==(const View&) const = default;
  };
  static constexpr std::size_t kEntries = 8192;
  static constexpr std::size_t kMaxViews = 3;  ///< patterns of more bands are not cached
  struct Entry {
    View views[kMaxViews];
    std::size_t count = 0;
    std::int64_t shape = -1;  ///< of the tile: numbers of keys and queries in one
    std::int32_t pattern = kNone;
  };

  void find_views(std::span<const Band> bands, Range keys, Range queries);
  std::int32_t build(Range keys, Range queries);

  int tile_tokens_;
  int tile_keys_;
  UniquePatterns patterns_;
  std::vector<Entry> entries_;
  std::vector<Band> cut_;  ///< relative to the tile's corner
  std::vector<View> views_;
};

}  // namespace longca::slice
