// Arguments of -a: what is read is canonical.

#include "bench/suite/axes.h"

#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  AxisValues values;
  if (!accepts([&] { parse_axis_argument(text, values); })) return;
  for (const auto& [name, texts] : values) {
    for (const std::string& value : texts) {
      const auto again = find_axis(name).parse(value);
      require(again.size() == 1 && again.front() == value, name + ": not canonical: " + value);
    }
  }
}

}  // namespace longca::fuzz
