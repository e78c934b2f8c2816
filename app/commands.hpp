// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

/// One command of the prompt: its words, its help and its action. A word in <> stands for a value,
/// `a|b` for a choice.
struct Command {
  std::vector<std::string> words;
  std::string help;
  /// Gets the words typed for <> and a|b, in order; returns the text to print. Throws for an
  /// unknown value.
  std::function<std::string(const std::vector<std::string>&)> run;
  /// A word that may follow the others, such as "json" or "<count>"; empty: none. When it is typed,
  /// `run` gets it as the last word.
  std::string last = {};
};

/// All commands of one switch, for the prompt and for command files.
class Commands {
 public:
  explicit Commands(control::Switch& weir);

  /// Runs a line and returns the text to print. For an unknown word this is the list of known ones.
  std::string run(std::string_view line);

  /// All words that may stand in place of the last word of `line`.
  std::vector<std::string> completions(std::string_view line) const;

  bool wants_quit() const { return wants_quit_; }

 private:
  std::string help() const;
  std::vector<std::string> allowed_for(const std::string& word) const;
  std::vector<const Command*> that_begin_with(const std::vector<std::string>& words) const;
  std::vector<std::string> next_words(const std::vector<std::string>& words) const;
  std::string explain(const std::vector<std::string>& words) const;

  void add_actions();
  void add_captures();
  void add_questions();

  control::Switch& weir_;
  std::vector<Command> commands_;
  bool wants_quit_ = false;
};

} // namespace weir::app
