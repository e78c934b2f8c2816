// SPDX-License-Identifier: BSD-3-Clause
#include "plan/host_list.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace weir::plan {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMostListBytes = 64 << 10;
constexpr std::size_t kMostNameBytes = 255;
constexpr std::size_t kMostDigits = 18;
constexpr int kMostBrackets = 8; // of a pattern

/// "7" or "08-11".
std::optional<Names> numbers_in(std::string_view range, std::size_t most) {
  const std::size_t dash = range.find('-');
  const std::string_view begin = range.substr(0, dash);
  const std::string_view end = dash == std::string_view::npos ? begin : range.substr(dash + 1);
  const auto first = text::parsed<std::uint64_t>(begin);
  const auto last = text::parsed<std::uint64_t>(end);
  if (!first || !last || begin.size() > kMostDigits || end.size() > kMostDigits || *first > *last ||
      *last - *first >= most) {
    return std::nullopt;
  }
  Names numbers;
  for (std::uint64_t number = *first; number <= *last; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, begin.size()));
  }
  return numbers;
}

/// Up to a comma that is in no brackets.
std::string_view first_in(std::string_view list) {
  bool is_inside = false;
  for (std::size_t at = 0; at < list.size(); ++at) {
    is_inside = list[at] == '[' || (is_inside && list[at] != ']');
    if (list[at] == ',' && !is_inside) {
      return list.substr(0, at);
    }
  }
  return list;
}

/// Each of `names` with each of what is in the brackets behind it.
std::optional<Names> with_each(const Names& names, std::string_view inside, std::size_t most) {
  Names numbers;
  while (true) {
    const std::size_t comma = inside.find(',');
    const auto more = numbers_in(inside.substr(0, comma), most);
    if (!more) {
      return std::nullopt;
    }
    numbers.insert(numbers.end(), more->begin(), more->end());
    if (numbers.size() > most) {
      return std::nullopt;
    }
    if (comma == std::string_view::npos) {
      break;
    }
    inside.remove_prefix(comma + 1);
  }
  if (names.size() * numbers.size() > most) {
    return std::nullopt;
  }
  Names all;
  for (const std::string& name : names) {
    for (const std::string& number : numbers) {
      all.push_back(name + number);
    }
  }
  return all;
}

/// Of one pattern, which has no comma outside of brackets.
std::optional<Names> expanded(std::string_view pattern, std::size_t most) {
  Names names{""};
  for (int brackets = 0; brackets <= kMostBrackets; ++brackets) {
    const std::size_t open = pattern.find('[');
    const std::string_view plain = pattern.substr(0, open);
    if (plain.find(']') != std::string_view::npos) {
      return std::nullopt;
    }
    for (std::string& name : names) {
      if (name.size() + plain.size() > kMostNameBytes) {
        return std::nullopt;
      }
      name += plain;
    }
    if (open == std::string_view::npos) {
      return names;
    }
    const std::size_t close = pattern.find(']', open);
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    auto more = with_each(names, pattern.substr(open + 1, close - open - 1), most);
    if (!more) {
      return std::nullopt;
    }
    names = std::move(*more);
    pattern.remove_prefix(close + 1);
  }
  return std::nullopt;
}

} // namespace

std::optional<Names> names_in(std::string_view list, std::size_t most) {
  if (list.size() > kMostListBytes) {
    return std::nullopt;
  }
  Names names;
  std::set<std::string> known;
  std::size_t left = most;
  while (true) {
    const std::string_view pattern = first_in(list);
    const auto more = expanded(pattern, left);
    if (!more || more->size() > left) {
      return std::nullopt;
    }
    left -= more->size();
    for (const std::string& name : *more) {
      if (name.empty()) {
        return std::nullopt;
      }
      if (known.insert(name).second) {
        names.push_back(name);
      }
    }
    if (pattern.size() == list.size()) {
      return names;
    }
    list.remove_prefix(pattern.size() + 1);
  }
}

} // namespace weir::plan
