#pragma once

#include <span>
#include <string>

#include "advise/advisor.h"

namespace longca::advise {

/// "slice with magi": a kernel and its scheme among what is excluded.
std::string name_over_ranks(const Case& c);

/// Schemes and kernels for one problem over ranks (`ranks` and `tokens` count; kernel and the
/// scheme's axes mean nothing), from measured cells alone: no model interpolates between numbers of
/// ranks. `allowed`: the variants that were asked for, as cells of any pass; empty: all. A step
/// that was not measured as such is the sum of its passes. Where no cell of the problem was
/// measured, there is no choice, and `find_out` says what to run.
Advice advise_over_ranks(const Evidence& evidence, const Case& problem,
                         std::span<const Case> allowed, const AdviceOptions& options);

/// The command that would measure the problem with the kernels and the variants of schemes that
/// were asked for (`allowed`; empty: all schemes): its cells are these and no others where lists of
/// shards, factors and transports can say them. Where more ranks are asked for than kRanksPerNode,
/// `peer` is `nccl`. On GPUs the kernel is `slice` unless others were asked for.
std::string command_over_ranks(const Case& problem, std::span<const Case> allowed,
                               const AdviceOptions& options);

}  // namespace longca::advise
