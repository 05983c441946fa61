#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/api/registry.h"
#include "bench/record/environment.h"
#include "bench/record/record_writer.h"
#include "bench/run/rounds.h"
#include "bench/run/run_cells.h"
#include "bench/suite/cases.h"
#include "calibrate/fit_platform.h"
#include "calibrate/platform_text.h"
#include "calibrate/probe_worker.h"
#include "calibrate_links.h"
#include "core/cuda/cuda_device.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/strict_toml.h"
#include "core/system_error.h"
#include "core/thread_pool.h"
#include "run_verbs.h"
#include "verbs.h"

namespace longca {
namespace {

namespace fs = std::filesystem;
using calibrate::Round;

constexpr double kProbesLimit = 120;  ///< s, of one process that measures the device

constexpr double kMaxEffect = 1e9;  ///< %

struct CalibrateArguments : RunArguments {
  std::string out;
  std::string kernels;
  std::string page;  ///< of --check
  bool check = false;
  bool force = false;
  std::int64_t rounds = 3;
  double min_effect_pct = 3;
};

/// Collects a round's records, and passes them on.
class RoundListener : public RunListener {
 public:
  explicit RoundListener(RunListener& progress) : progress_(progress) {}

  void started(const Case& c) override { progress_.started(c); }
  void finished(const Record& record, const std::string& output) override {
    records_.push_back(record);
    progress_.finished(record, output);
  }
  std::vector<Record> take() { return std::exchange(records_, {}); }

 private:
  RunListener& progress_;
  std::vector<Record> records_;
};

DeviceKind device_to_measure(const CalibrateArguments& arguments) {
  AxisValues given;
  for (const std::string& axis : arguments.axes) {
    if (axis.starts_with("device=")) parse_axis_argument(axis, given);
  }
  const auto device = given.find("device");
  if (device != given.end() && device->second.size() != 1) {
    throw InputError("device is cpu or cuda here: a platform is of one of them");
  }
  if (device != given.end() && device->second.front() == "cpu") return DeviceKind::cpu;
  const Support& gpu = Device::available(DeviceKind::cuda);
  if (device != given.end() && device->second.front() == "cuda" && !gpu.ok()) {
    throw InputError(gpu.reason);
  }
  return gpu.ok() ? DeviceKind::cuda : DeviceKind::cpu;
}

calibrate::Machine this_machine(DeviceKind kind) {
  const DeviceProperties& device = Device::get(kind).properties();
  const bool on_gpu = kind == DeviceKind::cuda;
  return {.kind = kind,
          .card = device.name,
          .sms = on_gpu ? device.sms : available_cpus(),
          .cache_bytes = std::max<std::int64_t>(device.cache_bytes, 0),
          .devices = on_gpu ? count_cuda_devices() : available_cpus(),
          .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
}

/// The page of --check: FILE.toml or a platform's name; without one this machine's.
cost::Platform page_to_check(const CalibrateArguments& arguments, const std::string& own_name,
                             const fs::path& own_page) {
  std::string name = arguments.page;
  if (name.empty()) name = fs::exists(own_page) ? own_page.string() : own_name;
  cost::Platform page = cost::load_platform(name);
  if (page.spread.empty()) {
    throw_input_error("{} has no figure with a spread: longca calibrate did not measure it", name);
  }
  return page;
}

void refuse_other_machine(const cost::Platform& page, const calibrate::Machine& machine) {
  if (page.kind == to_string(machine.kind) && page.card == machine.card) return;
  throw_input_error("{} is of {}, and this machine has {}", page.name,
                    page.card.empty() ? page.kind : page.card, machine.card);
}

/// Of calibrate.toml or calibrate_cpu.toml, with the command line's axes.
Suite cells_to_measure(CalibrateArguments& arguments, DeviceKind kind) {
  arguments.suite = kind == DeviceKind::cuda ? "calibrate" : "calibrate_cpu";
  Suite suite = arguments.load();
  refuse_axes_of_ranks(suite, "calibrate");
  return suite;
}

fs::path platforms_folder(DeviceKind kind) {
  return load_suite(kind == DeviceKind::cuda ? "calibrate" : "calibrate_cpu").path.parent_path() /
         "platforms";
}

/// --out, else the platform's page in configs/platforms or, where that cannot be written, here.
fs::path output_page(const CalibrateArguments& arguments, const fs::path& own_page) {
  if (!arguments.out.empty()) {
    if (!arguments.out.ends_with(".toml")) {
      throw_input_error("--out {}: the name of a platform's page ends in .toml", arguments.out);
    }
    return arguments.out;
  }
  return ::access(own_page.parent_path().c_str(), W_OK) == 0 ? own_page : own_page.filename();
}

/// Throws for a page that cannot be written, or must not be replaced. Nothing has changed then.
void check_output(const CalibrateArguments& arguments, const fs::path& path) {
  if (fs::is_regular_file(path)) {
    try {
      cost::load_platform(path.string());
    } catch (const InputError& error) {
      throw_input_error("{} holds something else than a platform and is not replaced ({})",
                        path.string(), error.what());
    }
    if (!arguments.force) {
      throw_input_error("{} is there already: --force replaces it and keeps {}", path.string(),
                        backup_of(path).string());
    }
  }
  const OutputFile probe(path);  // whether it can be written
  if (fs::is_regular_file(path)) const OutputFile of_backup(backup_of(path));
}

void write_page(const fs::path& path, const cost::Platform& platform) {
  if (fs::is_regular_file(path)) {
    replace_file(backup_of(path), read_input_file("platform", path.string(), kMaxTomlBytes));
  }
  replace_file(path, cost::to_toml(platform));
}

/// Throws InputError for a kernel that has no row for the device, before anything is measured.
void refuse_other_devices(std::span<const Case> cells, DeviceKind kind) {
  std::set<std::string> own;
  std::map<std::string, std::string> others;  // and why they do not run here
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& can = kernel->capabilities();
    const Support support = check_kind(can, kind);
    if (support.ok()) own.insert(can.name);
    if (!support.ok()) others.emplace(can.name, support.reason);
  }
  for (const Case& c : cells) {
    const auto other = others.find(c.kernel);
    if (own.contains(c.kernel) || other == others.end()) continue;
    const Support& gpu = Device::available(DeviceKind::cuda);
    throw_input_error("the kernel {} cannot be measured here: {}{}", c.kernel, other->second,
                      kind == DeviceKind::cpu && !gpu.ok() ? " (" + gpu.reason + ")" : "");
  }
}

/// Throws InputError for a kernel without a single cell that is ok, with the first reason.
void require_rates(std::span<const Record> records) {
  std::set<std::string> measured;
  for (const Record& record : records) {
    if (record.status.ok()) measured.insert(record.c.kernel);
  }
  for (const Record& record : records) {
    if (measured.contains(record.c.kernel)) continue;
    throw_input_error("the kernel {} has no cell that is ok: {}, {}", record.c.kernel,
                      to_string(record.status.code), record.status.reason);
  }
}

[[noreturn]] void end_interrupted() {
  fmt::print(stderr, "longca: interrupted; nothing is written\n");
  throw EndedEarly{exit_code_of_signal(InterruptGuard::signal())};
}

std::vector<calibrate::ProbeTime> measure_device(DeviceKind kind, double time_limit_s) {
  const std::int64_t free =
      kind == DeviceKind::cuda ? Device::get(kind).properties().memory_bytes : available_memory();
  const std::vector<std::string> command{"/proc/self/exe", "probe",
                                         "--device",       std::string(to_string(kind)),
                                         "--time-limit",   fmt::format("{}", time_limit_s)};
  try {
    auto times = ask_probes(command, calibrate::standard_probes(kind, free), kProbesLimit);
    if (InterruptGuard::signal() != 0) end_interrupted();
    return times;
  } catch (const SystemError&) {
    if (InterruptGuard::signal() != 0) end_interrupted();
    throw;
  }
}

/// "exchanges over peer and nccl among 2 ranks, ", or nothing.
std::string links_text(const LinkRequest& links) {
  if (links.ranks < 2 || links.transports.empty()) return "";
  return fmt::format("exchanges over {} among {} ranks, ", fmt::join(links.transports, " and "),
                     links.ranks);
}

std::vector<Round> measure_rounds(const CalibrateArguments& arguments, const Suite& suite,
                                  const CaseList& list, DeviceKind kind, LinkRequest& links) {
  const int rounds = static_cast<int>(arguments.rounds);
  RunOptions options;
  set_workers(options, arguments.plugins, list.cases);
  options.cell.limits = suite.limits;
  Progress progress(list.cases.size() * static_cast<std::size_t>(rounds),
                    arguments.progress_style());
  progress.tell_apart(list.cases);
  RoundListener listener(progress);
  std::vector<Round> measured;
  for (int round = 0; round < rounds; ++round) {
    if (!arguments.quiet) {
      fmt::print(stderr, "longca: round {} of {}: {}memory and matrix products, then {} cells\n",
                 round + 1, rounds, links_text(links), list.cases.size());
    }
    Round own;
    own.exchanges = measure_links(links, kind, suite.limits, round);
    if (InterruptGuard::signal() != 0) end_interrupted();
    own.probes = measure_device(kind, suite.limits.time_limit_s);
    progress.begin_round(round + 1, rounds);
    const std::vector<Case> order = order_of_round(list.cases, suite.axes.size(), round);
    if (!Runner(options).run(order, listener)) end_interrupted();
    own.records = listener.take();
    if (round == 0) require_rates(own.records);
    measured.push_back(std::move(own));
  }
  return measured;
}

void check_numbers(const CalibrateArguments& arguments) {
  if (arguments.rounds == 0 || arguments.rounds == 1) {
    throw_input_error("--rounds {}: a spread needs at least 2", arguments.rounds);
  }
  check_rounds(arguments.rounds);
  if (!(arguments.min_effect_pct >= 0 && arguments.min_effect_pct <= kMaxEffect)) {
    throw_input_error("--min-effect {} is not from 0 to {}", arguments.min_effect_pct, kMaxEffect);
  }
  if (arguments.check && (!arguments.out.empty() || arguments.force)) {
    throw InputError("--check writes nothing: give neither --out nor --force");
  }
}

void print_check(const cost::Platform& page, const cost::Platform& now, double min_effect) {
  const auto figures = calibrate::check_figures(page, now, min_effect);
  fmt::print("{}", calibrate::describe_check(page.name, figures));
  if (std::ranges::any_of(figures, &calibrate::CheckedFigure::has_moved)) throw VerdictFailed{};
}

/// Links are checked where the page has them, or where the command line asks for them.
void adapt_to_page(const cost::Platform& page, LinkRequest& links) {
  const bool has = calibrate::has_measured_links(page);
  if (!has && !links.asked) links = {};
  if (has && links.ranks < 2) {
    links.notices.push_back("the page's links are not checked: give -a ranks=N as it was written");
  }
}

void run_calibrate(CalibrateArguments arguments) {
  check_numbers(arguments);
  if (!arguments.kernels.empty()) arguments.axes.push_back("kernel=" + arguments.kernels);
  const DeviceKind kind = device_to_measure(arguments);
  calibrate::Machine machine = this_machine(kind);
  const std::string own_name = calibrate::platform_name_of(machine.card);
  const fs::path own_page = platforms_folder(kind) / (own_name + ".toml");
  cost::Platform page;
  if (arguments.check) {
    page = page_to_check(arguments, own_name, own_page);
    refuse_other_machine(page, machine);
    const auto kernels = calibrate::measured_kernels(page);
    if (arguments.kernels.empty() && !kernels.empty()) {
      arguments.axes.push_back(fmt::format("kernel={}", fmt::join(kernels, ",")));
    }
  }
  LinkRequest links = take_link_axes(arguments.axes, kind);
  if (arguments.check) adapt_to_page(page, links);
  machine.ranks = links.ranks;
  const Suite suite = cells_to_measure(arguments, kind);
  const CaseList list = expand(suite);
  refuse_other_devices(list.cases, kind);
  const fs::path path = arguments.check ? fs::path() : output_page(arguments, own_page);
  if (!arguments.check) {
    RunFiles files = arguments.files(suite);
    files.writes("--out", path);
    check_output(arguments, path);
  }
  for (const std::string& notice : links.notices) fmt::print(stderr, "longca: {}\n", notice);
  const InterruptGuard guard;
  const std::vector<Round> rounds = measure_rounds(arguments, suite, list, kind, links);
  const cost::Platform now =
      calibrate::fit_platform(cost::default_platform(), machine, rounds,
                              arguments.check ? page.name : path.stem().string());
  if (arguments.check) return print_check(page, now, arguments.min_effect_pct / 100);
  write_page(path, now);
  fmt::print("{}", calibrate::describe_platform(now));
  fmt::print("{} written; longca simulate --platform {} uses it\n", printable(path.string()),
             printable(path.string()));
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("calibrate", "Measures this machine's rates into a platform's page");
  auto arguments = std::make_shared<CalibrateArguments>();
  verb->add_option("--kernel", arguments->kernels, "default slice; on a CPU flash")
      ->type_name("LIST");
  verb->add_option("--out", arguments->out, "default configs/platforms/CARD.toml")
      ->type_name("FILE.toml");
  verb->add_flag("--force", arguments->force, "replace a page; NAME.toml.bak stays");
  verb->add_option("--check", arguments->page, "which rates have moved? exit 1 if any has")
      ->type_name("[FILE]")
      ->expected(0, 1);
  verb->add_option("--min-effect", arguments->min_effect_pct, "smaller changes are none (3)")
      ->type_name("PCT");
  verb->add_option("--rounds", arguments->rounds, "times that all is measured (3)")->type_name("N");
  verb->add_option("--time-limit", arguments->time_limit_s, "of timing one cell, as in bench")
      ->type_name("S");
  arguments->add_options(*verb);
  verb->footer(
      "Links: between all GPUs, or -a ranks=N; on a CPU only with -a ranks=N (MPI).\n"
      "Example: longca calibrate --kernel slice,cudnn --out mine.toml");
  verb->callback([arguments, verb] {
    arguments->check = verb->get_option("--check")->count() > 0;
    if (!arguments->check && verb->get_option("--min-effect")->count() > 0) {
      throw InputError("--min-effect is of --check");
    }
    run_calibrate(*arguments);
  });
}

void add_probe_worker(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("probe", "Measures a device, and sends the times over a socket")
          ->group("");
  auto socket = std::make_shared<int>(-1);
  auto device = std::make_shared<std::string>();
  auto limit = std::make_shared<double>(1);
  auto texts = std::make_shared<std::vector<std::string>>();
  verb->add_option("--socket", *socket, "number of the open socket")->required();
  verb->add_option("--device", *device, "cpu or cuda")->required();
  verb->add_option("--time-limit", *limit, "seconds of timing one probe");
  verb->add_option("PROBE", *texts, "what to measure")->required();
  verb->callback([=] {
    std::vector<calibrate::Probe> probes;
    for (const std::string& text : *texts) probes.push_back(calibrate::parse_probe(text));
    const DeviceKind kind = *device == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
    calibrate::answer_probes(*socket, probes, kind, *limit);
  });
}

}  // namespace longca
