/* What differs in namespaces of one's own: a file system is unmounted there, and the kernel tells
 * less. */
#include "queue.h"
#include <sched.h>
#include <sys/mount.h>

static void an_unmounted_file_system_is_told_of_unasked(void)
{
	char folder[] = "/tmp/portsXXXXXX";
	char name[64];
	struct stat status;
	file_obj_t file = {.fo_name = name};
	port_event_t event;
	int port = new_port();

	CHECK(mkdtemp(folder));
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("none", folder, "tmpfs", 0, NULL) == 0);
	snprintf(name, sizeof(name), "%s/file", folder);
	close(open(name, O_CREAT | O_WRONLY, 0600));
	CHECK(stat(name, &status) == 0);
	file.fo_atime = status.st_atim;
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL) == 0);
	nothing(port);
	/* The watch does not keep it mounted. */
	CHECK(umount(folder) == 0);
	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == PORT_SOURCE_FILE && event.portev_events & UNMOUNTED);
	CHECK((event.portev_events & ~FILE_EXCEPTION) == 0);
	FAILS(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file), ENOENT);
	rmdir(folder);
	close(port);
}

static void forks_are_told_in_the_first_network_namespace_only(void)
{
	IN_CHILD({
		int queue;
		CHECK(unshare(CLONE_NEWNET) == 0);
		queue = new_queue();
		FAILS(change(queue, getpid(), EVFILT_PROC, EV_ADD, NOTE_FORK), EINVAL);
		FAILS(change(queue, getpid(), EVFILT_PROC, EV_ADD, NOTE_EXEC | NOTE_EXIT), EINVAL);
		FAILS(change(queue, getpid(), EVFILT_PROC, EV_ADD, NOTE_TRACK), EINVAL);
		/* What was refused has left no note, and the end is told everywhere. */
		FAILS(change(queue, getpid(), EVFILT_PROC, EV_DELETE, 0), ENOENT);
		put_with(queue, getpid(), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
		FAILS(change(queue, getpid(), EVFILT_PROC, 0, NOTE_FORK), EINVAL);
		CHECK(change(queue, getpid(), EVFILT_PROC, EV_DELETE, 0) == 0);
	});
}

MAIN(CASE(an_unmounted_file_system_is_told_of_unasked),
     CASE(forks_are_told_in_the_first_network_namespace_only))
