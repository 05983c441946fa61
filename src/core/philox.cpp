// Compiled once per SIMD target of Highway and dispatched at run time.
#include "core/philox.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/philox.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void fill(std::uint32_t x, std::uint32_t y, PhiloxKey key, std::span<std::uint32_t> words) {
  for (std::size_t first = 0; first < words.size(); first += 4) {
    const auto four = philox4x32_10({x, y, static_cast<std::uint32_t>(first / 4), 0}, key);
    std::copy_n(four.begin(), std::min<std::size_t>(4, words.size() - first), &words[first]);
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::ScalableTag<std::uint64_t>;
using Narrow = hn::Repartition<std::uint32_t, Wide>;
using V = hn::Vec<Wide>;

/// Words are the lower 32 bits of 64-bit lanes; MulEven ignores the upper 32, which are garbage.
HWY_INLINE V product(V word, std::uint32_t factor) {
  return hn::MulEven(hn::BitCast(Narrow(), word), hn::Set(Narrow(), factor));
}

/// Packs `low` and `high` into the two 32-bit words of each lane.
HWY_INLINE V pair(V low, V high) {
  const V low_only = hn::And(low, hn::Set(Wide(), 0xffffffffU));
  return hn::Or(low_only, hn::ShiftLeft<32>(high));
}

HWY_ATTR void fill(std::uint32_t x, std::uint32_t y, PhiloxKey key,
                   std::span<std::uint32_t> words) {
  const std::size_t lanes = hn::Lanes(Wide());
  const std::size_t step = 4 * lanes;
  // InterleaveLower/Upper work within 128-bit blocks: even lanes hold the first half of the
  // counters and odd lanes the second, so that the stored words are in order.
  const V lane = hn::Iota(Wide(), 0);
  const V odd = hn::And(lane, hn::Set(Wide(), 1));
  const V order =
      hn::Add(hn::ShiftRight<1>(lane),
              hn::IfThenElseZero(hn::Eq(odd, hn::Set(Wide(), 1)), hn::Set(Wide(), lanes / 2)));
  std::array<std::uint32_t, 4 * hn::MaxLanes(Wide())> tail;
  for (std::size_t first = 0; first < words.size(); first += step) {
    V c0 = hn::Set(Wide(), x);
    V c1 = hn::Set(Wide(), y);
    V c2 = hn::Add(order, hn::Set(Wide(), first / 4));
    V c3 = hn::Zero(Wide());
    for (std::uint32_t round = 0; round < 10; ++round) {
      const V k0 = hn::Set(Wide(), static_cast<std::uint32_t>(key[0] + round * 0x9E3779B9U));
      const V k1 = hn::Set(Wide(), static_cast<std::uint32_t>(key[1] + round * 0xBB67AE85U));
      const V product0 = product(c0, 0xD2511F53U);
      const V product1 = product(c2, 0xCD9E8D57U);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), k0);
      c1 = product1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), k1);
      c3 = product0;
    }
    const V front = pair(c0, c1);
    const V back = pair(c2, c3);
    const bool whole = first + step <= words.size();
    std::uint32_t* out = whole ? &words[first] : tail.data();
    hn::StoreU(hn::BitCast(Narrow(), hn::InterleaveLower(Wide(), front, back)), Narrow(), out);
    hn::StoreU(hn::BitCast(Narrow(), hn::InterleaveUpper(Wide(), front, back)), Narrow(),
               out + step / 2);
    if (!whole) std::copy_n(out, words.size() - first, &words[first]);
  }
}

#endif

}  // namespace
}  // namespace longca::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca {

HWY_EXPORT(fill);

void philox_fill(std::uint32_t x, std::uint32_t y, PhiloxKey key, std::span<std::uint32_t> words) {
  HWY_DYNAMIC_DISPATCH(fill)(x, y, key, words);
}

}  // namespace longca
#endif
