// How much of the CPU's multiply-add peak `flash` reaches, forward and backward, and what masks
// cost: the figures of docs/design/cpu-kernels.md. Everything is measured in one run, on all
// threads of the pool.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "attention/cpu/kernels.h"
#include "attention/inputs/inputs.h"
#include "core/thread_pool.h"
#include "fma_peak.h"
#include "mask/generators.h"

namespace longca {
namespace {

struct Row {
  const char* mask;
  std::int64_t tokens;
};
constexpr Row kRows[] = {{"full", 4096}, {"causal", 4096}, {"causal_document", 8192}};
constexpr int kHeads = 8;
constexpr int kHeadDim = 128;

/// GFLOP/s by area.
struct Rates {
  double forward = 0;
  double backward = 0;
};

/// The best of at least five calls and one second, as the peak is the best of its rounds: both are
/// what the machine can do while nobody else uses it.
template <typename Call>
double best_seconds(Call&& call) {
  call();
  double best = std::numeric_limits<double>::infinity();
  double total = 0;
  for (int calls = 0; calls < 5 || total < 1.0; ++calls) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    total += time.count();
    best = std::min(best, time.count());
  }
  return best;
}

Rates measure(const Row& row, DType dtype) {
  MaskSpec spec;
  spec.name = row.mask;
  spec.tokens = row.tokens;
  const Mask mask = generate_mask(spec).mask;
  const Problem problem{.tokens_q = row.tokens,
                        .tokens_k = row.tokens,
                        .heads_q = kHeads,
                        .heads_k = kHeads,
                        .head_dim = kHeadDim,
                        .dtype = dtype,
                        .backward = true};
  const Inputs in = make_inputs(problem, 1);
  const auto tensor = [&] { return HostTensor(dtype, row.tokens, kHeads, kHeadDim); };
  const HostTensor o = tensor(), dq = tensor(), dk = tensor(), dv = tensor();
  const HostLse lse(kHeads, row.tokens);
  const auto plan = make_flash_cpu()->plan(problem, mask);
  const double forward = best_seconds([&] {
    plan->forward(
        {.q = in.q.view(), .k = in.k.view(), .v = in.v.view(), .o = o.view(), .lse = lse.view()});
  });
  const double backward = best_seconds([&] {
    plan->backward({.dout = in.dout.view(),
                    .q = in.q.view(),
                    .k = in.k.view(),
                    .v = in.v.view(),
                    .o = o.view(),
                    .lse = lse.view(),
                    .dq = dq.view(),
                    .dk = dk.view(),
                    .dv = dv.view()});
  });
  return {forward_flops(problem, mask) / forward * 1e-9,
          backward_flops(problem, mask) / backward * 1e-9};
}

constexpr const char* kHeader =
    "dtype     mask             tokens  fwd GF/s  bwd GF/s  of peak   of peak  of full   of full  "
    "of f32   of f32\n";

void print_row(DType dtype, const Row& row, const Rates& now, double peak, const Rates& full,
               const Rates& base) {
  fmt::print(
      "{:<9} {:<16} {:>6} {:>9.1f} {:>9.1f} {:>7.1f}% {:>8.1f}% {:>8.2f} {:>9.2f} {:>7.2f} "
      "{:>8.2f}\n",
      to_string(dtype), row.mask, row.tokens, now.forward, now.backward, 100 * now.forward / peak,
      100 * now.backward / peak, now.forward / full.forward, now.backward / full.backward,
      now.forward / base.forward, now.backward / base.backward);
}

void print_table(const FmaPeak& peak) {
  fmt::print("{}", kHeader);
  std::vector<Rates> base;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const double limit =
        dtype == DType::bfloat16 && peak.bfloat16 > 0 ? peak.bfloat16 : peak.float32;
    Rates full;
    for (std::size_t i = 0; i < std::size(kRows); ++i) {
      const Rates now = measure(kRows[i], dtype);
      if (dtype == DType::float32) base.push_back(now);
      if (i == 0) full = now;
      print_row(dtype, kRows[i], now, limit, full, base[i]);
    }
  }
}

}  // namespace
}  // namespace longca

int main() {
  longca::ThreadPool& pool = longca::ThreadPool::global();
  const longca::FmaPeak peak = longca::measure_fma_peak(pool);
  fmt::print("peak of {} threads: float32 {:.1f} GFLOP/s, bfloat16 dot products {:.1f} GFLOP/s\n",
             pool.threads(), peak.float32, peak.bfloat16);
  longca::print_table(peak);
}
