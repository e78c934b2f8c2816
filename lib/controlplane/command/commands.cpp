// SPDX-License-Identifier: BSD-3-Clause
#include "command/commands.hpp"

#include "report/answers.hpp"
#include "report/captures.hpp"
#include "report/operators.hpp"
#include "report/questions.hpp"
#include "report/reclaims.hpp"
#include "text/printable.hpp"
#include "text/quoted_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace weir::command {
namespace {

Words split(std::string_view text, char separator) {
  Words parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  return parts;
}

bool is_value(const std::string& word) {
  return word.front() == '<';
}

bool is_choice(const std::string& word) {
  return !is_value(word) && word.find('|') != word.npos;
}

/// Whether `typed` may stand where the grammar has `word`. Any text may stand for a value; the
/// command itself checks it.
bool fits(const std::string& word, const std::string& typed) {
  if (is_value(word)) {
    return true;
  }
  const Words choices = split(word, '|');
  return std::find(choices.begin(), choices.end(), typed) != choices.end();
}

/// With the one that may be missing.
Words all_words_of(const Command& command) {
  Words words = command.words;
  if (!command.last.empty()) {
    words.push_back(command.last);
  }
  return words;
}

std::string grammar_of(const Command& command) {
  return fmt::format("{}{}", fmt::join(command.words, " "),
                     command.last.empty() ? "" : fmt::format(" [{}]", command.last));
}

} // namespace

Commands::Commands(control::Switch& weir) : weir_(weir) {
  add_actions();
  add_reload();
  add_captures();
  add_questions();
  add_operators();
}

void Commands::add_reload() {
  commands_.push_back({{"reload"},
                       "read the configuration file again, and apply what can change while the "
                       "switch runs",
                       [this](const Words&) { return report::reload(weir_); },
                       std::string(kJson)});
  commands_.push_back({{"reload", "--dry-run"},
                       "tell what that would change",
                       [this](const Words&) { return report::rehearse_reload(weir_); },
                       std::string(kJson)});
}

void Commands::add_actions() {
  commands_.push_back(
      {.words = {"help"},
       .help = "this list",
       .run = {},
       .run_for = [this](const Words&, const control::Principal&) { return help(); }});
  commands_.push_back({{"clear", "port", "stats", "<name|all>"},
                       "set a port's statistics to zero",
                       [this](const Words& values) {
                         report::clear_port_statistics(weir_, values[0]);
                         return fmt::format("port {}: statistics cleared\n", values[0]);
                       }});
  commands_.push_back({{"set", "trace", "on|off"},
                       "write down what becomes of every frame (the last 4096 per lcore)",
                       [this](const Words& values) {
                         if (values[0] == "on") {
                           weir_.traces().switch_on();
                         } else {
                           weir_.traces().switch_off();
                         }
                         return fmt::format("trace is {}\n", values[0]);
                       }});
  commands_.push_back(
      {.words = {"reset", "ring", "<id>"},
       .help = "give up what a ring holds and its connections; new hellos start it anew",
       .run = {},
       .run_for = [this](const Words& values, const control::Principal& principal) {
         report::reset_ring(weir_, values[0], principal);
         return fmt::format("ring {}: reset\n", values[0]);
       }});
  commands_.push_back({{"add", "ring", "<file>"},
                       "make a ring, or a list of rings, as a YAML file has them under rings:",
                       [this](const Words& values) {
                         const auto ids = report::add_rings(weir_, values[0]);
                         return fmt::format("added: ring {}\n", fmt::join(ids, ", "));
                       }});
  commands_.push_back(
      {.words = {"drain", "ring", "<id>"},
       .help = "let its job end: refuse new ones, and withdraw it when its members have "
               "been silent for so many seconds, 10 unless given",
       .run = {},
       .last = "<seconds>",
       .run_for = [this](const Words& values, const control::Principal& principal) {
         const auto quiet = report::drain_ring(
             weir_, values[0], values.size() > 1 ? values[1] : std::string(), principal);
         return fmt::format("ring {}: drains; it goes when its members have been silent for {} s\n",
                            values[0], quiet.count());
       }});
  commands_.push_back({.words = {"withdraw", "ring", "<id>"},
                       .help =
                           "the same for good: nobody adds up for its hosts any more, and none of "
                           "their raw data passes",
                       .run = {},
                       .run_for = [this](const Words& values, const control::Principal& principal) {
                         report::withdraw_ring(weir_, values[0], principal);
                         return fmt::format("ring {}: withdrawn\n", values[0]);
                       }});
  commands_.push_back({.words = {"withdraw", "region", "<region>"},
                       .help = "end a region: its members are told when they ask",
                       .run = {},
                       .run_for = [this](const Words& values, const control::Principal& principal) {
                         report::withdraw_region(weir_, values[0], principal);
                         return fmt::format("region {}: withdrawn\n", values[0]);
                       }});
}

namespace {

/// The words <…>, <file> and perhaps <count> of a `capture` command.
report::CaptureTarget target_of(const Words& values) {
  return {values[1], values.size() > 2 ? std::string_view(values[2]) : std::string_view()};
}

using StartCapture = void (*)(control::Switch&, std::string_view, const report::CaptureTarget&);

/// What `capture` prints once it runs.
std::string started(control::Switch& weir, StartCapture start, const Words& values) {
  start(weir, values[0], target_of(values));
  return fmt::format("capture to {}: at most {} packets; `show capture` tells how far it is\n",
                     values[1], weir.captures().last()->count);
}

std::string ended(control::Switch& weir) {
  weir.captures().stop();
  const auto status = weir.captures().last();
  if (!status) {
    return "no capture runs\n";
  }
  const std::string failure = status->error.empty() ? "" : "; it failed: " + status->error;
  return fmt::format("capture to {}: {} packets written, {} left out{}\n", status->file,
                     status->written, status->left_out, failure);
}

} // namespace

void Commands::add_captures() {
  const std::string bound =
      fmt::format("at most count packets, {} unless given", report::kCaptureCount);
  commands_.push_back(
      {{"capture", "ring", "<id>", "<file>"},
       "write the ring's packets to a pcapng file, with what becomes of each; " + bound,
       [this](const Words& values) { return started(weir_, report::capture_ring, values); },
       "<count>"});
  commands_.push_back(
      {{"capture", "conn", "<pair:qp>", "<file>"},
       "the same for a queue pair of `show conn all` and what answers it",
       [this](const Words& values) { return started(weir_, report::capture_connection, values); },
       "<count>"});
  commands_.push_back(
      {{"capture", "port", "<name|all>", "<file>"},
       "the same for everything that comes in or leaves by a port",
       [this](const Words& values) { return started(weir_, report::capture_ports, values); },
       "<count>"});
  commands_.push_back({{"capture", "stop"},
                       "end the capture; its file is whole then",
                       [this](const Words&) { return ended(weir_); }});
}

/// A tenant reads no file of this machine: it sends a text itself (LoadOperator).
void Commands::add_operators() {
  using control::Principal;
  commands_.push_back({.words = {"show", "operators"},
                       .help = "operators of the users' own: price, rings, packets, flags",
                       .run = {},
                       .last = std::string(kJson),
                       .run_for = [this](const Words&, const Principal& principal) {
                         return report::show_operators(weir_, principal);
                       }});
  commands_.push_back(
      {{"load", "operator", "<file>"},
       "check an operator's text, and fold by it for all who ask",
       [this](const Words& values) { return report::load_operator(weir_, values[0]); }});
  commands_.push_back({.words = {"unload", "operator", "<digest|name>"},
                       .help = "forget it; not while a ring's job folds by it",
                       .run = {},
                       .run_for = [this](const Words& values, const Principal& principal) {
                         weir_.operators().unload(
                             report::operator_named(weir_.operators(), values[0], principal),
                             principal);
                         return fmt::format("operator {}: unloaded\n", values[0]);
                       }});
  commands_.push_back({{"test", "operator", "<digest|name>", "<files>"},
                       "what it makes of packets, one in each of the files FILE,FILE,…",
                       [this](const Words& values) {
                         return report::test_operator(weir_, values[0], values[1], {});
                       }});
}

void Commands::add_questions() {
  for (const report::Question& question : report::questions()) {
    commands_.push_back(
        {.words = split(question.grammar, ' '),
         .help = std::string(question.help),
         .run = {},
         .last = std::string(kJson),
         .is_question = true,
         .run_for = [this, takes_one = report::argument_in(question.grammar) != nullptr,
                     &question](const Words& values, const control::Principal& principal) {
           return question.ask(weir_, takes_one ? values.front() : "", principal);
         }});
  }
}

namespace {

/// Whether the typed words are this command, with or without its last word.
bool is(const Command& command, const Words& typed) {
  const Words grammar = all_words_of(command);
  return typed.size() >= command.words.size() && typed.size() <= grammar.size() &&
         std::equal(
             typed.begin(), typed.end(), grammar.begin(),
             [](const std::string& word, const std::string& meant) { return fits(meant, word); });
}

/// The words typed for <> and a|b, and the last one that may be missing.
Words values_of(const Command& command, const Words& typed) {
  Words values;
  for (std::size_t i = 0; i < typed.size(); ++i) {
    if (i >= command.words.size() || is_value(command.words[i]) || is_choice(command.words[i])) {
      values.push_back(typed[i]);
    }
  }
  return values;
}

} // namespace

const Command& Commands::command_of(const Words& words, const control::Principal& principal) const {
  const auto found = std::ranges::find_if(
      commands_, [&words](const Command& command) { return is(command, words); });
  if (found == commands_.end()) {
    throw WrongWords(explain(words, principal));
  }
  return *found;
}

Answer Commands::execute(const Words& words, const control::Principal& principal) const {
  const Command& command = command_of(words, principal);
  if (command.run_for) {
    return command.run_for(values_of(command, words), principal);
  }
  if (!principal.is_operator()) {
    throw control::NotAllowed(
        fmt::format("'{}': found tenant {}; allowed: an operator. A tenant may ask questions, add "
                    "rings of its own, and reset, drain and withdraw these",
                    fmt::join(words, " "), principal.tenant));
  }
  return command.run(values_of(command, words));
}

report::Report Commands::ask(const Words& words, const control::Principal& principal) const {
  const Command& command = command_of(words, principal);
  if (!command.is_question) {
    throw WrongWords(fmt::format("found '{}'; allowed: a question, such as `show ring all`",
                                 fmt::join(words, " ")));
  }
  return std::get<report::Report>(command.run_for(values_of(command, words), principal));
}

std::string Commands::run(std::string_view line) const {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos || line[begin] == '#') {
    return {};
  }
  try {
    const Words words = text::quoted_words(line);
    return text::printable_lines(printed(execute(words, {}), words));
  } catch (const std::exception& error) {
    return text::printable(error.what()) + "\n";
  }
}

Words Commands::completions(std::string_view line, const control::Principal& principal) const {
  Words words = split(line, ' '); // of a value in quotes, nothing is known that may follow
  std::string typed;
  if (!line.empty() && line.back() != ' ' && !words.empty()) {
    typed = words.back();
    words.pop_back();
  }
  Words fitting;
  for (const std::string& word : next_words(words, principal)) {
    if (word.starts_with(typed) && !is_value(word)) {
      fitting.push_back(word);
    }
  }
  return fitting;
}

std::string Commands::help() const {
  std::size_t width = 0;
  for (const Command& command : commands_) {
    width = std::max(width, grammar_of(command).size());
  }
  std::string text;
  for (const Command& command : commands_) {
    text += fmt::format("  {:{}}  {}\n", grammar_of(command), width, command.help);
  }
  return text;
}

Words Commands::allowed_for(const std::string& word, const control::Principal& principal) const {
  const report::Argument* argument = report::argument_in(word);
  return argument == nullptr ? split(word, '|') : argument->values(weir_, principal);
}

std::vector<const Command*> Commands::that_begin_with(const Words& words) const {
  std::vector<const Command*> commands;
  for (const Command& command : commands_) {
    const Words grammar = all_words_of(command);
    if (grammar.size() >= words.size() &&
        std::equal(
            words.begin(), words.end(), grammar.begin(),
            [](const std::string& typed, const std::string& word) { return fits(word, typed); })) {
      commands.push_back(&command);
    }
  }
  return commands;
}

Words Commands::next_words(const Words& words, const control::Principal& principal) const {
  std::set<std::string> next;
  for (const Command* command : that_begin_with(words)) {
    const Words grammar = all_words_of(*command);
    if (grammar.size() > words.size()) {
      const auto allowed = allowed_for(grammar[words.size()], principal);
      next.insert(allowed.begin(), allowed.end());
    }
  }
  return {next.begin(), next.end()};
}

/// The error for a line that is no command: the first word that does not fit, or what is missing at
/// the end.
std::string Commands::explain(const Words& words, const control::Principal& principal) const {
  Words known;
  for (const std::string& word : words) {
    const std::vector<std::string> allowed = next_words(known, principal);
    known.push_back(word);
    if (that_begin_with(known).empty()) {
      return fmt::format("found '{}'; allowed: {}", word,
                         allowed.empty() ? "the end of the line"
                                         : fmt::format("{}", fmt::join(allowed, ", ")));
    }
  }
  return fmt::format("more is needed: {}", fmt::join(next_words(words, principal), ", "));
}

} // namespace weir::command
