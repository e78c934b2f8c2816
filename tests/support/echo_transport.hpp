// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"
#include "weir/ina.hpp"
#include "wire/headers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::test {

/// The way to a switch that doubles what it gets, as if the other one of two ranks had sent the
/// same. Each poll brings the results and acknowledgements of what was posted before it: a round
/// trip.
class EchoTransport : public host::Transport {
 public:
  /// `host` is the last byte of its address: each rank of a group has one of its own.
  explicit EchoTransport(std::uint8_t host = 0) { address_.back() = host; }

  std::vector<std::uint8_t> address() const override { return address_; }

  std::uint32_t queue_pair(std::size_t) const override { return 0; }

  void connect(const host::Neighbour&, const host::Neighbour&) override {}

  void renew(host::Delivery) override {}

  void close(std::size_t) override {}

  void quiesce() override {}

  bool post(std::size_t, const host::OutgoingMessage& message) override {
    posted_.push_back(message);
    if (message.number != 0) {
      lengths_.push_back(message.data.size());
    }
    most_under_way_ = std::max(most_under_way_, posted_.size());
    return true;
  }

  bool poll(host::TransportListener& listener) override {
    ++round_trips_;
    const std::vector<host::OutgoingMessage> posted = std::exchange(posted_, {});
    for (const host::OutgoingMessage& message : posted) {
      const std::vector<std::uint8_t> result = result_of(message);
      listener.arrived(
          0, host::message_in_one_piece(static_cast<std::uint32_t>(message.number), result));
      listener.completed(0);
    }
    return !posted.empty();
  }

  int descriptor() const override { return host::kNoDescriptor; }

  bool arm() override { return true; }

  host::Deadline due() const override { return host::Deadline::max(); }

  host::TransportStatistics statistics() const override { return {}; }

  std::string describe(std::size_t) const override { return {}; }

  std::size_t round_trips() const { return round_trips_; }

  std::size_t most_under_way() const { return most_under_way_; }

  /// Bytes of data in each message since the hello.
  const std::vector<std::size_t>& lengths() const { return lengths_; }

 private:
  static constexpr std::uint32_t kSession = 7;

  static std::vector<std::uint8_t> result_of(const host::OutgoingMessage& message) {
    std::vector<std::uint8_t> bytes(message.header.begin(), message.header.end());
    wire::InaHeader header = wire::view_as<wire::InaHeader>(bytes.data());
    header.flags = kInaFlagResult;
    header.rank.set(static_cast<std::uint16_t>(1 - header.rank.get()));
    if (message.number == 0) {
      header.message_id.set(header.session.get());
    }
    header.session.set(kSession);
    std::memcpy(bytes.data(), &header, sizeof(header));
    for (const std::uint8_t element : message.data) {
      bytes.push_back(static_cast<std::uint8_t>(2 * element));
    }
    return bytes;
  }

  std::vector<std::uint8_t> address_ = std::vector<std::uint8_t>(sizeof(wire::IpAddress));
  std::vector<host::OutgoingMessage> posted_;
  std::vector<std::size_t> lengths_;
  std::size_t round_trips_ = 0;
  std::size_t most_under_way_ = 0;
};

} // namespace weir::test
