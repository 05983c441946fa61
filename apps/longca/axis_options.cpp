#include "axis_options.h"

#include <algorithm>

#include "bench/axes.h"
#include "core/error.h"

namespace longca {

CLI::Option* AxisOptions::add(CLI::App& verb, std::string_view axis_name,
                              const std::string& positional) {
  const Axis& axis = find_axis(axis_name);
  std::string option = "--" + axis.name;
  std::replace(option.begin(), option.end(), '_', '-');
  auto& entry = texts_.emplace_back(axis.name, axis.standard);
  return verb.add_option(positional.empty() ? option : positional, entry.second, axis.help)
      ->type_name(positional.empty() ? axis.values : "");
}

Case AxisOptions::read() const {
  Case c;
  for (const auto& [name, text] : texts_) {
    const Axis& axis = find_axis(name);
    const auto values = axis.parse(text);
    if (values.size() != 1) throw_input_error("{} takes one value here, not '{}'", name, text);
    axis.assign(c, values.front());
  }
  return c;
}

}  // namespace longca
