#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace longca {

/// Bitwise the stream of CPython's random.Random(seed): MT19937 seeded by init_by_array with the
/// seed's 32-bit words (M. Matsumoto and T. Nishimura, "Mersenne Twister", 1998).
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);

  /// random(): uniform in [0, 1) with 53 bits.
  double random();
  /// getrandbits(bits), 1 <= bits <= 64.
  std::uint64_t getrandbits(int bits);
  /// randint(low, high): both ends included; low <= high.
  std::int64_t randint(std::int64_t low, std::int64_t high);
  /// choices(range(n), cum_weights=...)[0]: index of the chosen weight. `cumulative` is non-empty.
  std::size_t choice(std::span<const double> cumulative);
  /// shuffle(values).
  void shuffle(std::vector<std::int64_t>& values);

 private:
  std::uint32_t next_word();
  std::uint64_t randbelow(std::uint64_t n);

  std::array<std::uint32_t, 624> state_;
  int index_ = 624;
};

}  // namespace longca
