#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// Two programs that run the same cells in turns, so that heat and clocks fall on both.
struct Turns {
  std::string base;                    ///< a longca
  std::string next;                    ///< another, or this one
  std::vector<std::string> arguments;  ///< of both, behind `bench`
  int rounds = 7;
  std::filesystem::path folder;  ///< gets base.jsonl and new.jsonl after each round
};

struct TurnRecords {
  std::vector<Record> base;
  std::vector<Record> next;
};

/// Runs `bench` of both, round by round, the one first that was second in the round before (ABBA).
/// Each run is a process of its own and one round of the records. Says on stderr which runs. Throws
/// InputError with what a program said where it is no longca or refuses the run, EndedEarly for a
/// signal.
TurnRecords run_in_turns(const Turns& turns);

/// The programs of two commits of this checkout, each built by its own `longca` script in a
/// worktree under build/compare that stays for the next time. Throws InputError for a commit that
/// git does not know.
struct CommitPrograms {
  std::string base;
  std::string next;
};
CommitPrograms build_commits(const std::string& base, const std::string& next);

/// This program, as a path.
std::string own_program();

}  // namespace longca
