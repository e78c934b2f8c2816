// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/settings.hpp"

#include "host/variables/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::mpi {
namespace {

constexpr const char* kUsualFile = "/etc/weir/mpi.conf";

/// Whose value counts.
enum class Scope { own, job };

using variables::Variable;

void set(std::string& to, const Variable&, std::string_view text) {
  to = text;
}

void set(std::vector<std::uint32_t>& to, const Variable& variable, std::string_view text) {
  to = variables::rings_in(variable, text);
}

template <typename Number>
void set(std::optional<Number>& to, const Variable& variable, std::string_view text) {
  to = variables::number_in<Number>(variable, text);
}

/// A number, or one of several words.
template <typename Value>
void set(Value& to, const Variable& variable, std::string_view text) {
  if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
    to = static_cast<Value>(variables::word_in(variable, text));
  } else {
    to = variables::number_in<Value>(variable, text);
  }
}

/// A variable, and what of the settings it sets.
struct Row {
  const Variable& variable;
  Scope scope;
  void (*read)(Settings&, const Variable&, std::string_view text);

  constexpr std::string_view name() const { return variable.name; }
};

template <auto member>
consteval Row variable(std::string_view name, Scope scope) {
  return {variables::variable_of(variables::kMpi, name), scope,
          [](Settings& settings, const Variable& row, std::string_view text) {
            set(settings.*member, row, text);
          }};
}

// docs/mpi.md has the same list.
constexpr std::array kRows{
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

const Row* find_row(std::string_view name) {
  const auto* const found = std::ranges::find(kRows, name, &Row::name);
  return found != kRows.end() ? found : nullptr;
}

void apply(const Row& row, std::string_view text, Settings& settings) {
  if (!text.empty()) {
    row.read(settings, row.variable, text);
  }
}

std::string expanded(const Variable& variable, const std::string& text, int rank, int local_rank) {
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
      variables::refuse(variable, text, "after a '%' one of 'r', 'l' and '%'");
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
    if (variable.size() == text.size() || find_row(variable) == nullptr) {
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
  for (const Row& row : kRows) {
    if (const char* const text = secure_getenv(row.name().data()); text != nullptr) {
      found[std::string(row.name())] = text;
    }
  }
  return found;
}

Variables job_variables(const Variables& all) {
  Variables found;
  std::ranges::copy_if(all, std::inserter(found, found.end()), [](const auto& named) {
    return find_row(named.first)->scope == Scope::job;
  });
  return found;
}

Settings settings_of(const Variables& own, const Variables& job, int rank, int local_rank) {
  Settings settings;
  for (const Row& row : kRows) {
    apply(row, row.variable.usual, settings);
  }
  for (const auto& [name, text] : own) {
    const Row& row = *find_row(name);
    if (row.scope == Scope::own) {
      apply(row, expanded(row.variable, text, rank, local_rank), settings);
    }
  }
  for (const auto& [name, text] : job) {
    apply(*find_row(name), text, settings);
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
