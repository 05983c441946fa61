#pragma once

#include "cost/kernel_cost.h"
#include "cost/platform.h"

namespace longca::cost {

/// An exchange that nothing covers.
double transfer_seconds(const Platform& platform, double bytes, double messages);

/// The exchanges of a backward pass: keys before the rows that see them, their gradients after.
/// Both 0 where nothing travels.
struct ExchangeSeconds {
  double fetch = 0;
  double reduce = 0;
};

/// So many keys fetched, and gradients of so many reduced.
ExchangeSeconds exchange_seconds(const Platform& platform, const HeadShape& shape,
                                 double fetched_keys, double fetched_messages, double reduced_keys,
                                 double reduced_messages);

/// What an exchange among `devices` costs although a kernel covers it.
double covered_seconds(const Platform& platform, std::int64_t devices, double exchange);

}  // namespace longca::cost
