#include "report/data/facets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "bench/record/origin.h"
#include "report/data/draws.h"
#include "report/format.h"

namespace longca {
namespace {

/// Whether two different values belong to one key.
class Conflicts {
 public:
  void add(std::string key, std::string value) {
    const auto [known, is_new] = values_.try_emplace(std::move(key), value);
    found_ = found_ || (!is_new && known->second != value);
  }
  bool found() const { return found_; }

 private:
  std::map<std::string, std::string> values_;
  bool found_ = false;
};

/// Names the builds, or hosts, of cells of one case that several measured.
class Measurers {
 public:
  /// `scope`: records of one can stand in one table.
  void add(const std::string& scope, const std::string& key, const Record& record,
           std::string name) {
    scopes_[scope][key].push_back({&record, std::move(name)});
  }

  /// What each record is titled: its name or kLatest. Without those that need no title.
  std::unordered_map<const Record*, std::string> titles() const {
    std::unordered_map<const Record*, std::string> titles;
    for (const auto& [scope, cases] : scopes_) add_titles(cases, titles);
    return titles;
  }

 private:
  struct Cell {
    const Record* record;
    std::string name;
  };
  using Cells = std::vector<Cell>;  ///< of one case
  using Cases = std::unordered_map<std::string, Cells>;

  /// The name of the latest cell; of cells as old as each other, of the last.
  static const std::string& latest_of(const Cells& cells) {
    const Cell* latest = &cells.front();
    for (const Cell& cell : cells) {
      if (cell.record->at >= latest->record->at) latest = &cell;
    }
    return latest->name;
  }

  static void add_titles(const Cases& cases,
                         std::unordered_map<const Record*, std::string>& titles) {
    std::set<std::string> latest;
    std::size_t conflicts = 0;
    for (const auto& [key, cells] : cases) {
      latest.insert(latest_of(cells));
      const std::string& first = cells.front().name;
      const auto differs = [&first](const Cell& cell) { return cell.name != first; };
      conflicts += std::ranges::any_of(cells, differs) ? 1 : 0;
    }
    if (conflicts == 0) return;
    const bool all_named = latest.size() == 1 || conflicts == cases.size();
    for (const auto& [key, cells] : cases) {
      const std::string& name_of_latest = latest_of(cells);
      for (const Cell& cell : cells) {
        const bool is_named = all_named || cell.name != name_of_latest;
        titles.emplace(cell.record, is_named ? cell.name : kLatest);
      }
    }
  }

  std::map<std::string, Cases> scopes_;
};

void add_facet(const char* name, std::unordered_map<const Record*, std::string> titles,
               std::vector<Facet>& facets) {
  if (titles.empty()) return;
  const auto text = [titles = std::move(titles)](const Record& record) {
    const auto found = titles.find(&record);
    return found == titles.end() ? std::nullopt : std::optional(found->second);
  };
  facets.push_back({name, nullptr, text});
}

}  // namespace

bool Facet::is_quiet(const std::string& value) const {
  return axis != nullptr && axis->quiet && value == axis->standard;
}

std::vector<Facet> facets_of(std::span<const Record> records) {
  std::vector<Facet> facets;
  for (const Axis& axis : axis_table()) {
    facets.push_back(
        {axis.name, &axis, [&axis](const Record& record) { return axis_text(axis, record); }});
  }
  Conflicts machines;
  Measurers builds;
  Measurers hosts;
  for (const Record& record : records) {
    const std::string machine = machine_of_case(record);
    machines.add(record.c.device, machine);
    const std::string key = record.c.key();
    const std::string build = origin_of(record.env).build;
    builds.add(machine, key, record, build);
    hosts.add(fmt::format("{}\n{}", machine, build), key, record, host_of(record));
  }
  if (machines.found()) {
    facets.push_back({"machine", nullptr,
                      [](const Record& record) { return std::optional(machine_of_case(record)); }});
  }
  add_facet("build", builds.titles(), facets);
  auto host_titles = hosts.titles();
  for (auto& [record, title] : host_titles) {
    if (title != kLatest) title = short_machine(title);
  }
  add_facet("host", std::move(host_titles), facets);
  return facets;
}

bool names_origin(const AxisTexts& setting) {
  return std::ranges::any_of(setting, [](const auto& item) {
    return (item.first == "build" || item.first == "host") && item.second != kLatest;
  });
}

}  // namespace longca
