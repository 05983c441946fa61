#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "bench/measure/device_clock.h"
#include "core/device.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The clock of a case over ranks: a call's time begins when all ranks' devices have passed a
/// barrier, and is that of the slowest rank. All ranks get the same times and rank 0's `now_s`, so
/// that they decide alike. Every call but flush_caches is collective.
class RankClock : public DeviceClock, private ClockTeam {
 public:
  /// `own`: this rank's clock. All arguments must outlive this object.
  RankClock(DeviceClock& own, Device& device, Communicator& communicator, RankControl& control);
  ~RankClock() override;
  RankClock(const RankClock&) = delete;
  RankClock& operator=(const RankClock&) = delete;

  void begin() override;
  void begin_series(Series series) override { series_ = series; }
  void flush_caches() override { own_.flush_caches(); }
  double time_once(const std::function<void()>& call) override;
  std::vector<double> time_back_to_back(const std::function<void()>& call,
                                        const std::function<void()>& between, int count) override;
  bool held() const override;
  void watch(std::vector<std::span<const std::byte>> results) override;
  bool changed_since() override;
  double now_s() override;

  /// This rank's own median over the last `count` times of a series.
  double own_median_ms(std::size_t count, Series series = Series::call) const;

 private:
  void run(const std::function<void()>& call) override;
  void line_up() override;
  bool any(bool mine) override;

  DeviceClock& own_;
  Device& device_;
  Communicator& communicator_;
  RankControl& control_;
  std::vector<double>& own_ms() { return own_ms_.at(static_cast<std::size_t>(series_)); }

  Series series_ = Series::call;
  std::array<std::vector<double>, 2> own_ms_;  ///< this rank's own times since `begin`, by series
};

}  // namespace longca
