// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "conn/incarnations.hpp"
#include "control/operator_seen.hpp"
#include "control/operator_store.hpp"
#include "control/principal.hpp"
#include "control/writer_lock.hpp"
#include "program/loaded_operators.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

struct Chassis;

/// The operators that users bring (docs/operators.md): loads them, tells of them, takes them away.
/// Any thread may use it. A tenant loads for itself, within its limits, and sees its own and those
/// for everybody. Texts are parsed and tried on the caller's thread; the lcores stop for the swap.
class OperatorAdmin {
 public:
  /// The chassis outlives it. Loads what the configuration names and what the store has. Throws
  /// config::ConfigError for the former; what is wrong in the store is left out, and told.
  OperatorAdmin(Chassis& chassis, std::optional<OperatorStore> store);

  /// The same text again is no error. Throws OperatorError and NoRoomForOperator. `ring`: the id
  /// of one that the operator came with, and goes with.
  OperatorSeen load(std::string_view text, const Principal& principal,
                    std::optional<std::uint32_t> ring = {});

  /// The caller's share in it: it goes when it is nobody's any more. Throws NoSuchOperator,
  /// OperatorInUse, and NotAllowed for what another one has loaded.
  void unload(const program::Digest& digest, const Principal& principal);

  /// In the order of loading.
  std::vector<OperatorSeen> list(const Principal& principal) const;

  /// The fold of packets of equal length, 8 to 4096 bytes. Throws NoSuchOperator, OperatorError.
  std::vector<std::byte> test(const program::Digest& digest,
                              const std::vector<std::span<const std::byte>>& inputs,
                              const Principal& principal) const;

 private:
  using Rows = std::vector<program::LoadedOperator>;

  struct InUse {
    std::uint16_t ring = 0; // index
    std::array<conn::RunOperator, kMostOperators> operators{};
  };

  void load_stored();
  std::shared_ptr<const program::Operator> known(const std::string& canonical_text) const;
  void add(const std::shared_ptr<const program::Operator>& loaded,
           const program::OperatorOwner& owner, const Principal& principal);
  void remember(const program::Operator& loaded, const program::LoadedOperators& all) const;
  void check_limits(const program::Code& code, const Principal& principal, const Rows& rows) const;
  std::vector<std::uint32_t> rings_with(const program::Digest& digest,
                                        const program::OperatorOwner* owner,
                                        const lcore::Quiesce& quiesced) const;
  std::vector<InUse> in_use(const WriterLock& lock) const;
  OperatorSeen seen(const program::LoadedOperator& row, const Principal& principal,
                    const std::vector<InUse>& all, const WriterLock& lock) const;

  Chassis& chassis_;
  std::optional<OperatorStore> store_; // with a state directory
};

} // namespace weir::control
