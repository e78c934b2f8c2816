// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/settings.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weir::mpi {
namespace {

constexpr const char* kUsualFile = "/etc/weir/mpi.conf";

/// Whose value counts.
enum class Scope { own, job };

[[noreturn]] void refuse(std::string_view name, std::string_view found, std::string_view allowed) {
  throw std::invalid_argument(fmt::format("{}: found '{}'; allowed: {}", name, found, allowed));
}

template <typename Number>
Number number_in(std::string_view name, std::string_view text) {
  const std::optional<Number> number = text::parsed<Number>(text);
  if (!number) {
    refuse(name, text, fmt::format("a number from 0 to {}", std::numeric_limits<Number>::max()));
  }
  return *number;
}

std::vector<std::uint32_t> numbers_in(std::string_view name, std::string_view text) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    numbers.push_back(number_in<std::uint32_t>(name, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return numbers;
}

template <typename Choice, std::size_t count>
Choice choice_in(std::string_view name, std::string_view text,
                 const std::array<std::pair<std::string_view, Choice>, count>& choices) {
  std::string allowed;
  for (const auto& [word, choice] : choices) {
    if (word == text) {
      return choice;
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(word);
  }
  refuse(name, text, allowed);
}

constexpr std::array kTransports{
    std::pair<std::string_view, weir_transport>{"software", WEIR_SOFTWARE},
    std::pair<std::string_view, weir_transport>{"verbs", WEIR_VERBS}};
constexpr std::array kFallbacks{std::pair<std::string_view, Fallback>{"mpi", Fallback::mpi},
                                std::pair<std::string_view, Fallback>{"ring", Fallback::ring},
                                std::pair<std::string_view, Fallback>{"none", Fallback::none}};
constexpr std::array kFormings{std::pair<std::string_view, Forming>{"lazy", Forming::lazy},
                               std::pair<std::string_view, Forming>{"eager", Forming::eager}};
constexpr std::array kSwitches{std::pair<std::string_view, bool>{"0", false},
                               std::pair<std::string_view, bool>{"1", true}};

void set(std::string& to, std::string_view, std::string_view text) {
  to = text;
}

template <typename Number>
void set(std::optional<Number>& to, std::string_view name, std::string_view text) {
  to = number_in<Number>(name, text);
}

void set(std::uint32_t& to, std::string_view name, std::string_view text) {
  to = number_in<std::uint32_t>(name, text);
}

void set(std::uint64_t& to, std::string_view name, std::string_view text) {
  to = number_in<std::uint64_t>(name, text);
}

void set(std::vector<std::uint32_t>& to, std::string_view name, std::string_view text) {
  to = numbers_in(name, text);
}

void set(weir_transport& to, std::string_view name, std::string_view text) {
  to = choice_in(name, text, kTransports);
}

void set(Fallback& to, std::string_view name, std::string_view text) {
  to = choice_in(name, text, kFallbacks);
}

void set(Forming& to, std::string_view name, std::string_view text) {
  to = choice_in(name, text, kFormings);
}

void set(bool& to, std::string_view name, std::string_view text) {
  to = choice_in(name, text, kSwitches);
}

struct Variable {
  std::string_view name;
  Scope scope;
  void (*read)(Settings&, std::string_view name, std::string_view text);
};

template <auto member>
constexpr Variable variable(std::string_view name, Scope scope) {
  return {name, scope, [](Settings& settings, std::string_view called, std::string_view text) {
            set(settings.*member, called, text);
          }};
}

// docs/mpi.md has the same list.
constexpr std::array kVariables{
    variable<&Settings::transport>("WEIR_TRANSPORT", Scope::own),
    variable<&Settings::device>("WEIR_DEVICE", Scope::own),
    variable<&Settings::ip>("WEIR_IP", Scope::own),
    variable<&Settings::mac>("WEIR_MAC", Scope::own),
    variable<&Settings::rendezvous>("WEIR_RENDEZVOUS", Scope::own),
    variable<&Settings::gid_index>("WEIR_GID_INDEX", Scope::own),
    variable<&Settings::switch_address>("WEIR_SWITCH", Scope::job),
    variable<&Settings::switch_certificate>("WEIR_SWITCH_CERTIFICATE", Scope::job),
    variable<&Settings::switch_key>("WEIR_SWITCH_KEY", Scope::job),
    variable<&Settings::switch_authority>("WEIR_SWITCH_AUTHORITY", Scope::job),
    variable<&Settings::switch_name>("WEIR_SWITCH_NAME", Scope::job),
    variable<&Settings::rings>("WEIR_RINGS", Scope::job),
    variable<&Settings::window>("WEIR_WINDOW", Scope::job),
    variable<&Settings::message_bytes>("WEIR_MESSAGE_BYTES", Scope::job),
    variable<&Settings::path_mtu>("WEIR_PATH_MTU", Scope::job),
    variable<&Settings::ack_timeout_ms>("WEIR_ACK_TIMEOUT_MS", Scope::job),
    variable<&Settings::form_timeout_ms>("WEIR_FORM_TIMEOUT_MS", Scope::job),
    variable<&Settings::timeout_ms>("WEIR_TIMEOUT_MS", Scope::job),
    variable<&Settings::lateness_ms>("WEIR_LATENESS_MS", Scope::job),
    variable<&Settings::fallback>("WEIR_FALLBACK", Scope::job),
    variable<&Settings::forming>("WEIR_FORMING", Scope::job),
    variable<&Settings::threshold>("WEIR_THRESHOLD", Scope::job),
    variable<&Settings::has_operators>("WEIR_OPERATORS", Scope::job),
    variable<&Settings::is_verbose>("WEIR_VERBOSE", Scope::job),
};

const Variable* find_variable(std::string_view name) {
  const auto* const found = std::ranges::find(kVariables, name, &Variable::name);
  return found != kVariables.end() ? found : nullptr;
}

void apply(const Variable& variable, const std::string& text, Settings& settings) {
  if (!text.empty()) {
    variable.read(settings, variable.name, text);
  }
}

std::string expanded(std::string_view name, const std::string& text, int rank, int local_rank) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      result += text[at];
      continue;
    }
    const char what = ++at < text.size() ? text[at] : '\0';
    if (what == 'r' || what == 'l') {
      result += std::to_string(what == 'r' ? rank : local_rank);
    } else if (what == '%') {
      result += '%';
    } else {
      refuse(name, text, "after a '%' one of 'r', 'l' and '%'");
    }
  }
  return result;
}

std::string_view without_blanks(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin == line.npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

std::string_view comment_removed(std::string_view line) {
  return line.starts_with('#') ? "" : line;
}

Variables variables_of_file(const std::string& name) {
  std::ifstream file(name);
  if (!file) {
    throw std::invalid_argument(
        fmt::format("WEIR_MPI_CONFIG: found {}, which cannot be read", name));
  }
  Variables found;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = comment_removed(without_blanks(line));
    const std::string variable(text.substr(0, text.find('=')));
    if (text.empty()) {
      continue;
    }
    if (variable.size() == text.size() || find_variable(variable) == nullptr) {
      throw std::invalid_argument(fmt::format(
          "{}:{}: found '{}'; allowed: NAME=VALUE with a name of docs/mpi.md", name, number, text));
    }
    found[variable] = text.substr(variable.size() + 1);
  }
  return found;
}

} // namespace

Variables given_variables() {
  const char* const named = secure_getenv("WEIR_MPI_CONFIG");
  Variables found;
  if (named != nullptr && *named != '\0') {
    found = variables_of_file(named);
  } else if (std::ifstream(kUsualFile)) {
    found = variables_of_file(kUsualFile);
  }
  for (const Variable& variable : kVariables) {
    if (const char* const text = secure_getenv(variable.name.data()); text != nullptr) {
      found[std::string(variable.name)] = text;
    }
  }
  return found;
}

Variables job_variables(const Variables& all) {
  Variables found;
  std::ranges::copy_if(all, std::inserter(found, found.end()), [](const auto& named) {
    return find_variable(named.first)->scope == Scope::job;
  });
  return found;
}

Settings settings_of(const Variables& own, const Variables& job, int rank, int local_rank) {
  Settings settings;
  for (const auto& [name, text] : own) {
    const Variable& variable = *find_variable(name);
    if (variable.scope == Scope::own) {
      apply(variable, expanded(name, text, rank, local_rank), settings);
    }
  }
  for (const auto& [name, text] : job) {
    apply(*find_variable(name), text, settings);
  }
  return settings;
}

std::string text_of(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += fmt::format("{}={}", name, value) + '\0';
  }
  return text;
}

Variables variables_in(const std::string& text) {
  Variables found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, '\0');) {
    const std::size_t at = line.find('=');
    found[line.substr(0, at)] = line.substr(at + 1);
  }
  return found;
}

} // namespace weir::mpi
