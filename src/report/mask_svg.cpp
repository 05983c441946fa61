#include "report/mask_svg.h"

#include <fmt/format.h>

#include "report/html_text.h"
#include "report/mask_geometry.h"

namespace longca {
namespace {

/// Whole tokens where the corner is one, as nearly all are.
std::string coordinates(const Point& p) {
  return fmt::format("{:.9g} {:.9g}", p.key, p.query);
}

std::string path_data(const std::vector<Polygon>& polygons) {
  std::string data;
  for (const Polygon& polygon : polygons) {
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      data += (i == 0 ? 'M' : 'L') + coordinates(polygon[i]);
    }
    data += 'Z';
  }
  return data;
}

}  // namespace

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

}  // namespace longca
