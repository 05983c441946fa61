#pragma once

#include <string>

#include "report/ranks_figure.h"

namespace longca {

/// What has no rate in a panel, and why by its mark: "no number: ulysses 4 X, 8 X; usp 8 C". What
/// several schemes lack alike is said once, "no number: naive X (all 6 schemes)", and ranks are
/// left out where there is only one number of them. "" if nothing lacks.
std::string absent_text(const RanksPanel& panel);

}  // namespace longca
