#include "mask/own_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/strict_json.h"
#include "mask/own_file.h"

namespace longca {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 4;  ///< blocks: object, lists, query blocks, kept key blocks

const json* optional(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json& required(const json& object, const char* key) {
  const json* found = optional(object, key);
  if (found == nullptr) throw_input_error("the key '{}' is missing", key);
  return *found;
}

std::int64_t whole_number(const json& value, std::string_view place, std::int64_t low,
                          std::int64_t high) {
  // An integer beyond 64 bits is read as a float.
  const bool is_huge = value.is_number_float() && std::abs(value.get<double>()) >= 0x1p63;
  if (!value.is_number_integer() && !is_huge) {
    throw_input_error("{} must be a whole number, but is {}", place,
                      value.is_number() ? value.dump() : value.type_name());
  }
  const bool is_large =
      value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>());
  if (is_huge || is_large || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    throw_input_error("{} is {}: at least {}, at most {}", place, value.dump(), low, high);
  }
  return value.get<std::int64_t>();
}

const json& list(const json& value, std::string_view place) {
  if (!value.is_array())
    throw_input_error("{} must be a list, but is {}", place, value.type_name());
  return value;
}

/// Token counts or positions of at least `low`.
std::vector<std::int64_t> positions(const json& value, std::string_view place, int low = 0) {
  std::vector<std::int64_t> numbers;
  for (const json& number : list(value, place)) {
    numbers.push_back(
        whole_number(number, fmt::format("{}[{}]", place, numbers.size()), low, kMaxTokens));
  }
  return numbers;
}

MaskSlice slice_of(const json& value, std::size_t index) {
  const std::string place = fmt::format("slices[{}]", index);
  if (list(value, place).size() != 5) {
    throw_input_error("{} has {} entries instead of q_begin, q_end, k_begin, k_end, type", place,
                      value.size());
  }
  std::array<std::int64_t, 4> ends{};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i] = whole_number(value[i], fmt::format("{}[{}]", place, i), 0, kMaxTokens);
  }
  if (!value[4].is_string()) throw_input_error("{}[4] must be a type in quotes", place);
  const auto word = value[4].get<std::string>();
  const auto type = parse_slice_type(word);
  if (!type) {
    const std::array<std::string, 4> known = {"full", "causal", "inverse_causal", "bi_causal"};
    throw_input_error("{}[4] is '{}', which is no type of a slice{}", place, word,
                      suggestion(word, known));
  }
  return {ends[0], ends[1], ends[2], ends[3], *type};
}

Mask mask_of_slices(const json& object, std::int64_t tokens) {
  std::vector<MaskSlice> slices;
  for (const json& slice : list(required(object, "slices"), "slices")) {
    slices.push_back(slice_of(slice, slices.size()));
  }
  return Mask::from_slices(tokens, tokens, std::move(slices));
}

/// Appends the kept key blocks of one list, a query block after the other.
void append_list(const json& rows, const std::string& place, BlockLists& blocks) {
  const auto q_blocks = static_cast<std::size_t>(std::max<std::int64_t>(blocks.q_blocks(), 0));
  if (list(rows, place).size() != q_blocks) {
    throw_input_error("{} has {} query blocks, and q_bounds {}", place, rows.size(), q_blocks);
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::string name = fmt::format("{}[{}]", place, row);
    for (const json& block : list(rows[row], name)) {
      constexpr std::int64_t kMaxBlock = std::numeric_limits<std::int32_t>::max();
      blocks.indices.push_back(static_cast<std::int32_t>(whole_number(block, name, 0, kMaxBlock)));
    }
    blocks.offsets.push_back(std::ssize(blocks.indices));
  }
}

Mask read_block_mask(const json& object, std::int64_t tokens, bool causal) {
  BlockLists blocks;
  blocks.q_bounds = positions(required(object, "q_bounds"), "q_bounds");
  blocks.k_bounds = positions(required(object, "k_bounds"), "k_bounds");
  const json& lists = list(required(object, "blocks"), "blocks");
  if (lists.empty()) throw InputError("blocks has no list");
  blocks.heads = static_cast<int>(lists.size());
  blocks.offsets = {0};
  for (std::size_t head = 0; head < lists.size(); ++head) {
    append_list(lists[head], fmt::format("blocks[{}]", head), blocks);
  }
  const MaskSlice frame{0, tokens, 0, tokens, causal ? MaskSliceType::causal : MaskSliceType::full};
  return Mask::from_blocks(tokens, tokens, {frame}, std::move(blocks));
}

void check_keys(const json& object) {
  static const std::vector<std::string> k_known = {
      "mask",         "tokens", "seed",     "lengths",  "prefix", "window", "slices",
      "block_causal", "blocks", "q_bounds", "k_bounds", "area",   "density"};
  if (!object.is_object()) throw_input_error("a mask is an object, not {}", object.type_name());
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(k_known, key) == k_known.end()) {
      throw_input_error("unknown key '{}'{}", key, suggestion(key, k_known));
    }
  }
  const bool has_blocks = optional(object, "blocks") != nullptr;
  if (has_blocks == (optional(object, "slices") != nullptr)) {
    throw InputError("a mask has either 'slices' or 'blocks'");
  }
  for (const char* of_blocks : {"block_causal", "q_bounds", "k_bounds"}) {
    if (!has_blocks && optional(object, of_blocks) != nullptr) {
      throw_input_error("{} is of a mask with blocks, and this one has slices", of_blocks);
    }
  }
}

/// What the file says beside the cells must be true of them.
void check_area(const json& object, const Mask& mask) {
  const json* area = optional(object, "area");
  if (area == nullptr) return;
  if (!area->is_number()) throw InputError("area must be a number");
  // The text of a mean over heads has all digits.
  if (area->get<double>() != mask.mean_area()) {
    throw_input_error("area is {}, and the mask has {} cells", area->dump(), mask.mean_area());
  }
}

std::vector<std::int64_t> lengths_of(const json& object, std::int64_t tokens) {
  const json* value = optional(object, "lengths");
  if (value == nullptr) return {};
  std::vector<std::int64_t> lengths = positions(*value, "lengths", 1);
  const auto sum = std::reduce(lengths.begin(), lengths.end(), std::int64_t{0});
  if (sum != tokens) throw_input_error("lengths add up to {} tokens, not {}", sum, tokens);
  return lengths;
}

OwnMask mask_of(const json& object) {
  check_keys(object);
  const std::int64_t tokens = whole_number(required(object, "tokens"), "tokens", 1, kMaxTokens);
  const json* causal = optional(object, "block_causal");
  if (causal != nullptr && !causal->is_boolean()) {
    throw_input_error("block_causal must be true or false, but is {}", causal->dump());
  }
  const bool block_causal = causal != nullptr && causal->get<bool>();
  const Mask mask = optional(object, "slices") != nullptr
                        ? mask_of_slices(object, tokens)
                        : read_block_mask(object, tokens, block_causal);
  check_area(object, mask);
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    const json* value = optional(object, key);
    if (value == nullptr) return std::nullopt;
    return whole_number(*value, key, 0, kMaxTokens);
  };
  return {{},
          {},
          {mask, lengths_of(object, tokens), number("prefix"), number("window"), std::nullopt},
          block_causal};
}

/// The masks that this process has read, by name.
struct KnownMasks {
  std::mutex mutex;
  std::map<std::string, OwnMask> by_name;
};
KnownMasks& known_masks() {
  static KnownMasks masks;
  return masks;
}

}  // namespace

OwnMask parse_mask_json(std::string_view text, const std::string& name) {
  try {
    return mask_of(parse_strict_json(text, kMaxDepth));
  } catch (const InputError& error) {
    throw_input_error("{}: {}", name, error.what());
  }
}

std::string add_own_mask(const std::filesystem::path& file) {
  const OwnFile own = read_own_file("mask", file, kMaxMaskBytes);
  OwnMask mask = parse_mask_json(own.bytes, file.string());
  mask.path = own.path;
  mask.traits.name = own.name;
  mask.traits.description = "read from " + file.string();
  const std::scoped_lock lock(known_masks().mutex);
  // Of equal files the last counts: another may be gone.
  known_masks().by_name.insert_or_assign(own.name, std::move(mask));
  return own.name;
}

const OwnMask* find_own_mask(const std::string& name) {
  const std::scoped_lock lock(known_masks().mutex);
  const auto found = known_masks().by_name.find(name);
  return found == known_masks().by_name.end() ? nullptr : &found->second;
}

std::string misfit(const OwnMask& mask, std::int64_t tokens, int heads_q, int heads_k) {
  const std::string_view name = without_hash(mask.traits.name);
  if (tokens != mask.generated.mask.q_tokens()) {
    return fmt::format("{} is a mask of {} tokens", name, mask.generated.mask.q_tokens());
  }
  const int lists = mask.generated.mask.heads();
  const bool fits = mask.generated.mask.blocks() == nullptr || lists == heads_k || lists == heads_q;
  if (fits) return "";
  return fmt::format("{} has {}: one per KV or query head", name, counted(lists, "block list"));
}

}  // namespace longca
