#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "attention/api/kernel.h"

namespace longca {

/// A kernel's capabilities as a process that has loaded it describes them to one that has not.
nlohmann::json describe_kernel(const Kernel& kernel);

/// A kernel known by its description only: it stands in the registry, answers by its capabilities,
/// and cannot run in this process. Throws nlohmann::json::exception for what is no description.
std::unique_ptr<Kernel> make_described_kernel(const nlohmann::json& description);

}  // namespace longca
