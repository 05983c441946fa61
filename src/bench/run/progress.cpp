#include "bench/run/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "bench/launch/rank_machine.h"
#include "bench/suite/axes.h"
#include "core/format_figure.h"
#include "core/printable.h"

namespace longca {
namespace {

constexpr std::size_t kBarWidth = 24;

std::string describe_case(const Case& c) {
  std::string text = fmt::format("{} {} {} {}", c.kernel, c.mask, c.tokens, to_string(c.pass));
  if (!c.scheme) return text;
  return fmt::format("{} {} over {}, {}", *c.scheme, c.shard.value_or(""), c.ranks.value_or(1),
                     text);
}

std::string speed(double tflops) {
  return tflops < 1 ? fmt::format("{:.1f} GFLOP/s", tflops * 1e3)
                    : fmt::format("{:.1f} TFLOP/s", tflops);
}

bool failed(const Record& record) {
  return !record.status.ok() && record.status.code != StatusCode::unsupported;
}

}  // namespace

std::string describe_record(const Record& record, const std::string& axes) {
  std::string text =
      fmt::format("{}{}: {}", describe_case(record.c), axes, to_string(record.status.code));
  const auto time = record.metrics.find("time_ms");
  const auto tflops = record.metrics.find("tflops");
  if (time != record.metrics.end() && tflops != record.metrics.end()) {
    text += fmt::format(", {} ms, {}", format_figure(time->second), speed(tflops->second));
  }
  for (const char* name :
       {"error_o", "error_lse", "error_dq", "error_dk", "error_dv", "error_dsink"}) {
    const auto error = record.metrics.find(name);
    // Errors are shown only for cells without a time.
    if (error == record.metrics.end() || time != record.metrics.end()) continue;
    text += fmt::format(", {} {:.1e}", name, error->second);
  }
  if (!record.status.reason.empty()) text += ": " + record.status.reason;
  return text;
}

std::unordered_map<std::string, std::string> axes_that_tell_apart(std::span<const Case> cases) {
  std::unordered_map<std::string, std::vector<const Case*>> by_line;
  for (const Case& c : cases) by_line[describe_case(c)].push_back(&c);
  std::unordered_map<std::string, std::string> axes;
  for (const auto& [line, equal] : by_line) {
    if (equal.size() == 1) continue;
    for (const Axis& axis : axis_table()) {
      const auto first = full_text(axis, *equal.front());
      const auto is_same = [&](const Case* c) { return full_text(axis, *c) == first; };
      if (std::ranges::all_of(equal, is_same)) continue;
      for (const Case* c : equal) {
        if (const auto value = full_text(axis, *c)) {
          axes[c->key()] += fmt::format(" {}={}", axis.name, *value);
        }
      }
    }
  }
  return axes;
}

std::string format_duration(double seconds) {
  const std::int64_t s = std::llround(seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

Progress::Style Progress::style_of_stderr() {
  const char* term = std::getenv("TERM");
  const bool draws = term != nullptr && std::string_view(term) != "dumb";
  // mpirun gives its processes pseudo-terminals, and what it reads there may go into a file.
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1 && !find_mpi_launch();
  return draws && is_terminal ? Style::bar : Style::lines;
}

Progress::Progress(std::size_t cells, Style style, std::FILE* out)
    : cells_(cells), style_(style), out_(out), begin_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  clear_bar();
}

void Progress::started(const Case& c) {
  draw_bar(round_ + describe_case(c) + axes_of(c));
}

std::string Progress::axes_of(const Case& c) const {
  if (axes_.empty()) return "";
  const auto found = axes_.find(c.key());
  return found == axes_.end() ? "" : found->second;
}

void Progress::finished(const Record& record, const std::string& output) {
  ++done_;
  if (style_ == Style::silent) return;
  clear_bar();
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    fmt::print(out_, "{} | {}\n", record.c.kernel, printable(line));
  }
  if (style_ == Style::lines || failed(record)) {
    fmt::print(out_, "[{}/{}] {}{}\n", done_, cells_, round_,
               printable(describe_record(record, axes_of(record.c))));
  }
  std::fflush(out_);
}

void Progress::begin_round(int round, int rounds) {
  round_ = fmt::format("round {} of {}, ", round, rounds);
}

void Progress::draw_bar(const std::string& now) {
  if (style_ != Style::bar) return;
  const std::size_t filled = cells_ > 0 ? kBarWidth * done_ / cells_ : kBarWidth;
  std::string left;
  if (done_ > 0) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const double per_cell = elapsed.count() / static_cast<double>(done_);
    left = format_duration(per_cell * static_cast<double>(cells_ - done_)) + " left  ";
  }
  fmt::print(out_, "\r\033[K[{:-<{}}] {}/{}  {}{}", std::string(filled, '='), kBarWidth, done_,
             cells_, left, now);
  std::fflush(out_);
}

void Progress::clear_bar() {
  if (style_ == Style::bar) fmt::print(out_, "\r\033[K");
}

}  // namespace longca
