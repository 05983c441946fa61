#include "calibrate/fit_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "bench/cell/problem.h"
#include "bench/measure/statistics.h"
#include "calibrate/platform_check.h"
#include "core/error.h"
#include "core/parse.h"
#include "cost/platform_fields.h"
#include "simulate/kernel_times.h"

namespace longca::calibrate {
namespace {

constexpr double kLeastKeys = 1;
constexpr double kLeastCallSeconds = 1e-7;

constexpr int kFigureDigits = 4;  ///< as a person would write them
constexpr int kSpreadDigits = 2;

/// The nearest number of so many significant digits.
double rounded(double value, int digits) {
  return parse_number("a figure", fmt::format("{:.{}e}", value, digits - 1));
}

cost::Pass fitted_pass(const Record& record) {
  return record.c.pass == Pass::backward ? cost::Pass::backward : cost::Pass::forward;
}

/// A kernel's cells of one pass.
struct KernelCells {
  std::string kernel;
  cost::Pass pass = cost::Pass::forward;
  std::vector<const Record*> cells;

  std::vector<simulate::TimedCall> calls() const {
    std::vector<simulate::TimedCall> timed;
    for (const Record* record : cells) {
      timed.push_back({record->metrics.at("area"), static_cast<double>(record->c.tokens),
                       record->c.heads_q, record->c.head_dim, record->metrics.at("time_ms") / 1e3});
    }
    return timed;
  }
};

/// Those of the records that are ok, in the order of kernels.
std::vector<KernelCells> cells_by_kernel(std::span<const Record> records) {
  std::map<std::pair<std::string, cost::Pass>, KernelCells> cells;
  for (const Record& record : records) {
    if (!record.status.ok() || record.c.pass == Pass::step) continue;
    if (!record.metrics.contains("time_ms") || record.metrics.at("area") <= 0) continue;
    const cost::Pass pass = fitted_pass(record);
    KernelCells& own = cells[{record.c.kernel, pass}];
    own.kernel = record.c.kernel;
    own.pass = pass;
    own.cells.push_back(&record);
  }
  std::vector<KernelCells> all;
  for (auto& [key, own] : cells) all.push_back(std::move(own));
  return all;
}

/// Fills in figures of a platform that starts as the base, and remembers which.
class PlatformFit {
 public:
  PlatformFit(const cost::Platform& base, const Machine& machine)
      : platform_(base), machine_(machine) {}

  void fit(const Round& round) {
    fit_probes(round.probes);
    for (const KernelCells& own : cells_by_kernel(round.records)) fit_kernel(own);
    fit_exchanges(round.exchanges);
    if (!any_kernel_.empty()) {
      set("kernel.any.flops_per_second", platform_.kernel.any.flops_per_second,
          any_.flops_per_second);
      set("kernel.any.seconds_per_call", platform_.kernel.any.seconds_per_call,
          any_.seconds_per_call);
      texts_["kernel.any"] = fmt::format("calls of {}, the fastest kernel measured", any_kernel_);
    }
  }

  cost::Platform take() { return std::move(platform_); }
  const std::set<std::string>& keys() const { return keys_; }
  const std::map<std::string, std::string>& texts() const { return texts_; }

 private:
  void set(const std::string& key, double& figure, double value) {
    figure = rounded(value, kFigureDigits);
    keys_.insert(key);
  }

  void fit_probes(std::span<const ProbeTime> times) {
    const ProbeTime* smallest = nullptr;
    const ProbeTime* largest = nullptr;
    const ProbeTime* one = nullptr;
    const ProbeTime* many = nullptr;
    for (const ProbeTime& time : times) {
      const bool is_copy = time.probe.what == ProbeWhat::copy;
      const bool is_launch = time.probe.what == ProbeWhat::launch;
      const auto smaller = [&](const ProbeTime* than) {
        return than == nullptr || time.probe.size < than->probe.size;
      };
      const auto larger = [&](const ProbeTime* than) {
        return than == nullptr || time.probe.size > than->probe.size;
      };
      if (is_copy && smaller(smallest)) smallest = &time;
      if (is_copy && larger(largest)) largest = &time;
      if (is_launch && smaller(one)) one = &time;
      if (is_launch && larger(many)) many = &time;
      if (time.probe.what == ProbeWhat::product) fit_product(time);
    }
    if (largest != nullptr) fit_copies(*smallest, *largest);
    if (many != nullptr && many != one) fit_launch(*one, *many);
  }

  void fit_copies(const ProbeTime& smallest, const ProbeTime& largest) {
    set("memory.bytes_per_second", platform_.memory.bytes_per_second,
        2 * static_cast<double>(largest.probe.size) / (largest.ms / 1e3));
    set("memory.seconds_per_copy", platform_.memory.seconds_per_copy, smallest.ms / 1e3);
    texts_["memory"] = fmt::format("copies of {} and of {} bytes, which read and write each byte",
                                   largest.probe.size, smallest.probe.size);
  }

  void fit_product(const ProbeTime& time) {
    if (!platform_.product) platform_.product.emplace();
    const auto rows = static_cast<double>(time.probe.size);
    const double rate = 2 * rows * rows * rows / (time.ms / 1e3);
    if (time.probe.mode == MeasureMode::burst) {
      set("product.burst_flops_per_second", platform_.product->burst_flops_per_second, rate);
    } else {
      set("product.sustained_flops_per_second", platform_.product->sustained_flops_per_second,
          rate);
    }
    texts_["product"] = fmt::format("{} of {} rows and columns",
                                    machine_.kind == DeviceKind::cuda
                                        ? "bfloat16 matrices, float32 results, by cuBLAS,"
                                        : "float32 matrices, by the CPU kernels' inner loops,",
                                    time.probe.size);
  }

  void fit_launch(const ProbeTime& one, const ProbeTime& many) {
    if (!platform_.launch) platform_.launch.emplace();
    const auto more = static_cast<double>(many.probe.size - one.probe.size);
    set("launch.seconds_per_kernel", platform_.launch->seconds_per_kernel,
        std::max((many.ms - one.ms) / 1e3 / more, kLeastCallSeconds));
    texts_["launch"] = fmt::format("{} kernels that do nothing, and {}, queued ahead",
                                   many.probe.size, one.probe.size);
  }

  void fit_exchanges(std::span<const ExchangeTime> times) {
    refuse_no_times(times);
    for (const ExchangeTime& time : times) fit_message(time);
    for (const char* transport : {"peer", "nccl", "mpi"}) {  // the one that plans use first
      std::vector<ExchangeTime> own;
      std::ranges::copy_if(times, std::back_inserter(own), [&](const ExchangeTime& time) {
        return time.exchange.transport == transport;
      });
      if (own.empty()) continue;
      fit_link_rates(own);
      return;
    }
  }

  /// A figure of the curve of its transport and pattern, if it is one message to each peer.
  void fit_message(const ExchangeTime& time) {
    const TimedExchange& exchange = time.exchange;
    if (exchange.messages > 1 || exchange.exchanges > 1) return;
    const std::string pattern = pattern_name(exchange);
    set(fmt::format("messages.{}.{}", pattern, exchange.bytes),
        platform_.messages[pattern].seconds[exchange.bytes], time.ms / 1e3);
    std::string& text = texts_["messages." + pattern];
    if (text.empty()) text = fmt::format("{} ranks on one host", machine_.ranks);
    constexpr std::string_view kNote = "; the time of launches is in some of them";
    if (!time.held && !text.ends_with(kNote)) text += kNote;
  }

  void fit_link_rates(std::span<const ExchangeTime> own) {
    const LinkFigures figures = fit_links(own, machine_.ranks);
    cost::LinkRates& links = platform_.links;
    set("links.bytes_per_second", links.bytes_per_second, figures.bytes_per_second);
    const auto set_time = [&](const char* key, double& figure, double value) {
      set(key, figure, std::max(value, kLeastCallSeconds));
    };
    set_time("links.seconds_per_exchange", links.seconds_per_exchange,
             figures.seconds_per_exchange);
    set_time("links.seconds_per_message", links.seconds_per_message, figures.seconds_per_message);
    set_time("links.seconds_to_begin", links.seconds_to_begin, figures.seconds_to_begin);
    const auto [least, most] =
        std::ranges::minmax(own, {}, [](const ExchangeTime& time) { return time.exchange.bytes; });
    texts_["links"] = fmt::format(
        "fitted to {} exchanges over {} among {} ranks of one host, of {} to {} bytes", own.size(),
        own.front().exchange.transport, machine_.ranks, least.exchange.bytes, most.exchange.bytes);
  }

  void fit_kernel(const KernelCells& own) {
    const std::vector<simulate::TimedCall> calls = own.calls();
    simulate::CallRate rate = simulate::fit_rate(calls, own.pass);
    if (rate.flops_per_second <= 0) return;
    rate.keys_per_row = std::max(rate.keys_per_row, kLeastKeys);
    rate.seconds_per_call = std::max(rate.seconds_per_call, kLeastCallSeconds);
    const std::string text = fmt::format("fitted to {} calls of {}", calls.size(), own.kernel);
    const bool is_slice = own.kernel == "slice";
    if (!is_slice) set_own_rates(own, rate, text);
    if (is_slice || (machine_.kind == DeviceKind::cpu && is_first(own))) {
      set_planners_rates(own.pass, rate, text);
    }
    if (is_slice) fit_cycles(own, text);
    if (own.pass == cost::Pass::forward && rate.flops_per_second > any_.flops_per_second) {
      any_ = rate;
      any_kernel_ = own.kernel;
    }
  }

  /// Whether its kernel is the one of whose pass no other was fitted before.
  bool is_first(const KernelCells& own) {
    return planned_.emplace(own.pass, own.kernel).first->second == own.kernel;
  }

  void set_own_rates(const KernelCells& own, const simulate::CallRate& rate,
                     const std::string& text) {
    const bool forward = own.pass == cost::Pass::forward;
    const std::string section =
        fmt::format("rates.{}.{}", own.kernel, forward ? "forward" : "backward");
    cost::OneKernelRates& rates = platform_.rates[own.kernel];
    cost::KernelPassRates& pass = (forward ? rates.forward : rates.backward).emplace();
    set(section + ".flops_per_second", pass.flops_per_second, rate.flops_per_second);
    set(section + ".keys_per_row", pass.keys_per_row, rate.keys_per_row);
    set(section + ".seconds_per_call", pass.seconds_per_call, rate.seconds_per_call);
    texts_[section] = text;
  }

  /// Of kernel.forward or kernel.backward.
  void set_planners_rates(cost::Pass pass, const simulate::CallRate& rate,
                          const std::string& text) {
    const auto set_pass = [&](const std::string& section, auto& figures) {
      set(section + ".tile_flops_per_second", figures.tile_flops_per_second, rate.flops_per_second);
      set(section + ".keys_per_row", figures.keys_per_row, rate.keys_per_row);
      set(section + ".seconds_per_call", figures.seconds_per_call, rate.seconds_per_call);
      texts_[section] = text;
    };
    if (pass == cost::Pass::forward) {
      set_pass("kernel.forward", platform_.kernel.forward);
    } else {
      set_pass("kernel.backward", platform_.kernel.backward);
    }
  }

  /// The rate of slice's cycles; all other figures of its calls stay those of the base.
  void fit_cycles(const KernelCells& own, const std::string& text) {
    const bool forward = own.pass == cost::Pass::forward;
    double& figure = forward ? platform_.call.forward.cycles_per_second
                             : platform_.call.backward.cycles_per_second;
    const std::string section = forward ? "call.forward" : "call.backward";
    set(section + ".cycles_per_second", figure, figure * cycles_factor(own));
    texts_[section] = "cycles per second " + text;
  }

  /// By which the platform's cycles per second must be multiplied.
  double cycles_factor(const KernelCells& own) const {
    struct Split {
      double measured, fixed, cycles;  ///< s; the last two add up to what the platform says
    };
    const simulate::SliceTimes times(platform_);
    std::vector<Split> splits;
    for (const Record* record : own.cells) {
      const Case& c = record->c;
      const cost::HeadShape shape{c.heads_q, c.heads_k, c.head_dim,
                                  static_cast<int>(size_of(c.dtype))};
      const simulate::CallTime call = times.call(case_mask(c).mask, shape, own.pass);
      splits.push_back({record->metrics.at("time_ms") / 1e3, call.seconds - call.cycle_seconds,
                        call.cycle_seconds});
    }
    const auto log_error = [&](double factor) {
      double sum = 0;
      for (const Split& split : splits) {
        const double seconds = times.slowed(split.fixed + split.cycles / factor, own.pass);
        sum += std::log(seconds / split.measured);
      }
      return sum;
    };
    double low = 1e-3;  // log_error falls with the factor
    double high = 1e3;
    for (int i = 0; i < 60; ++i) {
      const double middle = std::sqrt(low * high);
      (log_error(middle) > 0 ? low : high) = middle;
    }
    return std::sqrt(low * high);
  }

  cost::Platform platform_;
  const Machine& machine_;
  std::set<std::string> keys_;                ///< of the figures that were measured
  std::map<std::string, std::string> texts_;  ///< by section: what was measured
  std::map<cost::Pass, std::string> planned_;
  simulate::CallRate any_;
  std::string any_kernel_;
};

/// The medians over rounds.
Round medians_of(std::span<const Round> rounds) {
  Round all;
  std::map<std::string, std::vector<double>> probe_ms;
  std::map<std::string, std::vector<double>> cell_ms;
  std::map<std::string, std::vector<double>> exchange_ms;
  for (const Round& round : rounds) {
    for (const ProbeTime& time : round.probes) {
      auto& ms = probe_ms[to_text(time.probe)];
      if (ms.empty()) all.probes.push_back(time);
      ms.push_back(time.ms);
    }
    for (const ExchangeTime& time : round.exchanges) {
      auto& ms = exchange_ms[to_text(time.exchange)];
      if (ms.empty()) all.exchanges.push_back(time);
      ms.push_back(time.ms);
    }
    for (const Record& record : round.records) {
      const auto time = record.metrics.find("time_ms");
      if (!record.status.ok() || time == record.metrics.end()) continue;
      auto& ms = cell_ms[record.c.key()];
      if (ms.empty()) all.records.push_back(record);
      ms.push_back(time->second);
    }
  }
  for (ProbeTime& time : all.probes) time.ms = median(probe_ms.at(to_text(time.probe)));
  for (ExchangeTime& time : all.exchanges) {
    time.ms = median(exchange_ms.at(to_text(time.exchange)));
  }
  for (Record& record : all.records) {
    record.metrics["time_ms"] = median(cell_ms.at(record.c.key()));
  }
  return all;
}

std::map<std::string, double> figures_by_key(const cost::Platform& platform) {
  std::map<std::string, double> figures;
  for (const cost::Figure& figure : cost::figures_of(platform)) figures[figure.key] = figure.value;
  return figures;
}

/// Whether an intercept is the least that is written: then it has not been told from nothing.
bool is_at_floor(const std::string& key, double value) {
  return is_intercept(key) &&
         value <= (key.ends_with("keys_per_row") ? kLeastKeys : kLeastCallSeconds);
}

std::map<std::string, double> spread_by_key(const cost::Platform& base, const Machine& machine,
                                            std::span<const Round> rounds,
                                            const cost::Platform& all,
                                            const std::set<std::string>& keys) {
  const std::map<std::string, double> figures = figures_by_key(all);
  std::map<std::string, double> spread;
  for (const std::string& key : keys) spread[key] = 0;
  for (const Round& round : rounds) {
    PlatformFit fit(base, machine);
    fit.fit(round);
    const std::set<std::string> fitted = fit.keys();
    const std::map<std::string, double> own = figures_by_key(fit.take());
    for (const std::string& key : fitted) {
      const auto known = figures.find(key);
      if (known == figures.end()) continue;
      double& widest = spread[key];
      widest = std::max(widest, std::abs(own.at(key) / known->second - 1));
    }
  }
  for (auto& [key, part] : spread) {
    const auto figure = figures.find(key);
    if (figure != figures.end() && is_at_floor(key, figure->second)) {
      part = std::max(part, kUnresolved);
    }
    part = rounded(part, kSpreadDigits);
  }
  return spread;
}

/// Sets what `measured` of each section says.
class SourceWriter {
 public:
  SourceWriter(const cost::Platform& base, std::string where, const std::set<std::string>& keys,
               const std::map<std::string, std::string>& texts)
      : base_(base.name), where_(std::move(where)), keys_(keys), texts_(texts) {}

  void section(const char* name, const char* /*meaning*/, std::string& measured) {
    finish();
    section_ = name;
    measured_ = &measured;
    is_whole_ = true;
  }
  template <typename Number>
  void field(const char* key, const char* /*meaning*/, Number& /*value*/) {
    is_whole_ = is_whole_ && keys_.contains(section_ + "." + key);
  }
  void finish() {
    if (measured_ == nullptr) return;
    const auto text = texts_.find(section_);
    if (text == texts_.end()) {
      *measured_ = fmt::format("of {}, not measured here: {}", base_, *measured_);
    } else if (is_whole_) {
      *measured_ = fmt::format("{}: {}", where_, text->second);
    } else {
      *measured_ =
          fmt::format("{}: {}; the rest is of {}: {}", where_, text->second, base_, *measured_);
    }
    measured_ = nullptr;
  }

 private:
  std::string base_;
  std::string where_;
  const std::set<std::string>& keys_;
  const std::map<std::string, std::string>& texts_;
  std::string section_;
  std::string* measured_ = nullptr;
  bool is_whole_ = true;
};

/// What the system says of the machine; returns the keys.
std::set<std::string> set_machine(const Machine& machine, cost::Platform& platform,
                                  std::map<std::string, std::string>& texts) {
  std::set<std::string> keys;
  platform.kind = to_string(machine.kind);
  platform.card = machine.card;
  if (machine.sms > 0) {
    platform.device.sms = machine.sms;
    keys.insert("device.sms");
    texts["device"] = "as the system says";
  }
  if (machine.cache_bytes > 0) {
    platform.device.cache_bytes = machine.cache_bytes;
    keys.insert("device.cache_bytes");
  }
  if (machine.devices > 1) {
    platform.node.gpus = machine.devices;
    keys.insert("node.gpus");
    texts["node"] = "the number as the system says";
  }
  return keys;
}

}  // namespace

std::string platform_name_of(const std::string& card) {
  static const std::set<std::string> left_out = {"nvidia", "r", "tm", "cpu", "processor"};
  std::string name;
  std::string word;
  const auto add_word = [&] {
    if (!word.empty() && !left_out.contains(word)) name += (name.empty() ? "" : "_") + word;
    word.clear();
  };
  for (const char c : card.substr(0, card.find('@'))) {  // "… CPU @ 2.40GHz"
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      add_word();
    }
  }
  add_word();
  return name.empty() ? "platform" : name;
}

cost::Platform fit_platform(const cost::Platform& base, const Machine& machine,
                            std::span<const Round> rounds, const std::string& name) {
  LONGCA_CHECK(rounds.size() >= 2, "{} rounds show no spread", rounds.size());
  PlatformFit fit(base, machine);
  fit.fit(medians_of(rounds));
  std::set<std::string> keys = fit.keys();
  std::map<std::string, std::string> texts = fit.texts();
  cost::Platform platform = fit.take();
  platform.spread = spread_by_key(base, machine, rounds, platform, keys);
  keys.merge(set_machine(machine, platform, texts));
  platform.name = name;
  platform.description =
      fmt::format("{}, measured by longca calibrate; figures without a spread are of {}",
                  machine.card, base.name);
  SourceWriter writer(base,
                      fmt::format("longca calibrate, {}, {} rounds", machine.date, rounds.size()),
                      keys, texts);
  cost::visit_fields(platform, writer);
  cost::visit_optional_fields(platform, writer);
  writer.finish();
  return platform;
}

}  // namespace longca::calibrate
