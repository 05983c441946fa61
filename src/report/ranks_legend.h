#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/ranks_figure.h"

namespace longca {

/// How the series of a figure are told apart: colours for schemes, dashes or patterns ("looks") for
/// variants. Only series with a value are listed: one by one, or, where that takes fewer entries,
/// schemes and variants apart; then a variant has the same look with every scheme.
class RanksLegend {
 public:
  struct Entry {
    std::string text;
    std::optional<std::size_t> scheme;  ///< index into View::schemes; none: of all schemes
    std::optional<std::size_t> look;    ///< none: of all variants
  };

  RanksLegend(const RanksFigure& figure, const std::function<bool(const Record&)>& has_value);

  const std::vector<Entry>& entries() const { return entries_; }
  /// 0 is the plainest. The series has a value.
  std::size_t look_of(const RanksSeries& series) const { return looks_.at(series.name); }

 private:
  void list_one_by_one(const std::vector<const RanksSeries*>& series);
  void list_apart(const std::vector<const RanksSeries*>& series,
                  const std::vector<std::string>& variants);

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> looks_;  // by the series' name
};

}  // namespace longca
