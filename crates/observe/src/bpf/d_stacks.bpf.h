/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Stacks, of the kernel and of user space, as far as frame pointers lead there. A stack is handled
 * as a string is: a slot has where its frames are, the next one how many bytes they take. In front
 * of those of user space is the process, for addresses are its own.
 */

#define MOST_FRAMES 126 /* with the word in front, no more bytes than a string has */

/* The frames of the current thread; of another one there are none. */
__noinline int d_stack(struct machine *m, u64 to, u64 of_user, u64 frames)
{
	u64 at, start, bytes = frames * 8;
	long got = 0;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (bytes > MOST_FRAMES * 8)
		bytes = MOST_FRAMES * 8;
	start = at;
	if (of_user) {
		*(u64 *)((char *)m->arena + at) = m->facts[FACT_PID];
		start += 8;
	}
	if (!m->is_other)
		got = bpf_get_task_stack(bpf_get_current_task_btf(), (char *)m->arena + start,
					 bytes, of_user ? BPF_F_USER_STACK : 0);
	if (got < 0)
		got = 0;
	got += start - at;
	m->slots[to & (SLOTS - 1)] = (u64)m->arena + at;
	m->slots[(to + 1) & (SLOTS - 1)] = got;
	m->arena_length = at + (((u64)got + 7) & ~7ull);
	return 0;
}
