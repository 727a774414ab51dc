// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The same with a filter of calls, groups of them, or an end of the watch by one. */
#define CGROUPS
#define DETAILS
#define WHERE
#include "trace.bpf.c"
