#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/suite/axes.h"
#include "core/error.h"
#include "report/html_cells.h"
#include "report/html_data.h"
#include "report/html_text.h"
#include "report/mask_picture.h"

namespace longca {
namespace {

// The most that a picture may cost, and all of a page together: estimate_pieces, and slices drawn.
constexpr std::size_t kMaxPictures = 150;
constexpr std::int64_t kMaxDrawnTokens = std::int64_t{1} << 24;
constexpr double kMaxPieces = 1 << 24;
constexpr double kMaxPiecesOfPage = 1 << 25;
constexpr std::size_t kMaxSlices = std::size_t{1} << 15;
constexpr std::size_t kMaxSlicesOfPage = std::size_t{1} << 18;

/// The axes that determine a mask of some length.
AxisTexts picture_axes(const Case& c) {
  AxisTexts texts;
  for (const Axis& axis : axis_table()) {
    const bool shapes_mask = axis.applies != nullptr || axis.name == "mask" || axis.name == "seed";
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
    const bool is_drawable = spec.tokens >= 1 && spec.tokens <= kMaxDrawnTokens &&
                             spec.block >= 1 && spec.block_tokens.value_or(1) >= 1;
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

using OwnMasks = std::map<std::string, const OwnMask*>;

/// Head 0's mask, if it can be drawn.
std::optional<Mask> mask_of(const Case& c, const OwnMasks& own, PageBudget& budget) {
  try {
    if (c.selects_by_scores()) return std::nullopt;  // the mask depends on the inputs
    MaskSpec spec = c.mask_spec();
    if (const auto found = own.find(c.mask); found != own.end()) {
      spec.name = found->second->traits.name;
      const Mask& mask = found->second->generated.mask;
      const bool fits = mask.q_tokens() == c.tokens && budget.takes(spec) && budget.takes(mask);
      return fits ? std::optional(mask) : std::nullopt;
    }
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
  return fmt::format(R"(<figure class="picture" data-mask="{0}" data-axes="{1}">{2}<figcaption>{0})"
                     "<small>{3}</small><small>{4}</small></figcaption></figure>\n",
                     html_escaped(c.mask), html_escaped(axes_json(parameters).dump()),
                     mask_svg(mask, c.mask + ", " + density), density,
                     html_escaped(join_axes(parameters, ", ")));
}

/// A mask at the middle of its lengths.
struct PicturedMask {
  AxisTexts axes;
  std::vector<const Case*> lengths{};  ///< ascending

  const Case& c() const { return *lengths[(lengths.size() - 1) / 2]; }
};

/// In the views' order.
std::vector<PicturedMask> distinct_masks(const View& single, const View& over_ranks) {
  std::vector<PicturedMask> masks;
  std::map<AxisTexts, std::size_t> places;
  for (const View* view : {&single, &over_ranks}) {
    for (const ViewSection& section : view->sections) {
      for (const ViewGroup& group : section.groups) {
        const Case& c = group.rows.front().c();
        AxisTexts axes = picture_axes(c);
        const auto [place, is_new] = places.try_emplace(axes, masks.size());
        if (is_new) masks.push_back({std::move(axes)});
        masks[place->second].lengths.push_back(&c);
      }
    }
  }
  for (PicturedMask& mask : masks) {
    std::stable_sort(mask.lengths.begin(), mask.lengths.end(),
                     [](const Case* a, const Case* b) { return a->tokens < b->tokens; });
  }
  return masks;
}

}  // namespace

std::string html_pictures(const View& single, const View& over_ranks, const OwnMasks& own) {
  std::string html;
  std::size_t drawn = 0;
  PageBudget budget;
  const std::vector<PicturedMask> masks = distinct_masks(single, over_ranks);
  for (const PicturedMask& one : masks) {
    if (drawn == kMaxPictures) break;
    if (const auto mask = mask_of(one.c(), own, budget)) {
      html += picture(one.c(), *mask, one.axes);
      ++drawn;
    }
  }
  if (const std::size_t missing = masks.size() - drawn; missing > 0) {
    html += fmt::format(
        "<p class=\"hint\">{} mask{} not drawn: too large, more than a page draws, or unknown "
        "here.</p>\n",
        missing, missing == 1 ? " is" : "s are");
  }
  return html;
}

}  // namespace longca
