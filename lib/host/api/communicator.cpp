// SPDX-License-Identifier: BSD-3-Clause
#include "weir/communicator.hpp"

#include "host/api/group_driver.hpp"
#include "host/api/request.hpp"
#include "host/api/transport_options.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kMaxTensorBytes = PTRDIFF_MAX;

void check(const CommunicatorOptions& options) {
  const std::string defect = find_defect(options);
  if (!defect.empty()) {
    throw std::invalid_argument(defect);
  }
}

/// Windows and messages within the protocol's limits may still need more memory than there is.
template <typename Opening>
std::shared_ptr<host::GroupDriver> open(const CommunicatorOptions& options,
                                        Opening&& open_transport) {
  check(options);
  try {
    return std::make_shared<host::GroupDriver>(options, open_transport());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::transport_failure, options.rank,
                fmt::format("rank {}: no memory for {} x {} slots of {} bytes (rings, window, "
                            "message_bytes)",
                            options.rank, options.rings.size(), host::slots_of(options),
                            options.message_bytes));
  }
}

} // namespace

bool Pending::test() {
  return !request_ || request_->driver->test(*request_);
}

void Pending::wait() {
  if (request_) {
    request_->driver->wait_until(*request_, host::Deadline::max());
  }
}

bool Pending::wait_for(std::chrono::milliseconds timeout) {
  return !request_ ||
         request_->driver->wait_until(*request_, host::deadline_after(host::Clock::now(), timeout));
}

std::size_t Pending::bytes_done() const {
  return request_ ? request_->job.bytes_done.load(std::memory_order_relaxed) : 0;
}

Communicator::Communicator(const CommunicatorOptions& options)
    : driver_(open(options, [&] { return host::open_transport(options); })) {}

Communicator::Communicator(const CommunicatorOptions& options,
                           std::unique_ptr<host::FrameIo> frames)
    : driver_(open(options,
                   [&] { return host::open_software_transport(options, std::move(frames)); })) {}

Communicator::~Communicator() {
  if (driver_->is_here()) {
    driver_->close();
    return;
  }
  host::GroupDriver::keep_for_ever(std::move(driver_));
}

Pending Communicator::start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                       Operation operation) {
  if (!is_reducible(type, operation)) {
    throw std::invalid_argument(
        fmt::format("{} of {} has no meaning", name_of(operation), name_of(type)));
  }
  if (const std::size_t most = kMaxTensorBytes / element_size(type); count > most) {
    throw std::invalid_argument(
        fmt::format("count: found {}; allowed: 0 .. {} of {}", count, most, name_of(type)));
  }
  return Pending(driver_->start(in, out, {.count = count, .type = type, .operation = operation}));
}

void Communicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                              Operation operation) {
  start_all_reduce(in, out, count, type, operation).wait();
}

std::uint16_t Communicator::rank() const {
  return driver_->options().rank;
}

std::uint16_t Communicator::world() const {
  return driver_->options().world;
}

std::uint32_t Communicator::epoch() const {
  return driver_->epoch();
}

Algorithm Communicator::algorithm() const {
  return driver_->algorithm();
}

std::string Communicator::fallback_reason() const {
  return driver_->fallback_reason();
}

CommunicatorStatistics Communicator::statistics() const {
  return driver_->statistics();
}

} // namespace weir
