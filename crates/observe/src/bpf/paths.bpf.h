/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The paths that calls are given. They are read when the call returns: what it was given is still
 * in its registers, and the kernel has read the text, so it is in memory. Of a path that is
 * relative, the directory that it begins at is kept, too.
 */

#ifdef DETAILS

#define AT_FDCWD -100

/* A path of a call that returns. */
struct given {
	u64 text;
	u64 wall_ns;
	struct path_key key;
	u32 image;
	s32 directory;	   /* a descriptor, or AT_FDCWD */
	u32 executed;	   /* it has made this image; else 0 */
	bool is_directory; /* that itself is meant, whatever the text says */
	bool is_copy;	   /* the text is the kernel's */
};

static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* What tells paths apart: of each 8 bytes, and of the directory. The bytes behind the last word
 * come after the loop: in it, the verifier would follow both ways from each word on. */
__noinline u64 hash_of(const struct path_row *row)
{
	u64 hash = knobs.seed, words, rest;

	if (!row)
		return 0;
	words = row->length / 8;
	rest = row->length % 8;
	for (u64 i = 0; i < PATH_TEXT / 8; i++) {
		if (i >= words)
			break;
		hash = mix(hash, ((const u64 *)row->text)[i]);
	}
	barrier_var(words);
	if (rest && words < PATH_TEXT / 8)
		hash = mix(hash, ((const u64 *)row->text)[words] & ((1ULL << rest * 8) - 1));
	hash = mix(hash, row->directory.dentry);
	return mix(hash, row->directory.inode);
}

/* A directory, or the file behind a descriptor: its key, and, where it is new, its name. Not
 * static: the verifier looks at it once. */
__noinline int note_place_at(struct file_key *to, u64 at, u64 mount)
{
	struct dentry *dentry = (void *)at;
	struct vfsmount *vfs = (void *)mount;
	struct scratch *s = scratch();
	struct file_key key = {};
	struct inode *inode;

	if (!to || !s)
		return 0;
	inode = BPF_CORE_READ(dentry, d_inode);
	key.dentry = name_number((u64)dentry);
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	*to = key;
	if (bpf_map_lookup_elem(&directories, &key))
		return 0;
	s->file.name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	s->file.name.mode = BPF_CORE_READ(inode, i_mode);
	s->file.name.whole = 0;
	s->file.name.size_bytes = 0;
	s->file.name.cached_pages = -1ULL;
	if (s->file.name.magic == SOCKFS_MAGIC)
		note_socket((struct socket_name *)s->file.name.path, inode);
	else
		walk_from(&s->file, dentry, vfs);
	/* Where there is no room, the path begins with an ellipsis. */
	bpf_map_update_elem(&directories, &key, &s->file.name, BPF_ANY);
	return 0;
}

static __always_inline void note_place(struct file_key *to, const struct dentry *dentry,
				       const struct vfsmount *vfs)
{
	note_place_at(to, (u64)dentry, (u64)vfs);
}

static __always_inline void note_directory(struct scratch *s, s32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file;

	if (fd == AT_FDCWD) {
		note_place(&s->path.directory, BPF_CORE_READ(task, fs, pwd.dentry),
			   BPF_CORE_READ(task, fs, pwd.mnt));
		return;
	}
	file = file_of(task, fd);
	if (file)
		note_place(&s->path.directory, BPF_CORE_READ(file, f_path.dentry),
			   BPF_CORE_READ(file, f_path.mnt));
}

/*
 * Reads it into the scratch. Not static: the verifier looks at it once. It looks the scratch up by
 * itself: what goes into maps is not to be an argument, for older verifiers.
 */
__noinline int take_path(struct given *of)
{
	struct program *program;
	struct path_row *to;
	struct scratch *s;
	u32 executed;
	long got = 0;

	if (!of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	to = &s->path;
	__builtin_memset(&to->directory, 0, sizeof(to->directory));
	to->text[0] = 0;
	executed = of->executed;
	if (executed) {
		/* The text is gone with the memory it was in. */
		program = bpf_map_lookup_elem(&programs, &executed);
		if (program)
			got = bpf_probe_read_kernel_str(to->text, EXEC_LEN, program->exec);
	} else if (of->is_directory || (!of->text && of->directory != AT_FDCWD)) {
		got = 1;
	} else {
		got = bpf_probe_read_user_str(to->text, PATH_TEXT, (void *)of->text);
	}
	to->length = got > 0 ? got : 0;
	if (to->length && to->text[0] != '/')
		note_directory(s, of->directory);
	return 0;
}

__noinline int count_path(struct given *of)
{
	struct path_row *fresh, *found;
	struct path_key key;
	struct scratch *s;

	if (!of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	take_path(of);
	fresh = &s->path;
	key = of->key;
	key.hash = hash_of(fresh);
	found = bpf_map_lookup_elem(&paths, &key);
	if (!found) {
		fresh->calls = 0;
		fresh->wall_ns = 0;
		fresh->image = of->image;
		bpf_map_update_elem(&paths, &key, fresh, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&paths, &key);
	}
	if (!found) {
		__sync_fetch_and_add(&counters.lost_paths, 1);
		return 0;
	}
	found->calls++;
	found->wall_ns += of->wall_ns;
	return 0;
}

/* How the arguments of the current call name paths; 0: not at all. */
static __always_inline u32 paths_of_call(struct thread *t)
{
	u32 number = t->call & CALL_NUMBER;

	return number > 511 ? 0 : knobs.paths[t->call & CALL_I386 ? 1 : 0][number];
}

/* The same where they are asked for. */
static __always_inline u32 path_arguments(struct thread *t)
{
	return knobs.by_path ? paths_of_call(t) : 0;
}

static __always_inline bool executes(u16 call)
{
	return call == NR_EXECVE || call == NR_EXECVEAT || call == NR_EXECVE_I386 ||
	       call == NR_EXECVEAT_I386;
}

/* One of them: the argument that is the text, less 1, and the one that is the directory, less 1. */
static __always_inline void name_path(struct thread *t, struct given *of, struct pt_regs *regs,
				      u32 how, long ret)
{
	of->text = wide_argument(regs, t->call, (how & 0xf) - 1);
	of->directory = AT_FDCWD;
	if (!ret && executes(t->call))
		of->executed = t->image;
	else if (how >> 4)
		of->directory = wide_argument(regs, t->call, (how >> 4) - 1);
	/* It is where the path has led. */
	of->is_directory = !ret && (t->call == NR_CHDIR || t->call == NR_CHDIR_I386);
}

/* The call that is about to be counted has returned. */
static __always_inline void count_paths(struct thread *t, struct pt_regs *regs, u64 now, long ret)
{
	u32 how = path_arguments(t);
	struct given of = {};

	if (!how || !wants(t, t->call))
		return;
	of.key.thread = t->id;
	of.key.call = t->call;
	of.key.error = is_error(ret) ? -ret : 0;
	of.image = t->image;
	of.wall_ns = now - t->last_ns;
	if (t->call_thread) {
		of.key.thread = t->call_thread;
		of.image = t->call_image;
		of.wall_ns += t->wall_before_ns;
	}
	if (!of.image)
		return;
	name_path(t, &of, regs, how & 0xff, ret);
	count_path(&of);
	how >>= 8;
	if (!how)
		return;
	of.key.call |= SECOND_PATH;
	name_path(t, &of, regs, how, ret);
	count_path(&of);
}

#else

static __always_inline u32 path_arguments(struct thread *t)
{
	return 0;
}

static __always_inline void count_paths(struct thread *t, struct pt_regs *regs, u64 now, long ret)
{
}

#endif
