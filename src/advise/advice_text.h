#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evaluation.h"

namespace longca::advise {

/// Prints the card, then for each problem the ranked choices, why other kernels are not among them,
/// and the command that would find out more. Like all here, on lines of at most `width` columns,
/// where words are no longer.
void print_advice(std::ostream& out, const Evidence& evidence, std::span<const Advice> advice,
                  int width);

/// "causal, tokens 16K, heads 64:8, …: step".
std::string title_of(const Advice& advice);
/// "interpolated between measured lengths", "extrapolated beyond the measured lengths".
std::string basis_text(const Choice& choice);
/// The row of a table and what is to be said of it: behind it or, where that does not fit, on
/// further lines.
std::string with_remark(const std::string& row, std::string_view remark, int width);
/// Prints the files whose records the choices rest on, if there are any.
void print_files(std::ostream& out, std::span<const Choice> choices);
/// Prints who is not among the choices, and why, under a title; not those that nobody asked for.
void print_refusals(std::ostream& out, std::string_view title, std::vector<Refusal> refusals,
                    int width);
/// Prints a shell's command behind a title, if it is not "": on several lines as a shell takes
/// them, each ending in a backslash.
void print_command(std::ostream& out, const std::string& title, const std::string& command,
                   int width);

/// Prints a table for each way of leaving out: all cells, then by kernel, then by mask. Its errors
/// and its choices stand below each other where they do not fit side by side.
void print_evaluation(std::ostream& out, const Evidence& evidence,
                      std::span<const HeldOut> held_out, int width);

}  // namespace longca::advise
