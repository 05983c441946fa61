#include "bench/measure/host_load.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

namespace longca {

std::optional<double> busy_ticks(std::string_view proc_stat) {
  std::istringstream line{std::string(proc_stat.substr(0, proc_stat.find('\n')))};
  std::string name;
  line >> name;
  if (name != "cpu") return std::nullopt;
  enum Column { user, nice, system, idle, iowait, irq, softirq, steal };
  std::array<double, 8> ticks{};
  for (double& column : ticks) {
    if (!(line >> column)) return std::nullopt;
  }
  return ticks[user] + ticks[nice] + ticks[system] + ticks[irq] + ticks[softirq] + ticks[steal];
}

HostLoad::HostLoad(std::string stat) : stat_(std::move(stat)), begin_(read()) {}

HostLoad::Reading HostLoad::read() const {
  std::ifstream file(stat_);
  std::string line;
  std::getline(file, line);
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  Reading reading{busy_ticks(line),
                  static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9,
                  std::chrono::steady_clock::now()};
  if (reading.busy_s) *reading.busy_s /= static_cast<double>(::sysconf(_SC_CLK_TCK));
  return reading;
}

void HostLoad::finish(Record& record) const {
  const Reading end = read();
  const double passed = std::chrono::duration<double>(end.at - begin_.at).count();
  if (!begin_.busy_s || !end.busy_s) return;
  if (passed * static_cast<double>(::sysconf(_SC_CLK_TCK)) < 1) return;
  const double others = *end.busy_s - *begin_.busy_s - (end.own_s - begin_.own_s);
  record.metrics["host_load"] = std::max(0.0, others / passed);
}

}  // namespace longca
