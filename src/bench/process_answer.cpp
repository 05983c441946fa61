#include "bench/process_answer.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include "bench/run/worker.h"
#include "core/process.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

ProcessAnswer no_answer(WorkerProcess& process) {
  ProcessAnswer answer;
  const std::optional<int> status = process.reap();
  const std::string said = last_line(process.take_output());
  answer.why = status ? describe_process_end(*status) : "closed its socket";
  if (!said.empty()) answer.why += ", saying: " + said;
  if (status && WIFEXITED(*status)) answer.exit_code = WEXITSTATUS(*status);
  return answer;
}

}  // namespace

ProcessAnswer ask_process(const std::vector<std::string>& command, double limit_s) {
  WorkerProcess process(command);
  const auto limit = std::chrono::duration<double>(limit_s);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    nlohmann::json message;
    try {
      switch (process.wait(50ms, message)) {
        case WorkerProcess::Event::message:
          return {std::move(message), "", std::nullopt};
        case WorkerProcess::Event::gone:
          return no_answer(process);
        case WorkerProcess::Event::nothing:
          break;
      }
    } catch (const BadMessage& bad) {
      return {std::nullopt, fmt::format("sent {}", bad.what()), std::nullopt};
    }
  }
  return {std::nullopt, fmt::format("did not answer within {} s", limit_s), std::nullopt};
}

}  // namespace longca
