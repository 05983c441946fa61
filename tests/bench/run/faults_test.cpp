// Kernels that fail in every way known: each costs its cell alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "bench/bench_run.h"
#include "bench/record/metrics.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNames[] = {
    "segv",      "segv_backward", "abort",      "hang",         "exit",      "exit_well",
    "exception", "number",        "tracked_tb", "untracked_tb", "socket",    "nan",
    "input",     "past_lse",      "before_dv",  "later",        "unwritten", "none"};

#ifdef LONGCA_SANITIZED
constexpr const char* kCaseLimit =
    "10";  // a terabyte is not refused there, but watched as it grows
#else
constexpr const char* kCaseLimit = "8";
#endif

/// One run over all faulty kernels.
class FaultRun {
 public:
  FaultRun() {
    std::string kernels = "naive";
    for (const char* name : kNames) kernels += std::string(",fault_") + name;
    result = bench(folder_ / "faults.jsonl", {"--plugin", FAULT_PLUGIN, "-a", "kernel=" + kernels,
                                              "--case-limit", kCaseLimit, "--memory-limit", "512"});
    records = read_records(folder_ / "faults.jsonl").records;
  }

  void expect(const std::string& kernel, Pass pass, StatusCode code,
              const std::string& part) const {
    const Status status = find_record(records, kernel, pass).status;
    EXPECT_EQ(to_string(status.code), to_string(code)) << kernel << ": " << status.reason;
    EXPECT_THAT(status.reason, HasSubstr(part)) << kernel;
  }
  /// A fault of the forward pass also is one of the backward cell, which runs it first.
  void expect_both(const std::string& kernel, StatusCode code, const std::string& part) const {
    expect(kernel, Pass::forward, code, part);
    expect(kernel, Pass::backward, code, part);
  }

  ProcessResult result;
  std::vector<Record> records;

 private:
  TempDirectory folder_;
};

void the_run_is_complete(const FaultRun& run) {
  EXPECT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.records.size(), 2U * (1 + std::size(kNames)));
}

void good_cells_stay_good(const FaultRun& run) {
  run.expect_both("naive", StatusCode::ok, "");
  run.expect_both("fault_none", StatusCode::ok, "");
  run.expect("fault_segv_backward", Pass::forward, StatusCode::ok, "");
  run.expect("fault_exit_well", Pass::forward, StatusCode::ok, "");
  run.expect("fault_unwritten", Pass::forward, StatusCode::ok, "");
}

void ends_of_the_process_are_crashes_that_say_how(const FaultRun& run) {
  run.expect_both("fault_abort", StatusCode::crash,
                  "in forward the process was ended by SIGABRT (Aborted)");
  run.expect_both("fault_exit", StatusCode::crash,
                  "in forward the process ended itself with exit code 3");
  run.expect("fault_exit_well", Pass::backward, StatusCode::crash,
             "in backward the process ended itself with exit code 0");
  run.expect_both("fault_segv", StatusCode::crash,
                  "in forward the process was ended by SIGSEGV (Segmentation fault)");
  run.expect("fault_segv_backward", Pass::backward, StatusCode::crash,
             "in backward the process was ended by SIGSEGV (Segmentation fault)");
}

void exceptions_are_crashes_with_their_text(const FaultRun& run) {
  run.expect_both("fault_exception", StatusCode::crash,
                  "threw in forward: this kernel always throws");
  run.expect_both("fault_number", StatusCode::crash, "threw in forward, not a std::exception");
}

void hangs_are_timeouts(const FaultRun& run) {
  run.expect_both(
      "fault_hang", StatusCode::timeout,
      "forward had not ended when the cell's " + std::string(kCaseLimit) + " s were up");
}

void a_terabyte_is_out_of_memory(const FaultRun& run) {
  run.expect_both("fault_tracked_tb", StatusCode::oom,
                  "in forward: an allocation of 1099511627776 bytes");
  run.expect_both("fault_untracked_tb", StatusCode::oom, "in forward");
}

void wrong_results_are_wrong(const FaultRun& run) {
  run.expect("fault_nan", Pass::forward, StatusCode::wrong, "");
  run.expect("fault_nan", Pass::backward, StatusCode::wrong, "its own forward pass: ");
  run.expect("fault_unwritten", Pass::backward, StatusCode::wrong, "");
  run.expect_both("fault_input", StatusCode::wrong, "wrote into its inputs");
  run.expect("fault_past_lse", Pass::forward, StatusCode::wrong,
             "wrote outside of its outputs: 64 bytes behind lse");
  run.expect("fault_before_dv", Pass::forward, StatusCode::ok, "");
  run.expect("fault_before_dv", Pass::backward, StatusCode::wrong,
             "wrote outside of its outputs: 1 bytes before dv");
  run.expect("fault_later", Pass::forward, StatusCode::wrong,
             "in a repetition with other inputs: ");
}

void noise_on_the_socket_is_a_crash(const FaultRun& run) {
  run.expect_both("fault_socket", StatusCode::crash, "sent what is no message");
}

void no_number_without_a_check(const FaultRun& run) {
  for (const Record& record : run.records) {
    const bool timed = record.metrics.contains("time_ms");
    EXPECT_EQ(timed, record.status.ok()) << record.c.key();
    EXPECT_EQ(timed, !record.samples_ms.empty()) << record.c.key();
    EXPECT_EQ(timed, !record.stop.empty()) << record.c.key();
    EXPECT_EQ(record.status.ok(), record.status.reason.empty()) << record.c.key();
    for (const auto& [name, value] : record.metrics) EXPECT_NE(find_metric(name), nullptr) << name;
  }
}

void what_a_kernel_prints_is_shown_on_stderr(const FaultRun& run) {
  EXPECT_THAT(run.result.err, HasSubstr("fault_none | a line from the kernel\n"));
  EXPECT_THAT(run.result.out, ::testing::Not(HasSubstr("a line from the kernel")));
}

/// One test, because each would start the same run again.
TEST(Faults, EachCostsItsCellAlone) {
  const FaultRun run;
  the_run_is_complete(run);
  good_cells_stay_good(run);
  ends_of_the_process_are_crashes_that_say_how(run);
  exceptions_are_crashes_with_their_text(run);
  hangs_are_timeouts(run);
  a_terabyte_is_out_of_memory(run);
  wrong_results_are_wrong(run);
  noise_on_the_socket_is_a_crash(run);
  no_number_without_a_check(run);
  what_a_kernel_prints_is_shown_on_stderr(run);
}

/// Gradients of drawn keys are computed from the kernel's LSE: without one none is taken for right.
TEST(Faults, GradientsWithoutLseAreRefusedWhereTheBudgetDrawsTiles) {
  const TempDirectory folder;
  const auto run = [&](const std::string& budget) {
    const auto suite = folder / "budget.toml";
    std::ofstream(suite) << "[run]\nverify_budget_s = " << budget << "\n";
    const auto file = folder / (budget + ".jsonl");
    const ProcessResult result = bench(
        file, {suite.string(), "--plugin", FAULT_PLUGIN, "-a", "kernel=fault_dk_without_lse"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(file).records;
  };
  const Status drawn = find_record(run("1e-6"), "fault_dk_without_lse", Pass::backward).status;
  EXPECT_EQ(drawn.code, StatusCode::unsupported);
  EXPECT_EQ(drawn.reason,
            "returns no LSE: a verify_budget_s of 1e-06 has room for tiles of a head only, whose "
            "dk and dv are computed from the kernel's LSE");
  const Status whole = find_record(run("10"), "fault_dk_without_lse", Pass::backward).status;
  EXPECT_EQ(whole.code, StatusCode::wrong);
  EXPECT_THAT(whole.reason, HasSubstr("dk of KV head 0"));
}

TEST(Faults, OtherBitsAreWrongWhereDeterminismIsAskedFor) {
  const TempDirectory folder;
  const auto file = folder / "bits.jsonl";
  const ProcessResult result =
      bench(file, {"--plugin", FAULT_PLUGIN, "-a", "kernel=naive,fault_rounding", "-a",
                   "dtype=float32", "-a", "deterministic=0,1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Record> records = read_records(file).records;
  EXPECT_EQ(records.size(), 2U * 3);  // a forward pass is asked for no bits
  for (const Record& record : records) {
    const bool wrong = record.c.kernel == "fault_rounding" && record.c.deterministic.has_value();
    EXPECT_EQ(record.status.code, wrong ? StatusCode::wrong : StatusCode::ok)
        << record.c.key() << ": " << record.status.reason;
    EXPECT_EQ(record.status.reason,
              wrong ? "deterministic=1, and a second call gave gradients of other bits" : "");
  }
}

}  // namespace
}  // namespace longca::testing
