#include "report/data/facets.h"

#include <fmt/format.h>

#include <map>
#include <set>
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
  Conflicts builds;
  Conflicts hosts;
  for (const Record& record : records) {
    const std::string machine = machine_of_case(record);
    machines.add(record.c.device, machine);
    const std::string build = origin_of(record.env).build;
    builds.add(fmt::format("{}\n{}", record.c.key(), machine), build);
    hosts.add(fmt::format("{}\n{}\n{}", record.c.key(), machine, build), host_of(record));
  }
  if (machines.found()) {
    facets.push_back({"machine", nullptr,
                      [](const Record& record) { return std::optional(machine_of_case(record)); }});
  }
  if (builds.found()) {
    facets.push_back({"build", nullptr, [](const Record& record) {
                        return std::optional(origin_of(record.env).build);
                      }});
  }
  if (hosts.found()) {
    facets.push_back({"host", nullptr, [](const Record& record) {
                        return std::optional(short_machine(host_of(record)));
                      }});
  }
  return facets;
}

}  // namespace longca
