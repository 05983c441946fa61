#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace longca::testing {

/// What threads that are ranks have sent each other and not received yet, by sender and receiver.
class Mail {
 public:
  void send(int from, int to, const void* data, std::int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto* begin = static_cast<const char*>(data);
    queues_[{from, to}].emplace_back(begin, begin + bytes);
    ++sent_;
    changed_.notify_all();
  }
  /// Waits for the message. False if it has another size.
  bool receive(int from, int to, void* data, std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    changed_.wait(lock, [&] { return !queue.empty(); });
    const std::vector<char> message = std::move(queue.front());
    queue.pop_front();
    if (std::ssize(message) != bytes) return false;
    std::memcpy(data, message.data(), message.size());
    return true;
  }
  int sent() const { return sent_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> queues_;
  std::atomic<int> sent_ = 0;
};

}  // namespace longca::testing
