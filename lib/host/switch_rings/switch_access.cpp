// SPDX-License-Identifier: BSD-3-Clause
#include "host/switch_rings/switch_access.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace weir::host {
namespace {

std::string given_or_variable(const std::string& given, const char* variable) {
  const char* const usual = given.empty() ? secure_getenv(variable) : nullptr;
  return usual != nullptr ? usual : given;
}

} // namespace

SwitchAccess switch_access_of(const GroupOptions& options) {
  SwitchAccess access = options.switch_access;
  if (!access.address) {
    access.manager = given_or_variable(access.manager, "WEIR_MANAGER");
    access.address = given_or_variable({}, "WEIR_SWITCH");
  }
  access.certificate = given_or_variable(access.certificate, "WEIR_SWITCH_CERTIFICATE");
  access.key = given_or_variable(access.key, "WEIR_SWITCH_KEY");
  access.authority = given_or_variable(access.authority, "WEIR_SWITCH_AUTHORITY");
  access.name = given_or_variable(access.name, "WEIR_SWITCH_NAME");
  access.token_file = given_or_variable(access.token_file, "WEIR_TOKEN_FILE");
  return access;
}

std::string server_of(const std::string& address) {
  return address.starts_with('/') ? "unix:" + address : address;
}

weir_hold_order order_to(const std::string& server, const SwitchAccess& access) {
  weir_hold_order order{};
  order.server = server.c_str();
  order.certificate = access.certificate.c_str();
  order.key = access.key.c_str();
  order.authority = access.authority.c_str();
  order.name = access.name.c_str();
  order.token_file = access.token_file.c_str();
  return order;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  std::ranges::transform(texts, std::back_inserter(pointers), &std::string::c_str);
  return pointers;
}

} // namespace weir::host
