#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "advise/work.h"
#include "bench/record/record.h"
#include "report/data/time_interval.h"

namespace longca::advise {

/// The records of a file.
struct RecordSource {
  std::string file;
  std::vector<Record> records;
};

/// Reads the files, side by side. Throws as read_records does; a torn last line is left out.
std::vector<RecordSource> read_sources(std::span<const std::filesystem::path> files);

/// The record files (.jsonl, .jsonl.gz) of the checkout's results folder and of ./results, in order
/// of names; a folder's own folders too.
std::vector<std::filesystem::path> default_record_files();

/// A card or processor that records are of.
struct Card {
  std::string device;  ///< "cuda" or "cpu"
  std::string name;    ///< processor_of_case: "NVIDIA H200"

  bool operator==(const Card&) const = default;
};

/// The facts of masks on a card, by its platform's page (cost::platform_of_card): of a GPU with its
/// SMs; a processor's threads share items among them.
MaskFacts facts_of(const Card& card);

/// What this machine's own records are of: its GPU or, without one, its processor. `device` narrows
/// that, if it is not empty. Throws InputError if it is cuda and there is no GPU.
Card own_card(const std::string& device);

/// Whether the name of a card ("NVIDIA H200") has these words, whole ones and in this order: an H20
/// is no H200. Letters of either case.
bool card_is_named(const std::string& card, const std::string& words);

/// The first card of the records that is so named, of `device` if it is not empty.
std::optional<Card> find_card(std::span<const RecordSource> sources, const std::string& name,
                              const std::string& device);

/// Chooses among the cards of the records: the one that `asked` names (card_is_named), else this
/// machine's GPU, else the only GPU that there is, else the only one at all. `device` narrows the
/// choice, if it is not empty. Throws InputError that names those that there are and what to run,
/// and one for words that more than one card has.
Card choose_card(std::span<const RecordSource> sources, const std::string& asked,
                 const std::string& device);

/// The case as far as its time goes: where the mask draws nothing, the seed chooses inputs alone.
Case without_idle_seed(Case c);

/// One cell of a card.
struct EvidenceCell {
  Case c;
  Status status;
  std::optional<double> time_ms;
  std::optional<TimeInterval> interval;  ///< of time_ms; absent where too few repetitions ran
  std::optional<double> peak_bytes;
  std::string file;
  std::string at;
};

/// What records say of one card: the latest record of each case.
class Evidence {
 public:
  Evidence() = default;
  Evidence(std::span<const RecordSource> sources, Card card);

  const Card& card() const { return card_; }
  const std::vector<EvidenceCell>& cells() const { return cells_; }
  /// The record of exactly that case; nullptr without one.
  const EvidenceCell* find(const Case& c) const;
  /// The card's memory in bytes, if a record says it.
  std::optional<double> memory_bytes() const { return memory_bytes_; }

  /// The same without the cells for which `leaves_out` holds.
  template <typename LeavesOut>
  Evidence without(const LeavesOut& leaves_out) const {
    Evidence rest;
    rest.card_ = card_;
    rest.memory_bytes_ = memory_bytes_;
    for (const EvidenceCell& cell : cells_) {
      if (!leaves_out(cell)) rest.add(cell);
    }
    return rest;
  }

 private:
  void add(const EvidenceCell& cell);

  Card card_;
  std::optional<double> memory_bytes_;
  std::vector<EvidenceCell> cells_;
  std::unordered_map<std::string, std::size_t> by_key_;
};

}  // namespace longca::advise
