/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* A text under way. */

#define MIDDLE	      1024
#define SUBJECT_MASK  2047
#define SUBJECT_MOST  1536
#define TEXT_MOST     512

#define ANON_INODE_FS 0x09041934
#define PIPEFS	      0x50495045

struct subject {
	u64 start;
	u64 length;
	char text[SUBJECT_MASK + 1 + NAME_LEN];
	char part[NAME_LEN];
	/* Of a first argument (title.bpf.h). */
	u64 component;	/* where the last component of it as a path begins */
	u64 first_word; /* the same of its first word */
	u64 has_blank;
};
