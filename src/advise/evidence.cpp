#include "advise/evidence.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <system_error>
#include <utility>

#include "bench/data_directory.h"
#include "bench/record/environment.h"
#include "bench/record/origin.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/thread_pool.h"
#include "cost/platform.h"
#include "mask/generators.h"

namespace longca::advise {
namespace {

namespace fs = std::filesystem;

/// " nvidia a100 sxm4 80gb ": the words of a name in lower case, each between spaces.
std::string words_of(const std::string& name) {
  std::string words = " ";
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    const bool separates = letter < 0x80 && std::isalnum(letter) == 0;
    if (!separates) {
      words += static_cast<char>(std::tolower(letter));
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  return words.back() == ' ' ? words : words + ' ';
}

bool is_record_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
}

void add_files(const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error) && is_record_file(at->path())) found.push_back(at->path());
  }
  std::ranges::sort(found);
  for (const fs::path& file : found) {
    const fs::path near = fs::proximate(file, error);
    files.push_back(near.empty() || near.begin()->string() == ".." ? file : near);
  }
}

std::vector<Card> cards_of(std::span<const RecordSource> sources, const std::string& device) {
  std::vector<Card> cards;
  for (const RecordSource& source : sources) {
    for (const Record& record : source.records) {
      if (!device.empty() && record.c.device != device) continue;
      Card card{record.c.device, processor_of_case(record)};
      if (!card.name.empty() && std::ranges::find(cards, card) == cards.end()) {
        cards.push_back(std::move(card));
      }
    }
  }
  return cards;
}

/// "NVIDIA H100, NVIDIA H200"; of many the first, and how many more.
std::string card_names(const std::vector<Card>& cards) {
  constexpr std::size_t kNamed = 10;
  std::string text;
  for (const Card& card : std::span(cards).first(std::min(cards.size(), kNamed))) {
    text += (text.empty() ? "" : ", ") + card.name;
  }
  if (cards.size() > kNamed) text += fmt::format(" and {} more", cards.size() - kNamed);
  return text;
}

/// As records of this machine name it; "" without such a device.
std::string own_processor(const std::string& device) {
  Record record;
  record.c.device = device;
  record.env = collect_environment();
  return processor_of_case(record);
}

[[noreturn]] void throw_no_card(const std::string& asked, const std::vector<Card>& cards,
                                const std::string& device) {
  const std::string there = !cards.empty()   ? "they are of " + card_names(cards)
                            : device.empty() ? "there are none at all"
                                             : "there are none of device " + device;
  std::vector<std::string> known;
  for (const Card& card : cards) {
    known.push_back(card.name);
    std::istringstream words(card.name);
    known.insert(known.end(), std::istream_iterator<std::string>(words), {});
  }
  throw_input_error(
      "no record is of a card '{}'{}, {}: run 'longca bench dense -a device={}' on one "
      "and give its file to --records, or over ranks 'longca calibrate' and its page to --platform",
      asked, suggestion(asked, known), there, device.empty() ? "cuda" : device);
}

std::optional<double> metric_in(const Record& record, const char* name) {
  const auto found = record.metrics.find(name);
  return found == record.metrics.end() ? std::nullopt : std::optional(found->second);
}

EvidenceCell cell_of(const Record& record, const std::string& file) {
  EvidenceCell cell{record.c,     record.status, std::nullopt, std::nullopt,
                    std::nullopt, file,          record.at};
  if (!record.status.ok()) return cell;
  if (const auto time = metric_in(record, "time_ms"); time && *time > 0) cell.time_ms = time;
  if (cell.time_ms) cell.interval = interval_of_time(record);
  cell.peak_bytes = metric_in(record, "peak_bytes");
  return cell;
}

/// The cards that `words` name; only the one whose whole name they are, if there is one.
std::vector<Card> cards_named(const std::vector<Card>& cards, const std::string& words) {
  std::vector<Card> named;
  for (const Card& card : cards) {
    if (words_of(card.name) == words_of(words)) return {card};
    if (card_is_named(card.name, words)) named.push_back(card);
  }
  return named;
}

}  // namespace

std::vector<RecordSource> read_sources(std::span<const fs::path> files) {
  std::vector<RecordSource> sources(files.size());
  std::vector<std::exception_ptr> errors(files.size());
  ThreadPool::global().parallel_for(std::ssize(files), [&](std::int64_t i, int /*worker*/) {
    const auto at = static_cast<std::size_t>(i);
    try {
      sources[at] = {files[at].string(), read_records(files[at]).records};
    } catch (...) {
      errors[at] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {  // the first one, however threads are scheduled
    if (error) std::rethrow_exception(error);
  }
  return sources;
}

std::vector<fs::path> default_record_files() {
  std::vector<fs::path> files;
  const fs::path ours = data_directory() / "results";
  add_files(ours, files);
  std::error_code error;
  if (!fs::equivalent(ours, "results", error)) add_files("results", files);
  return files;
}

MaskFacts facts_of(const Card& card) {
  const cost::Platform& platform = cost::platform_of_card(card.name);
  return MaskFacts(card.device == "cpu" ? 1 : platform.device.sms, platform);
}

Card own_card(const std::string& device) {
  Card card{"cuda", device == "cpu" ? "" : own_processor("cuda")};
  if (!card.name.empty()) return card;
  if (device == "cuda") throw InputError("device cuda: this machine has no GPU");
  return {"cpu", own_processor("cpu")};
}

bool card_is_named(const std::string& card, const std::string& words) {
  return words_of(card).find(words_of(words)) != std::string::npos;
}

std::optional<Card> find_card(std::span<const RecordSource> sources, const std::string& name,
                              const std::string& device) {
  const std::vector<Card> named = cards_named(cards_of(sources, device), name);
  return named.empty() ? std::nullopt : std::optional(named.front());
}

Card choose_card(std::span<const RecordSource> sources, const std::string& asked,
                 const std::string& device) {
  const std::vector<Card> cards = cards_of(sources, device);
  const std::string own = asked.empty() && device != "cpu" ? own_processor("cuda") : "";
  if (const std::string& name = asked.empty() ? own : asked; !name.empty()) {
    const std::vector<Card> named = cards_named(cards, name);
    if (named.empty()) throw_no_card(name, cards, device);
    if (named.size() > 1) {
      throw_input_error("the records are of {}: '{}' names more than one of them",
                        card_names(named), name);
    }
    return named.front();
  }
  std::vector<Card> gpus;
  std::ranges::copy_if(cards, std::back_inserter(gpus),
                       [](const Card& card) { return card.device != "cpu"; });
  const std::vector<Card>& candidates = gpus.empty() ? cards : gpus;
  if (candidates.empty()) {
    throw_input_error(
        "there is no record{} to advise from: run 'longca bench', or name files by --records",
        device.empty() ? "" : " of device " + device);
  }
  if (candidates.size() > 1) {
    throw_input_error("the records are of {}: choose one by --platform", card_names(candidates));
  }
  return candidates.front();
}

Evidence::Evidence(std::span<const RecordSource> sources, Card card) : card_(std::move(card)) {
  for (const RecordSource& source : sources) {
    for (const Record& record : source.records) {
      if (record.c.device != card_.device || processor_of_case(record) != card_.name) continue;
      add(cell_of(record, source.file));
      const nlohmann::json::json_pointer place("/gpus/0/memory_bytes");
      if (!memory_bytes_ && card_.device != "cpu" && record.env.contains(place) &&
          record.env.at(place).is_number()) {
        memory_bytes_ = record.env.at(place).get<double>();
      }
    }
  }
}

Case without_idle_seed(Case c) {
  const auto traits = std::ranges::find(mask_table(), c.mask, &MaskTraits::name);
  if (traits != mask_table().end() && !traits->uses_seed) c.seed = Case{}.seed;
  return c;
}

const EvidenceCell* Evidence::find(const Case& c) const {
  const auto found = by_key_.find(without_idle_seed(c).key());
  return found == by_key_.end() ? nullptr : &cells_[found->second];
}

void Evidence::add(const EvidenceCell& cell) {
  const auto [place, is_new] = by_key_.try_emplace(without_idle_seed(cell.c).key(), cells_.size());
  if (is_new) {
    cells_.push_back(cell);
  } else if (cell.at >= cells_[place->second].at) {
    cells_[place->second] = cell;
  }
}

}  // namespace longca::advise
