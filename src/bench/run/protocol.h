#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/cell/cell_runner.h"
#include "core/file_descriptor.h"

namespace longca {

/// Messages between the runner and a worker process: one JSON object per line over a socket.
///   runner → worker   {"case": {…}, "options": {"timed","limits":{…},"dump"}}
///   worker → runner   {"stage": "forward"}, any number of them, then
///                     {"record": {…}, "ends": false}
/// The worker ends when the socket closes, or after a record whose "ends" is true: an error has
/// left its device unusable.
class LineChannel {
 public:
  /// Takes over the socket.
  explicit LineChannel(int socket) : socket_(socket) {}

  int socket() const { return socket_.get(); }
  /// False if the other end is gone.
  bool send(const nlohmann::json& message);
  /// Waits for the next message; nothing if the other end is gone.
  std::optional<nlohmann::json> receive();

  /// Reads what has arrived without waiting, for a caller that polls. False if the other end is
  /// gone.
  bool read_available();
  /// The next whole message of those read. Throws nlohmann::json::parse_error.
  std::optional<nlohmann::json> next();

 private:
  /// Receives once, with recv's `flags`; false if the other end is gone.
  bool read_some(int flags);

  FileDescriptor socket_;
  std::string buffer_;
};

void to_json(nlohmann::json& json, const RunLimits& limits);
void from_json(const nlohmann::json& json, RunLimits& limits);
void to_json(nlohmann::json& json, const CellOptions& options);
void from_json(const nlohmann::json& json, CellOptions& options);

}  // namespace longca
