// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/operators.hpp"

#include "host/mpi/operator_texts.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace weir::mpi {
namespace {

constexpr std::size_t kHeaderBytes = 40; // of a message
constexpr std::array<std::size_t, kGroupOperators> kUnitBytes{16, 16, 8, 16};

bool is_complex_of(MPI_Datatype type, std::size_t bytes) {
  for (const MPI_Datatype one :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
        MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16}) {
    MPI_Count size = 0;
    if (type == one && PMPI_Type_size_x(type, &size) == MPI_SUCCESS) {
      return static_cast<std::size_t>(size) == bytes;
    }
  }
  return false;
}

/// MPI's pairs in C.
template <typename Value>
struct Pair {
  Value value;
  int index;
};

/// As the operators have them.
struct WidePair {
  double value;
  std::int64_t index;
};

/// Calls `visit` with a Pair of the type's value. Returns whether the type is one.
template <typename Visit>
bool with_pair(MPI_Datatype type, Visit&& visit) {
  if (type == MPI_FLOAT_INT) {
    visit(Pair<float>{});
  } else if (type == MPI_DOUBLE_INT) {
    visit(Pair<double>{});
  } else if (type == MPI_2INT) {
    visit(Pair<int>{});
  } else if (type == MPI_SHORT_INT) {
    visit(Pair<short>{});
  } else {
    return false;
  }
  return true;
}

} // namespace

std::optional<GroupOperator> operator_of(MPI_Datatype type, MPI_Op operation) {
  if (operation == MPI_MAXLOC || operation == MPI_MINLOC) {
    const auto number = operation == MPI_MAXLOC ? GroupOperator::maxloc : GroupOperator::minloc;
    const bool is_pair = with_pair(type, [](auto) {});
    return is_pair ? std::optional(number) : std::nullopt;
  }
  if (operation == MPI_PROD && is_complex_of(type, 8)) {
    return GroupOperator::product_of_floats;
  }
  if (operation == MPI_PROD && is_complex_of(type, 16)) {
    return GroupOperator::product_of_doubles;
  }
  return std::nullopt;
}

Operators::Operators(std::size_t path_mtu, std::size_t message_bytes) {
  for (std::size_t i = 0; i < kGroupOperators; ++i) {
    const std::string_view text = kOperatorTexts.at(i);
    if (weir_operator_load(text.data(), text.size(), &loaded_.at(i)) != WEIR_OK ||
        weir_operator_set_layout(loaded_.at(i), static_cast<std::uint32_t>(path_mtu),
                                 static_cast<std::uint32_t>(message_bytes)) != WEIR_OK) {
      throw std::invalid_argument(weir_last_error());
    }
    Places& places = places_.at(i);
    places.message_data = (message_bytes - kHeaderBytes) / 8 * 8;
    for (std::size_t place = 0; place < places.message_data;
         place = weir_operator_place(loaded_.at(i), places.in_message.size())) {
      places.in_message.push_back(place);
    }
  }
}

Operators::~Operators() {
  for (weir_operator* const one : loaded_) {
    weir_operator_release(one);
  }
}

std::vector<std::byte> Operators::packed(GroupOperator by, const void* elements, std::size_t count,
                                         MPI_Datatype type) const {
  const auto number = static_cast<std::size_t>(by);
  const Places& places = places_.at(number);
  std::vector<std::byte> result(weir_operator_bytes(loaded_.at(number), count));
  const bool is_pair = with_pair(type, [&](auto pair) {
    for (std::size_t k = 0; k < count; ++k) {
      std::memcpy(&pair, static_cast<const std::byte*>(elements) + k * sizeof pair, sizeof pair);
      const WidePair wide{static_cast<double>(pair.value), pair.index};
      std::memcpy(result.data() + places.of(k), &wide, sizeof wide);
    }
  });
  const std::size_t bytes = kUnitBytes.at(number);
  for (std::size_t k = 0; !is_pair && k < count; ++k) {
    std::memcpy(result.data() + places.of(k), static_cast<const std::byte*>(elements) + k * bytes,
                bytes);
  }
  return result;
}

void Operators::unpack(GroupOperator by, const std::vector<std::byte>& packed, void* elements,
                       std::size_t count, MPI_Datatype type) const {
  const auto number = static_cast<std::size_t>(by);
  const Places& places = places_.at(number);
  const bool is_pair = with_pair(type, [&](auto pair) {
    WidePair wide{};
    for (std::size_t k = 0; k < count; ++k) {
      std::memcpy(&wide, packed.data() + places.of(k), sizeof wide);
      std::byte* const to = static_cast<std::byte*>(elements) + k * sizeof pair;
      std::memcpy(&pair, to, sizeof pair); // bytes between its parts stay
      pair.value = static_cast<decltype(pair.value)>(wide.value);
      pair.index = static_cast<int>(wide.index);
      std::memcpy(to, &pair, sizeof pair);
    }
  });
  const std::size_t bytes = kUnitBytes.at(number);
  for (std::size_t k = 0; !is_pair && k < count; ++k) {
    std::memcpy(static_cast<std::byte*>(elements) + k * bytes, packed.data() + places.of(k), bytes);
  }
}

} // namespace weir::mpi
