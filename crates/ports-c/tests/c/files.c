/* Changes of files for a C program. */
#include "test.h"

static void a_change_is_told_and_comes_once(void)
{
	char name[] = "/tmp/portsXXXXXX";
	int fd = mkstemp(name);
	int port = new_port();
	struct stat status;
	file_obj_t file = {.fo_name = name};
	port_event_t event;

	CHECK(fd >= 0 && stat(name, &status) == 0);
	file.fo_atime = status.st_atim;
	file.fo_mtime = status.st_mtim;
	file.fo_ctime = status.st_ctim;
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED | FILE_ATTRIB,
			     (void *)9) == 0);
	nothing(port);
	CHECK(write(fd, "x", 1) == 1);
	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == PORT_SOURCE_FILE && event.portev_user == (void *)9);
	CHECK(event.portev_object == (uintptr_t)&file);
	CHECK(event.portev_events == (FILE_MODIFIED | FILE_ATTRIB));
	CHECK(write(fd, "x", 1) == 1);
	nothing(port);
	/* The time stamps are old by now. */
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED, NULL) == 0);
	CHECK(port_get(port, &event, NULL) == 0 && event.portev_events == FILE_MODIFIED);
	CHECK(stat(name, &status) == 0);
	file.fo_mtime = status.st_mtim;
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED, NULL) == 0);
	CHECK(unlink(name) == 0);
	CHECK(port_get(port, &event, NULL) == 0 && event.portev_events & FILE_DELETE);
	CHECK((event.portev_events & ~FILE_EXCEPTION) == 0);
	FAILS(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file), ENOENT);
	close(fd);
	close(port);
}

static void descriptors_of_watched_files_are_not_kept_open(void)
{
	int port = new_port();
	char name[] = "/tmp/portsXXXXXX";
	int fd = mkstemp(name);
	int before;
	struct stat status;
	file_obj_t files[50];

	CHECK(fstat(fd, &status) == 0);
	before = open_descriptors();
	for (int at = 0; at < 50; at++) {
		memset(&files[at], 0, sizeof(files[at]));
		files[at].fo_name = name;
		files[at].fo_mtime = status.st_mtim;
		CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&files[at], FILE_MODIFIED,
				     NULL) == 0);
	}
	/* One for all of the process. */
	CHECK(open_descriptors() <= before + 1);
	for (int at = 0; at < 50; at++)
		CHECK(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&files[at]) == 0);
	unlink(name);
	close(port);
}

MAIN(CASE(a_change_is_told_and_comes_once), CASE(descriptors_of_watched_files_are_not_kept_open))
