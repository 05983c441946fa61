#include "report/data/choices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace longca {
namespace {

const std::string* value_of(const AxisTexts& setting, const std::string& axis) {
  const auto found = std::find_if(setting.begin(), setting.end(),
                                  [&](const auto& item) { return item.first == axis; });
  return found == setting.end() ? nullptr : &found->second;
}

/// Whether every axis of `part` has the same value in `whole`.
bool is_part(const AxisTexts& part, const AxisTexts& whole) {
  return std::all_of(part.begin(), part.end(), [&](const auto& item) {
    const std::string* value = value_of(whole, item.first);
    return value != nullptr && *value == item.second;
  });
}

/// The axes in the order of the settings that have most of them, each with its values.
std::vector<ChoiceAxis> axes_of(const std::vector<SettingCells>& settings) {
  std::vector<ChoiceAxis> axes;
  std::set<std::pair<std::string, std::string>> known_values;
  for (const auto& [setting, cells] : settings) {
    for (const auto& [name, value] : setting) {
      const auto is_named = [&, &axis_name = name](const ChoiceAxis& known) {
        return known.name == axis_name;
      };
      auto axis = std::find_if(axes.begin(), axes.end(), is_named);
      if (axis == axes.end()) axis = axes.insert(axis, ChoiceAxis{name, {}, ""});
      if (known_values.emplace(name, value).second) axis->values.push_back(value);
    }
  }
  return axes;
}

}  // namespace

bool agrees(const AxisTexts& setting, const AxisTexts& choice) {
  return std::all_of(setting.begin(), setting.end(), [&](const auto& item) {
    const std::string* value = value_of(choice, item.first);
    return value == nullptr || *value == item.second;
  });
}

std::vector<AxisTexts> widest_settings(std::vector<AxisTexts> settings) {
  // Only one of more axes can hold another; each names an axis once.
  std::map<std::size_t, std::vector<const AxisTexts*>, std::greater<>> by_axes;
  for (const AxisTexts& setting : settings) by_axes[setting.size()].push_back(&setting);
  const auto is_in_another = [&](const AxisTexts& setting) {
    for (const auto& [axes, others] : by_axes) {
      if (axes <= setting.size()) return false;
      const auto holds = [&](const AxisTexts* other) { return is_part(setting, *other); };
      if (std::ranges::any_of(others, holds)) return true;
    }
    return false;
  };
  std::vector<AxisTexts> widest;
  for (const AxisTexts& setting : settings) {
    if (!is_in_another(setting)) widest.push_back(setting);
  }
  return widest;
}

std::vector<ChoiceAxis> make_choices(const std::vector<SettingCells>& settings) {
  std::vector<ChoiceAxis> axes = axes_of(settings);
  std::erase_if(axes, [](const ChoiceAxis& axis) { return axis.values.size() < 2; });
  AxisTexts choice;
  for (ChoiceAxis& axis : axes) {
    std::map<std::string, int> cells;  // of each value, beside what is chosen so far
    for (const SettingCells& known : settings) {
      const std::string* own = value_of(known.setting, axis.name);
      if (own != nullptr && agrees(known.setting, choice)) cells[*own] += known.cells;
    }
    axis.chosen = *std::ranges::max_element(axis.values, {},
                                            [&](const std::string& value) { return cells[value]; });
    choice.emplace_back(axis.name, axis.chosen);
  }
  return axes;
}

}  // namespace longca
