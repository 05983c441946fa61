#include "report/mask_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "mask/own_file.h"
#include "report/format.h"
#include "report/gnuplot.h"
#include "report/html_text.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxStepRows = 64;
constexpr std::int64_t kMaxBlocks = 64;
constexpr int kTones = 8;

Point point(std::int64_t key, std::int64_t query) {
  return {static_cast<double>(key), static_cast<double>(query)};
}

/// Extends a downward edge by one row; a row with the same key only lengthens its last line.
void add_step(Polygon& edge, std::int64_t key, std::int64_t row) {
  if (edge.empty() || edge.back() != point(key, row)) edge.push_back(point(key, row));
  const std::size_t n = edge.size();
  if (n > 1 && edge[n - 2].key == edge[n - 1].key) edge.pop_back();
  edge.push_back(point(key, row + 1));
}

/// The outline row by row: down the right edge, up the left edge.
Polygon stepped_outline(const MaskSlice& slice) {
  Polygon right;
  Polygon left;
  for (std::int64_t q = slice.q_begin; q < slice.q_end; ++q) {
    const Range keys = slice.keys_of(q);
    if (keys.empty()) continue;
    add_step(right, keys.end, q);
    add_step(left, keys.begin, q);
  }
  right.insert(right.end(), left.rbegin(), left.rend());
  return right;
}

/// Cuts a convex polygon to the side where `distance` is not negative (Sutherland and Hodgman,
/// 1974).
Polygon clip(const Polygon& polygon, const std::function<double(const Point&)>& distance) {
  Polygon kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point& a = polygon[i];
    const Point& b = polygon[(i + 1) % polygon.size()];
    const double da = distance(a);
    const double db = distance(b);
    if (da >= 0) kept.push_back(a);
    if ((da > 0 && db < 0) || (da < 0 && db > 0)) {
      const double t = da / (da - db);
      kept.push_back({a.key + t * (b.key - a.key), a.query + t * (b.query - a.query)});
    }
  }
  return kept;
}

Polygon rectangle(Range rows, Range keys) {
  return {point(keys.begin, rows.begin), point(keys.end, rows.begin), point(keys.end, rows.end),
          point(keys.begin, rows.end)};
}

/// The bounds of `pieces` even ranges that cover [0, tokens).
std::vector<std::int64_t> even_bounds(std::int64_t tokens, std::int64_t pieces) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t i = 0; i <= pieces; ++i) bounds.push_back(tokens * i / pieces);
  return bounds;
}

std::vector<std::int64_t> grid_bounds(const std::vector<std::int64_t>& blocks) {
  if (static_cast<std::int64_t>(blocks.size()) <= kMaxBlocks + 1) return blocks;
  return even_bounds(blocks.back(), kMaxBlocks);
}

/// Merges neighbours of one tone in a row into one rectangle.
std::vector<MaskShape> grid_shapes(const Mask& mask, int head) {
  const std::vector<std::int64_t> q = grid_bounds(mask.blocks()->q_bounds);
  const std::vector<std::int64_t> k = grid_bounds(mask.blocks()->k_bounds);
  std::vector<MaskShape> shapes(kTones + 1);
  for (std::size_t i = 0; i + 1 < q.size(); ++i) {
    const Range rows{q[i], q[i + 1]};
    int run_tone = 0;
    std::int64_t run_begin = 0;
    const auto end_run = [&](std::int64_t end) {
      if (run_tone > 0) {
        shapes[static_cast<std::size_t>(run_tone)].polygons.push_back(
            rectangle(rows, {run_begin, end}));
      }
    };
    for (std::size_t j = 0; j + 1 < k.size(); ++j) {
      const Range keys{k[j], k[j + 1]};
      const auto cells = static_cast<double>(rows.size()) * static_cast<double>(keys.size());
      const auto allowed = static_cast<double>(mask.area_in(head, rows, keys));
      const int tone =
          allowed == 0 ? 0 : std::max(1, static_cast<int>(std::lround(allowed / cells * kTones)));
      if (tone == run_tone) continue;
      end_run(keys.begin);
      run_tone = tone;
      run_begin = keys.begin;
    }
    end_run(k.back());
  }
  for (int tone = 0; tone <= kTones; ++tone) {
    shapes[static_cast<std::size_t>(tone)].share = static_cast<double>(tone) / kTones;
  }
  std::erase_if(shapes, [](const MaskShape& shape) { return shape.polygons.empty(); });
  return shapes;
}

/// An SVG path. Nearly all edges run along an axis, for which H and V are shorter than L.
std::string path_data(const std::vector<Polygon>& polygons) {
  std::string data;
  for (const Polygon& polygon : polygons) {
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      const Point& p = polygon[i];
      if (i == 0) {
        data += fmt::format("M{:.9g} {:.9g}", p.key, p.query);
      } else if (p.query == polygon[i - 1].query) {
        data += fmt::format("H{:.9g}", p.key);
      } else if (p.key == polygon[i - 1].key) {
        data += fmt::format("V{:.9g}", p.query);
      } else {
        data += fmt::format("L{:.9g} {:.9g}", p.key, p.query);
      }
    }
    data += 'Z';
  }
  return data;
}

constexpr int kWidth = 640;
constexpr int kHeight = 680;
constexpr const char* kFill = "#2563a8";

std::string title_of(const GeneratedMask& mask, const MaskSpec& spec) {
  const auto cells =
      static_cast<double>(mask.mask.q_tokens()) * static_cast<double>(mask.mask.k_tokens());
  const double share = cells == 0 ? 0 : static_cast<double>(mask.mask.area(0)) / cells;
  std::string title = fmt::format("{} · {} tokens · {:.4g} % allowed", without_hash(spec.name),
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

Polygon slice_outline(const MaskSlice& slice) {
  if (slice.q_end - slice.q_begin <= kMaxStepRows) return stepped_outline(slice);
  constexpr double kMiddle = 0.5;  // straight lines go through the middle of each step
  Polygon polygon = rectangle({slice.q_begin, slice.q_end}, {slice.k_begin, slice.k_end});
  if (slice.type == MaskSliceType::causal || slice.type == MaskSliceType::bi_causal) {
    const double offset = static_cast<double>(slice.k_end - slice.q_end) + kMiddle;
    polygon = clip(polygon, [=](const Point& p) { return p.query + offset - p.key; });
  }
  if (slice.type == MaskSliceType::inverse_causal || slice.type == MaskSliceType::bi_causal) {
    const double offset = static_cast<double>(slice.k_begin - slice.q_begin) - kMiddle;
    polygon = clip(polygon, [=](const Point& p) { return p.key - p.query - offset; });
  }
  return polygon;
}

std::vector<MaskShape> mask_shapes(const Mask& mask, int head) {
  if (mask.blocks() != nullptr) return grid_shapes(mask, head);
  MaskShape shape;
  for (const MaskSlice& slice : mask.slices()) {
    Polygon polygon = slice_outline(slice);
    if (polygon.size() >= 3) shape.polygons.push_back(std::move(polygon));
  }
  if (shape.polygons.empty()) return {};
  return {std::move(shape)};
}

std::string mask_svg(const Mask& mask, const std::string& label) {
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">)",
      mask.k_tokens(), mask.q_tokens(), html_escaped(label));
  for (const MaskShape& shape : mask_shapes(mask, 0)) {
    const std::string tone =
        shape.share < 1 ? fmt::format(R"( fill-opacity="{:.3g}")", shape.share) : "";
    svg += fmt::format(R"(<path{} d="{}"/>)", tone, path_data(shape.polygons));
  }
  return svg + "</svg>";
}

void plot_mask(const GeneratedMask& mask, const MaskSpec& spec, const std::filesystem::path& file) {
  // gnuplot refuses an empty range.
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
    // A line around what is allowed throughout: what is thinner than a pixel is seen.
    plot += fmt::format(
        ", $shape{0} using 1:2 with filledcurves closed fs transparent solid {1} {2} lc rgb '{3}'",
        i, shapes[i].share,
        shapes[i].share == 1 ? fmt::format("border lc rgb '{}'", kFill) : "noborder", kFill);
  }
  draw_with_gnuplot(file, kWidth, kHeight, script + plot + "\n");
}

}  // namespace longca
