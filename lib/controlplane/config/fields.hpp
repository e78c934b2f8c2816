// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The table of the configuration's keys. A row has all that is known of a key: how it is read,
/// what it is for, how it differs from another, and what comes of that. Reading (config.cpp),
/// comparing (difference.cpp) and the pages (keys.cpp) are views of it. A new key is a row in
/// fields.cpp and a member of its structure.

#include "config/codec.hpp"
#include "config/config.hpp"
#include "config/difference.hpp"
#include "config/keys.hpp"
#include "yaml/reader.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

/// What a T says at one key, which may be some maps below.
template <typename T>
struct Leaf {
  std::string path; // from the T: "tls.key"
  Effect effect;    // of a change
  std::function<std::string(const T&, const Config&)> words;
};

/// A row: one key of the map that becomes a T.
template <typename T>
struct Field {
  std::string_view name;
  Value value;
  std::string_view about; // empty: the keys below it say all
  std::string without;    // what holds when the key is missing; empty: it may not be missing
  // Absent: who reads the list has to know more than the key.
  std::function<void(const yaml::Reader&, T&)> read = {};
  // What must hold once the whole map is read.
  std::function<void(const yaml::Reader&, const T&)> check = {};
  std::function<void(T& running, const T& wanted)> take = {}; // what changes in place
  std::vector<Leaf<T>> leaves = {};
  // Of a list of maps, whose entries come and go.
  std::function<void(const T& from, const T& to, std::vector<Change>&)> compare = {};
  std::vector<Key> below = {}; // their paths begin behind this key's

  Field with_check(std::function<void(const yaml::Reader&, const T&)> checked) && {
    check = std::move(checked);
    return std::move(*this);
  }

  /// Who compares the entries of the list knows what a change of the key means.
  Field without_leaves() && {
    leaves.clear();
    return std::move(*this);
  }

  /// What changes in place is this member.
  template <typename Member>
  Field<T> taking(Member T::*member) && {
    take = [member](T& running, const T& wanted) { running.*member = wanted.*member; };
    return std::move(*this);
  }
};

template <typename T>
using Fields = std::vector<Field<T>>;

const Fields<Config>& config_fields();
const Fields<PortConfig>& port_fields();
const Fields<LcoreConfig>& lcore_fields();
const Fields<StationConfig>& station_fields();
const Fields<TenantConfig>& tenant_fields();
const Fields<OperatorConfig>& operator_fields();
const Fields<ring::RingSpec>& ring_fields();
const Fields<ring::Member>& member_fields();
const Fields<ring::Child>& child_fields();

template <typename T>
void read_map(const Fields<T>& fields, const yaml::Reader& node, T& to) {
  std::vector<std::string_view> names;
  for (const Field<T>& field : fields) {
    names.push_back(field.name);
  }
  node.expect_map(names);
  for (const Field<T>& field : fields) {
    if (field.read) {
      field.read(node.at(field.name), to);
    }
  }
  for (const Field<T>& field : fields) {
    if (field.check) {
      field.check(node.at(field.name), to);
    }
  }
}

/// The row of a key that is there.
template <typename T>
const Field<T>& field_of(const Fields<T>& fields, std::string_view name) {
  return *std::ranges::find(fields, name, &Field<T>::name);
}

/// The entries of the list at a key.
template <typename T>
std::vector<yaml::Reader> items_of(const Fields<T>& fields, const yaml::Reader& map,
                                   std::string_view name) {
  return items_at(map.at(name), field_of(fields, name).value);
}

template <typename T>
void take_in_place(const Fields<T>& fields, T& running, const T& wanted) {
  for (const Field<T>& field : fields) {
    if (field.take) {
      field.take(running, wanted);
    }
  }
}

/// The keys of a map behind `above`.
template <typename T>
std::vector<Key> keys_below(const Fields<T>& fields, const std::string& above) {
  std::vector<Key> keys;
  for (const Field<T>& field : fields) {
    const std::string path = above + std::string(field.name);
    keys.push_back({path, field.value, field.about, field.without});
    for (const Key& key : field.below) {
      keys.push_back({path + key.path, key.value, key.meaning, key.without});
    }
  }
  return keys;
}

} // namespace weir::config
