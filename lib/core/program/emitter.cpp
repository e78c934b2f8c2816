// SPDX-License-Identifier: BSD-3-Clause
#include "program/emitter.hpp"

#include "program/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace weir::program {
namespace {

constexpr std::string_view kFunctions =
    "abs, add_sat, block_max, block_sum, f32, f64, finite_abs, floor_log2, fma, i16, i32, i64, "
    "is_nan, max, min, pow2, select, sqrt, sub_sat, u32, u64, or a narrow float's name; in an "
    "output clip, round, wrap";

Lane signed_of_width(unsigned bytes) {
  return bytes == 2 ? Lane::i16 : bytes == 4 ? Lane::i32 : Lane::i64;
}

std::optional<Lane> lane_named(std::string_view name) {
  const auto format = format_named(name);
  return format && static_cast<std::size_t>(*format) < kLanes
             ? std::optional(static_cast<Lane>(*format))
             : std::nullopt;
}

/// The bits of a number in a lane; nullopt if it has no such value.
std::optional<std::uint64_t> float_bits(const std::string& text, bool is_negative, Lane lane) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) {
    return std::nullopt;
  }
  const double given = is_negative ? -value : value;
  return lane == Lane::f64 ? std::bit_cast<std::uint64_t>(given)
                           : std::bit_cast<std::uint32_t>(static_cast<float>(given));
}

std::optional<std::uint64_t> integer_bits(std::string_view text, bool is_negative, Lane lane) {
  const bool is_hex = text.starts_with("0x");
  const std::optional<std::uint64_t> value = whole_number(text);
  const unsigned bits = row_of(lane).bits;
  const bool is_signed = row_of(lane).kind == Kind::signed_integer;
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  const std::uint64_t most = is_negative ? top : is_signed && !is_hex ? top - 1 : all;
  if (!value || *value > most || (is_negative && !is_signed)) {
    return std::nullopt;
  }
  return (is_negative ? ~*value + 1 : *value) & all;
}

/// What is called once, and why it is refused elsewhere.
std::optional<Op> simple_function(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Op>, 7> rows{{{"abs", Op::abs},
                                                                 {"finite_abs", Op::finite_abs},
                                                                 {"is_nan", Op::is_nan},
                                                                 {"floor_log2", Op::floor_log2},
                                                                 {"pow2", Op::pow2},
                                                                 {"sqrt", Op::sqrt},
                                                                 {"neg", Op::neg}}};
  const auto* const row = std::ranges::find(rows, name, &std::pair<std::string_view, Op>::first);
  return row == rows.end() ? std::nullopt : std::optional(row->second);
}

std::optional<Op> pair_function(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Op>, 4> rows{
      {{"min", Op::min}, {"max", Op::max}, {"add_sat", Op::add_sat}, {"sub_sat", Op::sub_sat}}};
  const auto* const row = std::ranges::find(rows, name, &std::pair<std::string_view, Op>::first);
  return row == rows.end() ? std::nullopt : std::optional(row->second);
}

std::string kind_of(const Value& value) {
  return value.is_condition ? "a condition" : std::string(row_of(value.lane).name);
}

} // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 3> names{"start", "fold", "finish"};
  return names[static_cast<std::size_t>(phase)];
}

void Emitter::refuse(const std::string& what) const {
  throw TextError(line_, what);
}

std::vector<Step>& Emitter::steps() {
  switch (phase_) {
  case Phase::start:
    return code_.start;
  case Phase::fold:
    return code_.fold;
  case Phase::finish:
    return code_.finish;
  }
  return code_.start;
}

void Emitter::begin(Phase phase) {
  const auto free = [this](const Value& value) {
    if (value.at < kDirect) {
      taken_.reset(value.at);
    }
  };
  for (const auto& [field, value] : read_) {
    free(value);
  }
  read_.clear();
  std::erase_if(named_, [&](const auto& entry) {
    const bool ends = entry.second.phase != Phase::start;
    if (ends) {
      free(entry.second.value);
    }
    return ends;
  });
  phase_ = phase;
}

std::optional<Operand> Emitter::only_accumulator() const {
  const auto is_accumulator = [](const auto& entry) { return entry.second.phase == Phase::start; };
  const auto found = std::ranges::find_if(named_, is_accumulator);
  const bool is_only = std::ranges::count_if(named_, is_accumulator) == 1;
  if (!is_only || found->second.value.lane != Lane::f32 || found->second.value.per_block) {
    return std::nullopt;
  }
  return found->second.value.at;
}

Operand Emitter::take_register() {
  for (unsigned i = 0; i < kMaxRegisters; ++i) {
    if (!taken_[i]) {
      taken_.set(i);
      used_.set(i);
      return static_cast<Operand>(i);
    }
  }
  refuse_crowd();
}

/// Constants are filled once, before the first step: no step may have their registers.
Operand Emitter::take_constant_register() {
  for (unsigned i = kMaxRegisters; i-- != 0;) {
    if (!used_[i]) {
      taken_.set(i);
      used_.set(i);
      return static_cast<Operand>(i);
    }
  }
  refuse_crowd();
}

void Emitter::refuse_crowd() const {
  refuse(fmt::format("found more than {} values at once; allowed: fewer names, constants and "
                     "nested parts",
                     kMaxRegisters));
}

void Emitter::release(const Value& value) {
  if (value.is_temporary) {
    taken_.reset(value.at);
  }
}

/// Adds a step whose result is a new register like another value, and frees what it used.
Value Emitter::emit(Step step, const Value& like, std::initializer_list<Value> used) {
  if (steps().size() == kMaxSteps) {
    refuse(fmt::format("found more than {} steps in {}; allowed: {}", kMaxSteps, name_of(phase_),
                       kMaxSteps));
  }
  Value result = like;
  result.at = take_register();
  result.is_temporary = true;
  step.to = result.at;
  step.per_block = result.per_block;
  steps().push_back(step);
  for (const Value& value : used) {
    release(value);
  }
  return result;
}

// ------------------------------------------------------------------------------------------ values

Value Emitter::compile(const Expression& tree, std::optional<Lane> wanted) {
  switch (tree.kind) {
  case Expression::Kind::number:
    return constant(tree.word, false, wanted.value_or(lanes_), false);
  case Expression::Kind::name:
    return value_of_name(tree.word);
  case Expression::Kind::call:
    return call(tree, wanted);
  case Expression::Kind::binary:
    return binary(tree, wanted);
  case Expression::Kind::negative:
    return negative(tree, wanted);
  case Expression::Kind::inverted:
    return inverted(tree, wanted);
  }
  return {};
}

std::string Emitter::names() const {
  std::vector<std::string> known;
  for (const Field& field : code_.fields) {
    if (phase_ != Phase::finish) {
      known.push_back(field.name);
    }
  }
  for (const auto& [name, named] : named_) {
    known.push_back(name);
  }
  return fmt::format("{}", fmt::join(known, ", "));
}

Value Emitter::value_of_name(const std::string& name) {
  if (const auto found = named_.find(name); found != named_.end()) {
    return found->second.value;
  }
  const auto field = std::ranges::find(code_.fields, name, &Field::name);
  if (field == code_.fields.end()) {
    refuse(fmt::format("found \"{}\"; allowed: {}", name, names()));
  }
  if (phase_ == Phase::finish) {
    refuse(
        fmt::format("found \"{}\", which is read in start and fold; allowed: {}", name, names()));
  }
  return read(static_cast<std::size_t>(field - code_.fields.begin()));
}

/// Floats and integers narrower than the lanes are widened to them; i8 and i16 beside lanes of
/// another kind to i32.
Lane Emitter::lane_of_field(Format format) const {
  const FormatRow& row = row_of(format);
  if (row_of(lanes_).kind == row.kind) {
    return row_of(lanes_).bits > row_of(row.lane).bits ? lanes_ : row.lane;
  }
  return row.lane == Lane::i16 ? Lane::i32 : row.lane;
}

Value Emitter::read(std::size_t field) {
  if (const auto found = read_.find(field); found != read_.end()) {
    return found->second;
  }
  const Format format = code_.fields[field].format;
  const FormatRow& row = row_of(format);
  const Lane wanted = lane_of_field(format);
  const bool per_block = code_.is_block() && field == 1;
  const bool is_alone = !code_.is_block() && code_.fields.size() == 1;
  Value value{.lane = row.lane, .per_block = per_block};
  if (is_alone && static_cast<std::size_t>(format) < kLanes) {
    value.at = static_cast<Operand>(kDirect + field);
  } else {
    value =
        emit({.op = Op::load, .lane = row.lane, .a = static_cast<Operand>(field), .format = format},
             value, {});
  }
  value = converted(value, wanted);
  value.is_temporary = false; // it stays for the phase
  read_[field] = value;
  return value;
}

Value Emitter::constant(const std::string& number, bool is_negative, Lane lane, bool per_block) {
  const auto bits = is_float(lane) ? float_bits(number, is_negative, lane)
                                   : integer_bits(number, is_negative, lane);
  if (!bits) {
    refuse(fmt::format("found {}{}; allowed: a number that {} has", is_negative ? "-" : "", number,
                       row_of(lane).name));
  }
  Value value{.lane = lane, .per_block = per_block};
  const auto known = std::ranges::find_if(constants_, [&](const Constant& constant) {
    return constant.lane == lane && constant.per_block == per_block && constant.bits == *bits;
  });
  if (known != constants_.end()) {
    value.at = known->at;
    return value;
  }
  value.at = take_constant_register();
  constants_.push_back({lane, per_block, *bits, value.at});
  code_.constants.push_back(
      {.op = Op::fill, .lane = lane, .per_block = per_block, .to = value.at, .bits = *bits});
  return value;
}

void Emitter::expect_number(const Value& value, std::string_view where) const {
  if (value.is_condition) {
    refuse(fmt::format("found a condition in {}; allowed: a number, or select(condition, a, b)",
                       where));
  }
}

void Emitter::expect_float(const Value& value, std::string_view where) const {
  if (value.is_condition || !is_float(value.lane)) {
    refuse(fmt::format("found {} in {}; allowed: f32, f64", kind_of(value), where));
  }
}

void Emitter::need_finish(std::string_view what) const {
  if (phase_ != Phase::finish) {
    refuse(fmt::format("found {} in {}; allowed: {} in finish alone", what, name_of(phase_), what));
  }
}

Value Emitter::spread(const Value& value) {
  if (!value.per_block) {
    return value;
  }
  Value lanes = value;
  lanes.per_block = false;
  return emit({.op = Op::spread,
               .lane = value.is_condition ? signed_of_width(bytes_of(value.lane)) : value.lane,
               .a = value.at},
              lanes, {value});
}

/// Both have a value for each lane, or both for each block.
void Emitter::make_alike(Value& left, Value& right) {
  if (left.per_block != right.per_block) {
    left = spread(left);
    right = spread(right);
  }
}

Value Emitter::converted(Value value, Lane lane) {
  if (value.lane == lane) {
    return value;
  }
  Value result = value;
  result.lane = lane;
  return emit({.op = Op::convert, .lane = lane, .from = value.lane, .a = value.at}, result,
              {value});
}

Value Emitter::resized(const Value& condition, Lane lane) {
  Value result = condition;
  if (bytes_of(condition.lane) == bytes_of(lane)) {
    return result;
  }
  result.lane = signed_of_width(bytes_of(lane));
  return emit({.op = Op::convert,
               .lane = result.lane,
               .from = signed_of_width(bytes_of(condition.lane)),
               .a = condition.at},
              result, {condition});
}

/// Numbers take the lane of what stands beside them.
std::pair<Value, Value> Emitter::pair(const Expression& left, const Expression& right,
                                      std::optional<Lane> wanted) {
  if (left.is_number() && !right.is_number()) {
    auto [second, first] = pair(right, left, wanted);
    return {first, second};
  }
  Value first = compile(left, wanted);
  if (right.is_number() && !first.is_condition) {
    const bool is_negative = right.kind == Expression::Kind::negative;
    const Expression& number = is_negative ? right.parts[0] : right;
    if (number.kind == Expression::Kind::number) {
      return {first, constant(number.word, is_negative, first.lane, first.per_block)};
    }
  }
  const std::optional<Lane> beside = first.is_condition ? wanted : first.lane;
  Value second = compile(right, beside);
  return {first, second};
}

// --------------------------------------------------------------------------------------- operators

Value Emitter::negative(const Expression& tree, std::optional<Lane> wanted) {
  if (tree.parts[0].kind == Expression::Kind::number) {
    return constant(tree.parts[0].word, true, wanted.value_or(lanes_), false);
  }
  return of_one(Op::neg, tree.parts, wanted);
}

Value Emitter::inverted(const Expression& tree, std::optional<Lane> wanted) {
  const Value value = compile(tree.parts[0], wanted);
  if (!value.is_condition && is_float(value.lane)) {
    refuse(fmt::format("found {} behind ~; allowed: integers, conditions", kind_of(value)));
  }
  const Lane lane = value.is_condition ? signed_of_width(bytes_of(value.lane)) : value.lane;
  return emit({.op = Op::bit_not, .lane = lane, .a = value.at}, value, {value});
}

Value Emitter::binary(const Expression& tree, std::optional<Lane> wanted) {
  const std::string& sign = tree.word;
  const bool compares =
      sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==" || sign == "!=";
  auto [left, right] = pair(tree.parts[0], tree.parts[1], compares ? std::nullopt : wanted);
  if (sign == "&" || sign == "|" || sign == "^") {
    return bitwise(sign, left, right);
  }
  expect_number(left, '"' + sign + '"');
  expect_number(right, '"' + sign + '"');
  if (left.lane != right.lane) {
    refuse(fmt::format("found {} {} {}; allowed: two of one type, such as {}(…) {} {}",
                       kind_of(left), sign, kind_of(right), kind_of(right), sign, kind_of(right)));
  }
  return compares ? compared(sign, left, right) : arithmetic(sign, left, right);
}

Value Emitter::arithmetic(const std::string& sign, Value left, Value right) {
  const bool shifts = sign == "<<" || sign == ">>";
  if (shifts && is_float(left.lane)) {
    refuse(fmt::format("found {} {} {}; allowed: integers", kind_of(left), sign, kind_of(right)));
  }
  if (sign == "/") {
    need_finish("/");
    expect_float(left, "\"/\"");
  }
  const bool scales =
      (sign == "*" || sign == "/") && left.lane == Lane::f32 && !left.per_block && right.per_block;
  if (scales && fusing_ == Fusing::on) {
    return emit({.op = sign == "*" ? Op::mul_block : Op::div_block,
                 .lane = left.lane,
                 .a = left.at,
                 .b = right.at},
                left, {left, right});
  }
  std::vector<Step>& done = steps();
  const bool adds_scaled = sign == "+" && fusing_ == Fusing::on && right.is_temporary &&
                           !left.per_block && !done.empty() && done.back().op == Op::mul_block &&
                           done.back().to == right.at;
  if (adds_scaled) {
    Step& last = done.back();
    last.op = Op::mul_add_block;
    last.c = left.at;
    release(left);
    return right;
  }
  make_alike(left, right);
  const Op op = sign == "+"    ? Op::add
                : sign == "-"  ? Op::sub
                : sign == "*"  ? Op::mul
                : sign == "/"  ? Op::div
                : sign == "<<" ? Op::shl
                               : Op::shr;
  return emit({.op = op, .lane = left.lane, .a = left.at, .b = right.at}, left, {left, right});
}

Value Emitter::compared(const std::string& sign, Value left, Value right) {
  make_alike(left, right);
  const bool swaps = sign == ">" || sign == ">=";
  const Op op = sign == "<" || sign == ">" ? Op::less
                : sign == "=="             ? Op::equal
                : sign == "!="             ? Op::not_equal
                                           : Op::less_equal;
  Value condition = left;
  condition.is_condition = true;
  return emit({.op = op,
               .lane = left.lane,
               .a = swaps ? right.at : left.at,
               .b = swaps ? left.at : right.at},
              condition, {left, right});
}

Value Emitter::bitwise(const std::string& sign, Value left, Value right) {
  const bool are_conditions = left.is_condition && right.is_condition;
  const bool are_integers =
      !left.is_condition && !right.is_condition && left.lane == right.lane && !is_float(left.lane);
  if (!are_conditions && !are_integers) {
    refuse(fmt::format("found {} {} {}; allowed: two conditions, or two integers of one type",
                       kind_of(left), sign, kind_of(right)));
  }
  make_alike(left, right);
  if (are_conditions) {
    right = resized(right, left.lane);
  }
  const Op op = sign == "&" ? Op::bit_and : sign == "|" ? Op::bit_or : Op::bit_xor;
  const Lane lane = are_conditions ? signed_of_width(bytes_of(left.lane)) : left.lane;
  return emit({.op = op, .lane = lane, .a = left.at, .b = right.at}, left, {left, right});
}

// --------------------------------------------------------------------------------------- functions

void Emitter::expect_parts(const std::string& function, const Parts& parts,
                           std::size_t count) const {
  if (parts.size() != count) {
    refuse(fmt::format("found {} values in {}(…); allowed: {}", parts.size(), function, count));
  }
}

Value Emitter::call(const Expression& tree, std::optional<Lane> wanted) {
  const std::string& name = tree.word;
  if (const auto op = simple_function(name)) {
    expect_parts(name, tree.parts, 1);
    return of_one(*op, tree.parts, wanted);
  }
  if (const auto op = pair_function(name)) {
    expect_parts(name, tree.parts, 2);
    return of_two(*op, tree.parts, wanted);
  }
  if (name == "fma" || name == "select") {
    expect_parts(name, tree.parts, 3);
    return name == "fma" ? of_three(tree.parts, wanted) : selected(tree.parts, wanted);
  }
  if (name == "block_max" || name == "block_sum") {
    expect_parts(name, tree.parts, 1);
    return over_block(name == "block_max" ? Op::block_max : Op::block_sum, tree.parts);
  }
  if (const auto lane = lane_named(name)) {
    expect_parts(name, tree.parts, 1);
    const Value value = compile(tree.parts[0], tree.parts[0].is_number() ? lane : std::nullopt);
    expect_number(value, name + "(…)");
    return converted(value, *lane);
  }
  const auto format = format_named(name);
  if (format && row_of(*format).lane == Lane::f32) {
    expect_parts(name, tree.parts, 1);
    return rounded_to(*format, tree.parts);
  }
  refuse(fmt::format("found {}(…); allowed: {}", name, kFunctions));
}

/// The value of the nearest code.
Value Emitter::rounded_to(Format format, const Parts& parts) {
  const Value value = compile(parts[0], Lane::f32);
  if (value.is_condition || value.lane != Lane::f32) {
    refuse(fmt::format("found {} in {}(…); allowed: f32", kind_of(value), row_of(format).name));
  }
  return emit({.op = Op::quantise, .lane = Lane::f32, .a = value.at, .format = format}, value,
              {value});
}

Value Emitter::of_one(Op op, const Parts& parts, std::optional<Lane> wanted) {
  const Value value = compile(parts[0], wanted);
  expect_number(value, op == Op::neg ? "-" : "a function");
  const bool is_for_floats = op != Op::neg && op != Op::abs;
  if (is_for_floats) {
    expect_float(value, "a function of floats");
  }
  if (op == Op::sqrt) {
    need_finish("sqrt(…)");
  }
  if ((op == Op::floor_log2 || op == Op::pow2) && value.lane != Lane::f32) {
    refuse(fmt::format("found {} in floor_log2(…) or pow2(…); allowed: f32", kind_of(value)));
  }
  Value result = value;
  result.is_condition = op == Op::is_nan;
  return emit({.op = op, .lane = value.lane, .a = value.at}, result, {value});
}

Value Emitter::of_two(Op op, const Parts& parts, std::optional<Lane> wanted) {
  auto [left, right] = pair(parts[0], parts[1], wanted);
  expect_number(left, "a function");
  expect_number(right, "a function");
  if (left.lane != right.lane) {
    refuse(fmt::format("found {} and {} in one function; allowed: two of one type", kind_of(left),
                       kind_of(right)));
  }
  if ((op == Op::add_sat || op == Op::sub_sat) && is_float(left.lane)) {
    refuse(fmt::format("found {} in add_sat(…) or sub_sat(…); allowed: integers", kind_of(left)));
  }
  make_alike(left, right);
  return emit({.op = op, .lane = left.lane, .a = left.at, .b = right.at}, left, {left, right});
}

Value Emitter::of_three(const Parts& parts, std::optional<Lane> wanted) {
  auto [left, right] = pair(parts[0], parts[1], wanted);
  Value third = compile(parts[2], left.lane);
  for (const Value& value : {left, right, third}) {
    expect_float(value, "fma(…)");
    if (value.lane != left.lane) {
      refuse(fmt::format("found {} and {} in fma(…); allowed: three of one type", kind_of(left),
                         kind_of(value)));
    }
  }
  if (left.per_block || right.per_block || third.per_block) {
    left = spread(left);
    right = spread(right);
    third = spread(third);
  }
  return emit({.op = Op::fma, .lane = left.lane, .a = left.at, .b = right.at, .c = third.at}, left,
              {left, right, third});
}

Value Emitter::selected(const Parts& parts, std::optional<Lane> wanted) {
  Value condition = compile(parts[0], std::nullopt);
  if (!condition.is_condition) {
    refuse(fmt::format("found {} as the first value of select(…); allowed: a condition, such as "
                       "a > b",
                       kind_of(condition)));
  }
  auto [left, right] = pair(parts[1], parts[2], wanted);
  if (left.lane != right.lane || left.is_condition || right.is_condition) {
    refuse(fmt::format("found {} and {} in select(…); allowed: two of one type", kind_of(left),
                       kind_of(right)));
  }
  if (condition.per_block != left.per_block || left.per_block != right.per_block) {
    condition = spread(condition);
    left = spread(left);
    right = spread(right);
  }
  condition = resized(condition, left.lane);
  return emit({.op = Op::select, .lane = left.lane, .a = left.at, .b = right.at, .c = condition.at},
              left, {left, right, condition});
}

Value Emitter::over_block(Op op, const Parts& parts) {
  if (!code_.is_block()) {
    refuse("found block_max or block_sum beside a struct; allowed: where a block is read");
  }
  const Value value = compile(parts[0], std::nullopt);
  if (value.per_block || value.is_condition || value.lane != Lane::f32) {
    refuse(fmt::format("found {} in block_max(…) or block_sum(…); allowed: f32 of each lane",
                       value.per_block ? "a value for each block" : kind_of(value)));
  }
  Value result = value;
  result.per_block = true;
  return emit({.op = op, .lane = value.lane, .a = value.at}, result, {value});
}

// -------------------------------------------------------------------------------------- statements

void Emitter::assign(const std::string& name, const Expression& tree, unsigned line) {
  line_ = line;
  if (phase_ == Phase::finish) {
    if (const auto field = output_named(name)) {
      return store(*field, tree);
    }
  }
  const bool is_output = name == "out" || name.starts_with("out.");
  const bool is_field = std::ranges::find(code_.fields, name, &Field::name) != code_.fields.end();
  if (is_output || is_field || name.find('.') != std::string::npos) {
    refuse(fmt::format("found {} = …; allowed: {}a name of your own", name,
                       phase_ == Phase::finish ? outputs() + ", " : ""));
  }
  const auto known = named_.find(name);
  if (known == named_.end() && named_.size() == kMaxNamed) {
    refuse(fmt::format("found a name more, {}; allowed: {} at once", name, kMaxNamed));
  }
  const Value result =
      compile(tree, known == named_.end() ? std::nullopt : std::optional(known->second.value.lane));
  if (result.is_condition) {
    refuse(fmt::format("found a condition for {}; allowed: select({}, a, b)", name, "condition"));
  }
  if (known == named_.end()) {
    Value value = result;
    if (!result.is_temporary) {
      value = emit({.op = Op::copy, .lane = result.lane, .a = result.at}, result, {});
    }
    value.is_temporary = false;
    named_[name] = {value, phase_};
    return;
  }
  Value& value = known->second.value;
  if (value.lane != result.lane || (value.per_block && !result.per_block)) {
    refuse(fmt::format("found {}{} for {}; allowed: {}{}", kind_of(result),
                       result.per_block ? " of each block" : "", name, row_of(value.lane).name,
                       value.per_block ? " of each block" : ""));
  }
  const Value alike = value.per_block ? result : spread(result);
  if (alike.is_temporary) {
    steps().back().to = value.at;
    release(alike);
    return;
  }
  emit({.op = Op::copy, .lane = value.lane, .a = alike.at}, value, {});
  taken_.reset(steps().back().to);
  steps().back().to = value.at;
}

void Emitter::flag(unsigned number, const Expression& condition, unsigned line) {
  line_ = line;
  const Value value = compile(condition, std::nullopt);
  if (!value.is_condition) {
    refuse(fmt::format("found {} behind when; allowed: a condition, such as acc > 127",
                       kind_of(value)));
  }
  const Lane lane = signed_of_width(bytes_of(value.lane));
  Value unused =
      emit({.op = Op::flag, .lane = lane, .a = value.at, .bits = std::uint64_t{1} << number}, value,
           {value});
  release(unused);
  code_.has_flags = true;
}

std::optional<std::size_t> Emitter::output_named(const std::string& name) const {
  for (std::size_t field = 0; field < code_.fields.size(); ++field) {
    const bool is_scale = code_.is_block() && field == 1;
    const bool is_only = code_.is_block() ? field == 0 : code_.fields.size() == 1;
    const bool is_named = !code_.is_block() && name == "out." + code_.fields[field].name;
    if ((is_scale && name == "scale") || (is_only && name == "out") || is_named) {
      return field;
    }
  }
  return std::nullopt;
}

std::string Emitter::outputs() const {
  if (code_.is_block()) {
    return "out, scale";
  }
  if (code_.fields.size() == 1) {
    return "out";
  }
  std::vector<std::string> names;
  for (const Field& field : code_.fields) {
    names.push_back("out." + field.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// `out = round(…)`: to nearest even; `clip` and `wrap` make integers narrower.
void Emitter::store(std::size_t field, const Expression& tree) {
  const Format format = code_.fields[field].format;
  const FormatRow& row = row_of(format);
  const bool per_block = code_.is_block() && field == 1;
  if (stored_[field]) {
    refuse(fmt::format("found a second value for {}; allowed: one", code_.fields[field].name));
  }
  stored_.set(field);
  const bool has_fitting = tree.kind == Expression::Kind::call && tree.parts.size() == 1 &&
                           (tree.word == "round" || tree.word == "clip" || tree.word == "wrap");
  const std::string how = has_fitting ? tree.word : "";
  Value value = compile(has_fitting ? tree.parts[0] : tree, lane_of_field(format));
  expect_number(value, "an output");
  if (row_of(value.lane).kind != row.kind) {
    refuse(fmt::format("found {}; allowed: {}", kind_of(value), row.name));
  }
  const bool is_narrower = row.bits < row_of(value.lane).bits;
  const bool is_scale = per_block && format == Format::e8m0;
  const std::string_view allowed = row.kind == Kind::floating ? "round(…)" : "clip(…) or wrap(…)";
  const bool fits = row.kind == Kind::floating ? how == "round" : how == "clip" || how == "wrap";
  if ((is_narrower && !is_scale && !fits) || (!how.empty() && !fits)) {
    refuse(fmt::format("found {} for {}; allowed: {}", how.empty() ? kind_of(value) : how + "(…)",
                       row.name, allowed));
  }
  if (row.lane == Lane::f32 && value.lane == Lane::f64 && format != Format::f32) {
    refuse(
        fmt::format("found f64 for {}; allowed: f32, as {} is rounded once", row.name, row.name));
  }
  if (value.per_block && !per_block) {
    value = spread(value);
  } else if (per_block && !value.per_block) {
    refuse("found a value of each lane for scale; allowed: one of each block, such as "
           "block_max(…)");
  }
  if (how == "clip" && is_narrower) {
    value =
        emit({.op = Op::clip, .lane = value.lane, .a = value.at, .format = format}, value, {value});
  }
  value = converted(value, row.lane);
  if (steps().size() == kMaxSteps) {
    refuse(fmt::format("found more than {} steps in finish; allowed: {}", kMaxSteps, kMaxSteps));
  }
  steps().push_back({.op = Op::store,
                     .lane = row.lane,
                     .per_block = per_block,
                     .to = static_cast<Operand>(field),
                     .a = value.at,
                     .format = format});
  release(value);
}

void Emitter::end(unsigned line) {
  line_ = line;
  for (std::size_t field = 0; field < code_.fields.size(); ++field) {
    if (!stored_[field]) {
      refuse(fmt::format("found no value for {}; allowed: one for each of {}",
                         code_.is_block() ? (field == 0 ? "out" : "scale")
                                          : "out." + code_.fields[field].name,
                         outputs()));
    }
  }
}

} // namespace weir::program
