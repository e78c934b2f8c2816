// SPDX-License-Identifier: BSD-3-Clause
#include "program/expression.hpp"

#include "program/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace weir::program {
namespace {

constexpr unsigned kMostNested = 32;

struct Binary {
  std::string_view sign;
  unsigned rank; // of a larger one the parts are read first
};

constexpr std::array<Binary, 15> kBinaries{{
    {"|", 1},
    {"^", 2},
    {"&", 3},
    {"==", 4},
    {"!=", 4},
    {"<", 4},
    {"<=", 4},
    {">", 4},
    {">=", 4},
    {"<<", 5},
    {">>", 5},
    {"+", 6},
    {"-", 6},
    {"*", 7},
    {"/", 7},
}};

class Reader {
 public:
  Reader(std::span<const Word> words, unsigned line) : words_(words), line_(line) {}

  Expression all() {
    Expression tree = above(0);
    if (next_ != words_.size()) {
      refuse("an operator, or the end of the line");
    }
    return tree;
  }

 private:
  [[noreturn]] void refuse(std::string_view allowed) const {
    const std::string found =
        next_ < words_.size() ? '"' + words_[next_].text + '"' : "the end of the line";
    throw TextError(line_, fmt::format("found {}; allowed: {}", found, allowed));
  }

  bool has(std::string_view sign) const {
    return next_ < words_.size() && words_[next_].kind == Word::Kind::sign &&
           words_[next_].is(sign);
  }

  const Binary* binary() const {
    if (next_ == words_.size() || words_[next_].kind != Word::Kind::sign) {
      return nullptr;
    }
    const auto* const found = std::ranges::find(kBinaries, words_[next_].text, &Binary::sign);
    return found == kBinaries.end() ? nullptr : found;
  }

  /// What stands between operators of a rank above this one.
  Expression above(unsigned rank) {
    Expression left = simple();
    for (const Binary* sign = binary(); sign != nullptr && sign->rank > rank; sign = binary()) {
      ++next_;
      Expression right = above(sign->rank);
      left = {
          Expression::Kind::binary, std::string(sign->sign), {std::move(left), std::move(right)}};
    }
    return left;
  }

  Expression simple() {
    if (++nested_ > kMostNested) {
      throw TextError(line_, fmt::format("found more than {} nested expressions; allowed: a name "
                                         "for a part of them",
                                         kMostNested));
    }
    Expression tree = simple_inside();
    --nested_;
    return tree;
  }

  Expression simple_inside() {
    if (has("-") || has("~")) {
      const bool is_negative = has("-");
      ++next_;
      return {is_negative ? Expression::Kind::negative : Expression::Kind::inverted,
              is_negative ? "-" : "~",
              {simple()}};
    }
    if (has("(")) {
      ++next_;
      Expression tree = above(0);
      close();
      return tree;
    }
    if (next_ == words_.size() || words_[next_].kind == Word::Kind::sign) {
      refuse("a name, a number, a function or (");
    }
    const Word& word = words_[next_++];
    if (word.kind == Word::Kind::number) {
      return {Expression::Kind::number, word.text, {}};
    }
    return has("(") ? call(word.text) : Expression{Expression::Kind::name, word.text, {}};
  }

  Expression call(const std::string& function) {
    Expression tree{Expression::Kind::call, function, {}};
    do {
      ++next_;
      tree.parts.push_back(above(0));
    } while (has(","));
    close();
    return tree;
  }

  void close() {
    if (!has(")")) {
      refuse("an operator or )");
    }
    ++next_;
  }

  std::span<const Word> words_;
  unsigned line_;
  std::size_t next_ = 0;
  unsigned nested_ = 0;
};

} // namespace

std::string Expression::text() const {
  std::string inside;
  for (const Expression& part : parts) {
    inside += " " + part.text();
  }
  return parts.empty() ? word : "(" + word + inside + ")";
}

bool Expression::mentions(std::string_view name) const {
  return (kind == Kind::name && word == name) ||
         std::ranges::any_of(parts, [name](const Expression& part) { return part.mentions(name); });
}

Expression read_expression(std::span<const Word> words, unsigned line) {
  return Reader(words, line).all();
}

} // namespace weir::program
