#pragma once

#include <string>
#include <vector>

#include "report/format.h"

namespace longca {

// Views that hold several values of an axis show one at a time, never a mix. A setting names the
// axes that its cells depend on; a choice has one value of every axis that varies.

/// Whether cells of this setting are shown at the choice: no axis that both name differs.
bool agrees(const AxisTexts& setting, const AxisTexts& choice);

/// The settings without those that are part of another one, in order.
std::vector<AxisTexts> widest_settings(std::vector<AxisTexts> settings);

struct SettingCells {
  AxisTexts setting;
  int cells = 0;
};

/// An axis whose values are shown one at a time.
struct ChoiceAxis {
  std::string name;
  std::vector<std::string> values;  ///< in order of appearance, at least two
  std::string chosen;  ///< the value with most cells, given the choices before it; else the first
};
/// Axes with a single value are left out.
std::vector<ChoiceAxis> make_choices(const std::vector<SettingCells>& settings);

}  // namespace longca
