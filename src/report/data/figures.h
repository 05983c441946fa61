#pragma once

#include <functional>

#include "report/data/figure.h"
#include "report/dense_comparison.h"
#include "report/ranks_metrics.h"
#include "report/view.h"

namespace longca {

// The figures of records, for gnuplot and for the page alike. Panels are one per mask and setting.
// The views and comparisons must outlive the figures, which point at their records.

/// Of cells on one device, a series per kernel:
///   PASS, PASS-memory         speed and peak memory over the lengths
///   sparse-PASS-time          of block-sparse cells: time ÷ dense over density; dashed, if
///                             measured, with selection and planning
///   sparse-PASS-mass          speed-up over dense over the kept mass, if that was measured
FigureSet make_device_figures(const View& view, const DenseComparison& comparison);

/// Of cells over ranks, a series per scheme and variant (kernel, and what differs at equal work:
/// shard, factor, transport), over the numbers of ranks, a panel per mask and scaling:
///   cp-PASS-tflops     rate per rank; grey: the same kernel's without communication
///   cp-PASS-exposed    time of the steps alone; lighter: what communication adds
///   cp-PASS-bytes      bytes sent; stroke: by the scheme's formula; diamond: lower bound
///   cp-PASS-imbalance  largest ÷ mean of all ranks' allowed cells; diamond: of their times
///   cp-PASS-error      largest relative error of the outputs
/// A figure without any number is left out, except tflops, which lists the cells without one.
FigureSet make_rank_figures(const View& view, const SplitRecords& records);

/// "Forward", "Backward", "Step".
std::string pass_title(Pass pass);

/// Orders the series by how much they matter: the sum, over the problems and passes of the view, of
/// the fastest cell's time ÷ the time of the series' fastest cell. Series that lead often come
/// first, then those that are close behind on many problems; without any number last. `name_of`
/// names a record's series.
std::vector<std::string> series_by_weight(const View& view,
                                          const std::function<std::string(const Record&)>& name_of);

}  // namespace longca
