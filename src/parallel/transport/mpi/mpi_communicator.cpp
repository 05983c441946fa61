#include "parallel/transport/mpi/mpi_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "parallel/transport/mpi/mpi_call.h"
#include "parallel/transport/pushes.h"

namespace longca {
namespace {

constexpr int kTag = 2;

/// An owned, committed MPI datatype.
class Datatype {
 public:
  Datatype() = default;
  ~Datatype() {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }
  Datatype(Datatype&& other) noexcept : type(std::exchange(other.type, MPI_DATATYPE_NULL)) {}
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;

  MPI_Datatype type = MPI_DATATYPE_NULL;
};

Datatype contiguous(int count, MPI_Datatype of) {
  Datatype result;
  LONGCA_MPI(MPI_Type_contiguous(count, of, &result.type));
  return result;
}

/// Consecutive bytes; more than INT_MAX become blocks of 1 GiB and a rest.
Datatype run_of(std::int64_t bytes) {
  constexpr std::int64_t kMaxCount = std::numeric_limits<int>::max();
  constexpr std::int64_t kPiece = std::int64_t{1} << 30;
  if (bytes <= kMaxCount) return contiguous(static_cast<int>(bytes), MPI_BYTE);
  const Datatype piece = contiguous(static_cast<int>(kPiece), MPI_BYTE);
  const std::int64_t pieces = bytes / kPiece;
  std::array<int, 2> counts{static_cast<int>(pieces), static_cast<int>(bytes % kPiece)};
  std::array<MPI_Aint, 2> offsets{0, pieces * kPiece};
  std::array<MPI_Datatype, 2> types{piece.type, MPI_BYTE};
  Datatype result;
  LONGCA_MPI(MPI_Type_create_struct(2, counts.data(), offsets.data(), types.data(), &result.type));
  return result;
}

Datatype strided(const Transfer& transfer) {
  LONGCA_CHECK(transfer.rows <= std::numeric_limits<int>::max(), "{} rows in one message",
               transfer.rows);
  const Datatype row = run_of(transfer.row_bytes);
  Datatype result;
  LONGCA_MPI(MPI_Type_create_hvector(static_cast<int>(transfer.rows), 1, transfer.stride_bytes,
                                     row.type, &result.type));
  return result;
}

Datatype type_of(const Transfer& transfer) {
  Datatype result = is_contiguous(transfer) ? run_of(transfer.bytes()) : strided(transfer);
  LONGCA_MPI(MPI_Type_commit(&result.type));
  return result;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm) {
  LONGCA_MPI(MPI_Comm_dup(comm, &comm_));
  LONGCA_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  LONGCA_MPI(MPI_Comm_rank(comm_, &rank_));
  LONGCA_MPI(MPI_Comm_size(comm_, &size_));
}

MpiCommunicator::~MpiCommunicator() {
  for (Prepared& group : groups_) {
    for (MPI_Request& request : group.requests) MPI_Request_free(&request);
  }
  MPI_Comm_free(&comm_);
}

std::string MpiCommunicator::version() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  LONGCA_MPI(MPI_Get_library_version(text.data(), &length));
  // "Open MPI v4.1.4, package: …": the rest names the packager.
  const std::string whole(text.data());
  return whole.substr(0, whole.find_first_of(",\n"));
}

void* MpiCommunicator::allocate(std::int64_t bytes) {
  Buffer& buffer = memory_.emplace_back(Device::get(DeviceKind::cpu).memory(), bytes);
  if (bytes > 0) std::memset(buffer.data(), 0, static_cast<std::size_t>(bytes));
  return buffer.data();
}

int MpiCommunicator::prepare(const TransferGroup& group) {
  Prepared& made = groups_.emplace_back();
  // Receives first, so that messages find a posted buffer. MPI keeps a datatype alive as long as a
  // request uses it.
  for (const Transfer& transfer : group.receives) {
    LONGCA_MPI(MPI_Recv_init(transfer.data, 1, type_of(transfer).type, transfer.peer, kTag, comm_,
                             &made.requests.emplace_back(MPI_REQUEST_NULL)));
  }
  for (const Transfer& transfer : group.sends) {
    LONGCA_MPI(MPI_Send_init(transfer.data, 1, type_of(transfer).type, transfer.peer, kTag, comm_,
                             &made.requests.emplace_back(MPI_REQUEST_NULL)));
    if (transfer.peer != rank_) made.bytes_to_others += transfer.bytes();
  }
  return static_cast<int>(groups_.size()) - 1;
}

MpiCommunicator::Prepared& MpiCommunicator::prepared(int group) {
  LONGCA_CHECK(group >= 0 && group < static_cast<int>(groups_.size()), "no group {}", group);
  return groups_[static_cast<std::size_t>(group)];
}

void MpiCommunicator::start(int group, Stream /*stream*/) {
  Prepared& started = prepared(group);
  LONGCA_CHECK(!started.in_flight, "group {} is in flight", group);
  // Not MPI_Startall: it may start requests in any order, and order is what matches messages.
  for (MPI_Request& request : started.requests) LONGCA_MPI(MPI_Start(&request));
  started.in_flight = true;
  count_sent(started.bytes_to_others);
}

void MpiCommunicator::finish(int group) {
  Prepared& started = prepared(group);
  wait_until(Wait::eager, [&] {
    int done = 0;
    LONGCA_MPI(MPI_Testall(static_cast<int>(started.requests.size()), started.requests.data(),
                           &done, MPI_STATUSES_IGNORE));
    return done != 0;
  });
  started.in_flight = false;
}

void MpiCommunicator::progress() {
  for (Prepared& group : groups_) {
    if (!group.in_flight) continue;
    int done = 0;
    LONGCA_MPI(MPI_Testall(static_cast<int>(group.requests.size()), group.requests.data(), &done,
                           MPI_STATUSES_IGNORE));
  }
}

void MpiCommunicator::barrier(Stream /*stream*/) {
  MPI_Request request = MPI_REQUEST_NULL;
  LONGCA_MPI(MPI_Ibarrier(comm_, &request));
  wait_for(request, Wait::eager);
}

}  // namespace longca
