#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/schemes/build/cast_stages.h"
#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// Keys of which one CP rank of a node takes care: tokens, ascending, not touching.
struct KeyShare {
  std::vector<Range> alone;   ///< that no other CP rank of the node has
  std::vector<Range> shared;  ///< that others have too
};

/// Has each of `keys` that somebody has taken care of by one CP rank that has it, as evenly as
/// possible: keys that few have are assigned first, then each run of keys fills up those with the
/// fewest. `has`: by CP rank of a node; all lists ascending, not touching. Returns one entry per
/// CP rank.
std::vector<KeyShare> share_keys(std::span<const std::vector<Range>> has,
                                 std::span<const Range> keys);

/// Which CP rank of a node brings which keys of other nodes into it: each key that some see goes to
/// one of them, which passes it on to the others. The keys of each stage are shared evenly.
class NodeRelays {
 public:
  /// All arguments must outlive this object.
  NodeRelays(const Grid& grid, const SeenKeys& seen, const CastStages& stages);

  const std::vector<Range>& own(int cp_rank) const { return own_[at(cp_rank)]; }
  const std::vector<Range>& seen(int cp_rank) const { return seen_[at(cp_rank)]; }
  /// The CP ranks of a node; the last may have fewer.
  Range members(int node) const;
  /// The keys that each CP rank of a node brings in a stage.
  std::vector<KeyShare> brought(int node, int stage) const;

 private:
  struct Owned {
    Range tokens;
    int owner = 0;
  };
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  const CastStages& stages_;
  std::vector<std::vector<Range>> own_, seen_;  ///< by CP rank
  std::vector<Owned> owned_;                    ///< all keys, ascending
};

}  // namespace longca
