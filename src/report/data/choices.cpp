#include "report/data/choices.h"

#include <algorithm>

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
  for (const auto& [setting, cells] : settings) {
    for (const auto& [name, value] : setting) {
      const auto is_named = [&, &axis_name = name](const ChoiceAxis& known) {
        return known.name == axis_name;
      };
      auto axis = std::find_if(axes.begin(), axes.end(), is_named);
      if (axis == axes.end()) axis = axes.insert(axis, ChoiceAxis{name, {}, ""});
      if (std::find(axis->values.begin(), axis->values.end(), value) == axis->values.end()) {
        axis->values.push_back(value);
      }
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
  std::vector<AxisTexts> widest;
  for (const AxisTexts& setting : settings) {
    const bool is_in_another = std::any_of(
        settings.begin(), settings.end(),
        [&](const AxisTexts& other) { return other != setting && is_part(setting, other); });
    if (!is_in_another) widest.push_back(setting);
  }
  return widest;
}

std::vector<ChoiceAxis> make_choices(const std::vector<SettingCells>& settings) {
  std::vector<ChoiceAxis> axes = axes_of(settings);
  std::erase_if(axes, [](const ChoiceAxis& axis) { return axis.values.size() < 2; });
  AxisTexts choice;
  for (ChoiceAxis& axis : axes) {
    int most = -1;
    for (const std::string& value : axis.values) {
      int cells = 0;
      for (const SettingCells& known : settings) {
        const std::string* own = value_of(known.setting, axis.name);
        if (own != nullptr && *own == value && agrees(known.setting, choice)) cells += known.cells;
      }
      if (cells > most) {
        most = cells;
        axis.chosen = value;
      }
    }
    choice.emplace_back(axis.name, axis.chosen);
  }
  return axes;
}

}  // namespace longca
