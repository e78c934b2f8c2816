// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/fold_switch.hpp"

namespace weir::netsim {

/// docs/protocol.md §3 and §4: results leave when slots are complete, and a repeat is answered from
/// its slot. The queue pairs repair losses. In trees nothing may be lost.
class GoBackSwitch : public FoldSwitch {
 public:
  GoBackSwitch(const FoldPlace& place, const MessageList& messages, FoldPorts& ports)
      : place_(place), messages_(messages), ports_(ports), slots_(place.slots, place.count()) {}

  void take_contribution(std::uint32_t child, std::uint32_t packet, Time now) override;
  void take_total(std::uint32_t packet, Time now) override;

  Passage see_answer_of(std::uint32_t /*child*/, Frame::Kind /*kind*/, std::uint32_t /*packet*/,
                        Time /*now*/) override {
    return Passage::on;
  }

  Passage see_answer_from_above(Frame::Kind /*kind*/, std::uint32_t /*packet*/,
                                Time /*now*/) override {
    return Passage::on;
  }

  Time interval() const override { return kNever; }

  void look_again(Time /*now*/) override {}

  std::uint32_t most_filling() const override { return slots_.most_filling(); }

 private:
  bool knows_first_of(std::uint32_t packet, std::uint32_t child) const;

  const FoldPlace place_;
  const MessageList& messages_;
  FoldPorts& ports_;
  SlotTable slots_;
};

} // namespace weir::netsim
