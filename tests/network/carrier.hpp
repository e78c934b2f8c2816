// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/dice.hpp"
#include "network/link.hpp"
#include "network/time.hpp"
#include "wire/headers.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::network {

/// What a network is told of that happens to a frame on a link.
enum class Mishap : std::uint8_t { dead_link, loss, duplication };

/// Takes the packets of a Pool over links. Who derives from it says where they arrive, `Place`
/// telling which link it was. The order of the draws is fixed: seeds mean what they have meant.
template <class Pool, class Place>
class Carrier {
 public:
  using Packet = typename Pool::Packet;

  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

 protected:
  Carrier(Pool& packets, Dice& dice) : packets_(packets), dice_(dice) {}

  /// Loses, doubles, damages and delays.
  void carry(Link& link, Packet& packet, const Place& place) {
    if (!link.is_up()) {
      note(Mishap::dead_link, packet, place);
      return packets_.free(packet);
    }
    link.send(now(), packet.length);
    if (link.loses(content_of(packet), dice_)) {
      note(Mishap::loss, packet, place);
      return packets_.free(packet);
    }
    if (link.doubles(dice_)) {
      note(Mishap::duplication, packet, place);
      Packet& twin = packets_.copy(packet);
      arrive(link.arrival(dice_), twin, place);
    }
    if (link.damages(dice_)) {
      damage(packet);
    }
    arrive(link.arrival(dice_), packet, place);
  }

  /// Turns a few bits over, behind the Ethernet header: what happens to addresses there, the FCS
  /// finds.
  virtual void damage(Packet& packet) {
    if (packet.length <= sizeof(wire::EthernetHeader)) {
      return;
    }
    const std::uint64_t bits = dice_.between(1, 3);
    for (std::uint64_t i = 0; i < bits; ++i) {
      const std::uint64_t at =
          dice_.between(sizeof(wire::EthernetHeader), packet.length - std::uint64_t{1});
      packet.data[at] ^= static_cast<std::uint8_t>(1u << dice_.below(8));
    }
  }

  virtual Time now() const = 0;

  /// The packet will be there at that time; whoever takes it gives it back to the pool.
  virtual void arrive(Time time, Packet& packet, const Place& place) = 0;

  virtual void note(Mishap /*mishap*/, const Packet& /*packet*/, const Place& /*place*/) {}

  virtual Content content_of(const Packet& /*packet*/) const { return Content::data; }

  Pool& packets() { return packets_; }

  Dice& dice() { return dice_; }

 private:
  Pool& packets_;
  Dice& dice_;
};

} // namespace weir::network
