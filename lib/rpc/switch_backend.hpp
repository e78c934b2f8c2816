// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/commands.hpp"
#include "control/switch.hpp"
#include "rpc/backend.hpp"

namespace weir::rpc {

/// A running switch. Its commands are the prompt's but `quit`.
class SwitchBackend : public Backend {
 public:
  /// `weir` outlives it.
  explicit SwitchBackend(control::Switch& weir) : weir_(weir), commands_(weir) {}

  command::Answer execute(const command::Words& words) override { return commands_.execute(words); }

  report::Report ask(const command::Words& words) override { return commands_.ask(words); }

  command::Words completions(std::string_view line) override { return commands_.completions(line); }

  std::vector<ListedRing> rings() override;
  void add_ring(const ring::RingSpec& ring) override;
  ring::RingBirth hold_ring(ring::RingSpec& ring) override;

  void remove_ring(std::uint32_t id) override { weir_.withdraw_ring(id); }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet) override {
    weir_.drain_ring(id, quiet);
  }

  void remove_orphan(ring::RingBirth birth) override { weir_.reclaim_orphan(birth); }

  bool has_ring(ring::RingBirth birth) override { return weir_.has_ring_born(birth); }

  std::shared_ptr<const config::Config> config() override { return weir_.config(); }

  void check_lcores() override;

 private:
  void check_id(const ring::RingSpec& ring) const;

  control::Switch& weir_;
  command::Commands commands_;
};

} // namespace weir::rpc
