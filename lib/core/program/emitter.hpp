// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/code.hpp"
#include "program/expression.hpp"
#include "program/parse.hpp"

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::program {

enum class Phase : std::uint8_t { start, fold, finish };

std::string_view name_of(Phase phase);

/// What an expression has come to.
struct Value {
  Operand at = 0;
  Lane lane{};
  bool is_condition = false; // all bits of a lane, or none
  bool per_block = false;
  bool is_temporary = false; // its register is free once it is used
};

/// Makes steps of statements, one phase after the other, and checks them. Throws TextError.
class Emitter {
 public:
  Emitter(Code& code, Lane lanes, Fusing fusing) : code_(code), lanes_(lanes), fusing_(fusing) {}

  void begin(Phase phase);

  /// name = tree.
  void assign(const std::string& name, const Expression& tree, unsigned line);

  /// Joins flag bits when the condition holds anywhere.
  void flag(unsigned number, const Expression& condition, unsigned line);

  /// The last phase has ended: each output must have a value.
  void end(unsigned line);

  /// What start has left, if that is one number of f32 for each lane.
  std::optional<Operand> only_accumulator() const;

 private:
  struct Named {
    Value value;
    Phase phase{}; // that made it
  };

  using Parts = std::vector<Expression>;

  [[noreturn]] void refuse(const std::string& what) const;
  std::vector<Step>& steps();
  Operand take_register();
  Operand take_constant_register();
  [[noreturn]] void refuse_crowd() const;
  void release(const Value& value);
  Value emit(Step step, const Value& like, std::initializer_list<Value> used);

  Value compile(const Expression& tree, std::optional<Lane> wanted);
  Value value_of_name(const std::string& name);
  Value read(std::size_t field);
  Lane lane_of_field(Format format) const;
  Value constant(const std::string& number, bool is_negative, Lane lane, bool per_block);
  Value negative(const Expression& tree, std::optional<Lane> wanted);
  Value inverted(const Expression& tree, std::optional<Lane> wanted);
  Value binary(const Expression& tree, std::optional<Lane> wanted);
  Value arithmetic(const std::string& sign, Value left, Value right);
  Value compared(const std::string& sign, Value left, Value right);
  Value bitwise(const std::string& sign, Value left, Value right);
  Value call(const Expression& tree, std::optional<Lane> wanted);
  Value of_one(Op op, const Parts& parts, std::optional<Lane> wanted);
  Value of_two(Op op, const Parts& parts, std::optional<Lane> wanted);
  Value of_three(const Parts& parts, std::optional<Lane> wanted);
  Value selected(const Parts& parts, std::optional<Lane> wanted);
  Value rounded_to(Format format, const Parts& parts);
  Value over_block(Op op, const Parts& parts);
  Value converted(Value value, Lane lane);
  Value spread(const Value& value);
  Value resized(const Value& condition, Lane lane);
  void make_alike(Value& left, Value& right);
  std::pair<Value, Value> pair(const Expression& left, const Expression& right,
                               std::optional<Lane> wanted);
  void expect_number(const Value& value, std::string_view where) const;
  void expect_float(const Value& value, std::string_view where) const;
  void expect_parts(const std::string& function, const Parts& parts, std::size_t count) const;
  void need_finish(std::string_view what) const;
  std::string names() const;

  void store(std::size_t field, const Expression& tree);
  std::optional<std::size_t> output_named(const std::string& name) const;
  std::string outputs() const;

  Code& code_;
  Lane lanes_;
  Fusing fusing_;
  Phase phase_ = Phase::start;
  unsigned line_ = 0;
  std::bitset<kMaxRegisters> taken_; // now
  std::bitset<kMaxRegisters> used_;  // at any time
  std::map<std::string, Named> named_;
  std::map<std::size_t, Value> read_; // fields, of this phase

  struct Constant {
    Lane lane{};
    bool per_block = false;
    std::uint64_t bits = 0;
    Operand at = 0;
  };

  std::vector<Constant> constants_;
  std::bitset<kMaxFields> stored_;
};

} // namespace weir::program
