#include "advise_answers.h"

#include <algorithm>
#include <utility>

#include "advise/degrees.h"
#include "advise/rank_advisor.h"
#include "bench/record/origin.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "simulated_advice.h"

namespace longca {
namespace {

/// The asked problems, one case for each with its pass; `cells` are all cells of one of them.
struct Asked {
  Case problem;
  std::vector<Case> cells;
};

std::vector<Asked> asked_problems(const std::vector<Case>& cases) {
  std::vector<Asked> asked;
  for (const Case& c : cases) {
    const auto same = [&](const Asked& known) {
      return known.problem.pass == c.pass && known.problem.mode == c.mode &&
             known.problem.deterministic == c.deterministic &&
             known.problem.problem_key() == c.problem_key();
    };
    const auto found = std::ranges::find_if(asked, same);
    (found == asked.end() ? asked.emplace_back(Asked{c, {}}) : *found).cells.push_back(c);
  }
  return asked;
}

}  // namespace

void Simulator::require_ranks(std::int64_t ranks) const {
  if (asked_) asked_->require_ranks(ranks);
}

void Simulator::add_choices(std::span<const Case> cells, const advise::AdviceOptions& options,
                            advise::Advice& advice, Transport transport) {
  const std::int64_t ranks = advice.problem.ranks.value();
  try {
    require_ranks(ranks);
  } catch (const InputError& too_many) {  // others of the problems may have fewer
    advice.excluded.push_back({"every scheme", too_many.what()});
    if (advice.choices.empty()) {
      advice.unknown.clear();
      advice.find_out.clear();
    }
    return;
  }
  const auto cluster = asked_ ? asked_ : cluster_of_card(card_.name, ranks);
  if (!cluster) return;
  if (!rates_) learn_rates();
  add_simulated_choices(*cluster, *rates_, files_, cells, options, advice, transport);
}

/// Of slice only where the platform's page does not have its times.
void Simulator::learn_rates() {
  std::vector<Record> records;
  for (const advise::RecordSource& source : sources_) {
    for (const Record& record : source.records) {
      const Case& c = record.c;
      if (c.scheme || processor_of_case(record) != card_.name) continue;
      if (c.kernel == "slice" && slice_is_of_page(c)) continue;
      records.push_back(record);
      files_.insert(source.file);
    }
  }
  rates_.emplace(latest_records(std::move(records)));
}

std::vector<advise::Advice> answer_problems(const AxisValues& given, advise::AdviceOptions options,
                                            Advisors& advisors) {
  Suite suite;
  suite.name = "advise";
  override_axes(suite, given);
  const bool over_ranks = axis_of_ranks(given).has_value();
  const bool names_variants =
      std::ranges::any_of(std::vector<std::string>{"scheme", "shard", "factor", "transport"},
                          [&](const std::string& axis) { return given.contains(axis); });
  if (over_ranks && !given.contains("ranks")) {
    throw InputError("over how many ranks? give -a ranks=COUNT");
  }
  if (const auto kernels = given.find("kernel"); kernels != given.end()) {
    options.kernels = {kernels->second.begin(), kernels->second.end()};
  } else if (!over_ranks) {
    suite.axes["kernel"] = {"naive"};  // any: the problem is the same
  }
  const CaseList list = over_ranks ? expand_over_ranks(suite, {}) : expand(suite);
  std::vector<advise::Advice> answers;
  for (const Asked& asked : asked_problems(list.cases)) {
    const std::vector<Case> variants = names_variants ? asked.cells : std::vector<Case>{};
    if (!over_ranks) {
      answers.push_back(advisors.of_one_device.advise(asked.problem, options));
      continue;
    }
    const std::int64_t ranks = asked.problem.ranks.value();
    if (const auto memory = advisors.evidence.memory_bytes()) {
      std::string too_large = advise::why_too_large(asked.problem, ranks, *memory);
      if (!too_large.empty()) {
        answers.push_back(
            {.problem = asked.problem, .excluded = {{"every scheme", std::move(too_large)}}});
        continue;
      }
    }
    answers.push_back(advise_over_ranks(advisors.evidence, asked.problem, variants, options));
    advise::Advice& advice = answers.back();
    const std::size_t measured = advice.choices.size();
    advisors.simulator.add_choices(
        asked.cells, options, advice,
        given.contains("transport") ? Transport::asked : Transport::found);
    if (advice.choices.size() > measured) {
      advice.find_out = advise::command_over_ranks(asked.problem, variants, options);
    }
  }
  return answers;
}

std::vector<AxisValues> axes_of_documents(const AskedDocuments& documents,
                                          const AxisValues& given) {
  for (const char* axis : {"tokens", "lengths", "tokens_per_rank"}) {
    if (given.contains(axis)) {
      throw_input_error("the sequences of --documents say their own {}: leave -a {}= out", axis,
                        axis);
    }
  }
  std::vector<AxisValues> sequences;
  for (const auto& sequence : advise::sample_documents(documents.file, documents.samples)) {
    AxisValues axes = given;
    axes.try_emplace("mask", std::vector<std::string>{"causal_document"});
    axes["lengths"] = {sequence.lengths};
    axes["tokens"] = {std::to_string(sequence.tokens)};
    sequences.push_back(std::move(axes));
  }
  return sequences;
}

std::vector<advise::Advice> answer_documents(const AskedDocuments& documents,
                                             const AxisValues& given,
                                             const advise::AdviceOptions& options,
                                             Advisors& advisors) {
  if (axis_of_ranks(given)) throw InputError("--documents: advice over ranks is for one length");
  std::vector<std::vector<advise::Advice>> by_problem;
  for (const AxisValues& axes : axes_of_documents(documents, given)) {
    auto answers = answer_problems(axes, options, advisors);
    by_problem.resize(answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      by_problem[i].push_back(std::move(answers[i]));
    }
  }
  std::vector<advise::Advice> means;
  for (const auto& answers : by_problem) {
    means.push_back(advise::mean_advice(answers, options.objective));
  }
  return means;
}

}  // namespace longca
