#include "advise/degrees_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/advice_text.h"
#include "core/counted.h"
#include "core/number_runs.h"
#include "core/printable.h"
#include "report/format.h"
#include "report/terminal_text.h"

namespace longca::advise {
namespace {

/// Prints sentences, further lines indented.
class Sentences {
 public:
  Sentences(std::ostream& out, int width) : out_(out), width_(width) {}
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    out_ << with_hanging_indent(fmt::format(format, std::forward<Args>(args)...), width_, kGap)
         << '\n';
  }

 private:
  std::ostream& out_;
  int width_;
};

/// "812.3 ms", from ten seconds on "12.3 s".
std::string time_text(double ms) {
  return ms < 10'000 ? format_figure(ms) + " ms" : format_figure(ms / 1000) + " s";
}

std::int64_t replicas_of(const WeighedDegrees& weighed, const Choice& choice) {
  return weighed.training.gpus / degree_of(choice);
}

/// The fastest choice of another degree than the first one's; nullptr if there is none.
const Choice* next_degree(const WeighedDegrees& weighed) {
  const auto is_other = [&](const Choice& choice) {
    return degree_of(choice) != degree_of(weighed.choices.front());
  };
  const auto found = std::ranges::find_if(weighed.choices, is_other);
  return found == weighed.choices.end() ? nullptr : &*found;
}

/// What the first choice lacks memory for, or what would be faster with more of it.
void print_memory(const Sentences& out, const WeighedDegrees& weighed) {
  const Choice& first = weighed.choices.front();
  const std::int64_t degree = degree_of(first);
  if (!fits(weighed, degree)) {
    out.print("It keeps {} on a GPU of {}: recompute or offload, or take more GPUs.",
              format_bytes(kept_bytes(weighed, degree)), format_bytes(*weighed.memory_bytes));
    return;
  }
  const auto is_faster = [&](const Choice& choice) {
    return !fits(weighed, degree_of(choice)) && choice.time_ms.value < first.time_ms.value;
  };
  const auto faster = std::ranges::find_if(weighed.choices, is_faster);
  if (faster == weighed.choices.end()) return;
  out.print(
      "Degree {} with {} would take {} times as long, but keeps {} on a GPU of {}: for those who "
      "recompute or offload.",
      degree_of(*faster), printable(name_of_choice(*faster)),
      format_figure(faster->time_ms.value / first.time_ms.value),
      format_bytes(kept_bytes(weighed, degree_of(*faster))), format_bytes(*weighed.memory_bytes));
}

void print_what_to_use(const Sentences& out, const WeighedDegrees& weighed) {
  if (weighed.choices.empty()) {
    out.print(
        "No degree has an answer: neither a record nor a simulation tells how long a step "
        "takes.");
    return;
  }
  const Choice& first = weighed.choices.front();
  out.print("Use context-parallel degree {} ({} of {}) with {}: {} of attention a step.",
            degree_of(first), counted(replicas_of(weighed, first), "replica"),
            counted(degree_of(first), "GPU"), printable(name_of_choice(first)),
            time_text(first.time_ms.value));
  print_memory(out, weighed);
  const Choice* next = next_degree(weighed);
  if (next == nullptr || fits(weighed, degree_of(*next)) != fits(weighed, degree_of(first))) return;
  out.print("Next is degree {} with {}, {} times as long{}.", degree_of(*next),
            printable(name_of_choice(*next)),
            format_figure(next->time_ms.value / first.time_ms.value),
            next->tied ? ": a tie, since their intervals overlap" : "");
  if (next->tied) {
    out.print("Of tied degrees a lower one is simpler, and a higher one keeps less memory.");
  }
}

void print_job(const Sentences& out, const Evidence& evidence, const WeighedDegrees& weighed) {
  const Training& training = weighed.training;
  const bool is_mean = weighed.sampled > 1;
  out.print("A step is {}{} of {} tokens{}, through {}, on {} ({}).", is_mean ? "about " : "",
            counted(weighed.sequences, "sequence"), format_tokens(weighed.problem.tokens),
            is_mean ? " on average" : "", counted(training.layers, "layer"),
            counted(training.gpus, "GPU"), printable(evidence.card().name));
  out.print("Counted are attention and its communication alone, until the slowest replica ends.");
}

/// What is to be said of a choice beside its figures.
std::string remarks_of(const Choice& choice, const WeighedDegrees& weighed) {
  std::string text = basis_text(choice);
  const std::int64_t replicas = replicas_of(weighed, choice);
  if (weighed.sequences < replicas) {
    text += fmt::format("; {} of {} replicas idle", replicas - weighed.sequences, replicas);
  }
  if (!fits(weighed, degree_of(choice))) {
    text += fmt::format("; keeps more than {}: recompute or offload",
                        format_bytes(*weighed.memory_bytes));
  }
  return text;
}

/// The best choice of each degree, and up to two of it that are tied with the first.
constexpr int kRowsOfDegree = 3;
std::vector<const Choice*> shown_rows(const WeighedDegrees& weighed) {
  std::map<std::int64_t, int> shown;
  std::vector<const Choice*> rows;
  for (const Choice& choice : weighed.choices) {
    int& of_degree = shown[degree_of(choice)];
    if (of_degree > 0 && (!choice.tied || of_degree == kRowsOfDegree)) continue;
    ++of_degree;
    rows.push_back(&choice);
  }
  return rows;
}

/// A line for each remark: "  1 to 4: simulated on h200x8".
void print_remarks(std::ostream& out, const std::vector<std::string>& of_rows, int width) {
  std::vector<std::pair<std::string, std::set<int>>> remarks;
  for (int row = 0; const std::string& text : of_rows) {
    const auto known = std::ranges::find(remarks, text, [](const auto& r) { return r.first; });
    auto& rows =
        known != remarks.end() ? known->second : remarks.emplace_back(text, std::set<int>{}).second;
    rows.insert(++row);
  }
  for (const auto& [text, rows] : remarks) {
    constexpr int kIndent = 4;
    out << with_hanging_indent(fmt::format("  {}: {}", number_runs(rows), text), width, kIndent)
        << '\n';
  }
}

void print_rows(std::ostream& out, const WeighedDegrees& weighed, int screen) {
  const std::vector<const Choice*> rows = shown_rows(weighed);
  if (rows.empty()) return;
  std::vector<std::string> intervals;
  std::vector<std::string> remarks;
  std::size_t width = std::string_view("90 % interval").size();
  for (const Choice* row : rows) {
    intervals.push_back(
        fmt::format("{} to {}", format_figure(row->time_ms.low), format_figure(row->time_ms.high)));
    remarks.push_back(remarks_of(*row, weighed));
    width = std::max(width, intervals.back().size());
  }
  constexpr auto kRow = "  {:>2}  {:>6}  {:>9}  {:>{}}  {:>8}  {:>8}";
  const std::string heading = fmt::format(fmt::runtime(kRow), "", "degree", "ms a step",
                                          "90 % interval", width, "memory", "kept");
  out << with_remark(heading, "with", screen) << '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Choice& row = *rows[i];
    const std::string text =
        fmt::format(fmt::runtime(kRow), i + 1, degree_of(row), format_figure(row.time_ms.value),
                    intervals[i], width, row.peak_bytes ? format_bytes(row.peak_bytes->value) : "-",
                    format_bytes(kept_bytes(weighed, degree_of(row))));
    const std::string with = printable(name_of_choice(row)) + (row.tied ? ", tied" : "");
    out << with_remark(text, with, screen) << '\n';
  }
  if (const std::size_t more = weighed.choices.size() - rows.size(); more > 0) {
    out << fmt::format("  and {} more: --json has all\n", more);
  }
  print_remarks(out, remarks, screen);
  constexpr int kIndent = 4;
  for (const char* legend :
       {"  memory: of one call at its peak, per GPU",
        "  kept: q, k, v, o and LSE of all layers for their backward passes, per GPU"}) {
    out << with_hanging_indent(legend, screen, kIndent) << '\n';
  }
}

/// Why a degree has no choice, or what would make its place certain.
void print_open(std::ostream& out, const WeighedDegrees& weighed, int width) {
  for (const auto& [degree, advice] : weighed.by_degree) {
    const Choice* best = best_of(weighed, degree);
    if (best == nullptr) {
      print_refusals(out, fmt::format("degree {} cannot:", degree), advice.excluded, width);
      print_refusals(out, fmt::format("degree {} is not known:", degree), advice.unknown, width);
    }
    const bool is_open = best == nullptr || best->tied || best == &weighed.choices.front();
    if (is_open) {
      print_command(out, fmt::format("  to find out, degree {}: ", degree), advice.find_out, width);
    }
  }
}

}  // namespace

void print_degrees(std::ostream& out, const Evidence& evidence, const WeighedDegrees& weighed,
                   int width) {
  const Sentences sentences(out, width);
  print_what_to_use(sentences, weighed);
  print_job(sentences, evidence, weighed);
  out << '\n';
  sentences.print("{}",
                  printable(title_of({.problem = weighed.problem, .sequences = weighed.sampled})));
  print_rows(out, weighed, width);
  print_open(out, weighed, width);
  print_files(out, weighed.choices);
}

}  // namespace longca::advise
