#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evaluation.h"

namespace longca::advise {

/// Prints the card, then for each problem the ranked choices, why other kernels are not among them,
/// and the command that would find out more.
void print_advice(std::ostream& out, const Evidence& evidence, std::span<const Advice> advice);

/// "causal, tokens 16K, heads 64:8, …: step".
std::string title_of(const Advice& advice);
/// "interpolated between measured lengths".
std::string basis_text(const Choice& choice);
/// Prints the files whose records the choices rest on, if there are any.
void print_files(std::ostream& out, std::span<const Choice> choices);
/// Prints who is not among the choices, and why, under a title; not those that nobody asked for.
void print_refusals(std::ostream& out, std::string_view title, std::vector<Refusal> refusals);

/// Prints a table for each way of leaving out: all cells, then by kernel, then by mask.
void print_evaluation(std::ostream& out, const Evidence& evidence,
                      std::span<const HeldOut> held_out);

}  // namespace longca::advise
