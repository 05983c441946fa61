#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "attention/api/kernel.h"
#include "bench/suite/case.h"
#include "mask/mask.h"

namespace longca::advise {

/// Queries and keys of the tiles in which work is counted: those of most GPU kernels.
inline constexpr std::int64_t kWorkTile = 128;

/// What a case's mask gives a kernel to do, whatever the kernel is. Tiles are kWorkTile ×
/// kWorkTile, and empty ones count nowhere.
struct Work {
  double full_tiles = 0;     ///< over all query heads
  double partial_tiles = 0;  ///< over all query heads
  double square_tiles = 0;   ///< of the whole score matrix, over all query heads
  double rows = 0;           ///< tokens × query heads
  double keys = 0;           ///< tokens × KV heads
  double longest_row = 0;    ///< tiles of the tile row that has most of them
  double cells = 0;          ///< allowed, over all query heads

  double density() const;        ///< cells as a share of the score matrix
  double partial_share() const;  ///< of the tiles that are not empty
};

/// Makes the masks of cases, and answers from them once for each problem: their work, and which
/// kernels can express them. Blocks that a case selects by scores count as if they were drawn at
/// random. Not thread-safe. All throw InputError for a mask that cannot be made here: a file that
/// this process has not read.
class MaskFacts {
 public:
  const Work& work(const Case& c);
  /// Why the kernel cannot do the problem, on whatever machine; "" if it can.
  const std::string& refusal(const Kernel& kernel, const Case& c);

 private:
  const Mask& mask(const Case& c);

  std::map<std::string, Work> works_;
  std::map<std::string, std::string> refusals_;
  std::optional<std::pair<std::string, Mask>> last_;  ///< the mask asked for last, by its problem
};

}  // namespace longca::advise
