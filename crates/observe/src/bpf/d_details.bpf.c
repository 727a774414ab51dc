// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The same with what few programs ask for: control groups, names of files, block requests, stacks.
 * To find the places of these structs takes time, which only those pay who need them. */
#define DETAILS
#include "d.bpf.c"
