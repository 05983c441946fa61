#pragma once

#include <span>
#include <string_view>

namespace longca::cost {

struct EmbeddedPlatform {
  std::string_view name;
  std::string_view toml;
};

/// The pages of configs/platforms/, put into the program when it is built, in order of names.
std::span<const EmbeddedPlatform> embedded_platforms();

}  // namespace longca::cost
