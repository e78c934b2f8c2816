// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/mpi_api.hpp"
#include "weir/weir.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace weir::mpi {

/// The operators that groups have for MPI's reductions, by their numbers there. One pair type
/// serves all of MPI's: f64 has each value of float, int and short.
enum class GroupOperator { maxloc, minloc, product_of_floats, product_of_doubles };
inline constexpr std::size_t kGroupOperators = 4;

/// The operator for a predefined type and operation, if there is one.
std::optional<GroupOperator> operator_of(MPI_Datatype type, MPI_Op operation);

/// Those of this process, laid out for messages of its groups.
class Operators {
 public:
  /// Throws std::invalid_argument.
  Operators(std::size_t path_mtu, std::size_t message_bytes);
  ~Operators();
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  /// As weir_group_options has them.
  [[nodiscard]] std::span<const weir_operator* const> loaded() const { return loaded_; }

  /// `count` of MPI's elements, as the operator reads them.
  [[nodiscard]] std::vector<std::byte> packed(GroupOperator by, const void* elements,
                                              std::size_t count, MPI_Datatype type) const;
  void unpack(GroupOperator by, const std::vector<std::byte>& packed, void* elements,
              std::size_t count, MPI_Datatype type) const;

 private:
  /// Where elements begin: those of one message, after which the next one's follow alike.
  struct Places {
    std::vector<std::size_t> in_message;
    std::size_t message_data = 0;

    [[nodiscard]] std::size_t of(std::size_t element) const {
      return element / in_message.size() * message_data + in_message[element % in_message.size()];
    }
  };

  std::array<weir_operator*, kGroupOperators> loaded_{};
  std::array<Places, kGroupOperators> places_;
};

} // namespace weir::mpi
