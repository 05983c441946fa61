#include "report/mask_svg.h"

#include <fmt/format.h>

#include "report/html_text.h"
#include "report/mask_geometry.h"

namespace longca {
namespace {

/// Nearly all corners are whole tokens, and nearly all edges run along an axis.
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
