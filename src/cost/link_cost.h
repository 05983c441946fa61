#pragma once

#include "cost/kernel_cost.h"
#include "cost/platform.h"

namespace longca::cost {

/// Seconds of an exchange that nothing overlaps.
double transfer_seconds(const Platform& platform, double bytes, double messages);

/// The exchanges of a backward pass, in seconds: `fetch` brings keys before the rows that see them,
/// `reduce` returns their gradients after. Both 0 where nothing travels.
struct ExchangeSeconds {
  double fetch = 0;
  double reduce = 0;
};

/// The exchanges that fetch `fetched_keys` and reduce the gradients of `reduced_keys`.
ExchangeSeconds exchange_seconds(const Platform& platform, const HeadShape& shape,
                                 double fetched_keys, double fetched_messages, double reduced_keys,
                                 double reduced_messages);

/// The seconds that an exchange of `exchange` seconds among `devices` still costs where a kernel
/// overlaps it.
double covered_seconds(const Platform& platform, std::int64_t devices, double exchange);

}  // namespace longca::cost
