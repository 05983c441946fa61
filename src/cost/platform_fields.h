#pragma once

#include <string>

#include "cost/platform.h"

namespace longca::cost {

template <typename AnyPower, typename Visitor>
void visit_power(AnyPower& power, Visitor& visit) {
  visit.field("slowed_share", "Part by which the power limit slows long runs down.",
              power.slowed_share);
  visit.field("slowed_seconds", "A repetition this long has half of it.", power.slowed_seconds);
  visit.field("memory_power", "Power of passes over memory, as a part of that of computing.",
              power.memory_power);
}

/// Calls visit.section(name, meaning, measured) and visit.field(key, meaning, value) for all of a
/// platform but its name and description, in the order of its page. Meanings are one line each.
template <typename AnyPlatform, typename Visitor>
void visit_fields(AnyPlatform& platform, Visitor&& visit) {
  auto& device = platform.device;
  visit.section("device", "One device.", device.measured);
  visit.field("sms", "Number of streaming multiprocessors.", device.sms);
  visit.field("cache_bytes", "L2 cache.", device.cache_bytes);

  auto& memory = platform.memory;
  visit.section("memory", "Device memory.", memory.measured);
  visit.field("bytes_per_second", "Rate of passes over results, reads and writes together.",
              memory.bytes_per_second);
  visit.field("seconds_per_copy", "Time of one copy more, however short.", memory.seconds_per_copy);

  auto& links = platform.links;
  visit.section("links", "Exchanges between the devices of a node.", links.measured);
  visit.field("bytes_per_second", "Rate of a large copy, in each direction.",
              links.bytes_per_second);
  visit.field("seconds_per_exchange", "Time of an exchange, however small.",
              links.seconds_per_exchange);
  visit.field("seconds_per_message",
              "Time of each message more; K and V of the same keys, or their gradients, are one.",
              links.seconds_per_message);
  visit.field("seconds_to_begin",
              "Time before the first exchange of a pass: devices meet and exchange grants.",
              links.seconds_to_begin);

  auto& node = platform.node;
  visit.section("node", "The devices that these links join.", node.measured);
  visit.field("gpus", "Number of devices.", node.gpus);
  visit.field("covered_cost_within",
              "Part of an exchange's time that still counts where a kernel covers it.",
              node.covered_cost_within);
  visit.field("memory_slowdown_within",
              "Part of the rate of passes over memory that messages within a node take.",
              platform.node.memory_slowdown_within);
  visit.field("covered_cost_across", "The same where links between nodes take part.",
              node.covered_cost_across);

  auto& any = platform.kernel.any;
  visit.section("kernel.any", "A call of any kernel.", any.measured);
  visit.field("flops_per_second", "Forward rate on a mask that leaves whole tiles.",
              any.flops_per_second);
  visit.field("seconds_per_call", "Time of one call more: its start and its last, half empty wave.",
              any.seconds_per_call);

  auto& forward = platform.kernel.forward;
  visit.section("kernel.forward", "A forward call of slice.", forward.measured);
  visit.field("tile_flops_per_second", "Rate on whole tiles of long rows.",
              forward.tile_flops_per_second);
  visit.field("keys_per_row",
              "Keys added to each row for partial tiles and for what is done once a row.",
              forward.keys_per_row);
  visit.field("seconds_per_call", "Time of a call, beside its cells.", forward.seconds_per_call);

  auto& backward = platform.kernel.backward;
  visit.section("kernel.backward", "A backward call of slice.", backward.measured);
  visit.field("tile_flops_per_second", "Rate on whole tiles of long rows.",
              backward.tile_flops_per_second);
  visit.field("keys_per_row",
              "Keys added to each row for partial tiles and for what is done once a row.",
              backward.keys_per_row);
  visit.field("seconds_per_call", "Time of a call, beside its cells.", backward.seconds_per_call);
  visit.field("seconds_per_half_heads_call",
              "The same with half of the heads: half as many CTAs share the call's end.",
              backward.seconds_per_half_heads_call);
  visit.field("row_term_bytes_per_second",
              "Rate at which O and dO are read once for the row sums, before any key is needed.",
              backward.row_term_bytes_per_second);

  auto& tiles = platform.slice.forward;
  visit.section("slice.forward", "A CTA of slice's forward kernel, sm_90a, at 128 dimensions.",
                tiles.measured);
  visit.field("tile_start_cycles", "Start of a query tile: Q, the first keys, and the results.",
              tiles.tile_start_cycles);
  visit.field("full_tile_cycles",
              "128 keys that every row sees: two products with the softmax beside them.",
              tiles.full_tile_cycles);
  visit.field("partial_tile_cycles", "128 keys under a mask.", tiles.partial_tile_cycles);
  visit.field("sub_tile_cycles", "64 keys under a mask, with nothing beside them.",
              tiles.sub_tile_cycles);
  visit.field("pair_start_cycles",
              "Start of a query tile in a pair of CTAs, each waiting for the other at both ends.",
              tiles.pair_start_cycles);
  visit.field("pair_tile_share", "Factor on a tile's cycles in a pair of CTAs.",
              tiles.pair_tile_share);
  visit.field("half_tile_share", "Factor on a tile's cycles where one of its row groups sees it.",
              tiles.half_tile_share);
  visit.field("in_turn_tile_share", "The same where row groups take turns.",
              tiles.in_turn_tile_share);
  visit.field("min_pack_gain",
              "Packs within this factor of the best one's cycles are equal: the smallest is taken.",
              tiles.min_pack_gain);
  visit.field("min_unchecked_tiles",
              "Full tiles per query tile from which sums are looked at once per query tile.",
              tiles.min_unchecked_tiles);
  visit.field(
      "min_in_turn_tiles",
      "Key tiles per query tile from which more in flight pay, where row groups differ in them.",
      tiles.min_in_turn_tiles);

  auto& visits = platform.slice.backward;
  visit.section("slice.backward", "A CTA of slice's backward kernel, sm_90a, at 128 dimensions.",
                visits.measured);
  visit.field("key_tile_cycles", "Start of a key tile: K, V, the first rows, and the results.",
              visits.key_tile_cycles);
  visit.field("empty_tile_cycles", "A key tile that no row sees: zeros are written.",
              visits.empty_tile_cycles);
  visit.field("query_tile_cycles",
              "A visit to a query tile of 64 rows: five products of 64 × 128 × 128.",
              visits.query_tile_cycles);
  visit.field("half_visit_share", "Factor on a visit's cycles where it sees one half of the keys.",
              visits.half_visit_share);
  visit.field("masked_visit_share", "Factor on a visit's cycles where a pattern hides keys.",
              visits.masked_visit_share);
  visit.field("visits_per_half", "Halves are told where more than one visit in so many sees one.",
              visits.visits_per_half);
  visit.field("block_visits_per_half",
              "The same under block lists, where the two halves have visits in turn.",
              visits.block_visits_per_half);
  visit.field("add_keys_cycles",
              "Added where an item's results are added to those of others with its keys.",
              visits.add_keys_cycles);
  visit.field("split_tile_cycles",
              "All CTAs' work on a split key tile of a KV head: clear, add, read again.",
              visits.split_tile_cycles);
  visit.field("chunk_visits",
              "Visits whose rows L2 holds: 256 are 2K tokens of 8 heads, 16 MB of Q, dO and dQ.",
              visits.chunk_visits);
  visit.field("min_chunks", "Key tiles of more chunks of visits than this are split into them.",
              visits.min_chunks);
  visit.field("min_chunks_in_step",
              "The longest must have more than this where CTAs keep in step: else none is split.",
              visits.min_chunks_in_step);
  visit.field("kept_cache_share", "Part of L2 up to which rows in work stay there.",
              visits.kept_cache_share);
  visit.field("min_item_visits", "Fewest visits of an item of a split key tile.",
              visits.min_item_visits);
  visit.field("min_part_visits",
              "Fewest visits of a part that is cut from an item for the last wave.",
              visits.min_part_visits);
  visit.field("cut_gain_divisor",
              "A cut must gain at least 1 / this of the time; rows that leave L2 cost as much.",
              visits.cut_gain_divisor);
  visit.field("few_rows_cut_gain_divisor", "The same where few rows see many keys.",
              visits.few_rows_cut_gain_divisor);
  visit.field("few_rows_min_keys", "Rows are few where there are so many keys for each, or more.",
              visits.few_rows_min_keys);
  visit.field("chunk_gain_divisor", "Each halving of chunks must gain 1 / this of the time.",
              visits.chunk_gain_divisor);
  visit.field("section_slack_divisor",
              "Fewer KV heads at a time, whose rows L2 holds, may take 1 / this longer.",
              visits.section_slack_divisor);
  visit.field("ordered_slack_divisor",
              "In a fixed order fewer KV heads at a time may wait 1 / this longer.",
              visits.ordered_slack_divisor);
  visit.field("ordered_cache_divisor",
              "And those whose rows stay in L2, where others do not, this.",
              visits.ordered_cache_divisor);
  visit.field("max_unordered_write_tiles",
              "Query tiles up to which dQ is written in any order: about six for each SM.",
              visits.max_unordered_write_tiles);

  auto& forward_call = platform.call.forward;
  visit.section("call.forward", "A forward call of slice, by the cycles of slice.forward.",
                forward_call.measured);
  visit.field("cycles_per_second", "Of these cycles, at full clocks.",
              forward_call.cycles_per_second);
  visit.field("seconds_per_call", "Time of a call beside its tiles.",
              forward_call.seconds_per_call);
  visit.field("hidden_seconds", "Of these, what goes by beside a call that it follows at once.",
              forward_call.hidden_seconds);
  visit.field("start_cycles", "Added to each query tile.", forward_call.start_cycles);
  visit.field("both_groups_cycles",
              "Added to 128 keys under a mask of which both row groups see some.",
              forward_call.both_groups_cycles);
  visit_power(forward_call.power, visit);

  auto& backward_call = platform.call.backward;
  visit.section("call.backward", "A backward call of slice, by the cycles of slice.backward.",
                backward_call.measured);
  visit.field("cycles_per_second", "Of these cycles, at full clocks.",
              backward_call.cycles_per_second);
  visit.field("seconds_per_call", "Time of a call beside its items and rows.",
              backward_call.seconds_per_call);
  visit.field("chunk_item_cycles", "Added to each item of a key tile that is split into chunks.",
              backward_call.chunk_item_cycles);
  visit.field("partial_visit_cycles", "Added to a visit to a query tile under a mask.",
              backward_call.partial_visit_cycles);
  visit.field("row_bytes_per_second",
              "Rate of O, dO and dQ before and after the visits, 14 bytes an element.",
              backward_call.row_bytes_per_second);
  visit_power(backward_call.power, visit);

  auto& mma = platform.mma.backward;
  visit.section("mma.backward",
                "A CTA of the backward kernels of flashmask_native and fa2_sparse_native.",
                mma.measured);
  visit.field("cta_overhead_tiles", "Loading K and V and adding dK and dV, in tiles.",
              mma.cta_overhead_tiles);
  visit.field("min_parts_gain",
              "Splits of a KV head within this factor of the best one's time are equal: the fewest "
              "parts are taken.",
              mma.min_parts_gain);
}

template <typename AnyRates, typename Visitor>
void visit_pass_rates(const std::string& section, const char* meaning, AnyRates& rates,
                      Visitor& visit) {
  if (!rates) return;
  visit.section(section.c_str(), meaning, rates->measured);
  visit.field("flops_per_second", "Rate on whole tiles of long rows.", rates->flops_per_second);
  visit.field("keys_per_row",
              "Keys added to each row for partial tiles and for what is done once a row.",
              rates->keys_per_row);
  visit.field("seconds_per_call", "Time of a call, beside its cells.", rates->seconds_per_call);
}

/// The same for those optional parts that this platform has.
template <typename AnyPlatform, typename Visitor>
void visit_optional_fields(AnyPlatform& platform, Visitor&& visit) {
  if (platform.product) {
    visit.section("product", "Products of square matrices.", platform.product->measured);
    visit.field("burst_flops_per_second", "Rate of one after a pause.",
                platform.product->burst_flops_per_second);
    visit.field("sustained_flops_per_second", "Rate of many back to back.",
                platform.product->sustained_flops_per_second);
  }
  if (platform.launch) {
    visit.section("launch", "Kernels that do nothing.", platform.launch->measured);
    visit.field("seconds_per_kernel", "Time of one more behind others.",
                platform.launch->seconds_per_kernel);
  }
  for (auto& [kernel, rates] : platform.rates) {
    visit_pass_rates("rates." + kernel + ".forward", "A forward call of this kernel.",
                     rates.forward, visit);
    visit_pass_rates("rates." + kernel + ".backward", "A backward call of this kernel.",
                     rates.backward, visit);
  }
  for (auto& [pattern, times] : platform.messages) {
    const std::string section = "messages." + pattern;
    visit.section(section.c_str(), "Seconds of an exchange, by the bytes that each rank sends.",
                  times.measured);
    for (auto& [bytes, seconds] : times.seconds) {
      visit.field(std::to_string(bytes).c_str(), "", seconds);
    }
  }
}

}  // namespace longca::cost
