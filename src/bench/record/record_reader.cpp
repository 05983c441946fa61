#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/record/record.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/output_file.h"
#include "core/strict_json.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

using nlohmann::json;

/// Deeper than any record is nested: such a line is refused before it can exhaust the stack.
constexpr int kMaxDepth = 64;
/// A compressed file may grow to kFreeGrowth however small it is, and beyond to kMaxGrowth times
/// its size. Files of records shrink to a tenth; deflate can make a thousandth of zeros.
constexpr std::size_t kFreeGrowth = std::size_t{64} << 20;
constexpr std::size_t kMaxGrowth = 200;
/// Lines are read before they are made records, side by side: so many, or up to a longer one.
constexpr std::size_t kLinesTogether = 256;
constexpr std::size_t kLongLine = std::size_t{1} << 20;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == line.npos;
}

/// Whether a last line without a newline is what a killed run has left of a record.
bool is_beginning_of_record(std::string_view line) {
  constexpr std::string_view kBegin = R"({"schema":)";
  return line.starts_with(kBegin) || kBegin.starts_with(line);
}

/// Makes records of a file's bytes as they come.
class RecordLines {
 public:
  explicit RecordLines(const std::string& name) : name_(name) {}

  void add(std::string_view bytes) {
    for (std::size_t newline = bytes.find('\n'); newline != bytes.npos;
         newline = bytes.find('\n')) {
      append(bytes.substr(0, newline));
      file_.whole_bytes += line_.size() + 1;
      add_line();
      bytes.remove_prefix(newline + 1);
    }
    append(bytes);
  }

  RecordFile finish() {
    // Any other last line without its newline counts as the others do: what is wrong with it is not
    // what a killed run leaves.
    file_.torn = !line_.empty() && is_beginning_of_record(line_) && is_cut_json(line_);
    if (!line_.empty() && !file_.torn) {
      file_.whole_bytes += line_.size();
      add_line();
    }
    make_records();
    return std::move(file_);
  }

 private:
  void append(std::string_view bytes) {
    if (line_.size() + bytes.size() > kMaxRecordBytes) {
      make_records();  // an earlier fault comes first
      throw_input_error("{}:{}: not a record of longca: the line is longer than {} MiB", name_,
                        number_, kMaxRecordBytes >> 20);
    }
    if (file_.whole_bytes + line_.size() + bytes.size() > kMaxRecordFileBytes) {
      make_records();
      throw_input_error("{} is larger than {} MiB, which is all that is read of a record file",
                        name_, kMaxRecordFileBytes >> 20);
    }
    line_ += bytes;
  }

  struct Line {
    std::string text;
    int number;
    std::optional<Record> record{};
    std::string fault{};
  };

  void add_line() {
    const bool is_long = line_.size() > kLongLine;
    if (!is_blank(line_)) lines_.push_back({std::move(line_), number_});
    line_.clear();
    ++number_;
    if (is_long || lines_.size() == kLinesTogether) make_records();
  }

  void make_records() {
    ThreadPool::global().parallel_for(std::ssize(lines_), [&](std::int64_t i, int) {
      Line& line = lines_[static_cast<std::size_t>(i)];
      try {
        line.record = to_record(parse_strict_json(line.text, kMaxDepth));
      } catch (const InputError& error) {
        line.fault = error.what();
      }
    });
    for (Line& line : lines_) {
      if (!line.record) {
        throw_input_error("{}:{}: not a record of longca: {}", name_, line.number, line.fault);
      }
      add_record(std::move(*line.record));
    }
    lines_.clear();
  }

  void add_record(Record&& record) {
    std::vector<Record>& records = file_.records;
    if (!records.empty() && *records.back().env == *record.env) record.env = records.back().env;
    records.push_back(std::move(record));
  }

  const std::string& name_;
  RecordFile file_;
  std::string line_;  ///< what has come of the current line
  int number_ = 1;
  std::vector<Line> lines_;  ///< whole ones that are no records yet
};

void check_growth(gzFile file, std::size_t unpacked, const std::string& name) {
  if (gzdirect(file) == 1 || unpacked <= kFreeGrowth) return;
  if (unpacked / kMaxGrowth <= static_cast<std::size_t>(gzoffset(file))) return;
  throw_input_error("{} unpacks to more than {} times its size: it holds other things than records",
                    name, kMaxGrowth);
}

}  // namespace

RecordFile parse_records(std::string_view text, const std::string& name) {
  RecordLines lines(name);
  lines.add(text);
  return lines.finish();
}

RecordFile read_records(int file, const std::string& name) {
  RecordLines lines(name);
  std::string block(1 << 16, '\0');
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(file, block.data(), block.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", name, errno);
    if (n == 0) return lines.finish();
    lines.add({block.data(), static_cast<std::size_t>(n)});
    at += n;
  }
}

RecordFile read_records(const std::filesystem::path& path) {
  const std::string name = path.string();
  FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw_file_error("read", path, errno);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw_file_error("read", path, EISDIR);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzdopen(descriptor.get(), "rb"), gzclose);
  if (file == nullptr) throw_file_error("read", path, ENOMEM);
  static_cast<void>(descriptor.release());  // gzclose closes it
  RecordLines lines(name);
  std::string block(1 << 16, '\0');
  std::size_t unpacked = 0;
  while (true) {
    errno = 0;
    const int n = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (n > 0) {
      unpacked += static_cast<std::size_t>(n);
      check_growth(file.get(), unpacked, name);
      lines.add({block.data(), static_cast<std::size_t>(n)});
    }
    if (n == static_cast<int>(block.size())) continue;
    int code = Z_OK;
    const std::string_view fault = gzerror(file.get(), &code);
    if (code == Z_ERRNO) throw_file_error("read", path, errno);
    if (code != Z_OK && code != Z_STREAM_END) {
      // Without zlib's own name of the file, "<fd:3>: ".
      const std::size_t end = fault.find(": ");
      throw_input_error("cannot read {}: {}", name,
                        end == std::string_view::npos ? fault : fault.substr(end + 2));
    }
    if (n == 0) return lines.finish();
  }
}

}  // namespace longca
