#include "mask/mask_slice.h"

#include <fmt/format.h>

#include <array>

#include "mask/band.h"

namespace longca {
namespace {

constexpr std::array<std::string_view, 4> kTypeNames = {"full", "causal", "inverse_causal",
                                                        "bi_causal"};

}  // namespace

std::string_view to_string(MaskSliceType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::optional<MaskSliceType> parse_slice_type(std::string_view text) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == text) return static_cast<MaskSliceType>(i);
  }
  return std::nullopt;
}

std::string to_string(const MaskSlice& slice) {
  return fmt::format("[{}, {}) × [{}, {}) {}", slice.q_begin, slice.q_end, slice.k_begin,
                     slice.k_end, to_string(slice.type));
}

Range MaskSlice::keys_of(std::int64_t q) const {
  if (q < q_begin || q >= q_end) return {k_begin, k_begin};
  const Range keys = Band::of(*this).keys_of(q);
  return keys.empty() ? Range{k_begin, k_begin} : keys;
}

bool MaskSlice::allows(std::int64_t q, std::int64_t k) const {
  const Range keys = keys_of(q);
  return k >= keys.begin && k < keys.end;
}

std::int64_t MaskSlice::area() const {
  return Band::of(*this).area();
}

}  // namespace longca
