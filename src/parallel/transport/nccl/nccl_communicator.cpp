#include "parallel/transport/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/cuda/error.h"
#include "core/cuda/rows.h"
#include "core/error.h"
#include "parallel/transport/nccl/nccl_interface.h"
#include "parallel/transport/nccl/nccl_library.h"
#include "parallel/transport/pushes.h"
#include "parallel/transport/rank_exchange.h"
#include "parallel/transport/transfer_rows.h"

namespace longca {
namespace {

/// A message and where it is staged.
struct NcclMessage {
  Transfer transfer;
  std::int64_t staged = -1;  ///< offset in the staging memory; −1: contiguous, sent in place
};

struct NcclGroup {
  std::vector<NcclMessage> sends;
  std::vector<NcclMessage> receives;
};

/// One nccl::Comm.
class NcclConnection {
 public:
  explicit NcclConnection(RankMessages& control) : rank_(control.rank()), size_(control.size()) {
    const bool complete = nccl.load(nccl_library().file);
    LONGCA_CHECK(complete, "{} lacks a function", nccl_library().path);
    Device::get(DeviceKind::cuda).stream();  // makes this process's device the current one
    nccl::UniqueId id{};
    if (rank_ == 0) check(nccl.get_unique_id(&id), "ncclGetUniqueId");
    id = exchange_records(control, id).front();
    check(nccl.init_rank(&comm, size_, id, rank_), "ncclCommInitRank");
  }
  ~NcclConnection() {
    if (comm == nullptr) return;
    // After an exception the other ranks may never come to the same point.
    if (std::uncaught_exceptions() > 0) {
      nccl.abort(comm);
    } else {
      cudaDeviceSynchronize();
      nccl.destroy(comm);
    }
  }
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void check(nccl::Result result, const char* call) const {
    if (result == nccl::kSuccess) [[likely]]
      return;
    throw std::runtime_error(fmt::format("rank {} of {}: {} failed: {}: {}", rank_, size_, call,
                                         nccl.error_string(result), nccl.last_error(comm)));
  }

  nccl::Functions nccl;
  nccl::Comm comm = nullptr;

 private:
  int rank_;
  int size_;
};

class NcclCommunicator : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<NcclConnection> connection)
      : device_(Device::get(DeviceKind::cuda)),
        connection_(std::move(connection)),
        nccl_(connection_->nccl),
        comm_(connection_->comm) {
    flag_ = static_cast<float*>(allocate(sizeof(float)));
  }

  std::string name() const override { return "nccl"; }
  int rank() const override { return connection_->rank(); }
  int size() const override { return connection_->size(); }
  std::string version() const override { return nccl_version_text(nccl_library().version); }

  void* allocate(std::int64_t bytes) override {
    const Buffer& buffer = buffers_.emplace_back(device_.memory(), bytes);
    device_.fill(buffer.data(), 0, bytes);
    device_.synchronize();
    return buffer.data();
  }

  int prepare(const TransferGroup& group) override {
    NcclGroup prepared;
    std::int64_t staged = 0;
    for (const Transfer& transfer : group.sends) prepared.sends.push_back(stage(transfer, staged));
    for (const Transfer& transfer : group.receives) {
      prepared.receives.push_back(stage(transfer, staged));
    }
    if (staged > staging_.bytes()) {
      LONGCA_CUDA(cudaDeviceSynchronize());  // the old staging memory may still be in use
      staging_ = Buffer();
      staging_ = Buffer(device_.memory(), staged);
    }
    groups_.push_back(std::move(prepared));
    return static_cast<int>(groups_.size()) - 1;
  }

  void map_sends(const AddressMap& map) override { map_ = &map; }

  void start(int group, Stream on) override {
    const auto stream = static_cast<cudaStream_t>(on);
    const NcclGroup& prepared = groups_[static_cast<std::size_t>(group)];
    const auto here = [&](void* data) { return map_ != nullptr ? map_->at(data) : data; };
    for (const NcclMessage& message : prepared.sends) {
      count_sent(message.transfer.bytes());
      if (message.staged < 0) continue;
      ByteRows from = byte_rows(message.transfer);
      from.data = here(from.data);
      copy_rows(from, packed(message), stream);
    }
    check(nccl_.group_start(), "ncclGroupStart");
    // A group that was started is ended, also where a call in it fails: what follows, abort too,
    // would be queued in it.
    nccl::Result sent = nccl::kSuccess;
    nccl::Result received = nccl::kSuccess;
    for (const NcclMessage& message : prepared.sends) {
      if (sent != nccl::kSuccess) break;
      sent = nccl_.send(here(packed(message).data), bytes(message), nccl::kInt8,
                        message.transfer.peer, comm_, stream);
    }
    for (const NcclMessage& message : prepared.receives) {
      if (sent != nccl::kSuccess || received != nccl::kSuccess) break;
      received = nccl_.receive(packed(message).data, bytes(message), nccl::kInt8,
                               message.transfer.peer, comm_, stream);
    }
    const nccl::Result ended = nccl_.group_end();
    check(sent, "ncclSend");
    check(received, "ncclRecv");
    check(ended, "ncclGroupEnd");
    for (const NcclMessage& message : prepared.receives) {
      if (message.staged >= 0) copy_rows(packed(message), byte_rows(message.transfer), stream);
    }
  }
  void finish(int /*group*/) override {}

  void barrier(Stream stream) override {
    check(nccl_.all_reduce(flag_, flag_, 1, nccl::kFloat32, nccl::kSum, comm_,
                           static_cast<cudaStream_t>(stream)),
          "ncclAllReduce");
  }

 private:
  static NcclMessage stage(const Transfer& transfer, std::int64_t& staged) {
    if (is_contiguous(transfer)) return {transfer, -1};
    const NcclMessage message{transfer, staged};
    staged += aligned(transfer.bytes());
    return message;
  }

  /// Returns the contiguous form of the message: staged, or in place.
  ByteRows packed(const NcclMessage& message) const {
    ByteRows rows = byte_rows(message.transfer);
    if (message.staged < 0) return rows;
    rows.data = staging_.as<std::byte>() + message.staged;
    rows.outer_stride = rows.row_bytes;
    return rows;
  }
  static std::size_t bytes(const NcclMessage& message) {
    return static_cast<std::size_t>(message.transfer.bytes());
  }

  void check(nccl::Result result, const char* call) const { connection_->check(result, call); }

  Device& device_;
  std::shared_ptr<NcclConnection> connection_;
  const nccl::Functions& nccl_;
  nccl::Comm comm_;
  std::vector<Buffer> buffers_;
  Buffer staging_;
  std::vector<NcclGroup> groups_;
  const AddressMap* map_ = nullptr;
  float* flag_ = nullptr;  ///< barriers all-reduce this zero
};

class NcclConnections : public CudaConnections {
 public:
  explicit NcclConnections(RankMessages& control)
      : connection_(std::make_shared<NcclConnection>(control)) {}
  std::unique_ptr<Communicator> make_communicator() override {
    return std::make_unique<NcclCommunicator>(connection_);
  }

 private:
  std::shared_ptr<NcclConnection> connection_;
};

}  // namespace

Support check_nccl() {
  return nccl_library().support;
}

std::unique_ptr<CudaConnections> make_nccl_connections(RankMessages& control) {
  return std::make_unique<NcclConnections>(control);
}

}  // namespace longca
