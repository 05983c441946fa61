#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longca::cost {

/// In all of these structs `measured` says where and how the figures were measured;
/// platform_fields.h says what each figure means.
struct DeviceSize {
  std::string measured;
  std::int64_t sms = 0;
  std::int64_t cache_bytes = 0;

  bool operator==(const DeviceSize&) const = default;
};

struct MemoryRate {
  std::string measured;
  /// Rate of passes over results in device memory, reads and writes together.
  double bytes_per_second = 0;
  double seconds_per_copy = 0;  ///< of each further copy, however short

  bool operator==(const MemoryRate&) const = default;
};

/// Exchanges between the devices of a node. Each direction has the full rate.
struct LinkRates {
  std::string measured;
  double bytes_per_second = 0;
  double seconds_per_exchange = 0;  ///< however small
  double seconds_per_message = 0;   ///< of several in one exchange, sent one after the other
  double seconds_to_begin = 0;      ///< until the first exchange of a pass starts

  bool operator==(const LinkRates&) const = default;
};

/// The devices that the fast links join, and how exchanges slow down concurrent kernels.
struct NodeSize {
  std::string measured;
  std::int64_t gpus = 0;
  /// What an exchange costs even where a kernel overlaps it, as a fraction of its own time: within
  /// a node, and where links between nodes take part.
  double covered_cost_within = 0;
  double covered_cost_across = 0;
  double memory_slowdown_within = 0;

  bool operator==(const NodeSize&) const = default;
};

/// A call of any kernel on a mask that leaves it whole tiles.
struct CallRates {
  std::string measured;
  double flops_per_second = 0;
  double seconds_per_call = 0;

  bool operator==(const CallRates&) const = default;
};

/// A forward call of the kernel `slice`.
struct ForwardRates {
  std::string measured;
  double tile_flops_per_second = 0;
  double keys_per_row = 0;
  double seconds_per_call = 0;

  bool operator==(const ForwardRates&) const = default;
};

/// A backward call of the kernel `slice`.
struct BackwardRates {
  std::string measured;
  double tile_flops_per_second = 0;
  double keys_per_row = 0;
  double seconds_per_call = 0;
  double seconds_per_half_heads_call = 0;
  double row_term_bytes_per_second = 0;

  bool operator==(const BackwardRates&) const = default;
};

struct KernelRates {
  CallRates any;
  ForwardRates forward;
  BackwardRates backward;

  bool operator==(const KernelRates&) const = default;
};

/// What a CTA of slice's forward kernel spends at 128 dimensions: full and partial tiles of
/// 128 × 128, and 64-key sub-tiles.
struct SliceForwardCycles {
  std::string measured;
  std::int64_t tile_start_cycles = 0;
  std::int64_t full_tile_cycles = 0;
  std::int64_t partial_tile_cycles = 0;
  std::int64_t sub_tile_cycles = 0;
  std::int64_t pair_start_cycles = 0;
  double pair_tile_share = 0;
  double half_tile_share = 0;
  double in_turn_tile_share = 0;
  double min_pack_gain = 0;
  double min_unchecked_tiles = 0;
  double min_in_turn_tiles = 0;

  bool operator==(const SliceForwardCycles&) const = default;
};

/// What a CTA of slice's backward kernel spends at 128 dimensions: it keeps a key tile and visits
/// query tiles of 64 rows.
struct SliceBackwardCycles {
  std::string measured;
  std::int64_t key_tile_cycles = 0;
  std::int64_t empty_tile_cycles = 0;
  std::int64_t query_tile_cycles = 0;
  double half_visit_share = 0;
  double masked_visit_share = 0;
  std::int64_t visits_per_half = 0;
  std::int64_t block_visits_per_half = 0;
  std::int64_t add_keys_cycles = 0;
  std::int64_t split_tile_cycles = 0;
  std::int64_t chunk_visits = 0;
  double min_chunks = 0;
  double min_chunks_in_step = 0;
  double kept_cache_share = 0;
  std::int64_t min_item_visits = 0;
  std::int64_t min_part_visits = 0;
  std::int64_t cut_gain_divisor = 0;
  std::int64_t few_rows_cut_gain_divisor = 0;
  double few_rows_min_keys = 0;
  std::int64_t chunk_gain_divisor = 0;
  std::int64_t section_slack_divisor = 0;
  std::int64_t ordered_slack_divisor = 0;
  std::int64_t ordered_cache_divisor = 0;
  std::int64_t max_unordered_write_tiles = 0;

  bool operator==(const SliceBackwardCycles&) const = default;
};

struct SliceCycles {
  SliceForwardCycles forward;
  SliceBackwardCycles backward;

  bool operator==(const SliceCycles&) const = default;
};

/// Slowdown of runs long enough for the device to reach its power limit: T seconds at full clocks
/// become T · (1 + slowed_share · T² / (T² + slowed_seconds²)).
struct PowerLimit {
  double slowed_share = 0;
  double slowed_seconds = 0;
  double memory_power = 0;

  /// The part of the slowdown that calls meet which together run for so many seconds at full
  /// clocks; all of it in a run without end (∞).
  double reached(double seconds) const {
    const double share = slowed_seconds / seconds;
    return 1 / (1 + share * share);
  }
  /// The factor on the time of calls in such a run.
  double slowdown(double run_seconds) const { return 1 + slowed_share * reached(run_seconds); }
  /// The same in a run without end, of `busy_seconds` in which SMs compute and `memory_seconds` of
  /// passes over memory in each `seconds`: as power goes with activity × clock³ (voltage and clock
  /// rise together).
  double slowdown_at(double busy_seconds, double memory_seconds, double seconds) const {
    const double activity = std::min(1.0, (busy_seconds + memory_power * memory_seconds) / seconds);
    return std::max(1.0, (1 + slowed_share) * std::cbrt(activity));
  }
  bool operator==(const PowerLimit&) const = default;
};

/// The time of a forward call of slice, given the cycles of its CTAs.
struct ForwardCall {
  std::string measured;
  double cycles_per_second = 0;
  double seconds_per_call = 0;
  double hidden_seconds = 0;
  std::int64_t start_cycles = 0;
  double both_groups_cycles = 0;
  PowerLimit power;

  bool operator==(const ForwardCall&) const = default;
};

/// The same of a backward call.
struct BackwardCall {
  std::string measured;
  double cycles_per_second = 0;
  double seconds_per_call = 0;
  double chunk_item_cycles = 0;
  double partial_visit_cycles = 0;
  double row_bytes_per_second = 0;
  PowerLimit power;

  bool operator==(const BackwardCall&) const = default;
};

struct SliceCall {
  ForwardCall forward;
  BackwardCall backward;

  bool operator==(const SliceCall&) const = default;
};

/// What a CTA of the backward kernels of flashmask_native and fa2_sparse_native spends.
struct MmaBackwardTiles {
  std::string measured;
  std::int64_t cta_overhead_tiles = 0;
  double min_parts_gain = 0;

  bool operator==(const MmaBackwardTiles&) const = default;
};

struct MmaTiles {
  MmaBackwardTiles backward;

  bool operator==(const MmaTiles&) const = default;
};

/// Products of two square matrices in device memory: bfloat16 on a GPU, float32 on a CPU.
struct ProductRates {
  std::string measured;
  double burst_flops_per_second = 0;
  double sustained_flops_per_second = 0;  ///< back to back, at the clocks reached then

  bool operator==(const ProductRates&) const = default;
};

/// Empty kernels, queued one after the other.
struct LaunchRates {
  std::string measured;
  double seconds_per_kernel = 0;  ///< of each further kernel

  bool operator==(const LaunchRates&) const = default;
};

/// A pass of one kernel. Its cells are the allowed ones plus keys_per_row for each row.
struct KernelPassRates {
  std::string measured;
  double flops_per_second = 0;
  double keys_per_row = 0;
  double seconds_per_call = 0;

  bool operator==(const KernelPassRates&) const = default;
};

struct OneKernelRates {
  std::optional<KernelPassRates> forward;
  std::optional<KernelPassRates> backward;

  bool operator==(const OneKernelRates&) const = default;
};

/// Seconds of an exchange on its slowest rank, by the bytes that each rank sends.
struct MessageTimes {
  std::string measured;
  std::map<std::int64_t, double> seconds;

  bool operator==(const MessageTimes&) const = default;
};

/// The rates of a kind of machine, by which planners compare plans. Data from a page of
/// configs/platforms/, where every figure has its unit and says how it was measured. All numbers
/// are finite and above 0. A page may lack the last five members; `longca calibrate` writes them.
struct Platform {
  std::string name;
  std::string description;
  std::string kind = "cuda";  ///< of its devices: "cuda" or "cpu"
  std::string card;           ///< their whole name in records, "" if the page names none
  DeviceSize device;
  MemoryRate memory;
  LinkRates links;
  NodeSize node;
  KernelRates kernel;
  SliceCycles slice;
  SliceCall call;
  MmaTiles mma;
  std::optional<ProductRates> product;
  std::optional<LaunchRates> launch;
  std::map<std::string, OneKernelRates> rates;   ///< by kernel
  std::map<std::string, MessageTimes> messages;  ///< by transport and pattern: "mpi.ring"
  /// By the dotted key of a figure that `longca calibrate` measured: the largest deviation of a
  /// round (in processes of its own) from it, as a fraction of the figure.
  std::map<std::string, double> spread;

  bool operator==(const Platform&) const = default;
};

/// The platform of a page. `path` names it in errors. Throws InputError with file, line and column
/// for a syntax error, an unknown key (nearest suggested), a missing one, and a value of another
/// type or beyond its limits.
Platform parse_platform(std::string_view toml, std::string_view path);

/// The page of a platform: parse_platform of it gives the same platform.
std::string to_toml(const Platform& platform);

/// A figure of a platform by its dotted key: "memory.bytes_per_second".
struct Figure {
  std::string key;
  double value = 0;
};
/// All figures of a platform, in the order of its page.
std::vector<Figure> figures_of(const Platform& platform);

/// The platform `name` of configs/platforms/, whose pages are part of the program, or that of the
/// file `name` if it ends in ".toml". Throws InputError that suggests the nearest name.
Platform load_platform(const std::string& name);

/// Throws InputError that suggests the nearest of `names`, and has all.
[[noreturn]] void throw_unknown_platform(const std::string& name,
                                         std::span<const std::string> names);
/// The names that load_platform finds, in order.
std::vector<std::string> platform_names();

/// "h200": what planners use where no other is given.
const Platform& default_platform();

/// The first platform, in order of names, whose page names exactly this card ("NVIDIA H100 80GB
/// HBM3"; an "NVIDIA H100 PCIe" has other rates); default_platform() if none does.
const Platform& platform_of_card(std::string_view card);

}  // namespace longca::cost
