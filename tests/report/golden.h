#pragma once

#include <string>

namespace longca::testing {

/// Expects `text` to equal the file tests/golden/report/NAME, and shows the first line that
/// differs. With LONGCA_UPDATE_GOLDEN=1 in the environment the file is rewritten instead.
void expect_golden(const std::string& text, const std::string& name);

}  // namespace longca::testing
