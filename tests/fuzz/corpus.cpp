// fuzz_corpus DIR CONFIGS: writes what the fuzz targets start from, a folder for each. CONFIGS has
// the suites, and pages of platforms and clusters.

#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/ranks/protocol.h"
#include "bench/suite/axes.h"
#include "cost/platform.h"
#include "fuzz.h"
#include "mask/generators.h"
#include "mask/mask_json.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "support/temp_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace longca;
using namespace longca::testing;
using nlohmann::json;

/// Adds texts to one target's folder.
class Seeds {
 public:
  Seeds(const fs::path& directory, const char* target) : folder_(directory / target) {
    fs::create_directories(folder_);
  }
  void add(const std::string& text) { write_file(next(), text); }
  fs::path next() { return folder_ / fmt::format("seed{:03}", number_++); }

 private:
  fs::path folder_;
  int number_ = 0;
};

/// One record of each kind, and files of several.
std::vector<std::string> record_files() {
  std::vector<std::string> files;
  for (const auto& records : {sample_records(), over_ranks_records(), sparse_records(),
                              selected_records(), traced_records()}) {
    std::string several;
    for (std::size_t i = 0; i < std::min<std::size_t>(records.size(), 6); ++i) {
      several += to_line(records[i]) + '\n';
      if (i < 2) files.push_back(to_line(records[i]) + '\n');
    }
    files.push_back(several);
  }
  return files;
}

void write_compressed(const fs::path& path, const std::string& text) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "wb"), gzclose);
  gzwrite(file.get(), text.data(), static_cast<unsigned>(text.size()));
}

void write_records(const fs::path& directory) {
  Seeds records(directory, "records");
  Seeds plots(directory, "plots");
  Seeds comparisons(directory, "comparisons");
  Seeds compressed(directory, "gz");
  for (const std::string& text : record_files()) {
    records.add(text);
    plots.add(text);
    comparisons.add(text + text);
    compressed.add(text);
    write_compressed(compressed.next(), text);
  }
}

/// A message as it goes over a socket.
std::string line(const json& message) {
  return fmt::format("{} {}\n", fuzz::kSecret, message.dump());
}

void write_messages(const fs::path& directory) {
  const Record record = sample_records()[0];
  Seeds worker(directory, "worker_messages");
  worker.add(line({{"stage", "forward"}}));
  worker.add(line({{"stage", "set-up"}}) + line({{"record", record}, {"ends", false}}));
  worker.add(line({{"record", sample_records()[1]}, {"ends", true}}));
  Seeds ranks(directory, "rank_messages");
  RankHello hello;
  hello.ranks = 2;
  ranks.add(line({{"hello", hello}}));
  ranks.add(line({{"hello", hello}}) + line({{"ready", true}}) + line({{"stage", "forward"}}) +
            line({{"record", over_ranks_records()[0]}, {"ends", false}}));
  ranks.add(line({{"hello", hello}}) + line({{"refused", "rank 1 runs commit a of longca"}}));
}

void write_texts(const fs::path& directory, const fs::path& configs) {
  Seeds suites(directory, "suites");
  for (const auto& entry : fs::directory_iterator(configs)) {
    if (entry.path().extension() == ".toml") suites.add(read_file(entry.path()));
  }
  suites.add(
      "description = \"a\"\n[axes]\nmask = [\"causal\", \"document\"]\ntokens = [64, "
      "\"1K:2K:x2\"]\n"
      "[[exceptions]]\nwhen = { mask = \"causal\", tokens = 64 }\nskip = \"small\"\n"
      "[[exceptions]]\nwhen = { pass = \"backward\" }\nset = { dtype = \"float32\" "
      "}\n[run]\ntime_limit_s = 2\n");
  Seeds axes(directory, "axes");
  for (const Axis& axis : axis_table()) {
    axes.add(axis.name + '=' + axis.standard);
    axes.add(axis.name + "=all,found,auto");
  }
  for (const char* text : {"tokens=1K:64K:x2,3000,1M", "heads=64:8,8", "density=0.25,1e-3",
                           "tokens_per_rank=4K", "seed=9223372036854775807"}) {
    axes.add(text);
  }
  Seeds hosts(directory, "hostfiles");
  hosts.add("node1 slots=8\nnode2 slots=8 max_slots=16 # the last\n\n");
  hosts.add("# none\nlocalhost\n127.0.0.1 slots=2\n");
  Seeds output(directory, "launcher_output");
  const std::string rule(74, '-');
  output.add(rule +
             "\nmpirun noticed that process rank 1 with PID 0 on node a exited on signal 11 "
             "(Segmentation fault).\n" +
             rule + "\n");
  output.add(rule + "\n  Process name: [[1,1],1]\n  Exit code:    3\n" + rule +
             "\n[a:1] trace\nsaid\n");
  output.add(rule +
             "\nMPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode "
             "1.\n" +
             rule + "\n");
  output.add("srun: error: node1: task 3: Exited with exit code 1\nslurmstepd: error\n");
}

/// Every mask, small, and lengths as text and as .npy.
void write_own_files(const fs::path& directory) {
  Seeds masks(directory, "own_masks");
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 60;
    spec.window = 7;
    spec.block_tokens = spec.block = 16;
    spec.heads_q = spec.heads_k = 2;
    std::ostringstream text;
    write_mask_json(text, generate_mask(spec), spec);
    masks.add(text.str());
  }
  Seeds lengths(directory, "own_lengths");
  lengths.add("30 34\n7,1\n");
  for (const auto& [type, element] : {std::pair{"<i4", 4}, {"<i8", 8}, {"<u4", 4}, {"<u8", 8}}) {
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,), }}", type);
    header.resize(117, ' ');
    const std::string number = '\5' + std::string(static_cast<std::size_t>(element) - 1, '\0');
    lengths.add(std::string("\x93NUMPY\1\0v\0", 10) + header + "\n" + number + number);
  }
}

/// Pages of platforms and clusters, and `--set`.
void write_pages(const fs::path& directory, const fs::path& configs) {
  Seeds pages(directory, "platforms");
  for (const char* folder : {"platforms", "clusters"}) {
    for (const auto& entry : fs::directory_iterator(configs / folder)) {
      if (entry.path().extension() == ".toml") pages.add(read_file(entry.path()));
    }
  }
  pages.add(cost::to_toml(cost::default_platform()) +
            "[rates.fa3.forward]\nmeasured = \"here\"\nflops_per_second = 5e12\nkeys_per_row = "
            "64\nseconds_per_call = 1e-5\n[messages.mpi.ring]\nmeasured = \"here\"\n1024 = "
            "1e-5\n[spread]\n\"rates.fa3.forward.keys_per_row\" = 0.1\n");
  pages.add("fabric.nics=2");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: fuzz_corpus DIR CONFIGS\n", stderr);
    return 2;
  }
  const fs::path directory = argv[1];
  write_records(directory);
  write_messages(directory);
  write_texts(directory, argv[2]);
  write_own_files(directory);
  write_pages(directory, argv[2]);
  return 0;
}
