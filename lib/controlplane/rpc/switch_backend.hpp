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

  command::Answer execute(const command::Words& words, const Principal& principal) override {
    return commands_.execute(words, principal);
  }

  report::Report ask(const command::Words& words, const Principal& principal) override {
    return commands_.ask(words, principal);
  }

  command::Words completions(std::string_view line, const Principal& principal) override {
    return commands_.completions(line, principal);
  }

  std::vector<ListedRing> rings() override;

  void add_ring(const ring::RingSpec& ring, const Principal& principal) override {
    weir_.rings().add(ring, principal);
  }

  ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal& principal) override {
    return weir_.rings().hold(ring, principal);
  }

  void remove_ring(std::uint32_t id, const Principal& principal) override {
    weir_.rings().withdraw(id, principal);
  }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet,
                  const Principal& principal) override {
    weir_.rings().drain(id, quiet, principal);
  }

  void remove_orphan(ring::RingBirth birth) override { weir_.rings().reclaim_orphan(birth); }

  bool has_ring(ring::RingBirth birth) override { return weir_.rings().has(birth); }

  std::size_t workers() override { return weir_.rings().workers(); }

  control::MadeRegion hold_region(const control::WantedRegion& wanted,
                                  const Principal& principal) override {
    return weir_.regions().hold(wanted, principal);
  }

  void remove_orphan_region(std::uint32_t id) override { weir_.regions().withdraw_orphan(id); }

  std::optional<std::string> end_of_region(std::uint32_t id) override {
    return weir_.regions().end_of(id);
  }

  std::shared_ptr<const config::Config> config() override { return weir_.inspector().config(); }

  void check_lcores() override;

  control::OperatorSeen load_operator(std::string_view text, const Principal& principal,
                                      std::optional<std::uint32_t> ring) override {
    return weir_.operators().load(text, principal, ring);
  }

  std::vector<control::OperatorSeen> operators(const Principal& principal) override {
    return weir_.operators().list(principal);
  }

  void unload_operator(const program::Digest& digest, const Principal& principal) override {
    weir_.operators().unload(digest, principal);
  }

  std::vector<std::byte> test_operator(const program::Digest& digest, const Packets& inputs,
                                       const Principal& principal) override {
    return weir_.operators().test(digest, inputs, principal);
  }

  TendedSwitch tended() override;

 private:
  control::Switch& weir_;
  command::Commands commands_;
};

} // namespace weir::rpc
