// SPDX-License-Identifier: BSD-3-Clause
#include "control/operator_admin.hpp"

#include "config/operators.hpp"
#include "control/chassis.hpp"
#include "op/float_environment.hpp"
#include "program/parse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace weir::control {

using lcore::Quiesce;
using program::Digest;
using program::LoadedOperator;
using program::LoadedOperators;
using program::OperatorOwner;

namespace {

constexpr std::uint32_t kOperatorsOfTenant = 16; // unless the configuration says otherwise
constexpr std::size_t kMostPacketBytes = 4096;   // of the largest MTU

/// Of a tenant without a limit: four times a sum of f8 (docs/operators.md).
double usual_price() {
  constexpr std::string_view sum_of_f8 = "weir-operator 1\nname f8\nread f8e4m3 v\nlanes f32\n"
                                         "identity v 0x80\nstart acc = v\nfold acc = acc + v\n"
                                         "finish out = round(acc)\n";
  static const double price = 4 * program::price_of(program::parse(sum_of_f8));
  return price;
}

/// Rethrows what is wrong with a text as an OperatorError.
template <typename Work>
auto checked(Work&& work) {
  try {
    return work();
  } catch (const std::invalid_argument& error) {
    throw OperatorError(error.what());
  }
}

bool is_for(const LoadedOperator& row, const Principal& principal) {
  return principal.is_operator() ||
         std::ranges::any_of(row.owners, [&](const OperatorOwner& owner) {
           return owner.tenant == principal.tenant || (owner.tenant.empty() && !owner.ring);
         });
}

NoSuchOperator no_such(const Digest& digest) {
  return NoSuchOperator(fmt::format("operator: found {}; allowed: a digest of show operators",
                                    program::to_string(digest)));
}

} // namespace

OperatorAdmin::OperatorAdmin(Chassis& chassis, std::optional<OperatorStore> store)
    : chassis_(chassis), store_(std::move(store)) {
  chassis_.operators.set(config::operators_of(chassis_.at_start));
  load_stored();
}

/// A library that gives a text other results than the one before gives it another digest, too. The
/// former one's file goes: an unload would leave it, and the next start load it again.
void OperatorAdmin::load_stored() {
  if (!store_) {
    return;
  }
  for (const StoredOperator& stored : store_->all()) {
    try {
      if (stored.tenants.empty()) {
        throw std::invalid_argument(
            "line 1: found no owner; allowed: \"# for \" and a tenant's name, or none for all");
      }
      const auto loaded = program::Operator::load(stored.text);
      for (const std::string& tenant : stored.tenants) {
        add(loaded, {.tenant = tenant}, {});
      }
      store_->remove_if_elsewhere(stored, loaded->digest());
    } catch (const std::exception& error) {
      fmt::print(stderr, "weir: {}: a remembered operator is left out: {}\n", stored.file.string(),
                 error.what());
    }
  }
}

/// The operator of this text, if it is there: no trial is needed then.
std::shared_ptr<const program::Operator>
OperatorAdmin::known(const std::string& canonical_text) const {
  const auto loaded = chassis_.operators.share();
  const auto found = std::ranges::find_if(loaded->rows(), [&](const LoadedOperator& row) {
    return row.loaded->code().text == canonical_text;
  });
  return found == loaded->rows().end() ? nullptr : found->loaded;
}

OperatorSeen OperatorAdmin::load(std::string_view text, const Principal& principal,
                                 std::optional<std::uint32_t> ring) {
  const program::Code code = checked([&] { return program::parse(text); });
  {
    const WriterLock lock(chassis_.one_writer);
    check_limits(code, principal, chassis_.operators.read(lock).rows());
  }
  auto loaded = known(code.text);
  if (!loaded) {
    loaded = checked([&] { return program::Operator::load(text); });
  }
  add(loaded, {.tenant = principal.tenant, .ring = ring}, principal);
  const WriterLock lock(chassis_.one_writer);
  const LoadedOperator* row = chassis_.operators.read(lock).find(loaded->digest());
  if (row == nullptr) {
    throw no_such(loaded->digest()); // unloaded meanwhile
  }
  return seen(*row, principal, in_use(lock), lock);
}

/// Before the trial, which takes some ms.
void OperatorAdmin::check_limits(const program::Code& code, const Principal& principal,
                                 const Rows& rows) const {
  const auto is_other = [&](const LoadedOperator& row) {
    return row.loaded->code().text != code.text;
  };
  if (rows.size() >= program::kMaxLoaded && std::ranges::all_of(rows, is_other)) {
    throw NoRoomForOperator(fmt::format("operator {}: found {} operators; allowed: {} at once",
                                        code.name, rows.size(), program::kMaxLoaded));
  }
  if (principal.is_operator()) {
    return;
  }
  const auto& tenants = chassis_.at_start.tenants;
  const auto tenant = std::ranges::find(tenants, principal.tenant, &config::TenantConfig::name);
  if (tenant == tenants.end()) {
    throw NotAllowed(fmt::format("tenant: found {}; allowed: one of tenants:", principal.tenant));
  }
  const double most_price = tenant->operator_price ? *tenant->operator_price : usual_price();
  const double price = program::price_of(code);
  if (price > most_price) {
    throw NoRoomForOperator(fmt::format(
        "operator {}: found a price of {:.0f} ns for a KiB and rank; allowed for tenant "
        "{}: {:.0f} (operator_price)",
        code.name, price, principal.tenant, most_price));
  }
  const auto others = std::ranges::count_if(rows, [&](const LoadedOperator& row) {
    return is_other(row) &&
           std::ranges::count(row.owners, principal.tenant, &OperatorOwner::tenant) != 0;
  });
  const std::uint32_t most = tenant->operators.value_or(kOperatorsOfTenant);
  if (static_cast<std::uint64_t>(others) >= most) {
    throw NoRoomForOperator(
        fmt::format("operator {}: found {} operators of tenant {} already; allowed: {} (operators)",
                    code.name, others, principal.tenant, most));
  }
}

void OperatorAdmin::add(const std::shared_ptr<const program::Operator>& loaded,
                        const OperatorOwner& owner, const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  const bool is_gone = owner.ring && !chassis_.rings.read(lock).ring_with_id(*owner.ring);
  LoadedOperators all = chassis_.operators.read(lock);
  check_limits(loaded->code(), principal, all.rows()); // others may have been loaded since
  if (is_gone || !all.add(loaded, owner)) {
    return;
  }
  if (loaded->disagrees() && all.find(loaded->digest())->owners.size() == 1) {
    fmt::print(stderr,
               "weir: operator {}: its kernel gives other bits than its loops, which fold\n",
               loaded->name());
  }
  if (!owner.ring) {
    remember(*loaded, all);
  }
  chassis_.put_operators(std::move(all), lock);
}

/// On the disk. What came with a ring goes with it.
void OperatorAdmin::remember(const program::Operator& loaded, const LoadedOperators& all) const {
  if (!store_) {
    return;
  }
  StoredOperator stored{.text = loaded.code().text, .tenants = {}, .file = {}};
  if (const LoadedOperator* const row = all.find(loaded.digest())) {
    for (const OperatorOwner& owner : row->owners) {
      if (!owner.ring) {
        stored.tenants.push_back(owner.tenant);
      }
    }
  }
  if (stored.tenants.empty()) {
    store_->remove(loaded.digest());
  } else {
    store_->keep(loaded.digest(), stored);
  }
}

/// Rings whose incarnations have it, or soon may; of all, or of those that the owner's share grants
/// it to.
std::vector<std::uint32_t> OperatorAdmin::rings_with(const Digest& digest,
                                                     const OperatorOwner* owner,
                                                     const Quiesce& quiesced) const {
  std::vector<std::uint32_t> ids;
  const ring::RingSet& rings = chassis_.rings.read(quiesced);
  for (const std::uint16_t ring : rings.present()) {
    const ring::RingSpec& spec = rings.rings()[ring].spec();
    const bool counts = owner == nullptr || owner->grants(spec.tenant, spec.id);
    if (counts && chassis_.worker_of(ring, quiesced).incarnations().uses(ring, digest)) {
      ids.push_back(spec.id);
    }
  }
  return ids;
}

/// What each ring's incarnation has now.
std::vector<OperatorAdmin::InUse> OperatorAdmin::in_use(const WriterLock& lock) const {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  std::vector<InUse> all;
  all.reserve(rings.rings().size());
  const Quiesce quiesced(chassis_.lcores);
  for (const std::uint16_t ring : rings.present()) {
    InUse& one = all.emplace_back(InUse{ring, {}});
    std::ranges::copy(chassis_.worker_of(ring, quiesced).incarnations().operators_of(ring),
                      one.operators.begin());
  }
  return all;
}

void OperatorAdmin::unload(const Digest& digest, const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  LoadedOperators left = chassis_.operators.read(lock);
  const LoadedOperator* const row = left.find(digest);
  if (row == nullptr || !is_for(*row, principal)) {
    throw no_such(digest);
  }
  const auto loaded = row->loaded;
  const OperatorOwner own{.tenant = principal.tenant};
  if (!left.take_from([&](const LoadedOperator& one, const OperatorOwner& owner) {
        return one.loaded == loaded && (principal.is_operator() || owner == own);
      })) {
    throw NotAllowed(fmt::format("operator {}: found tenant {}, which has not loaded it; allowed: "
                                 "who has",
                                 loaded->name(), principal.tenant));
  }
  auto next = std::make_shared<const LoadedOperators>(left);
  std::vector<std::uint32_t> users;
  {
    const Quiesce quiesced(chassis_.lcores); // no job begins between the look and the swap
    users = rings_with(digest, principal.is_operator() ? nullptr : &own, quiesced);
    if (users.empty()) {
      next = chassis_.operators.swap(std::move(next), lock, quiesced);
    }
  }
  if (!users.empty()) {
    throw OperatorInUse(fmt::format("operator {}: found ring {}, whose job folds by it; allowed: "
                                    "when that job is over, or after reset ring",
                                    loaded->name(), fmt::join(users, ", ")));
  }
  remember(*loaded, left);
}

OperatorSeen OperatorAdmin::seen(const LoadedOperator& row, const Principal& principal,
                                 const std::vector<InUse>& all, const WriterLock& lock) const {
  OperatorSeen seen{.name = row.loaded->name(),
                    .digest = row.loaded->digest(),
                    .owners = {},
                    .price = row.loaded->price(),
                    .rings = {},
                    .packets = row.loaded->use().packets,
                    .flagged = row.loaded->use().flagged,
                    .has_kernel = row.loaded->has_kernel(),
                    .disagrees = row.loaded->disagrees()};
  std::ranges::copy_if(
      row.owners, std::back_inserter(seen.owners), [&](const OperatorOwner& owner) {
        return principal.is_operator() || owner.tenant.empty() || owner.tenant == principal.tenant;
      });
  const ring::RingSet& rings = chassis_.rings.read(lock);
  for (const InUse& one : all) {
    const ring::RingSpec& spec = rings.rings()[one.ring].spec();
    const bool is_told = principal.is_operator() || spec.tenant == principal.tenant;
    if (is_told &&
        std::ranges::count(one.operators, row.loaded.get(), &conn::RunOperator::by) != 0) {
      seen.rings.push_back(spec.id);
    }
  }
  return seen;
}

std::vector<OperatorSeen> OperatorAdmin::list(const Principal& principal) const {
  const WriterLock lock(chassis_.one_writer);
  const std::vector<InUse> used = in_use(lock);
  std::vector<OperatorSeen> all;
  for (const LoadedOperator& row : chassis_.operators.read(lock).rows()) {
    if (is_for(row, principal)) {
      all.push_back(seen(row, principal, used, lock));
    }
  }
  return all;
}

std::vector<std::byte> OperatorAdmin::test(const Digest& digest,
                                           const std::vector<std::span<const std::byte>>& inputs,
                                           const Principal& principal) const {
  const auto loaded = chassis_.operators.share();
  const LoadedOperator* row = loaded->find(digest);
  if (row == nullptr || !is_for(*row, principal)) {
    throw no_such(digest);
  }
  if (inputs.empty() || inputs.size() > kMaxWorld) {
    throw OperatorError(
        fmt::format("inputs: found {}; allowed: 1 .. {}", inputs.size(), kMaxWorld));
  }
  std::vector<const std::byte*> packets;
  const std::size_t bytes = inputs.front().size();
  for (const std::span<const std::byte> input : inputs) {
    if (input.size() != bytes || bytes % kOperatorUnit != 0 || bytes > kMostPacketBytes ||
        bytes == 0) {
      throw OperatorError(fmt::format("inputs: found one of {} bytes; allowed: packets of one "
                                      "length, {} .. {} bytes, a multiple of {}",
                                      input.size(), kOperatorUnit, kMostPacketBytes,
                                      kOperatorUnit));
    }
    packets.push_back(input.data());
  }
  const op::DefaultFloatEnvironment environment;
  std::vector<std::byte> out(bytes);
  row->loaded->kernel()(out.data(), packets.data(), static_cast<unsigned>(packets.size()), bytes,
                        {});
  return out;
}

} // namespace weir::control
