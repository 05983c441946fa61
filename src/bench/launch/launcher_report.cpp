#include "bench/launch/launcher_report.h"

#include <fmt/format.h>

#include <regex>
#include <sstream>

#include "bench/process_end.h"

namespace longca {
namespace {

/// A line of the stack that Open MPI prints when a process gets a signal: "[node1:05971] …".
bool is_of_a_stack(const std::string& line) {
  static const std::regex stack(R"(\[[^\]]+:\d+\].*)");
  return std::regex_match(line, stack);
}

bool is_rule(const std::string& line) {
  return line.size() > 20 && line.find_first_not_of('-') == std::string::npos;
}

/// The output with mpirun's messages, which stand between rules, apart from what ranks printed.
struct Split {
  std::string messages;  ///< each on one line
  std::string ranks;
};

Split split_output(const std::string& output) {
  Split split;
  bool in_message = false;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (is_rule(line)) {
      if (in_message) split.messages += '\n';
      in_message = !in_message;
    } else if (in_message) {
      split.messages += line + ' ';
    } else if (line.starts_with("srun: ") || line.starts_with("slurmstepd: ")) {
      split.messages += line + '\n';
    } else if (!is_of_a_stack(line)) {
      split.ranks += line + '\n';
    }
  }
  return split;
}

/// Finds out who ended and how, in the words of the launchers.
void read_messages(const std::string& messages, LauncherReport& report) {
  static const std::regex signalled(
      R"(process rank (\d+) with PID \d+ on node \S+ exited on (signal \d+ \([^)]*\)))");
  static const std::regex exited(R"(Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code:\s+(\d+))");
  static const std::regex aborted(
      R"(MPI_ABORT was invoked on rank (\d+) in communicator \S+.*?with errorcode (\d+))");
  static const std::regex slurm(R"(task (\d+): (Exited with exit code \d+|[A-Z][a-z ]+))");
  std::smatch found;
  if (std::regex_search(messages, found, signalled)) {
    report.how = "was ended by " + found[2].str();
  } else if (std::regex_search(messages, found, aborted) ||
             std::regex_search(messages, found, exited)) {
    report.how = "ended itself with exit code " + found[2].str();
  } else if (std::regex_search(messages, found, slurm)) {
    report.how = "ended (" + found[2].str() + ")";
  } else {
    return;
  }
  report.rank = std::stoi(found[1].str());
}

}  // namespace

LauncherReport read_launcher_report(const std::string& output) {
  const Split split = split_output(output);
  LauncherReport report;
  read_messages(split.messages, report);
  report.said = last_line(split.ranks);
  if (!report.rank && report.said.empty()) report.said = last_line(split.messages);
  return report;
}

}  // namespace longca
