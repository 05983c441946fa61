#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Thrown on all ranks at once: one of them cannot go on, and all have heard of it. Nothing is
/// under way between them.
class Refused : public std::exception {
 public:
  explicit Refused(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.reason.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// What `step` answers, or what became of it: OutOfMemory is `oom`, any other exception `crash`,
/// both with `stage` named.
Status status_of(std::string_view stage, const std::function<Status()>& step);

/// Runs a step that tells other ranks nothing; then all ranks hear whether all can go on. Throws
/// Refused with the sentence of the first rank that cannot, and its number unless all ranks say the
/// same. Collective.
void together(RankControl& control, std::string_view stage, const std::function<Status()>& step);

}  // namespace longca
