#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "report/format.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;

json parsed(const std::vector<std::string>& arguments, const ProcessOptions& options = {}) {
  const auto result = run_longca(arguments, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

std::vector<std::string> names(const json& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.at("name"));
  return names;
}

TEST(List, FourteenMasksInOrder) {
  const auto masks = names(parsed({"list", "masks", "--json"}));
  ASSERT_EQ(masks.size(), 14U);
  EXPECT_EQ(masks.front(), "full");
  EXPECT_EQ(masks.back(), "block_sparse_variable");
}

TEST(List, KernelsSayWhatTheyTake) {
  const json kernels = parsed({"list", "kernels", "--json"});
  EXPECT_THAT(names(kernels), ::testing::IsSupersetOf({"naive", "flash", "block_sparse", "cudnn"}));
  for (const auto& kernel : kernels) {
    const auto name = kernel.at("name").get<std::string>();
    EXPECT_FALSE(kernel.at("masks").empty()) << name;
    if (kernel.at("status") != "ok") {
      EXPECT_NE(kernel.at("reason"), "") << name;
    }
    if (name == "naive" || name == "flash") {
      EXPECT_EQ(kernel.at("masks").size(), 14U);
    }
    if (name == "block_sparse") {
      EXPECT_EQ(kernel.at("masks"), json({"block_sparse", "block_sparse_variable"}));
    }
  }
}

TEST(List, KernelsOfPluginsToo) {
  const auto plugin =
      std::filesystem::path(LONGCA_SOURCE_DIR) / "examples/python_plugin/rowwise.py";
  const std::vector<std::string> list = {"list", "kernels", "--json", "--plugin", plugin.string()};
  EXPECT_THAT(names(parsed(list)), ::testing::Contains("rowwise_python"));
  EXPECT_THAT(names(parsed({"list", "kernels", "--json"})),
              ::testing::Not(::testing::Contains("rowwise_python")));
  const auto refused = run_longca({"list", "--plugin", "none.so"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, ::testing::HasSubstr("'none.so' does not exist"));
}

/// `name` in the line of README's table that names the kernels, and whether a ° follows.
std::map<std::string, bool> kernels_of_readme() {
  std::ifstream readme(std::filesystem::path(LONGCA_SOURCE_DIR) / "README.md");
  std::string line;
  while (std::getline(readme, line) && !line.starts_with("| kernels |")) {
  }
  const std::regex span("`([A-Za-z0-9_]+)`(°)?");
  std::map<std::string, bool> found;
  for (std::sregex_iterator it(line.begin(), line.end(), span), end; it != end; ++it) {
    found[(*it)[1]] = (*it)[2].matched;
  }
  return found;
}

TEST(List, ReadmeNamesEveryKernelAndMarksWhatIsUntried) {
  std::map<std::string, bool> listed;
  for (const auto& kernel : parsed({"list", "kernels", "--json"})) {
    const bool untried = kernel.at("description").get<std::string>().ends_with("(untried)");
    listed[kernel.at("name")] |= untried;
  }
  EXPECT_EQ(kernels_of_readme(), listed);
}

TEST(List, AxesSayWhatTheyMeanTakeAndDefaultTo) {
  const json axes = parsed({"list", "axes", "--json"});
  EXPECT_THAT(names(axes),
              ::testing::IsSupersetOf({"kernel", "tokens", "window", "ranks", "tokens_per_rank"}));
  for (const auto& axis : axes) {
    EXPECT_NE(axis.at("description"), "") << axis;
    EXPECT_NE(axis.at("where"), "") << axis;
    if (axis.at("name") == "pass") {
      EXPECT_EQ(axis.at("names"), json({"forward", "backward", "step"}));
    }
    if (axis.at("name") == "tokens") {
      EXPECT_EQ(axis.at("default"), "4K");
      EXPECT_EQ(axis.at("without_suite"), json({{"bench", "2048 or 8192"}}));
    }
    if (axis.at("name") == "mask") {
      EXPECT_EQ(axis.at("without_suite").at("cp"), "all");
    }
    if (axis.at("name") == "window") {
      EXPECT_EQ(axis.at("without_suite"), json::object()) << "-a takes the masks' own";
    }
  }
  const auto text = run_longca({"list", "axes"});
  EXPECT_THAT(text.out, ::testing::HasSubstr("COUNT; default 4K"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("bench without SUITE: 2048 or 8192\n"));
}

TEST(List, AxesAreThoseThatCanBeGiven) {
  for (const auto& axis : names(parsed({"list", "axes", "--json"}))) {
    EXPECT_NE(axis, "platform");
    EXPECT_NE(axis, "simulated_mode");
  }
}

/// Without a GPU, and in a build without CUDA, the row of a GPU's kernel still says what it takes.
TEST(List, AKernelThatDoesNotRunHereSaysWhatItCouldDo) {
  const json kernels =
      parsed({"list", "kernels", "--json"}, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  int unavailable = 0;
  for (const auto& kernel : kernels) {
    if (kernel.at("device") != "cuda") continue;
    ++unavailable;
    EXPECT_EQ(kernel.at("status"), "unavailable") << kernel;
    EXPECT_NE(kernel.at("reason"), "") << kernel;
    EXPECT_NE(kernel.at("architectures"), "") << kernel;
    if (kernel.at("name") == "cudnn") {
      EXPECT_EQ(kernel.at("masks"), json({"full", "causal", "sliding_window",
                                          "sliding_window_causal", "document", "causal_document"}));
    }
  }
  EXPECT_GE(unavailable, 2);
  const auto text =
      run_longca({"list", "kernels"}, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_THAT(text.out, ::testing::AllOf(::testing::HasSubstr("does not run here"),
                                         ::testing::HasSubstr("cuda 8.0 or later; bfloat16")));
}

TEST(List, SchemesSayWhatCarriesTheirMessagesHere) {
  const ProcessOptions no_mpirun{.environment = {{"LONGCA_MPIRUN", "no-such-mpirun"}}};
  const json here = parsed({"list", "schemes", "--json"});
  const json without = parsed({"list", "schemes", "--json"}, no_mpirun);
  const std::vector<std::string> all{"ulysses", "ring_p2p",   "ring_allgather",
                                     "usp",     "loongtrain", "magi"};
  EXPECT_EQ(names(here), all);
  for (const json& scheme : here) {
    const auto name = scheme.at("name").get<std::string>();
    EXPECT_NE(scheme.at("paper"), "") << name;
    EXPECT_EQ(scheme.at("factor"), name == "usp" || name == "loongtrain") << name;
    EXPECT_EQ(scheme.at("passes"), json({"forward", "backward"}));
    for (const char* transport : {"mpi", "nccl", "peer"}) {
      const json& support = scheme.at("transports").at(transport);
      EXPECT_EQ(support.at("status") == "ok", support.at("reason") == "") << name << support;
    }
  }
  for (const json& scheme : without) {
    EXPECT_EQ(scheme.at("status"), "unavailable");
    // In a build without MPI the reason is that.
    EXPECT_THAT(scheme.at("reason").get<std::string>(),
                ::testing::AnyOf(::testing::HasSubstr("no-such-mpirun"),
                                 ::testing::HasSubstr("libopenmpi-dev")));
  }
  const auto text = run_longca({"list", "schemes"}, no_mpirun);
  EXPECT_THAT(text.out, ::testing::HasSubstr("transport mpi           does not run here: "));
}

TEST(List, EverythingAtOnce) {
  const json all = parsed({"list", "--json"});
  for (const char* key : {"kernels", "masks", "schemes", "lengths", "suites"}) {
    EXPECT_TRUE(all.at(key).is_array()) << key;
  }
  EXPECT_THAT(names(all.at("suites")), ::testing::Contains("quick"));
  const auto text = run_longca({"list"});
  EXPECT_THAT(text.out, ::testing::HasSubstr("\nSchemes of context parallelism\n  ulysses "));
  EXPECT_EQ(run_longca({"list", "all"}).out, text.out);
  EXPECT_EQ(parsed({"list", "all", "--json"}), all);
}

TEST(List, ASuiteThatCannotBeReadIsListedWithTheReason) {
  const TempDirectory configs;
  write_file(configs / "broken.toml", "axes = [");
  std::filesystem::create_symlink("loop.toml", configs / "loop.toml");
  const json suites =
      parsed({"list", "suites", "--json"}, {.environment = {{"LONGCA_CONFIGS", configs.path()}}});
  ASSERT_EQ(names(suites), (std::vector<std::string>{"broken", "loop"}));
  for (const json& suite : suites) {
    EXPECT_THAT(suite.at("description").get<std::string>(), ::testing::HasSubstr("cannot be read"));
  }
}

TEST(List, LinesKeepToColumns) {
  for (const char* what : {"kernels", "masks", "schemes", "axes", "lengths", "suites"}) {
    const auto result = run_longca({"list", what}, {.environment = {{"COLUMNS", "72"}}});
    EXPECT_EQ(result.exit_code, 0);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), 72) << what << ": " << line;
      EXPECT_THAT(line, ::testing::Not(::testing::EndsWith(" ")));
    }
  }
}

TEST(Env, SaysWhatAFigureDependsOn) {
  const json env = parsed({"env", "--json"});
  for (const char* key : {"version", "commit", "compiler", "libraries", "os", "kernel", "cpu",
                          "memory", "gpus", "tools"}) {
    EXPECT_TRUE(env.contains(key)) << key;
  }
  EXPECT_GE(env.at("cpu").at("cores_usable").get<int>(), 1);
  EXPECT_GT(env.at("memory").at("available_bytes").get<std::int64_t>(), 0);
  EXPECT_THAT(env.at("commit").get<std::string>(), ::testing::MatchesRegex("[0-9a-f]+|unknown"));
}

TEST(Env, AMissingToolComesWithWhatToInstall) {
  const json env = parsed({"env", "--json"}, {.environment = {{"PATH", "/nowhere"}}});
  const json& gnuplot = env.at("tools").at("gnuplot");
  EXPECT_EQ(gnuplot.at("found"), false);
  EXPECT_THAT(gnuplot.at("install").get<std::string>(), ::testing::HasSubstr("gnuplot-nox"));
}

TEST(Env, TheTableHasALinePerThing) {
  const auto result = run_longca({"env"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* start : {"\nCPU ", "\nGPU ", "\nmemory ", "\ngnuplot ", "\nplotly.js "}) {
    EXPECT_THAT(result.out, ::testing::HasSubstr(start));
  }
}

TEST(Env, TheTableIsWrappedBetweenWords) {
  constexpr std::size_t kWidth = 60;
  std::istringstream lines(
      run_longca({"env"}, {.environment = {{"COLUMNS", std::to_string(kWidth)}}}).out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const bool is_one_word = line.find_last_of(' ') == 11;  // a path, say
    EXPECT_TRUE(line.size() <= kWidth || is_one_word) << line;
  }
  EXPECT_GT(count, 7);
}

}  // namespace
}  // namespace longca::testing
