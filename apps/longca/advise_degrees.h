#pragma once

#include <optional>

#include "advise/degrees.h"
#include "advise_answers.h"

namespace longca {

/// Weighs the context-parallel degrees of a training job on the one problem that the axes name, or
/// on sampled sequences of the user's own, back to back as training runs them unless the axes name
/// a mode: of bursts, the short calls of a high degree run at clocks that a warm card does not
/// keep. Throws InputError: several problems, axes of ranks that the degrees replace, a cluster
/// with fewer GPUs, tokens that make no whole sequences.
advise::WeighedDegrees weigh_training(advise::Training training, AxisValues given,
                                      const std::optional<AskedDocuments>& documents,
                                      const advise::AdviceOptions& options, Advisors& advisors);

}  // namespace longca
