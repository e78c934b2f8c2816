// SPDX-License-Identifier: BSD-3-Clause
#include "program/parse.hpp"

#include "program/emitter.hpp"
#include "program/expression.hpp"
#include "program/fuse.hpp"
#include "program/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace weir::program {
namespace {

constexpr unsigned kVersion = 1;
constexpr std::size_t kMostNameBytes = 32;
constexpr std::array<std::string_view, 8> kHeads{"weir-operator", "name",  "read", "lanes",
                                                 "identity",      "start", "fold", "finish"};
constexpr std::size_t kFirstPhase = 5;

/// A statement and its line.
struct Statement {
  unsigned line = 0;
  std::vector<Word> words;
};

struct Section {
  std::string_view head;
  std::vector<Statement> statements;
};

class Parser {
 public:
  explicit Parser(Fusing fusing) : fusing_(fusing) {}

  Code parse(std::string_view text);

 private:
  [[noreturn]] static void refuse(const Statement& at, std::size_t word, std::string_view allowed);
  static const std::string& expect_name(const Statement& at, std::size_t word,
                                        std::string_view allowed);
  static void expect(const Statement& at, std::size_t word, std::string_view text);
  static void expect_end(const Statement& at, std::size_t word);
  static std::vector<Section> sections_of(std::string_view text);
  void read_name(const Statement& at);
  void read_fields(const Statement& at);
  void read_block(const Statement& at);
  void read_struct(const Statement& at);
  Format read_format(const Statement& at, std::size_t word, std::string_view where) const;
  void add_field(const Statement& at, std::size_t word, const std::string& name, Format format);
  void read_lanes(const Statement& at);
  void read_identity(const Statement& at);
  void put_identity(const Statement& at, std::size_t word, std::size_t field);
  void read_phase(Emitter& emitter, Phase phase, const Section& section);
  void read_statement(Emitter& emitter, Phase phase, const Statement& at);
  void derive_order(const std::set<std::string>& accumulators);

  Fusing fusing_;
  Code code_;
  Lane lanes_{};
  bool flags_early_ = false; // by what one rank brings, or the first ones
  std::map<std::string, std::vector<Expression>> started_;
  std::map<std::string, std::vector<Expression>> folded_;
};

void Parser::refuse(const Statement& at, std::size_t word, std::string_view allowed) {
  const std::string found =
      word < at.words.size() ? '"' + at.words[word].text + '"' : "the end of the line";
  throw TextError(at.line, fmt::format("found {}; allowed: {}", found, allowed));
}

const std::string& Parser::expect_name(const Statement& at, std::size_t word,
                                       std::string_view allowed) {
  if (word >= at.words.size() || at.words[word].kind != Word::Kind::name) {
    refuse(at, word, allowed);
  }
  return at.words[word].text;
}

void Parser::expect(const Statement& at, std::size_t word, std::string_view text) {
  if (word >= at.words.size() || !at.words[word].is(text)) {
    refuse(at, word, fmt::format("\"{}\"", text));
  }
}

void Parser::expect_end(const Statement& at, std::size_t word) {
  if (word < at.words.size()) {
    refuse(at, word, "the end of the line");
  }
}

/// The first line's head has a sign inside, as has the name of an operator.
std::string first_of(std::vector<Word>& words) {
  std::string head = words.front().text;
  words.erase(words.begin());
  if (head == "weir" && words.size() >= 2 && words[0].is("-") && words[1].is("operator")) {
    words.erase(words.begin(), words.begin() + 2);
    head = "weir-operator";
  }
  return head;
}

std::vector<Section> Parser::sections_of(std::string_view text) {
  std::vector<Section> sections;
  for (Line& line : split(text)) {
    if (line.is_indented && !sections.empty()) {
      if (sections.size() <= kFirstPhase) {
        refuse({line.number, line.words}, 0, "a line that is not indented");
      }
      sections.back().statements.push_back({line.number, std::move(line.words)});
      continue;
    }
    const Statement whole{line.number, line.words};
    const std::string head = first_of(line.words);
    const std::size_t due = sections.size();
    if (due == kHeads.size()) {
      refuse(whole, 0, "the end of the text");
    }
    if (head != kHeads[due]) {
      refuse(whole, 0, kHeads[due]);
    }
    sections.push_back({kHeads[due], {}});
    if (!line.words.empty() || due < kFirstPhase) {
      sections.back().statements.push_back({line.number, std::move(line.words)});
    }
  }
  if (sections.size() != kHeads.size()) {
    const auto lines = static_cast<unsigned>(std::ranges::count(text, '\n') + 1);
    throw TextError(lines,
                    fmt::format("found the end of the text; allowed: {}", kHeads[sections.size()]));
  }
  return sections;
}

void Parser::read_name(const Statement& at) {
  std::string name;
  for (const Word& word : at.words) {
    name += word.text;
  }
  const bool is_name =
      !name.empty() && name.size() <= kMostNameBytes &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") == std::string::npos;
  if (!is_name) {
    throw TextError(at.line, fmt::format("found the name \"{}\"; allowed: 1 to {} of a-z, 0-9, -, "
                                         "_ and .",
                                         name, kMostNameBytes));
  }
  code_.name = name;
}

Format Parser::read_format(const Statement& at, std::size_t word, std::string_view where) const {
  constexpr std::string_view allowed =
      "f32, f64, i16, i32, u32, i64, u64, f16, bf16, f8e4m3, f8e5m2, i8, u8, u16";
  const std::string& name = expect_name(at, word, allowed);
  const auto format = format_named(name);
  const bool is_packed = format && row_of(*format).bits % 8 != 0;
  const bool is_blocks = format && (is_packed || *format == Format::mxint8);
  if (!format || *format == Format::e8m0 || (is_blocks && where == "struct")) {
    refuse(at, word,
           where == "struct" ? std::string(allowed)
                             : std::string(allowed) + ", f6e2m3, f6e3m2, f4e2m1, mxint8");
  }
  return *format;
}

void Parser::add_field(const Statement& at, std::size_t word, const std::string& name,
                       Format format) {
  const bool is_reserved = name == "out" || name == "scale" || name == "flag" ||
                           name.find('.') != std::string::npos || format_named(name);
  if (is_reserved || std::ranges::find(code_.fields, name, &Field::name) != code_.fields.end()) {
    refuse(at, word, "a name of its own for each field, not that of a type, out, scale or flag");
  }
  code_.fields.push_back({name, format, code_.unit_bytes});
  code_.unit_bytes += row_of(format).bits / 8;
}

/// block N of CODES, scale FORMAT.
void Parser::read_block(const Statement& at) {
  constexpr std::string_view sizes = "8, 16, 32, 64, 128";
  const auto size = at.words.size() > 1 ? whole_number(at.words[1].text) : std::nullopt;
  if (!size || (*size != 8 && *size != 16 && *size != 32 && *size != 64 && *size != 128)) {
    refuse(at, 1, sizes);
  }
  expect(at, 2, "of");
  const Format codes = read_format(at, 3, "block");
  if (row_of(codes).lane != Lane::f32) {
    refuse(at, 3, "a float of at most 32 bits");
  }
  expect(at, 4, ",");
  expect(at, 5, "scale");
  const auto scale = format_named(expect_name(at, 6, "e8m0, f8e4m3, f8e5m2, f16, bf16, f32"));
  if (!scale || row_of(*scale).lane != Lane::f32 || row_of(*scale).bits % 8 != 0 ||
      *scale == Format::mxint8) {
    refuse(at, 6, "e8m0, f8e4m3, f8e5m2, f16, bf16, f32");
  }
  expect_end(at, 7);
  code_.block = static_cast<unsigned>(*size);
  code_.code_bytes = code_.block * row_of(codes).bits / 8;
  code_.fields = {{"x", codes, 0}, {"s", *scale, 0}};
  code_.unit_bytes = code_.code_bytes + row_of(*scale).bits / 8;
}

/// TYPE NAME, TYPE NAME, ….
void Parser::read_struct(const Statement& at) {
  std::size_t word = 0;
  while (true) {
    const Format format = read_format(at, word, "struct");
    add_field(at, word + 1, expect_name(at, word + 1, "a name for the field"), format);
    word += 2;
    if (word == at.words.size()) {
      return;
    }
    expect(at, word, ",");
    ++word;
    if (code_.fields.size() == kMaxFields) {
      refuse(at, word,
             fmt::format("the end of the line: a struct has {} fields at most", kMaxFields));
    }
  }
}

void Parser::read_fields(const Statement& at) {
  if (!at.words.empty() && at.words[0].is("block")) {
    read_block(at);
  } else {
    read_struct(at);
  }
}

void Parser::read_lanes(const Statement& at) {
  constexpr std::string_view allowed = "f32, f64, i16, i32, u32, i64, u64";
  const auto format = format_named(expect_name(at, 0, allowed));
  if (!format || static_cast<std::size_t>(*format) >= kLanes) {
    refuse(at, 0, allowed);
  }
  lanes_ = static_cast<Lane>(*format);
  if (code_.is_block() && lanes_ != Lane::f32) {
    refuse(at, 0, "f32, in which blocks are computed");
  }
  expect_end(at, 1);
}

/// The bits of one value; of a block's codes all get it.
void Parser::put_identity(const Statement& at, std::size_t word, std::size_t field) {
  const unsigned bits = row_of(code_.fields[field].format).bits;
  const auto value = word < at.words.size() ? whole_number(at.words[word].text) : std::nullopt;
  if (!value || (bits < 64 && *value >> bits != 0)) {
    refuse(at, word, fmt::format("the bits of the value, at most {} of them", bits));
  }
  const bool is_codes = code_.is_block() && field == 0;
  const std::size_t first =
      code_.is_block() ? (field == 0 ? 0 : code_.code_bytes * 8) : code_.fields[field].offset * 8;
  const unsigned values = is_codes ? code_.block : 1;
  for (unsigned i = 0; i < values * bits; ++i) {
    const std::size_t bit = first + i;
    const auto set = static_cast<std::uint8_t>((*value >> (i % bits) & 1) << (bit % 8));
    (*code_.identity)[bit / 8] |= set;
  }
}

/// none, or a word and the bits for each field, in their order.
void Parser::read_identity(const Statement& at) {
  if (at.words.size() == 1 && at.words[0].is("none")) {
    return;
  }
  code_.identity.emplace(code_.unit_bytes);
  std::size_t word = 0;
  for (std::size_t field = 0; field < code_.fields.size(); ++field) {
    const std::string_view name = code_.is_block() ? (field == 0 ? "code" : "scale")
                                                   : std::string_view(code_.fields[field].name);
    if (word >= at.words.size() || !at.words[word].is(name)) {
      refuse(at, word,
             field == 0 ? fmt::format("none, or {} and its bits", name)
                        : fmt::format("{} and its bits", name));
    }
    put_identity(at, word + 1, field);
    word += 2;
  }
  expect_end(at, word);
}

void Parser::read_statement(Emitter& emitter, Phase phase, const Statement& at) {
  const std::string& first = expect_name(at, 0, "name = expression, or flag when condition");
  if (first == "flag") {
    std::size_t word = 1;
    std::uint64_t flag = 0;
    if (at.words.size() > 1 && at.words[1].kind == Word::Kind::number) {
      flag = whole_number(at.words[1].text).value_or(64);
      if (flag > 63) {
        refuse(at, 1, "the number of a flag, 0 .. 63");
      }
      ++word;
    }
    expect(at, word, "when");
    flags_early_ |= phase != Phase::finish;
    const auto rest = std::span(at.words).subspan(word + 1);
    emitter.flag(static_cast<unsigned>(flag), read_expression(rest, at.line), at.line);
    return;
  }
  expect(at, 1, "=");
  Expression tree = read_expression(std::span(at.words).subspan(2), at.line);
  emitter.assign(first, tree, at.line);
  if (phase != Phase::finish) {
    (phase == Phase::start ? started_ : folded_)[first].push_back(std::move(tree));
  }
}

void Parser::read_phase(Emitter& emitter, Phase phase, const Section& section) {
  emitter.begin(phase);
  code_.text += section.head;
  code_.text += '\n';
  for (const Statement& statement : section.statements) {
    read_statement(emitter, phase, statement);
    code_.text += ' ' + joined(statement.words) + '\n';
  }
}

/// Each accumulator begins with a value that the fold joins to it by a step of integers that
/// neither rounds nor prefers one side. A flag of start or fold is about one rank's value, or about
/// the first ones' sum.
void Parser::derive_order(const std::set<std::string>& accumulators) {
  const auto joins = [&](const std::string& name) {
    const auto folded = folded_.find(name);
    if (folded == folded_.end() || folded->second.size() != 1 || started_[name].size() != 1) {
      return false;
    }
    const Expression& tree = folded->second[0];
    const bool is_pair = tree.parts.size() == 2 && tree.parts[0].kind == Expression::Kind::name &&
                         tree.parts[0].word == name;
    constexpr std::array<std::string_view, 7> joining{"+", "*", "&", "|", "^", "min", "max"};
    return is_pair && std::ranges::find(joining, tree.word) != joining.end() &&
           tree.parts[1].text() == started_[name][0].text() &&
           std::ranges::none_of(accumulators, [&](const std::string& other) {
             return tree.parts[1].mentions(other);
           });
  };
  const bool are_integers =
      !is_float(lanes_) && std::ranges::all_of(code_.fields, [](const Field& field) {
        return row_of(field.format).kind != Kind::floating;
      });
  const bool has_temporaries = folded_.size() != accumulators.size();
  code_.order_never_matters =
      are_integers && !has_temporaries && !flags_early_ && std::ranges::all_of(accumulators, joins);
}

Code Parser::parse(std::string_view text) {
  const std::vector<Section> sections = sections_of(text);
  const auto head = [&](std::size_t index) -> const Statement& {
    return sections[index].statements.front();
  };
  if (head(0).words.size() != 1 || whole_number(head(0).words[0].text) != kVersion) {
    refuse(head(0), 0, fmt::format("{}", kVersion));
  }
  read_name(head(1));
  read_fields(head(2));
  read_lanes(head(3));
  read_identity(head(4));
  code_.text =
      fmt::format("weir-operator {}\nname {}\nread {}\nlanes {}\nidentity {}\n", kVersion,
                  code_.name, joined(head(2).words), joined(head(3).words), joined(head(4).words));
  Emitter emitter(code_, lanes_, fusing_);
  read_phase(emitter, Phase::start, sections[5]);
  std::set<std::string> accumulators;
  for (const auto& [name, trees] : started_) {
    accumulators.insert(name);
  }
  read_phase(emitter, Phase::fold, sections[6]);
  read_phase(emitter, Phase::finish, sections[7]);
  const auto lines = static_cast<unsigned>(std::ranges::count(text, '\n') + 1);
  emitter.end(lines);
  code_.accumulator = emitter.only_accumulator();
  derive_order(accumulators);
  if (fusing_ == Fusing::on) {
    fuse(code_);
  }
  const auto is_wide = [](const Step& step) {
    return bytes_of(step.lane) == 8 || bytes_of(step.from) == 8;
  };
  const bool has_wide =
      std::ranges::any_of(code_.constants, is_wide) || std::ranges::any_of(code_.start, is_wide) ||
      std::ranges::any_of(code_.fold, is_wide) || std::ranges::any_of(code_.finish, is_wide);
  code_.tile_lanes = kTileBytes / (has_wide ? 8 : 4);
  return std::move(code_);
}

} // namespace

Code parse(std::string_view text, Fusing fusing) {
  return Parser(fusing).parse(text);
}

} // namespace weir::program
