// SPDX-License-Identifier: BSD-3-Clause
#include "workload.hpp"

#include "wire/opcode.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace weir::bench {
namespace {

/// Numbers like gradients: small, of both signs.
test::Bytes gradient(std::size_t bytes, std::minstd_rand& random) {
  std::uniform_real_distribution<float> values(-0.1F, 0.1F);
  test::Bytes data(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
    const float value = values(random);
    std::memcpy(data.data() + at, &value, sizeof value);
  }
  return data;
}

bool folds_by_operator(const Shape& shape, std::uint16_t ring) {
  return shape.last_folds_by != nullptr && ring + 1 == shape.rings;
}

/// One entry (docs/protocol.md §12).
test::Bytes table_of(const program::Operator& one) {
  constexpr std::size_t digest_at = 8;
  test::Bytes table(digest_at + one.digest().size());
  table[0] = kOperatorNumber;
  std::ranges::copy(one.digest(), table.begin() + digest_at);
  return table;
}

constexpr std::uint32_t kFirstOwnQueuePair = 0x800000; // beyond those of all rings

test::JobSpec job_spec(const Shape& shape, std::uint16_t ring, std::uint16_t ports) {
  return {.ring = ring,
          .world = shape.world,
          .window = 8,
          .mtu = shape.payload,
          .max_message_bytes = shape.payload * shape.packets,
          .type = DataType::f32,
          .first_qp = 0x100U + 0x100U * ring,
          .first_own_qp = shape.answers == Answers::none ? 0 : kFirstOwnQueuePair + 0x100U * ring,
          .ports = ports,
          .pins_ports = true,
          .operators =
              folds_by_operator(shape, ring) ? table_of(*shape.last_folds_by) : test::Bytes{},
          .network_id = shape.hosts == Hosts::shared ? std::uint16_t{0} : ring};
}

} // namespace

Workload::Workload(const Shape& shape) : shape_(shape) {
  for (std::uint16_t ring = 0; ring < shape.rings; ++ring) {
    test::RingJob& job = jobs_.emplace_back(job_spec(shape, ring, ports()));
    for (std::uint16_t rank = 0; rank < shape.world; ++rank) {
      hellos_.push_back({job.port_of(rank), job.hello(rank).bytes, ring});
    }
  }
  const std::uint32_t one_of_each =
      std::uint32_t{shape.world} * shape.rings * shape.packets * shape.payload;
  const std::uint32_t before = shape.messages_before;
  const std::uint32_t messages = std::max(1u, shape.bytes / one_of_each);
  for (std::uint32_t message = 1; message <= before + messages; ++message) {
    for (test::RingJob& job : jobs_) {
      add_message(job, message, message <= before ? before_ : data_);
      if (message > before && shape.answers == Answers::one_a_message) {
        add_answers(job, message);
      }
    }
  }
}

test::InaSpec Workload::ina_of(const test::RingJob& job, std::uint16_t rank, std::uint32_t message,
                               std::uint32_t bytes) const {
  test::InaSpec ina = job.ina_of(rank, message, bytes);
  if (folds_by_operator(shape_, static_cast<std::uint16_t>(job.ring().id))) {
    ina.operation = kOperatorNumber;
    ina.data_type = static_cast<std::uint8_t>(kAsOperator);
  }
  ina.collective = static_cast<std::uint8_t>(shape_.collective);
  if (shape_.collective == Collective::broadcast) {
    ina.root = static_cast<std::uint16_t>(message % shape_.world);
  }
  return ina;
}

std::vector<test::Built> Workload::message(test::RingJob& job, std::uint16_t rank,
                                           std::uint32_t message, const test::Bytes& data) {
  const auto bytes = static_cast<std::uint32_t>(data.size());
  return job.message(rank, ina_of(job, rank, message, bytes), data);
}

/// The receiver has all packets of the rank's message: those before it began behind the hello.
void Workload::add_answers(const test::RingJob& job, std::uint32_t message) {
  for (std::uint16_t rank = 0; rank < shape_.world; ++rank) {
    const std::uint32_t psn = job.first_psn_of(rank) + message * shape_.packets;
    const auto answer = job.answer_to(rank, wire::ack_syndrome(0), psn, message);
    answers_.push_back({job.port_of(job.successor_of(rank)), test::build(answer).bytes,
                        static_cast<std::uint16_t>(job.ring().id)});
  }
}

void Workload::add_message(test::RingJob& job, std::uint32_t message, std::vector<Arrival>& to) {
  std::minstd_rand random(message);
  const std::size_t bytes = std::size_t{shape_.payload} * shape_.packets - kInaHeaderBytes;
  const auto ring = static_cast<std::uint16_t>(job.ring().id);
  for (std::uint16_t rank = 0; rank < shape_.world; ++rank) {
    for (test::Built& frame : this->message(job, rank, message, gradient(bytes, random))) {
      to.push_back({job.port_of(rank), std::move(frame.bytes), ring});
    }
  }
}

std::vector<ring::RingSpec> Workload::rings() const {
  std::vector<ring::RingSpec> rings;
  for (const test::RingJob& job : jobs_) {
    rings.push_back(job.ring());
  }
  return rings;
}

namespace {

/// Of the packet at this place in a stream of messages of sixteen packets.
std::uint8_t write_opcode_at(std::uint32_t packet) {
  constexpr std::uint32_t packets = 16;
  switch (packet % packets) {
  case 0:
    return static_cast<std::uint8_t>(wire::Opcode::write_first);
  case packets - 1:
    return static_cast<std::uint8_t>(wire::Opcode::write_last);
  default:
    return static_cast<std::uint8_t>(wire::Opcode::write_middle);
  }
}

wire::MacAddress station(std::uint32_t port, std::uint32_t conversation) {
  return {
      {0x02, 0x20, 0, 0, static_cast<std::uint8_t>(conversation), static_cast<std::uint8_t>(port)}};
}

} // namespace

std::vector<Arrival> frames_of(const PlainTraffic& traffic) {
  constexpr std::uint16_t discard_port = 9; // RFC 863
  std::vector<Arrival> frames;
  for (std::uint32_t i = 0; i < traffic.frames; ++i) {
    const auto port = static_cast<std::uint16_t>(i % traffic.ports);
    const std::uint32_t turn = i / traffic.ports;
    const std::uint32_t conversation = turn % traffic.conversations;
    test::FrameSpec spec;
    spec.source_mac = station(port, conversation);
    spec.destination_mac = station((port + 1u) % traffic.ports, conversation);
    spec.source = test::ip("192.0.2.1");
    spec.destination = test::ip("192.0.2.2");
    if (traffic.kind == PlainTraffic::Kind::udp) {
      spec.udp_destination = discard_port;
    } else {
      spec.opcode = write_opcode_at(turn / traffic.conversations);
    }
    spec.payload.assign(traffic.payload, static_cast<std::uint8_t>(i));
    frames.push_back({port, test::build(spec).bytes});
  }
  return frames;
}

} // namespace weir::bench
