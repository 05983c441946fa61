#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "mask/generators.h"

namespace longca {

/// A mask of the user's own, of one length.
struct OwnMask {
  std::filesystem::path path;  ///< absolute
  MaskTraits traits;           ///< no axis changes it
  GeneratedMask generated;
  bool block_causal = false;  ///< kept blocks are causal
};

/// A file of a mask has at most so many bytes.
inline constexpr std::size_t kMaxMaskBytes = std::size_t{64} << 20;

/// Reads a mask in the form of write_mask_json (docs/guide/own-data.md): "tokens" and either
/// "slices" or "blocks", "q_bounds" and "k_bounds"; "mask", "seed" and "density" are not used.
/// `name` is the file's in messages. Throws InputError that names the key, its value and the limit:
/// what is no such JSON, an unknown key, a slice or block that Mask refuses, an "area" or "lengths"
/// that are not those of the mask.
OwnMask parse_mask_json(std::string_view text, const std::string& name);

/// Reads a file of a mask into this process, once, and returns the name (see OwnFile) by which
/// mask_traits and generate_mask then know it. Throws as read_own_file and parse_mask_json do.
std::string add_own_mask(const std::filesystem::path& file);

/// The mask of that name, which stays as long as the process; nullptr if none was read.
const OwnMask* find_own_mask(const std::string& name);

/// Why a sequence cannot have the mask; "" if it can: another length, or block lists that are
/// neither one per KV head nor one per query head.
std::string misfit(const OwnMask& mask, std::int64_t tokens, int heads_q, int heads_k);

}  // namespace longca
