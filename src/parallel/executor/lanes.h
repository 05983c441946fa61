#pragma once

#include <memory>
#include <vector>

#include "core/device.h"
#include "parallel/plan/plan.h"

namespace longca {

/// The compute and the communication lane of a device, which run concurrently and wait for each
/// other. The CPU has one thread: every call returns when its work is done.
class DeviceLanes {
 public:
  virtual ~DeviceLanes() = default;
  /// Opens a pass: it runs after what is queued on `stream`, which becomes the compute lane.
  virtual void begin(Stream stream) = 0;
  /// Closes the pass: what is queued on `stream` from now on runs after both lanes.
  virtual void end() = 0;
  virtual Stream stream(Lane lane) = 0;
  /// Marks the end of op `op`, the last queued on `lane`.
  virtual void mark(int op, Lane lane) = 0;
  /// Makes what is queued on `lane` from now on wait for the marked op `op`.
  virtual void wait(int op, Lane lane) = 0;
};
std::unique_ptr<DeviceLanes> make_device_lanes(DeviceKind device);

/// A point in a device's work, to hold up what must come after it without blocking the host.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  /// Moves the mark to the end of what is queued on `stream`.
  virtual void record(Stream stream) = 0;
  /// What is queued on `stream` from now on runs after what was recorded last.
  virtual void hold_up(Stream stream) = 0;
  /// Whether the device has come to the mark; so it has to one that was never recorded.
  virtual bool reached() = 0;
  /// Whether work was recorded as it was captured in a CUDA graph, which may run it again at any
  /// time: it has no end, and counts as none for `reached`.
  virtual bool is_captured() const = 0;
};
std::unique_ptr<StreamMark> make_stream_mark(DeviceKind device);

/// Stands in OpTime for the row work done early, of several ops together (EarlyRows).
inline constexpr int kEarlyRows = -1;

/// When an op of a pass ran, in ms since the pass began on this rank's device.
struct OpTime {
  int op = 0;
  double begin_ms = 0;
  double end_ms = 0;
};

/// How far a pass has come on this rank's device.
enum class PassState {
  computes,  ///< an op of the compute lane is running
  waits,     ///< no op is: the lane waits for an exchange, and so for other ranks
  ended,
};

/// Records when the ops of one pass begin and end on their lanes: on a GPU by events in the
/// streams, so that host time does not count.
class LaneTimes {
 public:
  virtual ~LaneTimes() = default;
  /// Opens a pass after what is queued on `stream` and forgets the previous one.
  virtual void restart(Stream stream) = 0;
  virtual void begins(int op, Stream stream) = 0;
  virtual void ends(int op, Stream stream) = 0;
  /// Closes the pass; `stream` must already wait for both lanes.
  virtual void finish(Stream stream) = 0;
  virtual PassState state() = 0;
  /// Whether an exchange ends in Communicator::finish on the host (CPU), not in its stream (GPU).
  virtual bool exchanges_end_on_host() const = 0;
  /// Waits for the device and returns the times, by op.
  virtual std::vector<OpTime> times() = 0;
};
std::unique_ptr<LaneTimes> make_lane_times(DeviceKind device);

}  // namespace longca
