#include "bench/run/dry_run.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "attention/api/registry.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "bench/cell/steps.h"
#include "bench/cell/tensors.h"
#include "bench/suite/axes.h"
#include "bench/suite/scheme_axes.h"
#include "mask/generators.h"

namespace longca {
namespace {

using Row = std::vector<std::string>;

/// Axes with a column of their own; the others share one.
constexpr std::array kColumns = {"kernel", "mask", "tokens", "heads", "dim", "dtype", "pass"};

struct Totals {
  double flops = 0;
  std::int64_t max_bytes = 0;
  std::size_t problems = 0;
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

/// Asks the kernel; over ranks the scheme, since kernels see parts of the mask there.
Support supported(const Case& c, const GeneratedMask& generated) {
  if (c.scheme) {
    return find_scheme(*c.scheme).supports(parallel_problem(c, generated, kRanksPerNode));
  }
  const Problem problem = c.problem();
  const Kernel& kernel = KernelRegistry::global().find(c.kernel, problem.device);
  if (Support answer = kernel.supports(problem, generated.mask); !answer.ok()) return answer;
  return inputs_offered(problem.dtype);
}

Row row_of(const Case& c, const GeneratedMask& generated, const RunLimits& limits, Totals& totals) {
  const Mask& mask = generated.mask;
  const Problem problem = c.problem();
  const double flops = pass_flops(problem, mask);
  const std::int64_t bytes =
      tensor_bytes(problem) +
      estimate_verifier_bytes(problem, mask, VerifyBudget{limits.verify_budget_s});
  totals.flops += flops;
  totals.max_bytes = std::max(totals.max_bytes, bytes);
  Row row;
  for (const char* axis : kColumns) row.push_back(find_axis(axis).text(c).value_or(""));
  row.push_back(fmt::format("{:.3f}", flops / 1e9));
  row.push_back(fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)));
  row.push_back(other_axes(c));
  const Support support = supported(c, generated);
  if (!support.ok()) row.back() += fmt::format("  {}: {}", to_string(support.code), support.reason);
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

void print_skipped(std::ostream& out, const CaseList& list) {
  std::map<std::string, std::size_t> reasons;
  for (const auto& skipped : list.skipped) ++reasons[skipped.reason];
  for (const auto& [reason, count] : reasons) {
    fmt::print(out, "{} left out by the suite: {}\n", count, reason);
  }
}

}  // namespace

void print_dry_run(std::ostream& out, const CaseList& list, const RunLimits& limits) {
  std::vector<Row> rows{Row(kColumns.begin(), kColumns.end())};
  rows.front().insert(rows.front().end(), {"GFLOP", "MiB", "axes"});
  Totals totals;
  std::string problem_key;
  std::optional<GeneratedMask> generated;
  for (const Case& c : list.cases) {
    if (c.problem_key() != problem_key) {
      problem_key = c.problem_key();
      generated =
          generate_mask(c.mask_spec());  // for selected blocks, as many drawn ones: needs no inputs
      ++totals.problems;
    }
    rows.push_back(row_of(c, *generated, limits, totals));
  }
  print_rows(out, rows);
  fmt::print(out, "{} cells of {} problems, {:.3f} GFLOP once through, at most {:.1f} MiB\n",
             list.cases.size(), totals.problems, totals.flops / 1e9,
             static_cast<double>(totals.max_bytes) / (1 << 20));
  print_skipped(out, list);
}

}  // namespace longca
