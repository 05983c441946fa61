#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/view.h"

namespace longca {

/// The data of the page's scripts (src/report/html/data.js):
///   {"unit":{"name","per_tflops"}, "kernels":[…], "masks":[…], "tokens":[…], "passes":[…],
///    "axes":[{"name","values":[…]}…], "marks":[{"status","mark","words"}…],
///    "ranks":{"unit":{…},"schemes":[…],"scalings":[{"label","tokens","per_rank"}…]} or null,
///    "sparse":{…} or null,
///    "cells":[{"kernel","mask","tokens","pass","setting":{axis: value},"status","reason",
///              "metrics":{…},"stop","notes":{…},"best":true|false}…]}
/// All values are in the order of display; `axes` are those that vary. Cells over ranks come after
/// the others, and have besides
///   "ranks", "scheme", "shard", "factor", "transport" (those of the case), "row" (SchemeNames),
///   "baseline":{"tflops","name","same_work"} (Baselines; absent if there is none).
/// Block-sparse cells that are compared with dense have besides "line" and "density"; "sparse" is
///   {"common", "tables":[{"blocks":"block_sparse · heads 64:8 · block 64","pass"}…],
///    "groups":[{"table": index,"tokens","dense":{"kernel","mask","time_ms",…}|null}…],
///    "lines":[{"group": index,"kernel","break_even","break_even_total"}…]}.
nlohmann::json html_data(const SplitRecords& records);

/// The page's pictures: one <figure> per distinct mask of cells on one device, and, at their
/// shortest length, of the masks that only cells over ranks have. data-mask and data-tokens name
/// its mask and tokens. A last sentence counts the masks that are unknown to this program or too
/// expensive to draw.
std::string html_pictures(const View& single, const View& over_ranks);

}  // namespace longca
