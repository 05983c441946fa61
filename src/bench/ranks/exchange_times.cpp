#include "bench/ranks/exchange_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure/measurement.h"
#include "core/error.h"

namespace longca {
namespace {

DeviceKind device_of(const std::string& transport) {
  return transport == "mpi" ? DeviceKind::cpu : DeviceKind::cuda;
}

void expect_right(const TimedExchange& exchange, const ExchangeWork& work, Device& device,
                  RankControl& control) {
  const std::string what = to_text(exchange);
  together(control, what, [&]() -> Status {
    device.synchronize();
    const std::string fault = work.fault();
    if (fault.empty()) return {};
    return {StatusCode::wrong, fmt::format("{}: {}", what, fault)};
  });
}

}  // namespace

void to_json(nlohmann::json& json, const ExchangeMs& time) {
  json = {{"ms", time.ms}, {"held", time.held}};
}

void from_json(const nlohmann::json& json, ExchangeMs& time) {
  json.at("ms").get_to(time.ms);
  json.at("held").get_to(time.held);
  if (!std::isfinite(time.ms) || time.ms <= 0) {
    throw_input_error("{} ms is not the time of an exchange", time.ms);
  }
}

ExchangeMs time_exchange(const TimedExchange& exchange, ExchangeWork& work, RankClock& clock,
                         Device& device, RankControl& control, const RunLimits& limits) {
  work.prepare(exchange);
  work.poison();
  work.call();
  expect_right(exchange, work, device, control);
  work.poison();
  MeasureOptions options;
  options.time_limit_s = limits.time_limit_s;
  options.sample_budget_s = limits.sample_budget_s;
  options.cool_down_ms = limits.cool_down_ms;
  const Measurement measured = measure(clock, {.call = [&] { work.call(); }}, options);
  expect_right(exchange, work, device, control);
  return {measured.median_ms, measured.held};
}

std::vector<ExchangeMs> time_exchanges(RankTeam& team, std::span<const TimedExchange> exchanges,
                                       const RunLimits& limits, const StageListener& stage) {
  const std::string& transport = exchanges.front().transport;
  std::int64_t max_bytes = 1;
  for (const TimedExchange& exchange : exchanges) {
    LONGCA_CHECK(exchange.transport == transport, "{} among those of {}", to_text(exchange),
                 transport);
    max_bytes = std::max(max_bytes, exchange.bytes);
  }
  stage("set-up");
  if (Support can = team.available(transport); !can.ok()) throw Refused(std::move(can));
  Device& device = Device::get(device_of(transport));
  const std::unique_ptr<Communicator> communicator = team.connect(transport);
  const std::unique_ptr<DeviceClock> own = make_device_clock(device_of(transport));
  ExchangeWork work(*communicator, device, max_bytes);
  RankClock clock(*own, device, *communicator, team.control);
  std::vector<ExchangeMs> times;
  for (const TimedExchange& exchange : exchanges) {
    stage(to_text(exchange));
    times.push_back(time_exchange(exchange, work, clock, device, team.control, limits));
  }
  return times;
}

}  // namespace longca
