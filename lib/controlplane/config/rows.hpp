// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How the rows of fields.cpp are written.

#include "config/fields.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::config {

/// What holds when a key is missing.
struct Absent {
  std::optional<std::string> words; // none: what the structure says
};

inline const Absent kNeeded{""};

inline Absent otherwise(std::string words) {
  return {std::move(words)};
}

template <typename Owner, typename Member>
Owner owner_of(Member Owner::*);
template <typename Owner, typename Member>
Member type_of(Member Owner::*);

template <auto member>
using OwnerOf = decltype(owner_of(member));
template <auto member>
using TypeOf = decltype(type_of(member));

/// A list of plain values has a key of its own for what each of them may be.
inline std::vector<Key> keys_of_entries(const Value& value) {
  const auto* list = std::get_if<List>(&value);
  if (list == nullptr || std::holds_alternative<std::monostate>(list->entry)) {
    return {};
  }
  const auto as_value = [](const auto& entry) -> Value {
    if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, std::monostate>) {
      return Map{};
    } else {
      return entry;
    }
  };
  return {{"[]", std::visit(as_value, list->entry), ""}};
}

/// A key that its functions read and tell.
template <typename T>
Field<T> key_by(std::string_view name, const Value& value, std::string_view about, Effect effect,
                const std::string& without, std::function<void(const yaml::Reader&, T&)> read,
                std::function<std::string(const T&, const Config&)> words) {
  Field<T> field{.name = name, .value = value, .about = about, .without = without};
  field.leaves.push_back({std::string(name), effect, std::move(words)});
  field.below = keys_of_entries(value);
  if (read) {
    field.read = [read = std::move(read),
                  is_needed = field.without.empty()](const yaml::Reader& node, T& to) {
      if (is_needed || node.is_present()) {
        read(node, to);
      }
    };
  }
  return field;
}

/// A key that is a member of its structure.
template <auto member>
auto key(std::string_view name, const Value& value, std::string_view about, Effect effect,
         const Absent& absent = {}) {
  using Owner = OwnerOf<member>;
  auto field = key_by<Owner>(
      name, value, about, effect, absent.words.value_or(in_words(value, Owner{}.*member)),
      [value](const yaml::Reader& node, Owner& to) { read_value(node, value, to.*member); },
      [value](const Owner& of, const Config&) { return in_words(value, of.*member); });
  if (effect == Effect::in_place) {
    field.take = [](Owner& running, const Owner& wanted) { running.*member = wanted.*member; };
  }
  return field;
}

/// A key by which an entry of a list is found again.
template <auto member>
auto naming_key(std::string_view name, const Value& value, std::string_view about) {
  return key<member>(name, value, about, Effect::restart, kNeeded).without_leaves();
}

/// Seconds in the file, milliseconds in the structure. The switch takes a ring's with its rings.
template <auto member>
auto seconds(std::string_view name, const Value& value, std::string_view about, Effect effect,
             const Absent& absent = {}) {
  using Owner = OwnerOf<member>;
  constexpr std::uint64_t ms = 1000;
  return key_by<Owner>(
      name, value, about, effect, absent.words.value_or(in_words(value, Owner{}.*member / ms)),
      [value](const yaml::Reader& node, Owner& to) { to.*member = ms * number_at(node, value); },
      [value](const Owner& of, const Config&) { return in_words(value, of.*member / ms); });
}

/// Keys in a map of their own. find(const T&) gives what they are of, or nothing, and make(T&) what
/// they are read into.
template <typename T, typename Inner, typename Find, typename Make>
Field<T> keys_in(std::string_view name, const Fields<Inner>& inner, const std::string& without,
                 Find find, Make make) {
  Field<T> field{.name = name, .value = Map{}, .about = "", .without = without};
  field.below = keys_below(inner, ".");
  field.read = [&inner, make](const yaml::Reader& node, T& to) {
    if (node.is_present()) {
      read_map(inner, node, make(to));
    }
  };
  const bool has_any_in_place =
      std::ranges::any_of(inner, [](const Field<Inner>& below) { return bool(below.take); });
  if (has_any_in_place) {
    field.take = [&inner, find, make](T& running, const T& wanted) {
      if (const Inner* there = find(wanted)) {
        take_in_place(inner, make(running), *there);
      }
    };
  }
  for (const Field<Inner>& below : inner) {
    for (const Leaf<Inner>& leaf : below.leaves) {
      field.leaves.push_back({std::string(name) + "." + leaf.path, leaf.effect,
                              [find, words = leaf.words](const T& of, const Config& config) {
                                const Inner* there = find(of);
                                return there ? words(*there, config) : std::string(kNothing);
                              }});
    }
  }
  return field;
}

/// Keys of a member that is a structure.
template <auto member, typename Inner>
auto map(std::string_view name, const Fields<Inner>& inner, const std::string& without) {
  using Owner = OwnerOf<member>;
  if constexpr (std::is_same_v<TypeOf<member>, std::optional<Inner>>) {
    return keys_in<Owner>(
        name, inner, without, [](const Owner& of) { return of.*member ? &*(of.*member) : nullptr; },
        [](Owner& to) -> Inner& { return to.*member ? *(to.*member) : (to.*member).emplace(); });
  } else {
    return keys_in<Owner>(
        name, inner, without, [](const Owner& of) { return &(of.*member); },
        [](Owner& to) -> Inner& { return to.*member; });
  }
}

/// Keys that stand together in the file alone.
template <typename T>
Field<T> map_of_same(std::string_view name, const Fields<T>& inner, const std::string& without) {
  return keys_in<T>(
      name, inner, without, [](const T& of) { return &of; }, [](T& to) -> T& { return to; });
}

/// A list of maps. Its reader and its comparison know what names an entry.
template <typename T, typename Entry>
Field<T> entries(std::string_view name, const List& list, std::string_view about,
                 const Absent& absent, const Fields<Entry>& of,
                 std::function<void(const yaml::Reader&, T&)> read,
                 std::function<void(const T&, const T&, std::vector<Change>&)> compare) {
  Field<T> field{.name = name, .value = list, .about = about, .without = *absent.words};
  field.read = std::move(read);
  field.compare = std::move(compare);
  field.below = keys_below(of, "[].");
  field.below.insert(field.below.begin(), {"[]", Map{}, ""});
  return field;
}

} // namespace weir::config
