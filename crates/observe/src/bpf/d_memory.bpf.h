/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Memory that a firing has for itself: what copyin() and alloca() return is a place in the arena.
 */

/* That is copied at a time: within the machine from anywhere in the arena. */
#define PIECE 2048

static __always_inline bool has_arena(u64 at, u64 bytes)
{
	return at != ~0ull && bytes <= ARENA_MOST - at;
}

/* A place in the arena, from `at` on, is the value of a slot. */
static __always_inline void keep_place(struct machine *m, u64 to, u64 at, u64 bytes)
{
	m->slots[to & (SLOTS - 1)] = (u64)m->arena + at;
	m->arena_length = at + ((bytes + 7) & ~7ull);
}

/* Copies memory to a place in the arena, by pieces that any verifier follows; 0: it was read. */
static __always_inline int fetch(struct machine *m, u64 at, u64 address, u64 bytes, bool of_user)
{
	u64 done = 0;

	for (int i = 0; i < ARENA_MOST / PIECE; i++) {
		u64 place = at + done, piece = bytes - done;
		long error;

		if (!piece)
			break;
		if (piece > PIECE)
			piece = PIECE;
		barrier_var(place);
		place &= ARENA_MOST - 1;
		barrier_var(piece);
		if (piece > PIECE)
			break;
		if (of_user)
			error = bpf_probe_read_user((char *)m->arena + place, piece,
						    (void *)(address + done));
		else
			error = bpf_probe_read_kernel((char *)m->arena + place, piece,
						      (void *)(address + done));
		if (error)
			return 1;
		done += piece;
	}
	return 0;
}

/* copyin(): memory of the process. */
__noinline int d_copyin(struct machine *m, u64 to, u64 address, u64 bytes)
{
	u64 at;

	if (!m)
		return 0;
	at = arena_place(m);
	if (!has_arena(at, bytes))
		return fail(m, FAULT_SCRATCH, 0);
	if (fetch(m, at, address, bytes, true))
		return fail(m, FAULT_ADDRESS, address);
	keep_place(m, to, at, bytes);
	return 0;
}

/* copyinto(): the same to a place that there is. */
__noinline int d_copyinto(struct machine *m, u64 address, u64 bytes, u64 place)
{
	u64 at;

	if (!m)
		return 0;
	/* The arena's address as a number, which others are compared with. */
	m->work[0] = (u64)m->arena;
	barrier();
	at = place - m->work[0];
	if (at >= m->arena_length || bytes > m->arena_length - at)
		return fail(m, FAULT_ADDRESS, place);
	if (fetch(m, at, address, bytes, true))
		return fail(m, FAULT_ADDRESS, address);
	return 0;
}

struct clearing {
	u64 word;
	u64 end;
};

static long clear_arena(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct clearing *c = WORK(struct clearing, m);
	u64 at = c->word;

	if (at >= c->end || at >= ARENA_MOST / 8)
		return 1;
	m->arena[at & (ARENA_MOST / 8 - 1)] = 0;
	c->word = at + 1;
	return 0;
}

/* alloca(): nothing but zeros. */
__noinline int d_alloca(struct machine *m, u64 to, u64 bytes)
{
	struct clearing *c;
	u64 at;

	if (!m)
		return 0;
	at = arena_place(m);
	if (!has_arena(at, bytes))
		return fail(m, FAULT_SCRATCH, 0);
	c = WORK(struct clearing, m);
	c->word = at / 8;
	c->end = (at + bytes + 7) / 8;
	bpf_loop(ARENA_MOST / 8, clear_arena, &m, 0);
	keep_place(m, to, at, bytes);
	return 0;
}

/* tracemem(): appends memory of the kernel, or of the arena, to the record. */
__noinline int d_put_memory(struct machine *m, u64 address, u64 bytes)
{
	u64 done = 0;

	if (!m || bytes > EVENT_MOST)
		return 0;
	for (int i = 0; i < EVENT_MOST / PIECE; i++) {
		u64 place = m->event_length + done, piece = bytes - done;

		if (!piece || place > EVENT_MOST - 8)
			break;
		if (piece > PIECE)
			piece = PIECE;
		barrier_var(place);
		place &= EVENT_MOST - 1;
		barrier_var(piece);
		if (piece > PIECE)
			break;
		if (bpf_probe_read_kernel((char *)m->event + place, piece,
					  (void *)(address + done)))
			return fail(m, FAULT_ADDRESS, address);
		done += piece;
	}
	m->event_length += (bytes + 7) & ~7ull;
	return 0;
}

/* inet_ntoa(): the four bytes at an address, in decimal. */
__noinline int d_inet_ntoa(struct machine *m, u64 to, u64 address)
{
	u64 at, length = 0;
	u8 bytes[4];

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (bpf_probe_read_kernel(bytes, sizeof(bytes), (void *)address))
		return fail(m, FAULT_ADDRESS, address);
	for (int i = 0; i < 4; i++) {
		u8 byte = bytes[i];

		if (byte >= 100)
			BYTE(m->one, length++) = '0' + byte / 100;
		if (byte >= 10)
			BYTE(m->one, length++) = '0' + byte / 10 % 10;
		BYTE(m->one, length++) = '0' + byte % 10;
		if (i < 3)
			BYTE(m->one, length++) = '.';
		barrier_var(length);
	}
	bpf_probe_read_kernel((char *)m->arena + at, length & 15, m->one);
	return keep_text(m, to, at, length & 15);
}

struct tokens {
	u64 set[4]; /* a bit for each byte that separates */
	u64 length; /* of the separators, then of the text */
	u64 at;
	u64 is_inside;
};

static long add_separator(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct tokens *t = WORK(struct tokens, m);
	u8 byte;

	if (turn >= t->length)
		return 1;
	byte = BYTE(m->other, turn);
	t->set[byte >> 6] |= 1ull << (byte & 63);
	return 0;
}

/* Goes over separators, or over what is none. */
static long go_over(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct tokens *t = WORK(struct tokens, m);
	u8 byte;

	if (t->at >= t->length)
		return 1;
	byte = BYTE(m->one, t->at);
	if ((t->set[byte >> 6] >> (byte & 63) & 1) == t->is_inside)
		return 1;
	t->at++;
	return 0;
}

/* strtok(): the next part without separators; of a slot beyond all, that of the text before. */
__noinline int d_strtok(struct machine *m, u64 to, u64 text, u64 separators)
{
	struct tokens *t;
	u64 start, end, whole;

	if (!m)
		return 0;
	t = WORK(struct tokens, m);
	*t = (struct tokens){};
	if (text < SLOTS - 1) {
		m->token = m->slots[text];
		m->token_length = m->slots[text + 1];
	}
	t->length = lay_out(m, separators, m->other);
	bpf_loop(STRING_MOST, add_separator, &m, 0);
	whole = m->token_length;
	if (whole > STRING_MOST - 1)
		whole = STRING_MOST - 1;
	barrier_var(whole);
	whole &= STRING_MOST - 1;
	bpf_probe_read_kernel(m->one, whole, (void *)m->token);
	t->length = whole;
	bpf_loop(STRING_MOST, go_over, &m, 0);
	start = t->at;
	t->is_inside = 1;
	bpf_loop(STRING_MOST, go_over, &m, 0);
	end = t->at;
	m->slots[to & (SLOTS - 1)] = m->token + start;
	m->slots[(to + 1) & (SLOTS - 1)] = end - start;
	/* The separator behind it is gone, too. */
	if (end < whole)
		end++;
	m->token += end;
	m->token_length = whole - end;
	return 0;
}

#define PATH_END (STRING_MOST - 1) /* where a path ends that is made from its end on */

struct cleaning {
	s64 at;	   /* in the path, from its end on */
	u64 from;  /* where what is made of it begins */
	u64 mark;  /* where it began before the part that is looked at */
	u64 up;	   /* parts that a `..` behind them takes away */
	u64 bytes; /* of the part */
	u64 dots;  /* of these */
	u64 place; /* in the arena */
};

/* A byte of what is made, which lies in the arena. */
#define MADE(m, place, at) \
	(((u8 *)(m)->arena)[((place) & (ARENA_MOST - 8)) + ((at) & (STRING_MOST - 1))])

static __always_inline void put_before(struct machine *m, struct cleaning *c, u8 byte)
{
	u64 from = c->from - 1, place = c->place;

	barrier_var(from);
	barrier_var(place);
	MADE(m, place, from) = byte;
	c->from = from;
}

static long clean_byte(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct cleaning *c = WORK(struct cleaning, m);
	s64 at = c->at;
	u8 byte = '/';

	if (at < -1)
		return 1;
	if (at >= 0)
		byte = BYTE(m->one, at);
	c->at = at - 1;
	if (byte != '/') {
		if (!c->bytes) {
			c->mark = c->from;
			if (c->from != PATH_END)
				put_before(m, c, '/');
		}
		put_before(m, c, byte);
		c->bytes++;
		c->dots += byte == '.';
		return 0;
	}
	if (c->bytes) {
		if (c->bytes == c->dots && c->bytes <= 2) {
			c->from = c->mark;
			c->up += c->bytes == 2;
		} else if (c->up) {
			c->from = c->mark;
			c->up--;
		}
	}
	c->bytes = 0;
	c->dots = 0;
	return 0;
}

static long climb_out(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct cleaning *c = WORK(struct cleaning, m);

	if (!c->up)
		return 1;
	if (c->from != PATH_END)
		put_before(m, c, '/');
	put_before(m, c, '.');
	put_before(m, c, '.');
	c->up--;
	return 0;
}

/* cleanpath(): the parts of a path from its last on, without those that lead nowhere. */
__noinline int d_cleanpath(struct machine *m, u64 to, u64 path)
{
	struct cleaning *c;
	u64 at, whole, from, length;
	bool is_absolute, has_end;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	c = WORK(struct cleaning, m);
	*c = (struct cleaning){};
	c->place = at;
	c->from = PATH_END;
	c->mark = PATH_END;
	whole = lay_out(m, path, m->one);
	c->at = (s64)whole - 1;
	is_absolute = whole && BYTE(m->one, 0) == '/';
	has_end = whole && BYTE(m->one, whole - 1) == '/';
	bpf_loop(STRING_MOST + 2, clean_byte, &m, 0);
	if (!is_absolute)
		bpf_loop(STRING_MOST, climb_out, &m, 0);
	/* What ended with a slash still does. */
	has_end = has_end && c->from != PATH_END;
	if (is_absolute)
		put_before(m, c, '/');
	from = c->from & (STRING_MOST - 1);
	length = PATH_END - from;
	barrier_var(length);
	length &= STRING_MOST - 1;
	bpf_probe_read_kernel(m->one, length, (char *)m->arena + at + from);
	if (has_end) {
		BYTE(m->one, length) = '/';
		length++;
	}
	barrier_var(length);
	length &= STRING_MOST - 1;
	bpf_probe_read_kernel((char *)m->arena + at, length, m->one);
	return keep_text(m, to, at, length);
}
