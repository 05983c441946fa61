#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// Names that distinguish cells over ranks: the scheme, with shard, factor and transport if one
/// scheme has several.
class SchemeNames {
 public:
  explicit SchemeNames(std::span<const Record> records);

  /// A table's row: "ring_p2p", "usp 2x4" (ranks that share the heads x CP ranks along the
  /// context), "magi contiguous peer" if the scheme has several shards and transports.
  std::string row(const Case& c) const;
  /// What follows the scheme in the name of a line over ranks: "zigzag, factor 2" or "". Names the
  /// axes that differ at equal work and ranks; a factor that only follows the number of ranks is
  /// left out. If one scheme of a kernel has several transports, every line of the kernel names
  /// its own.
  std::string variant(const Case& c) const;
  /// Shards and transports of the schemes that have only one, for a heading:
  /// "contiguous: ulysses; zigzag: ring_p2p, usp" and "mpi".
  std::string shards() const;
  std::string transports() const;

 private:
  using Names = std::set<std::string, std::less<>>;
  bool varies(const std::map<std::string, Names, std::less<>>& by_scheme, const Case& c) const;

  std::map<std::string, Names, std::less<>> shards_;      // by scheme
  std::map<std::string, Names, std::less<>> transports_;  // by scheme
  /// {axis, kernel, scheme} of the axes that differ at equal work and ranks; the scheme is empty
  /// for the transport.
  std::set<std::array<std::string, 3>> variants_;
};

/// Headings of what every scheme has one of: {"shard contiguous: ulysses; zigzag: ring_p2p",
/// "transport mpi"}.
std::vector<std::string> scheme_settings(std::span<const Record> records);

}  // namespace longca
