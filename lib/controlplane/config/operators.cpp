// SPDX-License-Identifier: BSD-3-Clause
#include "config/operators.hpp"

#include "config/config_error.hpp"
#include "files/whole_file.hpp"
#include "program/operator_words.hpp"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <string>

namespace weir::config {
namespace {

std::shared_ptr<const program::Operator> load(const std::string& file) {
  const auto text = files::read_whole(file);
  if (!text) {
    throw ConfigError(fmt::format("operators: file: found {}, which cannot be read; allowed: the "
                                  "path of an operator's text",
                                  file));
  }
  try {
    return program::Operator::load(*text);
  } catch (const std::exception& error) {
    throw ConfigError("operators: " + program::in_file(file, error.what()));
  }
}

} // namespace

/// Two files with one text are one operator.
program::LoadedOperators operators_of(const Config& config) {
  program::LoadedOperators all;
  for (const OperatorConfig& one : config.operators) {
    const auto loaded = load(one.file);
    if (one.tenants.empty()) {
      all.add(loaded, {});
    }
    for (const std::string& tenant : one.tenants) {
      all.add(loaded, {.tenant = tenant});
    }
  }
  return all;
}

} // namespace weir::config
