/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Functions of programs that look into strings. A part of a string is where it is in the whole. */

#define BYTE(words, at) (((u8 *)(words))[(at) & (STRING_MOST - 1)])

struct search {
	u64 whole;
	u64 sought;
	s64 place;   /* that is looked at */
	s64 step;    /* to the next one */
	u64 matched; /* bytes of the sought one there */
	s64 found;
};

static long search_on(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct search *s = WORK(struct search, m);

	if (s->place < 0 || s->place + s->sought > s->whole)
		return 1;
	if (BYTE(m->one, s->place + s->matched) == BYTE(m->other, s->matched)) {
		s->matched++;
		if (s->matched < s->sought)
			return 0;
		s->found = s->place;
		return 1;
	}
	s->matched = 0;
	s->place += s->step;
	return 0;
}

/* index(): the first place from one on; -1 without. */
__noinline u64 d_index(struct machine *m, u64 whole, u64 sought, u64 from)
{
	struct search *s;

	if (!m)
		return 0;
	s = WORK(struct search, m);
	*s = (struct search){};
	s->step = 1;
	s->found = -1;
	s->whole = lay_out(m, whole, m->one);
	s->sought = lay_out(m, sought, m->other);
	s->place = (s64)from < 0 ? 0 : from > s->whole ? s->whole : from;
	if (!s->sought)
		return s->place;
	bpf_loop(STRING_MOST * STRING_MOST, search_on, &m, 0);
	return s->found;
}

/* rindex(): the last place that is not behind one. */
__noinline u64 d_rindex(struct machine *m, u64 whole, u64 sought, u64 from)
{
	struct search *s;

	if (!m)
		return 0;
	s = WORK(struct search, m);
	*s = (struct search){};
	s->step = -1;
	s->found = -1;
	s->whole = lay_out(m, whole, m->one);
	s->sought = lay_out(m, sought, m->other);
	s->place = (s64)from > (s64)s->whole ? s->whole : from;
	if (!s->sought)
		return s->place < 0 ? 0 : s->place;
	if (s->place < 0 || s->sought > s->whole)
		return -1;
	if (s->place > (s64)(s->whole - s->sought))
		s->place = s->whole - s->sought;
	bpf_loop(STRING_MOST * STRING_MOST, search_on, &m, 0);
	return s->found;
}

/* The place of a byte, the first or the last; -1 without. */
__noinline u64 d_place_of(struct machine *m, u64 whole, u64 byte, u64 last)
{
	struct search *s;

	if (!m)
		return 0;
	s = WORK(struct search, m);
	*s = (struct search){};
	s->sought = 1;
	s->found = -1;
	s->whole = lay_out(m, whole, m->one);
	if (!s->whole)
		return -1;
	m->other[0] = byte & 0xff;
	s->step = last ? -1 : 1;
	s->place = last ? s->whole - 1 : 0;
	bpf_loop(STRING_MOST, search_on, &m, 0);
	return s->found;
}

/* A part of a string, which stays where it is. */
static __always_inline void keep_part(struct machine *m, u64 to, u64 from, u64 start, u64 length)
{
	m->slots[to & (SLOTS - 1)] = m->slots[from & (SLOTS - 1)] + start;
	m->slots[(to + 1) & (SLOTS - 1)] = length;
}

/* What begins at a place; nothing at a negative one. */
__noinline int d_tail(struct machine *m, u64 to, u64 from, u64 place)
{
	u64 length;

	if (!m)
		return 0;
	length = m->slots[(from + 1) & (SLOTS - 1)];
	if (place > length)
		place = length;
	keep_part(m, to, from, place, length - place);
	return 0;
}

/* substr(): a negative place counts from the end, a negative length leaves out what is behind. */
__noinline int d_substr(struct machine *m, u64 to, u64 text, u64 place, u64 length)
{
	s64 whole, from = place, remaining = length, end;

	if (!m)
		return 0;
	whole = m->slots[(text + 1) & (SLOTS - 1)];
	if (from < 0) {
		from += whole;
		/* Both are negative, or none is: neither goes beyond 64 bits. */
		if (from < 0 && remaining > 0 && from + remaining > 0) {
			remaining += from;
			from = 0;
		}
	}
	if (from < 0 || from >= whole) {
		keep_part(m, to, text, 0, 0);
		return 0;
	}
	if (remaining < 0) {
		remaining += whole - from;
		if (remaining < 0)
			remaining = 0;
	}
	end = remaining > whole - from ? whole : from + remaining;
	keep_part(m, to, text, from, end - from);
	return 0;
}

struct path_parts {
	s64 at; /* behind the byte that is looked at */
	u64 until_slash;
};

/* Goes back over slashes, or over what is none. */
static long go_back(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct path_parts *p = WORK(struct path_parts, m);
	bool is_slash;

	if (p->at <= 0)
		return 1;
	is_slash = BYTE(m->one, p->at - 1) == '/';
	if (is_slash == (bool)p->until_slash)
		return 1;
	p->at--;
	return 0;
}

/* A string of one byte. */
static __always_inline int keep_byte(struct machine *m, u64 to, u8 byte)
{
	u64 at = arena_place(m);

	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	*((u8 *)m->arena + at) = byte;
	return keep_text(m, to, at, 1);
}

__noinline int d_basename(struct machine *m, u64 to, u64 path)
{
	struct path_parts *p;
	u64 whole, end;

	if (!m)
		return 0;
	p = WORK(struct path_parts, m);
	*p = (struct path_parts){};
	whole = lay_out(m, path, m->one);
	p->at = whole;
	bpf_loop(STRING_MOST, go_back, &m, 0);
	end = p->at;
	if (!end)
		return keep_byte(m, to, whole ? '/' : '.');
	p->until_slash = 1;
	bpf_loop(STRING_MOST, go_back, &m, 0);
	keep_part(m, to, path, p->at, end - p->at);
	return 0;
}

__noinline int d_dirname(struct machine *m, u64 to, u64 path)
{
	struct path_parts *p;
	u64 whole;

	if (!m)
		return 0;
	p = WORK(struct path_parts, m);
	*p = (struct path_parts){};
	whole = lay_out(m, path, m->one);
	p->at = whole;
	bpf_loop(STRING_MOST, go_back, &m, 0);
	if (!p->at)
		return keep_byte(m, to, whole ? '/' : '.');
	p->until_slash = 1;
	bpf_loop(STRING_MOST, go_back, &m, 0);
	if (!p->at)
		return keep_byte(m, to, '.');
	p->until_slash = 0;
	bpf_loop(STRING_MOST, go_back, &m, 0);
	if (!p->at)
		return keep_byte(m, to, '/');
	keep_part(m, to, path, 0, p->at);
	return 0;
}

struct casing {
	u64 length;
	u64 upper;
};

static long change_case(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct casing *c = WORK(struct casing, m);
	u8 byte, low = c->upper ? 'a' : 'A';

	if (turn >= c->length)
		return 1;
	byte = BYTE(m->one, turn);
	if (byte >= low && byte <= low + 25)
		BYTE(m->one, turn) = byte ^ 0x20;
	return 0;
}

__noinline int d_case(struct machine *m, u64 to, u64 text, u64 upper)
{
	struct casing *c;
	u64 at;

	if (!m)
		return 0;
	c = WORK(struct casing, m);
	*c = (struct casing){};
	c->upper = upper;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	c->length = lay_out(m, text, m->one);
	bpf_loop(STRING_MOST, change_case, &m, 0);
	bpf_probe_read_kernel((char *)m->arena + at, c->length & (STRING_MOST - 1), m->one);
	return keep_text(m, to, at, c->length);
}

struct digits {
	u64 value;
	u64 base;
	u64 at;
};

static long put_digit(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct digits *d = WORK(struct digits, m);
	u8 digit;

	if (!d->base)
		return 1;
	digit = d->value % d->base;
	d->at--;
	BYTE(m->one, d->at) = digit < 10 ? '0' + digit : 'a' + digit - 10;
	d->value /= d->base;
	return d->value == 0;
}

/* lltostr(): by 2, 8, 10 or 16. */
__noinline int d_lltostr(struct machine *m, u64 to, u64 value, u64 base)
{
	struct digits *d;
	bool negative = base == 10 && (s64)value < 0;
	u64 at, length;

	if (!m)
		return 0;
	d = WORK(struct digits, m);
	*d = (struct digits){};
	d->value = value;
	d->base = base;
	d->at = 80;
	if (base != 2 && base != 8 && base != 10 && base != 16)
		return fail(m, FAULT_OPERATION, 0);
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (negative)
		d->value = -value;
	bpf_loop(64, put_digit, &m, 0);
	if (negative) {
		d->at--;
		BYTE(m->one, d->at) = '-';
	} else if (base == 16) {
		d->at -= 2;
		BYTE(m->one, d->at) = '0';
		BYTE(m->one, d->at + 1) = 'x';
	} else if (base == 8 && value) {
		d->at--;
		BYTE(m->one, d->at) = '0';
	}
	length = (80 - d->at) & 127;
	bpf_probe_read_kernel((char *)m->arena + at, length, (char *)m->one + (d->at & 127));
	return keep_text(m, to, at, length);
}

struct reading {
	u64 length;
	u64 at;
	u64 base;
	u64 value;
};

static long skip_blank(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct reading *r = WORK(struct reading, m);
	u8 byte;

	if (r->at >= r->length)
		return 1;
	byte = BYTE(m->one, r->at);
	if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r' && byte != '\f')
		return 1;
	r->at++;
	return 0;
}

static long read_digit(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct reading *r = WORK(struct reading, m);
	u64 digit;
	u8 byte;

	if (r->at >= r->length)
		return 1;
	byte = BYTE(m->one, r->at);
	if (byte >= '0' && byte <= '9')
		digit = byte - '0';
	else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z')
		digit = (byte | 0x20) - 'a' + 10;
	else
		return 1;
	if (digit >= r->base)
		return 1;
	r->value = r->value * r->base + digit;
	r->at++;
	return 0;
}

/* strtoll(), into a slot. */
__noinline int d_strtoll(struct machine *m, u64 to, u64 text, u64 base)
{
	struct reading *r;
	u8 sign;

	if (!m)
		return 0;
	r = WORK(struct reading, m);
	*r = (struct reading){};
	r->base = base;
	if (base < 2 || base > 36)
		return fail(m, FAULT_OPERATION, 0);
	r->length = lay_out(m, text, m->one);
	bpf_loop(STRING_MOST, skip_blank, &m, 0);
	sign = r->at < r->length ? BYTE(m->one, r->at) : 0;
	if (sign == '-' || sign == '+')
		r->at++;
	if (base == 16 && r->at + 1 < r->length && BYTE(m->one, r->at) == '0' &&
	    (BYTE(m->one, r->at + 1) | 0x20) == 'x')
		r->at += 2;
	bpf_loop(STRING_MOST, read_digit, &m, 0);
	m->slots[to & (SLOTS - 1)] = sign == '-' ? -r->value : r->value;
	return 0;
}
