#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {

/// The axes of cells that take a few ms each.
inline std::vector<std::string> small_axes() {
  return {"-a", "kernel=naive", "-a", "mask=causal", "-a", "tokens=64",     "-a", "heads=2:1",
          "-a", "dim=16",       "-a", "window=8",    "-a", "dtype=float32", "-a", "block=16"};
}

/// `longca bench` on small cells with more arguments (later ones override), its records in `out`.
inline ProcessResult bench(const std::filesystem::path& out,
                           const std::vector<std::string>& more = {},
                           const ProcessOptions& options = {}) {
  std::vector<std::string> arguments{"bench", "--out", out.string(), "--time-limit", "0.01"};
  for (const auto& list : {small_axes(), more})
    arguments.insert(arguments.end(), list.begin(), list.end());
  return run_longca(arguments, options);
}

/// The record of a kernel's pass.
inline Record find_record(const std::vector<Record>& records, const std::string& kernel,
                          Pass pass) {
  const auto found = std::ranges::find_if(
      records, [&](const Record& r) { return r.c.kernel == kernel && r.c.pass == pass; });
  if (found == records.end()) {
    ADD_FAILURE() << "no record of " << kernel << " " << to_string(pass);
    return {};
  }
  return *found;
}

}  // namespace longca::testing
