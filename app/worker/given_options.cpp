// SPDX-License-Identifier: BSD-3-Clause
#include "worker/given_options.hpp"

#include "text/list.hpp"
#include "worker/group_options.hpp"
#include "worker/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace weir::app {
namespace {

constexpr std::uint64_t kMostTensorBytes = std::uint64_t{1} << 46;
constexpr std::uint32_t kMostIterations = 1'000'000;
constexpr std::string_view kAll = "all";
constexpr std::string_view kTypeNames =
    "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64";

/// The enumerators 0 .. count - 1.
template <typename Enum>
std::vector<Enum> enumerators(std::size_t count) {
  std::vector<Enum> all;
  for (std::size_t number = 0; number < count; ++number) {
    all.push_back(static_cast<Enum>(number));
  }
  return all;
}

/// With commas between.
template <typename Thing>
std::string names_of(const std::vector<Thing>& things) {
  std::string names;
  for (const Thing& thing : things) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(thing));
  }
  return names;
}

std::string collective_names() {
  return names_of(enumerators<host::CallKind>(host::kCallKinds));
}

const char* collective_meaning() {
  static const std::string meaning = collective_names() + " (default all-reduce)";
  return meaning.c_str();
}

/// The things that `text` names: one, several with commas between, or "all". Each once.
template <typename Thing>
std::vector<Thing> things_named(std::string_view option, std::string_view text,
                                std::optional<Thing> (*named)(std::string_view),
                                std::vector<Thing> all, std::string_view names) {
  if (text == kAll) {
    return all;
  }
  std::vector<Thing> things;
  for (const std::string_view word : text::words_of(text)) {
    const std::optional<Thing> thing = named(word);
    if (!thing || std::ranges::find(things, *thing) != things.end()) {
      refuse(option, text, fmt::format("{}; in a sweep also several of them, or all", names));
    }
    things.push_back(*thing);
  }
  return things;
}

std::vector<Option> process_option_rows(GivenOptions& o) {
  return {
      {"local-ranks", "N",
       "so many ranks on this host, from --rank on, each a process; they share the device, and the "
       "network sees the first (default 1)",
       [&](auto v) { o.local_ranks = number<std::uint16_t>("local-ranks", v, 1, kMaxWorld); }},
  };
}

std::vector<Option> call_option_rows(GivenOptions& o) {
  return {
      {"collective", "NAME", collective_meaning(),
       [&](auto v) {
         o.choice.kinds = things_named(
             "collective", v, host::call_kind_named,
             std::vector(host::kDenseCalls.begin(), host::kDenseCalls.end()), collective_names());
       }},
      {"type", "TYPE", "f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 .. i64, u8 .. u64 (default f32)",
       [&](auto v) {
         o.choice.types = things_named("type", v, data_type_named,
                                       enumerators<DataType>(kDataTypes), kTypeNames);
       },
       'd'},
      {"op", "OPERATION",
       "sum, average, min, max, product; of integers also and, or, xor (default sum)",
       [&](auto v) {
         o.choice.reductions =
             things_named("op", v, reduction_named, all_reductions(), names_of(all_reductions()));
       },
       'o'},
      {"root", "RANK", "of a reduce or broadcast (default 0)",
       [&](auto v) { o.choice.root = number<std::uint16_t>("root", v, 0, kMaxWorld - 1); }, 'r'},
      {"in-place", nullptr, "the result replaces the input (default; a sweep has both)",
       [&](auto) { o.placements.push_back(Placement::in_place); }},
      {"out-of-place", nullptr, "the result goes to a buffer of its own",
       [&](auto) { o.placements.push_back(Placement::out_of_place); }},
      {"no-register", nullptr,
       "verbs: do not tell the device of the tensors' memory, so that messages are copied",
       [&](auto) { o.registration = Registration::none; }},
      {"tree", "LISTS",
       "which switches add up which ranks, as [[0,1,2],[3,4]], to check the result bit for bit "
       "(default: one adds up all); with several rings once, or once for each",
       [&](auto v) {
         const std::optional<FoldTree> tree = FoldTree::parse(v);
         if (!tree) {
           refuse("tree", v, "lists of lists of the ranks 0, 1, ... in order, as [[0,1,2],[3,4]]");
         }
         o.trees.push_back(*tree);
       }},
      {"json", "FILE", "write the results there as well", [&](auto v) { o.json = v; }},
  };
}

std::vector<Option> job_option_rows(GivenOptions& o) {
  return {
      {"size", "BYTES",
       "of the tensor: an all-gather's result, a reduce-scatter's input; KiB, MiB, GiB may follow "
       "(default 64MiB)",
       [&](auto v) { o.bytes = byte_count("size", v, 0, kMostTensorBytes); }},
      {"repeat", "N", "calls, each with other values (default 1)",
       [&](auto v) { o.repetitions = number<std::uint32_t>("repeat", v, 1, 1U << 30); }},
      {"density", "SHARE", "sparse-all-reduce: of the blocks that each rank has, as 0.01 (default)",
       [&](auto v) { o.density = number<double>("density", v, 0, 1); }},
      {"block", "ELEMENTS",
       "sparse-all-reduce: 1 (default): single elements; 0: the ranks choose the result's blocks",
       [&](auto v) { o.block = number<std::uint16_t>("block", v, 0, UINT16_MAX); }},
      {"verify", nullptr, "compare every element, bit for bit, with a reference (default)",
       [&](auto) { o.verification = Verification::every_element; }},
      {"no-verify", nullptr, "do not", [&](auto) { o.verification = Verification::none; }},
      {"progress", nullptr, "a line five times a second",
       [&](auto) { o.progress = Progress::lines; }},
  };
}

std::vector<Option> sweep_option_rows(GivenOptions& o) {
  return {
      {"begin", "BYTES", "sweep: the first size, counted as --size, as 8, 64K or 4MiB",
       [&](auto v) { o.sizes.begin = byte_count("begin", v, 1, kMostTensorBytes); }, 'b'},
      {"end", "BYTES", "sweep: no size is larger (default: the first)",
       [&](auto v) { o.sizes.end = byte_count("end", v, 1, kMostTensorBytes); }, 'e'},
      {"factor", "N", "sweep: from size to size (default 2)",
       [&](auto v) { o.sizes.factor = number<std::uint64_t>("factor", v, 2, kMostTensorBytes); },
       'f'},
      {"increment", "BYTES", "sweep: from size to size, instead of the factor",
       [&](auto v) { o.sizes.increment = byte_count("increment", v, 1, kMostTensorBytes); }, 'i'},
      {"warm-up", "N", "sweep: calls before those that are timed (default 5)",
       [&](auto v) { o.warm_ups = number<std::uint32_t>("warm-up", v, 0, kMostIterations); }, 'w'},
      {"iterations", "N", "sweep: timed calls of each size (default 20)",
       [&](auto v) { o.iterations = number<std::uint32_t>("iterations", v, 1, kMostIterations); },
       'n'},
      {"check", "N", "sweep: compare every element of this many of them (default 1; 0: none)",
       [&](auto v) { o.checked = number<std::uint32_t>("check", v, 0, kMostIterations); }, 'c'},
      {"spin", nullptr,
       "sweep: do not wait for the end of a call, but look again and again, as a proxy thread does",
       [&](auto) { o.waiting = Waiting::spin; }},
  };
}

} // namespace

std::vector<Option> option_rows(GivenOptions& given) {
  std::vector<Option> rows = group_option_rows(given.group, given.devargs);
  for (const auto& more : {process_option_rows(given), call_option_rows(given),
                           job_option_rows(given), sweep_option_rows(given)}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace weir::app
