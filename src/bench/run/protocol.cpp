#include "bench/run/protocol.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "core/error.h"

namespace longca {
namespace {

constexpr int kMaxMessageDepth = 32;  ///< of nested arrays and objects; a record has five

/// Whether arrays and objects nest deeper than kMaxMessageDepth, checked before parsing, which
/// recurses. Brackets inside strings do not count.
bool is_too_deep(std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxMessageDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

/// Compares in a time that does not depend on how many characters match.
bool is_secret(std::string_view text, std::string_view secret) {
  if (text.size() != secret.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    differs |= static_cast<unsigned char>(text[i] ^ secret[i]);
  }
  return differs == 0;
}

}  // namespace

std::string make_secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "no random bits for a secret");
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string take_secret() {
  const char* value = std::getenv(kSecretVariable);
  std::string secret = value != nullptr ? value : "";
  ::unsetenv(kSecretVariable);
  return secret;
}

bool LineChannel::send(const nlohmann::json& message) {
  const std::string line =
      secret_ + ' ' + message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool LineChannel::read_some(int flags) {
  std::array<char, 65536> block;
  ssize_t n = 0;
  do {
    n = ::recv(socket_.get(), block.data(), block.size(), flags);
  } while (n < 0 && errno == EINTR);
  if (n > 0 && begin_ > block.size()) {  // rarely, since it moves the rest of the buffer
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  if (n > 0) buffer_.append(block.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

bool LineChannel::read_available() {
  return read_some(MSG_DONTWAIT);
}

nlohmann::json LineChannel::parse(std::string_view line) const {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || !is_secret(line.substr(0, space), secret_)) {
    throw BadMessage("what is no message");
  }
  line.remove_prefix(space + 1);
  if (is_too_deep(line))
    throw BadMessage(fmt::format("a message of more than {} levels", kMaxMessageDepth));
  nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
  if (!message.is_object()) throw BadMessage("what is no message");
  return message;
}

std::optional<nlohmann::json> LineChannel::next() {
  const std::size_t end = buffer_.find('\n', scanned_);
  const std::size_t stop = end == std::string::npos ? buffer_.size() : end;
  if (stop - begin_ > max_line_) {
    throw BadMessage(fmt::format("a message of more than {} bytes", max_line_));
  }
  scanned_ = stop;
  if (end == std::string::npos) return std::nullopt;
  const std::string_view line(buffer_.data() + begin_, end - begin_);
  nlohmann::json message = parse(line);
  begin_ = scanned_ = end + 1;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = scanned_ = 0;
  }
  return message;
}

std::optional<nlohmann::json> LineChannel::receive() {
  while (true) {
    if (auto message = next()) return message;
    if (!read_some(0)) return std::nullopt;
  }
}

Record judge_record(const nlohmann::json& message, const Case& asked, const CellOptions& options) {
  Record record;
  try {
    record = message.at("record").get<Record>();
  } catch (const nlohmann::json::exception&) {
    throw BadMessage("a record that is none");
  } catch (const InputError& error) {
    throw BadMessage(fmt::format("a record that is none: {}", error.what()));
  }
  if (nlohmann::json(record.c) != nlohmann::json(asked)) {
    throw BadMessage("the record of another case: " + record.c.key());
  }
  const auto has = [&](const char* metric) { return record.metrics.contains(metric); };
  if (record.status.ok() && !has("verified_fraction")) {
    throw BadMessage("a record of a result that was not verified");
  }
  if (record.status.ok() && options.timed && (!has("time_ms") || record.samples_ms.empty())) {
    throw BadMessage("a record without a time");
  }
  return record;
}

void to_json(nlohmann::json& json, const RunLimits& limits) {
  json = {{"time_limit_s", limits.time_limit_s}, {"sample_budget_s", limits.sample_budget_s},
          {"case_limit_s", limits.case_limit_s}, {"verify_budget_s", limits.verify_budget_s},
          {"cool_down_ms", limits.cool_down_ms}, {"memory_limit_mib", limits.memory_limit_mib}};
}

void from_json(const nlohmann::json& json, RunLimits& limits) {
  json.at("time_limit_s").get_to(limits.time_limit_s);
  json.at("sample_budget_s").get_to(limits.sample_budget_s);
  json.at("case_limit_s").get_to(limits.case_limit_s);
  json.at("verify_budget_s").get_to(limits.verify_budget_s);
  json.at("cool_down_ms").get_to(limits.cool_down_ms);
  json.at("memory_limit_mib").get_to(limits.memory_limit_mib);
}

void to_json(nlohmann::json& json, const CellOptions& options) {
  json = {{"timed", options.timed}, {"limits", options.limits}, {"own_files", options.own_files}};
  if (options.dump) json["dump"] = options.dump->string();
  if (options.trace) json["trace"] = true;
}

void from_json(const nlohmann::json& json, CellOptions& options) {
  json.at("timed").get_to(options.timed);
  json.at("limits").get_to(options.limits);
  json.at("own_files").get_to(options.own_files);
  if (json.contains("dump")) options.dump = json.at("dump").get<std::string>();
  options.trace = json.value("trace", false);
}

}  // namespace longca
