#include "calibrate/link_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/python_random.h"
#include "simulate/relative_fit.h"

namespace longca::calibrate {
namespace {

constexpr std::int64_t kMinBytes = std::int64_t{1} << 10;
constexpr std::int64_t kMaxBytesOnGpu = std::int64_t{1} << 30;
constexpr std::int64_t kMaxBytesOnCpu = std::int64_t{1} << 26;
constexpr std::int64_t kShareOfMemory = 16;
constexpr int kInARow = 8;    ///< exchanges
constexpr int kMessages = 8;  ///< of one exchange

}  // namespace

std::vector<TimedExchange> standard_exchanges(const std::string& transport, DeviceKind kind,
                                              std::int64_t free_bytes) {
  const std::int64_t limit = std::clamp(free_bytes / kShareOfMemory, kMinBytes,
                                        kind == DeviceKind::cuda ? kMaxBytesOnGpu : kMaxBytesOnCpu);
  std::vector<TimedExchange> exchanges;
  for (const ExchangeShape shape : {ExchangeShape::ring, ExchangeShape::all_to_all}) {
    for (std::int64_t bytes = kMinBytes; bytes <= limit; bytes *= 2) {
      exchanges.push_back({transport, shape, bytes});
    }
  }
  for (const std::int64_t kib : {1, 32, 1024}) {
    const std::int64_t bytes = kib << 10;
    if (bytes * kMessages > limit) continue;
    exchanges.push_back({transport, ExchangeShape::ring, bytes, 1, kInARow});
    exchanges.push_back({transport, ExchangeShape::ring, bytes * kMessages, kMessages, 1});
  }
  return exchanges;
}

std::vector<TimedExchange> order_of_round(std::vector<TimedExchange> exchanges, int round) {
  PythonRandom random(static_cast<std::uint64_t>(round));
  std::vector<std::int64_t> order(exchanges.size());
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  std::vector<TimedExchange> shuffled;
  for (const std::int64_t i : order) shuffled.push_back(exchanges[static_cast<std::size_t>(i)]);
  return shuffled;
}

void refuse_no_times(std::span<const ExchangeTime> times) {
  for (const ExchangeTime& time : times) {
    if (std::isfinite(time.ms) && time.ms > 0) continue;
    throw_input_error("{} took {} ms, which is no time", to_text(time.exchange), time.ms);
  }
}

LinkFigures fit_links(std::span<const ExchangeTime> times, int ranks) {
  refuse_no_times(times);
  std::vector<std::array<double, 4>> measured;
  for (const ExchangeTime& time : times) {
    const double seconds = time.ms / 1e3;
    const int peers = time.exchange.shape == ExchangeShape::ring ? 1 : ranks - 1;
    const double exchanges = time.exchange.exchanges;
    measured.push_back({exchanges * static_cast<double>(time.exchange.bytes) / seconds,
                        exchanges / seconds,
                        exchanges * (peers * time.exchange.messages - 1) / seconds, 1 / seconds});
  }
  const std::array<double, 4> best = simulate::fit_relative(std::move(measured));
  if (best[0] <= 0) {
    throw_input_error("no rate of links fits the {} times of exchanges", times.size());
  }
  return {1 / best[0], best[1], best[2], best[3]};
}

}  // namespace longca::calibrate
