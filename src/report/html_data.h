#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "mask/own_mask.h"
#include "report/view.h"

namespace longca {

/// The data of the page's scripts (src/report/html/data.js):
///   {"marks":[{"status","mark","words"}…],
///    "cells":{…} (html_cells.h),
///    "kinds":[…]}
/// with a kind for cells over ranks and then one for cells on one device, where there are such:
///   {"kind":"ranks"|"devices", "unit", "setting":"dim 128 · …",
///    "axes":[{"name","values":[…],"chosen"}…]                       ChoiceAxis
///    "columns":["8K"…]                                              lengths, and ranks
///    "problems":[{"mask","title","column": index,"setting":{axis: value},
///                 "forward":{"tied":[[series, cell, ms, rate]…],"next": series,"lead"},
///                 "backward","step"}…]         Ranking; absent without a row; title if not mask
///    "series":[{"name","color","dark"}…],                           FigureSet
///    "figures":[{"name","title","hint","x","y","mark","shares_y","is_error","x_min","y_max","dashed",
///                "panels":[{"title","note","mask","setting","ticks":[…],
///                           "series":[{"series": index,"dashed","absent",
///                                      "points":[[x, y|null, cell, part, stroke, diamond]…]}…],
///                           "references":[{"name","dotted","places":[[x, y]…]}…]}…]}…]}
/// Trailing zeros and nulls of points are left out.
nlohmann::json html_data(const SplitRecords& records);

/// The page's pictures: one <figure> per mask and setting of the axes that shape it, at the middle
/// of its lengths. data-mask and data-axes (JSON) name them; `own` are the user's own masks
/// (own_masks.h). A last sentence counts the masks that are unknown to this program or too
/// expensive to draw.
std::string html_pictures(const View& single, const View& over_ranks,
                          const std::map<std::string, const OwnMask*>& own);

}  // namespace longca
