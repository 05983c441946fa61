#pragma once

#include <optional>
#include <span>
#include <string>

#include "advise/advisor.h"
#include "bench/suite/case.h"
#include "simulate/cluster.h"
#include "simulate_cells.h"

namespace longca {

/// Of the clusters that load_cluster knows by name and that have `ranks` GPUs of the card of this
/// name ("NVIDIA H200"), the one with the least error, of equal ones the smallest; nothing if none
/// has.
std::optional<simulate::Cluster> cluster_of_card(const std::string& card, std::int64_t ranks);

/// Adds to an answer over ranks the choices that `cells` are when they are simulated on the
/// cluster, with the interval of its `error`, of `error_by_rates` where the page does not have the
/// kernel's times or gradients are added in a fixed order: those of kernel slice, unless kernels
/// were asked for. Of a kernel with a scheme about which records say something, that counts
/// instead. What has no simulation is excluded, with the reason; memory is not simulated, so that
/// by Objective::memory nothing is added. `rates` rest on the records of `files`; `transport`
/// says whether that of the cells was asked for.
void add_simulated_choices(const simulate::Cluster& cluster, const MeasuredRates& rates,
                           const std::set<std::string>& files, std::span<const Case> cells,
                           const advise::AdviceOptions& options, advise::Advice& advice,
                           Transport transport = Transport::found);

}  // namespace longca
