#include "core/python_random.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

constexpr std::size_t kWords = 624;
constexpr std::size_t kShift = 397;

constexpr std::uint32_t twist(std::uint32_t upper, std::uint32_t lower) {
  const std::uint32_t mixed = (upper & 0x80000000U) | (lower & 0x7fffffffU);
  return (mixed >> 1) ^ ((lower & 1U) != 0 ? 0x9908b0dfU : 0U);
}

/// init_genrand of the MT19937 reference code.
void seed_by_word(std::array<std::uint32_t, kWords>& state, std::uint32_t seed) {
  state[0] = seed;
  for (std::uint32_t i = 1; i < kWords; ++i) {
    const std::uint32_t previous = state[i - 1];
    state[i] = 1812433253U * (previous ^ (previous >> 30)) + i;
  }
}

/// init_by_array of the MT19937 reference code; `length` is 1 or 2 here.
void seed_by_array(std::array<std::uint32_t, kWords>& state,
                   const std::array<std::uint32_t, 2>& key, std::uint32_t length) {
  seed_by_word(state, 19650218U);
  std::size_t i = 1;
  std::uint32_t j = 0;
  const auto step = [&](std::uint32_t factor) {
    const std::uint32_t previous = state[i - 1];
    return state[i] ^ ((previous ^ (previous >> 30)) * factor);
  };
  const auto advance = [&] {
    if (++i == kWords) {
      state[0] = state[kWords - 1];
      i = 1;
    }
  };
  for (std::size_t n = 0; n < kWords; ++n) {
    state[i] = step(1664525U) + key[j] + j;
    j = (j + 1) % length;
    advance();
  }
  for (std::size_t n = 1; n < kWords; ++n) {
    state[i] = step(1566083941U) - static_cast<std::uint32_t>(i);
    advance();
  }
  state[0] = 0x80000000U;
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  seed_by_array(state_, key, key[1] == 0 ? 1 : 2);
}

std::uint32_t PythonRandom::next_word() {
  if (index_ == static_cast<int>(kWords)) {
    for (std::size_t i = 0; i < kWords; ++i) {
      state_[i] = state_[(i + kShift) % kWords] ^ twist(state_[i], state_[(i + 1) % kWords]);
    }
    index_ = 0;
  }
  std::uint32_t word = state_[static_cast<std::size_t>(index_++)];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

double PythonRandom::random() {
  const std::uint32_t high = next_word() >> 5;
  const std::uint32_t low = next_word() >> 6;
  return (static_cast<double>(high) * 67108864.0 + static_cast<double>(low)) / 9007199254740992.0;
}

std::uint64_t PythonRandom::getrandbits(int bits) {
  LONGCA_CHECK(bits >= 1 && bits <= 64, "getrandbits of {} bits", bits);
  if (bits <= 32) return next_word() >> (32 - bits);
  const std::uint64_t low = next_word();
  const std::uint64_t high = next_word() >> (64 - bits);
  return low | (high << 32);
}

std::uint64_t PythonRandom::randbelow(std::uint64_t n) {
  const int bits = static_cast<int>(std::bit_width(n));
  std::uint64_t value = getrandbits(bits);
  while (value >= n) value = getrandbits(bits);
  return value;
}

std::int64_t PythonRandom::randint(std::int64_t low, std::int64_t high) {
  LONGCA_CHECK(low <= high, "randint({}, {})", low, high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  LONGCA_CHECK(span != 0, "randint({}, {}) spans all 64 bits", low, high);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + randbelow(span));
}

std::size_t PythonRandom::choice(std::span<const double> cumulative) {
  LONGCA_CHECK(!cumulative.empty(), "a choice among no weights");
  const double point = random() * cumulative.back();
  // CPython's bisect excludes the last index, so rounding cannot choose past the end.
  const auto last = cumulative.end() - 1;
  return static_cast<std::size_t>(std::upper_bound(cumulative.begin(), last, point) -
                                  cumulative.begin());
}

void PythonRandom::shuffle(std::vector<std::int64_t>& values) {
  for (std::size_t i = values.size(); i-- > 1;) {
    std::swap(values[i], values[static_cast<std::size_t>(randbelow(i + 1))]);
  }
}

}  // namespace longca
