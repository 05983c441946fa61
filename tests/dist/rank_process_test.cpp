#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/ranks/protocol.h"
#include "bench/record/record.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};
constexpr const char* kSecret = "0123456789abcdef";

void set_environment() {
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle", "LONGCA_THREADS"}) {
    setenv(name, "1", 1);
  }
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  setenv(kSecretVariable, kSecret, 1);
}

/// The parent's side of ranks that mpirun starts.
class Launch {
 public:
  /// `rank_options` for each group of one rank, or for all of `ranks` if there is one.
  Launch(int ranks, const std::vector<std::vector<std::string>>& rank_options) : ranks_(ranks) {
    set_environment();
    address_ = (folder_.path() / "socket").string();
    listen();
    std::vector<std::string> command{MPIRUN};
    for (const auto& options : rank_options) {
      if (command.size() > 1) command.emplace_back(":");
      const int count = rank_options.size() == 1 ? ranks : 1;
      for (const std::string& word :
           {std::string("-n"), std::to_string(count), std::string(RANK_PROGRAM),
            std::string("--connect"), address_}) {
        command.push_back(word);
      }
      command.insert(command.end(), options.begin(), options.end());
    }
    start(command);
  }
  ~Launch() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(listener_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// The next message of any rank that has `key`; empty if there is none in time.
  nlohmann::json next(const std::string& key) {
    const auto end = Clock::now() + kPatience;
    while (Clock::now() < end) {
      for (auto& [socket, channel] : channels_) {
        while (const auto message = channel->next()) {
          if (message->contains("hello")) hello(*message, socket);
          if (message->contains("stage")) stages.push_back(message->at("stage"));
          if (message->contains(key)) return message->at(key);
        }
      }
      take_some();
    }
    return {};
  }

  /// Whether rank 0 says so and every rank has said hello, each over a socket of its own.
  bool ready() {
    if (next("ready") != true) return false;
    while (std::ssize(hellos) < ranks_) {
      if (next("hello").is_null()) return false;
    }
    return true;
  }

  void ask(const Case& c, bool timed = false) {
    CellOptions options;
    options.timed = timed;
    options.limits.time_limit_s = 0.1;
    ASSERT_TRUE(channels_.at(root_)->send({{"case", c}, {"options", options}}));
  }

  void hang_up() { channels_.clear(); }

  /// waitpid's status of mpirun.
  int wait() {
    int status = 0;
    const auto end = Clock::now() + kPatience;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() > end) throw std::runtime_error("mpirun does not end");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    pid_ = -1;
    return status;
  }

  std::string output() const {
    std::ifstream file(folder_.path() / "output");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  pid_t mpirun() const { return pid_; }

  std::map<int, RankHello> hellos;
  std::vector<std::string> stages;

 private:
  void listen() {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address_.data(), address_.size());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
        ::listen(listener_, 16) != 0) {
      throw std::runtime_error(std::strerror(errno));
    }
  }

  void start(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const std::string output = (folder_.path() / "output").string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    if (std::freopen(output.c_str(), "w", stdout) != nullptr) ::dup2(STDOUT_FILENO, STDERR_FILENO);
    ::execvp(words.front(), words.data());
    ::_exit(127);
  }

  void hello(const nlohmann::json& message, int socket) {
    const auto said = message.at("hello").get<RankHello>();
    EXPECT_EQ(said.ranks, ranks_);
    if (said.rank == 0) root_ = socket;
    hellos[said.rank] = said;
  }

  void take_some() {
    std::vector<pollfd> watched{{listener_, POLLIN, 0}};
    for (const auto& [socket, channel] : channels_) watched.push_back({socket, POLLIN, 0});
    ::poll(watched.data(), watched.size(), 100);
    for (const pollfd& one : watched) {
      if (one.revents == 0) continue;
      if (one.fd == listener_) {
        const int socket = ::accept(listener_, nullptr, nullptr);
        channels_[socket] = std::make_unique<LineChannel>(socket, kSecret);
      } else if (!channels_.at(one.fd)->read_available()) {
        auto closed = channels_.extract(one.fd);  // its last messages are still asked for
        closed.key() = -1 - one.fd;
        channels_.insert(std::move(closed));
      }
    }
  }

  int ranks_;
  TempDirectory folder_;
  std::string address_;
  int listener_ = -1;
  int root_ = -1;
  pid_t pid_ = -1;
  std::map<int, std::unique_ptr<LineChannel>> channels_;  ///< by socket; negative: closed
};

Case small_case(const std::string& kernel, int ranks) {
  Case c;
  c.kernel = kernel;
  c.mask = "causal";
  c.tokens = 256;
  c.heads_q = c.heads_k = 4;
  c.head_dim = 32;
  c.dtype = DType::float32;
  c.scheme = "ring_p2p";
  c.ranks = ranks;
  c.shard = "zigzag";
  c.transport = "mpi";
  return c;
}

TEST(RankProcess, AnswersOneCaseAfterTheOtherAndEndsWithTheSocket) {
  Launch launch(3, {{"--suite-hash", "abc"}});
  ASSERT_TRUE(launch.ready()) << launch.output();
  ASSERT_EQ(launch.hellos.size(), 3U);
  EXPECT_EQ(launch.hellos.at(2).suite_hash, "abc");
  EXPECT_THAT(launch.hellos.at(1).commit, ::testing::Not(::testing::IsEmpty()));
  EXPECT_NE(launch.hellos.at(1).pid, launch.hellos.at(0).pid);
  for (const int ranks : {3, 2}) {  // the third waits meanwhile
    launch.ask(small_case("flash", ranks), true);
    const auto record = launch.next("record").get<Record>();
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_EQ(std::ssize(record.rank_times_ms), ranks);
  }
  EXPECT_THAT(launch.stages, ::testing::Contains("verify"));
  launch.hang_up();
  EXPECT_EQ(launch.wait(), 0) << launch.output();
}

TEST(RankProcess, ThatThrowsInTheMiddleOfAPassSaysSoAndEndsAll) {
  Launch launch(3, {{"--plugin", ONE_RANK_PLUGIN}});
  ASSERT_TRUE(launch.ready()) << launch.output();
  launch.ask(small_case("fault_one_rank", 3));
  EXPECT_EQ(launch.next("failed"), "threw in forward: only this rank throws");
  const int status = launch.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kRankFailed) << launch.output();
  EXPECT_THAT(launch.output(), HasSubstr("longca-rank: rank 1: threw in forward"));
}

TEST(RankProcess, WithAnotherSuiteIsRefusedByName) {
  Launch launch(2, {{"--suite-hash", "one"}, {"--suite-hash", "two"}});
  EXPECT_EQ(launch.next("refused"), "rank 1 was given another suite than rank 0");
  const int status = launch.wait();
  EXPECT_EQ(WEXITSTATUS(status), kRankRefused) << launch.output();
}

TEST(RankProcess, WithoutItsPlugInIsRefused) {
  Launch launch(2, {{"--plugin", "/nowhere.so"}});
  EXPECT_THAT(launch.next("refused").get<std::string>(), HasSubstr("/nowhere.so"));
  EXPECT_EQ(WEXITSTATUS(launch.wait()), kRankRefused) << launch.output();
}

TEST(RankProcess, WithNodesOfNoRanksIsRefused) {
  setenv("LONGCA_RANKS_PER_NODE", "0", 1);
  Launch launch(2, {{}});
  unsetenv("LONGCA_RANKS_PER_NODE");
  EXPECT_EQ(launch.next("refused"), "LONGCA_RANKS_PER_NODE is 0: at least 1, at most 65536");
  EXPECT_EQ(WEXITSTATUS(launch.wait()), kRankRefused) << launch.output();
}

TEST(RankProcess, WithoutAParentEndsWithASentence) {
  Launch launch(2, {{"--connect", "/nowhere/socket"}});
  EXPECT_EQ(WEXITSTATUS(launch.wait()), kRankRefused);
  EXPECT_THAT(launch.output(), HasSubstr("cannot connect to longca cp at /nowhere/socket"));
}

TEST(RankProcess, DiesWithMpirun) {
  Launch launch(2, {{}});
  ASSERT_TRUE(launch.ready()) << launch.output();
  ::kill(launch.mpirun(), SIGKILL);
  launch.wait();
  for (const auto& [rank, hello] : launch.hellos) {
    const auto end = Clock::now() + kPatience;
    while (::kill(hello.pid, 0) == 0 && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_NE(::kill(hello.pid, 0), 0) << "rank " << rank << " is still there";
  }
}

}  // namespace
}  // namespace longca::testing
