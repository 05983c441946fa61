#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "advise/advisor.h"
#include "advise/documents.h"
#include "advise/evidence.h"
#include "bench/suite/axes.h"
#include "simulate/cluster.h"
#include "simulate_cells.h"

// Problems as the command line says them, and what the advisors answer to each.

namespace longca {

/// Answers over ranks with kernels and schemes that nobody measured there.
class Simulator {
 public:
  /// `asked`: the cluster of --platform, if it names one. `sources` and `card` outlive it.
  Simulator(std::optional<simulate::Cluster> asked, std::span<const advise::RecordSource> sources,
            const advise::Card& card)
      : asked_(std::move(asked)), sources_(sources), card_(card) {}

  /// The cluster of --platform, if it names one.
  const std::optional<simulate::Cluster>& asked() const { return asked_; }
  /// Throws InputError if the cluster of --platform has fewer GPUs.
  void require_ranks(std::int64_t ranks) const;
  /// As add_simulated_choices does, on the asked cluster or the smallest of the card's that has as
  /// many GPUs; nothing where there is none. An asked cluster with fewer excludes every scheme.
  void add_choices(std::span<const Case> cells, const advise::AdviceOptions& options,
                   advise::Advice& advice, Transport transport);

 private:
  void learn_rates();

  std::optional<simulate::Cluster> asked_;
  std::span<const advise::RecordSource> sources_;
  const advise::Card& card_;
  std::optional<MeasuredRates> rates_;
  std::set<std::string> files_;
};

/// What answers are made of. Refers to the evidence.
struct Advisors {
  const advise::Evidence& evidence;
  advise::Advisor of_one_device;
  Simulator simulator;
};

/// One answer for each problem that the axes name, on one device or over the ranks that they name.
/// Throws InputError.
std::vector<advise::Advice> answer_problems(const AxisValues& given, advise::AdviceOptions options,
                                            Advisors& advisors);

/// A user's own packed sequences.
struct AskedDocuments {
  std::string file;
  std::int64_t samples = 0;  ///< so many of them are answered
};

/// The axes of the sequences, one set for each; a causal_document mask unless one is given. Throws
/// InputError for axes that the sequences say themselves.
std::vector<AxisValues> axes_of_documents(const AskedDocuments& documents, const AxisValues& given);

/// The answers to sampled sequences, their means by problem. Throws InputError.
std::vector<advise::Advice> answer_documents(const AskedDocuments& documents,
                                             const AxisValues& given,
                                             const advise::AdviceOptions& options,
                                             Advisors& advisors);

}  // namespace longca
