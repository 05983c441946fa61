#include "bench/run/dry_run.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "attention/api/registry.h"
#include "attention/reference/drawn_tiles.h"
#include "attention/reference/verifier.h"
#include "bench/cell/mode_support.h"
#include "bench/cell/problem.h"
#include "bench/cell/steps.h"
#include "bench/cell/tensors.h"
#include "bench/measure/statistics.h"
#include "bench/record/environment.h"
#include "bench/suite/axes.h"
#include "bench/suite/scheme_axes.h"
#include "core/counted.h"
#include "core/printable.h"
#include "core/thread_pool.h"
#include "mask/generators.h"

namespace longca {
namespace {

using Row = std::vector<std::string>;

/// Axes with a column of their own; the others share one.
constexpr std::array kColumns = {"kernel", "mask", "tokens", "heads", "dim", "dtype", "pass"};

/// Max slices and kept blocks of all masks made for one listing.
constexpr double kMaxPieces = 1 << 23;

struct Totals {
  double flops = 0;
  std::int64_t max_bytes = 0;
  std::size_t unknown = 0;  ///< cells whose masks are not made
  double seconds = 0;       ///< of timing and verifying, if both take what their limits are
  std::string last_problem;
};

/// The cell may be timed until its limit; its problem is verified once for all of its cells.
void add_time(const Case& c, const RunLimits& limits, Totals& totals) {
  totals.seconds += limits.time_limit_s;
  if (std::string problem = c.problem_key(); problem != totals.last_problem) {
    totals.last_problem = std::move(problem);
    const VerifyBudget budget{limits.verify_budget_s};
    totals.seconds +=
        c.device == "cpu" ? budget.seconds / available_cpus() : device_seconds(budget);
  }
}

/// "0.4 s", "40 s", "12 min", "3.5 h".
std::string duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

/// Makes the masks of cells in their order, one for all cells of a problem.
class MaskMaker {
 public:
  /// The mask of the case; nullptr if it would cost too much.
  const GeneratedMask* mask_of(const Case& c) {
    if (std::string key = c.problem_key(); key != key_) {
      key_ = std::move(key);
      generated_.reset();
      // Blocks that inputs would select are replaced by as many random ones: needs no inputs.
      const MaskSpec spec = c.mask_spec();
      const double cost = estimate_pieces(spec);
      if (cost > left_) return nullptr;
      left_ -= cost;
      generated_ = generate_mask(spec);
    }
    return generated_ ? &*generated_ : nullptr;
  }

 private:
  double left_ = kMaxPieces;
  std::string key_;
  std::optional<GeneratedMask> generated_;
};

std::string other_axes(const Case& c) {
  std::string text;
  for (const Axis& axis : axis_table()) {
    if (std::find(kColumns.begin(), kColumns.end(), axis.name) != kColumns.end()) continue;
    if (const auto value = axis.text(c))
      text += (text.empty() ? "" : " ") + axis.name + "=" + *value;
  }
  return text;
}

/// The kernel's answer; over ranks the scheme's, since kernels see parts of the mask there.
Support supported(const Case& c, const GeneratedMask& generated) {
  if (Support mode = check_mode(c); !mode.ok()) return mode;
  if (c.scheme) {
    if (Support transport = check_transport(c); !transport.ok()) return transport;
    return find_scheme(*c.scheme).supports(parallel_problem(c, generated, kRanksPerNode));
  }
  const Problem problem = c.problem();
  return KernelRegistry::global().find(c.kernel, problem.device).supports(problem, generated.mask);
}

/// Bytes of inputs, outputs and reference; without the reference, whose estimate takes time per
/// token, where the others alone pass what the cell may take here.
std::int64_t estimate_bytes(const Case& c, const Mask& mask, const RunLimits& limits) {
  static const std::int64_t host_bytes = available_memory();
  const Problem problem = c.problem();
  const std::int64_t tensors = tensor_bytes(problem);
  std::int64_t limit = limits.memory_limit_mib << 20;
  if (limit == 0 && problem.device == DeviceKind::cpu) limit = host_bytes;
  if (limit > 0 && tensors > limit) return tensors;
  return tensors + estimate_verifier_bytes(problem, mask, VerifyBudget{limits.verify_budget_s});
}

Row row_of(const Case& c, const GeneratedMask* generated, const RunLimits& limits, Totals& totals) {
  Row row;
  for (const char* axis : kColumns) row.push_back(find_axis(axis).text(c).value_or(""));
  if (generated == nullptr) {
    ++totals.unknown;
    row.insert(row.end(), {"-", "-", other_axes(c)});
    return row;
  }
  const Mask& mask = generated->mask;
  const double flops = pass_flops(c.pass, c.problem(), mask);
  const std::int64_t bytes = estimate_bytes(c, mask, limits);
  totals.flops += flops;
  totals.max_bytes = std::max(totals.max_bytes, bytes);
  row.push_back(fmt::format("{:.3f}", flops / 1e9));
  row.push_back(fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)));
  row.push_back(other_axes(c));
  const Support support = supported(c, *generated);
  if (support.ok()) {
    add_time(c, limits, totals);
  } else {
    row.back() += fmt::format("  {}: {}", to_string(support.code), printable(support.reason));
  }
  return row;
}

/// Prints columns as wide as their widest entry, numbers right-aligned.
void print_rows(std::ostream& out, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const bool number = i >= kColumns.size() || std::string_view(kColumns[i]) == "tokens";
      fmt::print(out, number ? fmt::runtime("{:>{}}  ") : fmt::runtime("{:<{}}  "), row[i],
                 widths[i]);
    }
    fmt::print(out, "{}\n", row.back());
  }
}

void print_totals(std::ostream& out, const Totals& totals, std::size_t listed,
                  const SuiteSize& size, const RunLimits& limits, int rounds) {
  fmt::print(out, "{} of {}, {:.3f} GFLOP once through, at most {:.1f} MiB\n",
             counted(size.cells, "cell"), counted(size.problems, "problem"), totals.flops / 1e9,
             static_cast<double>(totals.max_bytes) / (1 << 20));
  if (const std::int64_t rest = size.cells - static_cast<std::int64_t>(listed); rest > 0) {
    fmt::print(out, "{} of them are not listed, and not in the figures\n", rest);
  }
  if (rounds > 1) {
    fmt::print(out, "{} rounds: {} cells to run\n", rounds, rounds * size.cells);
  }
  if (totals.seconds > 0) {
    const auto counted = static_cast<double>(listed - totals.unknown);
    fmt::print(out,
               "at least {} here, where each cell is timed for {} s and each problem verified for "
               "{} s of CPU time; inputs, plans, and {} repetitions that take longer come on top\n",
               duration(totals.seconds / counted * static_cast<double>(rounds * size.cells)),
               limits.time_limit_s, limits.verify_budget_s, StoppingRule::kMinSamples);
  }
  if (listed > totals.unknown && totals.seconds == 0) {
    fmt::print(out, "none of {} can run here\n",
               static_cast<std::int64_t>(listed) < size.cells ? "the listed" : "them");
  }
  if (totals.unknown > 0) {
    fmt::print(out, "{} of the listed have masks too large for a list, and no figures\n",
               totals.unknown);
  }
  for (const auto& [reason, count] : size.skipped) {
    fmt::print(out, "{} left out by the suite: {}\n", count, printable(reason));
  }
}

}  // namespace

void print_dry_run(std::ostream& out, const CaseList& list, const SuiteSize& size,
                   const RunLimits& limits, int rounds) {
  std::vector<Row> rows{Row(kColumns.begin(), kColumns.end())};
  rows.front().insert(rows.front().end(), {"GFLOP", "MiB", "axes"});
  Totals totals;
  MaskMaker masks;
  for (const Case& c : list.cases) rows.push_back(row_of(c, masks.mask_of(c), limits, totals));
  print_rows(out, rows);
  print_totals(out, totals, list.cases.size(), size, limits, rounds);
}

}  // namespace longca
