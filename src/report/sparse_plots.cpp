#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/gnuplot.h"
#include "report/plot_parts.h"
#include "report/plots.h"

namespace longca {
namespace {

// In pixels of a 96 dpi screen.
constexpr int kPanelWidth = 380;
constexpr int kPanelHeight = 300;
constexpr int kMinWidth = 760;
constexpr int kMaxColumns = 4;
/// The top of the scale: slower kernels, which would flatten the others, are only named.
constexpr double kMaxTimeOfDense = 2;
constexpr const char* kDenseColor = "#606060";

enum class Kind { time, mass };

using RatioOf = std::optional<double> (*)(const Record*, const Record*);

/// A panel's curve of one kernel: of its time alone, or with selection and planning.
struct Curve {
  std::size_t kernel = 0;  ///< index into DenseComparison::kernels
  bool is_total = false;
  std::vector<PlotPoint> points{};
};

double smallest_value(const Curve& curve) {
  double smallest = INFINITY;
  for (const PlotPoint& point : curve.points) smallest = std::min(smallest, point.y);
  return smallest;
}

/// A figure of one kind, panel by panel.
class SparseFigure {
 public:
  SparseFigure(const DenseComparison& comparison, const DensityTable& table, Kind kind)
      : comparison_(comparison), table_(table), kind_(kind) {
    for (const DensityGroup& group : table.groups) {
      std::vector<Curve> curves = curves_of(group);
      if (curves.empty()) continue;
      for (const Curve& curve : curves) include(curve);
      groups_.push_back(&group);
      curves_.push_back(std::move(curves));
    }
  }

  bool has_values() const { return !groups_.empty(); }

  void draw(const std::filesystem::path& file) const {
    const int panels = static_cast<int>(groups_.size());
    const int columns = std::min(panels, kMaxColumns);
    const int width = std::max(columns * kPanelWidth, kMinWidth);
    const std::string settings = fmt::format(
        "set yrange [0:{0:.6g}]\nset ytics 0,{1:.6g}\nset xrange [{2:.6g}:1]\nset xtics {3:.6g}\n"
        "set lmargin 9\nset rmargin 2\nset bmargin 3.5\nset xlabel {4}\n",
        top(), plot_tic_step(top()), left(), plot_tic_step(1 - left()),
        gnuplot_quoted(kind_ == Kind::time ? "density" : "kept mass"));
    draw_panels(
        file, {panels, columns, width, kPanelHeight}, make_head(width), settings, [&](int i) {
          return panel_script(static_cast<std::size_t>(i), width / columns, i % columns == 0);
        });
  }

 private:
  /// Time ÷ dense, or dense ÷ time.
  std::optional<double> value_of(const Record* cell, const Record* dense, RatioOf ratio_of) const {
    const auto ratio = ratio_of(cell, dense);
    if (!ratio) return std::nullopt;
    return kind_ == Kind::time ? *ratio : 1 / *ratio;
  }

  std::vector<Curve> curves_of(const DensityGroup& group) const {
    std::vector<Curve> curves;
    for (const DensityLine& line : group.lines) {
      const auto kernel =
          std::find(comparison_.kernels.begin(), comparison_.kernels.end(), line.kernel);
      for (const bool is_total : {false, true}) {
        Curve curve{static_cast<std::size_t>(kernel - comparison_.kernels.begin()), is_total};
        for (const Record* cell : line.cells) {
          const auto value =
              value_of(cell, group.dense, is_total ? end_to_end_of_dense : time_of_dense);
          const auto x = kind_ == Kind::time ? cell->c.density
                                             : group.metric_at(*cell->c.density, "kept_mass");
          if (!value || !x) continue;
          curve.points.push_back({*x, *value});
        }
        if (!curve.points.empty()) curves.push_back(std::move(curve));
      }
    }
    return curves;
  }

  void include(const Curve& curve) {
    has_total_ = has_total_ || curve.is_total;
    for (const PlotPoint& point : curve.points) {
      largest_ = std::max(largest_, point.y);
      min_x_ = std::min(min_x_, point.x);
    }
  }

  double top() const {
    const double wanted = std::max(largest_, 1.0) * 1.08;
    return kind_ == Kind::time ? std::min(wanted, kMaxTimeOfDense) : wanted;
  }

  /// The left end of the x axis: 0, or for kept mass a tenth below the smallest.
  double left() const {
    return kind_ == Kind::time ? 0 : std::max(0.0, std::floor(min_x_ * 10 - 0.5) / 10);
  }

  PlotHead make_head(int width) const {
    PlotHead head(width);
    head.add_line({{fmt::format(
        "{}, {} pass: {}", table_.mask, to_string(table_.pass),
        kind_ == Kind::time ? "time ÷ dense over density" : "speed-up over the kept mass")}});
    AxisTexts axes = table_.setting;
    axes.insert(axes.end(), comparison_.common.begin(), comparison_.common.end());
    head.add_axes(axes);
    std::vector<PlotHead::Item> key;
    for (std::size_t k = 0; k < comparison_.kernels.size(); ++k) {
      if (!shows(k)) continue;
      key.push_back({comparison_.kernels[k], plot_color(k), dash_of_look(0)});
    }
    if (has_total_) key.push_back({"with selection and planning", "#808080", dash_of_look(1)});
    key.push_back({"fastest dense kernel", kDenseColor, 1});
    if (kind_ == Kind::time) key.push_back({"dense × density", "#b0b0b0", 3});
    head.add_line(key);
    return head;
  }

  /// Whether a curve of the kernel reaches the scale.
  bool shows(std::size_t kernel) const {
    return std::any_of(curves_.begin(), curves_.end(), [&](const auto& curves) {
      return std::any_of(curves.begin(), curves.end(), [&](const Curve& curve) {
        return curve.kernel == kernel && smallest_value(curve) <= top();
      });
    });
  }

  std::string panel_script(std::size_t panel, int width, bool labels_y) const {
    const DensityGroup& group = *groups_[panel];
    PlotScript script;
    add_references(script);
    std::string beyond;
    std::size_t number = 0;
    for (const Curve& curve : curves_[panel]) {
      const bool is_beyond = smallest_value(curve) > top();
      if (is_beyond && !curve.is_total) {
        beyond +=
            fmt::format("{} {} from {}", beyond.empty() ? "above:" : ",",
                        comparison_.kernels[curve.kernel], format_figure(smallest_value(curve)));
      }
      if (is_beyond) continue;
      add_line({.number = number++,
                .look = curve.is_total ? 1U : 0U,
                .color = plot_color(curve.kernel),
                .points = curve.points},
               script);
    }
    if (kind_ == Kind::mass) add_densities(panel, script);
    const std::string title =
        fmt::format("{} tokens; dense: {}, {} ms", format_tokens(group.tokens),
                    group.dense->c.kernel, format_figure(*metric_of(group.dense, "time_ms")));
    return fmt::format("{}{}set ylabel {}\n{}\n", script.data, plot_title(title, beyond, width),
                       gnuplot_quoted(labels_y ? y_label() : ""), script.plot);
  }

  std::string y_label() const { return kind_ == Kind::time ? "time ÷ dense" : "times dense speed"; }

  /// Adds lines at the dense time and at the dense time × density.
  void add_references(PlotScript& script) const {
    script.data += fmt::format("$dense << EOD\n{:.6g} 1\n1 1\nEOD\n", left());
    script.plot +=
        fmt::format(", $dense using 1:2 with lines lc rgb '{}' lw 1.8 dt 1 notitle", kDenseColor);
    if (kind_ != Kind::time) return;
    script.data += "$share << EOD\n0 0\n1 1\nEOD\n";
    script.plot += ", $share using 1:2 with lines lc rgb '#b0b0b0' lw 1.4 dt 3 notitle";
  }

  /// Labels the fastest kernel's points with their density.
  void add_densities(std::size_t panel, PlotScript& script) const {
    script.data += "$densities << EOD\n";
    for (const double density : table_.densities) {
      const Record* fastest = groups_[panel]->fastest(density);
      const auto mass = groups_[panel]->metric_at(density, "kept_mass");
      const auto value = value_of(fastest, groups_[panel]->dense, time_of_dense);
      if (!mass || !value) continue;
      script.data += fmt::format("{:.6g} {:.6g} {}\n", *mass, *value, format_density(density));
    }
    script.data += "EOD\n";
    script.plot +=
        ", $densities using 1:2:3 with labels offset 0,0.8 font ',8' tc rgb '#404040' notitle";
  }

  const DenseComparison& comparison_;
  const DensityTable& table_;
  Kind kind_;
  std::vector<const DensityGroup*> groups_;  // with values
  std::vector<std::vector<Curve>> curves_;   // of each group
  double largest_ = 0;
  double min_x_ = 1;
  bool has_total_ = false;
};

}  // namespace

std::vector<std::filesystem::path> write_sparse_plots(const DenseComparison& comparison,
                                                      const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const DensityTable& table : comparison.tables) {
    for (const Kind kind : {Kind::time, Kind::mass}) {
      const SparseFigure figure(comparison, table, kind);
      if (!figure.has_values()) continue;
      const std::string stem =
          plot_stem(fmt::format("sparse-{}-{}-{}", table.mask, to_string(table.pass),
                                kind == Kind::time ? "time" : "mass"),
                    table.setting);
      draw_all_formats(
          directory, stem, [&](const auto& file) { figure.draw(file); }, files);
    }
  }
  return files;
}

}  // namespace longca
