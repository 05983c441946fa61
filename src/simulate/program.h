#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca::simulate {

/// An op of a rank's pass, as far as time is concerned.
struct TimedOp {
  Lane lane = Lane::compute;
  int step = 0;
  double seconds = 0;        ///< of its own; 0 for exchanges
  double cycle_seconds = 0;  ///< of these: SMs' cycles, which take longer at a lower clock
  std::vector<int> after;    ///< earlier ops of the rank that must have ended
  int exchange = -1;  ///< its number in the rank or, in a Program, in the program; −1: none
};

/// Bytes for a peer, or from one.
struct TimedMessage {
  int peer = 0;
  std::int64_t bytes = 0;
  TensorRole role = TensorRole::k;  ///< of the first of several that travel together
  /// Whether it leaves with the message before it as one copy: V behind the K of the same tokens.
  bool joined = false;
};

/// One rank's half of an exchange.
struct TimedExchange {
  int op = 0;
  bool lands_early =
      false;           ///< nothing uses its receive buffers before: granted as the pass begins
  bool alone = false;  ///< no attention beside it: one kernel writes all messages at once
  std::vector<TimedMessage> sends, receives;
};

/// A pass of one rank. `early_seconds` of the ops' own work (rows of a backward pass) are done
/// before op `early_before`, without waiting for what this op waits for.
struct RankWork {
  std::vector<TimedOp> ops;
  std::vector<TimedExchange> exchanges;
  double busy_seconds = 0;  ///< of all cycle_seconds, the mean over the SMs in which they compute
  int early_before = std::numeric_limits<int>::max();
  double early_seconds = 0;
};

/// A message with both its ends, as numbers of exchanges of the program.
struct LinkedMessage {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  int copies = 1;  ///< one after the other
  TensorRole role = TensorRole::k;
};

/// One rank's half of an exchange, linked to its peers' halves.
struct LinkedExchange {
  int rank = 0;
  int op = 0;
  bool lands_early = false;
  bool alone = false;
  std::vector<int> sends;      ///< messages, in the order of the plan
  int receives = 0;            ///< number of messages
  std::vector<int> receivers;  ///< exchanges at the other ends of `sends`, each once
  std::vector<int> senders;    ///< exchanges that send to this one, each once
};

/// A pass of all ranks: pure data, independent of any network.
struct Program {
  std::vector<RankWork> ranks;  ///< their exchanges moved to `exchanges`
  std::vector<LinkedExchange> exchanges;
  std::vector<LinkedMessage> messages;
};

/// Finds both ends of each message, and makes one of those that travel between the same two
/// exchanges. Throws InternalError naming the ranks if the ends do not fit.
Program link(std::vector<RankWork> ranks);

}  // namespace longca::simulate
