#include "advise/rank_advisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "report/data/repeat_command.h"
#include "report/format.h"

namespace longca::advise {
namespace {

/// The case of the pass, without what makes problems equal.
std::string variant_key(Case c) {
  c.pass = Pass::forward;
  c.deterministic.reset();
  return without_idle_seed(std::move(c)).key();
}

/// The cells of one variant, by pass.
struct Variant {
  std::map<Pass, const EvidenceCell*> passes;

  const EvidenceCell* at(Pass pass) const {
    const auto found = passes.find(pass);
    return found == passes.end() ? nullptr : found->second;
  }
};

/// `problem_key`: of the problem without an idle seed.
bool is_of_problem(const Case& c, const Case& problem, const std::string& problem_key) {
  return c.scheme && without_idle_seed(c).problem_key() == problem_key && c.mode == problem.mode &&
         c.deterministic.value_or(0) ==
             (c.pass == Pass::forward ? 0 : problem.deterministic.value_or(0));
}

/// What was asked for of kernels and schemes, as arguments, and the plug-ins of the former; nothing
/// if all are considered.
std::string options_of(std::span<const Case> allowed, const AdviceOptions& asked,
                       DeviceKind device) {
  const std::set<std::string> kernels(asked.kernels.begin(), asked.kernels.end());
  std::set<std::string> schemes;
  for (const Case& c : allowed) {
    if (c.scheme) schemes.insert(*c.scheme);
  }
  std::string options;
  if (!kernels.empty()) options += fmt::format(" -a kernel={}", fmt::join(kernels, ","));
  if (!schemes.empty()) options += fmt::format(" -a scheme={}", fmt::join(schemes, ","));
  return options + plugin_options(kernels, device);
}

/// Adds the variant's choice, or why there is none; nothing if a pass was not measured. Returns
/// whether it is excluded.
bool add_variant(const Variant& variant, const Case& problem, Advice& advice) {
  std::vector<Pass> passes{problem.pass};
  if (problem.pass == Pass::step && variant.at(Pass::step) == nullptr) {
    passes = {Pass::forward, Pass::backward};
  }
  std::optional<Choice> whole;
  for (const Pass pass : passes) {
    const EvidenceCell* cell = variant.at(pass);
    if (cell == nullptr) return false;
    if (!cell->status.ok()) {
      advice.excluded.push_back({name_over_ranks(cell->c), failure_text(*cell)});
      return true;
    }
    if (!cell->time_ms) return false;
    Choice part = measured_choice(*cell);
    Case step = cell->c;
    step.pass = problem.pass;
    whole = whole ? step_of(step, *whole, part) : std::move(part);
  }
  advice.choices.push_back(std::move(*whole));
  return false;
}

}  // namespace

std::string name_over_ranks(const Case& c) {
  return c.kernel + " with " + c.scheme.value_or("");
}

Advice advise_over_ranks(const Evidence& evidence, const Case& problem,
                         std::span<const Case> allowed, const AdviceOptions& options) {
  Advice advice{.problem = problem};
  std::set<std::string> wanted;
  for (const Case& c : allowed) wanted.insert(variant_key(c));
  std::map<std::string, Variant> variants;
  const std::string problem_key = without_idle_seed(problem).problem_key();
  for (const EvidenceCell& cell : evidence.cells()) {
    if (!is_of_problem(cell.c, problem, problem_key)) continue;
    const std::string key = variant_key(cell.c);
    if (!wanted.empty() && !wanted.contains(key)) continue;
    variants[key].passes[cell.c.pass] = &cell;
  }
  std::set<std::string> excluded;
  for (const auto& [key, variant] : variants) {
    const EvidenceCell& first = *variant.passes.begin()->second;
    const std::string lacking = why_not_needed(first.c, options);
    if (!lacking.empty()) {
      advice.excluded.push_back({name_over_ranks(first.c), lacking});
      excluded.insert(key);
    } else if (add_variant(variant, problem, advice)) {
      excluded.insert(key);
    }
  }
  if (options.objective == Objective::memory) {
    std::erase_if(advice.choices, [](const Choice& choice) { return !choice.peak_bytes; });
  }
  rank_choices(advice.choices, options.objective);
  const bool is_impossible = !wanted.empty() && std::ranges::includes(excluded, wanted);
  if (advice.choices.empty() && !is_impossible) {
    advice.unknown.push_back({excluded.empty() ? "every scheme" : "what is not named above",
                              "no record over so many ranks of this problem"});
    advice.find_out = command_over_ranks(problem, allowed, options);
  }
  return advice;
}

std::string command_over_ranks(const Case& problem, std::span<const Case> allowed,
                               const AdviceOptions& options) {
  Record record;
  record.c = problem;
  // `cp` without a suite measures bursts.
  return "longca cp" + repeat_command(record).problem +
         " -a pass=" + std::string(longca::to_string(problem.pass)) +
         (problem.mode == "burst" ? "" : " -a mode=" + problem.mode) +
         options_of(allowed, options, problem.problem().device);
}

}  // namespace longca::advise
