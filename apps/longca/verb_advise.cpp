#include <fmt/format.h>

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
#include "advise/open_cells.h"
#include "advise_answers.h"
#include "advise_arguments.h"
#include "advise_degrees.h"
#include "advise_measure.h"
#include "attention/api/registry.h"
#include "axis_notices.h"
#include "bench/plugin_loader.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/printable.h"
#include "platform_notices.h"
#include "report/table.h"
#include "run_verbs.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

std::vector<advise::RecordSource> sources_of(const AdviseArguments& arguments) {
  std::vector<std::filesystem::path> files(arguments.records.begin(), arguments.records.end());
  if (files.empty()) files = advise::default_record_files();
  return advise::read_sources(files);
}

/// Whether `platform` is a cluster, or a node of which a page tells more than a card's name does.
bool names_cluster(const std::string& platform) {
  if (platform.ends_with(".toml")) return true;
  const auto clusters = simulate::cluster_names();
  if (std::ranges::find(clusters, platform) == clusters.end()) return false;
  const auto pages = cost::platform_names();
  return std::ranges::find(pages, platform) == pages.end() ||
         !advise::card_is_named(cost::load_platform(platform).card, platform);
}

bool is_impossible(const advise::Advice& advice) {
  return advice.choices.empty() && advice.unknown.empty();
}

/// Who cannot do the problem, by reason: "slice, fa4: …; fa3: …".
std::string reasons_of(const advise::Advice& advice) {
  std::vector<std::pair<std::string, std::string>> reasons;  // with the kernels' names, each once
  for (const advise::Refusal& refusal : advice.excluded) {
    if (refusal.reason == advise::kNotAskedFor) continue;
    const auto known =
        std::ranges::find(reasons, refusal.reason, [](const auto& entry) { return entry.second; });
    if (known == reasons.end()) {
      reasons.emplace_back(refusal.kernel, refusal.reason);
    } else {
      known->first += ", " + refusal.kernel;
    }
  }
  std::string text;
  for (const auto& [kernels, reason] : reasons) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kernels, reason);
  }
  return text;
}

/// Throws InputError if no kernel at all can do any of the problems: it names who is excluded from
/// the first of them, and why.
void refuse_the_impossible(const std::vector<advise::Advice>& answers) {
  if (!std::ranges::all_of(answers, is_impossible)) return;
  const advise::Advice& first = answers.front();
  throw_input_error("no kernel can do {}{} ({}): {}",
                    answers.size() > 1
                        ? fmt::format("any of the {} problems; the first is ", answers.size())
                        : "",
                    first.problem.problem_key(), to_string(first.problem.pass), reasons_of(first));
}

/// Throws InputError if kernels are named and none of them runs on the device.
void refuse_other_devices(const AxisValues& given, const std::string& device) {
  const auto named = given.find("kernel");
  if (named == given.end()) return;
  std::string devices;
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& can = kernel->capabilities();
    if (std::ranges::find(named->second, can.name) == named->second.end()) continue;
    if (to_string(can.device) == device) return;
    devices += fmt::format("{}{} runs on {}", devices.empty() ? "" : ", ", can.name,
                           to_string(can.device));
  }
  if (!devices.empty()) throw_input_error("{}, and the records are of {}", devices, device);
}

/// The card of the records to advise from. `simulated_on`: what is asked for can be simulated there
/// without any; null if it cannot.
advise::Card card_of(std::span<const advise::RecordSource> sources, const std::string& name,
                     const std::string& device, const simulate::Cluster* simulated_on) {
  if (simulated_on != nullptr && !advise::find_card(sources, name, device)) {
    return {simulated_on->platform.kind, name};
  }
  return advise::choose_card(sources, name, device);
}

void print_answer_json(const nlohmann::json& json) {
  std::cout << printable_json(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace))
            << '\n';
}

void evaluate(const advise::Evidence& evidence, bool as_json) {
  advise::MaskFacts masks = advise::facts_of(evidence.card());
  std::vector<advise::HeldOut> held_out;
  for (const advise::LeftOut by : advise::kLeftOut) {
    held_out.push_back(advise::leave_out(evidence, masks, by));
  }
  if (as_json) return print_answer_json(advise::evaluation_json(evidence, held_out));
  advise::print_evaluation(std::cout, evidence, held_out, terminal_table_options().width);
}

/// Of a cluster that has a page, what is simulated needs no record of its card.
advise::Evidence evidence_of(std::span<const advise::RecordSource> sources,
                             const AdviseArguments& arguments, const AxisValues& given,
                             const std::optional<simulate::Cluster>& cluster) {
  const auto device = given.find("device");
  const bool is_simulated = axis_of_ranks(given) || !arguments.gpus.empty();
  return {sources, card_of(sources, cluster ? cluster->card : arguments.platform,
                           device == given.end() ? "" : device->second.front(),
                           cluster && is_simulated ? &*cluster : nullptr)};
}

/// Says which of the axes that were given have no effect, and which rates of the platform's page.
void print_notes(const AdviseArguments& arguments, const AxisValues& given,
                 const std::optional<simulate::Cluster>& cluster) {
  print_notices(describe_repeated("-a", arguments.axes));
  AxisValues chosen = given;
  if (!arguments.documents.empty()) chosen.try_emplace("mask", 1, "causal_document");
  const bool over_ranks = axis_of_ranks(given).has_value() || !arguments.gpus.empty();
  print_notices(describe_unused(arguments.axes, chosen, over_ranks));
  if (cluster) print_notices(describe_unknown_kernels(cluster->platform));
}

void answer_degrees(const advise::Training& training, const AdviseArguments& arguments,
                    const AxisValues& given, const advise::AdviceOptions& options,
                    Advisors& advisors) {
  const advise::WeighedDegrees weighed =
      weigh_training(training, given, documents_of(arguments), options, advisors);
  print_notes(arguments, given, advisors.simulator.asked());
  if (arguments.json) {
    print_answer_json(advise::degrees_json(advisors.evidence, weighed));
  } else {
    advise::print_degrees(std::cout, advisors.evidence, weighed, terminal_table_options().width);
  }
}

/// This machine's card, which --measure measures. Throws InputError if another one was asked for.
advise::Card card_to_measure(const AdviseArguments& arguments, const AxisValues& given) {
  const auto device = given.find("device");
  advise::Card own = advise::own_card(device == given.end() ? "" : device->second.front());
  if (!advise::card_is_named(own.name, arguments.platform)) {
    throw_input_error(
        "--measure measures this machine's {}, and --platform asks for {}: run it there", own.name,
        arguments.platform);
  }
  return own;
}

/// Answers, measures what is open, and answers again.
void answer_measured(const AdviseArguments& arguments, AxisValues given,
                     const advise::AdviceOptions& options,
                     std::vector<advise::RecordSource> sources) {
  const advise::Card card = card_to_measure(arguments, given);
  given["device"] = {card.device};
  advise::MaskFacts masks = advise::facts_of(card);
  const auto answer = [&](const advise::Evidence& evidence) {
    Advisors advisors{evidence, {evidence, masks}, {std::nullopt, sources, card}};
    return answer_problems(given, options, advisors);
  };
  const auto before = answer({sources, card});
  refuse_the_impossible(before);
  print_notes(arguments, given, std::nullopt);
  const Measured measured =
      measure_cells(advise::open_cells(before, options.objective), *arguments.measure,
                    arguments.out, arguments.records, arguments.plugins);
  if (!measured.records.empty()) sources.push_back({measured.file, measured.records});
  const advise::Evidence evidence(sources, card);
  const auto after = answer(evidence);
  const auto changes = advise::changed_choices(before, after);
  if (arguments.json) {
    nlohmann::json json = advise::advice_json(evidence, after, options.objective);
    json["measured"] = measured_json(measured, changes);
    return print_answer_json(json);
  }
  const int width = terminal_table_options().width;
  print_measured(std::cout, measured, changes, width);
  advise::print_advice(std::cout, evidence, after, width);
}

void advise_verb(const AdviseArguments& arguments) {
  for (const std::string& plugin : arguments.plugins) describe_plugin(plugin);
  check_evaluate(arguments);
  AxisValues given = given_values(arguments);
  const advise::AdviceOptions options = options_of(arguments);
  const auto training = training_of(arguments);
  check_measure(arguments, given);
  std::vector<advise::RecordSource> sources = sources_of(arguments);
  if (arguments.measure) return answer_measured(arguments, given, options, std::move(sources));
  std::optional<simulate::Cluster> cluster;
  if (names_cluster(arguments.platform)) cluster = simulate::load_cluster(arguments.platform);
  const advise::Evidence evidence = evidence_of(sources, arguments, given, cluster);
  if (arguments.evaluate) return evaluate(evidence, arguments.json);
  given["device"] = {evidence.card().device};
  refuse_other_devices(given, evidence.card().device);
  advise::MaskFacts masks = advise::facts_of(evidence.card());
  Advisors advisors{evidence, {evidence, masks}, {cluster, sources, evidence.card()}};
  if (training) return answer_degrees(*training, arguments, given, options, advisors);
  const auto documents = documents_of(arguments);
  const auto answers = documents ? answer_documents(*documents, given, options, advisors)
                                 : answer_problems(given, options, advisors);
  refuse_the_impossible(answers);
  print_notes(arguments, given, advisors.simulator.asked());
  if (arguments.json) {
    print_answer_json(advise::advice_json(evidence, answers, options.objective));
  } else {
    advise::print_advice(std::cout, evidence, answers, terminal_table_options().width);
  }
}

}  // namespace

void add_advise(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("advise", "Which kernel and scheme to use, from records");
  auto arguments = std::make_shared<AdviseArguments>();
  verb->add_option("-a,--axis", arguments->axes,
                   "the problem, as tokens=8K; also --heads H:K, --dim D")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  verb->add_option("--records", arguments->records, "default: those of the results folder")
      ->type_name("FILE...");
  add_plugin_option(*verb, arguments->plugins);
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
                   "lines of document lengths, a sequence each")
      ->type_name("FILE");
  verb->add_option("--samples", arguments->samples,
                   "…  so many of them (64; with --gpus 4), evenly spread")
      ->type_name("N");
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
  verb->add_option("--measure", arguments->measure, "measure S s what may change the choice")
      ->type_name("S");
  verb->add_option("--out", arguments->out, "…  recorded here (results/advise-TIME.jsonl)")
      ->type_name("FILE.jsonl");
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
