// SPDX-License-Identifier: BSD-3-Clause
#include "worker_options.hpp"

#include "option_table.hpp"
#include "text/list.hpp"
#include "text/quantity.hpp"
#include "weir/limits.hpp"

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

std::uint64_t byte_count(std::string_view option, std::string_view text, std::uint64_t most) {
  const std::optional<std::uint64_t> count = text::parse_size(text);
  if (!count || *count > most) {
    refuse(option, text, fmt::format("{}, up to {}", text::kSizeForm, text::size_text(most)));
  }
  return *count;
}

std::vector<std::uint32_t> ring_ids(std::string_view option, std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (const std::string_view id : text::words_of(text)) {
    ids.push_back(number<std::uint32_t>(option, id, 0, UINT32_MAX));
  }
  return ids;
}

std::chrono::milliseconds seconds(std::string_view option, std::string_view text) {
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1000 * number<double>(option, text, 0.001, 86400)));
}

void set_device(WorkerOptions& options, std::string_view text) {
  constexpr std::string_view kInterface = "iface=";
  if (text.starts_with(kInterface)) {
    options.group.device = text.substr(kInterface.size());
  } else if (text.starts_with("net_") || text.find(':') != std::string_view::npos) {
    options.devargs = text;
  } else {
    options.group.device = text;
  }
}

std::vector<Option> options_of(WorkerOptions& o) {
  return {
      {"rank", "R", "this worker's rank, from 0",
       [&](auto v) { o.group.rank = number<std::uint16_t>("rank", v, 0, 255); }},
      {"world", "H", "how many ranks (2 .. 256)",
       [&](auto v) { o.group.world = number<std::uint16_t>("world", v, 2, 256); }},
      {"rendezvous", "HOST:PORT", "TCP address where rank 0 listens and the others meet it",
       [&](auto v) { o.group.rendezvous = v; }},
      {"ring", "ID[,ID]", "the switch's ring or rings; several share the tensor (default 1)",
       [&](auto v) { o.group.rings = ring_ids("ring", v); }},
      {"transport", "software|verbs",
       "who speaks RoCEv2: this process, or a NIC (default software)",
       [&](auto v) {
         if (v != "software" && v != "verbs") {
           refuse("transport", v, "software, verbs");
         }
         o.group.transport =
             v == "verbs" ? host::TransportKind::verbs : host::TransportKind::software;
       }},
      {"device", "DEVICE",
       "software: iface=NAME or DPDK devargs (net_..., PCI address); verbs: rxe0",
       [&](auto v) { set_device(o, v); }},
      {"ip", "ADDRESS", "software: this rank's address, as the switch's ring names it",
       [&](auto v) { o.group.ip = v; }},
      {"mac", "MAC", "software: this rank's MAC address (default: the device's)",
       [&](auto v) { o.group.mac = v; }},
      {"gid-index", "N", "verbs: entry of the GID table that is RoCE v2 (default 1)",
       [&](auto v) { o.group.gid_index = number<std::uint8_t>("gid-index", v, 0, 255); }},
      {"fallback", "none|ring",
       "when nobody aggregates: fail, or reduce on the hosts (default none)",
       [&](auto v) {
         if (v != "none" && v != "ring") {
           refuse("fallback", v, "none, ring");
         }
         o.group.fallback = v == "ring" ? host::Fallback::ring : host::Fallback::none;
       }},
      {"collective", "NAME",
       "all-reduce, reduce, broadcast, all-gather, reduce-scatter, barrier (default all-reduce)",
       [&](auto v) {
         const auto kind = host::call_kind_named(v);
         if (!kind) {
           refuse("collective", v,
                  "all-reduce, reduce, broadcast, all-gather, reduce-scatter, barrier");
         }
         o.call.kind = *kind;
       }},
      {"root", "RANK", "of a reduce or broadcast (default 0)",
       [&](auto v) { o.call.root = number<std::uint16_t>("root", v, 0, kMaxWorld - 1); }},
      {"size", "BYTES",
       "of the tensor: an all-gather's result, a reduce-scatter's input; KiB, MiB, GiB may follow "
       "(default 64MiB)",
       [&](auto v) { o.bytes = byte_count("size", v, kMostTensorBytes); }},
      {"type", "TYPE", "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 .. i64, u8 .. u64 (default f32)",
       [&](auto v) {
         const auto type = data_type_named(v);
         if (!type) {
           refuse("type", v,
                  "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64");
         }
         o.call.type = *type;
       }},
      {"op", "OPERATION", "sum, min, max, product; of integers also and, or, xor (default sum)",
       [&](auto v) {
         const auto operation = operation_named(v);
         if (!operation) {
           refuse("op", v, "sum, min, max, product, and, or, xor");
         }
         o.call.operation = *operation;
       }},
      {"repeat", "N", "calls, each with other values (default 1)",
       [&](auto v) { o.repetitions = number<std::uint32_t>("repeat", v, 1, 1U << 30); }},
      {"window", "N", "messages under way, as the ring is configured (default 8)",
       [&](auto v) { o.group.window = number<std::uint32_t>("window", v, 1, kMaxWindow); }},
      {"message-bytes", "N", "longest message, 40-byte header included (default 65536)",
       [&](auto v) {
         o.group.message_bytes =
             static_cast<std::uint32_t>(byte_count("message-bytes", v, kMaxMessageBytes));
       }},
      {"mtu", "N", "path MTU: 256, 512, 1024, 2048, 4096 (default 1024)",
       [&](auto v) {
         o.group.path_mtu = number<std::uint32_t>("mtu", v, kPathMtus.front(), kPathMtus.back());
       }},
      {"ack-timeout-ms", "N", "until a packet is repeated (default 67; over verbs --timeout / 8)",
       [&](auto v) {
         o.group.ack_timeout =
             std::chrono::milliseconds(number<std::uint32_t>("ack-timeout-ms", v, 1, 60000));
       }},
      {"retries", "N",
       "without progress before the connection fails (default 7; software: for ever)",
       [&](auto v) { o.group.retry_count = number<std::uint8_t>("retries", v, 0, 7); }},
      {"epoch", "N", "incarnation of the job; must grow (default: rank 0's wall clock)",
       [&](auto v) { o.group.epoch = number<std::uint32_t>("epoch", v, 1, UINT32_MAX); }},
      {"loss", "P", "software: drop this share of our own frames, to watch recovery (default 0)",
       [&](auto v) { o.group.loss = number<double>("loss", v, 0, 0.9); }},
      {"seed", "N", "of that dice (default 1)",
       [&](auto v) { o.group.seed = number<std::uint64_t>("seed", v, 0, UINT64_MAX); }},
      {"timeout", "SECONDS", "for the rendezvous, and without any progress later (default 10)",
       [&](auto v) { o.group.form_timeout = o.group.timeout = seconds("timeout", v); }},
      {"in-place", nullptr, "the result replaces the input (default)",
       [&](auto) { o.placement = Placement::in_place; }},
      {"out-of-place", nullptr, "the result goes to a buffer of its own",
       [&](auto) { o.placement = Placement::out_of_place; }},
      {"verify", nullptr, "compare every element, bit for bit, with a reference (default)",
       [&](auto) { o.verification = Verification::every_element; }},
      {"no-verify", nullptr, "do not", [&](auto) { o.verification = Verification::none; }},
      {"progress", nullptr, "a line five times a second",
       [&](auto) { o.progress = Progress::lines; }},
      {"json", "FILE", "write the result there as well", [&](auto v) { o.json = v; }},
  };
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
  const host::Call& call = options.call;
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
                        options_of(options), WordOrder::anywhere);
  if (!line.words.empty()) {
    throw UsageError(fmt::format("found '{}'; see weir-worker --help", line.words.front()));
  }
  require_options(line.options);
  check(options);
  options.call.count = options.bytes / element_size(options.call.type) /
                       shares_of(options.call.kind, options.group.world);
  return options;
}

} // namespace weir::app
