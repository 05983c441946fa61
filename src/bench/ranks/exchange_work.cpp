#include "bench/ranks/exchange_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr std::array<std::pair<ExchangeShape, std::string_view>, 2> kShapes = {
    {{ExchangeShape::ring, "ring"}, {ExchangeShape::all_to_all, "all_to_all"}}};

constexpr unsigned char kPoison = 0xa5;
constexpr std::int64_t kAligned = 16;  ///< where a part may begin, as the rows of tensors do

std::string_view name_of(ExchangeShape shape) {
  return std::ranges::find(kShapes, shape, &std::pair<ExchangeShape, std::string_view>::first)
      ->second;
}

/// Where part `i` of `count` begins.
std::int64_t cut(std::int64_t bytes, std::int64_t i, std::int64_t count) {
  return i == count ? bytes : bytes * i / count / kAligned * kAligned;
}

/// The bytes that all ranks know. The words' order is that of the generator on every machine.
std::vector<std::uint64_t> random_words(std::int64_t bytes) {
  std::mt19937_64 random(20261125);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(ceil_div(bytes, 8)));
  std::ranges::generate(words, std::ref(random));
  return words;
}

}  // namespace

std::string pattern_name(const TimedExchange& exchange) {
  return fmt::format("{}.{}", exchange.transport, name_of(exchange.shape));
}

std::string to_text(const TimedExchange& exchange) {
  std::string text = fmt::format("{} of {} bytes", name_of(exchange.shape), exchange.bytes);
  if (exchange.exchanges > 1) text = fmt::format("{} of {}", exchange.exchanges, text);
  if (exchange.messages > 1) text += fmt::format(" in {} messages", exchange.messages);
  return text + " over " + exchange.transport;
}

void to_json(nlohmann::json& json, const TimedExchange& exchange) {
  json = {{"transport", exchange.transport},
          {"shape", name_of(exchange.shape)},
          {"bytes", exchange.bytes},
          {"messages", exchange.messages},
          {"exchanges", exchange.exchanges}};
}

void from_json(const nlohmann::json& json, TimedExchange& exchange) {
  const auto shape = json.at("shape").get<std::string>();
  const auto found =
      std::ranges::find(kShapes, shape, &std::pair<ExchangeShape, std::string_view>::second);
  if (found == kShapes.end()) throw_input_error("the exchange '{}' is unknown", shape);
  exchange.shape = found->first;
  json.at("transport").get_to(exchange.transport);
  json.at("bytes").get_to(exchange.bytes);
  json.at("messages").get_to(exchange.messages);
  json.at("exchanges").get_to(exchange.exchanges);
  if (exchange.bytes < 1 || exchange.messages < 1 || exchange.exchanges < 1) {
    throw_input_error("{}: each number is at least 1", to_text(exchange));
  }
}

ExchangeWork::ExchangeWork(Communicator& communicator, Device& device, std::int64_t max_bytes)
    : communicator_(communicator),
      device_(device),
      max_bytes_(max_bytes),
      table_(device.memory(), max_bytes + communicator.size() * kShift),
      sent_(static_cast<std::byte*>(communicator.allocate(max_bytes))),
      received_(static_cast<std::byte*>(communicator.allocate(max_bytes))) {
  const std::vector<std::uint64_t> words = random_words(table_.bytes());
  device_.copy(table_.data(), words.data(), table_.bytes());
  device_.copy(sent_, table_.as<std::byte>() + communicator.rank() * kShift, max_bytes);
  device_.synchronize();
}

void ExchangeWork::prepare(const TimedExchange& exchange) {
  LONGCA_CHECK(exchange.bytes <= max_bytes_, "{}, and there is memory for {}", to_text(exchange),
               max_bytes_);
  const int ranks = communicator_.size();
  const int rank = communicator_.rank();
  const int peers = exchange.shape == ExchangeShape::ring ? std::min(1, ranks - 1) : ranks - 1;
  parts_.clear();
  for (int distance = 1; distance <= peers; ++distance) {
    const Part part{(rank + distance) % ranks, (rank - distance + ranks) % ranks,
                    cut(exchange.bytes, distance - 1, peers), cut(exchange.bytes, distance, peers)};
    if (part.begin < part.end) parts_.push_back(part);
  }
  bytes_ = exchange.bytes;
  exchanges_ = exchange.exchanges;
  group_ = communicator_.prepare(group_of(exchange));
}

/// The messages to one peer are in descending order: adjacent ones would leave as one copy
/// (join_pushes).
TransferGroup ExchangeWork::group_of(const TimedExchange& exchange) const {
  TransferGroup group;
  group.pattern =
      exchange.shape == ExchangeShape::ring ? Pattern::send_receive : Pattern::all_to_all;
  for (const Part& part : parts_) {
    for (int message = exchange.messages; message-- > 0;) {
      const std::int64_t begin =
          part.begin + cut(part.end - part.begin, message, exchange.messages);
      const std::int64_t bytes =
          part.begin + cut(part.end - part.begin, message + 1, exchange.messages) - begin;
      if (bytes == 0) continue;
      group.sends.push_back({part.to, sent_ + begin, 1, bytes, bytes});
      group.receives.push_back({part.from, received_ + begin, 1, bytes, bytes});
    }
  }
  return group;
}

void ExchangeWork::poison() {
  device_.fill(received_, kPoison, bytes_);
}

void ExchangeWork::call() {
  for (int i = 0; i < exchanges_; ++i) {
    communicator_.start(group_, device_.stream());
    communicator_.finish(group_);
  }
}

std::string ExchangeWork::fault() const {
  for (const Part& part : parts_) {
    const auto* expected = table_.as<const std::byte>() + part.from * kShift + part.begin;
    const std::int64_t bytes = part.end - part.begin;
    const bool same =
        device_.hash(0, received_ + part.begin, bytes) == device_.hash(0, expected, bytes);
    if (!same) return first_wrong(part);
  }
  return "";
}

std::string ExchangeWork::first_wrong(const Part& part) const {
  const auto bytes = static_cast<std::size_t>(part.end - part.begin);
  std::vector<unsigned char> expected(bytes);
  std::vector<unsigned char> arrived(bytes);
  device_.copy(expected.data(), table_.as<const std::byte>() + part.from * kShift + part.begin,
               std::ssize(expected));
  device_.copy(arrived.data(), received_ + part.begin, std::ssize(arrived));
  const auto [want, have] = std::ranges::mismatch(expected, arrived);
  if (want == expected.end()) {
    return fmt::format("the {} bytes from rank {} were not all there at once", bytes, part.from);
  }
  return fmt::format("byte {} of {} from rank {} is {:#04x}, not {:#04x}", want - expected.begin(),
                     bytes, part.from, *have, *want);
}

}  // namespace longca
