/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Patterns for names. User space has made a table of a pattern (`Glob` of the crate `d`): a bit
 * stands for each position that the name read so far may have reached in it.
 */
#ifndef IOTOMY_GLOB_BPF_H
#define IOTOMY_GLOB_BPF_H

struct glob {
	u64 steps[256]; /* by byte: the positions that go on to the next upon it */
	u64 stays;	/* the positions that stay upon any byte */
	u64 end;	/* the position at the pattern's end */
};

/* A name to be matched; bytes beyond these are not. */
struct matched_name {
	char text[128];
};

/* Not static: the verifier looks at it once. */
__noinline int matches(const struct glob *glob, const struct matched_name *name)
{
	u64 at = 1;

	if (!glob || !name)
		return 0;
	for (u32 i = 0; i < sizeof(name->text); i++) {
		u8 byte = name->text[i];

		if (!byte)
			break;
		at = (at & glob->steps[byte]) << 1 | (at & glob->stays);
	}
	return !!(at & glob->end);
}

#endif
