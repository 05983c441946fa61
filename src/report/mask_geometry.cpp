#include "report/mask_geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace longca {
namespace {

constexpr std::int64_t kMaxStepRows = 64;
constexpr std::int64_t kMaxBlocks = 64;
constexpr int kTones = 8;

Point point(std::int64_t key, std::int64_t query) {
  return {static_cast<double>(key), static_cast<double>(query)};
}

/// Extends an edge that runs downwards by one row, as one line where the key stays the same.
void add_step(Polygon& edge, std::int64_t key, std::int64_t row) {
  if (edge.empty() || edge.back() != point(key, row)) edge.push_back(point(key, row));
  const std::size_t n = edge.size();
  if (n > 1 && edge[n - 2].key == edge[n - 1].key) edge.pop_back();
  edge.push_back(point(key, row + 1));
}

/// Down the right edge of the rows, up the left edge.
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

/// Cuts a convex polygon to where `distance` is not negative (Sutherland and Hodgman, 1974).
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

/// `pieces` ranges that cover [0, tokens) evenly.
std::vector<std::int64_t> even_bounds(std::int64_t tokens, std::int64_t pieces) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t i = 0; i <= pieces; ++i) bounds.push_back(tokens * i / pieces);
  return bounds;
}

std::vector<std::int64_t> grid_bounds(const std::vector<std::int64_t>& blocks) {
  if (static_cast<std::int64_t>(blocks.size()) <= kMaxBlocks + 1) return blocks;
  return even_bounds(blocks.back(), kMaxBlocks);
}

/// Neighbours of one tone in a row become one rectangle.
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

}  // namespace

Polygon slice_outline(const MaskSlice& slice) {
  if (slice.q_end - slice.q_begin <= kMaxStepRows) return stepped_outline(slice);
  Polygon polygon = rectangle({slice.q_begin, slice.q_end}, {slice.k_begin, slice.k_end});
  if (slice.type == MaskSliceType::causal || slice.type == MaskSliceType::bi_causal) {
    const auto offset = static_cast<double>(slice.k_end - slice.q_end);
    polygon = clip(polygon, [=](const Point& p) { return p.query + offset - p.key; });
  }
  if (slice.type == MaskSliceType::inverse_causal || slice.type == MaskSliceType::bi_causal) {
    const auto offset = static_cast<double>(slice.k_begin - slice.q_begin);
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

}  // namespace longca
