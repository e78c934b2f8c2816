// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "store/etcd_calls.hpp"
#include "store/store.hpp"

#include <memory>
#include <string>

namespace weir::store {

/// Keys below /weir/FABRIC/ of an etcd, for several managers of which one leads. It compares in
/// each transaction that it still does.
class EtcdStore : public Store {
 public:
  /// Begins to stand by. `manager` is what others read of it while it leads.
  EtcdStore(const EtcdAccess& access, const std::string& fabric, const std::string& manager);
  /// Gives up the lead, so that another has it at once.
  ~EtcdStore() override;

  std::optional<std::vector<Item>> read_all() override;
  std::optional<std::string> read(const std::string& key) override;
  Written write(std::span<const Change> changes) override;
  Leadership leadership() override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::store
