#include "bench/run/protocol.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace longca {

bool LineChannel::send(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
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
  if (n > 0) buffer_.append(block.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

bool LineChannel::read_available() {
  return read_some(MSG_DONTWAIT);
}

std::optional<nlohmann::json> LineChannel::next() {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return nlohmann::json::parse(line);
}

std::optional<nlohmann::json> LineChannel::receive() {
  while (true) {
    if (auto message = next()) return message;
    if (!read_some(0)) return std::nullopt;
  }
}

void to_json(nlohmann::json& json, const RunLimits& limits) {
  json = {{"time_limit_s", limits.time_limit_s},
          {"case_limit_s", limits.case_limit_s},
          {"verify_budget_s", limits.verify_budget_s},
          {"cool_down_ms", limits.cool_down_ms},
          {"memory_limit_mib", limits.memory_limit_mib}};
}

void from_json(const nlohmann::json& json, RunLimits& limits) {
  json.at("time_limit_s").get_to(limits.time_limit_s);
  json.at("case_limit_s").get_to(limits.case_limit_s);
  json.at("verify_budget_s").get_to(limits.verify_budget_s);
  json.at("cool_down_ms").get_to(limits.cool_down_ms);
  json.at("memory_limit_mib").get_to(limits.memory_limit_mib);
}

void to_json(nlohmann::json& json, const CellOptions& options) {
  json = {{"timed", options.timed}, {"limits", options.limits}};
  if (options.dump) json["dump"] = options.dump->string();
  if (options.trace) json["trace"] = options.trace->string();
}

void from_json(const nlohmann::json& json, CellOptions& options) {
  json.at("timed").get_to(options.timed);
  json.at("limits").get_to(options.limits);
  if (json.contains("dump")) options.dump = json.at("dump").get<std::string>();
  if (json.contains("trace")) options.trace = json.at("trace").get<std::string>();
}

}  // namespace longca
