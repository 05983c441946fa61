#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "attention/api/kernel.h"
#include "bench/suite/case.h"
#include "cost/platform.h"
#include "mask/mask.h"
#include "simulate/kernel_times.h"

namespace longca::advise {

/// Queries and keys of the tiles in which work is counted: those of most GPU kernels.
inline constexpr std::int64_t kWorkTile = 128;

/// Tiles of kWorkTile × kWorkTile that are not empty, over all query heads.
struct TileCount {
  double full = 0;
  double partial = 0;
};

/// Tile slots of a card that stay idle until the last item of a call ends, if every SM takes the
/// next item as soon as it is free: by what an item is.
struct IdleSlots {
  double tile_rows = 0;        ///< a tile row of a query head
  double tile_columns = 0;     ///< a tile column of a query head
  double grouped_columns = 0;  ///< a tile column of all query heads of a KV head
  double slices = 0;           ///< a slice of the mask, of a query head
  double longest_rows = 0;     ///< as tile_rows, the longest of all heads first
  /// KV head by KV head, dK and dV of a tile column over its query heads, then dQ of their tile
  /// rows (GroupGradients::of_group).
  double group_gradients = 0;
};

/// What a mask is, as the arguments of most kernels say it.
enum class MaskForm : std::uint8_t {
  full,
  causal,
  window,         ///< to both sides of the diagonal
  causal_window,  ///< up to the diagonal
  documents,      ///< packed sequences, all full or all causal
  blocks,         ///< by block lists
  other,
};

inline bool is_window(MaskForm form) {
  return form == MaskForm::window || form == MaskForm::causal_window;
}

/// What a case's mask gives a kernel to do, in each of the ways in which kernels divide it.
struct Work {
  MaskForm form = MaskForm::other;  ///< `other` where the kernel has no argument that says it
  bool uneven_blocks = false;       ///< block lists, of blocks that differ in size
  /// The kernel takes a path of its own for the mask; false from MaskFacts, which know no kernel.
  bool own_path = false;
  TileCount tiles;           ///< of a grid that begins at the corner of the score matrix
  TileCount slice_tiles;     ///< of grids that begin at the corner of each slice
  double key_intervals = 1;  ///< of a query, at most; of MaskForm::other alone
  /// Partial tiles of a mask that no argument of the kernel says, once for each test of their
  /// cells.
  double tested_tiles = 0;
  double square_tiles = 0;  ///< of the whole score matrix, also empty ones, over all query heads
  double rows = 0;          ///< tokens × query heads
  double keys = 0;          ///< tokens × KV heads
  double cells = 0;         ///< allowed, over all query heads
  double documents = 0;     ///< of packed ones
  /// By which packed documents, over all query heads, have fewer tile rows than if each were as
  /// long as the longest.
  double empty_tile_rows = 0;
  /// Memory that the call needs by what its kernel says of itself, with all inputs and outputs; 0
  /// from MaskFacts, which know no kernel.
  double known_bytes = 0;
  /// Of the call's time what can be said beforehand, beside all else; likewise 0.
  double known_ms = 0;
  /// The part of the slowdown at the card's power limit that calls with as many tiles meet
  /// (cost::PowerLimit); likewise 0.
  double slowed = 0;
  /// What the call takes by the lists that the kernel makes of the mask; 0: they are not known.
  double planned_ms = 0;
  IdleSlots idle;

  double density() const;        ///< cells as a share of the score matrix
  double partial_share() const;  ///< of the tiles that are not empty
  /// The work of a kernel that computes the empty tiles too.
  Work of_all_tiles() const;
};

/// What the lists that a kernel makes of a mask say of a call.
struct PlannedCall {
  double ms = 0;     ///< 0: they are not known
  double bytes = 0;  ///< of sums in memory that CTAs share
};

/// Makes the masks of cases, and answers from them once for each problem: their work and form, and
/// which kernels can express them. Blocks that a case selects by scores count as if they were drawn
/// at random. Not thread-safe. All throw InputError for a mask that cannot be made here: a file
/// that this process has not read.
class MaskFacts {
 public:
  /// `sms`: items that the card works on side by side. With one nothing is idle. `platform`, which
  /// outlives this object: the card's rates, of platform() and planned().
  explicit MaskFacts(std::int64_t sms = 1,
                     const cost::Platform& platform = cost::default_platform())
      : sms_(sms), platform_(platform), times_(platform) {}

  const cost::Platform& platform() const { return platform_; }

  /// Makes what work() and planned() say of the cases, side by side. Leaves out masks that cannot
  /// be made.
  void prepare(std::span<const Case* const> cases);

  const Work& work(const Case& c);
  /// The area of the tiles of that shape that are not empty, over all query heads, in tiles of
  /// kWorkTile × kWorkTile.
  double touched_tiles(const Case& c, const TileShape& shape);
  MaskForm form(const Case& c) { return work(c).form; }
  /// The lists of `slice` on a GPU are known, but for blocks, whose lists take seconds.
  PlannedCall planned(const Case& c);
  /// Why the kernel cannot do the problem, on whatever machine; "" if it can.
  const std::string& refusal(const Kernel& kernel, const Case& c);

 private:
  const Mask& mask(const Case& c);
  /// Of a single pass, by its mask. Thread-safe.
  PlannedCall planned_call(const Case& c, const Mask& mask) const;

  std::int64_t sms_;
  const cost::Platform& platform_;
  std::map<std::string, Work> works_;
  std::map<std::string, double> touched_;
  simulate::SliceTimes times_;
  std::map<std::string, PlannedCall> planned_;
  std::map<std::string, std::string> refusals_;
  std::optional<std::pair<std::string, Mask>> last_;  ///< the mask asked for last, by its problem
};

}  // namespace longca::advise
