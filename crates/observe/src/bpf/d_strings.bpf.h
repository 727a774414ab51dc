/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Strings: a slot has the address of one, the next slot its length. What is made of them lies in
 * the arena of the firing.
 */

/* Copies a slot's string to where it can be looked at byte by byte; its length. */
static __always_inline u64 lay_out(struct machine *m, u64 slot, u64 *to)
{
	u64 length = m->slots[(slot + 1) & (SLOTS - 1)];

	if (length > STRING_MOST - 1)
		length = STRING_MOST - 1;
	barrier_var(length);
	length &= STRING_MOST - 1;
	bpf_probe_read_kernel(to, length, (void *)m->slots[slot & (SLOTS - 1)]);
	return length;
}

/* The place of a string in the arena; above it there is room for the longest. */
static __always_inline u64 arena_place(struct machine *m)
{
	u64 at = m->arena_length;

	if (at > ARENA_MOST - 8)
		return ~0ull;
	barrier_var(at);
	return at & (ARENA_MOST - 8);
}

/* A string of the arena becomes that of a slot. */
static __always_inline int keep_text(struct machine *m, u64 slot, u64 at, u64 length)
{
	if (length >= knobs.strsize)
		return fail(m, FAULT_STRING, 0);
	m->slots[slot & (SLOTS - 1)] = (u64)m->arena + at;
	m->slots[(slot + 1) & (SLOTS - 1)] = length;
	m->arena_length = at + ((length + 7) & ~7ull);
	return 0;
}

struct comparison {
	u64 left;
	u64 right;
	u64 outcome;
};

static __always_inline u64 word_of(const u64 *words, u64 at, u64 length)
{
	u64 word;

	if (8 * at >= length || at >= STRING_MOST / 8)
		return 0;
	barrier_var(at);
	at &= STRING_MOST / 8 - 1;
	word = words[at];
	length -= 8 * at;
	if (length < 8)
		word &= ~0ull >> (64 - 8 * length & 63);
	return __builtin_bswap64(word);
}

static long compare_word(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct comparison *c = WORK(struct comparison, m);
	u64 one, other;

	if (8 * (u64)turn >= c->left && 8 * (u64)turn >= c->right)
		return 1;
	one = word_of(m->one, turn, c->left);
	other = word_of(m->other, turn, c->right);
	if (one == other)
		return 0;
	c->outcome = one < other ? 0 : 2;
	return 1;
}

/* 0: the left string comes before the right one, 1: they are the same, 2: it comes after it. */
__noinline u64 d_compare(struct machine *m, u64 left, u64 right)
{
	struct comparison *c;

	if (!m)
		return 1;
	c = WORK(struct comparison, m);
	c->outcome = 1;
	c->left = lay_out(m, left, m->one);
	c->right = lay_out(m, right, m->other);
	bpf_loop(STRING_MOST / 8, compare_word, &m, 0);
	return c->outcome;
}

/* The same of whether they are the same, which their lengths mostly decide. */
__noinline u64 d_same(struct machine *m, u64 left, u64 right)
{
	struct comparison *c;

	if (!m)
		return 0;
	c = WORK(struct comparison, m);
	c->outcome = 1;
	if (m->slots[(left + 1) & (SLOTS - 1)] != m->slots[(right + 1) & (SLOTS - 1)])
		return 0;
	c->left = lay_out(m, left, m->one);
	c->right = lay_out(m, right, m->other);
	bpf_loop(STRING_MOST / 8, compare_word, &m, 0);
	return c->outcome == 1;
}

__noinline int d_strjoin(struct machine *m, u64 to, u64 left, u64 right)
{
	u64 at, one, other;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	one = lay_out(m, left, m->one);
	other = lay_out(m, right, m->other);
	if (one + other >= knobs.strsize || one + other > STRING_MOST - 1)
		return fail(m, FAULT_STRING, 0);
	barrier_var(one);
	one &= STRING_MOST - 1;
	barrier_var(other);
	other &= STRING_MOST - 1;
	bpf_probe_read_kernel((char *)m->arena + at, one, m->one);
	/* At a place that no verifier has to add up. */
	bpf_probe_read_kernel((char *)m->one + one, STRING_MOST - one, m->other);
	bpf_probe_read_kernel((char *)m->arena + at, (one + other) & (STRING_MOST - 1), m->one);
	return keep_text(m, to, at, one + other);
}

/* copyinstr(): the string of the process's memory, of so many bytes at most. */
__noinline int d_copyinstr(struct machine *m, u64 to, u64 address, u64 most)
{
	u64 at;
	long got;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (most > knobs.strsize - 1)
		most = knobs.strsize - 1;
	if (most > STRING_MOST - 1)
		most = STRING_MOST - 1;
	barrier_var(most);
	most &= STRING_MOST - 1;
	got = bpf_probe_read_user_str((char *)m->arena + at, most + 1, (void *)address);
	if (got < 0)
		return fail(m, FAULT_ADDRESS, address);
	return keep_text(m, to, at, got > 0 ? got - 1 : 0);
}

/* stringof() of the kernel's memory. */
__noinline int d_read_text(struct machine *m, u64 to, u64 address)
{
	u64 at, most = knobs.strsize;
	long got;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (most > STRING_MOST)
		most = STRING_MOST;
	got = bpf_probe_read_kernel_str((char *)m->arena + at, most, (void *)address);
	if (got < 0)
		return fail(m, FAULT_ADDRESS, address);
	return keep_text(m, to, at, got > 0 ? got - 1 : 0);
}

/* An integer of the kernel's memory, of so many bytes. */
__noinline int d_read(struct machine *m, u64 slot, u64 address, u64 bytes)
{
	u64 value = 0;

	if (!m || bytes > 8)
		return 0;
	if (bpf_probe_read_kernel(&value, bytes, (void *)address))
		return fail(m, FAULT_ADDRESS, address);
	m->slots[slot & (SLOTS - 1)] = value;
	return 0;
}
