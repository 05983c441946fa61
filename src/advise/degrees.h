#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "advise/advisor.h"

// Context-parallel degree against data parallelism: of N GPUs, N / c replicas of c GPUs each share
// the sequences of a training step. Counted are attention and its communication alone.

namespace longca::advise {

/// A training job.
struct Training {
  std::int64_t gpus = 1;
  std::int64_t layers = 1;           ///< with attention of this shape
  std::int64_t tokens_per_step = 0;  ///< over all GPUs; 0: one sequence for each GPU
};

/// The degrees to weigh, ascending: the powers of two that divide `gpus`, and `gpus` itself.
std::vector<std::int64_t> degrees_of(std::int64_t gpus);

/// How many sequences of these lengths, in tokens, a step has: if all are equal a whole number of
/// them, else as many of their mean length as come nearest. Throws InputError that suggests the
/// nearest number of tokens.
std::int64_t sequences_of_step(const Training& training, std::span<const std::int64_t> lengths);

/// Mean time of a step of `count` sequences over `replicas` that wait for their slowest at its end.
/// Sequence i goes to replica i mod `replicas`; of several `times` each sequence draws one, by a
/// fixed seed. `times` is not empty.
Expected step_time(std::span<const Expected> times, std::int64_t count, std::int64_t replicas);

/// Why no GPU of `memory_bytes` can run one layer's call at this degree: q, k, v, o, LSE and, where
/// the pass has them, their gradients take more. "" if it can.
std::string why_too_large(const Case& problem, std::int64_t degree, double memory_bytes);

/// What one degree offers: choices with the time of a step.
struct DegreeAdvice {
  std::int64_t degree = 1;
  Advice advice{};
};

/// The degrees of one job side by side.
struct WeighedDegrees {
  Case problem{};  ///< of own documents: tokens are their mean, rounded
  Training training{};
  std::int64_t sequences = 1;             ///< of a step
  std::size_t sampled = 1;                ///< sequences that were answered
  std::int64_t longest = 0;               ///< of the sequences, in tokens
  std::optional<double> memory_bytes{};   ///< of a GPU, where it is known
  std::vector<Choice> choices{};          ///< of all degrees, best first; ranks is the degree
  std::vector<DegreeAdvice> by_degree{};  ///< what is excluded and unknown, by degree
};

/// The answer of one degree: `answers` has one for each sampled sequence. What runs them is a
/// choice only where it is one for every sequence. Of one sequence `find_out` stays.
Advice step_advice(std::span<const Advice> answers, const Training& training, std::int64_t count,
                   std::int64_t degree);

/// The bytes per GPU, at this degree, of what attention keeps of the longest sequence in all layers
/// from their forward to their backward pass (q, k, v, o, LSE); of a forward pass, of one layer.
double kept_bytes(const WeighedDegrees& weighed, std::int64_t degree);

/// Whether a GPU has the memory for `kept_bytes` at this degree; true where it is not known.
bool fits(const WeighedDegrees& weighed, std::int64_t degree);

/// Puts the choices of all degrees into one list, best first: those of degrees that fit before
/// those that do not, both by time. Ties are with the first of all, and none of what fits is tied
/// with what does not.
void rank_degrees(WeighedDegrees& weighed);

/// The best choice of the degree; nullptr if it has none.
const Choice* best_of(const WeighedDegrees& weighed, std::int64_t degree);

inline std::int64_t degree_of(const Choice& choice) {
  return choice.c.ranks.value_or(1);
}

}  // namespace longca::advise
