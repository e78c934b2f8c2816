// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

/// The environment variables by which users set the library's guests: one table for all of them,
/// and errors in the same words. PyTorch's are read in Python: lib/host/torch/weir_torch/options.py
/// has these rows again, and a test compares the two.
namespace weir::variables {

enum class Kind : std::uint8_t {
  text,
  texts, // with commas between them
  files, // likewise
  word,  // one of those that are allowed
  u8,
  u32,
  u64,
  rings, // numbers, with commas between them, or `offered`
};

enum Guest : std::uint8_t { kMpi = 1, kNccl = 2, kTorch = 4 };

struct Variable {
  std::string_view name;
  Kind kind = Kind::text;
  std::string_view usual;   // without it; empty: none, or as the library has it
  std::string_view allowed; // words, in the order of the guest's enumerators
  std::uint8_t guests = 0;  // a set: who read it so
};

inline constexpr std::array kVariables{
    Variable{"WEIR_TRANSPORT", Kind::word, "software", "software, verbs", kMpi | kTorch},
    Variable{"WEIR_DEVICE", Kind::text, "", "", kMpi | kTorch},
    Variable{"WEIR_DEVICE", Kind::texts, "", "", kNccl},
    Variable{"WEIR_IP", Kind::text, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_MAC", Kind::text, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_RENDEZVOUS", Kind::text, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_GID_INDEX", Kind::u8, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_SWITCH", Kind::text, "", "", kMpi | kNccl | kTorch},
    // NCCL's plug-in leaves these four to the library, which reads them too.
    Variable{"WEIR_SWITCH_CERTIFICATE", Kind::text, "", "", kMpi | kTorch},
    Variable{"WEIR_SWITCH_KEY", Kind::text, "", "", kMpi | kTorch},
    Variable{"WEIR_SWITCH_AUTHORITY", Kind::text, "", "", kMpi | kTorch},
    Variable{"WEIR_SWITCH_NAME", Kind::text, "", "", kMpi | kTorch},
    Variable{"WEIR_RINGS", Kind::rings, "1", "", kMpi},
    Variable{"WEIR_RINGS", Kind::rings, "", "", kTorch}, // 1, or what the switch chooses
    Variable{"WEIR_WINDOW", Kind::u32, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_MESSAGE_BYTES", Kind::u32, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_PATH_MTU", Kind::u32, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_ACK_TIMEOUT_MS", Kind::u32, "", "", kMpi | kNccl | kTorch},
    Variable{"WEIR_FORM_TIMEOUT_MS", Kind::u32, "", "", kMpi | kNccl},
    Variable{"WEIR_TIMEOUT_MS", Kind::u32, "", "", kMpi | kNccl},
    Variable{"WEIR_LATENESS_MS", Kind::u32, "0", "", kMpi},
    Variable{"WEIR_FALLBACK", Kind::word, "mpi", "mpi, ring, none", kMpi},
    Variable{"WEIR_FALLBACK", Kind::word, "none", "none, ring", kTorch},
    Variable{"WEIR_FORMING", Kind::word, "lazy", "lazy, eager", kMpi},
    Variable{"WEIR_THRESHOLD", Kind::u64, "4096", "", kMpi},
    Variable{"WEIR_OPERATORS", Kind::word, "0", "0, 1", kMpi},
    Variable{"WEIR_OPERATORS", Kind::files, "", "", kTorch},
    Variable{"WEIR_VERBOSE", Kind::word, "0", "0, 1", kMpi},
    Variable{"WEIR_NCCL_NET", Kind::text, "", "", kNccl},
};

/// The guest's row. Does not compile for a name that the guest does not have.
consteval const Variable& variable_of(Guest guest, std::string_view name) {
  return *std::ranges::find_if(kVariables, [&](const Variable& row) {
    return row.name == name && (row.guests & guest) != 0;
  });
}

[[noreturn]] inline void refuse(const Variable& variable, std::string_view found,
                                std::string_view allowed) {
  throw std::invalid_argument(
      fmt::format("{}: found '{}'; allowed: {}", variable.name, found, allowed));
}

/// Of the kind that has this type. Throws std::invalid_argument, like those below.
template <typename Number>
Number number_in(const Variable& variable, std::string_view text) {
  const std::optional<Number> number = text::parsed<Number>(text);
  if (!number) {
    refuse(variable, text,
           fmt::format("a number from 0 to {}", std::numeric_limits<Number>::max()));
  }
  return *number;
}

/// Ids of rings. None: as many as the switch offers.
inline std::vector<std::uint32_t> rings_in(const Variable& variable, std::string_view text) {
  std::vector<std::uint32_t> numbers;
  if (text == "offered") {
    return numbers;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto number = text::parsed<std::uint32_t>(text.substr(begin, end - begin));
    if (!number) {
      refuse(variable, text,
             fmt::format("numbers from 0 to {}, with commas between them, or offered", UINT32_MAX));
    }
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

/// The place of the word among those that are allowed.
inline std::size_t word_in(const Variable& variable, std::string_view text) {
  constexpr std::string_view between = ", ";
  std::size_t place = 0;
  for (std::size_t begin = 0; begin <= variable.allowed.size(); ++place) {
    const std::size_t end =
        std::min(variable.allowed.find(between, begin), variable.allowed.size());
    if (variable.allowed.substr(begin, end - begin) == text) {
      return place;
    }
    begin = end + between.size();
  }
  refuse(variable, text, variable.allowed);
}

} // namespace weir::variables
