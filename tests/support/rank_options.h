/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_TESTS_RANK_OPTIONS_H
#define WEIR_TESTS_RANK_OPTIONS_H

#include "weir/weir.h"

#include <stdlib.h>

/* What the test programs' groups have in common. `arguments` begin with RANK WORLD RENDEZVOUS, to
 * which the options refer, as they do to `ring`. */
static inline void set_rank_options(weir_group_options* options, char** arguments,
                                    const uint32_t* ring) {
  options->rank = (uint16_t)atoi(arguments[0]);
  options->world = (uint16_t)atoi(arguments[1]);
  options->rendezvous = arguments[2];
  options->rings = ring;
  options->ring_count = 1;
  options->window = 4;
  options->message_bytes = 16384;
  options->form_timeout_ms = 30000;
  options->timeout_ms = 30000;
}

#endif
