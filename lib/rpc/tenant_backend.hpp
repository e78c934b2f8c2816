// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"

#include <string>
#include <utility>

namespace weir::rpc {

/// What a tenant may do with a switch: ask all questions, add rings of its own, and order what
/// becomes of these. Throws NotAllowed for all else.
class TenantBackend : public Backend {
 public:
  /// `all`, of an operator, outlives it.
  TenantBackend(Backend& all, std::string tenant) : all_(all), tenant_(std::move(tenant)) {}

  command::Answer execute(const command::Words& words) override;

  report::Report ask(const command::Words& words) override { return all_.ask(words); }

  command::Words completions(std::string_view line) override { return all_.completions(line); }

  std::vector<ListedRing> rings() override { return all_.rings(); }

  /// A ring of no tenant becomes this one's.
  void add_ring(const ring::RingSpec& ring) override;
  ring::RingBirth hold_ring(ring::RingSpec& ring) override;
  void remove_ring(std::uint32_t id) override;
  void drain_ring(std::uint32_t id, std::chrono::seconds quiet) override;

  void remove_orphan(ring::RingBirth birth) override { all_.remove_orphan(birth); }

  bool has_ring(ring::RingBirth birth) override { return all_.has_ring(birth); }

  std::shared_ptr<const config::Config> config() override { return all_.config(); }

  void check_lcores() override { all_.check_lcores(); }

 private:
  ring::RingSpec own(const ring::RingSpec& ring) const;
  void expect_own(std::uint32_t id);

  Backend& all_;
  const std::string tenant_;
};

} // namespace weir::rpc
