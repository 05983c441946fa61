#include "bench/ranks/rank_clock.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "bench/measure/statistics.h"
#include "core/error.h"

namespace longca {
namespace {

std::string as_bytes(const std::vector<double>& values) {
  std::string bytes(values.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<double> from_bytes(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The largest value of all ranks, element by element.
std::vector<double> largest(RankControl& control, std::vector<double> values) {
  for (const std::string& bytes : control.gather(as_bytes(values))) {
    const std::vector<double> others = from_bytes(bytes);
    LONGCA_CHECK(others.size() == values.size(), "{} times, and {} on another rank", values.size(),
                 others.size());
    std::ranges::transform(values, others, values.begin(),
                           [](double a, double b) { return std::max(a, b); });
  }
  return from_bytes(control.broadcast(as_bytes(values)));
}

}  // namespace

RankClock::RankClock(DeviceClock& own, Device& device, Communicator& communicator,
                     RankControl& control)
    : own_(own), device_(device), communicator_(communicator), control_(control) {
  own_.join(this);
}

RankClock::~RankClock() {
  own_.join(nullptr);
}

void RankClock::begin() {
  own_.begin();
  series_ = Series::call;
  own_ms_ = {};
}

double RankClock::time_once(const std::function<void()>& call) {
  own_ms().push_back(own_.time_once(call));
  return control_.max(own_ms().back());
}

std::vector<double> RankClock::time_back_to_back(const std::function<void()>& call,
                                                 const std::function<void()>& between, int count) {
  // No rank may change what another one still reads, or reads already for the next call.
  const auto between_on_all = [&] {
    line_up();
    between();
    line_up();
  };
  const std::vector<double> samples = own_.time_back_to_back(call, between_on_all, count);
  own_ms().insert(own_ms().end(), samples.begin(), samples.end());
  return largest(control_, samples);
}

bool RankClock::held() const {
  return control_.max(own_.held() ? 0 : 1) == 0;
}

void RankClock::watch(std::vector<std::span<const std::byte>> results) {
  own_.watch(std::move(results));
}

bool RankClock::changed_since() {
  return any(own_.changed_since());
}

double RankClock::now_s() {
  return control_.broadcast(own_.now_s());
}

double RankClock::own_median_ms(std::size_t count, Series series) const {
  return median(std::span(own_ms_.at(static_cast<std::size_t>(series))).last(count));
}

void RankClock::run(const std::function<void()>& call) {
  line_up();
  call();
  device_.synchronize();
}

void RankClock::line_up() {
  communicator_.barrier(device_.stream());
}

bool RankClock::any(bool mine) {
  return control_.max(mine ? 1 : 0) > 0;
}

}  // namespace longca
