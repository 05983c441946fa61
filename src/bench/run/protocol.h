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

/// The other end of a channel has sent what it must not. what() completes "the process sent …".
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The environment variable that passes a channel's secret to a started process: a command line
/// would show it.
inline constexpr const char* kSecretVariable = "LONGCA_SECRET";
/// 128 random bits in hexadecimal digits. Throws std::system_error if the system has none.
std::string make_secret();
/// Returns the secret that this process was started with, "" if none, and removes it from the
/// environment, so that no process that a kernel starts inherits it.
std::string take_secret();

/// Messages between the runner and a worker process, each a line "SECRET JSON" over a socket. A
/// line without the secret was not written by longca, but by a kernel, by a process that it left
/// behind or by a stranger.
///   runner → worker   {"case": {…}, "options": {"timed","limits":{…},"own_files":{…},"dump"}}
///   worker → runner   {"stage": "forward"}, any number of them, then
///                     {"record": {…}, "ends": false}, or where the dump cannot be written
///                     {"dump_failed": "cannot write …", "path_is_wrong": false}
/// The worker ends when the socket closes, or after a record whose "ends" is true: its device is
/// unusable, or a kernel has left something behind.
class LineChannel {
 public:
  /// Max bytes of a line by default: a record has up to a million samples.
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
  /// The next complete message, an object, among what was read; nothing if there is none. Throws
  /// BadMessage.
  std::optional<nlohmann::json> next();
  /// Changes the max bytes of a line, once the other end is known.
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
  std::size_t scanned_ = 0;  ///< [begin_, scanned_) holds no line end
};

/// Returns the record of a message. Throws BadMessage if it is incomplete, of another case than
/// `asked`, or ok without the verification or the time that was asked for.
Record judge_record(const nlohmann::json& message, const Case& asked, const CellOptions& options);

void to_json(nlohmann::json& json, const RunLimits& limits);
void from_json(const nlohmann::json& json, RunLimits& limits);
void to_json(nlohmann::json& json, const CellOptions& options);
void from_json(const nlohmann::json& json, CellOptions& options);

}  // namespace longca
