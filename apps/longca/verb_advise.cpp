#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/advice_json.h"
#include "advise/advice_text.h"
#include "advise/degrees_text.h"
#include "advise_answers.h"
#include "advise_degrees.h"
#include "bench/suite/axis_values.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"
#include "verbs.h"

namespace longca {
namespace {

struct AdviseArguments {
  std::vector<std::string> axes;
  std::vector<std::string> records;
  std::string platform;
  std::string objective = "time";
  std::string pass;
  std::string heads;
  std::string dim;
  std::string needs;
  std::string documents;
  std::optional<std::int64_t> samples;
  std::string gpus;
  std::string layers;
  std::string tokens_per_step;
  bool deterministic = false;
  bool evaluate = false;
  bool json = false;
};

/// So many sequences of --documents are answered unless --samples says so; where each is simulated
/// at every degree, fewer.
constexpr std::int64_t kSamples = 64;
constexpr std::int64_t kSamplesOfDegrees = 4;

/// Above these no simulation ends in reasonable time.
constexpr std::int64_t kMaxGpus = 1 << 20;
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxTokensPerStep = std::int64_t{1} << 36;

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

/// Sets an axis that has an option of its own.
void set_axis(const std::string& name, const std::string& value, AxisValues& given) {
  if (value.empty()) return;
  if (given.contains(name)) {
    throw_input_error("--{} and -a {}= say the same thing: give one of them", name, name);
  }
  parse_axis_argument(name + "=" + value, given);
}

/// The axes that were given, those with options of their own among them; a step unless a pass is
/// named.
AxisValues given_values(const AdviseArguments& arguments) {
  AxisValues given;
  for (const std::string& axis : arguments.axes) parse_axis_argument(axis, given);
  set_axis("pass", arguments.pass, given);
  set_axis("heads", arguments.heads, given);
  set_axis("dim", arguments.dim, given);
  if (!given.contains("pass")) parse_axis_argument("pass=step", given);
  if (arguments.deterministic) parse_axis_argument("deterministic=1", given);
  if (const auto device = given.find("device");
      device != given.end() && (device->second.size() > 1 || device->second.front() == kFound)) {
    throw InputError("device is cpu or cuda here: advice is for one card");
  }
  return given;
}

/// The one count that an option was given; `standard` without it. Throws InputError.
std::int64_t count_of(const std::string& option, const std::string& text, std::int64_t high,
                      std::int64_t standard) {
  if (text.empty()) return standard;
  const auto counts = counts_between(option, 1, high)(text);
  if (counts.size() > 1) throw_input_error("{} {}: one number is asked for", option, text);
  return std::stoll(counts.front());
}

/// The job of --gpus; nothing without it.
std::optional<advise::Training> training_of(const AdviseArguments& arguments) {
  if (arguments.gpus.empty()) {
    for (const auto& [option, value] :
         {std::pair("--layers", arguments.layers),
          std::pair("--tokens-per-step", arguments.tokens_per_step)}) {
      if (!value.empty())
        throw_input_error("{} {}: of how many GPUs? give --gpus N", option, value);
    }
    return std::nullopt;
  }
  if (arguments.objective != "time") {
    throw InputError("--gpus ranks degrees by time, and says what memory each takes");
  }
  return advise::Training{
      .gpus = count_of("--gpus", arguments.gpus, kMaxGpus, 1),
      .layers = count_of("--layers", arguments.layers, kMaxLayers, 1),
      .tokens_per_step =
          count_of("--tokens-per-step", arguments.tokens_per_step, kMaxTokensPerStep, 0)};
}

std::optional<AskedDocuments> documents_of(const AdviseArguments& arguments) {
  if (arguments.documents.empty()) return std::nullopt;
  const std::int64_t standard = arguments.gpus.empty() ? kSamples : kSamplesOfDegrees;
  return AskedDocuments{arguments.documents, arguments.samples.value_or(standard)};
}

std::vector<advise::RecordSource> sources_of(const AdviseArguments& arguments) {
  std::vector<std::filesystem::path> files(arguments.records.begin(), arguments.records.end());
  if (files.empty()) files = advise::default_record_files();
  return advise::read_sources(files);
}

/// Whether `platform` is a cluster of its own, and not only a card.
bool names_cluster(const std::string& platform) {
  if (platform.ends_with(".toml")) return true;
  const auto clusters = simulate::cluster_names();
  const auto cards = cost::platform_names();
  return std::ranges::find(clusters, platform) != clusters.end() &&
         std::ranges::find(cards, platform) == cards.end();
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

/// Of a cluster that has a page, what is simulated needs no record of its card.
advise::Evidence evidence_of(std::span<const advise::RecordSource> sources,
                             const AdviseArguments& arguments, const AxisValues& given,
                             const std::optional<simulate::Cluster>& cluster) {
  const auto device = given.find("device");
  const bool is_simulated = axis_of_ranks(given) || !arguments.gpus.empty();
  return {sources,
          card_of(sources, cluster ? cluster->card : arguments.platform,
                  device == given.end() ? "" : device->second.front(), cluster && is_simulated)};
}

void answer_degrees(const advise::Training& training, const AdviseArguments& arguments,
                    const AxisValues& given, const advise::AdviceOptions& options,
                    Advisors& advisors) {
  const advise::WeighedDegrees weighed =
      weigh_training(training, given, documents_of(arguments), options, advisors);
  if (arguments.json) {
    print_answer_json(advise::degrees_json(advisors.evidence, weighed));
  } else {
    advise::print_degrees(std::cout, advisors.evidence, weighed);
  }
}

void advise_verb(const AdviseArguments& arguments) {
  AxisValues given = given_values(arguments);
  advise::AdviceOptions options;
  options.objective = objective_of(arguments.objective);
  options.needs = needs_of(arguments.needs);
  const auto training = training_of(arguments);
  const std::vector<advise::RecordSource> sources = sources_of(arguments);
  std::optional<simulate::Cluster> cluster;
  if (names_cluster(arguments.platform)) cluster = simulate::load_cluster(arguments.platform);
  const advise::Evidence evidence = evidence_of(sources, arguments, given, cluster);
  if (arguments.evaluate) return evaluate(evidence, arguments.json);
  given["device"] = {evidence.card().device};
  advise::MaskFacts masks;
  Advisors advisors{evidence, {evidence, masks}, {cluster, sources, evidence.card()}};
  if (training) return answer_degrees(*training, arguments, given, options, advisors);
  const auto documents = documents_of(arguments);
  const auto answers = documents ? answer_documents(*documents, given, options, advisors)
                                 : answer_problems(given, options, advisors);
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
  verb->add_option("-a,--axis", arguments->axes,
                   "the problem, as tokens=8K; also --heads H:K --dim D")
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
  verb->add_option("--documents", arguments->documents,
                   "lines of document lengths; --samples N of them (64)")
      ->type_name("FILE");
  verb->add_option("--gpus", arguments->gpus, "context-parallel degree of a training job on N GPUs")
      ->type_name("N");
  verb->add_option("--layers", arguments->layers, "…  with L layers of this attention (1)")
      ->type_name("L");
  verb->add_option("--tokens-per-step", arguments->tokens_per_step,
                   "…  and T tokens over all GPUs (a sequence each)")
      ->type_name("T");
  // All fits one screen without these.
  verb->add_option("--heads", arguments->heads, "as -a heads=")->type_name("H:K")->group("");
  verb->add_option("--dim", arguments->dim, "as -a dim=")->type_name("D")->group("");
  verb->add_option("--samples", arguments->samples, "so many sequences of --documents")
      ->type_name("N")
      ->group("");
  verb->get_help_ptr()->group("");
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
