#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/mask.h"
#include "parallel/partition/document_partition.h"

namespace longca {

/// How the tokens of a sequence are assigned to CP ranks (ranks, or groups of ranks that share
/// tokens).
enum class ShardKind : std::uint8_t {
  contiguous,  ///< one range each
  zigzag,      ///< 2N chunks: CP rank i has chunks i and 2N−1−i (Llama 3, ring-flash-attention)
  document_zigzag,    ///< zigzag in every document, padded to a multiple of 2N (TransformerEngine)
  balanced,           ///< chunks assigned so that areas are equal (MagiAttention's dispatch)
  document_balanced,  ///< whole documents, few cut, for equal areas or times; else as balanced
};
std::string_view to_string(ShardKind kind);
/// "contiguous", "zigzag", "document_zigzag", "balanced", "document_balanced". Throws InputError
/// that suggests the nearest.
ShardKind parse_shard_kind(std::string_view text);
std::vector<std::string> shard_kind_names();

/// Who owns which tokens. A CP rank's local token numbers count its ranges in ascending order.
class Sharding {
 public:
  /// Partitions the mask's tokens over `cp_ranks`. Any number of tokens: with fewer than CP ranks
  /// some own nothing. `lengths`: the documents, for document_zigzag (empty: one document).
  /// `chunk`: tokens of a chunk for `balanced`, and where document_balanced falls back to it; 0:
  /// chosen. `aim` and `platform`: for document_balanced. The same on every rank. Throws InputError
  /// for fewer than one CP rank.
  Sharding(ShardKind kind, const Mask& mask, std::span<const std::int64_t> lengths, int cp_ranks,
           std::int64_t chunk = 0, PartitionAim aim = PartitionAim::equal_area,
           const cost::Platform& platform = cost::default_platform());

  ShardKind kind() const { return kind_; }
  int cp_ranks() const { return cp_ranks_; }
  /// Tokens of a chunk where chunks of one length are assigned (`balanced`); else 0.
  std::int64_t chunk() const { return chunk_; }
  /// Ascending, disjoint, not touching, not empty; those of all CP ranks are all tokens, each
  /// once. Computed when asked for: a plan of 1024 ranks must not list them all.
  std::vector<Range> ranges(int cp_rank) const;
  std::int64_t tokens(int cp_rank) const;
  /// Its tokens plus, where the kind pads (document_zigzag), the padding that makes all CP ranks
  /// equally long: rows that travel but are never attended.
  std::int64_t rows(int cp_rank) const;

 private:
  ShardKind kind_;
  int cp_ranks_;
  std::int64_t total_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> chunks_;  ///< document_zigzag: tokens of a document's chunks, padded
  std::int64_t chunk_ = 0;
  std::vector<std::vector<Range>> assigned_;  ///< balanced, document_balanced
};

/// Divides the tokens of one CP rank into `parts` consecutive runs whose sizes differ by at most
/// one; returns the ranges of `member`, in global numbers.
std::vector<Range> split_ranges(std::span<const Range> ranges, int parts, int member);

/// Largest area of a CP rank's queries over the mean: the imbalance of computing. 1 for a mask
/// without a cell.
double area_imbalance(const Mask& mask, const Sharding& sharding);

}  // namespace longca
