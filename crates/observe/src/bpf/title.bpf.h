/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The title of a process, for conditions: a part of where.bpf.h. It is the first argument, unless
 * that is a path to the program, as `title` of crates/host/src/title.rs has it.
 *
 * The text is read at each call that asks for it, and looked at only where it is another one than
 * before.
 */

/* Where the names lie that the text is compared with. */
#define NAMES_AT      (MIDDLE + 512)

#define TITLE_DELETED 10 /* bytes of " (deleted)" */

static __always_inline u64 part_hash(struct subject *s, u64 start, u64 length)
{
	s->start = start;
	s->length = length;
	return text_hash(s);
}

/*
 * Looks at some bytes more of the text. What is found is kept in memory, not in variables: the
 * verifier would go through each of their values.
 */
__noinline int look_on(struct subject *s, u64 from)
{
	u64 place;
	char c;

	if (!s)
		return 0;
	for (u32 i = 0; i < CHUNK; i++) {
		place = from + i;
		if (place >= s->length)
			break;
		c = s->text[(MIDDLE + place) & SUBJECT_MASK];
		if (c == ' ') {
			s->has_blank = 1;
		} else if (c == '/') {
			s->component = place + 1;
			if (!s->has_blank)
				s->first_word = place + 1;
		}
	}
	return 0;
}

/* Whether a part of the text is a name of the program; one that the kernel has cut begins it. */
__noinline int is_name(struct subject *s, u64 at, u64 length, u64 name)
{
	long got;
	u64 known;

	if (!s || !length)
		return 0;
	got = bpf_probe_read_kernel_str(&s->text[NAMES_AT], NAME_LEN, (void *)name);
	if (got <= 1 || got - 1 > length)
		return 0;
	known = got - 1;
	if (known < length && known != COMM_LEN - 1)
		return 0;
	return part_hash(s, NAMES_AT, known) == part_hash(s, MIDDLE + at, known);
}

/* Whether it ends with " (deleted)", of which eight bytes are enough to tell. */
static __always_inline bool ends_deleted(const struct subject *s, u64 length)
{
	const u64 deleted = 0x646574656c656428; /* (deleted */

	return length > TITLE_DELETED &&
	       *(u64 *)&s->text[(MIDDLE + length - TITLE_DELETED + 1) & SUBJECT_MASK] == deleted;
}

/*
 * How many bytes in front of the title are none of it, in a first argument of so many bytes to a
 * program whose file is this; -1: it is no title.
 */
__noinline int title_at(struct subject *s, u64 length, u64 file)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 at, name, comm;
	char first;

	if (!s || !length)
		return -1;
	if (ends_deleted(s, length))
		length -= TITLE_DELETED;
	s->length = length;
	s->component = 0;
	s->first_word = 0;
	s->has_blank = 0;
	for (u32 i = 0; i < TITLE_LEN; i += CHUNK) {
		if (i >= length)
			break;
		look_on(s, i);
	}
	first = s->text[MIDDLE];
	if (first == '/' && !s->has_blank)
		return -1;
	/* Words are no path. */
	if (s->has_blank && first != '/' && first != '.')
		return s->first_word & (TITLE_LEN - 1);
	at = s->component;
	name = (u64)BPF_CORE_READ((struct dentry *)file, d_name.name);
	comm = (u64)BPF_CORE_READ(task, group_leader) +
	       bpf_core_field_offset(struct task_struct, comm);
	/* A login shell's has a dash in front. */
	for (u32 i = 0; i < 2; i++) {
		if (is_name(s, at, length - at, name) || is_name(s, at, length - at, comm))
			return -1;
		if (s->text[(MIDDLE + at) & SUBJECT_MASK] != '-')
			break;
		at++;
	}
	return s->first_word & (TITLE_LEN - 1);
}

/* The title of the current task's process, where it is another one than before. */
__noinline int note_title(struct filter *f)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = UNTRUSTED(struct task_struct, task)->mm;
	u64 length = 0, hash, file = 0;
	struct scratch *s;
	long got, at;

	if (!f)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	if (mm) {
		got = bpf_probe_read_user_str(&s->subject.text[MIDDLE], TITLE_LEN,
					      (void *)mm->arg_start);
		length = got > 1 && got <= TITLE_LEN ? got - 1 : 0;
		file = (u64)BPF_CORE_READ(mm, exe_file, f_path.dentry);
	}
	hash = part_hash(&s->subject, MIDDLE, length) ^ file;
	if (f->titled && f->title_hash == hash)
		return 0;
	at = title_at(&s->subject, length, file);
	s->subject.start = at < 0 ? MIDDLE : MIDDLE + at;
	s->subject.length = at < 0 ? 0 : length - at;
	f->title_bits = match_all(where.of_title, &s->subject);
	if (where.keeps & KEEPS_TITLE)
		f->title_text = keep_text(&s->subject);
	f->title_hash = hash;
	f->titled = 1;
	return 0;
}
