#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "bench/suite/case.h"
#include "core/status.h"

namespace longca {

/// The files of the user's own that a case names. A case has their names alone; a process that is
/// to run it reads them by these paths.
struct OwnFiles {
  std::optional<std::filesystem::path> lengths{};
  std::optional<std::filesystem::path> mask{};
};
OwnFiles own_files(const Case& c);

/// Reads those that the case names into this process, unless it knows them. `unavailable` if one
/// cannot be read here, or has other contents than when the case was made.
Status read_own_files(const OwnFiles& files, const Case& c);

void to_json(nlohmann::json& json, const OwnFiles& files);
/// Throws nlohmann::json::exception for what is no text.
void from_json(const nlohmann::json& json, OwnFiles& files);

}  // namespace longca
