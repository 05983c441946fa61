#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "mask/block_draw.h"
#include "mask/mask.h"

namespace longca {

/// What MaskSpec has of `window` and `block_tokens` where none is given.
inline constexpr std::int64_t kDefaultWindow = 1024;
inline constexpr std::int64_t kDefaultBlockTokens = 1024;

/// One of the fourteen masks by name, with its seed and parameters, or one of the user's own
/// (own_mask.h), which has none. A spec gives bitwise the same mask on every machine.
struct MaskSpec {
  std::string name = "causal";
  std::int64_t tokens = 0;
  std::uint64_t seed = 42;
  std::string lengths = "prolong64k";  ///< of the masks with documents: see sample_lengths
  /// The documents themselves, in order, of `tokens` together; empty: drawn from `lengths`.
  std::vector<std::int64_t> document_lengths = {};
  /// Default kDefaultWindow; of global_sliding_window, its drawn g.
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> block_tokens;  ///< block_causal_document: kDefaultBlockTokens
  int heads_q = 1;                           ///< block-sparse masks: head counts of the problem
  int heads_k = 1;
  std::string block_heads = "kv";  ///< one block list per "kv" head or per "query" head
  std::int64_t block = 128;        ///< block-sparse masks: tokens of a block
  double density = 0.5;            ///< block-sparse masks: share of key blocks kept (block_draw.h)
  bool block_causal = false;       ///< block-sparse masks: no query sees a later key
};

/// Which axes change a mask.
struct MaskTraits {
  std::string name;
  std::string description;  ///< one line, for `longca list masks`
  bool uses_lengths = false;
  bool uses_seed = false;
  bool uses_window = false;
  bool uses_block_tokens = false;
  bool uses_blocks = false;  ///< block, density, block_heads: dynamic, per head
};

/// A mask and the random draws it is made of.
struct GeneratedMask {
  Mask mask;
  std::vector<std::int64_t> lengths;   ///< document lengths, in order; empty where there are none
  std::optional<std::int64_t> prefix;  ///< masks 10 and 11
  std::optional<std::int64_t> window;  ///< masks 3, 4 and 8, as used
  std::optional<std::int64_t> global_tokens;  ///< mask 8
};

/// The fourteen masks in the order of their numbers.
std::span<const MaskTraits> mask_table();
/// Of one of them or of the user's own. Throws InputError that suggests the nearest name for
/// an unknown one.
const MaskTraits& mask_traits(const std::string& name);

/// Throws InputError that names the parameter, its value and its limit: unknown names, density
/// outside (0, 1], tokens < 0, documents of other lengths, window < 0, block < 1, block_tokens < 1,
/// any of these above kMaxTokens, heads that do not divide, another length than the user's own mask
/// has.
GeneratedMask generate_mask(const MaskSpec& spec);

/// How many blocks a block-sparse mask keeps over all its lists; 0 for other masks. Costs nothing.
double kept_blocks(const MaskSpec& spec);
/// About how many slices or kept blocks generate_mask makes, to which its time and memory are
/// proportional. Costs nothing.
double estimate_pieces(const MaskSpec& spec);

/// The blocks that a block-sparse mask chooses from; generate_mask chooses at random. Throws as
/// generate_mask does, and InternalError for a mask without blocks.
BlockChoice block_choice(const MaskSpec& spec);
/// The mask of a block-sparse spec with the kept blocks `lists`, over the bounds of its
/// block_choice.
GeneratedMask mask_of_blocks(const MaskSpec& spec, BlockLists lists);

}  // namespace longca
