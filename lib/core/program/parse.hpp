// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/code.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::program {

/// A text that is no program: "line 3: found "foo"; allowed: …".
class TextError : public std::invalid_argument {
 public:
  TextError(unsigned line, const std::string& what)
      : std::invalid_argument("line " + std::to_string(line) + ": " + what), line_(line) {}

  unsigned line() const { return line_; }

 private:
  unsigned line_;
};

enum class Fusing : std::uint8_t { off, on };

/// The program of a text (docs/operators.md). With `off`, each step does one thing. Throws
/// TextError.
Code parse(std::string_view text, Fusing fusing = Fusing::on);

} // namespace weir::program
