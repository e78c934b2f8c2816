// SPDX-License-Identifier: BSD-3-Clause
#include "yaml/reader.hpp"

#include "text/printable.hpp"
#include "yaml/error.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

namespace weir::yaml {

struct Reader::Source {
  std::string file;
  std::string text;
  std::vector<std::size_t> line_starts; // in the text

  /// Line `number`, counted from 1. Empty after the last line.
  std::string_view line(int number) const {
    const auto index = static_cast<std::size_t>(number) - 1;
    if (index >= line_starts.size()) {
      return {};
    }
    const std::string_view rest = std::string_view(text).substr(line_starts[index]);
    return rest.substr(0, rest.find('\n'));
  }
};

namespace {

constexpr std::string_view kWholeDocument = "(document)";
constexpr std::string_view kMissing = "nothing: the key is missing";

int line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 1 : mark.line + 1;
}

bool is_plain_key(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

bool is_all_digits(std::string_view text, int base) {
  return !text.empty() && std::ranges::all_of(text, [base](unsigned char c) {
    return (base == 16 ? std::isxdigit(c) : std::isdigit(c)) != 0;
  });
}

bool is_hexadecimal(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X");
}

bool looks_like_number(std::string_view text) {
  if (is_hexadecimal(text)) {
    return is_all_digits(text.substr(2), 16);
  }
  return is_all_digits(text.substr(text.starts_with('-') ? 1 : 0), 10);
}

bool has_leading_zero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && is_all_digits(text, 10);
}

/// The number in `text`, in the notation of Reader::whole_number. 2^64-1 for a larger one.
std::optional<std::uint64_t> number_in(std::string_view text) {
  const int base = is_hexadecimal(text) ? 16 : 10;
  const std::string_view digits = base == 16 ? text.substr(2) : text;
  if (!is_all_digits(digits, base) || has_leading_zero(text)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  return result.ec == std::errc{} ? number : std::numeric_limits<std::uint64_t>::max();
}

/// The found text where a number was expected. Adds the reason where it is not obvious.
std::string found_for_number(const std::string& found) {
  return has_leading_zero(found) ? found + ", octal or decimal by YAML's version" : found;
}

std::string lowered(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

/// Insertions, deletions, substitutions and swaps of neighbours from `a` to `b` (optimal string
/// alignment). Replacing a digit counts double: p3 is not p0 misspelt.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const char x = a[i - 1];
      const char y = b[j - 1];
      const std::size_t substitution = x == y ? 0 : is_digit(x) && is_digit(y) ? 2 : 1;
      edits[i][j] =
          std::min({edits[i - 1][j - 1] + substitution, edits[i - 1][j] + 1, edits[i][j - 1] + 1});
      if (i > 1 && j > 1 && x == b[j - 2] && a[i - 2] == y) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

/// Another ending of the same word, as "childs" for "children". Numbers are no endings.
bool have_one_stem(std::string_view written, std::string_view candidate) {
  constexpr std::ptrdiff_t shortest = 5;
  const auto [a, b] = std::ranges::mismatch(written, candidate);
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return a - written.begin() >= shortest && std::all_of(a, written.end(), is_letter) &&
         std::all_of(b, candidate.end(), is_letter);
}

std::vector<std::size_t> line_starts_in(std::string_view text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1)) {
    starts.push_back(end + 1);
  }
  return starts;
}

/// yaml-cpp takes byte 4 for the end of the file and most others of these for text. Editors do not
/// show them.
void check_characters(std::string_view text, std::string_view file) {
  int line = 1;
  for (const unsigned char c : text) {
    if (c == '\n') {
      ++line;
    } else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
      throw Error(
          fmt::format("{}:{}: {}: found the byte {:#04x}; allowed: UTF-8 text without control "
                      "characters",
                      file, line, kWholeDocument, c));
    }
  }
}

[[noreturn]] void fail_document(std::string_view file, const YAML::Mark& mark,
                                std::string_view found) {
  throw Error(fmt::format("{}:{}: {}: found {}; allowed: one YAML document", file, line_of(mark),
                          kWholeDocument, found));
}

/// Notes where documents start; ignores all else.
class DocumentStarts final : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> marks;

  void OnDocumentStart(const YAML::Mark& mark) override { marks.push_back(mark); }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}

  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}

  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}

  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}

  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}

  void OnMapEnd() override {}
};

/// YAML::LoadAll is not used: on text that begins with a comma it finds empty documents until
/// memory runs out.
std::pair<YAML::Node, YAML::Mark> load_document(const std::string& text, std::string_view file) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentStarts starts;
    if (!parser.HandleNextDocument(starts)) {
      fail_document(file, YAML::Mark::null_mark(), "an empty file");
    }
    if (parser.HandleNextDocument(starts)) {
      const bool stands_still = starts.marks[0].pos == starts.marks[1].pos;
      fail_document(file, starts.marks[1],
                    stands_still ? "text that is not YAML (no document begins so)"
                                 : "a second document");
    }
    return {YAML::Load(text), starts.marks[0]};
  } catch (const YAML::DeepRecursion& error) {
    fail_document(file, error.mark, "text that is not YAML (nested too deep)");
  } catch (const YAML::Exception& error) {
    fail_document(file, error.mark, fmt::format("text that is not YAML ({})", error.msg));
  }
}

} // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out = "\"" + text::printable(text.substr(0, longest));
  out += text.size() > longest ? "\" ..." : "\"";
  return out;
}

std::string allowed_number(Range range) {
  return fmt::format("a whole number, {} to {}", range.least, range.most);
}

std::string allowed_power(Range range) {
  return fmt::format("a power of two, {} to {}", range.least, range.most);
}

std::string allowed_length(Range count, std::string_view what) {
  if (count.least == count.most) {
    return fmt::format("a list of {} {}", count.most, what);
  }
  return count.least == 0 ? fmt::format("a list of at most {} {}", count.most, what)
                          : fmt::format("a list of {} to {} {}", count.least, count.most, what);
}

std::string join_or(std::span<const std::string_view> words) {
  if (words.size() < 2) {
    return words.empty() ? std::string() : std::string(words.front());
  }
  return fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "), words.back());
}

std::string join_or(std::span<const std::uint64_t> numbers) {
  std::vector<std::string> words;
  for (const std::uint64_t number : numbers) {
    words.push_back(fmt::format("{}", number));
  }
  return join_or(std::vector<std::string_view>(words.begin(), words.end()));
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> words) {
  constexpr std::size_t longest = 64; // only words up to this length are compared
  const std::string written = lowered(word.substr(0, longest));
  std::string_view closest;
  std::size_t fewest = longest;
  for (const std::string_view candidate : words) {
    const std::size_t edits = edits_between(written, lowered(candidate));
    const std::size_t most =
        std::max<std::size_t>(1, std::max(written.size(), candidate.size()) / 3);
    const bool is_similar =
        edits <= most || (edits == most + 1 && have_one_stem(written, candidate));
    if (is_similar && edits < candidate.size() && edits < fewest) {
      fewest = edits;
      closest = candidate;
    }
  }
  return closest.empty() ? std::string() : fmt::format("; did you mean {}?", closest);
}

Reader Reader::parse(std::string_view text, std::string_view file) {
  check_characters(text, file);
  const auto source = std::make_shared<const Source>(
      Source{std::string(file), std::string(text), line_starts_in(text)});
  const auto [document, start] = load_document(source->text, file);
  const int line = line_of(document.IsNull() ? start : document.Mark());
  return Reader(source, "", line).child(document, "", line);
}

void Reader::fail_file(std::string_view file, std::string_view found, std::string_view allowed) {
  throw Error(fmt::format("{}:1: {}: found {}; allowed: {}", file, kWholeDocument, found, allowed));
}

void Reader::fail(std::string_view found, std::string_view allowed) const {
  throw Error(fmt::format("{}:{}: {}: found {}; allowed: {}", source_->file, line_,
                          key_.empty() ? kWholeDocument : key_, found, allowed));
}

std::string Reader::found() const {
  if (!present_) {
    return std::string(kMissing);
  }
  switch (node_.Type()) {
  case YAML::NodeType::Scalar:
    return looks_like_number(node_.Scalar()) && node_.Scalar().size() <= 40
               ? node_.Scalar()
               : in_quotes(node_.Scalar());
  case YAML::NodeType::Sequence:
    return "a list";
  case YAML::NodeType::Map:
    return "a map";
  default:
    return "nothing";
  }
}

Reader Reader::child(const YAML::Node& node, std::string key, int line) const {
  Reader reader(source_, std::move(key), line);
  reader.present_ = true;
  reader.node_.reset(node);
  return reader;
}

std::string Reader::path_of(std::string_view name) const {
  const std::string shown = is_plain_key(name) ? std::string(name) : in_quotes(name);
  return key_.empty() ? shown : fmt::format("{}.{}", key_, shown);
}

void Reader::check_key(const YAML::Node& key, const YAML::Node& value,
                       std::span<const std::string_view> known) const {
  const int line = line_of(key.Mark());
  if (!key.IsScalar()) {
    child(key, key_, line)
        .fail(child(key, key_, line).found() + " as a key",
              fmt::format("{}", fmt::join(known, ", ")));
  }
  const std::string& name = key.Scalar();
  if (std::ranges::find(known, name) != known.end()) {
    return;
  }
  // YAML reads { device: net_tap0,iface=x } as a key `iface=x` without a value.
  const bool split_at_comma = value.IsNull() && name.find('=') != std::string::npos;
  child(key, path_of(name), line)
      .fail(split_at_comma ? "an unknown key (a value with a comma needs quotes)"
                           : "an unknown key",
            fmt::format("{}{}", fmt::join(known, ", "), did_you_mean(name, known)));
}

void Reader::expect_map(std::span<const std::string_view> known) const {
  if (!present_ || !node_.IsMap()) {
    fail(found(), fmt::format("a map with keys out of {}", fmt::join(known, ", ")));
  }
  std::map<std::string, int> line_of_key;
  for (const auto& entry : node_) {
    check_key(entry.first, entry.second, known);
    const std::string& name = entry.first.Scalar();
    const int line = line_of(entry.first.Mark());
    const auto [first, is_new] = line_of_key.emplace(name, line);
    if (!is_new) {
      child(entry.first, path_of(name), line)
          .fail(fmt::format("the key a second time (first on line {})", first->second),
                "each key once");
    }
  }
}

Reader Reader::at(std::string_view name) const {
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == name) {
      // yaml-cpp places a key without a value where the next item is.
      const YAML::Mark mark = entry.second.IsNull() ? entry.first.Mark() : entry.second.Mark();
      return child(entry.second, path_of(name), line_of(mark));
    }
  }
  return Reader(source_, path_of(name), line_);
}

int Reader::line_of_item(const YAML::Node& item) const {
  const int marked = line_of(item.Mark());
  if (!item.IsNull() || node_.Style() != YAML::EmitterStyle::Block) {
    return marked;
  }
  // yaml-cpp places an item without a value ("-") where the next item is. A written null ("- ~")
  // has its own place.
  const auto column = static_cast<std::size_t>(std::max(item.Mark().column, 0));
  const std::string_view there = source_->line(marked).substr(0, column + 1);
  if (there.size() > column && (there.back() == '~' || lowered(there.substr(column)) == "n")) {
    return marked;
  }
  for (int line = marked - 1; line > line_; --line) {
    const std::string_view above = source_->line(line);
    const std::size_t start = above.find_first_not_of(" \t\r");
    if (start != std::string_view::npos && above[start] != '#') {
      return line;
    }
  }
  return line_;
}

std::vector<Reader> Reader::items(Range count, std::string_view what) const {
  const std::string allowed = allowed_length(count, what);
  if (!present_ || !node_.IsSequence()) {
    fail(found(), allowed);
  }
  if (node_.size() < count.least || node_.size() > count.most) {
    fail(fmt::format("a list of {}", node_.size()), allowed);
  }
  std::vector<Reader> readers;
  readers.reserve(node_.size());
  for (const YAML::Node& item : node_) {
    readers.push_back(child(item, fmt::format("{}[{}]", key_, readers.size()), line_of_item(item)));
  }
  return readers;
}

std::string Reader::text(std::string_view allowed) const {
  if (!present_ || !node_.IsScalar() || node_.Scalar().empty()) {
    fail(found(), allowed);
  }
  if (!text::is_printable(node_.Scalar())) {
    fail(found(), fmt::format("{}, without control characters", allowed));
  }
  return node_.Scalar();
}

std::optional<std::uint64_t> Reader::number() const {
  return present_ && node_.IsScalar() ? number_in(node_.Scalar()) : std::nullopt;
}

std::uint64_t Reader::whole_number(Range range) const {
  const std::optional<std::uint64_t> value = number();
  if (!value || *value < range.least || *value > range.most) {
    fail(found_for_number(found()), allowed_number(range));
  }
  return *value;
}

std::uint64_t Reader::power_of_two(Range range) const {
  const std::optional<std::uint64_t> value = number();
  if (!value || *value < range.least || *value > range.most || !std::has_single_bit(*value)) {
    fail(found_for_number(found()), allowed_power(range));
  }
  return *value;
}

std::uint64_t Reader::one_of(std::span<const std::uint64_t> numbers) const {
  const std::optional<std::uint64_t> value = number();
  if (!value || std::ranges::find(numbers, *value) == numbers.end()) {
    fail(found_for_number(found()), join_or(numbers));
  }
  return *value;
}

std::size_t Reader::one_of(std::span<const std::string_view> words) const {
  if (!present_ || !node_.IsScalar()) {
    fail(found(), join_or(words));
  }
  const auto word = std::ranges::find(words, node_.Scalar());
  if (word == words.end()) {
    fail(found(), join_or(words) + did_you_mean(node_.Scalar(), words));
  }
  return static_cast<std::size_t>(word - words.begin());
}

} // namespace weir::yaml
