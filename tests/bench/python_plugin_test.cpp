// Kernels from Python files, run by the system's Python without any package.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PythonPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LONGCA_SANITIZED
    GTEST_SKIP() << "the system's Python cannot load a library built with sanitizers";
#endif
  }
};

/// A plug-in that fails at one point: `at` is "supports", "plan", "forward" or "backward", `how`
/// the statement that does it. What it computes otherwise is right for one query of one key.
std::string failing_plugin(const std::string& at, const std::string& how) {
  std::string text = R"(
capabilities = {"name": "failing", "dtypes": ["float32"]}

def supports(problem, mask):
    #supports
    return None

def plan(problem, mask):
    #plan
    return Plan(problem.scale)

class Plan:
    def __init__(self, scale):
        self.scale = scale

    def forward(self, call):
        #forward
        call.o.row(0, 0)[:] = call.v.row(0, 0)[:]
        call.lse.row(0)[0] = self.scale * sum(a * b for a, b in zip(call.q.row(0, 0), call.k.row(0, 0)))

    def backward(self, call):
        #backward
        call.dq.row(0, 0)[:] = [0.0] * call.q.shape[2]
        call.dk.row(0, 0)[:] = [0.0] * call.q.shape[2]
        call.dv.row(0, 0)[:] = call.dout.row(0, 0)[:]
)";
  const std::string mark = "#" + at;
  if (!at.empty()) text.replace(text.find(mark), mark.size(), how);
  return text;
}

/// `naive` and a plug-in of that text on one query of one key, both passes.
std::vector<Record> run_plugin(const std::string& text, const std::vector<std::string>& more = {}) {
  const TempDirectory folder;
  const auto plugin = folder / "failing.py";
  const auto out = folder / "x.jsonl";
  write_file(plugin, text);
  std::vector<std::string> arguments{"--plugin", plugin.string(), "-a", "kernel=failing,naive",
                                     "-a",       "tokens=1",      "-a", "heads=1:1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = bench(out, arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_records(out).records;
}

void expect(const std::vector<Record>& records, Pass pass, StatusCode code,
            const std::string& part) {
  const Status status = find_record(records, "failing", pass).status;
  EXPECT_EQ(to_string(status.code), to_string(code)) << status.reason;
  EXPECT_THAT(status.reason, HasSubstr(part));
  EXPECT_TRUE(find_record(records, "naive", pass).status.ok());
}

/// What a plan says of itself is recorded, and must be a time and a size.
TEST_F(PythonPlugin, ImpossibleFiguresOfAPlanAreNamed) {
  const auto expect_crash = [](const std::string& figure, const std::string& sentence) {
    const auto records =
        run_plugin(failing_plugin("forward", "self." + figure), {"-a", "pass=forward"});
    expect(records, Pass::forward, StatusCode::crash, sentence);
  };
  expect_crash("compile_ms = -1", "the plan's compile_ms is -1: at least 0 and finite");
  expect_crash("compile_ms = float('nan')", "the plan's compile_ms is nan");
  expect_crash("workspace_bytes = -3", "the plan's workspace_bytes is -3: at least 0");
  expect_crash("workspace_bytes = 2**70", "at least 0, at most 2^53");
  expect_crash("workspace_bytes = float('nan')", "the plan's workspace_bytes is nan");
  const auto fine = run_plugin(failing_plugin("forward", "self.workspace_bytes = 3"));
  EXPECT_EQ(find_record(fine, "failing", Pass::forward).metrics.at("workspace_bytes"), 3);
}

TEST_F(PythonPlugin, AKernelHasDtypes) {
  const TempDirectory folder;
  write_file(folder / "none.py",
             "capabilities = {\"name\": \"none\", \"dtypes\": []}\n"
             "def supports(problem, mask): return None\n"
             "def plan(problem, mask): return None\n");
  const auto result =
      bench(folder / "r.jsonl", {"--plugin", (folder / "none.py").string(), "-a", "kernel=none"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("kernel 'none' has no dtypes"));
}

TEST_F(PythonPlugin, TheExampleIsVerifiedAndTimedOnEveryStaticMask) {
  const TempDirectory folder;
  const auto out = folder / "example.jsonl";
  const auto result = bench(out, {"--plugin", PYTHON_EXAMPLE, "-a", "kernel=rowwise_python,naive",
                                  "-a", "mask=all", "-a", "tokens=40", "-a", "dim=8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  EXPECT_EQ(records.size(), 14U * 2 * 2);
  for (const Record& record : records) {
    const bool refused = record.c.kernel == "rowwise_python" && record.c.block.has_value();
    EXPECT_EQ(to_string(record.status.code), refused ? "unsupported" : "ok")
        << record.c.key() << ": " << record.status.reason;
    if (record.c.kernel == "rowwise_python" && !refused) {
      EXPECT_EQ(record.notes.at("language"), "Python");
      EXPECT_GT(record.metrics.at("workspace_bytes"), 0);
      EXPECT_EQ(record.metrics.at("verified_fraction"), 1);
    }
  }
}

TEST_F(PythonPlugin, RunsBesideOneInCpp) {
  const TempDirectory folder;
  const auto out = folder / "both.jsonl";
  const auto result =
      bench(out, {"--plugin", PYTHON_EXAMPLE, "--plugin", EXAMPLE_PLUGIN, "-a",
                  "kernel=rowwise_python,rowwise", "-a", "tokens=16", "-a", "dim=8", "--strict"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const Record& record : read_records(out).records) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << ": " << record.status.reason;
  }
}

TEST_F(PythonPlugin, WhatAMaskIsAskedAgreesWithItsCells) {
  const TempDirectory folder;
  const auto out = folder / "masks.jsonl";
  const auto result = bench(out, {"--plugin", MASK_QUERIES, "-a", "kernel=mask_queries", "-a",
                                  "mask=all", "-a", "tokens=33", "-a", "pass=forward"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, std::string> found;
  for (const Record& record : read_records(out).records)
    found[record.c.mask] = record.status.reason;
  EXPECT_EQ(found.size(), 14U);
  for (const auto& [mask, reason] : found) EXPECT_THAT(reason, StartsWith("agrees")) << mask;
  EXPECT_EQ(found["causal"], "agrees: window documents");
  EXPECT_EQ(found["sliding_window"], "agrees: window");
  EXPECT_EQ(found["block_sparse"], "agrees: blocks");
}

/// `problem` outlives the call that it was given to: it owns its memory, and holds the same values.
TEST_F(PythonPlugin, APlanMayKeepItsProblem) {
  const std::string look =
      "assert PROBLEM._b_needsfree_ and PROBLEM._b_base_ is None\n"
      "        assert [getattr(PROBLEM, name) for name, _ in PROBLEM._fields_] == SEEN, SEEN";
  std::string text = failing_plugin("forward", look);
  text.replace(text.find("#backward"), 9, look);
  text.replace(
      text.find("#plan"), 5,
      "global PROBLEM, SEEN\n"
      "    PROBLEM, SEEN = problem, [getattr(problem, name) for name, _ in problem._fields_]");
  const auto records = run_plugin(text);
  expect(records, Pass::forward, StatusCode::ok, "");
  expect(records, Pass::backward, StatusCode::ok, "");
}

TEST_F(PythonPlugin, OnesThatWorkAndWrongResults) {
  expect(run_plugin(failing_plugin("", "")), Pass::backward, StatusCode::ok, "");
  const auto wrong = run_plugin(failing_plugin("backward", "call.dout.row(0, 0)[0] += 1.0"));
  expect(wrong, Pass::forward, StatusCode::ok, "");
  expect(wrong, Pass::backward, StatusCode::wrong, "");
  expect(run_plugin(failing_plugin("forward", "return")), Pass::forward, StatusCode::wrong, "o");
}

TEST_F(PythonPlugin, ExceptionsAreCrashesThatSayWhatWasRaised) {
  const auto forward =
      run_plugin(failing_plugin("forward", "raise ValueError('no\\nsecond line')"));
  expect(forward, Pass::forward, StatusCode::crash, "threw in forward: ValueError: no");
  EXPECT_THAT(find_record(forward, "failing", Pass::forward).status.reason,
              ::testing::Not(HasSubstr("second")));
  expect(run_plugin(failing_plugin("plan", "import absent_package")), Pass::forward,
         StatusCode::crash, "threw in plan: ModuleNotFoundError: No module named 'absent_package'");
  const auto backward = run_plugin(failing_plugin("backward", "{}['key']"));
  expect(backward, Pass::forward, StatusCode::ok, "");
  expect(backward, Pass::backward, StatusCode::crash, "threw in backward: KeyError: 'key'");
}

TEST_F(PythonPlugin, OtherEndsCostTheirCellsOnly) {
  expect(run_plugin(failing_plugin("forward", "raise MemoryError('too much')")), Pass::forward,
         StatusCode::oom, "too much");
  expect(run_plugin(failing_plugin("supports", "return 'it is Tuesday'")), Pass::backward,
         StatusCode::unsupported, "it is Tuesday");
  for (const char* answer : {"True", "False", "5"}) {
    expect(run_plugin(failing_plugin("supports", "return " + std::string(answer))), Pass::forward,
           StatusCode::crash, "supports returned " + std::string(answer) + ": None, or a sentence");
  }
  expect(run_plugin(failing_plugin("plan", "return None")), Pass::forward, StatusCode::crash,
         "plan returned None, without forward: an object with forward(call) and, where");
  expect(run_plugin(failing_plugin("forward", "import os; os.kill(os.getpid(), 11)")),
         Pass::forward, StatusCode::crash, "was ended by SIGSEGV");
  expect(run_plugin(failing_plugin("forward", "import time; time.sleep(1000)"),
                    {"-a", "pass=forward", "--case-limit", "8"}),
         Pass::forward, StatusCode::timeout, "forward had not ended");
}

TEST_F(PythonPlugin, MayTakeFloat16) {
  std::string half = failing_plugin("forward", "raise ValueError('q has ' + call.q.dtype)");
  half.replace(half.find("float32"), 7, "float16");
  const auto records = run_plugin(half, {"-a", "dtype=float16"});
  EXPECT_THAT(find_record(records, "failing", Pass::forward).status.reason,
              HasSubstr("q has float16"));
}

/// Exit 2, one sentence, no file.
void expect_refused(const std::string& text, const std::string& part,
                    const ProcessOptions& options = {}) {
  SCOPED_TRACE(part);
  const TempDirectory folder;
  const auto plugin = folder / "bad.py";
  write_file(plugin, text);
  const auto result = bench(folder / "x.jsonl", {"--plugin", plugin.string()}, options);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("plug-in '" + plugin.string() + "'"));
  EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "x.jsonl"));
}

TEST_F(PythonPlugin, FilesThatAreNone) {
  expect_refused("", "has no dict `capabilities`");
  expect_refused("capabilities = {'name': 'x'}", "has no function `supports`");
  expect_refused("\nimport absent_package\n",
                 "cannot be imported: ModuleNotFoundError: No module named 'absent_package' "
                 "(line 2)");
  expect_refused("a = 1\ndef f(:\n", "cannot be imported: SyntaxError");
  expect_refused("import os\nos.kill(os.getpid(), 11)", "was ended by SIGSEGV");
  const TempDirectory folder;
  const auto absent = bench(folder / "x.jsonl", {"--plugin", (folder / "absent.py").string()});
  EXPECT_THAT(absent.err, HasSubstr("does not exist"));
}

TEST_F(PythonPlugin, CapabilitiesThatCannotBeUsed) {
  const auto with = [](const std::string& capabilities) {
    return "capabilities = " + capabilities + "\ndef supports(p, m): pass\ndef plan(p, m): pass\n";
  };
  expect_refused(with("{}"), "have no 'name'");
  expect_refused(with("{'name': 'x', 'dtype': ['float32']}"),
                 "unknown key 'dtype' (did you mean 'dtypes'?)");
  expect_refused(with("{'name': 'x', 'dtypes': ['int8']}"), "unknown dtype 'int8'");
  expect_refused(with("{'name': 'x', 'device': 'tpu'}"), "neither 'cpu' nor 'cuda'");
  expect_refused(with("{'name': 'x', 'gqa': 'yes'}"), "'gqa' = \"yes\"");
  expect_refused(with("{'name': 'x', 'head_dims': range}"), "no plain data");
  for (const char* value : {"float('nan')", "float('inf')", "'\\ud800'", "b'x'"}) {
    expect_refused(with(std::string("{'name': 'x', 'description': ") + value + "}"),
                   "no plain data");
  }
  expect_refused(with("{'name': '../PWN'}"), "kernel '../PWN' is no name");
  expect_refused(with("{'name': 'a\\n\\x1b[2J\\u202e'}"),
                 "kernel 'a\\n\\x1b[2J\\u202e' is no name");
  expect_refused(with("{'name': 'naive'}"), "a kernel named 'naive' exists already");
  expect_refused(with("{'name': 'all'}"), "a kernel named 'all', which means every kernel");
}

TEST_F(PythonPlugin, NeedsAPython) {
  expect_refused("", "there is no program 'no-such-python'; install Python 3.9 or later",
                 {.environment = {{"LONGCA_PYTHON", "no-such-python"}}});
  expect_refused("", "ended itself with exit code 1",
                 {.environment = {{"LONGCA_PYTHON", "false"}}});
}

}  // namespace
}  // namespace longca::testing
