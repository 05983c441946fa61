// Commands and output of launchers: no process is started here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "bench/expect_input_error.h"
#include "bench/launch/launcher.h"
#include "bench/launch/rank_machine.h"
#include "bench/launch/request.h"
#include "parallel/plan/rank_limits.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kRule =
    "--------------------------------------------------------------------------\n";

std::string boxed(const std::string& text) {
  return kRule + text + kRule;
}

TEST(LauncherReport, NamesTheRankThatWasKilled) {
  const auto report = read_launcher_report(
      "a line of a rank\n" +
      boxed("Primary job  terminated normally, but 1 process returned\n"
            "a non-zero exit code. Per user-direction, the job has been aborted.\n") +
      boxed("mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 "
            "(Killed).\n"));
  EXPECT_EQ(report.rank, 1);
  EXPECT_EQ(report.how, "was ended by signal 9 (Killed)");
  EXPECT_EQ(report.said, "a line of a rank");
}

TEST(LauncherReport, NamesTheRankThatExited) {
  const auto report = read_launcher_report(
      boxed("mpirun detected that one or more processes exited with non-zero status, thus causing\n"
            "the job to be terminated. The first process to do so was:\n\n"
            "  Process name: [[29318,1],2]\n  Exit code:    5\n"));
  EXPECT_EQ(report.rank, 2);
  EXPECT_EQ(report.how, "ended itself with exit code 5");
  EXPECT_EQ(report.said, "");
  const auto aborted = read_launcher_report(
      boxed("MPI_ABORT was invoked on rank 4 in communicator MPI_COMM_WORLD\nwith errorcode 3.\n"));
  EXPECT_EQ(aborted.rank, 4);
  EXPECT_EQ(aborted.how, "ended itself with exit code 3");
}

/// As a rank does that calls exit(0) in its work.
TEST(LauncherReport, NamesTheRankThatLeft) {
  const auto report = read_launcher_report(
      boxed("mpirun has exited due to process rank 2 with PID 0 on\nnode vm exiting improperly. "
            "There are three reasons this could occur:\n\n1. this process did not call \"init\" "
            "before exiting, but others in the job did.\n"));
  EXPECT_EQ(report.rank, 2);
  EXPECT_EQ(report.how, "ended itself with exit code 0");
  EXPECT_EQ(report.said, "");
}

/// Ranks that crash at once cut each other's lines.
TEST(LauncherReport, LeavesStackTracesOut) {
  EXPECT_EQ(read_launcher_report("a line of a rank\n"
                                 "[vm:05971] [ 1] /lib/libc.so.6(+0x3c050)[0x7fafb945a050]\n"
                                 "[ 2] /lib/_ctypes.so(+0x8608)[0x7feb9b712608]\n"
                                 "/lib/libc.so.6(+0x3c050)[0x7fafb945a050]\n")
                .said,
            "a line of a rank");
  for (const char* line : {"[1] Error: no tile 3", "[0] NCCL WARN bad", "q is at [0x7f00]"}) {
    EXPECT_EQ(read_launcher_report(line).said, line);
  }
}

TEST(LauncherReport, WithoutARankGivesTheLaunchersWords) {
  const auto report = read_launcher_report(
      boxed("There are not enough slots available in the system to satisfy the 4\nslots.\n"));
  EXPECT_EQ(report.rank, std::nullopt);
  EXPECT_EQ(report.said,
            "There are not enough slots available in the system to satisfy the 4 slots.");
  EXPECT_EQ(read_launcher_report("").said, "");
}

TEST(LauncherReport, TakesWhateverRanksPrint) {
  const std::string rule(74, '-');
  const std::string endless(200'000, 'a');
  EXPECT_EQ(read_launcher_report("[" + endless).said.size(), 200U);
  EXPECT_EQ(read_launcher_report("[" + endless + ":1] x\nlast\n").said, "last");
  EXPECT_EQ(
      read_launcher_report(rule + "\nMPI_ABORT was invoked on rank 1 in communicator b" + endless)
          .rank,
      std::nullopt);
  EXPECT_EQ(read_launcher_report(
                boxed("mpirun noticed that process rank 99999999999999999999 with PID 0 on "
                      "node vm exited on signal 9 (Killed).\n"))
                .rank,
            std::nullopt);
}

TEST(LauncherReport, LeavesOutWhatHwlocSaysInARank) {
  EXPECT_EQ(read_launcher_report("the reason\nhwloc/linux: failed to find sysfs cpu topology "
                                 "directory, aborting linux discovery.\n")
                .said,
            "the reason");
}

TEST(LauncherReport, ReadsSrun) {
  const auto report = read_launcher_report("srun: error: node7: task 3: Exited with exit code 2\n");
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.how, "ended (Exited with exit code 2)");
}

/// Variables of a launch, and none of the others, while it lives.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
          "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
          "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
      unsetenv(name);
      names_.emplace_back(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& name : names_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> names_;
};

TEST(MpiLaunch, IsFoundInTheEnvironment) {
  {
    const Environment none({});
    EXPECT_FALSE(find_mpi_launch());
  }
  {
    const Environment open_mpi({{"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "8"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
    const auto launch = find_mpi_launch();
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->rank, 2);
    EXPECT_EQ(launch->size, 8);
    EXPECT_EQ(launch->per_node, 4);
  }
  {
    const Environment slurm({{"SLURM_PROCID", "9"},
                             {"SLURM_STEP_NUM_TASKS", "16"},
                             {"SLURM_STEP_TASKS_PER_NODE", "8(x2)"}});
    const auto launch = find_mpi_launch();
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->rank, 9);
    EXPECT_EQ(launch->per_node, 8);
  }
}

TEST(MpiLaunch, ABatchScriptAndAStepOfOneTaskAreNone) {
  {
    const Environment batch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}});
    EXPECT_FALSE(find_mpi_launch());
  }
  const Environment step({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_FALSE(find_mpi_launch());
}

/// In it mpirun starts no ranks: "does not support recursive calls".
TEST(MpiLaunch, OfOneRankByMpirunIsOne) {
  const Environment lone({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}});
  const auto launch = find_mpi_launch();
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->size, 1);
}

TEST(Hostfile, CountsSlots) {
  const TempDirectory folder;
  const auto file = folder / "hosts";
  write_file(file, "# two nodes\nnode1 slots=8\n\nnode2 slots=4 max_slots=8\nnode3\n");
  const HostSlots slots = hostfile_slots(file);
  EXPECT_EQ(slots.all, 13);
  EXPECT_EQ(slots.of_first_host, 8);
  write_file(file, "# nobody\n");
  expect_input_error([&] { hostfile_slots(file); }, "names no host");
  write_file(file, "node1 slots=2\nnode2 slts=2\n");
  expect_input_error([&] { hostfile_slots(file); },
                     ":2: 'slts=2' is not slots=COUNT (did you mean 'slots'?)");
  write_file(file, "node1 max_slots\n");
  expect_input_error([&] { hostfile_slots(file); }, ":1: 'max_slots' is not slots=COUNT");
  write_file(file, "localhost slots = 2\n");
  expect_input_error([&] { hostfile_slots(file); }, ":1: 'slots' is not slots=COUNT, in one word");
  write_file(file, "{\"schema\": 1}\n");
  expect_input_error([&] { hostfile_slots(file); }, ":1: '{\"schema\":' is no host name");
  write_file(file, "node1 slots=many\n");
  expect_input_error([&] { hostfile_slots(file); }, "hosts:1: slots 'many'");
  for (const char* count : {"-1", "0", "65537", "1024M"}) {
    write_file(file, std::string("node1 slots=") + count + "\n");
    expect_input_error([&] { hostfile_slots(file); }, "hosts:1: slots ");
  }
  write_file(file, "node1 slots=64K\nnode2 slots=64K\n");
  expect_input_error([&] { hostfile_slots(file); }, "has 131072 slots by line 2: more than 65536");
  expect_input_error([] { hostfile_slots("/no/such/file"); }, "cannot read /no/such/file: No such");
}

const RankMachine kMachine{
    .program = "/p/longca-rank", .mpirun = "/b/mpirun", .cores = 8, .gpus = 0};

TEST(RankCommand, SharesTheCoresOfThisHost) {
  const RankStart start{.suite_hash = "abc"};
  const auto command = rank_command(kMachine, start, 4, "/t/s", "/t");
  EXPECT_THAT(command.command, ElementsAre("/b/mpirun", "-n", "4", "/p/longca-rank", "--connect",
                                           "/t/s", "--suite-hash", "abc"));
  EXPECT_THAT(command.environment,
              IsSupersetOf({Pair("OMPI_MCA_rmaps_base_mapping_policy", "slot:PE=2"),
                            Pair("OMPI_MCA_orte_tmpdir_base", "/t")}));
}

TEST(RankCommand, PythonHostsRanksOrTheyAreToldWhyNot) {
  const RankStart hosted{
      .plugins = {"/q/x.py"}, .python = {"python3", "host.py"}, .suite_hash = "abc"};
  EXPECT_THAT(rank_arguments(kMachine, hosted, "/t/s"),
              ElementsAre("python3", "host.py", "--connect", "/t/s", "--suite-hash", "abc",
                          "--plugin", "/q/x.py"));
  const RankStart without{.no_python = "no Python", .suite_hash = "abc"};
  EXPECT_THAT(rank_arguments(kMachine, without, "/t/s"),
              ElementsAre("/p/longca-rank", "--connect", "/t/s", "--suite-hash", "abc",
                          "--no-python", "no Python"));
}

TEST(RankCommand, MoreRanksThanCoresShareThemAndYield) {
  const auto command = rank_command(kMachine, {.suite_hash = "abc"}, 9, "/t/s", "/t");
  EXPECT_THAT(command.environment,
              IsSupersetOf({Pair("OMPI_MCA_rmaps_base_oversubscribe", "1"),
                            Pair("OMPI_MCA_mpi_yield_when_idle", "1"),
                            Pair("OMPI_MCA_hwloc_base_binding_policy", "none")}));
}

TEST(RankCommand, LeavesTheUsersSettings) {
  setenv("OMPI_MCA_rmaps_base_mapping_policy", "node", 1);
  const auto command = rank_command(kMachine, {}, 4, "/t/s", "/t");
  unsetenv("OMPI_MCA_rmaps_base_mapping_policy");
  EXPECT_THAT(command.environment,
              Not(Contains(Pair("OMPI_MCA_rmaps_base_mapping_policy", ::testing::_))));
}

TEST(RankCommand, GoesToOtherHosts) {
  const RankStart start{.hostfile = "hosts", .several_hosts = true, .suite_hash = "abc"};
  const auto command = rank_command(kMachine, start, 16, "n0:4000", "/t");
  EXPECT_THAT(command.command,
              IsSupersetOf({"--hostfile", "hosts", "n0:4000", "-x", "LONGCA_SECRET"}));
  EXPECT_THAT(command.environment,
              Not(Contains(Pair("OMPI_MCA_rmaps_base_mapping_policy", ::testing::_))));
}

Case over(int ranks, const std::string& device = "cpu") {
  Case c;
  c.mask = "full";
  c.tokens = 64;
  c.heads_q = c.heads_k = 8;
  c.scheme = "usp";
  c.ranks = ranks;
  c.device = device;
  return canonical(c);
}

TEST(Request, IsRefusedOnlyIfNoCellCanRun) {
  const RankPlaces two_gpus{{.cpu = 8, .cuda = 2}, 64, 2, host_limit(8), "there are 2 GPUs", false};
  const auto refuse = [&](std::vector<Case> cases) { refuse_impossible(cases, two_gpus); };
  refuse({over(64), over(4, "cuda")});
  expect_input_error(
      [&] {
        refuse({over(4, "cuda"), over(8, "cuda")});
      },
      "4 ranks need a GPU each, and there are 2 GPUs");
  expect_input_error(
      [&] {
        refuse({over(65), over(100000)});
      },
      "65 ranks need a place each, and the 8 cores of this host take at most 64; a "
      "--hostfile names more hosts");
  refuse({over(64), over(100000)});
  Case odd = over(4);
  odd.factor = 3;
  refuse({odd, over(4)});
  expect_input_error([&] { refuse({odd}); }, "the factor 3 does not divide 4 ranks");
  Case lost = over(4);
  lost.transport = "peer";
  refuse({lost, over(4)});
  expect_input_error([&] { refuse({lost}); },
                     "the transport peer does not carry messages between CPUs");
}

TEST(Request, AHostTakesSeveralRanksForEachCore) {
  EXPECT_EQ(max_ranks_of_host(1), 64);
  EXPECT_EQ(max_ranks_of_host(8), 64);
  EXPECT_EQ(max_ranks_of_host(16), 128);
  EXPECT_EQ(max_ranks_of_host(1 << 20), kMaxRunningRanks);
  EXPECT_EQ(host_limit(1).find("the 1 core of this host takes at most 64"), 0U);
  const RankPlaces here = places_of(RankStart{});
  EXPECT_EQ(here.max_cpu, max_ranks_of_host(rank_machine().cores));
  EXPECT_EQ(here.limit_cpu, host_limit(rank_machine().cores));
  const RankPlaces slurm = places_of(RankStart{.launcher = Launcher::srun});
  expect_input_error([&] { refuse_impossible(std::vector{over(65537)}, slurm); },
                     "65537 ranks need a place each, and a launch has at most 65536");
}

TEST(Request, HasAHashOfItsCells) {
  const Suite suite;
  const std::vector<Case> one{over(2)};
  const std::vector<Case> other{over(4)};
  EXPECT_EQ(hash_of_suite(suite, one), hash_of_suite(suite, one));
  EXPECT_NE(hash_of_suite(suite, one), hash_of_suite(suite, other));
}

}  // namespace
}  // namespace longca::testing
