#pragma once

#include <nlohmann/json.hpp>

#include "report/view.h"

namespace longca {

/// What the page's scripts show (src/report/html/data.js):
///   {"unit":{"name","per_tflops"}, "kernels":[…], "masks":[…], "tokens":[…], "passes":[…],
///    "axes":[{"name","values":[…]}…], "marks":[{"status","mark","words"}…],
///    "cells":[{"kernel","mask","tokens","pass","setting":{axis: value},"status","reason",
///              "metrics":{…},"stop","notes":{…},"best":true|false}…]}
/// with all values in the order in which they are to appear. `axes` are those that vary.
nlohmann::json html_data(const View& view);

}  // namespace longca
