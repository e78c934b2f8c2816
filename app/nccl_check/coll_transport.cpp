// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_check/coll_transport.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace weir::nccl_check {
namespace {

/// Of a data type: as IEEE 754 has it, or an integer with no exponent.
struct Form {
  std::size_t bytes;
  int mantissa_bits;
  int bias; // 0: an integer
};

constexpr std::array<Form, kTypes> kForms{{{1, 0, 0},
                                           {1, 0, 0},
                                           {4, 0, 0},
                                           {4, 0, 0},
                                           {8, 0, 0},
                                           {8, 0, 0},
                                           {2, 10, 15},
                                           {4, 23, 127},
                                           {8, 52, 1023},
                                           {2, 7, 127},
                                           {1, 3, 7},
                                           {1, 2, 15}}};

/// The bits of a small positive whole number that the type has exactly.
std::uint64_t bits_of(const Form& form, std::uint64_t value) {
  if (form.bias == 0) {
    return value;
  }
  const auto exponent = static_cast<int>(std::bit_width(value)) - 1;
  const std::uint64_t fraction =
      (value << form.mantissa_bits >> exponent) - (std::uint64_t{1} << form.mantissa_bits);
  return static_cast<std::uint64_t>(exponent + form.bias) << form.mantissa_bits | fraction;
}

/// 1 or 2: so all four reductions of up to four ranks are exact in every type, and sums of many in
/// most.
std::uint64_t element(int rank, int operation, int channel, int step, std::size_t index) {
  const std::size_t mixed =
      index * 2654435761U +
      static_cast<unsigned>(rank * 40503 + operation * 977 + channel * 131 + step * 31);
  return 1 + (mixed >> 7 & 1);
}

std::uint64_t folded(int operation, std::uint64_t left, std::uint64_t right) {
  switch (operation) {
  case 0:
    return left + right;
  case 1:
    return left * right;
  case 2:
    return std::max(left, right);
  default:
    return std::min(left, right);
  }
}

/// NCCL's thread only yields. Here ranks may share a few cores: who waits for long leaves them to
/// others. In a guest with one, soon.
void pause(int idle) {
  static const int yields = std::thread::hardware_concurrency() == 1 ? 20 : 10000;
  if (idle < yields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace

CollTransport::CollTransport(const CollNet& coll, void* comm, int rank, int world, int channels,
                             std::size_t slot_bytes)
    : coll_(coll), comm_(comm), rank_(rank), world_(world), most_channels_(channels),
      slot_bytes_(slot_bytes), bytes_(std::size_t{2} * std::size_t{kSlots} *
                                      static_cast<std::size_t>(channels) * slot_bytes),
      memory_(static_cast<std::byte*>(
          mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
      chance_(static_cast<unsigned>(rank) + 1) {
  if (memory_ == MAP_FAILED) {
    throw std::bad_alloc();
  }
  // NCCL's receiving and its sending connector each register the whole.
  expect_success("regMr", coll_.body.memory.register_memory(comm_, memory_, bytes_,
                                                            nccl::kHostMemory, &receive_memory_));
  expect_success("regMr", coll_.body.memory.register_memory(comm_, memory_, bytes_,
                                                            nccl::kHostMemory, &send_memory_));
}

CollTransport::~CollTransport() {
  if (memory_ != nullptr) {
    munmap(memory_, bytes_);
  }
}

void CollTransport::forget_memory() {
  expect_success("deregMr", coll_.body.memory.deregister_memory(comm_, send_memory_));
  expect_success("deregMr", coll_.body.memory.deregister_memory(comm_, receive_memory_));
  munmap(memory_, bytes_);
  memory_ = nullptr;
}

std::byte* CollTransport::place(const Operation& operation, Half half, int channel, int step) {
  const int slot = (half == Half::received ? kSlots : 0) + step % kSlots;
  return memory_ +
         static_cast<std::size_t>(slot) * static_cast<std::size_t>(most_channels_) * slot_bytes_ +
         static_cast<std::size_t>(channel) * operation.chunk_bytes;
}

void CollTransport::fill(const Operation& operation, int channel, int step) {
  const Form& form = kForms.at(static_cast<std::size_t>(operation.type));
  std::byte* const to = place(operation, Half::sent, channel, step);
  for (std::size_t index = 0; index * form.bytes < operation.chunk_bytes; ++index) {
    const std::uint64_t bits = bits_of(form, element(rank_, operations_, channel, step, index));
    std::memcpy(to + index * form.bytes, &bits, form.bytes);
  }
}

void CollTransport::check(const Operation& operation, int channel, int step) {
  const Form& form = kForms.at(static_cast<std::size_t>(operation.type));
  const std::byte* const from = place(operation, Half::received, channel, step);
  for (std::size_t index = 0; index * form.bytes < operation.chunk_bytes; ++index) {
    std::uint64_t due = element(0, operations_, channel, step, index);
    for (int rank = 1; rank < world_; ++rank) {
      due = folded(operation.operation, due, element(rank, operations_, channel, step, index));
    }
    std::uint64_t found = 0;
    std::memcpy(&found, from + index * form.bytes, form.bytes);
    if (found != bits_of(form, due)) {
      throw std::runtime_error(
          "type " + std::to_string(operation.type) + ", operation " +
          std::to_string(operation.operation) + ", channel " + std::to_string(channel) + ", step " +
          std::to_string(step) + ", element " + std::to_string(index) + ": found " +
          std::to_string(found) + ", due " + std::to_string(bits_of(form, due)));
    }
  }
}

bool CollTransport::is_last_of_group(int channel) const {
  return channel % kGroup == kGroup - 1 || channel + 1 == static_cast<int>(channels_.size());
}

/// So calls begin in one order on all ranks.
bool CollTransport::is_in_order(int channel) const {
  const auto at = static_cast<std::size_t>(channel);
  return channel == 0 ? channels_.back().transmitted == channels_[0].transmitted
                      : channels_[at].transmitted < channels_[at - 1].transmitted;
}

/// Whether it was begun: a plug-in may say that it cannot, now.
bool CollTransport::transmit(const Operation& operation, int channel) {
  Channel& own = channels_[static_cast<std::size_t>(channel)];
  if (is_last_of_group(channel)) {
    const int first = channel - channel % kGroup;
    const std::size_t bytes = static_cast<std::size_t>(channel - first + 1) * operation.chunk_bytes;
    void*& request = own.requests.at(static_cast<std::size_t>(own.transmitted % kSlots));
    request = nullptr;
    expect_success(
        "iallreduce",
        coll_.iallreduce(comm_, place(operation, Half::sent, first, own.transmitted),
                         place(operation, Half::received, first, own.transmitted),
                         bytes / kForms.at(static_cast<std::size_t>(operation.type)).bytes,
                         operation.type, operation.operation, send_memory_, receive_memory_,
                         &request));
    if (request == nullptr) {
      return false;
    }
  }
  ++own.transmitted;
  return true;
}

void CollTransport::test_oldest(const Operation& operation, int channel) {
  Channel& own = channels_[static_cast<std::size_t>(channel)];
  int done = 0;
  int bytes = -1;
  expect_success(
      "test",
      coll_.body.test(own.requests.at(static_cast<std::size_t>(own.done % kSlots)), &done, &bytes));
  if (done == 0) {
    return;
  }
  const int first = channel - channel % kGroup;
  if (bytes != (channel - first + 1) * static_cast<int>(operation.chunk_bytes)) {
    throw std::runtime_error("test: found a size of " + std::to_string(bytes));
  }
  for (int each = first; each <= channel; ++each) {
    check(operation, each, own.done);
  }
  for (int each = first; each < channel; ++each) {
    ++channels_[static_cast<std::size_t>(each)].done;
  }
  ++own.done;
}

void CollTransport::advance(const Operation& operation, int channel) {
  Channel& own = channels_[static_cast<std::size_t>(channel)];
  if (own.posted < operation.steps && own.posted < own.done + kSlots) {
    ++own.posted;
  }
  if (own.received < own.posted && by_chance()) {
    fill(operation, channel, own.received);
    ++own.received;
  }
  if (own.transmitted < own.received && is_in_order(channel)) {
    transmit(operation, channel);
  } else if (is_last_of_group(channel) && own.done < own.transmitted && by_chance()) {
    test_oldest(operation, channel);
  }
}

void CollTransport::run(const Operation& operation, const std::function<void(int, int)>& look) {
  channels_.assign(static_cast<std::size_t>(operation.channels), {});
  const auto is_done = [&](const Channel& each) { return each.done == operation.steps; };
  for (int idle = 0; !std::ranges::all_of(channels_, is_done);) {
    const int before = channels_.back().done;
    for (int channel = 0; channel < operation.channels; ++channel) {
      advance(operation, channel);
    }
    if (look) {
      look(channels_.back().done, channels_.back().transmitted - channels_.back().done);
    }
    idle = channels_.back().done == before ? idle + 1 : 0;
    pause(idle);
  }
  ++operations_;
}

} // namespace weir::nccl_check
