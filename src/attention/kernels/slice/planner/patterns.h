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

/// What one band allows a row group in one sub-tile, relative to both: rows [row_begin, row_end)
/// see columns [begin, end) with lo ≤ column − row ≤ hi. Packed, so that equal masks are equal
/// words.
class BandWord {
 public:
  /// 0 if the band has no cell there. `rows` are the group's tokens.
  static std::uint64_t of(const Band& band, Range rows, std::int64_t k_begin);
  /// The same in the second sub-tile of a key tile.
  static std::uint64_t second(std::uint64_t word) { return word | kSecond; }

  explicit BandWord(std::uint64_t word) : word_(word) {}
  int row_begin() const { return field(1); }
  int row_end() const { return field(8); }
  /// Columns of the key tile that row `row` sees; may end before it begins.
  Range columns_of(int row) const;

 private:
  static constexpr std::uint64_t kSecond = 1;
  static constexpr int kDiagonalOffset = 64;  ///< diagonals are in [−64, 64]
  int field(int shift) const { return static_cast<int>(word_ >> shift & 127); }
  int wide_field(int shift) const { return static_cast<int>(word_ >> shift & 255); }

  std::uint64_t word_;
};

/// Patterns of the forward pass. A small cache finds most of the equal ones.
class RowPatterns {
 public:
  /// What a row group sees: kFull, kNone, or the first of `levels` consecutive patterns, each with
  /// two more intervals per row.
  struct View {
    std::int32_t first = kNone;
    std::int32_t levels = 1;
  };

  RowPatterns(int group_tokens, std::vector<RowIntervals>& out);

  /// `words`: of both sub-tiles. `tokens`: of the group, as far as they exist.
  View view(std::span<const std::uint64_t> words, int tokens);

 private:
  static constexpr int kEntryBits = 12;
  static constexpr std::size_t kMaxWords = 4;  ///< of a cached view
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

/// Patterns of the backward pass, each stored once: key tiles whose blocks or documents begin alike
/// have the same.
class UniquePatterns {
 public:
  /// Appends to `out`, 128 words per pattern; nobody else may.
  explicit UniquePatterns(std::vector<std::uint64_t>& out) : out_(out) {}

  /// The index in `out` of each of `patterns`.
  std::vector<std::int32_t> add(std::span<const std::uint64_t> patterns);
  std::int32_t add_one(std::span<const std::uint64_t> words);

 private:
  std::vector<std::uint64_t>& out_;
  std::unordered_multimap<std::uint64_t, std::int32_t> places_;  ///< by hash
};

/// Makes patterns of the backward pass: which rows of a query tile see each key of a key tile.
class SeenRows {
 public:
  /// Appends to `out`, 128 words per pattern. A query tile has `tile_tokens` tokens.
  SeenRows(int tile_tokens, std::vector<std::uint64_t>& out);

  /// kFull, kNone, or the pattern of `queries`, at most tile_tokens tokens. `bands` are of a
  /// transposed view, sorted by first query and cut to `keys`. A key tile of fewer than 128 keys is
  /// never kFull.
  std::int32_t pattern(std::span<const Band> bands, Range keys, Range queries);

 private:
  /// A band relative to the tile's corner, packed, so that equal masks are equal words.
  struct View {
    std::uint64_t rows;
    std::uint64_t limits;
    bool operator==(const View&) const = default;
  };
  static constexpr std::size_t kEntries = 8192;
  static constexpr std::size_t kMaxViews = 3;  ///< of a cached pattern
  struct Entry {
    View views[kMaxViews];
    std::size_t count = 0;
    std::int64_t shape = -1;
    std::int32_t pattern = kNone;
  };

  void find_views(std::span<const Band> bands, Range keys, Range queries);
  std::int32_t build(Range keys, Range queries);

  int tile_tokens_;
  UniquePatterns patterns_;
  std::vector<Entry> entries_;
  std::vector<Band> cut_;  ///< relative to the tile's corner
  std::vector<View> views_;
};

}  // namespace longca::slice
