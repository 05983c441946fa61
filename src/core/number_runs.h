#pragma once

#include <set>
#include <string>

namespace longca {

/// "0, 2", "0 to 4, 6 to 15".
std::string number_runs(const std::set<int>& numbers);

}  // namespace longca
