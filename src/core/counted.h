#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace longca {

/// A count with its noun, whose plural ends in s: "1 cell", "2 cells".
std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace longca
