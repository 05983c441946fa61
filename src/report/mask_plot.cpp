#include "report/mask_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "report/format.h"
#include "report/gnuplot.h"
#include "report/mask_geometry.h"

namespace longca {
namespace {

constexpr int kWidth = 640;
constexpr int kHeight = 680;
constexpr const char* kFill = "#2563a8";

std::string title_of(const GeneratedMask& mask, const MaskSpec& spec) {
  const auto cells =
      static_cast<double>(mask.mask.q_tokens()) * static_cast<double>(mask.mask.k_tokens());
  const double share = cells == 0 ? 0 : mask.mask.mean_area() / cells;
  std::string title = fmt::format("{} · {} tokens · {:.2f} % allowed", spec.name,
                                  format_tokens(spec.tokens), 100 * share);
  if (mask.mask.heads() > 1) title += fmt::format(" · head 0 of {}", mask.mask.heads());
  return title;
}

/// gnuplot ends a polygon at a blank line.
std::string data_block(const std::string& name, const std::vector<Polygon>& polygons) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const Polygon& polygon : polygons) {
    for (const Point& p : polygon) block += fmt::format("{} {}\n", p.key, p.query);
    block += '\n';
  }
  return block + "EOD\n";
}

/// Boundaries between documents, as lines across the picture.
std::string boundary_lines(const GeneratedMask& mask) {
  constexpr std::size_t kMaxLines = 200;  // more would hide the mask
  if (mask.lengths.size() > kMaxLines) return "";
  std::string lines;
  std::int64_t at = 0;
  for (const std::int64_t length : mask.lengths) {
    at += length;
    if (at >= mask.mask.q_tokens()) break;
    constexpr const char* kLine =
        "set arrow from {0} to {1} nohead front lc rgb '#b0000000' lw 0.6\n";
    lines += fmt::format(kLine, fmt::format("0,{}", at), fmt::format("graph 1,first {}", at));
    lines += fmt::format(kLine, fmt::format("{},0", at), fmt::format("first {},graph 0", at));
  }
  return lines;
}

}  // namespace

void plot_mask(const GeneratedMask& mask, const MaskSpec& spec, const std::filesystem::path& file) {
  // gnuplot cannot draw an empty range.
  const auto extent = [](std::int64_t tokens) { return std::max<std::int64_t>(tokens, 1); };
  std::string script = fmt::format("set title {}\n", gnuplot_quoted(title_of(mask, spec)));
  script += fmt::format("set xrange [0:{}]\nset yrange [{}:0]\n", extent(mask.mask.k_tokens()),
                        extent(mask.mask.q_tokens()));
  script +=
      "set size ratio -1\nset xlabel 'key' \nset ylabel 'query'\nset x2label ' '\n"
      "set tics out nomirror\nset border lc rgb '#808080'\nunset key\n"
      "set style fill solid noborder\n";
  script += boundary_lines(mask);
  const std::vector<MaskShape> shapes = mask_shapes(mask.mask, 0);
  std::string plot = "plot NaN notitle";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    script += data_block(fmt::format("shape{}", i), shapes[i].polygons);
    plot += fmt::format(
        ", $shape{} using 1:2 with filledcurves closed fs transparent solid {} lc rgb '{}'", i,
        shapes[i].share, kFill);
  }
  draw_with_gnuplot(file, kWidth, kHeight, script + plot + "\n");
}

}  // namespace longca
