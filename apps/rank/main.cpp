#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "bench/ranks/exit_codes.h"
#include "core/error.h"
#include "core/printable.h"
#include "rank_program.h"

namespace longca {
namespace {

RankArguments parse(int argc, char** argv) {
  RankArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw_input_error("{} needs a value", name);
    const std::string value = argv[++i];
    if (name == "--connect") {
      arguments.address = value;
    } else if (name == "--suite-hash") {
      arguments.suite_hash = value;
    } else if (name == "--plugin") {
      arguments.plugins.push_back(value);
    } else if (name == "--no-python") {
      arguments.no_python = value;
    } else {
      throw_input_error("unknown option {} (known: --connect, --suite-hash, --plugin, --no-python)",
                        name);
    }
  }
  if (arguments.address.empty()) {
    throw InputError("--connect is missing: longca-rank is started by longca cp");
  }
  return arguments;
}

}  // namespace
}  // namespace longca

int main(int argc, char** argv) {
  using namespace longca;
  try {
    return run_rank_program(parse(argc, argv));
  } catch (const InputError& error) {
    fmt::print(stderr, "longca-rank: {}\n", longca::printable(error.what()));
    return kRankRefused;
  }
}
