// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The packets of a job: H hosts in a ring, each with one queue pair to its successor
/// (docs/protocol.md §1, §7).

#include "ring/ring_spec.hpp"
#include "support/frame_builder.hpp"
#include "weir/ina.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace weir::test {

/// How a host sends its messages.
enum class Verb : std::uint8_t { send, send_immediate, write, write_immediate };

inline constexpr std::uint32_t kSession = 0x5e551047; // of the first incarnation
inline constexpr std::uint32_t kNonce = 0xc0ffee01;   // likewise

struct JobSpec {
  std::uint32_t ring = 1;
  std::uint16_t world = 2;
  std::uint32_t window = 2; // N
  std::uint16_t mtu = 256;
  std::uint32_t max_message_bytes = 1024; // INA header included
  Network network = Network::ipv4;
  std::vector<Tag> tags;
  Bytes ip_options;
  std::uint16_t udp_checksum = 0; // of all packets
  Verb verb = Verb::write_immediate;
  DataType type = DataType::i32;
  Operation operation = Operation::sum;
  std::uint32_t epoch = 1;
  std::uint32_t nonce = kNonce;
  std::uint32_t session = kSession;
  std::uint32_t first_psn = 0xfffff0; // of rank 0's hello: PSNs of every job wrap soon
  std::uint32_t first_qp = 0x100;
  std::uint32_t first_own_qp = 0; // rank 0's own, to which ACKs come back; 0: hellos tell none
  std::uint8_t ack_timeout = 0;   // exponent, in hellos
  std::uint16_t ports = 4;        // rank r is behind port r mod ports
  bool pins_ports = false;        // the configuration names each member's port
  std::uint64_t patience_ms = 600'000;
  ring::KeepAlive keep_alive = ring::KeepAlive::ack;
  std::string tenant;           // whose ring it is
  Bytes operators;              // the table in hellos; then all has version 3
  std::uint16_t network_id = 0; // makes the addresses of this job differ from another's
};

class RingJob {
 public:
  explicit RingJob(JobSpec spec);

  const JobSpec& spec() const { return spec_; }

  JobSpec& spec() { return spec_; }

  /// The ring as the switch has it configured.
  ring::RingSpec ring() const;

  std::uint16_t port_of(std::uint16_t rank) const {
    return static_cast<std::uint16_t>(rank % spec_.ports);
  }

  std::uint16_t successor_of(std::uint16_t rank) const {
    return static_cast<std::uint16_t>((rank + 1) % spec_.world);
  }

  wire::IpAddress ip_of(std::uint16_t rank) const;
  wire::MacAddress mac_of(std::uint16_t rank) const;

  std::uint32_t qp_of(std::uint16_t rank) const { return spec_.first_qp + rank; }

  /// 0: not told.
  std::uint32_t own_qp_of(std::uint16_t rank) const {
    return spec_.first_own_qp == 0 ? 0 : spec_.first_own_qp + rank;
  }

  /// Of the rank's hello.
  std::uint32_t first_psn_of(std::uint16_t rank) const {
    return (spec_.first_psn + 0x10000u * rank) & 0xffffff;
  }

  /// A frame from `rank` to its successor on the job's QP. Its other fields have the job's values.
  FrameSpec frame_of(std::uint16_t rank) const;

  /// `rank`'s INA header for a message with this many bytes of data.
  InaSpec ina_of(std::uint16_t rank, std::uint32_t message, std::uint32_t data_bytes) const;

  Built hello(std::uint16_t rank) const;

  /// An acknowledgement to `rank` from its successor: an ACK, NAK or RNR NAK.
  FrameSpec answer_to(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn,
                      std::uint32_t message_sequence = 0) const;

  /// The packets of a message. The first call uses the next PSNs of the rank's connection. Later
  /// calls use the same ones, so they give repeats.
  std::vector<Built> message(std::uint16_t rank, std::uint32_t id, const Bytes& data);

  /// The same with another INA header.
  std::vector<Built> message(std::uint16_t rank, const InaSpec& ina, const Bytes& data);

  /// Forgets every PSN and takes other QPs and another nonce, as a restarted job does, with the new
  /// `epoch`. The session is increased by one, as in a switch that counts sessions.
  void restart(std::uint32_t epoch);

 private:
  void forget_psns();
  std::uint32_t psn_of(std::uint16_t rank, std::uint32_t message, std::uint32_t packets);

  JobSpec spec_;
  std::vector<std::uint32_t> next_psn_;                                   // by rank
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> psns_; // rank, message
};

/// The opcode of a packet of a message (IBTA table 38).
std::uint8_t opcode_of(Verb verb, std::size_t packet, std::size_t packets);

/// docs/protocol.md §5: the frame that must leave for `frame`, given the reduced data of that
/// packet. It is built from the frame that the rank sent.
Built result_of(Built frame, const Bytes& data, std::uint32_t session = kSession);

/// True when the frame starts a message, so that its data begins with an INA header.
bool starts_message(const Built& frame);

/// A packet's share of the tensor.
Bytes data_of(const Built& frame);

} // namespace weir::test
