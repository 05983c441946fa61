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

/// The life of a rank: meets the others over MPI and the parent at its address, and runs the cells
/// that come until the parent is gone. The process's exit code; an end before its time is explained
/// on standard error. Throws nothing.
int run_rank_program(const RankArguments& arguments);

}  // namespace longca
