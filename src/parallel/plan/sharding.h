#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/mask.h"
#include "parallel/plan/deal_aim.h"

namespace longca {

/// How the tokens of a sequence are dealt to positions (ranks, or groups of ranks that share
/// tokens).
enum class ShardKind : std::uint8_t {
  contiguous,  ///< one range each
  zigzag,  ///< 2·N chunks: position i has chunks i and 2N−1−i (Llama 3, ring-flash-attention)
  document_zigzag,  ///< that inside every document, padded to a multiple of 2·N (TransformerEngine)
  balanced,         ///< chunks dealt so that areas are equal (MagiAttention's dispatch)
  document_balanced,  ///< whole documents dealt for equal areas or times, few cut; else as balanced
};
std::string_view to_string(ShardKind kind);
/// "contiguous", "zigzag", "document_zigzag", "balanced", "document_balanced". Throws InputError
/// that suggests the nearest.
ShardKind parse_shard_kind(std::string_view text);
std::vector<std::string> shard_kind_names();

/// Who owns which tokens. A position's local token numbers count its ranges in ascending order.
class Sharding {
 public:
  /// Deals the mask's tokens to `positions`. `lengths`: the documents, for document_zigzag (none:
  /// one document). Any number of tokens, also fewer than positions: some then own nothing.
  /// `balanced` has chunks of `chunk` tokens, or if 0 of a length that it chooses; so has
  /// `document_balanced` where it deals as `balanced` does; `aim` is its. The same on every rank.
  /// Throws InputError if positions < 1.
  Sharding(ShardKind kind, const Mask& mask, std::span<const std::int64_t> lengths, int positions,
           std::int64_t chunk = 0, DealAim aim = DealAim::equal_area);

  ShardKind kind() const { return kind_; }
  int positions() const { return positions_; }
  /// Tokens of a chunk where chunks of one length are dealt (`balanced`); else 0.
  std::int64_t chunk() const { return chunk_; }
  /// Ascending, disjoint, not touching, not empty; those of all positions are all tokens, each
  /// once. Computed when asked for: a plan of 1024 ranks must not list them all.
  std::vector<Range> ranges(int position) const;
  std::int64_t tokens(int position) const;
  /// Its tokens and, where the kind pads (document_zigzag), the rows behind them that make all
  /// positions equally long. Those travel with the others and are never attended.
  std::int64_t rows(int position) const;

 private:
  ShardKind kind_;
  int positions_;
  std::int64_t total_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> chunks_;  ///< document_zigzag: tokens of a document's chunks, padded
  std::int64_t chunk_ = 0;
  std::vector<std::vector<Range>> dealt_;  ///< balanced, document_balanced
};

/// The tokens of one position dealt out once more to `parts` members in consecutive runs whose
/// sizes differ by at most one: member m's ranges, in global numbers.
std::vector<Range> split_ranges(std::span<const Range> ranges, int parts, int member);

/// Largest area of a position's queries over the mean: the imbalance of computing. 1 for a mask
/// without a cell.
double area_imbalance(const Mask& mask, const Sharding& sharding);

}  // namespace longca
