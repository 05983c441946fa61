#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/platform.h"

namespace longca::simulate {

/// Links between nodes; cluster_fields.h says what each figure means.
struct Fabric {
  std::string measured;
  std::int64_t nodes = 0;
  std::int64_t nics = 0;
  double nic_bytes_per_second = 0;
  double seconds_per_exchange = 0;
  double seconds_per_message = 0;
  double oversubscription = 0;
  double kernel_slowdown = 0;
};

/// How far times simulated on a cluster are from measured ones.
struct SimulationError {
  std::string measured = "assumed: the page does not say";
  double p90 = 0.25;  ///< 90 % of cells are off by less, as a share
};

/// Nodes of GPUs, and what joins them. Data from a page of configs/clusters/: a platform of
/// configs/platforms/ by name, the figures in which this machine differs from it under the same
/// keys, and a fabric if there is more than one node.
struct Cluster {
  std::string name;
  std::string description;
  std::string card;  ///< part of the name of its GPUs in records; the platform's name unless said
  cost::Platform platform;
  SimulationError error;
  SimulationError error_by_rates;  ///< of kernels whose times come from their records on one GPU
  std::optional<Fabric> fabric;
  /// Of a node of the page: set_figure keeps their ratio where it changes node.gpus alone. No NICs:
  /// there is no fabric, or fabric.nics was set.
  std::int64_t page_gpus = 0, page_nics = 0;

  std::int64_t gpus() const { return platform.node.gpus * (fabric ? fabric->nodes : 1); }
  /// Throws InputError if there are fewer GPUs.
  void require_ranks(std::int64_t ranks) const;
};

/// The cluster of a page, or one node of the platform whose page it is. `path` names it in errors.
/// Throws InputError with file, line and column for a syntax error, an unknown key (nearest
/// suggested), a figure of another type or not above 0, a section without `measured`, a fabric
/// that lacks a figure or has an oversubscription below 1, and rates of slice on GPUs.
Cluster parse_cluster(std::string_view toml, std::string_view path);

/// The cluster `name` of configs/clusters/, whose pages are part of the program; that of the file
/// `name` if it ends in ".toml", a cluster's page or a whole platform's (then one node of it); or
/// one node of the platform `name`. Throws InputError that suggests the nearest name.
Cluster load_cluster(const std::string& name);

/// Of the clusters and platforms that load_cluster finds by name.
std::vector<std::string> cluster_names();

/// Sets one figure by "KEY=VALUE", as in "fabric.nic_bytes_per_second=25e9"; "nic_gbps=200" (Gb/s)
/// and "gpus_per_node=4" are short for that and for node.gpus. Throws InputError that names the key
/// (nearest suggested, and what there is) or the value, and for a figure without_effect. Where
/// node.gpus changes, a node gets as many NICs for each GPU as on the page, rounded up, unless
/// fabric.nics is set, too, before or after.
void set_figure(Cluster& cluster, std::string_view text);

/// "fabric.nics is 4 with node.gpus=4" where NICs were scaled with GPUs; "" otherwise.
std::string scaled_nics(const Cluster& cluster);

/// Whether no simulated time depends on the figure of that key: it is of the planners' own
/// estimates, of kernels that are timed by their records, or of how far simulated times are off.
bool without_effect(std::string_view key);

/// "of h200, not measured here" where the page has the links of another platform, since `longca
/// calibrate` ran on one device; "" otherwise.
std::string borrowed_links(const cost::Platform& platform);

/// The figures that simulated times depend on, "KEY=VALUE" line by line. Clusters of one text are
/// simulated alike.
std::string figures_text(const Cluster& cluster);

}  // namespace longca::simulate
