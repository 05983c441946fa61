#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "advise/cell_model.h"
#include "advise/evidence.h"
#include "advise/needs.h"
#include "advise/work.h"

namespace longca::advise {

enum class Basis : std::uint8_t {
  measured,      ///< a record has exactly this cell
  interpolated,  ///< CellModel
  simulated,     ///< the plans of all ranks, priced on a platform
};
std::string_view to_string(Basis basis);

enum class Objective : std::uint8_t { time, memory };

struct AdviceOptions {
  std::set<std::string> kernels = {};  ///< the only ones to consider; empty: all
  std::vector<const Need*> needs = {};
  Objective objective = Objective::time;
};

/// A number with the interval that is expected to hold it.
struct Expected {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// What could be used, and what it is expected to take.
struct Choice {
  Case c;  ///< the problem with kernel and, over ranks, scheme, shard, factor, transport
  Expected time_ms;
  std::optional<Expected> peak_bytes{};
  Basis basis = Basis::measured;
  std::optional<Situation> situation{};  ///< of what was interpolated, the furthest
  std::set<std::string> files{};         ///< whose records it rests on
  bool tied = false;  ///< its interval overlaps that of the first choice, which itself is not tied
};

/// The reason of kernels that were not among those asked for; tables leave them out.
inline constexpr std::string_view kNotAskedFor = "not asked for";

/// A kernel that is not among the choices, and why.
struct Refusal {
  std::string kernel;
  std::string reason;
};

/// The answer for one problem and pass.
struct Advice {
  Case problem;                     ///< its kernel means nothing
  std::vector<Choice> choices{};    ///< best first
  std::vector<Refusal> excluded{};  ///< cannot do it, or did it wrong
  std::vector<Refusal> unknown{};   ///< could do it, and no record tells how fast
  std::size_t sequences = 1;  ///< of which it is the mean; `problem` then has their mean length
  /// What would find out about the unknown, or settle ties that were interpolated; "" if nothing
  /// is open.
  std::string find_out{};
};

/// What the objective asks the least of. For Objective::memory the choice has peak_bytes.
const Expected& figure_of(const Choice& choice, Objective objective);

/// Sorts choices by what is asked for, best first, and marks those tied with the first. For
/// Objective::memory all have peak_bytes.
void rank_choices(std::vector<Choice>& choices, Objective objective);

/// What one record says, which is ok and has a time.
Choice measured_choice(const EvidenceCell& cell);
/// Both passes as one step.
Choice step_of(const Case& step, const Choice& forward, const Choice& backward);
/// "slice", or over ranks "magi slice balanced peer": equal for choices that differ in the problem
/// alone.
std::string name_of_choice(const Choice& choice);
/// What happened in a cell that is not ok, and where.
std::string failure_text(const EvidenceCell& cell);
/// Why the kernel is not to be considered, whatever the problem: not asked for, or it lacks what is
/// needed; else "".
std::string why_not_needed(const Case& c, const AdviceOptions& options);

/// " --plugin FILE", quoted for a shell, for each plug-in that some of these kernels come from.
std::string plugin_options(const std::set<std::string>& kernels, DeviceKind device);

/// The command that would measure what is unknown or interpolated and could be the best.
std::string command_to_find_out(const Advice& advice);

/// Advises from the records of one card. Not thread-safe.
class Advisor {
 public:
  /// `evidence` and `masks` outlive it.
  Advisor(const Evidence& evidence, MaskFacts& masks);

  /// Kernels on one device for the problem (`scheme` and `ranks` empty). A step is measured as
  /// such, or the sum of its passes.
  Advice advise(const Case& problem, const AdviceOptions& options = {});

 private:
  /// A model and the files of its cells.
  struct Learned {
    CellModel model;
    std::set<std::string> files;
  };
  /// What is known of one pass of one kernel.
  struct PassEstimate {
    std::optional<Choice> choice{};
    std::string excluded{};  ///< why it cannot, if it cannot
    std::string unknown{};   ///< why nothing is known, if so
  };
  PassEstimate estimate(const Case& c);
  PassEstimate estimate_step(const Case& step);
  std::string why_excluded(const Case& c, const AdviceOptions& options);
  /// The nearest cell of the kernel on that mask, or else on masks of its form, if it rules this
  /// cell out; "" otherwise.
  std::string nearest_failure(const Case& c);
  /// Nothing for a mask that cannot be made here.
  std::optional<MaskForm> form_of(const EvidenceCell& cell);
  /// What the case's kernel computes for its mask.
  Work work_of(const Case& c);
  /// The same, once for each cell.
  const Work& work_of(const EvidenceCell& cell);
  /// A model of the cells with masks of these kinds, slices or blocks, that are on the kernel's
  /// `own_path` as the case is, or not as it is not.
  const Learned& learned(const Case& c, Quantity quantity, bool own_path,
                         std::span<const std::string_view> kinds_of_mask);
  struct Told {
    const Learned* from;
    std::optional<Prediction> prediction;
  };
  /// By cells of the case's own kind of mask or, where these tell nothing of it, of both kinds:
  /// also where they have other block lists alone, which differ more from these than slices do.
  Told predict(const Case& c, Quantity quantity);

  const Evidence& evidence_;
  MaskFacts& masks_;
  std::vector<std::string> kernels_;  ///< of the registry for the card's device, and of records
  std::map<std::string, Learned> learned_;               ///< by series and quantity
  std::unordered_map<const EvidenceCell*, Work> works_;  ///< work_of
  std::map<std::string, std::vector<const EvidenceCell*>> by_series_;
};

}  // namespace longca::advise
