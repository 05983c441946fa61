#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/dense_comparison.h"
#include "report/ranks_metrics.h"
#include "report/view.h"

namespace longca {

/// The cells of a page, column by column, because thousands of objects with the same keys would be
/// larger than the plots' library:
///   {"count",
///    "columns":{name:{"values":[…],"runs":[value, cells, …]}…}   kernel, mask, …; value 0 is null
///    "metrics":{"sets":[[name…]…],"rows":[[set, value…]…]}
///    "samples":[[ms, parts…]…]                     of each cell the first one and, in parts of
///                                                  10,000, how far all are from it
///    "rank_times":[[cell, [ms, parts…]]…]          the same, of cells that have them
///    "traces":[[cell, [t_ms…], [mhz…], [w…]]…]}    in the order of the run
/// In place of the metric "tflops" an `ok` cell has "rate", in the view's unit. Views derive more
/// metrics: "error" (largest), "efficiency", "exposed_pct", and of block-sparse cells "of_dense",
/// "total_of_dense", "memory_of_dense", "selection_pct".
class HtmlCells {
 public:
  static constexpr std::size_t kMaxSamples = 200;       ///< of a cell, evenly spaced
  static constexpr std::size_t kMaxTracePoints = 6000;  ///< of the page, if cells have more than 2

  /// Appends a view's cells, in its order.
  void add(const View& view, const Baselines& baselines, const DenseComparison& comparison);

  std::size_t index_of(const Record* record) const { return places_.at(record); }
  nlohmann::json write() const;

 private:
  using Metrics = std::map<std::string, double>;

  /// A value per cell; equal ones are written once, and their number where they follow each other.
  struct Column {
    std::vector<nlohmann::json> values = {nullptr};
    std::map<nlohmann::json, std::size_t> known{};
    std::vector<std::size_t> runs{};  ///< value, cells, value, cells, …
    std::size_t cells = 0;
  };

  void add_cell(const Record& record, const ViewRow& row, const nlohmann::json& setting);
  void put(const std::string& column, nlohmann::json value);
  void put_metrics(const Metrics& metrics);
  nlohmann::json traces_json() const;

  std::map<const Record*, std::size_t> places_;
  std::map<std::string, Column> columns_;
  std::map<std::vector<std::string>, std::size_t> metric_sets_;
  nlohmann::json metric_names_ = nlohmann::json::array();
  nlohmann::json metric_rows_ = nlohmann::json::array();
  nlohmann::json samples_ = nlohmann::json::array();
  nlohmann::json rank_times_ = nlohmann::json::array();
  /// In the order of the run, in which records lie in an array: cells over ranks, then the others.
  std::map<std::pair<bool, const Record*>, std::size_t> traced_;
};

/// Rounded to so many significant digits; a whole number stays as it is.
nlohmann::json short_number(double value, int digits = 6);

/// {"heads": "8:2"}.
nlohmann::json axes_json(const AxisTexts& axes);

}  // namespace longca
