// SPDX-License-Identifier: BSD-3-Clause
#include "config/effect.hpp"

#include <array>
#include <cstddef>

namespace weir::config {
namespace {

struct EffectWords {
  std::string_view name;
  std::string_view sentence;
};

// Indexed by Effect.
constexpr std::array kWords{
    EffectWords{"in_place", "no job notices"},
    EffectWords{"port_opened", "the port is opened"},
    EffectWords{"port_closed", "the port is closed"},
    EffectWords{"ring_kept", "the ring made at run time is kept; it is the file's from now on"},
    EffectWords{"ring_made", "the ring is made"},
    EffectWords{"ring_withdrawn", "the ring is withdrawn; its job ends"},
    EffectWords{"ring_made_anew", "the ring is withdrawn and made anew; its job ends"},
    EffectWords{"restart", "takes a restart"},
};
static_assert(kWords.size() == static_cast<std::size_t>(Effect::restart) + 1);

const EffectWords& words_of(Effect effect) {
  return kWords.at(static_cast<std::size_t>(effect));
}

} // namespace

std::string_view name_of(Effect effect) {
  return words_of(effect).name;
}

std::string_view text_of(Effect effect) {
  return words_of(effect).sentence;
}

} // namespace weir::config
