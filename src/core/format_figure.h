#pragma once

#include <string>

namespace longca {

/// At least three significant digits without an exponent: "0.0123", "1.23", "12.3", "123.4",
/// "12345".
std::string format_figure(double value);

}  // namespace longca
