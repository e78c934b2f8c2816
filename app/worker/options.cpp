// SPDX-License-Identifier: BSD-3-Clause
#include "worker/options.hpp"

#include "host/api/group.hpp"
#include "text/quantity.hpp"
#include "worker/given_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace weir::app {
namespace {

constexpr const char* kHead =
    "usage: weir-worker --rank R --world H --rendezvous HOST:PORT --device DEVICE [options]\n"
    "\n"
    "One rank of a job: meets the others, calls a collective through the switch, checks every "
    "element, tells how\n"
    "fast it was. Start one per rank, or one per host with --local-ranks; all but --rank, "
    "--device, --ip, --mac, --loss, --seed, "
    "--json and --progress are\n"
    "the same for all.\n"
    "\n"
    "With --begin it is a benchmark: a table of sizes on rank 0, as nccl-tests print it. "
    "--collective, --type and --op\n"
    "may then be lists, as sum,max, or all. Each time is the slowest rank's, from a barrier to the "
    "end of the call; a\n"
    "percentile is over the calls of one size. Without --begin, each rank prints its own times.\n"
    "\n";

constexpr const char* kTail =
    "\n"
    "Example, rank 0 of 4 over shared memory to the switch of config/demo.yaml:\n"
    "  weir-worker --rank 0 --world 4 --rendezvous 127.0.0.1:7471 --ring 1 --ip 10.0.0.1 \\\n"
    "    --device net_memif0,role=client,id=0,socket=/tmp/weir-demo/memif.sock,socket-abstract=no\n"
    "The same as a benchmark: add -b 8 -e 64M -f 2.\n"
    "\n"
    "Exit: 0 done, no wrong result; 1 it failed, with one line that says why; 2 wrong usage.\n";

using Names = std::set<std::string_view>;

void require_options(const Names& given) {
  std::vector<std::string> missing;
  for (const char* option : {"rank", "world", "rendezvous", "device"}) {
    if (!given.contains(option)) {
      missing.push_back(fmt::format("--{}", option));
    }
  }
  if (!missing.empty()) {
    throw UsageError(fmt::format("missing: {}; see weir-worker --help", fmt::join(missing, ", ")));
  }
}

void forbid_options(const Names& given, std::span<const std::string_view> forbidden,
                    std::string_view why) {
  for (const std::string_view option : forbidden) {
    if (given.contains(option)) {
      throw UsageError(fmt::format("--{}: {}; see weir-worker --help", option, why));
    }
  }
}

void check_local_ranks(const GivenOptions& given) {
  if (given.local_ranks > given.group.world - given.group.rank) {
    refuse("local-ranks", std::to_string(given.local_ranks),
           fmt::format("1 .. {} from rank {} on (--world)", given.group.world - given.group.rank,
                       given.group.rank));
  }
  if (given.local_ranks > 1 && !given.devargs.empty()) {
    throw UsageError("--local-ranks: not with a DPDK device; see weir-worker --help");
  }
}

void check_root(const GivenOptions& given) {
  if (given.choice.root >= given.group.world) {
    throw UsageError(fmt::format("--root: found {}; allowed: 0 .. {}", given.choice.root,
                                 given.group.world - 1));
  }
}

/// One for each ring.
std::vector<FoldTree> trees_of(const GivenOptions& given) {
  const std::size_t rings = given.group.rings.size();
  const std::size_t found = given.trees.size();
  if (found > 1 && found != rings) {
    throw UsageError(
        fmt::format("--tree: found {} of them; allowed: one, or {} (--ring)", found, rings));
  }
  for (const FoldTree& tree : given.trees) {
    if (tree.ranks() != given.group.world) {
      throw UsageError(fmt::format("--tree: found {} ranks; allowed: {} (--world)", tree.ranks(),
                                   given.group.world));
    }
  }
  if (found > 1) {
    return given.trees;
  }
  return {rings, found == 0 ? FoldTree::flat(given.group.world) : given.trees.front()};
}

/// Each operation has a type, unless nothing reduces.
void check_reductions(const CallChoice& choice) {
  const bool reduces = std::ranges::any_of(
      choice.kinds, [](host::CallKind kind) { return host::Call{.kind = kind}.reduces(); });
  for (const Reduction& reduction : choice.reductions) {
    const bool has_type = std::ranges::any_of(
        choice.types, [&](DataType type) { return is_reducible(type, reduction.operation); });
    if (reduces && !has_type && choice.reductions.size() < all_reductions().size()) {
      throw UsageError(fmt::format("--op: found {} of {}; allowed: bits of integers only",
                                   name_of(reduction), name_of(choice.types.front())));
    }
  }
}

/// No size of a sweep says how sparse its tensors are.
void check_sparse(const CallChoice& choice, const Names& given) {
  constexpr host::CallKind sparse = host::CallKind::sparse_all_reduce;
  const bool is_sparse = std::ranges::find(choice.kinds, sparse) != choice.kinds.end();
  if (!is_sparse) {
    forbid_options(given, kOnlyIfSparse,
                   fmt::format("only with --collective {}", host::name_of(sparse)));
  } else if (given.contains(kSweepOption)) {
    throw UsageError(fmt::format("--collective: found {}; allowed: others in a sweep (--{})",
                                 host::name_of(sparse), kSweepOption));
  }
}

template <typename Thing>
void expect_one(std::string_view option, const std::vector<Thing>& things) {
  if (things.size() != 1) {
    throw UsageError(fmt::format("--{}: found {} of them; allowed: one, or --{}", option,
                                 things.size(), kSweepOption));
  }
}

JobOptions job_of(const GivenOptions& given) {
  expect_one("collective", given.choice.kinds);
  expect_one("type", given.choice.types);
  expect_one("op", given.choice.reductions);
  JobOptions job{.call = kinds_of_calls(given.choice).front(),
                 .repetitions = given.repetitions,
                 .verification = given.verification,
                 .progress = given.progress,
                 .trees = trees_of(given)};
  if (!given.placements.empty()) {
    job.placement = given.placements.back();
  }
  const std::uint64_t unit = element_size(job.call.type) * job.call.shares(given.group.world);
  if (given.bytes % unit != 0) {
    throw UsageError(fmt::format("--size: found {}; allowed: multiples of {} bytes for {} of {}",
                                 given.bytes, unit, name_of(job.call.kind),
                                 name_of(job.call.type)));
  }
  job.call.count = count_within(job.call, given.group.world, given.bytes);
  if (job.call.is_sparse()) {
    job.call.block = given.block; // ranks compare it, and other calls do not carry it
    job.density = given.density;
  }
  return job;
}

std::vector<std::uint64_t> checked_sizes(const SizeRange& range) {
  if (range.end < range.begin) {
    refuse("end", text::size_text(range.end),
           fmt::format("{} (--begin) or more", text::size_text(range.begin)));
  }
  std::vector<std::uint64_t> sizes = sizes_of(range);
  if (sizes.size() > kMostSizes) {
    refuse("increment", text::size_text(range.increment),
           fmt::format("what makes at most {} sizes", kMostSizes));
  }
  return sizes;
}

std::vector<host::Call> sweep_calls(const CallChoice& choice, std::span<const std::uint64_t> sizes,
                                    std::uint16_t world) {
  std::vector<host::Call> calls;
  for (const host::Call& kind : kinds_of_calls(choice)) {
    const std::vector<host::Call> sized = with_sizes(kind, world, sizes);
    if (sized.empty()) {
      refuse("end", text::size_text(sizes.back()),
             fmt::format("{} bytes or more, an element for each rank in {} of {}",
                         element_size(kind.type) * kind.shares(world), name_of(kind.kind),
                         name_of(kind.type)));
    }
    calls.insert(calls.end(), sized.begin(), sized.end());
  }
  return calls;
}

std::vector<Placement> sweep_placements(const GivenOptions& given) {
  if (given.placements.empty()) {
    return {Placement::out_of_place, Placement::in_place};
  }
  if (std::ranges::find(given.placements, Placement::in_place) == given.placements.end()) {
    for (const host::CallKind kind : given.choice.kinds) {
      if (!can_be_out_of_place({.kind = kind})) {
        throw UsageError(fmt::format("--out-of-place: a {} is in place only", name_of(kind)));
      }
    }
  }
  return given.placements;
}

SweepOptions sweep_of(const GivenOptions& given, const Names& names) {
  if (names.contains("factor") && names.contains("increment")) {
    throw UsageError("--increment: not with --factor; see weir-worker --help");
  }
  if (given.checked > given.iterations) {
    refuse("check", std::to_string(given.checked),
           fmt::format("0 .. {} (--iterations)", given.iterations));
  }
  SizeRange range = given.sizes;
  range.end = names.contains("end") ? range.end : range.begin;
  return {.calls = sweep_calls(given.choice, checked_sizes(range), given.group.world),
          .placements = sweep_placements(given),
          .warm_ups = given.warm_ups,
          .iterations = given.iterations,
          .checked = given.checked,
          .waiting = given.waiting,
          .trees = trees_of(given)};
}

void check_files(const CommandLine& line) {
  refuse_shared_files(std::array{
      file_use(line, "secret-file", Use::read), file_use(line, "switch-certificate", Use::read),
      file_use(line, "switch-key", Use::read), file_use(line, "switch-authority", Use::read),
      file_use(line, "json", Use::write), FileUse{"standard output", "-", Use::write}});
}

} // namespace

WorkerOptions parse_worker_options(int argc, char** argv) {
  GivenOptions given;
  const CommandLine line =
      read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir-worker", kHead, kTail},
                        option_rows(given), WordOrder::anywhere);
  if (!line.words.empty()) {
    throw UsageError(fmt::format("found '{}'; see weir-worker --help", line.words.front()));
  }
  require_options(line.options);
  const bool is_sweep = line.options.contains(kSweepOption);
  if (is_sweep) {
    forbid_options(line.options, kNotInSweeps, "not in a sweep (--begin)");
  } else {
    forbid_options(line.options, kOnlyInSweeps, "only in a sweep (--begin)");
  }
  check_files(line);
  check_sparse(given.choice, line.options);
  const std::string defect = host::find_defect(given.group);
  if (!defect.empty()) {
    throw UsageError(defect);
  }
  check_local_ranks(given);
  check_root(given);
  check_reductions(given.choice);
  WorkerOptions options{.group = given.group,
                        .devargs = given.devargs,
                        .json = given.json,
                        .local_ranks = given.local_ranks,
                        .registration = given.registration};
  if (is_sweep) {
    options.work = sweep_of(given, line.options);
  } else {
    options.work = job_of(given);
  }
  return options;
}

} // namespace weir::app
