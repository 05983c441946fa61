#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bench/cell/cell_runner.h"
#include "bench/record/record.h"
#include "core/file_descriptor.h"

namespace longca {

/// What the other end of a channel must not send. what() completes "the process sent …".
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The variable by which a process that this one starts learns the secret of their channel: no
/// command line shows it.
inline constexpr const char* kSecretVariable = "LONGCA_SECRET";
/// 128 random bits in hexadecimal digits. Throws std::system_error if the system has none.
std::string make_secret();
/// The secret that this process was started with, "" if none; removes it from the environment, so
/// that no process that a kernel starts inherits it.
std::string take_secret();

/// Messages between the runner and a worker process, each a line "SECRET JSON" over a socket. A
/// line without the secret is not the other end's own, but written by a kernel, by a process that
/// it left behind or by a stranger.
///   runner → worker   {"case": {…}, "options": {"timed","limits":{…},"own_files":{…},"dump"}}
///   worker → runner   {"stage": "forward"}, any number of them, then
///                     {"record": {…}, "ends": false}
/// The worker ends when the socket closes, or after a record whose "ends" is true: an error has
/// left its device unusable.
class LineChannel {
 public:
  /// Bytes of a line, unless told otherwise: a record has up to a million samples.
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;

  /// Takes over the socket.
  LineChannel(int socket, std::string secret, std::size_t max_line = kMaxLine)
      : socket_(socket), secret_(std::move(secret)), max_line_(max_line) {}

  int socket() const { return socket_.get(); }
  /// False if the other end is gone.
  bool send(const nlohmann::json& message);
  /// Waits for the next message; nothing if the other end is gone. Throws BadMessage.
  std::optional<nlohmann::json> receive();

  /// Reads what has arrived without waiting, for a caller that polls. False if the other end is
  /// gone.
  bool read_available();
  /// The next whole message of those read: an object. Throws BadMessage.
  std::optional<nlohmann::json> next();
  /// Changes the limit of a line, as once the other end is known.
  void set_max_line(std::size_t bytes) { max_line_ = bytes; }

 private:
  /// Receives once, with recv's `flags`; false if the other end is gone.
  bool read_some(int flags);
  nlohmann::json parse(std::string_view line) const;

  FileDescriptor socket_;
  std::string secret_;
  std::size_t max_line_;
  std::string buffer_;
  std::size_t begin_ = 0;    ///< of the first line in the buffer that `next` has not returned
  std::size_t scanned_ = 0;  ///< there is no end of a line from `begin_` to here
};

/// The record of a message, which must be that of the case asked for. Throws BadMessage for one of
/// another case, an incomplete one, or one of outcome ok without what was asked for.
Record judge_record(const nlohmann::json& message, const Case& asked, const CellOptions& options);

void to_json(nlohmann::json& json, const RunLimits& limits);
void from_json(const nlohmann::json& json, RunLimits& limits);
void to_json(nlohmann::json& json, const CellOptions& options);
void from_json(const nlohmann::json& json, CellOptions& options);

}  // namespace longca
