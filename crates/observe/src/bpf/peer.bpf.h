/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The text of what a socket is connected to: `tcp 127.0.0.1:6379`, `unix /run/x`. */

/* Not static, as the others: the verifier looks at each once, not once for each digit before it. */
__noinline int put_decimal_before(struct subject *s, u32 number)
{
	if (!s)
		return 0;
	for (u32 i = 0; i < 5; i++) {
		put_before(s, '0' + number % 10);
		number /= 10;
		if (!number)
			break;
	}
	return 0;
}

__noinline int put_ipv4_before(struct subject *s, const struct socket_name *name, u32 from)
{
	if (!s || !name)
		return 0;
	for (u32 i = 0; i < 4; i++) {
		if (i)
			put_before(s, '.');
		put_decimal_before(s, name->remote[(from + 3 - i) & 15]);
	}
	return 0;
}

static __always_inline u32 group_of(const struct socket_name *name, u32 at)
{
	return name->remote[2 * at & 15] << 8 | name->remote[(2 * at + 1) & 15];
}

__noinline int put_hexadecimal_before(struct subject *s, u32 number)
{
	if (!s)
		return 0;
	for (u32 i = 0; i < 4; i++) {
		u32 digit = number & 0xf;

		put_before(s, digit < 10 ? '0' + digit : 'a' + digit - 10);
		number >>= 4;
		if (!number)
			break;
	}
	return 0;
}

/* The longest of the runs of groups that are 0, if it is longer than one: its first, and behind it.
 */
__noinline u32 zero_groups(const struct socket_name *name)
{
	u32 first = 0, length = 0, run = 0;

	if (!name)
		return 0;

	for (u32 i = 0; i < 8; i++) {
		run = group_of(name, i) ? 0 : run + 1;
		if (run > length) {
			length = run;
			first = i + 1 - run;
		}
	}
	return length > 1 ? first << 8 | (first + length) : 0;
}

__noinline int put_ipv6_before(struct subject *s, const struct socket_name *name, u32 zeroes)
{
	u32 first = zeroes >> 8, behind = zeroes & 0xff, at;

	if (!s || !name)
		return 0;
	put_before(s, ']');
	for (u32 i = 0; i < 8; i++) {
		at = 7 - i;
		if (at >= first && at < behind) {
			if (at == first) {
				put_before(s, ':');
				put_before(s, ':');
			}
			continue;
		}
		put_hexadecimal_before(s, group_of(name, at));
		if (at && !(behind && at == behind))
			put_before(s, ':');
	}
	put_before(s, '[');
	return 0;
}

static __always_inline bool is_mapped(const struct socket_name *name)
{
	const u64 *words = (const u64 *)name->remote;

	return !words[0] && (u32)words[1] == 0xffff0000;
}

/* False: a protocol that has no text. */
static __always_inline bool put_protocol_before(struct subject *s, const struct socket_name *name)
{
	put_before(s, ' ');
	if (name->family == AF_UNIX) {
		if (name->type == 2)
			PUT_WORD_BEFORE(s, "-datagram");
		else if (name->type == 5)
			PUT_WORD_BEFORE(s, "-seqpacket");
		PUT_WORD_BEFORE(s, "unix");
		return true;
	}
	switch (name->protocol) {
	case IPPROTO_TCP:
		PUT_WORD_BEFORE(s, "tcp");
		return true;
	case 17:
		PUT_WORD_BEFORE(s, "udp");
		return true;
	case 1:
	case 58:
		PUT_WORD_BEFORE(s, "icmp");
		return true;
	case 262:
		PUT_WORD_BEFORE(s, "mptcp");
		return true;
	case 132:
		PUT_WORD_BEFORE(s, "sctp");
		return true;
	}
	return false;
}

/* The path of the other end of a UNIX socket, or that of its own. */
static __always_inline void lay_unix(struct subject *s, const struct socket_name *name)
{
	u64 length = name->peer_path_length ? name->peer_path_length : name->path_length;
	const char *path = name->peer_path_length ? name->peer_path : name->path;
	long got;

	if (length > UNIX_PATH)
		length = UNIX_PATH;
	s->text[MIDDLE] = 0;
	got = length ? bpf_probe_read_kernel_str(&s->text[MIDDLE], UNIX_PATH + 1, path) : 0;
	if (got == 1 && length > 1) {
		/* Abstract: all of it. */
		bpf_probe_read_kernel(&s->text[MIDDLE], length, path);
		s->text[MIDDLE] = '@';
		s->length = length;
	} else if (got > 1) {
		s->length = got - 1;
	}
}

/* Empty where it is connected to nothing. */
__noinline int lay_peer(struct subject *s, const struct socket_name *name)
{
	const u64 *words;

	if (!s || !name)
		return 0;
	begin_subject(s, MIDDLE);
	if (name->family == AF_UNIX) {
		lay_unix(s, name);
	} else {
		words = (const u64 *)name->remote;
		/* A socket whose connect failed keeps the address, but no port. */
		if (!name->remote_port &&
		    ((!words[0] && !words[1]) || name->protocol == IPPROTO_TCP))
			return 0;
		put_decimal_before(s, name->remote_port);
		put_before(s, ':');
		if (name->family == AF_INET)
			put_ipv4_before(s, name, 0);
		else if (is_mapped(name))
			put_ipv4_before(s, name, 12);
		else
			put_ipv6_before(s, name, zero_groups(name));
	}
	if (!put_protocol_before(s, name))
		begin_subject(s, MIDDLE);
	/* Of a UNIX socket without any name. */
	if (s->length && s->text[(s->start + s->length - 1) & SUBJECT_MASK] == ' ')
		s->length--;
	return 0;
}
