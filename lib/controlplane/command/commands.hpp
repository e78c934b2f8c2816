// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/answer.hpp"
#include "control/switch.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::command {

/// The words are no command. what() has what was found and what is allowed.
class WrongWords : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One command: its words, its help and its action. A word in <> stands for a value, `a|b` for a
/// choice.
struct Command {
  Words words;
  std::string help;
  /// Gets the words typed for <> and a|b, in order. Throws for an unknown value.
  std::function<Answer(const Words&)> run;
  /// A word that may follow the others, such as "json" or "<count>"; empty: none. When it is typed,
  /// `run` gets it as the last word.
  std::string last = {};
  bool is_question = false; // it changes nothing
  /// In place of `run`, for a question, and for an order that is not the operators' alone: it asks
  /// itself what the principal may do and see.
  std::function<Answer(const Words&, const control::Principal&)> run_for = {};
};

/// What people can ask of one switch and have it do: the prompt's grammar. Once all commands are
/// added, any thread may use it.
class Commands {
 public:
  /// `weir` outlives it.
  explicit Commands(control::Switch& weir);

  /// One more command, such as the prompt's own.
  void add(Command command) { commands_.push_back(std::move(command)); }

  /// Throws WrongWords for words that are no command, control::NotAllowed for an order that is not
  /// this principal's to give, and what the command throws. `json` as the last word of a question
  /// is for who prints the answer.
  Answer execute(const Words& words, const control::Principal& principal) const;

  /// The same for a question only: throws WrongWords for what changes something.
  report::Report ask(const Words& words, const control::Principal& principal) const;

  /// Runs an operator's line and returns the text to print, be it an error.
  std::string run(std::string_view line) const;

  /// All words that this principal may put in place of the last word of `line`.
  Words completions(std::string_view line, const control::Principal& principal) const;

 private:
  const Command& command_of(const Words& words, const control::Principal& principal) const;
  std::string help() const;
  Words allowed_for(const std::string& word, const control::Principal& principal) const;
  std::vector<const Command*> that_begin_with(const Words& words) const;
  Words next_words(const Words& words, const control::Principal& principal) const;
  std::string explain(const Words& words, const control::Principal& principal) const;

  void add_actions();
  void add_reload();
  void add_captures();
  void add_questions();
  void add_operators();

  control::Switch& weir_;
  std::vector<Command> commands_;
};

} // namespace weir::command
