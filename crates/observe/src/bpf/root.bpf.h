/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Where iotomy's own root folder is. */
#ifndef IOTOMY_ROOT_BPF_H
#define IOTOMY_ROOT_BPF_H

/* The paths that iotomy shows begin there; found by `adopt` like `sight`. */
struct root root SEC(".data.root");

#endif
