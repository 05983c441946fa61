#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>
#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// Per-head lists of kept blocks, for block-sparse masks (13 and 14).
struct BlockLists {
  /// Block boundaries, ascending from 0 to the number of queries or keys: block i covers
  /// [bounds[i], bounds[i + 1]).
  std::vector<std::int64_t> q_bounds;
  std::vector<std::int64_t> k_bounds;
  /// Number of lists: the KV heads, or the query heads. Query head h of H uses list h · heads / H.
  int heads = 1;
  /// CSR over (head, query block): the kept key blocks of (h, i) are
  /// indices[offsets[h · q_blocks + i] … offsets[h · q_blocks + i + 1]), ascending and distinct.
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> indices;

  std::int64_t q_blocks() const { return static_cast<std::int64_t>(q_bounds.size()) - 1; }
  std::int64_t k_blocks() const { return static_cast<std::int64_t>(k_bounds.size()) - 1; }
  std::span<const std::int32_t> kept(int head, std::int64_t q_block) const;
  bool operator==(const BlockLists&) const = default;
};

/// How much of a tile is allowed.
enum class TileClass : std::uint8_t { empty, partial, full };

/// Which queries may see which keys. The one definition that FLOPs, every kernel's own format, the
/// reference result and the sharding are derived from.
///
/// The allowed cells are those of the slices; where there are block lists, only those of them that
/// lie in a kept block (and then they differ per head). Immutable; cheap to copy; thread-safe.
class Mask {
 public:
  /// Throws InputError, naming the slice, if a range is not inside [0, q_tokens) × [0, k_tokens),
  /// two slices allow the same cell, or a token count is outside [0, kMaxTokens]. Slices without a
  /// cell are dropped; the rest is kept in order of (q_begin, k_begin).
  static Mask from_slices(std::int64_t q_tokens, std::int64_t k_tokens,
                          std::vector<MaskSlice> slices);
  /// The same, cut by block lists. Throws InputError, naming the head and block, if bounds do not
  /// ascend from 0 to the token counts or a list is not ascending, distinct and in range.
  static Mask from_blocks(std::int64_t q_tokens, std::int64_t k_tokens,
                          std::vector<MaskSlice> slices, BlockLists blocks);

  std::int64_t q_tokens() const;
  std::int64_t k_tokens() const;
  std::span<const MaskSlice> slices() const;
  /// nullptr for a mask that is the same for all heads.
  const BlockLists* blocks() const;
  /// Number of distinct heads: 1 for a static mask, else blocks()->heads.
  int heads() const;

  /// Allowed cells of one head; exact, O(slices) without blocks.
  std::int64_t area(int head) const;
  /// Mean of area(head) over the heads: the `area` of FLOPs.
  double mean_area() const;

  bool allows(int head, std::int64_t q, std::int64_t k) const;
  /// The keys that query q sees: ascending, disjoint, not touching.
  std::vector<Range> key_intervals(int head, std::int64_t q) const;
  /// The queries that see key k, likewise (for backward passes that own key columns).
  std::vector<Range> query_intervals(int head, std::int64_t k) const;
  /// Number of allowed cells in the tile `rows` × `keys` (cut at the mask's edge).
  std::int64_t area_in(int head, Range rows, Range keys) const;
  /// `full` if all cells of the tile (cut likewise) are allowed, `empty` if none is or it has none.
  TileClass tile_class(int head, Range rows, Range keys) const;
  /// Row-major [q_tokens, k_tokens] of 0 and 1. Throws InputError above 2^28 cells.
  std::vector<std::uint8_t> dense(int head) const;

  /// The mask seen by the queries of `q_ranges` and the keys of `k_ranges` (each ascending and
  /// disjoint), numbered in the order given: local query 0 is q_ranges[0].begin. Block lists come
  /// along, cut likewise.
  Mask sub_mask(std::span<const Range> q_ranges, std::span<const Range> k_ranges) const;

  /// What `make()` returned, a std::shared_ptr<const T>, when this mask or a copy of it was first
  /// asked for its T: what others derive from a mask and need again, such as its blocks in a
  /// device's memory. It lives as long as the mask and its copies. Thread-safe; `make` must not ask
  /// this mask for another.
  template <typename T, typename Make>
  const T& derived(const Make& make) const {
    const auto call = [](const void* context) {
      return std::shared_ptr<const void>((*static_cast<const Make*>(context))());
    };
    return *static_cast<const T*>(derived_of(typeid(T), call, &make));
  }

 private:
  const void* derived_of(const std::type_info& type,
                         std::shared_ptr<const void> (*make)(const void* context),
                         const void* context) const;
  struct Data;
  explicit Mask(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  static std::shared_ptr<Data> build(std::int64_t q_tokens, std::int64_t k_tokens,
                                     std::vector<MaskSlice> slices);
  std::shared_ptr<const Data> data_;
};

}  // namespace longca
