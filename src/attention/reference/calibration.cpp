#include <time.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "attention/reference/passes.h"
#include "attention/reference/selection.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 256;
constexpr int kDim = 128;

/// CPU time of this thread: other programs on the machine do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Real>
void run_all_passes(const ReferenceProblem& problem) {
  TilePasses<Real> passes(problem);
  std::vector<Real> a(kTile * kDim), b(kTile * kDim);
  std::vector<RowStatistics<Real>> rows(tile_count(kTokens));
  for (std::int64_t tile = 0; tile < tile_count(kTokens); ++tile) {
    passes.forward(0, tile, a.data(), rows[tile]);
    passes.query_gradient(0, tile, rows[tile], a.data());
  }
  for (std::int64_t tile = 0; tile < tile_count(kTokens); ++tile) {
    passes.key_gradients(
        0, tile, [&](std::int64_t, std::int64_t query_tile) { return rows[query_tile]; }, a.data(),
        b.data());
  }
}

double measure() {
  Problem shape;
  shape.tokens_q = shape.tokens_k = kTokens;
  shape.head_dim = kDim;
  const Inputs inputs = make_inputs(shape, 0);
  const MaskSlice all{0, kTokens, 0, kTokens, MaskSliceType::full};
  const ReferenceProblem problem{shape, Mask::from_slices(kTokens, kTokens, {all}), &inputs};
  double seconds = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const double begin = cpu_seconds();
    run_all_passes<double>(problem);
    run_all_passes<float>(problem);
    seconds = std::min(seconds, cpu_seconds() - begin);
  }
  return reference_flops(kTokens * kTokens, kDim) / seconds / 1e9;
}

}  // namespace

double measured_reference_gflops() {
  static const double gflops = measure();
  return gflops;
}

}  // namespace longca
