// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "job_run.hpp"
#include "packet.hpp"
#include "scenario.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace weir::fabric {

/// What leaves the switches of a tree on the connections of rings, seen on the links
/// (docs/protocol.md §11): towards a child the totals, towards a parent the sums of the switch's
/// ranks, by the tree's ports, and equal whenever they leave again. A sum is reckoned from the
/// ranks' data and from nothing that a switch has said.
class SumWatch {
 public:
  SumWatch(const Scenario& scenario, Coverage& coverage)
      : scenario_(scenario), coverage_(coverage) {}

  /// A run of a job begins.
  void expect(JobRun& run);

  /// The member whose packet this is, by its destination and queue pair; nullopt: nobody's.
  struct Owner {
    Origin origin;
    std::uint32_t nonce = 0; // of its run
  };

  std::optional<Owner> owner_of(const Packet& packet) const;

  /// Of a member's packet: which one of its connection it is. 0: the hello, or not known.
  std::uint32_t number_of(const Packet& packet) const;

  /// A packet leaves a switch, which has this session in its life of that number.
  struct Departure {
    std::uint16_t node = 0;
    std::uint16_t port = 0;
    std::uint32_t life = 0;
    std::uint32_t session = 0;
    std::uint32_t nonce = 0; // of the incarnation
  };

  /// Throws Violation: I1, I2, I8.
  void leaves(const Packet& packet, const Departure& departure);

 private:
  struct Connection {
    JobRun* run = nullptr;
    std::uint16_t rank = 0;   // the sender
    bool is_answered = false; // the queue pair is the sender's: what comes to it are answers
  };

  /// A connection as the switch meets it.
  struct Passage {
    const Connection& connection;
    const RingTree::Part& part;
    const Departure& departure;
    bool goes_up = false;
  };

  struct First {
    std::uint32_t crc = 0;
    std::uint32_t life = 0;
    std::uint32_t nonce = 0;
  };

  const Connection* find(const Packet& packet) const;
  std::optional<Passage> passage_of(const Connection& connection, const Departure& departure) const;
  void check_port(const Passage& passage) const;
  void check_table(const Passage& passage, std::span<const std::uint8_t> table) const;
  void check_header(const Passage& passage, const Packet& packet, bool is_hello) const;
  void check_data(const Passage& passage, const Packet& packet,
                  const ExpectedResults::PacketShare& share) const;
  void check_repeat(const Packet& packet, const Departure& departure);

  const Scenario& scenario_;
  Coverage& coverage_;
  std::unordered_map<std::uint64_t, Connection> connections_; // by host and queue pair
  std::unordered_map<std::uint64_t, First> first_; // what left, by switch and connection and PSN
};

} // namespace weir::fabric
