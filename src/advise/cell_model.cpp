#include "advise/cell_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/thread_pool.h"

namespace longca::advise {
namespace {

/// So many cells left out tell a quantile.
constexpr std::size_t kMinErrors = 8;
/// The weight of a cell's error falls by e over as many octaves of length.
constexpr double kErrorOctaves = 2.0;

Situation situation_of(const Place& target, const Places& places,
                       const std::vector<std::size_t>& measured) {
  bool shorter = false, longer = false;
  Situation found = Situation::other_mask;
  for (const std::size_t i : measured) {
    const Place* place = &places.all()[i];
    if (place->mask != target.mask) continue;
    if (place->parameters != target.parameters) {
      found = std::min(found, Situation::other_parameters);
    } else if (!same_heads(*place, target)) {
      found = std::min(found, Situation::other_heads);
    } else {
      (place->tokens < target.tokens ? shorter : longer) = true;
    }
  }
  if (shorter && longer) return Situation::between_lengths;
  return shorter || longer ? Situation::beyond_lengths : found;
}

std::string heads_text(const Place& place) {
  return std::to_string(place.heads_q) + ":" + std::to_string(place.heads_k);
}

}  // namespace

std::string_view describe(Situation situation) {
  switch (situation) {
    case Situation::between_lengths:
      return "between measured lengths";
    case Situation::beyond_lengths:
      return "beyond the measured lengths";
    case Situation::other_heads:
      return "from other heads";
    case Situation::other_parameters:
      return "from other parameters of the mask";
    case Situation::other_mask:
      return "from other masks";
  }
  return "";
}

CellModel::CellModel(const std::vector<ModelCell>& cells, Quantity quantity) {
  std::vector<Place> places;
  places.reserve(cells.size());
  for (const ModelCell& cell : cells) places.push_back(place_of(cell.c, cell.work, cell.value));
  places_ = std::make_unique<const Places>(std::move(places), quantity);
  if (cells.size() < kMinCells) return;
  std::vector<std::size_t> all(cells.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  all_.emplace(*places_, std::move(all));
  calibrate();
}

void CellModel::calibrate() {
  using Group = std::function<std::string(const Place&)>;
  const Group groups[] = {[](const Place& place) { return std::to_string(place.tokens); },
                          heads_text, [](const Place& place) { return place.parameters; },
                          [](const Place& place) { return place.mask; }};
  std::vector<std::vector<std::size_t>> left_out;
  for (const Group& group : groups) {
    std::map<std::string, std::vector<std::size_t>> by_name;
    for (const std::size_t i : all_->chosen()) by_name[group(places_->all()[i])].push_back(i);
    for (auto& [name, targets] : by_name) left_out.push_back(std::move(targets));
  }
  std::vector<ErrorsBySituation> found(left_out.size());
  ThreadPool::global().parallel_for(std::ssize(left_out), [&](std::int64_t i, int) {
    found[static_cast<std::size_t>(i)] = errors_without(left_out[static_cast<std::size_t>(i)]);
  });
  for (const ErrorsBySituation& errors : found) {
    for (std::size_t i = 0; i < kSituations; ++i) {
      errors_[i].insert(errors_[i].end(), errors[i].begin(), errors[i].end());
    }
  }
  for (std::vector<Error>& errors : errors_) {
    std::ranges::sort(errors, {}, &Error::size);
    all_errors_.insert(all_errors_.end(), errors.begin(), errors.end());
  }
  std::ranges::sort(all_errors_, {}, &Error::size);
}

CellModel::ErrorsBySituation CellModel::errors_without(
    const std::vector<std::size_t>& targets) const {
  ErrorsBySituation errors;
  std::vector<std::size_t> chosen;
  std::ranges::set_difference(all_->chosen(), targets, std::back_inserter(chosen));
  if (chosen.size() < kMinCells) return errors;
  const Interpolator rest(*places_, std::move(chosen), all_->grid());
  for (const std::size_t i : targets) {
    const Place& target = places_->all()[i];
    const Interpolator::Estimate estimate = rest.estimate(i);
    const double error = std::abs(std::log(target.value / estimate.value));
    const Situation situation = situation_of(target, *places_, rest.chosen());
    errors[static_cast<std::size_t>(situation)].push_back(
        {error / estimate.deviation, target.log_tokens});
  }
  return errors;
}

std::optional<double> CellModel::spread(Situation situation, double log_tokens) const {
  const auto weight = [&](const Error& error) {
    return std::exp(-std::abs(error.log_tokens - log_tokens) / kErrorOctaves);
  };
  const auto quantile = [&](const std::vector<Error>& errors) -> std::optional<double> {
    if (errors.size() < kMinErrors) return std::nullopt;
    double left = 1;  // the cell that is asked for, which may be further off than all
    for (const Error& error : errors) left += weight(error);
    left *= kCoverage;
    for (const Error& error : errors) {
      left -= weight(error);
      if (left <= 0) return error.size;
    }
    return errors.back().size;
  };
  if (const auto own = quantile(errors_[static_cast<std::size_t>(situation)])) return own;
  // Never met before: as in all that were.
  const bool tells = std::ranges::any_of(
      errors_, [](const std::vector<Error>& errors) { return errors.size() >= kMinErrors; });
  return tells ? quantile(all_errors_) : std::nullopt;
}

std::optional<Prediction> CellModel::predict(const Case& c, const Work& work) const {
  if (!all_) return std::nullopt;
  const Place target = place_of(c, work, 0);
  const Situation situation = situation_of(target, *places_, all_->chosen());
  const auto width = spread(situation, target.log_tokens);
  if (!width) return std::nullopt;
  const Interpolator::Estimate estimate = all_->estimate(target);
  const double reach = std::max(std::exp(*width * estimate.deviation), 1 + kRunToRun);
  return Prediction{estimate.value, estimate.value / reach, estimate.value * reach, situation};
}

}  // namespace longca::advise
