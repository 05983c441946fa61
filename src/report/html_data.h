#pragma once

#include <nlohmann/json.hpp>

#include "report/view.h"

namespace longca {

/// What the page's scripts show (src/report/html/data.js):
///   {"unit":{"name","per_tflops"}, "kernels":[…], "masks":[…], "tokens":[…], "passes":[…],
///    "axes":[{"name","values":[…]}…], "marks":[{"status","mark","words"}…],
///    "ranks":{"unit":{…},"schemes":[…],"scalings":[{"label","tokens","per_rank"}…]} or null,
///    "sparse":{…} or null (sparse_json.h),
///    "cells":[{"kernel","mask","tokens","pass","setting":{axis: value},"status","reason",
///              "metrics":{…},"stop","notes":{…},"best":true|false}…]}
/// with all values in the order in which they are to appear. `axes` are those that vary.
/// Block-sparse cells that "sparse" compares have besides "line" and "density". Cells over ranks
/// follow the others, and have besides
///   "ranks", "scheme", "shard", "factor", "transport" (those of the case), "row"
///   (SchemeNames), "baseline":{"tflops","name","same_work"} (Baselines; absent where there is
///   none)
nlohmann::json html_data(const SplitRecords& records);

}  // namespace longca
