// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::host {

/// Memory of a caller that a device may read and write by itself as long as this object lives.
/// Where no device does so, nothing more than that.
class UserMemory {
 public:
  UserMemory() = default;
  virtual ~UserMemory() = default;
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;
};

} // namespace weir::host
