#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace longca::testing {

/// Calls body() and expects an InputError of one sentence that contains `part`.
template <typename Body>
void expect_input_error(const Body& body, const std::string& part) {
  try {
    body();
    ADD_FAILURE() << "no InputError with '" << part << "'";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

}  // namespace longca::testing
