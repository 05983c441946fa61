#include "advise/advice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/suite/axes.h"
#include "core/counted.h"
#include "core/printable.h"
#include "mask/own_file.h"
#include "report/format.h"
#include "report/terminal_text.h"

namespace longca::advise {
namespace {

/// The columns of a row before its basis.
struct ChoiceColumns {
  int name = 6;
  int time = 9;
  int interval = 19;
  int memory = 9;
};

using ChoiceTexts = std::array<std::string, 5>;  ///< rank, name, time, interval, memory

std::string row_text(const ChoiceTexts& texts, const ChoiceColumns& columns) {
  return fmt::format(
      "  {:>2}  {}{}  {:>{}}  {:>{}}  {:>{}}", texts[0], texts[1],
      std::string(static_cast<std::size_t>(std::max(0, columns.name - columns_of(texts[1]))), ' '),
      texts[2], columns.time, texts[3], columns.interval, texts[4], columns.memory);
}

std::vector<ChoiceTexts> texts_of(const Advice& advice) {
  std::vector<ChoiceTexts> rows{{"", "kernel", "ms", "90 % interval", "memory"}};
  for (const Choice& choice : advice.choices) {
    rows.push_back({fmt::format("{}", rows.size()), printable(name_of_choice(choice)),
                    format_figure(choice.time_ms.value),
                    fmt::format("{} to {}", format_figure(choice.time_ms.low),
                                format_figure(choice.time_ms.high)),
                    choice.peak_bytes ? format_bytes(choice.peak_bytes->value) : "-"});
  }
  return rows;
}

/// Wide ones; no wider than their texts where they leave a basis no room.
ChoiceColumns columns_for(const std::vector<ChoiceTexts>& rows, int width) {
  constexpr int kBasis = 12;  ///< "interpolated"
  ChoiceColumns wide;
  ChoiceColumns narrow{.time = 0, .interval = 0, .memory = 0};
  for (const ChoiceTexts& row : rows) {
    wide.name = narrow.name = std::max(wide.name, columns_of(row[1]));
    narrow.time = std::max(narrow.time, columns_of(row[2]));
    narrow.interval = std::max(narrow.interval, columns_of(row[3]));
    narrow.memory = std::max(narrow.memory, columns_of(row[4]));
  }
  return columns_of(row_text(rows.front(), wide)) + kGap + kBasis <= width ? wide : narrow;
}

void print_choices(std::ostream& out, const Advice& advice, int width) {
  const std::vector<ChoiceTexts> rows = texts_of(advice);
  const ChoiceColumns columns = columns_for(rows, width);
  out << with_remark(row_text(rows.front(), columns), "basis", width) << '\n';
  for (std::size_t i = 0; i < advice.choices.size(); ++i) {
    const Choice& choice = advice.choices[i];
    out << with_remark(row_text(rows[i + 1], columns),
                       basis_text(choice) + (choice.tied ? ", tied" : ""), width)
        << '\n';
  }
}

void print_one(std::ostream& out, const Advice& advice, int width) {
  out << '\n' << with_hanging_indent(printable(title_of(advice)), width, kGap) << '\n';
  if (!advice.choices.empty()) {
    print_choices(out, advice, width);
  } else if (advice.unknown.empty()) {
    out << "  No kernel can do it.\n";
  } else {
    out << "  No record tells what to use.\n";
  }
  print_refusals(out, "cannot:", advice.excluded, width);
  print_refusals(out, "not known:", advice.unknown, width);
  print_command(out, "  to find out: ", advice.find_out, width);
}

std::string percent(double share) {
  return fmt::format("{:.1f}", share * 100);
}

/// One of the two halves of an evaluation's table, which stand side by side where there is room.
struct ScoreColumns {
  std::string heading;
  std::string (*row)(const Score& score);  ///< "" where there is nothing to say
};

std::string errors_row(const Score& score) {
  if (score.cells == 0) {
    return fmt::format("{:>6} {:>7} {:>7} {:>9} {:>7}", 0, "-", "-", "-", "-");
  }
  return fmt::format("{:>6} {:>7} {:>7} {:>9} {:>7}", score.cells, percent(score.median_error),
                     percent(score.p90_error), percent(score.coverage),
                     score.peaks > 0 ? percent(score.p90_memory_error) : "-");
}

std::string choices_row(const Score& score) {
  if (score.choices == 0) return "";
  return fmt::format(" {:>8} {:>7} {:>7} {:>7} {:>8}", score.choices, percent(score.mean_regret),
                     percent(score.p95_regret), percent(score.right), percent(score.right_or_tied));
}

std::vector<ScoreColumns> score_columns() {
  return {
      {fmt::format("{:>6} {:>7} {:>7} {:>9} {:>7}", "cells", "median", "P90", "coverage", "memory"),
       errors_row},
      {fmt::format(" {:>8} {:>7} {:>7} {:>7} {:>8}", "choices", "regret", "P95", "right",
                   "or tied"),
       choices_row}};
}

constexpr int kNameWidth = 26;

/// Prints these halves of a table, side by side; a row only where one of them says something.
void print_scores(std::ostream& out, const std::vector<NamedScore>& scores,
                  std::span<const ScoreColumns> halves) {
  const auto print_row = [&](const std::string& name, const std::string& figures) {
    if (!figures.empty()) out << fmt::format("  {:<{}}{}\n", name, kNameWidth, figures);
  };
  std::string headings;
  for (const ScoreColumns& half : halves) headings += half.heading;
  print_row("", headings);
  for (const NamedScore& named : scores) {
    std::string figures;
    for (const ScoreColumns& half : halves) figures += half.row(named.score);
    print_row(printable(named.name), figures);
  }
}

void print_held_out(std::ostream& out, const HeldOut& one, int width) {
  const Score all = score_of(one.cells, one.choices);
  std::vector<NamedScore> scores{{"all", all}};
  for (const auto& named : {scores_by_kernel(one), scores_by_mask(one)}) {
    scores.insert(scores.end(), named.begin(), named.end());
  }
  const std::vector<ScoreColumns> halves = score_columns();
  int whole = kGap + kNameWidth;
  for (const ScoreColumns& half : halves) whole += columns_of(half.heading);
  out << '\n' << to_string(one.left_out) << " left out\n";
  if (whole <= width) {
    print_scores(out, scores, halves);
  } else {
    for (const ScoreColumns& half : halves) print_scores(out, scores, {&half, 1});
  }
  out << fmt::format("  no answer to {} of {} problems; {} choices cannot run\n", all.no_answer,
                     all.choices, all.could_not_run);
}

/// The words of a command before which a shell's line may end: options, none within quotes.
std::vector<std::string> words_of_command(const std::string& command) {
  std::vector<std::string> words{""};
  bool is_quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (!is_quoted && command.compare(i, 2, " -") == 0) {
      words.emplace_back();
      continue;
    }
    if (!is_quoted && command[i] == '\\' && i + 1 < command.size()) {
      words.back() += command[i++];
    } else if (command[i] == '\'') {
      is_quoted = !is_quoted;
    }
    words.back() += command[i];
  }
  return words;
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
  // The records of such a cell are all on one side of it.
  const bool is_beyond = choice.situation == Situation::beyond_lengths;
  std::string text{is_beyond ? "extrapolated" : to_string(choice.basis)};
  if (choice.c.platform) text += " on " + *choice.c.platform;
  if (choice.situation) text += fmt::format(" {}", describe(*choice.situation));
  return text;
}

std::string with_remark(const std::string& row, std::string_view remark, int width) {
  constexpr int kIndent = 6;
  if (columns_of(row) + kGap + columns_of(remark) <= width) {
    return row + std::string(kGap, ' ') + std::string(remark);
  }
  return row + '\n' +
         with_hanging_indent(std::string(kIndent, ' ') + std::string(remark), width,
                             kIndent + kGap);
}

void print_refusals(std::ostream& out, std::string_view title, std::vector<Refusal> refusals,
                    int width) {
  std::erase_if(refusals, [](const Refusal& refusal) { return refusal.reason == kNotAskedFor; });
  if (refusals.empty()) return;
  constexpr int kIndent = 8;
  out << "  " << title << '\n';
  for (const Refusal& refusal : refusals) {
    const std::string line = fmt::format("      {}: {}", refusal.kernel, refusal.reason);
    out << with_hanging_indent(printable(line), width, kIndent) << '\n';
  }
}

void print_command(std::ostream& out, const std::string& title, const std::string& command,
                   int width) {
  if (command.empty()) return;
  constexpr int kIndent = 6;
  constexpr std::string_view kGoesOn = " \\";
  std::string line = title;
  bool is_first = true;
  for (const std::string& word : words_of_command(printable(command))) {
    const bool fits =
        columns_of(line) + 1 + columns_of(word) + static_cast<int>(kGoesOn.size()) <= width;
    if (is_first || fits) {
      line += (is_first ? "" : " ") + word;
    } else {
      out << line << kGoesOn << '\n';
      line = std::string(kIndent, ' ') + word;
    }
    is_first = false;
  }
  out << line << '\n';
}

void print_files(std::ostream& out, std::span<const Choice> choices) {
  std::set<std::string> files;
  for (const Choice& choice : choices) files.insert(choice.files.begin(), choice.files.end());
  if (files.empty()) return;
  out << "\nfrom the records in\n";
  for (const std::string& file : files) out << "  " << printable(file) << '\n';
}

void print_advice(std::ostream& out, const Evidence& evidence, std::span<const Advice> advice,
                  int width) {
  out << fmt::format("{}: {}\n", printable(evidence.card().name),
                     counted(evidence.cells().size(), "cell"));
  std::vector<Choice> choices;
  for (const Advice& one : advice) {
    print_one(out, one, width);
    choices.insert(choices.end(), one.choices.begin(), one.choices.end());
  }
  print_files(out, choices);
}

void print_evaluation(std::ostream& out, const Evidence& evidence,
                      std::span<const HeldOut> held_out, int width) {
  const std::string heading =
      fmt::format("{}: {}. Errors (of memory: P90), coverage, regret and right choices in %",
                  printable(evidence.card().name), counted(evidence.cells().size(), "cell"));
  out << with_hanging_indent(heading, width, kGap) << '\n';
  for (const HeldOut& one : held_out) print_held_out(out, one, width);
}

}  // namespace longca::advise
