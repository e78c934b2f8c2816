// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/dice.hpp"
#include "support/ring_job.hpp"

#include <cstdint>
#include <vector>

namespace weir::fabric {

using network::Dice;

/// A ring whose members break the rules: they disagree, leave their window, leave packets out, say
/// hello at any time. Its results are not used; the switch must survive it.
class Script {
 public:
  struct Sent {
    std::uint16_t port = 0;
    test::Bytes bytes;
  };

  Script();

  /// The next frames. `session` is the switch's.
  std::vector<Sent> act(Dice& dice, std::uint32_t session);

 private:
  void restart(Dice& dice, std::vector<Sent>& sent);
  void continue_message(Dice& dice, std::uint32_t session, std::vector<Sent>& sent);
  void advance(Dice& dice, std::uint16_t rank);
  void disagree(Dice& dice, test::InaSpec& ina) const;

  test::RingJob job_;
  std::vector<std::uint32_t> next_; // message, by rank
};

} // namespace weir::fabric
