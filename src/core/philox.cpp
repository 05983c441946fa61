#include "core/philox.h"

#include <algorithm>

namespace longca {
namespace {

/// Counters handled together: independent lanes that the compiler turns into vector instructions.
constexpr std::size_t kLanes = 16;
using Lanes = std::array<std::uint32_t, kLanes>;

/// One round on all lanes, in the paper's notation.
inline void philox_round(Lanes& c0, Lanes& c1, Lanes& c2, Lanes& c3, PhiloxKey key) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c0[i];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c2[i];
    c0[i] = static_cast<std::uint32_t>(product1 >> 32) ^ c1[i] ^ key[0];
    c1[i] = static_cast<std::uint32_t>(product1);
    c2[i] = static_cast<std::uint32_t>(product0 >> 32) ^ c3[i] ^ key[1];
    c3[i] = static_cast<std::uint32_t>(product0);
  }
}

}  // namespace

void philox_fill(std::uint32_t x, std::uint32_t y, PhiloxKey key, std::span<std::uint32_t> words) {
  for (std::size_t first = 0; first < words.size(); first += 4 * kLanes) {
    Lanes c0, c1, c2, c3{};
    c0.fill(x);
    c1.fill(y);
    for (std::size_t i = 0; i < kLanes; ++i) c2[i] = static_cast<std::uint32_t>(first / 4 + i);
    PhiloxKey round_key = key;
    for (int round = 0; round < 10; ++round) {
      philox_round(c0, c1, c2, c3, round_key);
      round_key = {round_key[0] + 0x9E3779B9U, round_key[1] + 0xBB67AE85U};
    }
    std::array<std::uint32_t, 4 * kLanes> out;
    for (std::size_t i = 0; i < kLanes; ++i) {
      out[4 * i] = c0[i];
      out[4 * i + 1] = c1[i];
      out[4 * i + 2] = c2[i];
      out[4 * i + 3] = c3[i];
    }
    const std::size_t count = std::min(out.size(), words.size() - first);
    std::copy_n(out.begin(), count, words.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace longca
