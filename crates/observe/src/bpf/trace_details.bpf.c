// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The same with what is kept of single calls on request, and with control groups. */
#define CGROUPS
#define DETAILS
#include "trace.bpf.c"
