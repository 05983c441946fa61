#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>
#include <vector>

#include "mask/block_lists.h"
#include "mask/mask_slice.h"

namespace longca {

/// Whether none, some or all cells of a tile are allowed.
enum class TileClass : std::uint8_t { empty, partial, full };

/// Which queries may attend to which keys: the one definition from which FLOPs, every kernel's own
/// mask format, the reference result and the sharding are derived.
///
/// The allowed cells are those of the slices; with block lists, only those in a block that the head
/// keeps. Immutable; cheap to copy; thread-safe.
class Mask {
 public:
  /// Sorts slices by (q_begin, k_begin) and drops those without a cell. Throws InputError that
  /// names the slice if a range is not inside [0, q_tokens) × [0, k_tokens), two slices allow the
  /// same cell, or a token count is outside [0, kMaxTokens].
  static Mask from_slices(std::int64_t q_tokens, std::int64_t k_tokens,
                          std::vector<MaskSlice> slices);
  /// Restricts the slices to the kept blocks. Throws also InputError that names the head and block
  /// if bounds do not ascend from 0 to the token counts or a list is not ascending, distinct and in
  /// range.
  static Mask from_blocks(std::int64_t q_tokens, std::int64_t k_tokens,
                          std::vector<MaskSlice> slices, BlockLists blocks);

  std::int64_t q_tokens() const;
  std::int64_t k_tokens() const;
  std::span<const MaskSlice> slices() const;
  /// nullptr for a static mask (the same for all heads).
  const BlockLists* blocks() const;
  /// Number of distinct heads: 1 for a static mask, else blocks()->heads.
  int heads() const;

  /// Allowed cells of one head; exact, O(slices) without blocks.
  std::int64_t area(int head) const;
  /// Mean of area(head) over the heads: the `area` of FLOPs.
  double mean_area() const;

  bool allows(int head, std::int64_t q, std::int64_t k) const;
  /// The keys that query q attends to: ascending, disjoint, not adjacent.
  std::vector<Range> key_intervals(int head, std::int64_t q) const;
  /// The queries that attend to key k, likewise.
  std::vector<Range> query_intervals(int head, std::int64_t k) const;
  /// Allowed cells in the tile `rows` × `keys`, clipped to the mask.
  std::int64_t area_in(int head, Range rows, Range keys) const;
  /// The class of the tile, clipped likewise; `empty` if nothing is left.
  TileClass tile_class(int head, Range rows, Range keys) const;
  /// Row-major [q_tokens, k_tokens] of 0 and 1. Throws InputError above 2^28 cells.
  std::vector<std::uint8_t> dense(int head) const;

  /// The mask between the queries of `q_ranges` and the keys of `k_ranges` (each ascending and
  /// disjoint) in local coordinates: local query 0 is q_ranges[0].begin. Block lists are cut
  /// likewise.
  Mask sub_mask(std::span<const Range> q_ranges, std::span<const Range> k_ranges) const;

  /// A cache for data that others derive from the mask, such as its blocks in device memory: the
  /// first call for a T on this mask or any copy stores make(), a std::shared_ptr<const T>, for the
  /// lifetime of the mask and its copies. Thread-safe; `make` must not call `derived` of this mask.
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

/// Number of (head, query) rows without a key, whose output is 0, of a mask with block lists: a
/// causal mask may cut every block that a query block keeps. Multithreaded. Throws InternalError
/// for a mask without block lists.
std::int64_t rows_without_keys(const Mask& mask);

/// The cells that some head sees: the mask itself where all heads are alike, else a mask of one
/// head that keeps each block that any head keeps. Made on first use and kept with the mask.
Mask any_head_of(const Mask& mask);

}  // namespace longca
