/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The stacks that the kept calls were made on: user space finds who called by the tables of the
 * files (`.eh_frame`) where functions keep no frame pointers.
 *
 * Registers and the last 8 KiB of the stack are copied, with the mappings of code that its words
 * lead to: an address that such a walk can come to is one of these words. So nothing of the process
 * is needed later but the files, which are known by their inodes.
 *
 * A call has its place in the table of the slowest by then, and the stack has the same place in a
 * table of its own. Two calls that have one place one after the other may come here at once: one of
 * them is copied, and user space takes no stack for that of another call.
 */

#ifdef DETAILS

/* Most look-ups of mappings a stack. */
#define FINDS 192

/* User space sets the size: the slowest of either turn, and the call that ends the watch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct user_stack);
} user_stacks SEC(".maps");

static __always_inline void keep_registers(struct scratch *s, struct pt_regs *regs)
{
	s->registers[USER_BX] = regs->bx;
	s->registers[USER_BP] = regs->bp;
	s->registers[USER_R12] = regs->r12;
	s->registers[USER_R13] = regs->r13;
	s->registers[USER_R14] = regs->r14;
	s->registers[USER_R15] = regs->r15;
	s->registers[USER_SP] = regs->sp;
	s->registers[USER_IP] = regs->ip;
}

static __always_inline bool lies_in(u64 address, const struct mapped_range *range)
{
	return address - range->start < range->end - range->start;
}

struct found_range {
	struct mapped_range range;
	u64 pages_before; /* in the file */
	u64 file;
	u64 has_code;
};

static long note_range(struct task_struct *task, struct vm_area_struct *vma, void *to)
{
	struct found_range *found = to;

	found->range.start = vma->vm_start;
	found->range.end = vma->vm_end;
	found->pages_before = vma->vm_pgoff;
	found->has_code = vma->vm_flags & VM_EXEC;
	found->file = (u64)UNTRUSTED(struct vm_area_struct, vma)->vm_file;
	return 0;
}

/* Looks the mapping of an address up; the file of code is just its address until `note_code_file`.
 * Not static: so the verifier looks at it once.
 */
__noinline int note_mapping(u32 at, u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct user_stack *to = bpf_map_lookup_elem(&user_stacks, &at);
	struct found_range found = {};
	u32 place;

	if (!to || to->finds >= FINDS)
		return 0;
	place = to->finds++;
	if (!KERNEL_HAS(MAPPED_AT) || bpf_find_vma(task, address, note_range, &found, 0))
		return 0;
	if (!found.has_code) {
		to->other[place % OTHERS] = found.range;
		return 0;
	}
	place = to->codes;
	if (place >= CODES)
		return 0;
	/* Older verifiers forget the bound just checked; a mask they believe. */
	barrier_var(place);
	place &= CODES - 1;
	to->codes = place + 1;
	to->code[place].range = found.range;
	to->code[place].to_file = (found.pages_before << 12) - found.range.start;
	__builtin_memset(&to->code[place].file, 0, sizeof(struct file_key));
	to->code[place].file.dentry = found.file;
	return 0;
}

static __always_inline void note_address(struct user_stack *to, u32 at, u64 address)
{
	if (address < 65536 || address >> 47)
		return;
	for (u32 i = 0; i < CODES; i++) {
		if (i >= to->codes)
			break;
		if (lies_in(address, &to->code[i].range))
			return;
	}
	for (u32 i = 0; i < OTHERS; i++) {
		if (i >= to->finds)
			break;
		if (lies_in(address, &to->other[i]))
			return;
	}
	note_mapping(at, address);
}

/* Not under the loop over words: all stacks together have 512 bytes. Not static, either. */
__noinline int note_code_file(struct file_key *to)
{
	struct file *file;

	if (!to || !to->dentry)
		return 0;
	file = (void *)to->dentry;
	note_place(to, BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(file, f_path.mnt));
	return 0;
}

struct scan {
	struct user_stack *to;
	u64 sp;
	u32 at;
};

/* The first is where the call goes on. */
static long note_word(u32 turn, void *with)
{
	struct scan *scan = with;
	struct user_stack *to = scan->to;
	u64 address = to->registers[USER_IP];

	if (turn) {
		turn--;
		if (turn >= STACK_BYTES / 8 || turn >= to->words)
			return 1;
		/* As above. */
		barrier_var(turn);
		turn &= STACK_BYTES / 8 - 1;
		if (to->from + turn * 8 < scan->sp)
			return 0;
		address = to->word[turn];
	}
	note_address(to, scan->at, address);
	return 0;
}

/* Of the call in the scratch, to a place of which this is the number + 1; 0: none. Not static,
 * either. */
__noinline int copy_stack(u32 number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scan scan = {.at = number - 1};
	struct scratch *s = scratch();
	struct user_stack *to;
	u64 from;

	if (!number || !s || !s->registers[USER_IP] || !KERNEL_HAS(LOOPS) || !KERNEL_HAS(MAPPED_AT))
		return 0;
	to = bpf_map_lookup_elem(&user_stacks, &scan.at);
	if (!to || __sync_val_compare_and_swap(&to->busy, 0, 1))
		return 0;
	to->end_ns = 0;
	scan.sp = s->registers[USER_SP];
	from = scan.sp & ~(STACK_PART - 1ULL);
	to->from = from;
	to->vdso = (u64)BPF_CORE_READ(task, mm, context.vdso);
	__builtin_memcpy(to->registers, s->registers, sizeof(to->registers));
	to->tid = s->slow.tid;
	to->words = 0;
	to->codes = 0;
	to->finds = 0;
	__builtin_memset(to->other, 0, sizeof(to->other));
	for (u32 i = 0; i < STACK_BYTES / STACK_PART; i++) {
		if (bpf_probe_read_user(&to->word[i * (STACK_PART / 8)], STACK_PART,
					(void *)(from + i * STACK_PART)))
			break;
		to->words = (i + 1) * (STACK_PART / 8);
	}
	scan.to = to;
	bpf_loop(STACK_BYTES / 8 + 1, note_word, &scan, 0);
	for (u32 i = 0; i < CODES; i++) {
		if (i >= to->codes)
			break;
		note_code_file(&to->code[i].file);
	}
	to->end_ns = s->slow.end_ns;
	barrier();
	to->busy = 0;
	return 0;
}

#endif
