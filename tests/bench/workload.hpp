// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/operator.hpp"
#include "ring/ring_spec.hpp"
#include "support/ring_job.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::bench {

/// A frame and its ingress port.
struct Arrival {
  std::uint16_t port = 0;
  test::Bytes bytes;
  std::uint16_t ring = 0; // its number in the workload
};

/// The amount of data of a workload: either so little that it stays in a cache, as where a NIC
/// writes into one (DDIO), or much more than any cache holds.
inline constexpr std::uint32_t kInCache = 1u << 20;
inline constexpr std::uint32_t kInMemory = 64u << 20;

/// Of several rings.
enum class Hosts : std::uint8_t {
  apart,  // each ring has hosts of its own
  shared, // parallel rings of one job: all have the same hosts
};

/// What receivers say.
enum class Answers : std::uint8_t {
  none,
  one_a_message, // an ACK; hellos tell the queue pairs that it goes to
};

/// The kind of frames that jobs send: f32 sums, unless another collective is named.
struct Shape {
  std::uint16_t world = 8; // H
  std::uint16_t rings = 1;
  std::uint16_t payload = 1024;      // path MTU, bytes
  std::uint32_t packets = 16;        // of a message
  std::uint32_t bytes = kInCache;    // payload of all data frames together, approximately
  std::uint32_t messages_before = 0; // of each rank, that come before the data frames
  Hosts hosts = Hosts::apart;
  const program::Operator* last_folds_by = nullptr; // the last ring's; nullptr: sums as the others
  Collective collective = Collective::all_reduce;   // a broadcast's root is another rank each time
  Answers answers = Answers::none;
  std::uint16_t spare_ports = 0; // behind which no rank is
};

/// Of the operator in the hellos and messages of a ring that folds by it.
inline constexpr std::uint8_t kOperatorNumber = 128;

/// The prepared frames of some jobs with real headers, PSNs and ICRCs, in the order in which each
/// port receives them.
class Workload {
 public:
  static constexpr std::uint16_t kMaxPorts = 32; // rank r is behind port r mod 32

  explicit Workload(const Shape& shape);

  const Shape& shape() const { return shape_; }

  std::uint16_t ports() const {
    const std::uint16_t of_ranks = shape_.world < kMaxPorts ? shape_.world : kMaxPorts;
    return static_cast<std::uint16_t>(of_ranks + shape_.spare_ports);
  }

  std::vector<ring::RingSpec> rings() const;

  const std::vector<Arrival>& hellos() const { return hellos_; }

  /// What each connection has carried when the data frames come: see Shape::messages_before.
  const std::vector<Arrival>& before() const { return before_; }

  const std::vector<Arrival>& data() const { return data_; }

  /// What receivers say of the data: one for each rank of a message. Empty where Shape::answers is
  /// none.
  const std::vector<Arrival>& answers() const { return answers_; }

 private:
  test::InaSpec ina_of(const test::RingJob& job, std::uint16_t rank, std::uint32_t message,
                       std::uint32_t bytes) const;
  void add_answers(const test::RingJob& job, std::uint32_t message);
  std::vector<test::Built> message(test::RingJob& job, std::uint16_t rank, std::uint32_t message,
                                   const test::Bytes& data);
  void add_message(test::RingJob& job, std::uint32_t message, std::vector<Arrival>& to);

  Shape shape_;
  std::vector<test::RingJob> jobs_;
  std::vector<Arrival> hellos_;
  std::vector<Arrival> before_;
  std::vector<Arrival> data_;
  std::vector<Arrival> answers_;
};

/// Frames of no ring: each port's stations send to the next port's.
struct PlainTraffic {
  enum class Kind : std::uint8_t {
    udp,  // datagrams
    rdma, // messages of sixteen packets, RDMA WRITE
  };

  Kind kind = Kind::udp;
  std::uint16_t ports = 8;
  std::uint16_t payload = 1024;    // bytes
  std::uint16_t conversations = 1; // of each port, which take turns frame by frame; at most 256
  std::uint32_t frames = 0;        // of all ports together
};

/// In the order in which each port receives them.
std::vector<Arrival> frames_of(const PlainTraffic& traffic);

} // namespace weir::bench
