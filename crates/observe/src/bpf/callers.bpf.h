/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The functions of user space that a call was made in: where they return to, by their frame
 * pointers, and the files that are mapped there. The C library's functions around calls keep no
 * frame, so what stands on top of the stack may be where such a one returns to: user space looks
 * into the function before it believes that.
 */

#ifdef DETAILS

#define VM_EXEC 0x4

struct mapped {
	u64 file;
	u64 to_file; /* from an address to its place in the file */
};

static long note_mapped(struct task_struct *task, struct vm_area_struct *vma, void *to)
{
	struct mapped *found = to;

	/* Where no code is mapped, nothing has called. */
	if (!(vma->vm_flags & VM_EXEC))
		return 0;
	found->file = (u64)UNTRUSTED(struct vm_area_struct, vma)->vm_file;
	found->to_file = (vma->vm_pgoff << 12) - vma->vm_start;
	return 0;
}

/* Not static: so the verifier looks at it once. */
__noinline int note_caller(struct caller *to, u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mapped found = {};
	struct scratch *s = scratch();
	struct file *file;

	if (!to || !s)
		return 0;
	__builtin_memset(&to->file, 0, sizeof(to->file));
	to->at = address;
	if (!KERNEL_HAS(MAPPED_AT) || bpf_find_vma(task, address, note_mapped, &found, 0) ||
	    !found.file)
		return 0;
	to->at = address + found.to_file;
	file = (void *)found.file;
	note_place(&to->file, BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(file, f_path.mnt));
	return 0;
}

/* Of the addresses in the scratch. Not static, either. */
__noinline int note_callers(struct slow_call *slow, u64 sp)
{
	struct scratch *s = scratch();
	u64 on_top = 0;

	if (!slow || !s)
		return 0;
	bpf_probe_read_user(&on_top, sizeof(on_top), (void *)sp);
	note_caller(&slow->on_top, on_top);
	for (u32 i = 0; i < CALLERS; i++) {
		if (i >= slow->callers)
			break;
		note_caller(&slow->caller[i], s->frames[i]);
	}
	return 0;
}

#endif
