// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include "worker/tensor_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unistd.h>

namespace weir::load {
namespace {

constexpr std::size_t kTensorBytes = 64 * 1024;
constexpr DataType kType = DataType::f32;
constexpr Operation kOperation = Operation::sum;
// So long that repeats do not fill an empty mempool.
constexpr std::chrono::milliseconds kAckTimeout{500};
constexpr std::chrono::seconds kTimeout{120};

host::GroupOptions options_of(std::uint16_t rank) {
  host::GroupOptions options;
  options.rings = {kRing};
  options.rank = rank;
  options.world = kMembers;
  options.rendezvous = fmt::format("127.0.0.1:{}", 20'000 + getpid() % 10'000);
  options.form_timeout = options.timeout = kTimeout;
  options.window = kWindow;
  options.message_bytes = kMessageBytes;
  options.path_mtu = kPathMtu;
  options.ip = wire::to_string(ip_of(rank));
  options.mac = wire::to_string(mac_of(rank));
  options.ack_timeout = kAckTimeout;
  return options;
}

} // namespace

Job::Job(const Lab& lab) : done_(kMembers) {
  for (std::uint16_t rank = 0; rank < kMembers; ++rank) {
    members_.emplace_back([this, &lab, rank] { run(lab, rank); });
  }
}

Job::~Job() {
  finish();
}

std::uint32_t Job::rounds_done() const {
  const std::scoped_lock lock(mutex_);
  return *std::min_element(done_.begin(), done_.end());
}

std::string Job::finish() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  for (std::thread& member : members_) {
    member.join();
  }
  members_.clear();
  return failure_;
}

void Job::run(const Lab& lab, std::uint16_t rank) {
  try {
    host::Group group(options_of(rank), lab.open(rank));
    reduce(group, rank);
    retransmissions_ += group.statistics().retransmitted_packets.value_or(0);
  } catch (const std::exception& error) {
    fail(rank, error.what());
  }
}

void Job::reduce(host::Group& group, std::uint16_t rank) {
  const host::Call call{
      .count = kTensorBytes / element_size(kType), .type = kType, .operation = kOperation};
  const std::array trees{app::FoldTree::flat(kMembers)};
  std::vector<std::byte> tensor(kTensorBytes);
  while (const auto round = next_round(rank)) {
    const app::TensorId id{group.epoch(), *round};
    app::fill_tensor(tensor, id, rank, 0, kType);
    group.start(tensor.data(), tensor.data(), call).wait();
    const app::Mismatches wrong = app::find_mismatches(tensor, id, call, {rank, kMembers}, trees);
    if (wrong.count != 0) {
      return fail(rank,
                  fmt::format("round {}, {} wrong elements; the first is {}: expected {}, found {}",
                              *round, wrong.count, wrong.first.index, wrong.first.expected,
                              wrong.first.found));
    }
    const std::scoped_lock lock(mutex_);
    done_[rank] = *round;
  }
}

/// The next round to begin. When the job is to end, only a round that some member has begun.
std::optional<std::uint32_t> Job::next_round(std::uint16_t rank) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t round = done_[rank] + 1;
  if (is_ending_ && round > begun_) {
    return std::nullopt;
  }
  begun_ = std::max(begun_, round);
  return round;
}

void Job::fail(std::uint16_t rank, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  is_ending_ = true;
  failure_ += fmt::format("rank {}: {}; ", rank, what);
}

} // namespace weir::load
