#include "cost/link_cost.h"

namespace longca::cost {

double transfer_seconds(const Platform& platform, double bytes, double messages) {
  const LinkRates& links = platform.links;
  return bytes / links.bytes_per_second + links.seconds_per_exchange +
         messages * links.seconds_per_message;
}

ExchangeSeconds exchange_seconds(const Platform& platform, const HeadShape& shape,
                                 double fetched_keys, double fetched_messages, double reduced_keys,
                                 double reduced_messages) {
  return {platform.links.seconds_to_begin +
              transfer_seconds(platform, fetched_keys * shape.key_bytes(), fetched_messages),
          transfer_seconds(platform, reduced_keys * shape.key_sum_bytes(), reduced_messages)};
}

double covered_seconds(const Platform& platform, std::int64_t devices, double exchange) {
  const NodeSize& node = platform.node;
  return (devices > node.gpus ? node.covered_cost_across : node.covered_cost_within) * exchange;
}

}  // namespace longca::cost
