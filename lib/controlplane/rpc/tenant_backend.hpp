// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace weir::rpc {

/// The switch for a tenant: rings and regions that it adds are its own, and all questions are asked
/// and all orders given as it, whoever is named as their principal. So it may ask all questions, of
/// regions about its own, add rings and regions of its own, and order what becomes of these. Throws
/// NotAllowed for all else.
class TenantBackend : public Backend {
 public:
  /// `all`, of an operator, outlives it.
  TenantBackend(Backend& all, std::string tenant) : all_(all), caller_{std::move(tenant)} {}

  command::Answer execute(const command::Words& words, const Principal&) override {
    return all_.execute(words, caller_);
  }

  report::Report ask(const command::Words& words, const Principal&) override {
    return all_.ask(words, caller_);
  }

  command::Words completions(std::string_view line, const Principal&) override {
    return all_.completions(line, caller_);
  }

  std::vector<ListedRing> rings() override { return all_.rings(); }

  /// A ring of no tenant becomes this one's.
  void add_ring(const ring::RingSpec& ring, const Principal&) override;
  ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal&) override;

  void remove_ring(std::uint32_t id, const Principal&) override { all_.remove_ring(id, caller_); }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet, const Principal&) override {
    all_.drain_ring(id, quiet, caller_);
  }

  void remove_orphan(ring::RingBirth birth) override { all_.remove_orphan(birth); }

  bool has_ring(ring::RingBirth birth) override { return all_.has_ring(birth); }

  std::size_t workers() override { return all_.workers(); }

  /// A region of no tenant becomes this one's.
  control::MadeRegion hold_region(const control::WantedRegion& wanted, const Principal&) override;

  std::shared_ptr<const config::Config> config() override { return all_.config(); }

  void check_lcores() override { all_.check_lcores(); }

  control::OperatorSeen load_operator(std::string_view text, const Principal&,
                                      std::optional<std::uint32_t> ring) override {
    return all_.load_operator(text, caller_, ring);
  }

  std::vector<control::OperatorSeen> operators(const Principal&) override {
    return all_.operators(caller_);
  }

  void unload_operator(const program::Digest& digest, const Principal&) override {
    all_.unload_operator(digest, caller_);
  }

  std::vector<std::byte> test_operator(const program::Digest& digest, const Packets& inputs,
                                       const Principal&) override {
    return all_.test_operator(digest, inputs, caller_);
  }

 private:
  /// Throws NotAllowed when another one is named.
  std::string own_tenant(std::string_view what, const std::string& named) const;
  ring::RingSpec own(const ring::RingSpec& ring) const;

  Backend& all_;
  const Principal caller_;
};

} // namespace weir::rpc
