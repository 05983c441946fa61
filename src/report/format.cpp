#include "report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace longca {

std::string format_tokens(std::int64_t tokens) {
  constexpr std::int64_t kKibi = 1024;
  if (tokens >= kKibi * kKibi && tokens % (kKibi * kKibi) == 0) {
    return fmt::format("{}M", tokens / (kKibi * kKibi));
  }
  if (tokens >= kKibi && tokens % kKibi == 0) return fmt::format("{}K", tokens / kKibi);
  return fmt::format("{}", tokens);
}

std::string format_figure(double value) {
  const double size = std::abs(value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 1 || size == 0) return fmt::format("{:.2f}", value);
  const int decimals = size < 1e-6 ? 9 : 2 - static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{:.{}f}", value, decimals);
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

std::string printable(std::string text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, ' ');
  return text;
}

RateUnit rate_unit(double largest_tflops) {
  return largest_tflops < 1 ? RateUnit{"GFLOP/s", 1000} : RateUnit{"TFLOP/s", 1};
}

}  // namespace longca
