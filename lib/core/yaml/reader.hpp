// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Reads a YAML file key by key; checks each value's type and range. Knows YAML and positions in
/// the file, not what the keys mean.

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::yaml {

/// Both ends included.
struct Range {
  std::uint64_t least;
  std::uint64_t most;
};

/// One place in a YAML file: a value, or the place where a key is missing. It remembers file, line
/// and key path ("rings[0].members[2].ip"), so that each error fits in one line: "FILE:LINE: KEY:
/// found X; allowed: Y". Copies are cheap and share the file's text. Every reading function throws
/// Error (yaml/error.hpp) when the value is not of the kind that it reads.
class Reader {
 public:
  /// The root of the only document in `text`. `file` stands for the text in errors. Throws
  /// Error for: invalid YAML, control characters, no document, more than one document.
  static Reader parse(std::string_view text, std::string_view file);

  /// Throws an error about the whole file, at its first line.
  [[noreturn]] static void fail_file(std::string_view file, std::string_view found,
                                     std::string_view allowed);

  [[noreturn]] void fail(std::string_view found, std::string_view allowed) const;

  const std::string& key() const { return key_; }

  /// Counted from 1. For a missing key: the line on which its map begins. For an alias: the line of
  /// its anchor.
  int line() const { return line_; }

  bool is_present() const { return present_; }

  bool is_list() const { return present_ && node_.IsSequence(); }

  bool is_map() const { return present_ && node_.IsMap(); }

  /// The value as errors print it: a number unchanged, any other scalar in quotes, or "a list".
  std::string found() const;

  /// Rejects anything but a map whose keys are all in `known` and appear once.
  void expect_map(std::span<const std::string_view> known) const;
  /// The value of `name` in this map, or the place where it is missing.
  Reader at(std::string_view name) const;
  /// The entries of this list. `what` is their name in errors ("ports").
  std::vector<Reader> items(Range count, std::string_view what) const;

  /// A non-empty scalar of printable characters. `allowed` describes it in errors.
  std::string text(std::string_view allowed) const;
  /// A whole number, decimal or 0x hexadecimal. A leading zero is rejected: it means octal in YAML
  /// 1.1 and decimal in 1.2.
  std::uint64_t whole_number(Range range) const;
  std::uint64_t power_of_two(Range range) const;
  std::uint64_t one_of(std::span<const std::uint64_t> numbers) const;
  /// The index in `words` of this word.
  std::size_t one_of(std::span<const std::string_view> words) const;

 private:
  /// The whole file: its text, and its name for errors.
  struct Source;

  Reader(std::shared_ptr<const Source> source, std::string key, int line)
      : source_(std::move(source)), key_(std::move(key)), line_(line) {}

  Reader child(const YAML::Node& node, std::string key, int line) const;
  std::string path_of(std::string_view name) const;
  void check_key(const YAML::Node& key, const YAML::Node& value,
                 std::span<const std::string_view> known) const;
  std::optional<std::uint64_t> number() const;
  int line_of_item(const YAML::Node& item) const;

  std::shared_ptr<const Source> source_;
  std::string key_;
  int line_ = 1;
  bool present_ = false;
  YAML::Node node_; // valid while present_
};

// What errors call allowed.
std::string allowed_number(Range range);
std::string allowed_power(Range range);
std::string allowed_length(Range count, std::string_view what);

/// "a, b or c".
std::string join_or(std::span<const std::string_view> words);
std::string join_or(std::span<const std::uint64_t> numbers);

/// "; did you mean X?" when one of `words` is similar to `word`, else empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

/// `text` in double quotes. Unprintable bytes are escaped; long text is cut.
std::string in_quotes(std::string_view text);

} // namespace weir::yaml
