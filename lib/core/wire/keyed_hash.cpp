// SPDX-License-Identifier: BSD-3-Clause
#include "wire/keyed_hash.hpp"

#include <cerrno>
#include <sys/random.h>
#include <system_error>

namespace weir::wire {

HashKey HashKey::random() {
  HashKey key;
  if (getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return key;
}

} // namespace weir::wire
