#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

/// The bytes of a file, unpacked where it is compressed by gzip: one member or several, one behind
/// the other, and nothing behind them.
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_.is_open()) throw_file_error("read", path, errno);
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) throw_file_error("read", path, EISDIR);
    while (left_ < kMagic.size() && fill()) continue;
    is_packed_ = starts_member();
    // 15: the largest window; 16: with a header and a checksum of gzip.
    if (is_packed_ && inflateInit2(&stream_, 15 + 16) != Z_OK) {
      throw_file_error("read", path, ENOMEM);
    }
  }
  ~UnpackedFile() {
    if (is_packed_) inflateEnd(&stream_);
  }
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  /// The next bytes, valid until the next call; none at the end.
  std::string_view next() {
    if (is_packed_) return next_unpacked();
    if (left_ == 0) fill();
    return {in_.data() + begin_, std::exchange(left_, 0)};
  }

 private:
  static constexpr std::string_view kMagic = "\x1f\x8b";

  bool starts_member() const {
    return std::string_view(in_.data() + begin_, left_).starts_with(kMagic);
  }

  /// Reads on behind what is left; false at the file's end.
  bool fill() {
    std::copy_n(in_.begin() + static_cast<std::ptrdiff_t>(begin_), left_, in_.begin());
    begin_ = 0;
    ssize_t n = 0;
    do {
      n = ::read(file_.get(), in_.data() + left_, in_.size() - left_);
    } while (n < 0 && errno == EINTR);
    if (n < 0) throw_file_error("read", path_, errno);
    left_ += static_cast<std::size_t>(n);
    packed_bytes_ += static_cast<std::size_t>(n);
    return n > 0;
  }

  std::string_view next_unpacked() {
    while (true) {
      if (!in_member_ && !begin_member()) return {};
      if (left_ == 0 && !fill()) fail("unexpected end of file");
      stream_.next_in = reinterpret_cast<unsigned char*>(in_.data() + begin_);
      stream_.avail_in = static_cast<unsigned>(left_);
      stream_.next_out = reinterpret_cast<unsigned char*>(out_.data());
      stream_.avail_out = static_cast<unsigned>(out_.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      begin_ += left_ - stream_.avail_in;
      left_ = stream_.avail_in;
      if (code == Z_STREAM_END) {
        in_member_ = false;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        fail(stream_.msg != nullptr ? stream_.msg : "it is no valid gzip file");
      }
      const std::size_t n = out_.size() - stream_.avail_out;
      unpacked_bytes_ += n;
      check_growth();
      if (n > 0) return {out_.data(), n};
    }
  }

  /// False at the file's end, which zeros may pad. Others would ignore what is no member, and with
  /// it all records there.
  bool begin_member() {
    while (left_ < kMagic.size() && fill()) continue;
    if (left_ == 0 || skip_zeros()) return false;
    if (!starts_member()) {
      fail(fmt::format("what follows its first {} bytes, which are compressed, is not compressed",
                       packed_bytes_ - left_));
    }
    inflateReset(&stream_);
    in_member_ = true;
    return true;
  }

  /// Whether all that is left is zeros.
  bool skip_zeros() {
    while (in_[begin_] == '\0') {
      ++begin_;
      if (--left_ == 0 && !fill()) return true;
    }
    return false;
  }

  void check_growth() const {
    if (unpacked_bytes_ <= kFreeGrowth) return;
    if (unpacked_bytes_ / kMaxGrowth <= packed_bytes_ - left_) return;
    throw_input_error(
        "{} unpacks to more than {} times its size: it holds other things than records",
        path_.string(), kMaxGrowth);
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw_input_error("cannot read {}: {}", path_.string(), why);
  }

  const std::filesystem::path& path_;
  FileDescriptor file_;
  std::vector<char> in_ = std::vector<char>(1 << 16);
  std::vector<char> out_ = std::vector<char>(1 << 16);
  std::size_t begin_ = 0;  ///< of what of in_ is left
  std::size_t left_ = 0;
  std::size_t packed_bytes_ = 0;  ///< read
  std::size_t unpacked_bytes_ = 0;
  z_stream stream_{};
  bool is_packed_ = false;
  bool in_member_ = false;
};

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
  UnpackedFile file(path);
  RecordLines lines(name);
  for (std::string_view bytes = file.next(); !bytes.empty(); bytes = file.next()) lines.add(bytes);
  return lines.finish();
}

}  // namespace longca
