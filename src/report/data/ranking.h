#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "report/view.h"

namespace longca {

/// What the rows of a group are compared by.
enum class RankedWork : std::uint8_t {
  forward,
  backward,
  /// One forward and one backward pass, as training runs them: a measured step, or where a row has
  /// none, their times added up.
  step
};
inline constexpr RankedWork kWorks[] = {RankedWork::forward, RankedWork::backward,
                                        RankedWork::step};
/// "forward", "backward", "step".
std::string_view to_string(RankedWork work);

/// A row with a time for all of the work.
struct RankedRow {
  const ViewRow* row;
  /// The cell that the time is of; of a step that was added up the forward pass.
  const Record* record = nullptr;
  double time_ms = 0;
  double tflops = 0;
  /// The 95 % confidence interval of time_ms; absent where too few repetitions ran. Of a step that
  /// was added up the sums of both passes' ends.
  std::optional<TimeInterval> interval;
  /// The fastest, or a tie: of several rounds what compare_times does not call slower; of one round
  /// what is within kTie of it, or whose interval overlaps.
  bool is_first = false;
};

/// The rows of one group by time: who is first, and how far ahead. All views mark and name the
/// fastest by this.
struct Ranking {
  /// Times within this of the fastest are ties, however narrow their intervals are: two runs of one
  /// kernel differ by as much.
  static constexpr double kTie = 0.01;

  std::vector<RankedRow> rows;  ///< fastest first

  /// The fastest row that is not first; nullptr if there is none.
  const RankedRow* next() const;
  /// Its time ÷ that of the fastest.
  std::optional<double> lead() const;
  /// Whether the row is first, and there is another to be faster than.
  bool is_marked(const ViewRow& row) const;
};

/// Ranks the rows of which all cells of the work are `ok`.
Ranking rank(const ViewGroup& group, RankedWork work);

/// The rankings of the passes of a group, which outlives them.
class PassRankings {
 public:
  explicit PassRankings(const ViewGroup& group)
      : passes_{rank(group, RankedWork::forward), rank(group, RankedWork::backward),
                rank(group, RankedWork::step)} {}
  bool is_marked(const ViewRow& row, Pass pass) const {
    return passes_[static_cast<std::size_t>(pass)].is_marked(row);
  }

 private:
  std::array<Ranking, std::size(kPasses)> passes_;
};

}  // namespace longca
