#pragma once

#include "report/data/figure.h"
#include "report/plot_parts.h"

namespace longca {

/// The gnuplot script of a figure of one setting (narrowed): the first kMaxSeries series that have
/// a number, a panel per panel. `axes` stand in the head: what all its cells share.
PlotScript gnuplot_figure(const FigureSet& set, const Figure& figure, const AxisTexts& axes);

}  // namespace longca
