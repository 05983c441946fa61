#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "bench/record/record.h"

namespace longca {

/// How cells over ranks are told apart for people: by scheme, and by shard, factor and transport
/// where one scheme has several.
class SchemeNames {
 public:
  explicit SchemeNames(std::span<const Record> records);

  /// A row of a table: "ring_p2p", "usp 2x4" (ranks that share the heads x places along the
  /// context), "magi contiguous peer" where the scheme has more than one shard and transport.
  std::string row(const Case& c) const;
  /// What follows the scheme in the name of a line over ranks: only what differs at equal work and
  /// ranks, since a factor that follows the ranks is no line of its own. "zigzag, factor 2" or "".
  /// Where a kernel has a scheme with several transports, all its lines say theirs.
  std::string variant(const Case& c) const;
  /// Shards and transports that a scheme has only one of, for a heading:
  /// "shard contiguous: ulysses; zigzag: ring_p2p, usp" and "transport mpi".
  std::string shards() const;
  std::string transports() const;

 private:
  using Names = std::set<std::string, std::less<>>;
  bool varies(const std::map<std::string, Names, std::less<>>& by_scheme, const Case& c) const;

  std::map<std::string, Names, std::less<>> shards_;      // by scheme
  std::map<std::string, Names, std::less<>> transports_;  // by scheme
  /// The axes that differ at equal work and ranks, each with its kernel and, but for the transport,
  /// its scheme.
  std::set<std::array<std::string, 3>> variants_;
};

}  // namespace longca
