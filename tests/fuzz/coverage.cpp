// Hands the coverage of GCC's -fsanitize-coverage=trace-pc to libFuzzer, which takes Clang's
// counters only: every basic block calls a function, and its return address chooses one of
// libFuzzer's counters. What libFuzzer itself defines under that name does nothing, hence the
// linker's --wrap.
#include <array>
#include <cstdint>

extern "C" void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);

namespace {

constexpr int kCounterBits = 17;
std::array<std::uint8_t, std::size_t{1} << kCounterBits> counters;

struct Registration {
  Registration() {
    __sanitizer_cov_8bit_counters_init(counters.data(), counters.data() + counters.size());
  }
} registration;

}  // namespace

extern "C" void __wrap___sanitizer_cov_trace_pc() {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // Knuth's multiplicative hash
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  ++counters[(address * kGolden) >> (64 - kCounterBits)];
}
extern "C" void __sanitizer_cov_trace_cmpf(float /*a*/, float /*b*/) {}
extern "C" void __sanitizer_cov_trace_cmpd(double /*a*/, double /*b*/) {}
