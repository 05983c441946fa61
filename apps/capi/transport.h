#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory.h"
#include "longca.h"
#include "parallel/transport/communicator.h"

namespace longca::capi {

/// Messages that the caller's functions move, between host memories. Gaps are packed here, so that
/// a message is a run of bytes.
class CallersCommunicator final : public Communicator {
 public:
  CallersCommunicator(const longca_transport& transport, int rank, int size)
      : transport_(transport), rank_(rank), size_(size) {}

  std::string name() const override { return "caller"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string version() const override { return ""; }
  void* allocate(std::int64_t bytes) override;
  int prepare(const TransferGroup& group) override;
  void start(int group, Stream stream) override;
  void finish(int group) override;
  void barrier(Stream stream) override;

 private:
  /// A transfer and the run of bytes that travels for it.
  struct Packed {
    Transfer transfer;
    Buffer staging;  ///< empty where the transfer has no gaps
    void copy(bool out) const;
  };
  struct Group {
    std::vector<Packed> sends, receives;
    std::vector<longca_message> send_messages, receive_messages;
  };
  static void add(const Transfer& transfer, std::vector<Packed>& packed,
                  std::vector<longca_message>& messages);
  Group& group(int number);
  int prepare_barrier();

  longca_transport transport_;
  int rank_;
  int size_;
  std::vector<Buffer> memory_;
  std::vector<Group> groups_;
  int barrier_ = -1;  ///< its group, from the first barrier on
};

}  // namespace longca::capi
