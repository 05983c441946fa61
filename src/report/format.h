#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longca {

/// Figures as people read them: few digits, a unit that suits the size. Machine-readable views
/// (JSON, CSV) never use these.

/// Token counts: "8K" = 8192, "1M" = 1048576, "1000".
std::string format_tokens(std::int64_t tokens);
/// At least three significant digits without an exponent: "0.0123", "1.23", "12.3", "123.4",
/// "12345".
std::string format_figure(double value);
/// "512 B", "1.5 MiB".
std::string format_bytes(double bytes);
/// Two significant digits: "1.2e-07".
std::string format_error(double error);

/// The text on one line, with control characters as spaces, so that it cannot steer a terminal.
std::string printable(std::string text);

/// The unit for a set of rates, so that all have digits before the point.
struct RateUnit {
  std::string_view name;  ///< "TFLOP/s" or "GFLOP/s"
  double per_tflops;      ///< multiply TFLOP/s by this
};
/// GFLOP/s if the largest rate is below 1 TFLOP/s.
RateUnit rate_unit(double largest_tflops);

}  // namespace longca
