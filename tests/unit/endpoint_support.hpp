// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What the endpoint's tests share: two ends of a connection and ways to move frames between them.

#include "endpoint/packet_writer.hpp"
#include "endpoint/queue_pair.hpp"
#include "wire/headers.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::endpoint {

using Bytes = std::vector<std::uint8_t>;
using std::chrono::microseconds;
using std::chrono::milliseconds;

inline constexpr TimePoint kStart{std::chrono::seconds(1)};
inline constexpr std::uint32_t kRemoteKey = 0xcafe1234;
inline constexpr std::uint64_t kRemoteBase = 0x7f0102030405060;

/// The same as pattern() in endpoint_vectors.py.
inline Bytes pattern(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::uint8_t>(7 * i + 13);
  }
  return bytes;
}

/// LOCAL and REMOTE of endpoint_vectors.py.
inline QueuePairConfig local_config(int ip_version = 4) {
  QueuePairConfig config;
  config.local_mac = *wire::parse_mac("02:00:00:00:00:0a");
  config.remote_mac = *wire::parse_mac("02:00:00:00:00:0b");
  config.local_ip = *wire::parse_ip(ip_version == 4 ? "192.0.2.10" : "2001:db8::a");
  config.remote_ip = *wire::parse_ip(ip_version == 4 ? "192.0.2.11" : "2001:db8::b");
  config.udp_source_port = 0xc123;
  config.local_qp = 0x112233;
  config.remote_qp = 0x445566;
  config.send_psn = 0x000100;
  config.receive_psn = 0x000200;
  config.path_mtu = 256;
  config.ack_timeout = milliseconds(1);
  return config;
}

/// The other end of a connection.
inline QueuePairConfig mirrored(QueuePairConfig config) {
  std::swap(config.local_mac, config.remote_mac);
  std::swap(config.local_ip, config.remote_ip);
  std::swap(config.local_qp, config.remote_qp);
  std::swap(config.send_psn, config.receive_psn);
  return config;
}

/// Every frame there is to send now.
inline std::vector<Bytes> drain(QueuePair& queue_pair, TimePoint now = kStart) {
  std::vector<Bytes> frames;
  Bytes buffer(queue_pair.max_frame_bytes());
  while (const std::size_t length = queue_pair.transmit(buffer, now)) {
    frames.emplace_back(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return frames;
}

inline std::vector<Completion> poll_all(QueuePair& queue_pair) {
  std::vector<Completion> completions;
  while (const std::optional<Completion> completion = queue_pair.poll()) {
    completions.push_back(*completion);
  }
  return completions;
}

/// The same, with two READs each way.
inline QueuePairConfig reading_config(int ip_version = 4) {
  QueuePairConfig config = local_config(ip_version);
  config.max_rd_atomic = 2;
  config.max_dest_rd_atomic = 2;
  return config;
}

/// Two connected queue pairs; B offers a region of memory to A's writes and READs.
struct Pair {
  explicit Pair(const QueuePairConfig& config = local_config(), std::size_t memory_bytes = 65536)
      : memory(memory_bytes), a(config, no_memory), b(mirrored(config), table) {
    table.add(kRemoteKey, kRemoteBase, memory, Access::read_and_write);
  }

  Bytes memory;
  MemoryTable table;
  MemoryTable no_memory;
  QueuePair a;
  QueuePair b;

  static void give(QueuePair& to, Bytes frame, TimePoint now = kStart) { to.receive(frame, now); }

  /// Moves frames both ways until neither end has any.
  void settle(TimePoint now = kStart) {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        for (const Bytes& frame : drain(*from, now)) {
          give(*to, frame, now);
          moved = true;
        }
      }
    }
  }
};

inline SendRequest request_of(SendKind kind, std::span<const std::uint8_t> data) {
  SendRequest request;
  request.id = 1;
  request.kind = kind;
  request.data = data;
  request.remote_address = kRemoteBase;
  request.remote_key = kRemoteKey;
  request.immediate = 0x0badf00d;
  return request;
}

/// A READ of as many bytes as `target` has.
inline SendRequest read_into(std::span<std::uint8_t> target, std::uint64_t offset = 0) {
  SendRequest request = request_of(SendKind::read, {});
  request.remote_address += offset;
  request.target = target;
  return request;
}

inline std::uint32_t psn_of(const Bytes& frame) {
  return wire::parse(frame).psn;
}

inline std::vector<std::uint32_t> psns_of(const std::vector<Bytes>& frames) {
  std::vector<std::uint32_t> psns;
  for (const Bytes& frame : frames) {
    psns.push_back(psn_of(frame));
  }
  return psns;
}

inline std::vector<std::uint32_t> psns(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    all.push_back(wire::psn_add(first, i));
  }
  return all;
}

inline Bytes acknowledgement(const Pair& pair, std::uint32_t psn,
                             std::uint8_t syndrome = wire::kAckUnlimited) {
  PacketWriter writer(pair.b.config());
  Bytes frame(writer.max_frame_bytes());
  frame.resize(writer.write_acknowledge(frame, {syndrome, psn, 0}));
  return frame;
}

inline std::vector<Status> statuses_of(QueuePair& queue_pair) {
  std::vector<Status> statuses;
  for (const Completion& completion : poll_all(queue_pair)) {
    statuses.push_back(completion.status);
  }
  return statuses;
}

/// The frames of a scenario of endpoint_vectors.py, which are scapy's.
inline std::vector<Bytes> vectors_of(const std::string& scenario) {
  static const auto all = [] {
    std::map<std::string, std::vector<Bytes>> frames;
    std::ifstream file(WEIR_SOURCE_ROOT "/tests/unit/endpoint_vectors.txt");
    for (std::string name, hex; file >> name >> hex;) {
      Bytes& frame = frames[name].emplace_back();
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        frame.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
      }
    }
    return frames;
  }();
  const auto found = all.find(scenario);
  return found == all.end() ? std::vector<Bytes>{} : found->second;
}

inline const wire::Bth& bth_of(const Bytes& frame) {
  return wire::view_as<wire::Bth>(frame.data() + wire::parse(frame).bth_offset);
}

inline const wire::Aeth& aeth_of(const Bytes& frame) {
  return wire::view_as<wire::Aeth>(frame.data() + wire::parse(frame).bth_offset +
                                   sizeof(wire::Bth));
}

inline void put(Bytes& frame, std::size_t at, std::initializer_list<int> bytes) {
  for (const int byte : bytes) {
    frame[at++] = static_cast<std::uint8_t>(byte);
  }
}

/// Fixed offsets in the captures' frames: Ethernet, IPv4 without options, UDP, BTH.
namespace offset {
inline constexpr std::size_t ip_id = 18;
inline constexpr std::size_t ip_checksum = 24;
inline constexpr std::size_t source = 26;
inline constexpr std::size_t destination = 30;
inline constexpr std::size_t udp_source_port = 34;
inline constexpr std::size_t opcode = 42;
inline constexpr std::size_t destination_qp = 47;
inline constexpr std::size_t psn = 51;
inline constexpr std::size_t extension = 54;
} // namespace offset

inline std::uint64_t number_at(const Bytes& frame, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number = number << 8 | frame[at + i];
  }
  return number;
}

/// rxe counts its IP IDs; ours are zero. All else must be equal.
inline Bytes without_ip_id(Bytes frame) {
  put(frame, offset::ip_id, {0, 0});
  put(frame, offset::ip_checksum, {0, 0});
  put(frame, frame.size() - 4, {0, 0, 0, 0});
  return frame;
}

} // namespace weir::endpoint
