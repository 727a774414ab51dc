/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Whether a task is in a selected control group, or below one. Who includes it has ROWS and `lose`.
 */

#define MOST_HIERARCHIES 32
#define CGROUP_DEPTH	 32
#define CGROUP_PATH	 252

/* A cgroup, by its inode's number in its hierarchy. */
struct cgroup_key {
	u64 id;
	u32 hierarchy;
	u32 pad;
};

/* A cgroup, by its path in its hierarchy: it may be made again. */
struct cgroup_place {
	u32 hierarchy;
	char path[CGROUP_PATH];
};

ROWS(selected_cgroups, struct cgroup_key, u32);
ROWS(selected_places, struct cgroup_place, u32);

/* The cgroup is a selected one, or below one. */
__noinline int is_selected_cgroup(u64 at)
{
	struct cgroup *cgroup = (void *)at;
	struct cgroup_subsys_state *parent;
	struct cgroup_key key = {};

	key.hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
	for (int i = 0; i < CGROUP_DEPTH; i++) {
		key.id = BPF_CORE_READ(cgroup, kn, id);
		if (bpf_map_lookup_elem(&selected_cgroups, &key))
			return 1;
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			break;
		cgroup = BPF_CORE_READ(parent, cgroup);
	}
	return 0;
}

/* One of a task's cgroups is selected; it has one in each hierarchy. */
__noinline int is_any_selected(u64 set)
{
	u64 head = set + bpf_core_field_offset(struct css_set, cgrp_links);
	struct list_head *link = BPF_CORE_READ((struct css_set *)set, cgrp_links.next);
	struct cgrp_cset_link *own;

	for (int i = 0; i < MOST_HIERARCHIES; i++) {
		if (!link || (u64)link == head)
			break;
		own = (void *)link - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);
		if (is_selected_cgroup((u64)BPF_CORE_READ(own, cgrp)))
			return 1;
		link = BPF_CORE_READ(link, next);
	}
	return 0;
}

static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	return is_any_selected((u64)BPF_CORE_READ(task, cgroups));
}

/* A selected cgroup is made again, as when a unit or a container starts anew. */
SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(cgroup_mkdir, struct cgroup *cgroup, const char *path)
{
	struct cgroup_place place = {};
	struct cgroup_key key = {};
	u32 one = 1;

	place.hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
	if (bpf_probe_read_kernel_str(place.path, sizeof(place.path), path) <= 0)
		return 0;
	if (!bpf_map_lookup_elem(&selected_places, &place))
		return 0;
	key.id = BPF_CORE_READ(cgroup, kn, id);
	key.hierarchy = place.hierarchy;
	if (bpf_map_update_elem(&selected_cgroups, &key, &one, BPF_ANY))
		lose();
	return 0;
}
