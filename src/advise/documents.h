#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "advise/advisor.h"

namespace longca::advise {

/// A packed sequence of a user's own data.
struct Sequence {
  std::string lengths;  ///< the name by which sample_lengths knows its documents
  std::int64_t tokens = 0;
};

/// At most `samples` sequences of a file, evenly spread over it: a line each, of document lengths,
/// or of cu_seqlens (the ends of the documents, from 0 on, as data loaders have them); a .npy is
/// one sequence of lengths. Throws InputError that names the line: what parse_lengths refuses,
/// cu_seqlens that do not ascend; and for a file without a sequence, or samples < 1.
std::vector<Sequence> sample_documents(const std::filesystem::path& file, std::int64_t samples);

/// One time for those of several sequences.
using CombineTimes = std::function<Expected(std::span<const Expected> times)>;

/// One answer for problems that differ in the sequence alone: their times as `combine` puts them
/// together, the largest memory, and the mean length. What runs them (name_of_choice) is a choice
/// only where it is one for every sequence. `answers` is not empty.
Advice combined_advice(std::span<const Advice> answers, Objective objective,
                       const CombineTimes& combine);
/// With mean times. Intervals are added up, as if all were off to the same side.
Advice mean_advice(std::span<const Advice> answers, Objective objective);

}  // namespace longca::advise
