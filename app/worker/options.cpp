// SPDX-License-Identifier: BSD-3-Clause
#include "worker/options.hpp"

#include "host/api/group.hpp"
#include "option_table.hpp"
#include "worker/group_options.hpp"
#include "worker/reduction.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

namespace weir::app {
namespace {

constexpr const char* kHead =
    "usage: weir-worker --rank R --world H --rendezvous HOST:PORT --device DEVICE --ip A.B.C.D "
    "[options]\n"
    "\n"
    "One rank of a job: meets the others, all-reduces a tensor through the switch, checks every "
    "element, tells how\n"
    "fast it was. Start one per rank; all but --rank, --device, --ip, --mac, --loss, --seed, "
    "--json and --progress are\n"
    "the same for all.\n"
    "\n";

constexpr const char* kTail =
    "\n"
    "Example, rank 0 of 4 over shared memory to the switch of config/demo.yaml:\n"
    "  weir-worker --rank 0 --world 4 --rendezvous 127.0.0.1:7471 --ring 1 --ip 10.0.0.1 \\\n"
    "    --device net_memif0,role=client,id=0,socket=/tmp/weir-demo.sock,socket-abstract=no\n"
    "\n"
    "Exit: 0 done and verified; 1 it failed, with one line that says why; 2 wrong usage.\n";

constexpr std::uint64_t kMostTensorBytes = std::uint64_t{1} << 46;

std::vector<Option> option_rows(WorkerOptions& o) {
  std::vector<Option> rows = group_option_rows(o.group, o.devargs);
  const std::vector<Option> work{
      {"collective", "NAME",
       "all-reduce, reduce, broadcast, all-gather, reduce-scatter, barrier (default all-reduce)",
       [&](auto v) {
         const auto kind = host::call_kind_named(v);
         if (!kind) {
           refuse("collective", v,
                  "all-reduce, reduce, broadcast, all-gather, reduce-scatter, barrier");
         }
         o.job.call.kind = *kind;
       }},
      {"root", "RANK", "of a reduce or broadcast (default 0)",
       [&](auto v) { o.job.call.root = number<std::uint16_t>("root", v, 0, kMaxWorld - 1); }},
      {"size", "BYTES",
       "of the tensor: an all-gather's result, a reduce-scatter's input; KiB, MiB, GiB may follow "
       "(default 64MiB)",
       [&](auto v) { o.bytes = byte_count("size", v, 0, kMostTensorBytes); }},
      {"type", "TYPE", "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 .. i64, u8 .. u64 (default f32)",
       [&](auto v) {
         const auto type = data_type_named(v);
         if (!type) {
           refuse("type", v,
                  "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64");
         }
         o.job.call.type = *type;
       }},
      {"op", "OPERATION",
       "sum, average, min, max, product; of integers also and, or, xor (default sum)",
       [&](auto v) {
         const auto reduction = reduction_named(v);
         if (!reduction) {
           refuse("op", v, kReductionNames);
         }
         o.job.call.operation = reduction->operation;
         o.job.call.finish = reduction->finish;
       }},
      {"repeat", "N", "calls, each with other values (default 1)",
       [&](auto v) { o.job.repetitions = number<std::uint32_t>("repeat", v, 1, 1U << 30); }},
      {"in-place", nullptr, "the result replaces the input (default)",
       [&](auto) { o.job.placement = Placement::in_place; }},
      {"out-of-place", nullptr, "the result goes to a buffer of its own",
       [&](auto) { o.job.placement = Placement::out_of_place; }},
      {"verify", nullptr, "compare every element, bit for bit, with a reference (default)",
       [&](auto) { o.job.verification = Verification::every_element; }},
      {"no-verify", nullptr, "do not", [&](auto) { o.job.verification = Verification::none; }},
      {"progress", nullptr, "a line five times a second",
       [&](auto) { o.job.progress = Progress::lines; }},
      {"json", "FILE", "write the result there as well", [&](auto v) { o.json = v; }},
  };
  rows.insert(rows.end(), work.begin(), work.end());
  return rows;
}

/// Checks for the options that define the job.
void require_options(const std::set<std::string_view>& given) {
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

void check(const WorkerOptions& options) {
  const std::string defect = host::find_defect(options.group);
  if (!defect.empty()) {
    throw UsageError(defect);
  }
  const host::Call& call = options.job.call;
  if (call.reduces() && !is_reducible(call.type, call.operation)) {
    throw UsageError(fmt::format("--op: found {} of {}; allowed: bits of integers only",
                                 name_of(call.operation), name_of(call.type)));
  }
  if (call.root >= options.group.world) {
    throw UsageError(
        fmt::format("--root: found {}; allowed: 0 .. {}", call.root, options.group.world - 1));
  }
  const std::uint64_t unit = element_size(call.type) * shares_of(call.kind, options.group.world);
  if (options.bytes % unit != 0) {
    throw UsageError(fmt::format("--size: found {}; allowed: multiples of {} bytes for {} of {}",
                                 options.bytes, unit, name_of(call.kind), name_of(call.type)));
  }
}

} // namespace

WorkerOptions parse_worker_options(int argc, char** argv) {
  WorkerOptions options;
  const CommandLine line =
      read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir-worker", kHead, kTail},
                        option_rows(options), WordOrder::anywhere);
  if (!line.words.empty()) {
    throw UsageError(fmt::format("found '{}'; see weir-worker --help", line.words.front()));
  }
  require_options(line.options);
  check(options);
  options.job.call.count = options.bytes / element_size(options.job.call.type) /
                           shares_of(options.job.call.kind, options.group.world);
  return options;
}

} // namespace weir::app
