#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/memory.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Who sends to whom in an exchange that is measured without a plan.
enum class ExchangeShape : std::uint8_t {
  ring,        ///< each rank to the next one
  all_to_all,  ///< each rank to every other one, the next one first
};

/// What is timed of a transport: `exchanges` of them one after the other.
struct TimedExchange {
  std::string transport;  ///< "mpi", "nccl", "peer"
  ExchangeShape shape = ExchangeShape::ring;
  std::int64_t bytes = 0;  ///< that each rank sends in an exchange, to all of its peers together
  int messages = 1;        ///< to each peer, of equal size but for rounding
  int exchanges = 1;

  bool operator==(const TimedExchange&) const = default;
};

/// "peer.ring": as a platform's page names the times of these exchanges.
std::string pattern_name(const TimedExchange& exchange);
/// "ring of 1024 bytes over peer", "8 of ring of 1024 bytes in 4 messages over mpi".
std::string to_text(const TimedExchange& exchange);

void to_json(nlohmann::json& json, const TimedExchange& exchange);
/// Throws nlohmann::json::exception or InputError for what is no exchange.
void from_json(const nlohmann::json& json, TimedExchange& exchange);

/// The work of such exchanges on one rank, with its memory, through the communicator that plans
/// use: groups that no kernel runs beside are prepared as those that one does, so that `peer` sends
/// by copy engines.
///
/// A byte depends on its sender and its offset there: rank r sends what stands r · kShift bytes
/// behind the begin of a table of random bytes that all ranks hold.
class ExchangeWork {
 public:
  /// Allocates for exchanges of up to `max_bytes`, which are at least 1. Collective.
  ExchangeWork(Communicator& communicator, Device& device, std::int64_t max_bytes);

  /// The exchange that `call` makes from now on. Collective.
  void prepare(const TimedExchange& exchange);
  /// Overwrites what arrives, so that nothing right is left of an earlier call.
  void poison();
  /// On a GPU queued on the device's stream.
  void call();
  /// What is wrong with the bytes that the last call brought, the first of them:
  /// "byte 17 of 1024 from rank 1 is 0x3f, not 0x40"; "" if nothing is. The device is idle.
  std::string fault() const;

  /// Bytes; a multiple of 16, since hashes read aligned words.
  static constexpr std::int64_t kShift = 4112;

 private:
  struct Part {
    int to = 0;
    int from = 0;
    std::int64_t begin = 0;  ///< the same in what is sent and in what arrives
    std::int64_t end = 0;
  };
  TransferGroup group_of(const TimedExchange& exchange) const;
  std::string first_wrong(const Part& part) const;

  Communicator& communicator_;
  Device& device_;
  std::int64_t max_bytes_;
  Buffer table_;
  std::byte* sent_ = nullptr;      ///< the communicator's
  std::byte* received_ = nullptr;  ///< likewise
  std::vector<Part> parts_;        ///< of the prepared exchange
  std::int64_t bytes_ = 0;
  int exchanges_ = 1;
  int group_ = -1;
};

}  // namespace longca
