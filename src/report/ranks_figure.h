#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/ranks_metrics.h"
#include "report/view.h"

namespace longca {

/// One scheme's cells over the numbers of ranks; a scheme has several series if the figure has
/// several of its shards, factors, transports or kernels.
struct RanksSeries {
  std::string name;                    ///< the scheme and the variant: "ulysses naive"
  std::string variant;                 ///< what distinguishes it from others of its scheme, or ""
  std::size_t scheme = 0;              ///< index into View::schemes: its colour
  std::vector<const Record*> cells{};  ///< by ranks, ascending
};

/// One scaling of a mask.
struct RanksPanel {
  std::string title;
  std::vector<int> ranks{};           ///< ascending; x is the index into it
  std::vector<RanksSeries> series{};  ///< in the order of the schemes

  double x_of(const Record& record) const;
};

/// One mask and pass at one setting of the axes.
struct RanksFigure {
  std::string mask;
  Pass pass = Pass::forward;
  AxisTexts name;     ///< what distinguishes it from the others of its mask and pass
  AxisTexts setting;  ///< all axes that its cells share
  RateUnit unit;
  std::vector<RanksPanel> panels{};
};

/// `view` shows records.over_ranks.
std::vector<RanksFigure> make_ranks_figures(const View& view, const SplitRecords& records);

/// Lists what has no rate in a panel, with the status marks: "no number: ulysses 4 X, 8 X; usp 8
/// C". Schemes that lack the same are listed together, "no number: naive X (all 6 schemes)", and
/// ranks are left out if the panel has only one number of them. "" if everything has a rate.
std::string absent_text(const RanksPanel& panel);

/// Assigns colours to schemes and looks (dashes or fill patterns, by index) to variants. Lists only
/// series with a value: one by one, or, if that takes fewer entries, schemes and variants
/// separately; then a variant has the same look with every scheme.
class RanksLegend {
 public:
  struct Entry {
    std::string text;
    std::optional<std::size_t> scheme;  ///< index into View::schemes; none: of all schemes
    std::optional<std::size_t> look;    ///< none: of all variants
  };

  RanksLegend(const RanksFigure& figure, const std::function<bool(const Record&)>& has_value);

  const std::vector<Entry>& entries() const { return entries_; }
  /// 0 is the plainest. The series must have a value.
  std::size_t look_of(const RanksSeries& series) const { return looks_.at(series.name); }

 private:
  void list_one_by_one(const std::vector<const RanksSeries*>& series);
  void list_separately(const std::vector<const RanksSeries*>& series,
                       const std::vector<std::string>& variants);

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> looks_;  // by the series' name
};

}  // namespace longca
