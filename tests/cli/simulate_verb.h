#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/process.h"

namespace longca::testing {

/// `longca simulate` with a small cell over 16 ranks, and what is added to it.
inline ProcessResult simulate(const std::vector<std::string>& added, const std::string& platform) {
  std::vector<std::string> arguments = {"simulate", "--platform",         platform, "--quiet",
                                        "-a",       "kernel=slice",       "-a",     "mask=causal",
                                        "-a",       "pass=forward",       "-a",     "ranks=16",
                                        "-a",       "tokens_per_rank=512"};
  arguments.insert(arguments.end(), added.begin(), added.end());
  return run_longca(arguments);
}

/// Expects one sentence on stderr that has `sentence`, and exit code 2.
inline void expect_bad_input(const ProcessResult& result, const std::string& sentence) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr(sentence));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

}  // namespace longca::testing
