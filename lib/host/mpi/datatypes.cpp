// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/datatypes.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

namespace weir::mpi {
namespace {

/// MPI's classes of types, of which each operation is for some.
enum class Class { none, signed_integer, unsigned_integer, floating, complex, byte, logical };

bool is_among(MPI_Datatype type, std::initializer_list<MPI_Datatype> types) {
  return std::ranges::find(types, type) != types.end();
}

Class class_of(MPI_Datatype type) {
  if (is_among(type,
               {MPI_DOUBLE, MPI_FLOAT, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})) {
    return Class::floating;
  }
  if (is_among(type, {MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_SHORT, MPI_SIGNED_CHAR, MPI_INT8_T,
                      MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT,
                      MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})) {
    return Class::signed_integer;
  }
  if (is_among(type, {MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_SHORT,
                      MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T})) {
    return Class::unsigned_integer;
  }
  if (is_among(type, {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX,
                      MPI_CXX_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8,
                      MPI_COMPLEX16})) {
    return Class::complex;
  }
  if (is_among(type, {MPI_C_BOOL, MPI_CXX_BOOL})) {
    return Class::logical;
  }
  return type == MPI_BYTE ? Class::byte : Class::none;
}

std::optional<weir_data_type> weir_type(Class kind, std::size_t bytes) {
  constexpr std::array kSigned{WEIR_I8, WEIR_I16, WEIR_I32, WEIR_I64};
  constexpr std::array kUnsigned{WEIR_U8, WEIR_U16, WEIR_U32, WEIR_U64};
  std::size_t log = 0;
  while (log < 3 && (std::size_t{1} << log) < bytes) {
    ++log;
  }
  if (bytes != std::size_t{1} << log) {
    return std::nullopt;
  }
  switch (kind) {
  case Class::signed_integer:
    return kSigned.at(log);
  case Class::unsigned_integer:
  case Class::byte:
  case Class::logical:
    return kUnsigned.at(log);
  case Class::floating:
  case Class::complex:
    return bytes == 8   ? std::optional(WEIR_F64)
           : bytes == 4 ? std::optional(WEIR_F32)
                        : std::nullopt;
  case Class::none:
    break;
  }
  return std::nullopt;
}

/// Of bytes that are 0 or 1.
std::optional<weir_operation> logical_operation_of(MPI_Op operation) {
  if (operation == MPI_LAND) {
    return WEIR_AND;
  }
  if (operation == MPI_LOR) {
    return WEIR_OR;
  }
  return operation == MPI_LXOR ? std::optional(WEIR_XOR) : std::nullopt;
}

/// MPI has no sum of MPI_BYTE; the product of complex numbers is not that of their parts.
std::optional<weir_operation> weir_operation_of(MPI_Op operation, Class kind) {
  if (kind == Class::logical) {
    return logical_operation_of(operation);
  }
  if (operation == MPI_SUM && kind != Class::byte) {
    return WEIR_SUM;
  }
  if (kind != Class::byte && kind != Class::complex) {
    if (operation == MPI_MAX) {
      return WEIR_MAX;
    }
    if (operation == MPI_MIN) {
      return WEIR_MIN;
    }
    if (operation == MPI_PROD) {
      return WEIR_PRODUCT;
    }
  }
  if (kind != Class::floating && kind != Class::complex) {
    if (operation == MPI_BAND) {
      return WEIR_AND;
    }
    if (operation == MPI_BOR) {
      return WEIR_OR;
    }
    if (operation == MPI_BXOR) {
      return WEIR_XOR;
    }
  }
  return std::nullopt;
}

bool is_predefined_without_gaps(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return lower == 0 && static_cast<std::size_t>(extent) == size_of(type);
}

/// How a type was made, as MPI tells it.
struct Envelope {
  int combiner = MPI_COMBINER_NAMED;
  std::size_t integers = 0;
  std::size_t addresses = 0;
  std::size_t counts = 0;
};

#if WEIR_MPI_HAS_LARGE_COUNTS
Envelope envelope_of(MPI_Datatype type) {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;
  MPI_Count types = 0;
  Envelope envelope;
  PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &envelope.combiner);
  envelope.integers = static_cast<std::size_t>(integers);
  envelope.addresses = static_cast<std::size_t>(addresses);
  envelope.counts = static_cast<std::size_t>(counts);
  return envelope;
}

/// Of what a type is made that has one part.
MPI_Datatype part_of(MPI_Datatype type, const Envelope& envelope) {
  std::vector<int> integers(envelope.integers + 1);
  std::vector<MPI_Aint> addresses(envelope.addresses + 1);
  std::vector<MPI_Count> counts(envelope.counts + 1);
  MPI_Datatype part = MPI_DATATYPE_NULL;
  PMPI_Type_get_contents_c(type, static_cast<MPI_Count>(envelope.integers),
                           static_cast<MPI_Count>(envelope.addresses),
                           static_cast<MPI_Count>(envelope.counts), 1, integers.data(),
                           addresses.data(), counts.data(), &part);
  return part;
}
#else
Envelope envelope_of(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  Envelope envelope;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &envelope.combiner);
  envelope.integers = static_cast<std::size_t>(integers);
  envelope.addresses = static_cast<std::size_t>(addresses);
  return envelope;
}

/// Of what a type is made that has one part.
MPI_Datatype part_of(MPI_Datatype type, const Envelope& envelope) {
  std::vector<int> integers(envelope.integers + 1);
  std::vector<MPI_Aint> addresses(envelope.addresses + 1);
  MPI_Datatype part = MPI_DATATYPE_NULL;
  PMPI_Type_get_contents(type, static_cast<int>(envelope.integers),
                         static_cast<int>(envelope.addresses), 1, integers.data(), addresses.data(),
                         &part);
  return part;
}
#endif

} // namespace

std::size_t size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) {
    return 0;
  }
  return static_cast<std::size_t>(size);
}

std::variant<Reduction, Way> reduction_of(MPI_Datatype type, MPI_Op operation) {
  if (type == MPI_DATATYPE_NULL) {
    return Way::type;
  }
  if (const auto by = operator_of(type, operation)) {
    return Reduction{.type = WEIR_AS_OPERATOR,
                     .operation = WEIR_OPERATOR(static_cast<int>(*by)),
                     .elements = 1,
                     .form = Form::packed,
                     .by = *by};
  }
  const Class kind = class_of(type);
  const bool is_integer = kind == Class::signed_integer || kind == Class::unsigned_integer;
  if (const auto logical = logical_operation_of(operation); logical && is_integer) {
    return Reduction{.type = WEIR_U8, .operation = *logical, .elements = 1, .form = Form::truths};
  }
  const std::size_t elements = kind == Class::complex ? 2 : 1;
  const auto weirs = weir_type(kind, size_of(type) / elements);
  if (!weirs) {
    return Way::type;
  }
  const auto weirs_operation = weir_operation_of(operation, kind);
  if (!weirs_operation) {
    return Way::operation;
  }
  return Reduction{.type = *weirs, .operation = *weirs_operation, .elements = elements};
}

bool is_contiguous(MPI_Datatype type) {
  const Envelope envelope = envelope_of(type);
  if (envelope.combiner == MPI_COMBINER_NAMED) {
    return is_predefined_without_gaps(type);
  }
  if (envelope.combiner != MPI_COMBINER_CONTIGUOUS && envelope.combiner != MPI_COMBINER_DUP) {
    return false;
  }
  MPI_Datatype part = part_of(type, envelope);
  const bool is = is_contiguous(part);
  if (envelope_of(part).combiner != MPI_COMBINER_NAMED) {
    PMPI_Type_free(&part);
  }
  return is;
}

} // namespace weir::mpi
