#include "parallel/transport/mpi/mpi_control.h"

#include <algorithm>
#include <cstddef>

#include "core/error.h"
#include "parallel/transport/mpi/mpi_call.h"

namespace longca {
namespace {

constexpr int kControlTag = 1;
constexpr int kReadyTag = 2;
/// Larger messages (bytes) are polled without sleeping at both ends: MPI moves one fragment per
/// call, so sleeps in between would limit them to about 100 MB/s.
constexpr std::int64_t kLarge = std::int64_t{64} << 10;
/// Max bytes of one MPI message, whose count is an int.
constexpr std::int64_t kPiece = std::int64_t{1} << 30;

/// Calls piece(pointer, count) for consecutive parts of at most kPiece bytes.
template <typename Byte, typename Piece>
void in_pieces(Byte* data, std::int64_t bytes, const Piece& piece) {
  for (std::int64_t done = 0; done < bytes; done += kPiece) {
    piece(data + done, static_cast<int>(std::min(kPiece, bytes - done)));
  }
}

}  // namespace

MpiControl::MpiControl(MPI_Comm comm) : comm_(comm) {
  LONGCA_MPI(MPI_Comm_rank(comm_, &rank_));
  LONGCA_MPI(MPI_Comm_size(comm_, &size_));
}

void MpiControl::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Ibarrier(comm_, &request));
  wait_for(request, Wait::patient);
}

double MpiControl::reduce(double value, MPI_Op operation) {
  double result = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, operation, comm_, &request));
  wait_for(request, Wait::patient);
  return result;
}

double MpiControl::max(double value) {
  return reduce(value, MPI_MAX);
}

double MpiControl::sum(double value) {
  return reduce(value, MPI_SUM);
}

double MpiControl::broadcast(double value) {
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Ibcast(&value, 1, MPI_DOUBLE, 0, comm_, &request));
  wait_for(request, Wait::patient);
  return value;
}

std::string MpiControl::broadcast(const std::string& text) {
  std::string result = text;
  auto bytes = static_cast<std::int64_t>(text.size());
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Ibcast(&bytes, 1, MPI_INT64_T, 0, comm_, &request));
  wait_for(request, Wait::patient);
  result.resize(static_cast<std::size_t>(bytes));
  in_pieces(result.data(), bytes, [&](char* data, int count) {
    LONGCA_MPI(MPI_Ibcast(data, count, MPI_CHAR, 0, comm_, &request));
    wait_for(request, Wait::patient);
  });
  return result;
}

std::vector<double> MpiControl::gather(double value) {
  std::vector<double> values(static_cast<std::size_t>(rank_ == 0 ? size_ : 0));
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Igather(&value, 1, MPI_DOUBLE, values.data(), 1, MPI_DOUBLE, 0, comm_, &request));
  wait_for(request, Wait::patient);
  return values;
}

std::vector<std::string> MpiControl::gather(const std::string& text) {
  const std::vector<double> sizes = gather(static_cast<double>(text.size()));
  if (rank_ != 0) {
    send(0, text.data(), static_cast<std::int64_t>(text.size()));
    return {};
  }
  std::vector<std::string> texts{text};
  for (int from = 1; from < size_; ++from) {
    std::string& one = texts.emplace_back();
    one.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(from)]));
    receive(from, one.data(), static_cast<std::int64_t>(one.size()));
  }
  return texts;
}

void MpiControl::send(int to, const void* data, std::int64_t bytes) {
  LONGCA_CHECK(to != rank_, "rank {} sends to itself", rank_);
  MPI_Request request = MPI_REQUEST_NULL;
  if (bytes > kLarge) {  // sleeps until the receiver is ready; from then on both ends poll
    LONGCA_MPI(MPI_Irecv(nullptr, 0, MPI_BYTE, to, kReadyTag, comm_, &request));
    wait_for(request, Wait::patient);
  }
  in_pieces(static_cast<const std::byte*>(data), bytes, [&](const std::byte* piece, int count) {
    LONGCA_MPI(MPI_Isend(piece, count, MPI_BYTE, to, kControlTag, comm_, &request));
    wait_for(request, bytes > kLarge ? Wait::eager : Wait::patient);
  });
}

void MpiControl::receive(int from, void* data, std::int64_t bytes) {
  LONGCA_CHECK(from != rank_, "rank {} receives from itself", rank_);
  MPI_Request request = MPI_REQUEST_NULL;
  if (bytes > kLarge) {
    LONGCA_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, from, kReadyTag, comm_, &request));
    wait_for(request, Wait::patient);
  }
  in_pieces(static_cast<std::byte*>(data), bytes, [&](std::byte* piece, int count) {
    LONGCA_MPI(MPI_Irecv(piece, count, MPI_BYTE, from, kControlTag, comm_, &request));
    wait_for(request, bytes > kLarge ? Wait::eager : Wait::patient);
  });
}

}  // namespace longca
