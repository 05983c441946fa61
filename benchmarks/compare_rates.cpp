// How often `longca compare` errs on records whose truth is known: the table of
// docs/design/compare.md.
//
//   compare_rates [CELLS [CHANGE_PCT]]      default: 20000 of each kind, 3

#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "bench/compare/synthetic_rounds.h"

namespace {

constexpr int kCellsOfRun = 500;

void print_row(const std::string& name, std::span<const longca::testing::NoiseKind> kinds,
               int cells, double change) {
  std::mt19937_64 random(42);
  longca::testing::ErrorRates rates;
  for (int done = 0; done < cells; done += kCellsOfRun) {
    longca::testing::add_rates(kinds, kCellsOfRun, change, random, rates);
  }
  fmt::print("| {} | {:.2f} % | {:.1f} % | {} | {:.1f} % |\n", name, 100 * rates.false_rate(),
             100 * rates.found_rate(), rates.wrong_way, 100 * rates.coverage());
}

}  // namespace

int main(int argc, char** argv) {
  const int cells = argc > 1 ? std::atoi(argv[1]) : 20'000;
  const double change = 1 + (argc > 2 ? std::atof(argv[2]) : 3) / 100;
  fmt::print("| noise | identical cells called | {:+.3g} % found | wrong way round | coverage |\n",
             100 * (change - 1));
  fmt::print("|---|---|---|---|---|\n");
  const auto kinds = longca::testing::noise_kinds();
  for (const auto& kind : kinds) print_row(kind.name, {&kind, 1}, cells, change);
  print_row("all of these in one file", kinds, cells, change);
}
