#include "report/plan_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/rounding.h"
#include "report/data/series_colors.h"
#include "report/gnuplot.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPlotWidth = 1200;
constexpr int kPlotMargins = 120;  // above and below
constexpr int kSideMargins = 180;
constexpr int kMaxRowHeight = 56;
constexpr int kMinRowHeight = 12;
constexpr int kMaxHeight = 1500;
constexpr int kRowHeightForLabels = 36;
constexpr int kRankHeight = 16;  // of a rank's name
constexpr double kLabelLetterWidth = 7;

/// The colours of the steps, cyclically; messages are paler than the computation of their step.
constexpr std::array<unsigned, 8> kColors = {0x2f6fbb, 0xe08a3c, 0x3c9d6b, 0xb8527f,
                                             0x8468b8, 0xc2a02e, 0x45a3b5, 0xc4534a};

unsigned color_of(const TimelineBar& bar) {
  const unsigned color = kColors[static_cast<std::size_t>(bar.step) % kColors.size()];
  if (bar.lane == Lane::compute) return color;
  unsigned paler = 0;
  for (const int shift : {16, 8, 0}) paler |= ((color >> shift & 0xff) + 255) / 2 << shift;
  return paler;
}

/// Black or white, whichever stands out more from the bar.
unsigned label_color(const TimelineBar& bar) {
  const std::string ground = fmt::format("#{:06x}", color_of(bar));
  return contrast(ground, "#ffffff") > contrast(ground, "#000000") ? 0xffffff : 0x000000;
}

/// A lane's top and bottom below the upper edge of its rank's row, as shares of the row.
struct LaneRows {
  double top, bottom;
};
LaneRows lane_rows(Lane lane) {
  return lane == Lane::compute ? LaneRows{0.08, 0.58} : LaneRows{0.6, 0.92};
}

/// Both passes on one time axis.
struct Picture {
  std::vector<TimelineBar> bars;
  double forward_ms = 0;
  double end_ms = 0;
};

Picture picture_of(std::span<const RankPlan> plans, int head_dim, DType dtype,
                   const PlanRates& rates) {
  Picture picture;
  for (const bool backward : {false, true}) {
    picture.forward_ms = picture.end_ms;
    for (TimelineBar& bar : timeline(plans, backward, head_dim, dtype, rates)) {
      bar.begin_ms += picture.forward_ms;
      bar.end_ms += picture.forward_ms;
      picture.end_ms = std::max(picture.end_ms, bar.end_ms);
      picture.bars.push_back(std::move(bar));
    }
  }
  return picture;
}

/// Columns of boxxyerror: x, y, x low, x high, y low, y high, colour.
std::string bar_lines(const Picture& picture) {
  std::string lines;
  for (const TimelineBar& bar : picture.bars) {
    const LaneRows rows = lane_rows(bar.lane);
    lines += fmt::format("{0}\t{2}\t{0}\t{1}\t{2}\t{3}\t{4}\n", bar.begin_ms, bar.end_ms,
                         bar.rank + rows.top, bar.rank + rows.bottom, color_of(bar));
  }
  return lines;
}

/// Columns of labels: x, y, text, colour.
std::string label_lines(const Picture& picture, double ms_per_pixel) {
  std::string lines;
  for (const TimelineBar& bar : picture.bars) {
    const double width = kLabelLetterWidth * static_cast<double>(bar.label.size()) * ms_per_pixel;
    if (width > bar.end_ms - bar.begin_ms) continue;
    const LaneRows rows = lane_rows(bar.lane);
    lines += fmt::format("{}\t{}\t{}\t{}\n", (bar.begin_ms + bar.end_ms) / 2,
                         bar.rank + (rows.top + rows.bottom) / 2, bar.label, label_color(bar));
  }
  return lines;
}

/// The legend of the colours, made of curves without points.
std::string key_of(const Picture& picture) {
  int steps = 0;
  for (const TimelineBar& bar : picture.bars) steps = std::max(steps, bar.step + 1);
  std::string key = "NaN notitle";
  const int colors = static_cast<int>(kColors.size());
  for (int step = 0; step < std::min(steps, colors); ++step) {
    key += fmt::format(", NaN with boxes lc rgb '#{:06x}' title 'step {}{}'",
                       kColors[static_cast<std::size_t>(step)], step,
                       step + colors < steps ? fmt::format(", {} …", step + colors) : "");
  }
  return key;
}

}  // namespace

void plot_plan(std::span<const RankPlan> plans, int head_dim, DType dtype, const PlanRates& rates,
               const std::string& title, const std::filesystem::path& file) {
  const Picture picture = picture_of(plans, head_dim, dtype, rates);
  const int ranks = static_cast<int>(plans.size());
  const int row = std::clamp((kMaxHeight - kPlotMargins) / ranks, kMinRowHeight, kMaxRowHeight);
  // gnuplot refuses an empty range.
  const double end_ms = picture.end_ms > 0 ? picture.end_ms : 1;

  std::string script = fmt::format("set title {}\n", gnuplot_quoted(title));
  script += fmt::format("set xrange [0:{}]\nset yrange [{}:0]\n", end_ms, ranks);
  script += fmt::format(
      "set xlabel 'ms if a GPU computes {:.3g} TFLOP/s and a link moves {:.3g} GB/s, without "
      "latency; above computing, below messages'\n",
      rates.flops_per_second() / 1e12, rates.bytes_per_ms * 1e3 / 1e9);
  script +=
      "set datafile separator '\\t'\nset tics out nomirror\nset border 1 lc rgb '#808080'\n"
      "set key outside right top samplen 1\nset style fill solid noborder\n";
  const int every = ceil_div(kRankHeight, row);
  std::string names;
  for (int rank = 0; rank < ranks; rank += every) {
    names += fmt::format("{}'rank {}' {}", rank == 0 ? "" : ", ", rank, rank + 0.5);
  }
  script += fmt::format("set ytics scale 0 ({})\n", names);
  if (picture.forward_ms > 0 && picture.forward_ms < picture.end_ms) {
    script += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph 1 nohead front dt 2 lc rgb "
        "'#404040'\n",
        picture.forward_ms);
  }
  script += fmt::format("$bars << EOD\n{}EOD\n", bar_lines(picture));
  std::string plot = "plot " + key_of(picture);
  if (!picture.bars.empty()) {
    plot += ", $bars using 1:2:3:4:5:6:7 with boxxyerror lc rgb variable notitle";
  }
  const std::string labels = label_lines(picture, end_ms / (kPlotWidth - kSideMargins));
  if (row >= kRowHeightForLabels && !labels.empty()) {
    script += fmt::format("$labels << EOD\n{}EOD\n", labels);
    plot += ", $labels using 1:2:3:4 with labels center tc rgb variable notitle";
  }
  draw_with_gnuplot(file, kPlotWidth, kPlotMargins + ranks * row, script + plot + "\n");
}

}  // namespace longca
