#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "report/data/figures.h"
#include "report/data/series_colors.h"
#include "report/scheme_names.h"

namespace longca {
namespace {

/// What a figure over ranks shows of an `ok` cell: fills in y, and what else is drawn there.
using Fill = void (*)(const Record& record, double factor, FigurePoint& point);

struct Quantity {
  std::string name;  ///< of files
  std::string title;
  std::string hint{};
  const char* reference = "";  ///< what a grey line is
  const char* stroke = "";     ///< what FigurePoint::stroke is
  std::string diamond{};       ///< what FigurePoint::diamond is
  std::string unit;
  FigureMark mark = FigureMark::bars;
  double factor = 1;  ///< from metrics to the unit
  Fill fill;
};

constexpr const char* kRate = "tflops";

std::optional<double> scaled(const Record& record, const char* metric, double factor) {
  const auto value = metric_of(&record, metric);
  if (!value) return std::nullopt;
  return *value * factor;
}

void fill_rate(const Record& record, double factor, FigurePoint& point) {
  point.y = scaled(record, kRate, factor);
}

/// Noise can make the steps alone slower than all: then the lighter part is empty.
void fill_exposed(const Record& record, double factor, FigurePoint& point) {
  const auto compute = scaled(record, "compute_ms", factor);
  if (!compute) return;
  point.y = scaled(record, "time_ms", factor);
  if (point.y) point.part = std::min(*compute, *point.y);
}

void fill_bytes(const Record& record, double factor, FigurePoint& point) {
  point.y = scaled(record, "bytes_sent", factor);
  point.stroke = scaled(record, "bytes_formula", factor);
  point.diamond = scaled(record, "bytes_least", factor);
}

void fill_imbalance(const Record& record, double factor, FigurePoint& point) {
  point.y = scaled(record, "imbalance", factor);
  point.diamond = scaled(record, "time_imbalance", factor);
}

void fill_error(const Record& record, double /*factor*/, FigurePoint& point) {
  point.y = largest_error(&record);
}

struct BytesUnit {
  const char* name;
  double bytes;
};

/// The unit that gives an axis few digits.
BytesUnit bytes_unit(const View& view) {
  double largest = 0;
  for (const Record* record : view.records()) {
    largest = std::max(largest, metric_of(record, "bytes_sent").value_or(0));
  }
  for (const BytesUnit unit :
       {BytesUnit{"GiB", 1 << 30}, BytesUnit{"MiB", 1 << 20}, BytesUnit{"KiB", 1 << 10}}) {
    if (largest >= 4 * unit.bytes) return unit;
  }
  return {"bytes", 1};
}

/// Times are of cells that ran, of simulated ones, or of both.
std::string diamond_of_time(const View& view) {
  const std::vector<const Record*> records = view.records();
  const auto simulated = std::ranges::count_if(
      records, [](const Record* record) { return record->c.platform.has_value(); });
  return fmt::format("Diamond: {} time of the steps without communication.",
                     simulated == 0                     ? "measured"
                     : simulated == std::ssize(records) ? "simulated"
                                                        : "measured or simulated");
}

std::vector<Quantity> quantities_of(const View& view) {
  const BytesUnit bytes = bytes_unit(view);
  return {
      {.name = kRate,
       .title = "speed per rank",
       .reference = "Grey: the same kernel without communication, on one device or one rank, at "
                    "the same length if that was measured, otherwise at the same tokens per rank; "
                    "on a CPU divided by the ranks, which share its cores.",
       .unit = fmt::format("{} per rank", view.unit.name),
       .factor = view.unit.per_tflops,
       .fill = fill_rate},
      {.name = "exposed",
       .title = "exposed communication",
       .hint = "Full colour: the steps of the slowest rank without communication. Light: what "
               "communication and waiting add to them.",
       .unit = "ms",
       .mark = FigureMark::stacks,
       .fill = fill_exposed},
      {.name = "bytes",
       .title = "bytes sent in one pass",
       .hint = "Counted, by the rank that sends most.",
       .stroke = "Stroke: the scheme's formula.",
       .diamond = "Diamond: lower bound for this mask and sharding if queries stay in place, mean "
                  "over ranks.",
       .unit = bytes.name,
       .factor = 1 / bytes.bytes,
       .fill = fill_bytes},
      {.name = "imbalance",
       .title = "imbalance",
       .hint = "Largest over mean of all ranks: allowed cells, from the plan.",
       .diamond = diamond_of_time(view),
       .unit = "largest ÷ mean",
       .fill = fill_imbalance},
      {.name = "error",
       .title = "error against the reference",
       .hint = "Largest relative error of O, or of dQ, dK and dV, as partial results of more ranks "
               "are merged.",
       .unit = "relative error",
       .fill = fill_error},
  };
}

/// The quantity's hint, with what explains the marks that the figure has.
std::string hint_of(const Figure& figure, const Quantity& quantity) {
  bool has_reference = false;
  bool has_stroke = false;
  bool has_diamond = false;
  for (const FigurePanel& panel : figure.panels) {
    has_reference = has_reference || !panel.references.empty();
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        has_stroke = has_stroke || (point.y && point.stroke);
        has_diamond = has_diamond || (point.y && point.diamond);
      }
    }
  }
  std::string hint = quantity.hint;
  const auto add = [&](bool is_drawn, std::string_view sentence) {
    if (!is_drawn || sentence.empty()) return;
    hint += (hint.empty() ? "" : " ") + std::string(sentence);
  };
  add(has_reference, quantity.reference);
  add(has_stroke && figure.mark != FigureMark::lines, quantity.stroke);
  add(has_diamond, quantity.diamond);
  return hint;
}

/// Makes the figures of a view over ranks.
class RankFigures {
 public:
  RankFigures(const View& view, const SplitRecords& records)
      : view_(view),
        scalings_(make_scalings(records.over_ranks)),
        names_(records.over_ranks),
        baselines_(records.single, records.over_ranks) {}

  std::string name_of(const Record& record) const {
    std::string name = *record.c.scheme;
    if (view_.kernels.size() > 1) name += " · " + record.c.kernel;
    const std::string variant = names_.variant(record.c);
    return variant.empty() ? name : name + " · " + variant;
  }

  std::vector<SeriesStyle> styles() const {
    std::map<std::string, std::string> schemes;  // by series
    for (const Record* record : view_.records()) schemes[name_of(*record)] = *record->c.scheme;
    std::vector<SeriesStyle> styles;
    SeriesColors colors;
    std::map<std::string, std::size_t> shades;  // by scheme
    for (const std::string& name :
         series_by_weight(view_, [&](const Record& record) { return name_of(record); })) {
      const std::string& scheme = schemes[name];
      const std::size_t shade = shades[scheme]++;
      styles.push_back({name, colors.color_of(scheme, shade), colors.on_dark(scheme, shade)});
    }
    return styles;
  }

  Figure make(Pass pass, const Quantity& quantity) const {
    Figure figure{.name = fmt::format("cp-{}-{}", to_string(pass), quantity.name),
                  .title = fmt::format("{}: {}", pass_title(pass), quantity.title),
                  .x_title = "ranks",
                  .y_title = quantity.unit,
                  .mark = quantity.mark,
                  .shares_y = quantity.mark != FigureMark::stacks,
                  .is_error = quantity.fill == fill_error};
    for (const ViewSection& section : view_.sections) {
      for (const Scaling& scaling : scalings_) {
        for (const ViewGroup& group : section.groups) {
          add_group(figure, section, scaling, group, pass, quantity);
        }
      }
    }
    if (quantity.fill == fill_rate) {
      for (FigurePanel& panel : figure.panels) add_baselines(panel, quantity.factor);
    }
    finish(figure);
    figure.hint = hint_of(figure, quantity);
    return figure;
  }

 private:
  void add_group(Figure& figure, const ViewSection& section, const Scaling& scaling,
                 const ViewGroup& group, Pass pass, const Quantity& quantity) const {
    AxisTexts setting = section.setting;
    if (scalings_.size() > 1) setting.emplace_back("tokens over ranks", scaling.label());
    for (const ViewRow& row : group.rows) {
      const Record* record = row.pass(pass);
      if (record == nullptr || !scaling.contains(record->c)) continue;
      FigurePoint point{0, std::nullopt, record};
      if (record->status.ok()) quantity.fill(*record, quantity.factor, point);
      if (record->status.ok() && !point.y) continue;
      FigurePanel& panel = find_or_add(
          figure.panels,
          [&](const FigurePanel& known) {
            return known.mask == group.mask && known.setting == setting;
          },
          FigurePanel{.title = group.mask,
                      .note = scalings_.size() > 1 ? "" : scaling.label(),
                      .setting = setting,
                      .mask = group.mask});
      point.x = panel.x_of(std::to_string(group.ranks));
      panel.series_named(name_of(*record)).points.push_back(point);
    }
  }

  /// Adds a grey line: the rate of the kernel of most cells without communication.
  void add_baselines(FigurePanel& panel, double factor) const {
    std::map<std::string, FigureReference> lines;
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        const Baseline baseline = baselines_.of(*point.record);
        if (baseline.tflops <= 0) continue;
        std::string name = baseline.name;
        if (view_.kernels.size() > 1) name.insert(0, point.record->c.kernel + ", ");
        auto& places = lines.try_emplace(name, FigureReference{.name = name}).first->second.places;
        const auto is_known = [&](const auto& place) { return place.x == point.x; };
        if (std::any_of(places.begin(), places.end(), is_known)) continue;
        places.push_back({point.x, baseline.tflops * factor});
      }
    }
    const auto longest = std::max_element(lines.begin(), lines.end(), [](auto& a, auto& b) {
      return a.second.places.size() < b.second.places.size();
    });
    if (longest == lines.end()) return;
    auto& places = longest->second.places;
    std::sort(places.begin(), places.end(), [](auto& a, auto& b) { return a.x < b.x; });
    panel.references.push_back(std::move(longest->second));
  }

  const View& view_;
  std::vector<Scaling> scalings_;
  SchemeNames names_;
  Baselines baselines_;
};

}  // namespace

FigureSet make_rank_figures(const View& view, const SplitRecords& records) {
  FigureSet set;
  if (view.sections.empty()) return set;
  const RankFigures maker(view, records);
  set.series = maker.styles();
  for (const Pass pass : kPasses) {
    if (!view.has(pass)) continue;
    for (const Quantity& quantity : quantities_of(view)) {
      Figure figure = maker.make(pass, quantity);
      if (quantity.name == kRate || figure.has_number()) set.figures.push_back(std::move(figure));
    }
  }
  return set;
}

}  // namespace longca
