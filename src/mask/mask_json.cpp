#include "mask/mask_json.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <cmath>
#include <ostream>
#include <string>

namespace longca {
namespace {

std::string number_or_null(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "null";
}

void write_slices(std::ostream& out, const Mask& mask) {
  out << "\"slices\":[";
  const char* separator = "";
  for (const MaskSlice& s : mask.slices()) {
    fmt::print(out, "{}[{},{},{},{},\"{}\"]", separator, s.q_begin, s.q_end, s.k_begin, s.k_end,
               to_string(s.type));
    separator = ",";
  }
  out << ']';
}

void write_blocks(std::ostream& out, const BlockLists& blocks) {
  out << "\"blocks\":[";
  for (int head = 0; head < blocks.heads; ++head) {
    out << (head == 0 ? "[" : ",[");
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      fmt::print(out, "{}[{}]", i == 0 ? "" : ",", fmt::join(blocks.kept(head, i), ","));
    }
    out << ']';
  }
  fmt::print(out, "],\"q_bounds\":[{}],\"k_bounds\":[{}]", fmt::join(blocks.q_bounds, ","),
             fmt::join(blocks.k_bounds, ","));
}

double density_of(const Mask& mask) {
  const double cells = static_cast<double>(mask.q_tokens()) * static_cast<double>(mask.k_tokens());
  return cells > 0 ? mask.mean_area() / cells : 0.0;
}

}  // namespace

std::string area_text(const Mask& mask) {
  bool equal = true;
  for (int head = 1; head < mask.heads(); ++head) equal &= mask.area(head) == mask.area(0);
  if (equal) return fmt::to_string(mask.area(0));
  const double area = mask.mean_area();
  return std::floor(area) == area ? fmt::format("{:.0f}", area) : fmt::format("{}", area);
}

void write_mask_json(std::ostream& out, const GeneratedMask& generated, const MaskSpec& spec) {
  fmt::print(out, "{{\"mask\":\"{}\",\"tokens\":{},\"seed\":{},", spec.name, spec.tokens,
             spec.seed);
  if (generated.lengths.empty()) {
    out << "\"lengths\":null,";
  } else {
    fmt::print(out, "\"lengths\":[{}],", fmt::join(generated.lengths, ","));
  }
  fmt::print(out, "\"prefix\":{},\"window\":{},", number_or_null(generated.prefix),
             number_or_null(generated.window));
  const BlockLists* blocks = generated.mask.blocks();
  if (blocks != nullptr) {
    if (spec.block_causal) out << "\"block_causal\":true,";
    write_blocks(out, *blocks);
  } else {
    write_slices(out, generated.mask);
  }
  fmt::print(out, ",\"area\":{},\"density\":{}}}\n", area_text(generated.mask),
             density_of(generated.mask));
}

}  // namespace longca
