#include "calibrate_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "bench/launch/exchange_runner.h"
#include "bench/launch/rank_machine.h"
#include "bench/launch/request.h"
#include "bench/record/environment.h"
#include "bench/run/run_cells.h"
#include "bench/suite/axes.h"
#include "core/error.h"
#include "core/parse.h"
#include "core/printable.h"
#include "core/system_error.h"
#include "core/thread_pool.h"
#include "parallel/transport/transports.h"
#include "run_verbs.h"

namespace longca {
namespace {

AxisValues take_axes(std::vector<std::string>& axes) {
  const auto is_of_links = [](const std::string& axis) {
    return axis.starts_with("ranks=") || axis.starts_with("transport=");
  };
  AxisValues taken;
  for (const std::string& axis : axes) {
    if (is_of_links(axis)) parse_axis_argument(axis, taken);
  }
  std::erase_if(axes, is_of_links);
  return taken;
}

/// How many ranks `found` stands for.
int ranks_found(DeviceKind kind) {
  return kind == DeviceKind::cuda ? rank_machine().gpus : available_cpus();
}

int ranks_of(const AxisValues& taken, DeviceKind kind) {
  const auto ranks = taken.find("ranks");
  if (ranks == taken.end()) return kind == DeviceKind::cuda ? rank_machine().gpus : 1;
  if (ranks->second.size() != 1) {
    throw_input_error("ranks={} is one number here: exchanges are measured among so many ranks",
                      fmt::join(ranks->second, ","));
  }
  const std::string& text = ranks->second.front();
  return text == "found" ? ranks_found(kind) : static_cast<int>(parse_count("ranks", text));
}

/// What this machine lacks for exchanges among so many ranks, whatever the transport.
Support can_measure(int ranks, DeviceKind kind) {
  const int gpus = rank_machine().gpus;
  if (kind == DeviceKind::cuda && ranks > gpus) {
    return Support::unavailable(fmt::format(
        "{} ranks need a GPU each, and there {} {}: {}", ranks, gpus == 1 ? "is" : "are", gpus,
        gpus >= 2 ? fmt::format("give at most -a ranks={}", gpus)
                  : "links are measured between two or more"));
  }
  if (Support built = ranks_are_built(); !built.ok()) return built;
  return mpirun_is_here();
}

/// Those of the named transports that carry messages between such devices; throws InputError if
/// none does.
std::vector<std::string> of_device(const std::vector<std::string>& named, int ranks,
                                   DeviceKind kind, std::vector<std::string>& notices) {
  std::vector<Case> cases;
  for (const std::string& transport : named) {
    Case& c = cases.emplace_back();
    c.device = to_string(kind);
    c.ranks = ranks;
    c.transport = transport;
  }
  refuse_impossible(cases, places_of(RankStart{}));
  std::vector<std::string> suitable;
  for (const std::string& transport : named) {
    if ((transport == "mpi") == (kind == DeviceKind::cpu)) {
      suitable.push_back(transport);
    } else {
      notices.push_back(fmt::format("the transport {} does not carry messages between {}s",
                                    transport, kind == DeviceKind::cpu ? "CPU" : "GPU"));
    }
  }
  return suitable;
}

/// "the transport peer cannot be measured: REASON; -a transport=nccl may be".
std::string why_not(const std::string& transport, const std::string& reason, DeviceKind kind) {
  std::string text = fmt::format("the transport {} cannot be measured: {}", transport, reason);
  if (kind == DeviceKind::cpu) return text;
  for (const std::string& other : cuda_transport_names()) {
    if (other != transport && transport_here(other).ok()) {
      text += fmt::format("; -a transport={} may be", other);
    }
  }
  return text;
}

void choose_transports(const AxisValues& taken, DeviceKind kind, LinkRequest& request) {
  const auto named = taken.find("transport");
  request.are_named = named != taken.end();
  std::vector<std::string> wanted{"mpi"};
  if (kind == DeviceKind::cuda) wanted = {"peer", "nccl"};
  if (request.are_named) wanted = of_device(named->second, request.ranks, kind, request.notices);
  for (const std::string& transport : wanted) {
    if (const Support here = transport_here(transport); here.ok()) {
      request.transports.push_back(transport);
    } else if (request.are_named) {
      throw InputError(why_not(transport, here.reason, kind));
    } else {
      request.notices.push_back(why_not(transport, here.reason, kind));
    }
  }
}

[[noreturn]] void throw_failed(const Status& status, const std::string& transport,
                               DeviceKind kind) {
  if (status.code == StatusCode::unavailable) {
    throw InputError(why_not(transport, status.reason, kind));
  }
  throw SystemError(status.reason);
}

/// Says how to do without where nobody has asked for links.
ExchangeRunner start_ranks(const LinkRequest& request, const RunLimits& limits) {
  try {
    return {request.ranks, limits};
  } catch (const SystemError& error) {
    if (request.asked) throw;
    throw SystemError(std::string(error.what()) + "; -a ranks=1 leaves links out");
  }
}

}  // namespace

LinkRequest take_link_axes(std::vector<std::string>& axes, DeviceKind kind) {
  const AxisValues taken = take_axes(axes);
  LinkRequest request;
  request.asked = !taken.empty();
  request.ranks = ranks_of(taken, kind);
  if (request.ranks < 2) {
    if (taken.contains("transport")) {
      throw_input_error("transport={} is between two or more ranks: give -a ranks=2",
                        fmt::join(taken.at("transport"), ","));
    }
    return request;
  }
  if (const Support can = can_measure(request.ranks, kind); !can.ok()) {
    if (request.asked) throw InputError(can.reason);
    request.ranks = 1;
    request.notices.push_back("links are not measured: " + can.reason);
    return request;
  }
  choose_transports(taken, kind, request);
  return request;
}

std::vector<calibrate::ExchangeTime> measure_links(LinkRequest& request, DeviceKind kind,
                                                   const RunLimits& limits, int round) {
  std::vector<calibrate::ExchangeTime> times;
  if (request.ranks < 2 || request.transports.empty()) return times;
  const std::int64_t free = kind == DeviceKind::cuda ? Device::get(kind).properties().memory_bytes
                                                     : available_memory() / request.ranks;
  ExchangeRunner runner = start_ranks(request, limits);
  const std::vector<std::string> transports = request.transports;
  for (const std::string& transport : transports) {
    const auto exchanges =
        calibrate::order_of_round(calibrate::standard_exchanges(transport, kind, free), round);
    const ExchangeRunner::Answer answer = runner.run(exchanges);
    if (InterruptGuard::signal() != 0) return times;
    if (!answer.status.ok()) {
      if (answer.status.code != StatusCode::unavailable || request.are_named) {
        throw_failed(answer.status, transport, kind);
      }
      fmt::print(stderr, "longca: {}\n", printable(why_not(transport, answer.status.reason, kind)));
      std::erase(request.transports, transport);
      continue;
    }
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      times.push_back({exchanges[i], answer.times[i].ms, answer.times[i].held});
    }
  }
  return times;
}

}  // namespace longca
