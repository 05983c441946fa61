#include "report/sparse_json.h"

#include <cmath>

namespace longca {
namespace {

using nlohmann::json;

json dense_of(const Record* dense) {
  if (dense == nullptr) return nullptr;
  json object = {{"kernel", dense->c.kernel}, {"mask", dense->c.mask}};
  for (const char* name : {"time_ms", "tflops", "peak_bytes"}) {
    const auto value = metric_of(dense, name);
    if (value && std::isfinite(*value)) object[name] = *value;
  }
  return object;
}

}  // namespace

SparseJson::SparseJson(const DenseComparison& comparison) {
  if (comparison.tables.empty()) return;
  json_ = {{"common", join_axes(comparison.common, " · ")},
           {"tables", nlohmann::json::array()},
           {"groups", nlohmann::json::array()},
           {"lines", nlohmann::json::array()}};
  for (const DensityTable& table : comparison.tables) add(table);
}

void SparseJson::add(const DensityTable& table) {
  nlohmann::json& tables = json_["tables"];
  std::string name = table.mask;
  if (!table.setting.empty()) name += " · " + join_axes(table.setting, " · ");
  tables.push_back({{"blocks", name}, {"pass", to_string(table.pass)}});
  for (const DensityGroup& group : table.groups) {
    nlohmann::json& groups = json_["groups"];
    groups.push_back(
        {{"table", tables.size() - 1}, {"tokens", group.tokens}, {"dense", dense_of(group.dense)}});
    for (const DensityLine& line : group.lines) {
      nlohmann::json& lines = json_["lines"];
      for (const Record* cell : line.cells) lines_[cell] = lines.size();
      lines.push_back({{"group", groups.size() - 1},
                       {"kernel", line.kernel},
                       {"break_even", describe_break_even(line.kernel_time)},
                       {"break_even_in_all", describe_break_even(line.end_to_end)}});
    }
  }
}

std::optional<std::size_t> SparseJson::line_of(const Record& record) const {
  const auto found = lines_.find(&record);
  return found == lines_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace longca
