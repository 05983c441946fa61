#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advise/degrees.h"
#include "advise_answers.h"
#include "bench/suite/axes.h"

// What the command line of `advise` asks for. All throw InputError.

namespace longca {

/// As they were given.
struct AdviseArguments {
  std::vector<std::string> axes;
  std::vector<std::string> records;
  std::vector<std::string> plugins;
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
  std::optional<double> measure;
  std::string out;
  bool deterministic = false;
  bool evaluate = false;
  bool json = false;
};

/// The axes that were given, those with options of their own among them; a step unless a pass is
/// named.
AxisValues given_values(const AdviseArguments& arguments);

/// --objective and --needs.
advise::AdviceOptions options_of(const AdviseArguments& arguments);

/// The job of --gpus; nothing without it.
std::optional<advise::Training> training_of(const AdviseArguments& arguments);

std::optional<AskedDocuments> documents_of(const AdviseArguments& arguments);

/// --evaluate, which asks of no problem.
void check_evaluate(const AdviseArguments& arguments);

/// --measure with what it can be asked of: one device, masks that a run can read.
void check_measure(const AdviseArguments& arguments, const AxisValues& given);

}  // namespace longca
