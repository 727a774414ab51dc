/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The paths, peers and programs that a condition compares with strings: a part of where.bpf.h. What
 * was compared is kept with the thread as a bit a string.
 */

/* The path of an open file, which is at this address. */
__noinline int note_file_at(struct filter *f, u64 at)
{
	struct known_name *known, fresh = {};
	struct file *file = (void *)at;
	struct name_key key = {};
	struct dentry *dentry;
	struct scratch *s;
	struct inode *inode;

	if (!f)
		return 0;
	f->path_bits = where.of_no_path;
	f->path_text = 0;
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	dentry = BPF_CORE_READ(file, f_path.dentry);
	key.dentry = (u64)dentry;
	key.above = name_number((u64)BPF_CORE_READ(dentry, d_parent));
	key.mount = (u64)BPF_CORE_READ(file, f_path.mnt);
	key.hash = BPF_CORE_READ(dentry, d_name.hash_len);
	key.inode = BPF_CORE_READ(inode, i_ino);
	known = bpf_map_lookup_elem(&known_names, &key);
	if (known) {
		f->path_bits = known->bits;
		f->path_text = known->text;
		return 0;
	}
	s = scratch();
	if (!s)
		return 0;
	s->file.name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	s->file.name.whole = 0;
	walk(&s->file, file);
	begin_subject(&s->subject, MIDDLE);
	put_path_before(&s->subject, &s->file, key.inode);
	fresh.bits = match_all(where.of_path, &s->subject);
	if (where.keeps & KEEPS_PATH)
		fresh.text = keep_text(&s->subject);
	f->path_bits = fresh.bits;
	f->path_text = fresh.text;
	/* Without room, the next call takes longer. */
	bpf_map_update_elem(&known_names, &key, &fresh, BPF_ANY);
	return 0;
}

static __always_inline void note_file(struct filter *f, u32 fd)
{
	note_file_at(f, file_number(bpf_get_current_task_btf(), fd));
}

/* What the socket in the scratch is connected to. */
static __always_inline int take_peer(struct filter *f, struct scratch *s)
{
	struct socket_name *name;
	struct known_name *known, fresh = {};
	struct peer_key key = {};

	if (!f || !s)
		return 0;
	name = (struct socket_name *)s->file.name.path;
	key.remote[0] = ((u64 *)name->remote)[0];
	key.remote[1] = ((u64 *)name->remote)[1];
	key.port = name->remote_port;
	key.protocol = name->protocol;
	key.family = name->family;
	key.type = name->type;
	known = name->family == AF_UNIX ? NULL : bpf_map_lookup_elem(&known_peers, &key);
	if (known) {
		f->peer_bits = known->bits;
		f->peer_text = known->text;
		return 0;
	}
	lay_peer(&s->subject, name);
	fresh.bits = match_all(where.of_peer, &s->subject);
	if (where.keeps & KEEPS_PEER)
		fresh.text = keep_text(&s->subject);
	f->peer_bits = fresh.bits;
	f->peer_text = fresh.text;
	/* Without room, the next call takes longer. */
	if (name->family != AF_UNIX)
		bpf_map_update_elem(&known_peers, &key, &fresh, BPF_ANY);
	return 0;
}

/* What the socket behind a descriptor is connected to; or, if a call asks for one, to that. */
__noinline int note_peer(struct filter *f, struct making *of)
{
	struct socket_name *name;
	struct scratch *s;

	if (!f || !of)
		return 0;
	s = scratch();
	if (!s || !named_socket(s, of->fd))
		return 0;
	name = (struct socket_name *)s->file.name.path;
	if (of->address)
		ask(name, of);
	return take_peer(f, s);
}

/* What the socket is connected to that is the file at this address. */
__noinline int note_peer_at(struct filter *f, u64 at)
{
	struct scratch *s;

	if (!f)
		return 0;
	s = scratch();
	if (!s || !name_socket(s, (struct file *)at))
		return 0;
	return take_peer(f, s);
}

/* Calls whose peer is not that of their descriptor. */
static __always_inline void note_other_peer(struct filter *f, struct thread *t,
					    struct pt_regs *regs, long ret)
{
	struct making of = {};

	of.fd = argument(regs, t->call, 0);
	if (connects(t->call)) {
		of.address = wide_argument(regs, t->call, 1);
		of.length = (u32)wide_argument(regs, t->call, 2);
	} else if (t->call == NR_SENDTO) {
		of.address = wide_argument(regs, t->call, 4);
		of.length = (u32)wide_argument(regs, t->call, 5);
		if (!of.address)
			return;
	} else if (accepts(t->call) && ret >= 0) {
		of.fd = ret;
	} else {
		return;
	}
	note_peer(f, &of);
}

/* The path that a call is given, as its program names it, from the directory it begins at. */
__noinline int note_path_text(struct filter *f, struct given *of)
{
	struct dentry *dentry;
	struct program *program;
	struct vfsmount *vfs;
	struct scratch *s;
	struct file *file;
	u64 below = MIDDLE, length;
	u32 image;
	long got;

	if (!f || !of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	image = of->executed;
	got = 0;
	s->subject.text[MIDDLE + 1] = 0;
	if (!image && !of->is_directory && !of->text && of->directory == AT_FDCWD) {
		f->path_bits |= where.of_no_path;
		return 0;
	}
	if (image) {
		program = bpf_map_lookup_elem(&programs, &image);
		if (program)
			got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE + 1], EXEC_LEN,
							program->exec);
	} else if (!of->is_directory && of->text) {
		got = of->is_copy ? bpf_probe_read_kernel_str(&s->subject.text[MIDDLE + 1],
							      TEXT_MOST, (void *)of->text)
				  : bpf_probe_read_user_str(&s->subject.text[MIDDLE + 1], TEXT_MOST,
							    (void *)of->text);
		if (got <= 0) {
			f->path_bits |= where.of_no_path;
			return 0;
		}
	}
	length = got > 0 && got <= TEXT_MOST ? got - 1 : 0;
	if (s->subject.text[MIDDLE + 1] == '/') {
		s->subject.start = MIDDLE + 1;
		s->subject.length = length;
	} else {
		/* `./` says nothing. */
		for (u32 i = 0; i < 4; i++) {
			if (length < 2 || s->subject.text[(below + 1) & SUBJECT_MASK] != '.' ||
			    s->subject.text[(below + 2) & SUBJECT_MASK] != '/')
				break;
			below += 2;
			length -= 2;
		}
		if (length == 1 && s->subject.text[(below + 1) & SUBJECT_MASK] == '.')
			length = 0;
		if (of->directory == AT_FDCWD) {
			dentry = BPF_CORE_READ(bpf_get_current_task_btf(), fs, pwd.dentry);
			vfs = BPF_CORE_READ(bpf_get_current_task_btf(), fs, pwd.mnt);
		} else {
			file = file_of(bpf_get_current_task_btf(), of->directory);
			dentry = BPF_CORE_READ(file, f_path.dentry);
			vfs = BPF_CORE_READ(file, f_path.mnt);
		}
		s->file.name.magic = BPF_CORE_READ(dentry, d_inode, i_sb, s_magic);
		s->file.name.whole = 0;
		walk_from(&s->file, dentry, vfs);
		begin_subject(&s->subject, below);
		put_path_before(&s->subject, &s->file, BPF_CORE_READ(dentry, d_inode, i_ino));
		if (length) {
			/* Not behind the `/` of the root itself. */
			if (s->subject.length == 1 &&
			    s->subject.text[(below - 1) & SUBJECT_MASK] == '/')
				s->subject.start++;
			else
				s->subject.length++;
			s->subject.text[below & SUBJECT_MASK] = '/';
			s->subject.length += length;
		}
	}
	f->path_bits |= match_all(where.of_path, &s->subject);
	if (where.keeps & KEEPS_PATH && !f->path_text)
		f->path_text = keep_text(&s->subject);
	return 0;
}

static __always_inline void note_given(struct filter *f, struct thread *t, struct pt_regs *regs,
				       u32 how, struct given *of)
{
	of->text = wide_argument(regs, t->call, (how & 0xf) - 1);
	of->directory = AT_FDCWD;
	if (how >> 4 && !of->executed)
		of->directory = wide_argument(regs, t->call, (how >> 4) - 1);
	note_path_text(f, of);
}

/* How the arguments of the current call name paths. */
static __always_inline u32 given_paths(struct thread *t)
{
	u32 number = t->call & CALL_NUMBER;

	if (!(where.uses & USES_PATH) || number > 511)
		return 0;
	return knobs.paths[t->call & CALL_I386 ? 1 : 0][number];
}

/* The name that the task's process was executed by before it was watched with this image. */
static __always_inline struct executed_name *executed_before(struct task_struct *task, u32 image)
{
	u32 tgid = tgid_of(task), *found = image_found(task);

	return found && *found == image ? bpf_map_lookup_elem(&executed_names, &tgid) : NULL;
}

/* The name that a program was executed by, and that of the file which runs. */
__noinline int note_image(struct filter *f, u32 image, u64 executed)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct executed_name *before;
	struct scratch *s;
	u64 name;
	long got;

	if (!f)
		return 0;
	f->image = image;
	f->image_bits = 0;
	s = scratch();
	if (!s)
		return 0;
	name = (u64)BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], EXEC_LEN, (void *)name);
	s->subject.start = MIDDLE;
	s->subject.length = got > 0 ? got - 1 : 0;
	f->image_bits = match_all(where.of_image, &s->subject);
	if (!executed) {
		before = executed_before(task, image);
		if (!before)
			return 0;
		got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], EXEC_LEN, before->text);
	} else {
		got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], EXEC_LEN,
						(void *)executed);
	}
	if (got <= 0)
		return 0;
	/* Without its directories. */
	s->subject.length = got - 1;
	for (u32 i = 0; i < EXEC_LEN; i++) {
		if (i >= got - 1)
			break;
		if (s->subject.text[MIDDLE + i] == '/') {
			s->subject.start = MIDDLE + i + 1;
			s->subject.length = got - 2 - i;
		}
	}
	f->image_bits |= match_all(where.of_image, &s->subject);
	return 0;
}
