#pragma once

#include <functional>
#include <memory>

#include "parallel/transport/communicator.h"

namespace longca::test {

/// Ranks as threads of this process, with messages between them that are as late as they may be: a
/// message is copied when one of its two ends waits for it, and until then its landing place holds
/// NaN, from the beginning of the pass where it may land early. So an op that reads what has not
/// arrived, or overwrites what has not left, shows; one that writes where a message may land early
/// throws.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks);
  ~ThreadRanks();

  /// Calls body(communicator of the rank) on a thread per rank. The program's thread pool is for
  /// one caller at a time: bodies compute under a lock. Memory of the communicators lives until the
  /// end of this object; a second run starts without messages of the first. Rethrows the first
  /// exception of a rank, having woken those that wait for it.
  void run(const std::function<void(Communicator&)>& body);

 private:
  struct World;
  class Rank;
  std::unique_ptr<World> world_;
};

}  // namespace longca::test
