#include "parallel/executor/thread_ranks.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory.h"

namespace longca::test {
namespace {

constexpr int kPoison = 0xff;  ///< all bits set are a NaN of every dtype

struct Posted {
  Transfer transfer;
  bool done = false;
};

std::byte* row_of(const Transfer& t, std::int64_t row) {
  return static_cast<std::byte*>(t.data) + row * t.stride_bytes;
}

}  // namespace

struct ThreadRanks::World {
  int ranks;
  std::mutex mutex;
  std::condition_variable changed;
  bool broken = false;  ///< a rank has thrown: nobody waits any more
  /// What was posted and not moved, by sender and receiver. The n-th send is the n-th receive's.
  struct Channel {
    std::deque<std::shared_ptr<Posted>> sends, receives;
  };
  std::map<std::pair<int, int>, Channel> channels;
  int waiting = 0;  ///< in the barrier
  std::uint64_t barriers = 0;
  std::vector<HostBuffer> memory;

  /// Moves what can be moved to or from `rank`.
  void move(int rank) {
    bool moved = false;
    for (auto& [ends, channel] : channels) {
      if (ends.first != rank && ends.second != rank) continue;
      while (!channel.sends.empty() && !channel.receives.empty()) {
        copy(*channel.sends.front(), *channel.receives.front());
        channel.sends.pop_front();
        channel.receives.pop_front();
        moved = true;
      }
    }
    if (moved) changed.notify_all();
  }

  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, Done&& done) {
    changed.wait(lock, [&] { return broken || done(); });
    if (broken) throw std::runtime_error("another rank has failed");
  }

 private:
  static void copy(Posted& send, Posted& receive) {
    const Transfer& from = send.transfer;
    const Transfer& to = receive.transfer;
    LONGCA_CHECK(from.rows == to.rows && from.row_bytes == to.row_bytes,
                 "{} rows of {} bytes meet {} of {}", from.rows, from.row_bytes, to.rows,
                 to.row_bytes);
    for (std::int64_t row = 0; row < from.rows; ++row) {
      std::memcpy(row_of(to, row), row_of(from, row), static_cast<std::size_t>(from.row_bytes));
    }
    send.done = receive.done = true;
  }
};

class ThreadRanks::Rank final : public Communicator {
 public:
  Rank(World& world, int rank) : world_(world), rank_(rank) {}

  std::string name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return world_.ranks; }
  std::string version() const override { return {}; }

  /// Poisoned: no plan may go by what its memory held.
  void* allocate(std::int64_t bytes) override {
    const std::scoped_lock lock(world_.mutex);
    HostBuffer& buffer = world_.memory.emplace_back(bytes);
    std::memset(buffer.data(), kPoison, static_cast<std::size_t>(bytes));
    return buffer.data();
  }

  int prepare(const TransferGroup& group) override {
    groups_.push_back({group, {}});
    return static_cast<int>(groups_.size()) - 1;
  }

  /// What may land early could have: nobody reads it before, and nobody writes there.
  void expect(std::span<const int> groups, Stream /*stream*/) override {
    for (const int group : groups) {
      Group& g = groups_.at(static_cast<std::size_t>(group));
      g.poisoned = g.transfers.lands_early;
      if (g.poisoned) poison(g);
    }
  }

  void map_sends(const AddressMap& map) override { map_ = &map; }

  void start(int group, Stream /*stream*/) override {
    Group& g = groups_.at(static_cast<std::size_t>(group));
    LONGCA_CHECK(g.posted.empty(), "group {} is under way", group);
    LONGCA_CHECK(!g.poisoned || is_poisoned(g), "rank {} writes where group {} lands", rank_,
                 group);
    if (!std::exchange(g.poisoned, false)) poison(g);
    const std::scoped_lock lock(world_.mutex);
    for (const Transfer& t : g.transfers.receives) {
      post(world_.channels[{t.peer, rank_}].receives, t, g);
    }
    for (Transfer t : g.transfers.sends) {
      if (map_ != nullptr) t.data = map_->at(t.data);
      post(world_.channels[{rank_, t.peer}].sends, t, g);
      count_sent(t.bytes());
    }
    world_.changed.notify_all();
  }

  void finish(int group) override {
    Group& g = groups_.at(static_cast<std::size_t>(group));
    std::unique_lock lock(world_.mutex);
    world_.wait(lock, [&] {
      world_.move(rank_);
      return std::ranges::all_of(g.posted, [](const auto& posted) { return posted->done; });
    });
    g.posted.clear();
  }

  void barrier(Stream /*stream*/) override {
    std::unique_lock lock(world_.mutex);
    const std::uint64_t now = world_.barriers;
    if (++world_.waiting == world_.ranks) {
      world_.waiting = 0;
      ++world_.barriers;
      world_.changed.notify_all();
    }
    world_.wait(lock, [&] { return world_.barriers != now; });
  }

 private:
  struct Group {
    TransferGroup transfers;
    std::vector<std::shared_ptr<Posted>> posted;
    bool poisoned = false;
  };
  static void poison(const Group& group) {
    for (const Transfer& t : group.transfers.receives) {
      for (std::int64_t row = 0; row < t.rows; ++row) {
        std::memset(row_of(t, row), kPoison, static_cast<std::size_t>(t.row_bytes));
      }
    }
  }
  static bool is_poisoned(const Group& group) {
    return std::ranges::all_of(group.transfers.receives, [](const Transfer& t) {
      const auto poisoned = [](std::byte b) { return b == std::byte{kPoison}; };
      for (std::int64_t row = 0; row < t.rows; ++row) {
        const std::byte* const begin = row_of(t, row);
        if (!std::all_of(begin, begin + t.row_bytes, poisoned)) return false;
      }
      return true;
    });
  }
  static void post(std::deque<std::shared_ptr<Posted>>& queue, const Transfer& t, Group& group) {
    group.posted.push_back(std::make_shared<Posted>(Posted{t}));
    queue.push_back(group.posted.back());
  }

  World& world_;
  int rank_;
  std::vector<Group> groups_;
  const AddressMap* map_ = nullptr;
};

ThreadRanks::ThreadRanks(int ranks) : world_(std::make_unique<World>()) {
  world_->ranks = ranks;
}

ThreadRanks::~ThreadRanks() = default;

void ThreadRanks::run(const std::function<void(Communicator&)>& body) {
  world_->channels.clear();
  world_->broken = false;
  world_->waiting = 0;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_->ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Rank communicator(*world_, rank);
        body(communicator);
      } catch (...) {
        const std::scoped_lock lock(world_->mutex);
        if (!world_->broken) failure = std::current_exception();
        world_->broken = true;
        world_->changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace longca::test
