// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/lexer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::program {

/// A tree of what a statement computes.
struct Expression {
  enum class Kind : std::uint8_t { number, name, call, binary, negative, inverted };

  Kind kind{};
  std::string word; // the number, the name, the function or the sign
  std::vector<Expression> parts;

  /// The same for trees that are alike.
  std::string text() const;

  bool mentions(std::string_view name) const;

  bool is_number() const {
    return kind == Kind::number || (kind == Kind::negative && parts[0].is_number());
  }
};

/// Reads all words. Throws TextError.
Expression read_expression(std::span<const Word> words, unsigned line);

} // namespace weir::program
