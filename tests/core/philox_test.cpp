#include "core/philox.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace longca {
namespace {

// The known answers published with Random123 (kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, RunsAtCompileTime) {
  constexpr PhiloxCounter words = philox4x32_10({0, 0, 0, 0}, philox_key(0));
  static_assert(words[0] == 0x6627e8d5);
  EXPECT_EQ(philox_key(0x0123456789abcdefU), (PhiloxKey{0x89abcdef, 0x01234567}));
}

RC_GTEST_PROP(Philox, FillIsTheSameStream, (std::uint32_t x, std::uint32_t y, std::uint64_t seed)) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 300);
  std::vector<std::uint32_t> words(count);
  philox_fill(x, y, philox_key(seed), words);
  for (std::size_t i = 0; i < count; ++i) {
    const auto block = static_cast<std::uint32_t>(i / 4);
    RC_ASSERT(words[i] == philox4x32_10({x, y, block, 0}, philox_key(seed))[i % 4]);
  }
}

}  // namespace
}  // namespace longca
