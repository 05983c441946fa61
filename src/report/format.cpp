#include "report/format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/record/origin.h"
#include "core/counted.h"

namespace longca {

std::string format_tokens(std::int64_t tokens) {
  constexpr std::int64_t kKibi = 1024;
  if (tokens >= kKibi * kKibi && tokens % (kKibi * kKibi) == 0) {
    return fmt::format("{}M", tokens / (kKibi * kKibi));
  }
  if (tokens >= kKibi && tokens % kKibi == 0) return fmt::format("{}K", tokens / kKibi);
  return fmt::format("{}", tokens);
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  const int decimals = unit == 0 || std::abs(bytes) >= 100 ? 0 : 1;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string format_error(double error) {
  return fmt::format("{:.1e}", error);
}

std::string format_percent(double percent) {
  return fmt::format("{:.0f}", std::round(percent) + 0.0);
}

std::string format_spread(double percent) {
  return fmt::format("{:.1f}%", percent);
}

int columns_of(std::string_view text) {
  const auto begins_character = [](unsigned char c) { return (c & 0xc0) != 0x80; };
  return static_cast<int>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string with_hanging_indent(std::string_view text, int width, int indent) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  std::string out(text.substr(0, start));
  text.remove_prefix(start);
  int columns = static_cast<int>(start);
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!is_first && columns + 1 + columns_of(word) > width) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      columns = indent;
    } else if (!is_first) {
      out += ' ';
      ++columns;
    }
    out += word;
    columns += columns_of(word);
    is_first = false;
  }
  return out;
}

RateUnit rate_unit(double largest_tflops) {
  return largest_tflops < 1 ? RateUnit{"GFLOP/s", 1000} : RateUnit{"TFLOP/s", 1};
}

std::span<const StatusCode> marked_statuses() {
  static constexpr std::array kMarked = {StatusCode::unsupported, StatusCode::unavailable,
                                         StatusCode::oom,         StatusCode::wrong,
                                         StatusCode::timeout,     StatusCode::crash};
  return kMarked;
}

bool is_failure(StatusCode code) {
  return code == StatusCode::oom || code == StatusCode::wrong || code == StatusCode::timeout ||
         code == StatusCode::crash;
}

std::string_view status_text(StatusCode code) {
  return code == StatusCode::oom ? "out of memory" : to_string(code);
}

std::string_view status_mark(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "";
    case StatusCode::unsupported:
      return "X";
    case StatusCode::unavailable:
      return "N";
    case StatusCode::oom:
      return "E";
    case StatusCode::wrong:
      return "W";
    case StatusCode::timeout:
      return "T";
    case StatusCode::crash:
      return "C";
  }
  return "?";
}

std::vector<std::string> axis_items(const AxisTexts& axes) {
  std::vector<std::string> items;
  for (const auto& [name, value] : axes) items.push_back(fmt::format("{} {}", name, value));
  return items;
}

std::string join_axes(const AxisTexts& axes, std::string_view separator) {
  return fmt::format("{}", fmt::join(axis_items(axes), separator));
}

namespace {

using Parts = std::vector<std::string>;

/// The texts between ", ", those that repeat as one: "4 × NVIDIA H200".
Parts parts_of(std::string_view text) {
  Parts parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(", "));
    int count = 0;
    do {
      text.remove_prefix(std::min(part.size() + 2, text.size()));
      ++count;
    } while (!text.empty() && (text == part || text.starts_with(fmt::format("{}, ", part))));
    parts.push_back(count == 1 ? std::string(part) : fmt::format("{} × {}", count, part));
  }
  return parts;
}

/// "Example, 2 cores, H200" and "driver 550.54" of "Example, 2 cores, H200 (driver 550.54)".
std::pair<std::string_view, std::string_view> split_driver(std::string_view machine) {
  const std::size_t at = machine.rfind(" (driver ");
  if (at == machine.npos || !machine.ends_with(')')) return {machine, ""};
  return {machine.substr(0, at), machine.substr(at + 2, machine.size() - at - 3)};
}

/// Removes from all lists, and returns, the parts that each of them has.
Parts take_shared(std::vector<Parts>& lists) {
  Parts shared;
  for (const std::string& part : lists.front()) {
    const auto has = [&](const Parts& list) { return std::ranges::find(list, part) != list.end(); };
    if (std::ranges::all_of(lists, has)) shared.push_back(part);
  }
  for (Parts& list : lists) {
    std::erase_if(list, [&](const std::string& part) {
      return std::ranges::find(shared, part) != shared.end();
    });
  }
  return shared;
}

/// "a.so 0123456789abcdef".
std::string plugins_text(const Origin& origin) {
  if (origin.plugins.empty()) return "no plug-ins";
  Parts plugins;
  for (const auto& [name, hash] : origin.plugins)
    plugins.push_back(fmt::format("{} {}", name, hash));
  return fmt::format("{}", fmt::join(plugins, ", "));
}

}  // namespace

std::string short_machine(std::string_view machine) {
  const auto [parts, driver] = split_driver(machine);
  const std::string text = fmt::format("{}", fmt::join(parts_of(parts), ", "));
  return driver.empty() ? text : fmt::format("{} ({})", text, driver);
}

std::string describe_origins(std::span<const Record> records) {
  if (records.empty()) return "";
  const std::vector<OriginCells> origins = origins_of(records);
  if (origins.size() == 1) return machine_of_case(records.back());
  constexpr std::size_t kShown = 8;
  std::vector<Parts> machines;
  std::vector<Parts> builds;
  for (const auto& [origin, cells] : origins) {
    const auto [parts, driver] = split_driver(origin.machine);
    machines.push_back(parts_of(parts));
    if (!driver.empty()) machines.back().emplace_back(driver);
    builds.push_back(parts_of(origin.build));
  }
  Parts shared = take_shared(machines);
  for (std::string& part : take_shared(builds)) shared.push_back(std::move(part));
  std::vector<std::pair<std::string, std::string>> listed;  // by machine: its builds
  for (std::size_t i = 0; i < std::min(origins.size(), kShown); ++i) {
    const std::string machine = fmt::format("{}", fmt::join(machines[i], ", "));
    std::string build = fmt::format("{}", fmt::join(builds[i], ", "));
    if (machine.empty() && build.empty()) build = plugins_text(origins[i].origin);
    const auto known = std::ranges::find(listed, machine, [](auto& item) { return item.first; });
    std::string& text =
        known == listed.end() ? listed.emplace_back(machine, "").second : known->second;
    const std::size_t cells = origins[i].cells;
    text += fmt::format("{}{}{}({})", text.empty() ? "" : ", ", build, build.empty() ? "" : " ",
                        counted(cells, "cell"));
  }
  std::string text = fmt::format("{} origins{}{}", origins.size(),
                                 shared.empty() ? "" : ", all of ", fmt::join(shared, ", "));
  for (const auto& [machine, its_builds] : listed) {
    text += &machine == &listed.front().first ? ": " : "; ";
    if (!machine.empty()) text += machine + (its_builds.starts_with('(') ? " " : ": ");
    text += its_builds;
  }
  if (origins.size() > kShown) text += fmt::format("; {} more", origins.size() - kShown);
  return text;
}

void add_origins(AxisTexts& axes, std::span<const Record> records) {
  const std::size_t origins = origins_of(records).size();
  if (origins > 1) axes.emplace_back("origins", fmt::format("{}", origins));
}

}  // namespace longca
