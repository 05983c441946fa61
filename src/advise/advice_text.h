#pragma once

#include <iosfwd>
#include <span>

#include "advise/evaluation.h"

namespace longca::advise {

/// Prints the card, then for each problem the ranked choices, why other kernels are not among them,
/// and the command that would find out more.
void print_advice(std::ostream& out, const Evidence& evidence, std::span<const Advice> advice);

/// Prints a table for each way of leaving out: all cells, then by kernel, then by mask.
void print_evaluation(std::ostream& out, const Evidence& evidence,
                      std::span<const HeldOut> held_out);

}  // namespace longca::advise
