// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/packet_writer.hpp"
#include "region_lab.hpp"
#include "wire/headers.hpp"

#include <cstdint>
#include <vector>

namespace weir::bench {

/// A region whose members may read the sum of f32.
struct RegionShape {
  std::uint32_t id = 1; // below 256
  std::uint16_t members = 8;
  std::uint16_t mtu = 1024;     // bytes
  std::uint32_t window = 64;    // packets of a member that the switch holds
  std::uint16_t first_port = 0; // that member 0 is behind; the others follow
};

/// All members of a region. Each sends messages of kPacketsOfRequest packets, or READs of as many,
/// from the region's beginning again and again, and answers the switch as a NIC would that loses
/// nothing: an ACK when one is asked for, a READ's response at once. It goes back where the switch
/// tells it to, and repeats nothing by itself.
class RegionPeers : public Peers {
 public:
  explicit RegionPeers(const RegionShape& shape);

  static constexpr std::uint32_t kPacketsOfRequest = 16;

  const region::RegionSpec& spec() const { return spec_; }

  const region::RegionBirth& birth() const { return birth_; }

  void say_hello();

  /// The member writes so many packets more, a multiple of kPacketsOfRequest. Who writes never
  /// reads.
  void write(std::uint16_t member, std::uint64_t packets) { members_[member].wanted += packets; }

  /// The member reads so many packets more, likewise.
  void read(std::uint16_t member, std::uint64_t packets);

  void speak(FarEnds& ends) override;
  bool hear(std::span<const std::uint8_t> frame, std::uint16_t port, FarEnds& ends) override;
  bool is_done() const override;

 private:
  enum class Wish : std::uint8_t { writes, reads };

  struct Member {
    endpoint::PacketWriter writer;
    Wish wish = Wish::writes;
    std::uint32_t next_psn = 0; // of the first packet that is not done
    bool has_said_hello = true; // false: it is to say it
    std::uint64_t wanted = 0;   // packets, without the hello
    std::uint64_t sent = 0;     // of them: asked for
    std::uint64_t done = 0;     // acknowledged, or read
  };

  std::uint32_t psn_of(const Member& member, std::uint64_t packet) const;
  bool has_room(const Member& member) const;
  void say_hello(std::uint16_t number, FarEnds& ends);
  void write_next(std::uint16_t number, FarEnds& ends);
  void read_next(std::uint16_t number, FarEnds& ends);
  void hear_answer(Member& member, const wire::Bth& bth, const wire::Aeth& aeth);
  void acknowledge(std::uint16_t number, std::uint32_t psn, FarEnds& ends);
  void respond(std::uint16_t number, std::uint32_t psn, const wire::Reth& reth, FarEnds& ends);
  std::uint16_t port_of(std::uint16_t number) const;

  RegionShape shape_;
  region::RegionSpec spec_;
  region::RegionBirth birth_;
  std::vector<Member> members_;
  std::vector<std::uint8_t> memory_; // of each member, and what is written: numbers like gradients
};

} // namespace weir::bench
