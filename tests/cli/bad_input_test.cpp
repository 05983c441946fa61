#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/process.h"

namespace longca::testing {
namespace {

using Arguments = std::vector<std::string>;
using ::testing::HasSubstr;

/// Exit 2, one sentence on stderr that contains `part`, nothing on stdout.
void expect_refused(const Arguments& arguments, const std::string& part) {
  std::string line = "longca";
  for (const auto& argument : arguments) line += " " + argument;
  SCOPED_TRACE(line);
  const auto result = run_longca(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("longca: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(part));
}

Arguments mask_with(const std::string& name, Arguments more) {
  Arguments arguments{"mask", name};
  const bool has_tokens = std::ranges::find(more, "--tokens") != more.end();
  if (!has_tokens) arguments.insert(arguments.end(), {"--tokens", "1K"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.emplace_back("--json");
  return arguments;
}

TEST(BadInput, UnknownNamesSuggestTheNearest) {
  expect_refused({"lst"}, "unknown verb 'lst' (did you mean 'list'?)");
  expect_refused({"masks"}, "'mask'");
  expect_refused({"mask", "causl", "--tokens", "5"},
                 "unknown mask 'causl' (did you mean 'causal'?)");
  expect_refused({"lengths", "prolong64", "--tokens", "5"}, "'prolong64k'");
  expect_refused({"mask", "document", "--tokens", "5", "--lengths", "pille"}, "'pile'");
  expect_refused({"mask", "causal", "--tokns", "5"},
                 "unknown option '--tokns' of mask (did you mean '--tokens'?)");
  expect_refused({"mask", "causal", "--tokens=5", "--jsn"}, "'--json'");
  expect_refused({"list", "kernel"}, "'kernels'");
  expect_refused({"--versoin"}, "'--version'");
}

TEST(BadInput, ANameOfAnAxisIsNoSuite) {
  expect_refused({"bench", "causal"}, "unknown suite 'causal'; causal is a mask: -a mask=causal");
  expect_refused({"bench", "flash"}, "flash is a kernel: -a kernel=flash");
  expect_refused({"cp", "magi"}, "magi is a scheme: -a scheme=magi");
  expect_refused({"bench", "mask=causal"}, "values of an axis are given as -a mask=causal");
}

TEST(BadInput, UnknownNamesFarFromAllSuggestNothing) {
  const auto result = run_longca({"zzzzzz"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "longca: unknown verb 'zzzzzz'; longca --help lists them\n");
}

/// Before a verb takes it for a failure of a kernel, or of a file that it reads by several threads.
TEST(BadInput, ThreadsInTheEnvironment) {
  for (const std::string threads : {"many", "0", "-1", "5000", ""}) {
    SCOPED_TRACE(threads);
    for (const Arguments& verb :
         {Arguments{"check", "-a", "kernel=flash", "-a", "tokens=64"}, Arguments{"list"}}) {
      const auto result = run_longca(verb, {.environment = {{"LONGCA_THREADS", threads}}});
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.out, "");
      EXPECT_TRUE(result.err.starts_with("longca: LONGCA_THREADS ")) << result.err;
    }
  }
}

TEST(BadInput, IncompleteCommandLines) {
  expect_refused({}, "a verb is missing");
  expect_refused({"mask"}, "longca mask --help");
  expect_refused({"mask", "causal"}, "--tokens is required");
  expect_refused({"mask", "causal", "--tokens"}, "--tokens");
  expect_refused({"mask", "causal", "--tokens", "5", "6"}, "'6'");
  expect_refused({"lengths", "--tokens", "5"}, "DIST");
}

TEST(BadInput, ValuesOfOptionsAreNamed) {
  expect_refused({"bench", "--rounds", "1.5"}, "--rounds '1.5' is not a whole number");
  expect_refused({"bench", "--case-limit", "5s"}, "--case-limit '5s' is not a number");
  expect_refused({"mask", "causal", "--tokens=5", "--json=x"}, "--json takes no value");
  expect_refused({"bench", "--dry-run=0"}, "--dry-run takes no value");
  expect_refused({"bench", "--memory-limit", "9223372036854775807"}, "from 1 to 1099511627776");
  expect_refused({"bench", "--case-limit", "1e10"},
                 "--case-limit 10000000000 is not above 0 and at");
  expect_refused({"bench", "-a", "device=gpu"}, "unknown device 'gpu' (did you mean 'cuda'?)");
  expect_refused({"bench", "-a", "zz=1"}, "unknown axis 'zz'; longca list axes lists them");
  expect_refused({"bench", "--out"}, "--out lacks its value: FILE.jsonl");
  expect_refused({"lengths", "pile", "--tokens", "5", "--tokens", "6"},
                 "--tokens is given 2 times, and takes one value");
  expect_refused({"compare", "--commits", "A"}, "--commits takes 2 values: A B; got 1");
  // Options that help leaves out have a name too.
  expect_refused({"advise", "--samples", "x"}, "--samples 'x' is not a number");
  expect_refused({"advise", "--samples"}, "--samples lacks its value: N");
}

TEST(BadInput, EmptyValuesAreNoDefault) {
  expect_refused({"bench", "", "--dry-run"}, "SUITE: its value is empty");
  expect_refused({"bench", "--dry-run", "--out", ""}, "--out: its value is empty");
  expect_refused({"mask", "causal", "--tokens", "5", "--lengths="}, "--lengths");
}

TEST(BadInput, Tokens) {
  for (const char* verb : {"mask", "lengths"}) {
    const char* name = std::string(verb) == "mask" ? "causal" : "pile";
    expect_refused({verb, name, "--tokens", "0"}, "tokens 0 is too small: the minimum is 1");
    expect_refused({verb, name, "--tokens", "-5"}, "tokens -5 is too small: the minimum is 1");
    expect_refused({verb, name, "--tokens", "1.5"}, "tokens '1.5'");
    expect_refused({verb, name, "--tokens", "1000000000000"},
                   "tokens 1000000000000 is too large: the maximum is 1073741824");
    expect_refused({verb, name, "--tokens", "99999999999999999999999"}, "tokens");
    expect_refused({verb, name, "--tokens", "9000000000000000M"}, "tokens");
    expect_refused({verb, name, "--tokens", "many"}, "tokens 'many'");
    expect_refused({verb, name, "--tokens", ""}, "tokens");
    expect_refused({verb, name, "--tokens", "1K,2K"}, "one value");
  }
}

TEST(BadInput, Seeds) {
  expect_refused({"lengths", "pile", "--tokens", "5", "--seed", "-1"}, "seed -1");
  expect_refused({"lengths", "pile", "--tokens", "5", "--seed", "0.5"}, "seed '0.5'");
}

TEST(BadInput, ParametersOfMasks) {
  expect_refused(mask_with("block_sparse", {"--heads", "7:3"}), "7:3");
  expect_refused(mask_with("block_sparse", {"--heads", "0:0"}), "heads");
  expect_refused(mask_with("block_sparse", {"--heads", "8:"}), "heads");
  expect_refused(mask_with("block_sparse", {"--density", "0"}), "density 0");
  expect_refused(mask_with("block_sparse", {"--density", "1.5"}), "density 1.5");
  expect_refused(mask_with("block_sparse", {"--density", "nan"}), "density");
  expect_refused(mask_with("block_sparse", {"--block", "0"}), "block 0");
  expect_refused(mask_with("block_sparse", {"--block-heads", "keys"}), "'keys'");
  expect_refused(mask_with("block_causal_document", {"--block-tokens", "0"}), "block_tokens 0");
  expect_refused(mask_with("sliding_window", {"--window", "-1"}), "window -1");
  expect_refused(mask_with("block_sparse", {"--tokens", "1024M"}), "at most 268435456");
}

}  // namespace
}  // namespace longca::testing
