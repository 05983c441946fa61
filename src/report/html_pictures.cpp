#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "bench/suite/axes.h"
#include "core/error.h"
#include "report/html_data.h"
#include "report/html_text.h"
#include "report/mask_picture.h"

namespace longca {
namespace {

// The most that a picture may cost, and all of a page together: estimate_pieces, and slices drawn.
constexpr std::size_t kMaxPictures = 150;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;
constexpr double kMaxPieces = 1 << 24;
constexpr double kMaxPiecesOfPage = 1 << 25;
constexpr std::size_t kMaxSlices = std::size_t{1} << 15;
constexpr std::size_t kMaxSlicesOfPage = std::size_t{1} << 18;

/// The axes that determine a mask: cases that agree on them have the same picture.
AxisTexts picture_axes(const Case& c) {
  AxisTexts texts;
  for (const Axis& axis : axis_table()) {
    const bool shapes_mask = axis.applies != nullptr || axis.name == "mask" ||
                             axis.name == "tokens" || axis.name == "seed";
    if (!shapes_mask) continue;
    if (auto text = axis.text(c)) texts.emplace_back(axis.name, std::move(*text));
  }
  return texts;
}

/// What the pictures of one page may still cost.
struct PageBudget {
  double pieces = kMaxPiecesOfPage;
  std::size_t slices = kMaxSlicesOfPage;

  /// Whether a mask can be made; it then counts.
  bool takes(const MaskSpec& spec) {
    const bool is_drawable = spec.tokens >= 1 && spec.tokens <= kMaxTokens && spec.block >= 1 &&
                             spec.block_tokens.value_or(1) >= 1;
    if (!is_drawable) return false;
    const double cost = estimate_pieces(spec);
    if (!(cost <= std::min(kMaxPieces, pieces))) return false;
    pieces -= cost;
    return true;
  }
  /// Whether a mask that was made can be drawn; it then counts.
  bool takes(const Mask& mask) {
    const std::size_t cost = mask.slices().size();
    if (cost > std::min(kMaxSlices, slices)) return false;
    slices -= cost;
    return true;
  }
};

/// Head 0's mask, if it can be drawn.
std::optional<Mask> mask_of(const Case& c, PageBudget& budget) {
  try {
    if (c.selects_by_scores()) return std::nullopt;  // the mask depends on the inputs
    MaskSpec spec = c.mask_spec();
    // A head's blocks do not depend on how many other heads there are.
    spec.heads_q = spec.heads_k = 1;
    if (!budget.takes(spec)) return std::nullopt;
    Mask mask = generate_mask(spec).mask;
    if (!budget.takes(mask)) return std::nullopt;
    return mask;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string picture(const Case& c, const Mask& mask, const AxisTexts& axes) {
  const double cells = static_cast<double>(c.tokens) * static_cast<double>(c.tokens);
  const std::string density = fmt::format("{} tokens, {:.3g} % allowed", format_tokens(c.tokens),
                                          100 * mask.mean_area() / cells);
  AxisTexts parameters;
  for (const auto& [name, value] : axes) {
    if (name != "mask" && name != "tokens" && name != "seed") parameters.emplace_back(name, value);
  }
  return fmt::format(
      R"(<figure class="picture" data-mask="{0}" data-tokens="{1}">{2}<figcaption>{0})"
      "<small>{3}</small><small>{4}</small></figcaption></figure>\n",
      html_escaped(c.mask), c.tokens, mask_svg(mask, c.mask + ", " + density), density,
      html_escaped(join_axes(parameters, ", ")));
}

/// One case per distinct mask, in the views' order.
std::vector<std::pair<AxisTexts, const Case*>> distinct_masks(const View& single,
                                                              const View& over_ranks) {
  std::set<AxisTexts> seen;
  std::set<std::string> names;
  std::vector<std::pair<AxisTexts, const Case*>> cases;
  for (const ViewSection& section : single.sections) {
    for (const ViewGroup& group : section.groups) {
      const Case& c = group.rows.front().c();
      AxisTexts axes = picture_axes(c);
      names.insert(c.mask);
      if (seen.insert(axes).second) cases.emplace_back(std::move(axes), &c);
    }
  }
  for (const ViewSection& section : over_ranks.sections) {
    for (const ViewGroup& group : section.groups) {
      const Case& c = group.rows.front().c();
      if (names.insert(c.mask).second) cases.emplace_back(picture_axes(c), &c);
    }
  }
  return cases;
}

}  // namespace

std::string html_pictures(const View& single, const View& over_ranks) {
  std::string html;
  std::size_t drawn = 0;
  PageBudget budget;
  const auto cases = distinct_masks(single, over_ranks);
  for (const auto& [axes, c] : cases) {
    if (drawn == kMaxPictures) break;
    if (const auto mask = mask_of(*c, budget)) {
      html += picture(*c, *mask, axes);
      ++drawn;
    }
  }
  if (const std::size_t missing = cases.size() - drawn; missing > 0) {
    html += fmt::format(
        "<p class=\"hint\">{} mask{} not drawn: too large, more than a page draws, or unknown "
        "here.</p>\n",
        missing, missing == 1 ? " is" : "s are");
  }
  return html;
}

}  // namespace longca
