#include "report/plots_index.h"

#include <fmt/format.h>

#include "report/format.h"
#include "report/html_text.h"
#include "report/page_title.h"

namespace longca {

std::string plots_index(std::span<const IndexedPlot> plots, std::span<const Record> records) {
  std::string list;
  for (const IndexedPlot& plot : plots) {
    const std::string stem = html_escaped(plot.stem);
    list += fmt::format(
        "<figure class=\"card\"><figcaption><h2>{1}</h2><p class=\"hint\">{2}</p></figcaption>"
        "<a href=\"{0}.svg\"><img src=\"{0}.svg\" alt=\"{1}\" loading=\"lazy\"></a>"
        "<p class=\"hint\">{3} <a href=\"{0}.png\">PNG</a> <a href=\"{0}.svg\">SVG</a> "
        "<a href=\"{0}.pdf\">PDF</a></p></figure>\n",
        stem, html_escaped(plot.title), html_escaped(plot.setting), html_escaped(plot.hint));
  }
  const std::string heading = html_escaped(page_heading(records));
  return fill_template(kIndexHtml, {{"title", heading},
                                    {"style", std::string(kStyleCss)},
                                    {"heading", heading},
                                    {"plots", list}});
}

}  // namespace longca
