#pragma once

#include <memory>
#include <vector>

#include "core/device.h"

namespace longca {

/// In place of an op: what is done of several before the pass waits (EarlyRows).
inline constexpr int kEarlyRows = -1;

/// When an op of a pass ran, in ms since the pass began on this rank's device.
struct OpTime {
  int op = 0;
  double begin_ms = 0;
  double end_ms = 0;
};

/// How far a pass has come on this rank's device.
enum class PassState {
  computes,  ///< an op of the compute lane is under way
  waits,     ///< none is: for an exchange, and so for other ranks
  ended,
};

/// Notes when the ops of one pass begin and end on their lanes: on a GPU by events between what is
/// queued, so that the host's time does not count.
class LaneTimes {
 public:
  virtual ~LaneTimes() = default;
  /// A pass begins, after what is queued on `stream`; forgets the one before.
  virtual void restart(Stream stream) = 0;
  virtual void begins(int op, Stream stream) = 0;
  virtual void ends(int op, Stream stream) = 0;
  /// All of the pass is queued; what comes next on `stream` comes after it.
  virtual void finish(Stream stream) = 0;
  virtual PassState state() = 0;
  /// Whether an exchange ends where the host has waited for it, and not in its stream.
  virtual bool exchanges_end_on_host() const = 0;
  /// Waits for the device. By op.
  virtual std::vector<OpTime> times() = 0;
};
std::unique_ptr<LaneTimes> make_lane_times(DeviceKind device);

}  // namespace longca
