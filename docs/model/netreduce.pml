/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NetReduce's own rule (ASPLOS'23, sections 3.1 and 3.2): weir.pml with NetReduce's slot and connection table. A
 * slot keeps each rank's latest packet and computes the sum again whenever it is full; a packet of message m clears the
 * slot of message m+N; a slot has no tag; the connection table holds the last FIRST seen. Hosts, links and the window
 * are the same.
 *
 * The paper does not say whether all H packets leave again on a repeat; here they do, as a full bitmap "outputs the
 * packets". Nor does it mention a tag; docs/lab/model.md says which counterexamples need its absence.
 */
#ifndef CACHING
#define CACHING 0
#endif
#ifndef TAGS
#define TAGS 0
#endif
#ifndef CLT
#define CLT 1
#endif
#ifndef LEMMA
#define LEMMA 0
#endif
#include "weir.pml"
