// Masks of the user's own: what is read has the cells that it says, and is written as it was read.

#include <algorithm>
#include <sstream>

#include "fuzz.h"
#include "mask/mask_json.h"
#include "mask/own_mask.h"

namespace longca::fuzz {
namespace {

constexpr std::int64_t kCells = 1 << 14;  ///< above, cells are not counted one by one

std::string json_of(const OwnMask& own) {
  MaskSpec spec;
  spec.name = "m.json";
  spec.tokens = own.generated.mask.q_tokens();
  spec.block_causal = own.block_causal;
  std::ostringstream out;
  write_mask_json(out, own.generated, spec);
  return out.str();
}

/// Area, key intervals and the dense matrix of a small mask are of the same cells.
void require_cells(const Mask& mask) {
  if (mask.q_tokens() * mask.k_tokens() > kCells / mask.heads()) return;
  for (int head = 0; head < mask.heads(); ++head) {
    const auto dense = mask.dense(head);
    require(std::ranges::count(dense, 1) == mask.area(head), "an area that the cells have not");
    std::int64_t keys = 0;
    for (std::int64_t q = 0; q < mask.q_tokens(); ++q) {
      for (const Range& range : mask.key_intervals(head, q)) keys += range.size();
    }
    require(keys == mask.area(head), "intervals that miss or repeat a cell");
  }
}

}  // namespace

void fuzz(std::string_view text) {
  std::optional<OwnMask> own;
  if (!accepts([&] { own = parse_mask_json(text, "m.json"); })) return;
  require_cells(own->generated.mask);
  const std::string written = json_of(*own);
  require_printable(written);
  std::optional<OwnMask> again;
  require(accepts([&] { again = parse_mask_json(written, "m.json"); }), "refused: " + written);
  require(json_of(*again) == written, "changed: " + written);
}

}  // namespace longca::fuzz
