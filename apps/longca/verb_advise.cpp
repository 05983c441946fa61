#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "advise/advice_json.h"
#include "advise/advice_text.h"
#include "advise/documents.h"
#include "advise/rank_advisor.h"
#include "bench/record/origin.h"
#include "bench/suite/axis_values.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"
#include "simulated_advice.h"
#include "verbs.h"

namespace longca {
namespace {

struct AdviseArguments {
  std::vector<std::string> axes;
  std::vector<std::string> records;
  std::string platform;
  std::string objective = "time";
  std::string pass;
  std::string needs;
  std::string documents;
  std::int64_t samples = 64;
  bool deterministic = false;
  bool evaluate = false;
  bool json = false;
};

advise::Objective objective_of(const std::string& name) {
  if (name == "time") return advise::Objective::time;
  if (name == "memory") return advise::Objective::memory;
  const std::vector<std::string> known{"time", "memory"};
  throw_input_error("unknown objective '{}'{}; there are time and memory", name,
                    suggestion(name, known));
}

std::vector<const advise::Need*> needs_of(const std::string& list) {
  std::vector<const advise::Need*> needs;
  if (list.empty()) return needs;
  for (const std::string_view name : split_list("--needs", list)) {
    needs.push_back(&advise::find_need(name));
  }
  return needs;
}

/// The axes that were given, with --pass and --deterministic among them; a step unless a pass is
/// named.
AxisValues given_values(const AdviseArguments& arguments) {
  AxisValues given;
  for (const std::string& axis : arguments.axes) parse_axis_argument(axis, given);
  if (!arguments.pass.empty() && given.contains("pass")) {
    throw InputError("--pass and -a pass= say the same thing: give one of them");
  }
  const std::string pass = arguments.pass.empty() ? "step" : arguments.pass;
  if (!given.contains("pass")) parse_axis_argument("pass=" + pass, given);
  if (arguments.deterministic) parse_axis_argument("deterministic=1", given);
  if (const auto device = given.find("device");
      device != given.end() && (device->second.size() > 1 || device->second.front() == kFound)) {
    throw InputError("device is cpu or cuda here: advice is for one card");
  }
  return given;
}

std::vector<advise::RecordSource> sources_of(const AdviseArguments& arguments) {
  std::vector<std::filesystem::path> files(arguments.records.begin(), arguments.records.end());
  if (files.empty()) files = advise::default_record_files();
  return advise::read_sources(files);
}

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

/// Whether `platform` is a cluster of its own, and not only a card.
bool names_cluster(const std::string& platform) {
  if (platform.ends_with(".toml")) return true;
  const auto clusters = simulate::cluster_names();
  const auto cards = cost::platform_names();
  return std::ranges::find(clusters, platform) != clusters.end() &&
         std::ranges::find(cards, platform) == cards.end();
}

/// What answers where nothing was measured over ranks.
class Simulator {
 public:
  /// `asked`: the cluster of --platform, if it names one. `sources` outlive it.
  Simulator(std::optional<simulate::Cluster> asked, std::span<const advise::RecordSource> sources,
            const advise::Card& card)
      : asked_(std::move(asked)), sources_(sources), card_(card) {}

  void add_choices(std::span<const Case> cells, const advise::AdviceOptions& options,
                   advise::Advice& advice) {
    const std::int64_t ranks = advice.problem.ranks.value();
    if (asked_) asked_->require_ranks(ranks);
    const auto cluster = asked_ ? asked_ : cluster_of_card(card_.name, ranks);
    if (!cluster) return;
    if (!rates_) learn_rates();
    add_simulated_choices(*cluster, *rates_, files_, cells, options, advice);
  }

 private:
  /// Of kernels other than slice, whose times the platform's page has.
  void learn_rates() {
    std::vector<Record> records;
    for (const advise::RecordSource& source : sources_) {
      for (const Record& record : source.records) {
        const Case& c = record.c;
        if (c.kernel == "slice" || c.scheme || processor_of_case(record) != card_.name) continue;
        records.push_back(record);
        files_.insert(source.file);
      }
    }
    rates_.emplace(latest_records(std::move(records)));
  }

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

std::vector<advise::Advice> answer(const AxisValues& given, advise::AdviceOptions options,
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
    answers.push_back(advise_over_ranks(advisors.evidence, asked.problem, variants, options));
    advise::Advice& advice = answers.back();
    if (advice.choices.empty() && advice.excluded.empty()) {
      advisors.simulator.add_choices(asked.cells, options, advice);
    }
  }
  return answers;
}

/// The answers for sampled sequences of --documents, summed up by problem.
std::vector<advise::Advice> answer_documents(const AdviseArguments& arguments, AxisValues given,
                                             const advise::AdviceOptions& options,
                                             Advisors& advisors) {
  for (const char* axis : {"tokens", "lengths", "tokens_per_rank"}) {
    if (given.contains(axis)) {
      throw_input_error("the sequences of --documents say their own {}: leave -a {}= out", axis,
                        axis);
    }
  }
  if (axis_of_ranks(given)) throw InputError("--documents: advice over ranks is for one length");
  given.try_emplace("mask", std::vector<std::string>{"causal_document"});
  std::vector<std::vector<advise::Advice>> by_problem;
  for (const auto& sequence : advise::sample_documents(arguments.documents, arguments.samples)) {
    given["lengths"] = {sequence.lengths};
    given["tokens"] = {std::to_string(sequence.tokens)};
    auto answers = answer(given, options, advisors);
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

/// Throws InputError if no kernel at all can do what was asked: it names who is excluded by what.
void refuse_the_impossible(const std::vector<advise::Advice>& answers) {
  for (const advise::Advice& advice : answers) {
    if (!advice.choices.empty() || !advice.unknown.empty()) continue;
    std::string reasons;
    for (const advise::Refusal& refusal : advice.excluded) {
      if (refusal.reason == advise::kNotAskedFor) continue;
      reasons += (reasons.empty() ? "" : "; ") + refusal.kernel + ": " + refusal.reason;
    }
    throw_input_error("no kernel can do {} ({}): {}", advice.problem.problem_key(),
                      to_string(advice.problem.pass), reasons);
  }
}

/// The card of the records to advise from. `may_lack_records`: what is asked for can be simulated
/// without any.
advise::Card card_of(std::span<const advise::RecordSource> sources, const std::string& name,
                     const std::string& device, bool may_lack_records) {
  if (may_lack_records && !advise::find_card(sources, name, device)) return {"cuda", name};
  return advise::choose_card(sources, name, device);
}

void print_answer_json(const nlohmann::json& json) {
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void evaluate(const advise::Evidence& evidence, bool as_json) {
  advise::MaskFacts masks;
  std::vector<advise::HeldOut> held_out;
  for (const advise::LeftOut by : advise::kLeftOut) {
    held_out.push_back(advise::leave_out(evidence, masks, by));
  }
  if (as_json) return print_answer_json(advise::evaluation_json(evidence, held_out));
  advise::print_evaluation(std::cout, evidence, held_out);
}

void advise_verb(const AdviseArguments& arguments) {
  AxisValues given = given_values(arguments);
  advise::AdviceOptions options;
  options.objective = objective_of(arguments.objective);
  options.needs = needs_of(arguments.needs);
  const auto device = given.find("device");
  const std::vector<advise::RecordSource> sources = sources_of(arguments);
  std::optional<simulate::Cluster> cluster;
  if (names_cluster(arguments.platform)) cluster = simulate::load_cluster(arguments.platform);
  const advise::Evidence evidence(sources,
                                  card_of(sources, cluster ? cluster->card : arguments.platform,
                                          device == given.end() ? "" : device->second.front(),
                                          cluster && axis_of_ranks(given)));
  if (arguments.evaluate) return evaluate(evidence, arguments.json);
  given["device"] = {evidence.card().device};
  advise::MaskFacts masks;
  Advisors advisors{evidence, {evidence, masks}, {cluster, sources, evidence.card()}};
  const auto answers = arguments.documents.empty()
                           ? answer(given, options, advisors)
                           : answer_documents(arguments, given, options, advisors);
  refuse_the_impossible(answers);
  if (arguments.json) {
    print_answer_json(advise::advice_json(evidence, answers, options.objective));
  } else {
    advise::print_advice(std::cout, evidence, answers);
  }
}

}  // namespace

void add_advise(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("advise", "Which kernel and scheme to use, from records");
  auto arguments = std::make_shared<AdviseArguments>();
  verb->add_option("-a,--axis", arguments->axes, "the problem, as tokens=8K; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  verb->add_option("--records", arguments->records, "default: those of the results folder")
      ->type_name("FILE...");
  verb->add_option("--platform", arguments->platform,
                   "card or cluster: h200, h200x8; default: this machine's")
      ->type_name("P");
  verb->add_option("--pass", arguments->pass, "forward, backward or step (the default)")
      ->type_name("PASS");
  verb->add_option("--objective", arguments->objective, "time (the default) or memory")
      ->type_name("WHAT");
  verb->add_option("--needs", arguments->needs, "lse, gqa, backward, deterministic, …")
      ->type_name("LIST");
  verb->add_option("--documents", arguments->documents, "a line of document lengths per sequence")
      ->type_name("FILE");
  verb->add_option("--samples", arguments->samples, "so many of its sequences (64)")
      ->type_name("N");
  verb->add_flag("--deterministic", arguments->deterministic, "gradients equal to the bit");
  verb->add_flag("--evaluate", arguments->evaluate, "how far off it is on cells left out");
  verb->add_flag("--json", arguments->json, "for programs");
  verb->footer(
      "Choices whose interval overlaps the first one's are tied. What was measured\n"
      "stands as it was; the rest is interpolated, over ranks simulated, or unknown.\n"
      "Example: longca advise -a mask=causal_document -a tokens=48K --platform h200");
  verb->callback([arguments] { advise_verb(*arguments); });
}

}  // namespace longca
