// SPDX-License-Identifier: BSD-3-Clause
#include "gate/orders.hpp"

#include <string_view>

namespace weir::gate {
namespace {

constexpr std::string_view kRequired = "required";
constexpr std::string_view kAskedFor = "asked-for";

std::optional<Certificates> certificates_named(std::string_view word) {
  if (word == kRequired) {
    return Certificates::required;
  }
  if (word == kAskedFor) {
    return Certificates::asked_for;
  }
  return std::nullopt;
}

} // namespace

std::vector<std::string> words_of(const Orders& orders) {
  const bool are_required = orders.certificates == Certificates::required;
  return {std::string(orders.profile->name), std::string(are_required ? kRequired : kAskedFor),
          orders.files.certificate, orders.files.key, orders.files.client_authority};
}

std::optional<Orders> orders_in(std::span<const std::string> words) {
  if (words.size() != kOrderWords) {
    return std::nullopt;
  }
  const Profile* const profile = profile_named(words[0]);
  const auto certificates = certificates_named(words[1]);
  if (profile == nullptr || !certificates) {
    return std::nullopt;
  }
  return Orders{profile, *certificates, {words[2], words[3], words[4]}};
}

} // namespace weir::gate
