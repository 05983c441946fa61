#include "calibrate/probe_worker.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/cell/steps.h"
#include "bench/process_answer.h"
#include "bench/run/protocol.h"
#include "calibrate/probe_work.h"
#include "core/system_error.h"

namespace longca::calibrate {
namespace {

void expect_right(ProbeWork& work, const Probe& probe, DeviceKind kind) {
  Device::get(kind).synchronize();
  if (!work.is_right(unforeseeable_seed())) {
    throw std::runtime_error(fmt::format("{} gave a wrong result", to_text(probe)));
  }
}

nlohmann::json times_of(std::span<const Probe> probes, DeviceKind kind, double time_limit_s) {
  nlohmann::json times = nlohmann::json::array();
  for (const Probe& probe : probes) {
    times.push_back({{"probe", to_text(probe)}, {"ms", run_probe(probe, kind, time_limit_s).ms}});
  }
  return times;
}

}  // namespace

ProbeTime run_probe(const Probe& probe, DeviceKind kind, double time_limit_s) {
  const std::unique_ptr<ProbeWork> work = make_probe_work(probe, kind);
  const std::unique_ptr<DeviceClock> clock = make_device_clock(kind);
  work->poison();
  work->call();
  expect_right(*work, probe, kind);
  work->poison();
  MeasureOptions options;
  options.mode = probe.mode;
  options.time_limit_s = time_limit_s;
  const Measurement measured = measure(*clock, {.call = [&] { work->call(); }}, options);
  if (!measured.held) {
    throw std::runtime_error(
        fmt::format("{}: launch time could not be kept out of its time", to_text(probe)));
  }
  expect_right(*work, probe, kind);
  return {probe, measured.median_ms};
}

void answer_probes(int socket, std::span<const Probe> probes, DeviceKind kind,
                   double time_limit_s) {
  LineChannel channel(socket, take_secret());
  try {
    channel.send({{"times", times_of(probes, kind, time_limit_s)}});
  } catch (const std::exception& error) {
    channel.send({{"error", error.what()}});
  }
}

std::vector<ProbeTime> ask_probes(std::vector<std::string> command, std::span<const Probe> probes,
                                  double limit_s) {
  for (const Probe& probe : probes) command.push_back(to_text(probe));
  const ProcessAnswer answer = ask_process(command, limit_s);
  if (!answer.message) {
    throw SystemError(fmt::format("the process that measures the device {}", answer.why));
  }
  if (answer.message->contains("error")) {
    throw SystemError(
        fmt::format("the device: {}", answer.message->at("error").get<std::string>()));
  }
  std::vector<ProbeTime> times;
  for (const auto& time : answer.message->at("times")) {
    times.push_back(
        {parse_probe(time.at("probe").get<std::string>()), time.at("ms").get<double>()});
  }
  return times;
}

}  // namespace longca::calibrate
