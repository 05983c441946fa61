#pragma once

#include <string>
#include <vector>

namespace longca {

struct RankArguments {
  std::string address;  ///< bench/ranks/protocol.h
  std::string suite_hash;
  std::vector<std::string> plugins;  ///< shared libraries
  std::string no_python;             ///< why Python's kernels cannot run; empty: they can
};

/// Runs a rank: connects to the others over MPI and to the parent at its address, and runs cells
/// until the parent is gone. Returns the process's exit code, and prints on standard error why it
/// ends early. Throws nothing.
int run_rank_program(const RankArguments& arguments);

}  // namespace longca
