/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Text that patterns are compared with. Paths come from the leaf on: they are laid out from a
 * middle to the front, with what may follow, such as the path below a directory, behind it.
 */

static __always_inline void begin_subject(struct subject *s, u64 middle)
{
	s->start = middle;
	s->length = 0;
}

static __always_inline void put_before(struct subject *s, char sign)
{
	s->start--;
	s->length++;
	s->text[s->start & SUBJECT_MASK] = sign;
}

/* Puts a `/` and the name in `part` in front, of which so many bytes were read. */
__noinline int put_part_before(struct subject *s, u64 got)
{
	u64 at, length;

	if (!s || got <= 1 || got > NAME_LEN)
		return 0;
	length = got - 1;
	if (s->start <= length || (length == 1 && s->part[0] == '/'))
		return 0;
	s->start -= length + 1;
	s->length += length + 1;
	s->text[s->start & SUBJECT_MASK] = '/';
	at = (s->start + 1) & SUBJECT_MASK;
	barrier_var(
		length); /* or the compiler leaves out the mask, which verifiers before 6.8 miss */
	length &= NAME_LEN - 1;
	bpf_probe_read_kernel(&s->text[at], length, s->part);
	return 0;
}

static __always_inline void put_name_before(struct subject *s, const void *name)
{
	long got = bpf_probe_read_kernel_str(s->part, NAME_LEN, name);

	put_part_before(s, got > 0 ? got : 0);
}

/* Such as `pipe:[` and a number. */
static __always_inline void put_number_before(struct subject *s, u64 number)
{
	put_before(s, ']');
	for (u32 i = 0; i < 20; i++) {
		put_before(s, '0' + number % 10);
		number /= 10;
		if (!number)
			break;
	}
	put_before(s, '[');
	put_before(s, ':');
}

#define PUT_WORD_BEFORE(s, word)                                              \
	do {                                                                  \
		const char text[] = word;                                     \
		_Pragma("unroll") for (int i = sizeof(text) - 2; i >= 0; i--) \
			put_before((s), text[i]);                             \
	} while (0)

/* The path whose components these are, leaf first. */
__noinline int put_path_before(struct subject *s, const struct roomy_name *from, u64 inode)
{
	u64 at = 0, length;

	if (!s || !from)
		return 0;
	if (from->name.magic == PIPEFS) {
		put_number_before(s, inode);
		PUT_WORD_BEFORE(s, "pipe");
		return 0;
	}
	if (from->name.magic == SOCKFS_MAGIC) {
		put_number_before(s, inode);
		PUT_WORD_BEFORE(s, "socket");
		return 0;
	}
	for (u32 i = 0; i < DEPTH; i++) {
		if (at >= from->name.length)
			break;
		length = s->length;
		put_name_before(s, &from->name.path[at & (PATH_LEN - 1)]);
		length = s->length - length;
		/* A component that is only `/` is the root. */
		at += length ? length : 2;
	}
	if (from->name.magic == ANON_INODE_FS) {
		s->text[s->start & SUBJECT_MASK] = ':';
		PUT_WORD_BEFORE(s, "anon_inode");
	} else if (!s->length) {
		put_before(s, '/');
	}
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pattern);
} patterns SEC(".maps");

/*
 * The verifier goes through a function that is not static once, not once for each way to it: each
 * loop is one, and a long one is a loop over short ones.
 */
#define CHUNK 32

/* Whether some bytes of the prefix, from `from` on, are those of the text. */
__noinline int has_chunk(u32 number, const struct subject *s, u64 from)
{
	const struct pattern *p = bpf_map_lookup_elem(&patterns, &number);
	u64 place;

	if (!p || !s)
		return 0;
	for (u32 i = 0; i < CHUNK; i++) {
		place = from + i;
		if (place >= p->prefix_length)
			break;
		if (s->text[(s->start + place) & SUBJECT_MASK] !=
		    p->prefix[place & (PREFIX_LEN - 1)])
			return 0;
	}
	return 1;
}

__noinline int has_prefix(u32 number, const struct subject *s)
{
	const struct pattern *p = bpf_map_lookup_elem(&patterns, &number);

	if (!p || !s || s->length < p->prefix_length)
		return 0;
	for (u32 i = 0; i < PREFIX_LEN; i += CHUNK) {
		if (i >= p->prefix_length)
			break;
		if (!has_chunk(number, s, i))
			return 0;
	}
	return 1;
}

/* The positions that the pattern's rest may be at behind some bytes of the text. */
__noinline u64 steps_on(u32 number, const struct subject *s, u64 from, u64 at)
{
	const struct pattern *p = bpf_map_lookup_elem(&patterns, &number);
	u64 place;

	if (!p || !s)
		return 0;
	for (u32 i = 0; i < CHUNK; i++) {
		place = from + i;
		if (place >= s->length)
			break;
		place = (s->start + place) & SUBJECT_MASK;
		at = (at & p->rest.steps[(u8)s->text[place]]) << 1 | (at & p->rest.stays);
	}
	return at;
}

__noinline int matches_rest(u32 number, const struct subject *s)
{
	const struct pattern *p = bpf_map_lookup_elem(&patterns, &number);
	u64 at = 1, place;

	if (!p || !s)
		return 0;
	for (u32 i = 0; i < SUBJECT_MOST; i += CHUNK) {
		place = p->prefix_length + i;
		/* None of them, or the end, whatever follows. */
		if (place >= s->length || !at || at & p->rest.stays & p->rest.end)
			break;
		at = steps_on(number, s, place, at);
	}
	return !!(at & p->rest.end);
}

/* The bit of a pattern that is among these, if the text matches it. */
__noinline u64 match_one(u64 patterns, u32 number, const struct subject *s)
{
	u64 bit = 1ULL << (number & 63);

	if (!(patterns & bit) || !s)
		return 0;
	return has_prefix(number, s) && matches_rest(number, s) ? bit : 0;
}

/* The bits of the patterns among these that the text matches. */
__noinline u64 match_all(u64 patterns, const struct subject *s)
{
	u64 bits = 0;

	if (!s)
		return 0;
	for (u32 i = 0; i < MOST_TESTS; i++) {
		if (!(patterns >> i))
			break;
		bits |= match_one(patterns, i, s);
	}
	return bits;
}

ROWS(texts, u64, struct kept_text);

struct where_counters where_counters SEC(".data.where");

static __always_inline u64 hash_on(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* The hash of some whole words more of the text, from a byte on. */
__noinline u64 hash_words(const struct subject *s, u64 hash, u64 from)
{
	u64 at;

	if (!s)
		return 0;
	for (u32 i = 0; i < CHUNK; i++) {
		at = from + i * 8;
		if (at + 8 > s->length)
			break;
		hash = hash_on(hash, *(u64 *)&s->text[(s->start + at) & SUBJECT_MASK]);
	}
	return hash;
}

/*
 * Not 0, but for an empty text. The last bytes come behind the loop: in it, the verifier would go
 * on from each turn in which they might have come.
 */
__noinline u64 text_hash(const struct subject *s)
{
	u64 hash = knobs.seed, rest, at;

	if (!s || !s->length)
		return 0;
	for (u32 i = 0; i < SUBJECT_MOST; i += CHUNK * 8) {
		if (i + 8 > s->length)
			break;
		hash = hash_words(s, hash, i);
	}
	rest = s->length & 7;
	at = (s->start + s->length - rest) & SUBJECT_MASK;
	hash = hash_on(hash, *(u64 *)&s->text[at] & ((1ULL << rest * 8) - 1));
	return hash | !hash;
}

/* Keeps a text as part of keys: its hash, by which user space finds it. */
__noinline u64 keep_text(struct subject *s)
{
	struct scratch *own;
	u64 hash, length;

	if (!s)
		return 0;
	hash = text_hash(s);
	if (!hash)
		return 0;
	if (bpf_map_lookup_elem(&texts, &hash))
		return hash;
	own = scratch();
	if (!own)
		return 0;
	length = s->length;
	own->text.length = length;
	barrier_var(length); /* or the compiler checks one copy and passes the other */
	if (length > KEPT_TEXT)
		length = KEPT_TEXT;
	bpf_probe_read_kernel(own->text.text, length, &s->text[s->start & SUBJECT_MASK]);
	if (bpf_map_update_elem(&texts, &hash, &own->text, BPF_ANY))
		return NO_ROOM;
	return hash;
}
