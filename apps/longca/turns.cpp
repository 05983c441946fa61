#include "turns.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <unordered_map>
#include <utility>

#include "bench/build_info.h"
#include "bench/record/record_writer.h"
#include "bench/run/rounds.h"
#include "bench/run/run_cells.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/process.h"
#include "run_verbs.h"
#include "verbs.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int status = 0;  ///< waitpid's
  std::string output;

  bool is_success() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  /// Its last line without the name that our programs put before it, or how it ended.
  std::string said() const {
    std::string line = last_line(output);
    if (line.starts_with("longca: ")) line.erase(0, 8);
    return line.empty() ? describe_process_end(status) : line;
  }
};

/// Runs a program to its end. Throws EndedEarly for a signal to this one.
Ended run_program(const std::vector<std::string>& command) {
  constexpr std::chrono::seconds kGrace{5};
  ChildProcess child(command);
  pollfd end{child.end_descriptor(), POLLIN, 0};
  while (!child.has_ended()) {
    ::poll(&end, 1, 200);
    if (InterruptGuard::signal() == 0) continue;
    child.terminate(kGrace);
    throw EndedEarly{exit_code_of_signal(InterruptGuard::signal())};
  }
  Ended ended{child.reap(kGrace), {}};
  ended.output = child.take_output();
  return ended;
}

void check_is_longca(const std::string& program) {
  const std::string path = find_program(program).string();
  if (path.empty()) throw_input_error("there is no program {}", program);
  const Ended version = run_program({path, "--version"});
  if (!version.is_success() || !last_line(version.output).starts_with("longca ")) {
    const std::string first = version.output.substr(0, version.output.find('\n'));
    throw_input_error("{} is no longca: --version answers '{}', not 'longca VERSION'", program,
                      first.empty() ? version.said() : first);
  }
}

/// One side's records, by key.
class Side {
 public:
  /// Throws as RecordWriter does if there is something else than records in the place of its own.
  Side(std::string name, std::string program, fs::path folder)
      : name_(std::move(name)),
        program_(std::move(program)),
        folder_(std::move(folder)),
        writer_(folder_ / (name_ + ".jsonl"), RecordWriter::Mode::replace) {}

  void run(const std::vector<std::string>& arguments, int round, int rounds) {
    fmt::print(stderr, "longca: round {} of {}: {}, {}\n", round + 1, rounds, name_,
               printable(program_));
    const fs::path file = folder_ / ("." + name_ + "-round.jsonl");
    std::error_code error;
    fs::remove(file, error);
    std::vector<std::string> command{fs::absolute(find_program(program_)).string(), "bench"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--quiet", "--out", file.string()});
    refuse_failure(run_program(command));
    if (!fs::exists(file)) throw_input_error("{} bench ended well and wrote no records", program_);
    for (const Record& record : latest_records(read_records(file).records)) add(record);
    fs::remove(file, error);
    writer_.keep_latest();
  }

  std::vector<Record> take() { return std::move(records_); }

 private:
  /// A bug or the system's refusal (70, 71, a signal) ends this program as it did that one; all
  /// else is the user's to mend.
  void refuse_failure(const Ended& ended) const {
    if (ended.is_success()) return;
    const int code = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : kSystemError;
    if (code != kInternalError && code != kSystemError) {
      throw_input_error("{} bench: {}", program_, ended.said());
    }
    fmt::print(stderr, "longca: {} bench: {}\n", printable(program_), printable(ended.said()));
    throw EndedEarly{code};
  }
  void add(const Record& round) {
    const auto [place, is_new] = places_.try_emplace(round.c.key(), records_.size());
    if (is_new) {
      records_.push_back(with_round(Record{}, round));
    } else if (Record& record = records_[place->second]; record.status.ok()) {
      record = with_round(record, round);
    } else {
      return;
    }
    writer_.append(records_[place->second]);
  }

  std::string name_;
  std::string program_;
  fs::path folder_;
  RecordWriter writer_;
  std::vector<Record> records_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The commit's full hash.
std::string resolve(const std::string& commit) {
  const std::string source = build_info().source_dir;
  const Ended parsed = run_program({find_program("git").string(), "-C", source, "rev-parse",
                                    "--verify", "--end-of-options", commit + "^{commit}"});
  if (!parsed.is_success()) {
    throw_input_error("--commits: git knows no commit '{}' in {}", commit, source);
  }
  return last_line(parsed.output);
}

/// The `longca` script of the commit's worktree, set up and built.
std::string build_commit(const std::string& commit) {
  const fs::path source = build_info().source_dir;
  const fs::path folder = source / "build" / "compare" / short_commit(commit);
  const std::string git = find_program("git").string();
  std::error_code error;
  if (!fs::exists(folder / "longca", error)) {
    const Ended added = run_program({git, "-C", source.string(), "worktree", "add", "--force",
                                     "--detach", folder.string(), commit});
    if (!added.is_success()) throw_input_error("git worktree add: {}", added.said());
  }
  fmt::print(stderr, "longca: builds {} in {}\n", short_commit(commit), printable(folder.string()));
  std::string program = (folder / "longca").string();
  const Ended built = run_program({program, "--version"});
  if (!built.is_success()) {
    throw_input_error("commit {} does not build: {}", short_commit(commit), built.said());
  }
  return program;
}

}  // namespace

TurnRecords run_in_turns(const Turns& turns) {
  const InterruptGuard guard;
  check_is_longca(turns.base);
  check_is_longca(turns.next);
  std::error_code error;
  fs::create_directories(turns.folder, error);
  if (error) throw_file_error("make folder", turns.folder, error.value());
  Side base("base", turns.base, turns.folder);
  Side next("new", turns.next, turns.folder);
  for (int round = 0; round < turns.rounds; ++round) {
    Side* const first = round % 2 == 0 ? &base : &next;
    Side* const second = round % 2 == 0 ? &next : &base;
    first->run(turns.arguments, round, turns.rounds);
    second->run(turns.arguments, round, turns.rounds);
  }
  return {base.take(), next.take()};
}

CommitPrograms build_commits(const std::string& base, const std::string& next) {
  const InterruptGuard guard;
  if (find_program("git").empty()) throw InputError("--commits needs git");
  const std::string base_hash = resolve(base);
  const std::string next_hash = resolve(next);
  return {build_commit(base_hash), build_commit(next_hash)};
}

std::string own_program() {
  return fs::read_symlink("/proc/self/exe").string();
}

}  // namespace longca
