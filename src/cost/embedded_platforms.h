#pragma once

#include <span>
#include <string_view>

namespace longca::cost {

/// A page of a folder of configs/, put into the program when it is built.
struct EmbeddedPage {
  std::string_view name;
  std::string_view toml;
};

/// The pages of configs/platforms/, in order of names.
std::span<const EmbeddedPage> embedded_platforms();

}  // namespace longca::cost
