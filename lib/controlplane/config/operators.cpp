// SPDX-License-Identifier: BSD-3-Clause
#include "config/operators.hpp"

#include "config/config_error.hpp"
#include "files/whole_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
    throw ConfigError(fmt::format("operators: {}: {}", file, error.what()));
  }
}

} // namespace

/// Two files with one text are one operator.
program::LoadedOperators operators_of(const Config& config) {
  std::vector<program::LoadedOperator> rows;
  for (const OperatorConfig& one : config.operators) {
    const auto loaded = load(one.file);
    auto row = std::ranges::find_if(rows, [&](const program::LoadedOperator& other) {
      return other.loaded->digest() == loaded->digest();
    });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), {loaded, {}});
    }
    if (one.tenants.empty()) {
      row->owners.push_back({});
    }
    for (const std::string& tenant : one.tenants) {
      row->owners.push_back({.tenant = tenant});
    }
  }
  return program::LoadedOperators(std::move(rows));
}

} // namespace weir::config
