#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attention/api/kernel.h"

namespace longca::advise {

/// A property that a kernel must have beside what the problem asks.
struct Need {
  std::string name;         ///< as in --needs
  std::string description;  ///< what a kernel without it lacks: "returns no LSE"
  bool (*has)(const Capabilities& capabilities);
};
std::span<const Need> need_table();
/// Throws InputError that suggests the nearest name.
const Need& find_need(std::string_view name);

}  // namespace longca::advise
