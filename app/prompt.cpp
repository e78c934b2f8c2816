// SPDX-License-Identifier: BSD-3-Clause
#include "prompt.hpp"

#include <fmt/format.h>
#include <histedit.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace weir::app {
namespace {

constexpr int kPollMs = 100;
constexpr int kHistoryLines = 500;

/// What libedit's callbacks get as EL_CLIENTDATA.
struct Session {
  const command::Commands& commands;
  const std::atomic<bool>& stop;
  const std::function<std::string()>& meanwhile;
};

Session& session_of(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return *static_cast<Session*>(data);
}

const char* prompt_text(EditLine*) {
  return "weir> ";
}

/// A terminal may go at any time. fmt::print would throw then, and nothing may be thrown through
/// libedit.
void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Does what a signal has asked for. The line being typed stands below what there is to tell.
void look_around(EditLine* editor) {
  const std::string said = session_of(editor).meanwhile();
  if (!said.empty()) {
    say("\n" + said);
    el_set(editor, EL_REFRESH);
  }
}

/// Reads a key. Checks from time to time whether a signal has asked the switch to stop.
int read_key(EditLine* editor, wchar_t* key) {
  const Session& session = session_of(editor);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  look_around(editor);
  while (poll(&input, 1, kPollMs) <= 0) {
    if (session.stop) {
      return 0;
    }
    look_around(editor);
  }
  unsigned char byte = 0;
  const bool got_key = read(STDIN_FILENO, &byte, 1) == 1;
  *key = byte;
  return got_key ? 1 : 0;
}

std::string common_prefix(const std::vector<std::string>& words) {
  std::string prefix = words.front();
  for (const std::string& word : words) {
    const auto [end, unused] =
        std::mismatch(prefix.begin(), prefix.end(), word.begin(), word.end());
    prefix.erase(end, prefix.end());
  }
  return prefix;
}

/// Tab: completes the word as far as it is unique, or lists the possible words.
unsigned char complete(EditLine* editor, int) {
  const LineInfo* line = el_line(editor);
  const std::string typed(line->buffer, line->cursor);
  const std::vector<std::string> words = session_of(editor).commands.completions(typed, {});
  if (words.empty()) {
    return CC_ERROR;
  }
  const std::size_t begun = typed.size() - (typed.find_last_of(' ') + 1);
  std::string rest = common_prefix(words).substr(begun);
  if (words.size() == 1) {
    rest += ' ';
  }
  if (rest.empty()) {
    say(fmt::format("\n{}\n", fmt::join(words, "  ")));
    return CC_REDISPLAY;
  }
  el_insertstr(editor, rest.c_str());
  return CC_REFRESH;
}

} // namespace

PromptEnd run_prompt(const command::Commands& commands, const std::atomic<bool>& stop,
                     const std::function<std::string()>& meanwhile) {
  Session session{commands, stop, meanwhile};
  const std::unique_ptr<EditLine, decltype(&el_end)> editor(el_init("weir", stdin, stdout, stderr),
                                                            &el_end);
  const std::unique_ptr<History, decltype(&history_end)> past(history_init(), &history_end);
  HistEvent event;
  history(past.get(), &event, H_SETSIZE, kHistoryLines);
  history(past.get(), &event, H_SETUNIQUE, 1);
  el_set(editor.get(), EL_CLIENTDATA, &session);
  el_set(editor.get(), EL_PROMPT, &prompt_text);
  el_set(editor.get(), EL_EDITOR, "emacs");
  el_set(editor.get(), EL_HIST, history, past.get());
  el_set(editor.get(), EL_GETCFN, &read_key);
  el_set(editor.get(), EL_ADDFN, "weir-complete", "complete a word", &complete);
  el_set(editor.get(), EL_BIND, "^I", "weir-complete", nullptr);
  el_set(editor.get(), EL_BIND, "^D", "ed-delete-next-char", nullptr); // it is no order to end

  while (!stop) {
    int length = 0;
    const char* text = el_gets(editor.get(), &length);
    if (text == nullptr || length <= 0) {
      return stop ? PromptEnd::stop : PromptEnd::terminal_gone;
    }
    std::string line(text, static_cast<std::size_t>(length));
    line.erase(line.find_last_not_of(" \r\n") + 1);
    if (!line.empty()) {
      history(past.get(), &event, H_ENTER, line.c_str());
    }
    say(commands.run(line));
  }
  return PromptEnd::stop;
}

} // namespace weir::app
