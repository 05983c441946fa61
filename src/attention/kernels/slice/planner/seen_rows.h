#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/unique_patterns.h"
#include "mask/mask_slice.h"

namespace longca::slice {

/// The patterns of transposed lists: which rows of a query tile see each key of a key tile.
class SeenRows {
 public:
  /// Appends to `out`, 128 words a pattern. A query tile has `tile_tokens` tokens.
  SeenRows(int tile_tokens, std::vector<std::uint64_t>& out);

  /// kFull, kNone, or the pattern of query tokens [queries.begin, queries.end), at most
  /// tile_tokens. `bands` are of a transposed view, by ascending first query, cut to the keys
  /// [keys.begin, keys.end); those of fewer than 128 keys are never seen fully.
  std::int32_t pattern(std::span<const Band> bands, Range keys, Range queries);

 private:
  /// A band relative to the tile's corner, packed, so that equal views are equal words.
  struct View {
    std::uint64_t rows;
    std::uint64_t limits;
    bool operator==(const View&) const = default;
  };
  static constexpr std::size_t kSlots = 8192;
  static constexpr std::size_t kMaxViews = 3;  ///< of what is looked up again
  struct Slot {
    View views[kMaxViews];
    std::size_t count = 0;
    std::int64_t shape = -1;
    std::int32_t pattern = kNone;
  };

  void find_views(std::span<const Band> bands, Range keys, Range queries);
  std::int32_t build(Range keys, Range queries);

  int tile_tokens_;
  UniquePatterns patterns_;
  std::vector<Slot> slots_;
  std::vector<Band> cut_;  ///< relative to the tile's corner
  std::vector<View> views_;
};

}  // namespace longca::slice
