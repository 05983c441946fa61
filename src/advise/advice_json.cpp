#include "advise/advice_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace longca::advise {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json problem_entry(const Case& problem) {
  return {{"problem", problem.problem_key()}, {"pass", to_string(problem.pass)}};
}

json choice_json(const Choice& choice, const Case& problem, int rank) {
  json entry = problem_entry(problem);
  entry["rank"] = rank;
  entry["kernel"] = choice.c.kernel;
  entry["scheme"] = or_null(choice.c.scheme);
  entry["shard"] = or_null(choice.c.shard);
  entry["factor"] = or_null(choice.c.factor);
  entry["transport"] = or_null(choice.c.transport);
  entry["time_ms"] = choice.time_ms.value;
  entry["low_ms"] = choice.time_ms.low;
  entry["high_ms"] = choice.time_ms.high;
  entry["peak_bytes"] = choice.peak_bytes ? json(choice.peak_bytes->value) : json(nullptr);
  entry["basis"] = to_string(choice.basis);
  entry["platform"] = or_null(choice.c.platform);
  entry["situation"] = choice.situation ? json(describe(*choice.situation)) : json(nullptr);
  entry["tied"] = choice.tied;
  entry["records"] = choice.files;
  return entry;
}

void add_refusals(const Case& problem, const std::vector<Refusal>& refusals, json& list) {
  for (const Refusal& refusal : refusals) {
    json entry = problem_entry(problem);
    entry["kernel"] = refusal.kernel;
    entry["reason"] = refusal.reason;
    list.push_back(std::move(entry));
  }
}

json percent_json(double share, std::size_t counted) {
  return counted > 0 ? json(share * 100) : json(nullptr);
}

json score_json(const Score& score) {
  const std::size_t ran = score.choices - score.could_not_run - score.no_answer;
  return {{"cells", score.cells},
          {"median_error_pct", percent_json(score.median_error, score.cells)},
          {"p90_error_pct", percent_json(score.p90_error, score.cells)},
          {"coverage_pct", percent_json(score.coverage, score.cells)},
          {"p90_memory_error_pct", percent_json(score.p90_memory_error, score.peaks)},
          {"choices", score.choices},
          {"mean_regret_pct", percent_json(score.mean_regret, ran)},
          {"p95_regret_pct", percent_json(score.p95_regret, ran)},
          {"right_pct", percent_json(score.right, score.choices - score.no_answer)},
          {"right_or_tied_pct", percent_json(score.right_or_tied, score.choices - score.no_answer)},
          {"could_not_run", score.could_not_run},
          {"no_answer", score.no_answer}};
}

json named_scores_json(const std::vector<NamedScore>& scores) {
  json list = json::array();
  for (const NamedScore& named : scores) {
    json entry = score_json(named.score);
    entry["name"] = named.name;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

json advice_json(const Evidence& evidence, std::span<const Advice> advice, Objective objective) {
  json whole{{"card", evidence.card().name},
             {"device", evidence.card().device},
             {"objective", objective == Objective::time ? "time" : "memory"},
             {"choices", json::array()},
             {"excluded", json::array()},
             {"unknown", json::array()},
             {"find_out", json::array()}};
  for (const Advice& one : advice) {
    int rank = 0;
    for (const Choice& choice : one.choices) {
      whole["choices"].push_back(choice_json(choice, one.problem, ++rank));
      if (one.sequences > 1) whole["choices"].back()["sequences_sampled"] = one.sequences;
    }
    add_refusals(one.problem, one.excluded, whole["excluded"]);
    add_refusals(one.problem, one.unknown, whole["unknown"]);
    if (one.find_out.empty()) continue;
    json entry = problem_entry(one.problem);
    entry["command"] = one.find_out;
    whole["find_out"].push_back(std::move(entry));
  }
  return whole;
}

json degrees_json(const Evidence& evidence, const WeighedDegrees& weighed) {
  const Training& training = weighed.training;
  json whole{{"card", evidence.card().name},   {"device", evidence.card().device},
             {"mode", weighed.problem.mode},   {"gpus", training.gpus},
             {"layers", training.layers},      {"tokens_per_step", training.tokens_per_step},
             {"sequences", weighed.sequences}, {"longest", weighed.longest},
             {"choices", json::array()}};
  int rank = 0;
  for (const Choice& choice : weighed.choices) {
    json entry = choice_json(choice, weighed.problem, ++rank);
    entry["degree"] = degree_of(choice);
    entry["replicas"] = training.gpus / degree_of(choice);
    entry["kept_bytes"] = kept_bytes(weighed, degree_of(choice));
    entry["fits"] = fits(weighed, degree_of(choice));
    whole["choices"].push_back(std::move(entry));
  }
  for (const char* list : {"excluded", "unknown", "find_out"}) whole[list] = json::array();
  for (const auto& [degree, advice] : weighed.by_degree) {
    json lists = advice_json(evidence, {&advice, 1}, Objective::time);
    for (const char* list : {"excluded", "unknown", "find_out"}) {
      for (json& entry : lists[list]) {
        entry["degree"] = degree;
        whole[list].push_back(std::move(entry));
      }
    }
  }
  return whole;
}

json evaluation_json(const Evidence& evidence, std::span<const HeldOut> held_out) {
  json ways = json::array();
  for (const HeldOut& one : held_out) {
    ways.push_back({{"by", to_string(one.left_out)},
                    {"all", score_json(score_of(one.cells, one.choices))},
                    {"kernels", named_scores_json(scores_by_kernel(one))},
                    {"masks", named_scores_json(scores_by_mask(one))}});
  }
  return {{"card", evidence.card().name}, {"left_out", std::move(ways)}};
}

}  // namespace longca::advise
