#include "advise/evidence.h"

#include <algorithm>
#include <cctype>
#include <future>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "bench/data_directory.h"
#include "bench/record/environment.h"
#include "bench/record/origin.h"
#include "core/error.h"

namespace longca::advise {
namespace {

namespace fs = std::filesystem;

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
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
  const std::string there =
      cards.empty() ? "none of a " + (device.empty() ? std::string("card") : device) + " device"
                    : "of " + card_names(cards);
  throw_input_error(
      "no record is of a card '{}', they are {}: run 'longca bench dense -a device={}' on one and "
      "give its file to --records, or over ranks 'longca calibrate' and its page to --platform",
      asked, there, device.empty() ? "cuda" : device);
}

std::optional<double> metric_in(const Record& record, const char* name) {
  const auto found = record.metrics.find(name);
  return found == record.metrics.end() ? std::nullopt : std::optional(found->second);
}

EvidenceCell cell_of(const Record& record, const std::string& file) {
  EvidenceCell cell{record.c, record.status, std::nullopt, 0, std::nullopt, file, record.at};
  if (!record.status.ok()) return cell;
  if (const auto time = metric_in(record, "time_ms"); time && *time > 0) cell.time_ms = time;
  cell.half_width = metric_in(record, "time_ci_pct").value_or(0) / 100;
  cell.peak_bytes = metric_in(record, "peak_bytes");
  return cell;
}

}  // namespace

std::vector<RecordSource> read_sources(std::span<const fs::path> files) {
  std::vector<std::future<RecordFile>> reading;
  for (const fs::path& file : files) {
    reading.push_back(std::async(std::launch::async, [&file] { return read_records(file); }));
  }
  std::vector<RecordSource> sources;
  for (std::size_t i = 0; i < files.size(); ++i) {
    sources.push_back({files[i].string(), reading[i].get().records});
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

Card own_card(const std::string& device) {
  Card card{"cuda", device == "cpu" ? "" : own_processor("cuda")};
  if (!card.name.empty()) return card;
  if (device == "cuda") throw InputError("device cuda: this machine has no GPU");
  return {"cpu", own_processor("cpu")};
}

bool card_is_named(const std::string& card, const std::string& part) {
  return in_lower_case(card).find(in_lower_case(part)) != std::string::npos;
}

std::optional<Card> find_card(std::span<const RecordSource> sources, const std::string& name,
                              const std::string& device) {
  for (Card& card : cards_of(sources, device)) {
    if (card_is_named(card.name, name)) return card;
  }
  return std::nullopt;
}

Card choose_card(std::span<const RecordSource> sources, const std::string& asked,
                 const std::string& device) {
  const std::vector<Card> cards = cards_of(sources, device);
  const std::string own = asked.empty() && device != "cpu" ? own_processor("cuda") : "";
  if (const std::string& name = asked.empty() ? own : asked; !name.empty()) {
    const auto found = find_card(sources, name, device);
    if (!found) throw_no_card(name, cards, device);
    return *found;
  }
  std::vector<Card> gpus;
  std::ranges::copy_if(cards, std::back_inserter(gpus),
                       [](const Card& card) { return card.device != "cpu"; });
  const std::vector<Card>& candidates = gpus.empty() ? cards : gpus;
  if (candidates.empty()) {
    throw InputError(
        "there is no record to advise from: run 'longca bench', or name files by --records");
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

const EvidenceCell* Evidence::find(const Case& c) const {
  const auto found = by_key_.find(c.key());
  return found == by_key_.end() ? nullptr : &cells_[found->second];
}

void Evidence::add(const EvidenceCell& cell) {
  const auto [place, is_new] = by_key_.try_emplace(cell.c.key(), cells_.size());
  if (is_new) {
    cells_.push_back(cell);
  } else if (cell.at >= cells_[place->second].at) {
    cells_[place->second] = cell;
  }
}

}  // namespace longca::advise
