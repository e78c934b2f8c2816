// SPDX-License-Identifier: BSD-3-Clause
#include "report/operators.hpp"

#include "control/switch.hpp"
#include "files/whole_file.hpp"
#include "program/operator_words.hpp"
#include "report/answers.hpp"
#include "report/switch_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace weir::report {
namespace {

std::string operator_file(std::string_view file) {
  if (std::optional<std::string> text = files::read_whole(file)) {
    return *text;
  }
  throw UnknownName(fmt::format("file: found {}, which cannot be read; allowed: a file of this "
                                "machine",
                                file));
}

} // namespace

Report show_operators(const control::Switch& weir, const control::Principal& principal) {
  return {tables::kOperators.with_all(weir.operators().list(principal))};
}

program::Digest operator_named(const control::OperatorAdmin& operators, std::string_view word,
                               const control::Principal& principal) {
  const std::vector<control::OperatorSeen> all = operators.list(principal);
  std::vector<program::Spoken> known;
  for (const control::OperatorSeen& one : all) {
    known.push_back({one.name, program::to_string(one.digest)});
  }
  try {
    return all[program::place_of(word, known)].digest;
  } catch (const std::invalid_argument& error) {
    throw control::NoSuchOperator(error.what());
  }
}

std::string load_operator(control::Switch& weir, const std::string& file) {
  try {
    const control::OperatorSeen loaded = weir.operators().load(operator_file(file), {});
    return program::loaded_in_words(loaded.name, program::to_string(loaded.digest), loaded.price);
  } catch (const control::OperatorError& error) {
    throw control::OperatorError(program::in_file(file, error.what()));
  }
}

std::string test_operator(const control::Switch& weir, std::string_view word,
                          std::string_view files, const control::Principal& principal) {
  std::vector<std::string> contents;
  while (!files.empty()) {
    const std::size_t end = std::min(files.find(','), files.size());
    contents.push_back(operator_file(files.substr(0, end)));
    files.remove_prefix(std::min(end + 1, files.size()));
  }
  std::vector<std::span<const std::byte>> inputs;
  for (const std::string& packet : contents) {
    inputs.push_back(std::as_bytes(std::span(packet)));
  }
  const control::OperatorAdmin& operators = weir.operators();
  const std::vector<std::byte> result =
      operators.test(operator_named(operators, word, principal), inputs, principal);
  return program::packet_in_words({reinterpret_cast<const char*>(result.data()), result.size()});
}

} // namespace weir::report
