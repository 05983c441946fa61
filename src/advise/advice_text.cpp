#include "advise/advice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/suite/axes.h"
#include "core/counted.h"
#include "core/printable.h"
#include "mask/own_file.h"
#include "report/format.h"

namespace longca::advise {
namespace {

void print_choices(std::ostream& out, const Advice& advice) {
  int width = 6;
  for (const Choice& choice : advice.choices) {
    width = std::max(width, columns_of(name_of_choice(choice)));
  }
  out << fmt::format("  {:>2}  {:<{}}  {:>9}  {:>19}  {:>9}  basis\n", "", "kernel", width, "ms",
                     "90 % interval", "memory");
  int rank = 0;
  for (const Choice& choice : advice.choices) {
    const std::string interval = fmt::format("{} to {}", format_figure(choice.time_ms.low),
                                             format_figure(choice.time_ms.high));
    out << fmt::format("  {:>2}  {:<{}}  {:>9}  {:>19}  {:>9}  {}\n", ++rank,
                       printable(name_of_choice(choice)), width,
                       format_figure(choice.time_ms.value), interval,
                       choice.peak_bytes ? format_bytes(choice.peak_bytes->value) : "-",
                       basis_text(choice) + (choice.tied ? ", tied" : ""));
  }
}

void print_one(std::ostream& out, const Advice& advice) {
  out << '\n' << printable(title_of(advice)) << '\n';
  if (advice.choices.empty()) {
    out << "  No record tells what to use.\n";
  } else {
    print_choices(out, advice);
  }
  print_refusals(out, "cannot:", advice.excluded);
  print_refusals(out, "not known:", advice.unknown);
  if (!advice.find_out.empty()) out << "  to find out: " << printable(advice.find_out) << '\n';
}

std::string percent(double share) {
  return fmt::format("{:.1f}", share * 100);
}

void print_score(std::ostream& out, const std::string& name, const Score& score) {
  out << fmt::format("  {:<26}", printable(name));
  if (score.cells > 0) {
    out << fmt::format("{:>6} {:>7} {:>7} {:>9} {:>7}", score.cells, percent(score.median_error),
                       percent(score.p90_error), percent(score.coverage),
                       score.peaks > 0 ? percent(score.p90_memory_error) : "-");
  } else {
    out << fmt::format("{:>6} {:>7} {:>7} {:>9} {:>7}", 0, "-", "-", "-", "-");
  }
  if (score.choices > 0) {
    out << fmt::format(" {:>8} {:>7} {:>7} {:>7} {:>8}", score.choices, percent(score.mean_regret),
                       percent(score.p95_regret), percent(score.right),
                       percent(score.right_or_tied));
  }
  out << '\n';
}

}  // namespace

std::string title_of(const Advice& advice) {
  const Case& problem = advice.problem;
  std::string text{without_hash(problem.mask)};
  for (const Axis& axis : axis_table()) {
    const bool differs = axis.name == "lengths" && advice.sequences > 1;
    if (!shapes_problem(axis) || axis.name == "mask" || differs) continue;
    const auto value = axis.text(problem);
    if (!value) continue;
    const bool is_length = axis.name == "tokens";
    text += fmt::format(", {} {}", axis.name,
                        is_length ? format_tokens(problem.tokens) : without_hash(*value));
  }
  if (problem.mode != "burst") text += ", mode " + problem.mode;
  if (advice.sequences > 1) text += fmt::format(", mean of {} sequences", advice.sequences);
  return fmt::format("{}: {}{}", text, to_string(problem.pass),
                     problem.deterministic.value_or(0) != 0 ? ", deterministic" : "");
}

std::string basis_text(const Choice& choice) {
  std::string text{to_string(choice.basis)};
  if (choice.c.platform) text += " on " + *choice.c.platform;
  if (choice.situation) text += fmt::format(" {}", describe(*choice.situation));
  return text;
}

void print_refusals(std::ostream& out, std::string_view title, std::vector<Refusal> refusals) {
  std::erase_if(refusals, [](const Refusal& refusal) { return refusal.reason == kNotAskedFor; });
  if (refusals.empty()) return;
  out << "  " << title << '\n';
  for (const Refusal& refusal : refusals) {
    out << fmt::format("      {}: {}\n", printable(refusal.kernel), printable(refusal.reason));
  }
}

void print_files(std::ostream& out, std::span<const Choice> choices) {
  std::set<std::string> files;
  for (const Choice& choice : choices) files.insert(choice.files.begin(), choice.files.end());
  if (files.empty()) return;
  out << "\nfrom the records in\n";
  for (const std::string& file : files) out << "  " << printable(file) << '\n';
}

void print_advice(std::ostream& out, const Evidence& evidence, std::span<const Advice> advice) {
  out << fmt::format("{}: {}\n", printable(evidence.card().name),
                     counted(evidence.cells().size(), "cell"));
  std::vector<Choice> choices;
  for (const Advice& one : advice) {
    print_one(out, one);
    choices.insert(choices.end(), one.choices.begin(), one.choices.end());
  }
  print_files(out, choices);
}

void print_evaluation(std::ostream& out, const Evidence& evidence,
                      std::span<const HeldOut> held_out) {
  out << fmt::format("{}: {}. Errors (of memory: P90), coverage, regret and right choices in %\n",
                     printable(evidence.card().name), counted(evidence.cells().size(), "cell"));
  for (const HeldOut& one : held_out) {
    const Score all = score_of(one.cells, one.choices);
    out << fmt::format(
        "\n{} left out\n  {:<26}{:>6} {:>7} {:>7} {:>9} {:>7} {:>8} {:>7} {:>7} {:>7} {:>8}\n",
        to_string(one.left_out), "", "cells", "median", "P90", "coverage", "memory", "choices",
        "regret", "P95", "right", "or tied");
    print_score(out, "all", all);
    for (const NamedScore& named : scores_by_kernel(one)) print_score(out, named.name, named.score);
    for (const NamedScore& named : scores_by_mask(one)) print_score(out, named.name, named.score);
    out << fmt::format("  no answer to {} of {} problems; {} choices cannot run\n", all.no_answer,
                       all.choices, all.could_not_run);
  }
}

}  // namespace longca::advise
