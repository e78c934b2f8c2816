// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nccl_check/plug_in.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <sys/mman.h>
#include <vector>

namespace weir::nccl_check {

/// NCCL's numbers: ncclDataType_t from 0 to 11, ncclRedOp_t from 0 to 3.
inline constexpr int kTypes = 12;
inline constexpr int kOperations = 4;
inline constexpr int kInt32 = 2;
inline constexpr int kFloat16 = 6;
inline constexpr int kFloat32 = 7;
inline constexpr int kSum = 0;

/// An operation of a communicator's, as a kernel and the proxy see it.
struct Operation {
  int type = kFloat32;
  int operation = kSum;
  int channels = 1; // NCCL's subs
  int steps = 1;
  std::size_t chunk_bytes = 0; // of a channel and a step
};

/// Drives CollNet as NCCL's proxy does for host memory: one buffer for all channels, its first half
/// sent and its second half received into; eight slots for each channel; one iallreduce for each
/// step of up to eight channels, begun in one order on all ranks; tests in the order of the steps.
/// What the GPU would do, and when this rank looks after which channel, is drawn by chance.
class CollTransport {
 public:
  static constexpr int kSlots = 8;
  static constexpr int kGroup = 8;

  CollTransport(const CollNet& coll, void* comm, int rank, int world, int channels,
                std::size_t slot_bytes);
  CollTransport(const CollTransport&) = delete;
  CollTransport& operator=(const CollTransport&) = delete;
  ~CollTransport(); // its memory is nobody's then

  /// Until every element of every step is what it must be, else throws. Calls `look` again and
  /// again with the numbers of steps that are done and under way.
  void run(const Operation& operation, const std::function<void(int, int)>& look = {});
  /// As NCCL frees a connector: the registrations go, then the memory, which is nobody's then.
  void forget_memory();

 private:
  struct Channel {
    int posted = 0;
    int received = 0;
    int transmitted = 0;
    int done = 0;
    std::array<void*, kSlots> requests{};
  };
  enum class Half { sent, received };

  std::byte* place(const Operation& operation, Half half, int channel, int step);
  void fill(const Operation& operation, int channel, int step);
  void check(const Operation& operation, int channel, int step);
  bool is_last_of_group(int channel) const;
  bool is_in_order(int channel) const;
  bool transmit(const Operation& operation, int channel);
  void test_oldest(const Operation& operation, int channel);
  void advance(const Operation& operation, int channel);

  bool by_chance() { return (chance_() & 3) != 0; }

  const CollNet& coll_;
  void* comm_;
  int rank_;
  int world_;
  int most_channels_;
  std::size_t slot_bytes_;
  std::size_t bytes_;
  std::byte* memory_;
  void* send_memory_ = nullptr;
  void* receive_memory_ = nullptr;
  std::minstd_rand chance_;
  int operations_ = 0; // so far: no two have the same elements
  std::vector<Channel> channels_;
};

} // namespace weir::nccl_check
