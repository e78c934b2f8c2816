// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/dice.hpp"
#include "network/link.hpp"
#include "network/time.hpp"
#include "wire/headers.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::network {

/// What may happen to a frame on a link; the network is told.
enum class Mishap : std::uint8_t { dead_link, loss, duplication };

/// Carries the packets of a Pool over links. The derived class says where a packet arrives; `Place`
/// names the link. The order of the random draws is fixed, so that a seed always gives the same
/// run.
template <class Pool, class Place>
class Carrier {
 public:
  using Packet = typename Pool::Packet;

  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

 protected:
  Carrier(Pool& packets, Dice& dice) : packets_(packets), dice_(dice) {}

  /// Sends the packet. It may be lost, duplicated, damaged or delayed.
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

  /// Flips a few bits after the Ethernet header. The FCS would find damage to the header.
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

  /// The packet arrives at that time. The receiver returns it to the pool.
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
