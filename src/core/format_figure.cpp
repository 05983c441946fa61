#include "core/format_figure.h"

#include <fmt/format.h>

#include <cmath>

namespace longca {

std::string format_figure(double value) {
  // Decimals are those of the rounded figure: 9.996 is 10.0, as 10 is, and not 10.00.
  const double size = std::abs(value);
  if (size >= 999.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995 || size == 0) return fmt::format("{:.2f}", size == 0 ? 0 : value);
  const int decimals =
      size < 1e-6 ? 9 : 2 - static_cast<int>(std::floor(std::log10(size / 0.9995)));
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  const bool is_zero = text.find_first_of("123456789") == text.npos;
  return is_zero && value < 0 ? text.substr(1) : text;
}

}  // namespace longca
