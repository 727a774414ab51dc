/* The errors that the manual pages name. */
#include "test.h"

static int no_port(void)
{
	int ends[2];

	new_pipe(ends);
	return ends[0];
}

static int closed(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void create_fails_without_descriptors(void)
{
	IN_CHILD({
		int last = 0;
		while (last >= 0)
			last = dup(2);
		FAILS(port_create(), EMFILE);
	});
}

static void what_is_not_open_is_ebadf(void)
{
	const int bad[] = {-1, 1000000, closed()};
	port_event_t event;
	uint_t nget;

	for (int at = 0; at < 3; at++) {
		nget = 1;
		FAILS(port_send(bad[at], 1, NULL), EBADF);
		FAILS(port_get(bad[at], &event, &now), EBADF);
		FAILS(port_getn(bad[at], &event, 1, &nget, &now), EBADF);
		FAILS(port_getn(bad[at], NULL, 0, &nget, NULL), EBADF);
		FAILS(port_alert(bad[at], PORT_ALERT_SET, 1, NULL), EBADF);
		FAILS(associate(bad[at], 0, POLLIN, 0), EBADF);
		FAILS(port_dissociate(bad[at], PORT_SOURCE_FD, 0), EBADF);
	}
}

static void what_is_no_port_is_ebadfd(void)
{
	int fd = no_port();
	port_event_t event;
	uint_t nget = 1;

	FAILS(port_send(fd, 1, NULL), EBADFD);
	FAILS(port_get(fd, &event, &now), EBADFD);
	FAILS(port_getn(fd, &event, 1, &nget, &now), EBADFD);
	FAILS(port_alert(fd, PORT_ALERT_SET, 1, NULL), EBADFD);
	FAILS(associate(fd, 0, POLLIN, 0), EBADFD);
	FAILS(port_dissociate(fd, PORT_SOURCE_FD, 0), EBADFD);
	/* An epoll set is no port either. */
	FAILS(port_send(0, 1, NULL), EBADFD);
}

static void a_port_that_is_closed_is_ebadf(void)
{
	int port = new_port();
	port_event_t event;

	CHECK(port_send(port, 1, NULL) == 0);
	CHECK(close(port) == 0);
	FAILS(port_send(port, 1, NULL), EBADF);
	FAILS(port_get(port, &event, &now), EBADF);
	FAILS(close(port), EBADF);
}

static void a_number_that_was_a_port_is_no_port(void)
{
	int port = new_port();
	int copy;

	close(port);
	copy = fcntl(0, F_DUPFD, port);
	CHECK(copy == port);
	FAILS(port_send(port, 1, NULL), EBADFD);
	close(copy);
	CHECK(port_create() == port);
	nothing(port);
	close(port);
}

static void objects_that_are_no_descriptors_are_ebadfd(void)
{
	int port = new_port();

	FAILS(associate(port, closed(), POLLIN, 0), EBADFD);
	FAILS(associate(port, -1, POLLIN, 0), EBADFD);
	FAILS(port_associate(port, PORT_SOURCE_FD, (uintptr_t)1 << 40, POLLIN, 0), EBADFD);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, closed()), EBADFD);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, UINTPTR_MAX), EBADFD);
	close(port);
}

static void sources_that_cannot_be_associated_are_einval(void)
{
	const int bad[] = {0,
			   PORT_SOURCE_AIO,
			   PORT_SOURCE_TIMER,
			   PORT_SOURCE_USER,
			   PORT_SOURCE_ALERT,
			   PORT_SOURCE_MQ,
			   8,
			   -1,
			   1 << 20};
	int port = new_port();

	for (unsigned int at = 0; at < sizeof(bad) / sizeof(bad[0]); at++) {
		FAILS(port_associate(port, bad[at], 0, POLLIN, NULL), EINVAL);
		FAILS(port_dissociate(port, bad[at], 0), EINVAL);
	}
	close(port);
}

static void dissociation_of_what_is_not_associated_is_enoent(void)
{
	int port = new_port();
	file_obj_t file = {.fo_name = "/"};

	FAILS(port_dissociate(port, PORT_SOURCE_FD, no_port()), ENOENT);
	FAILS(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file), ENOENT);
	close(port);
}

static void files_that_do_not_exist_are_enoent(void)
{
	int port = new_port();
	file_obj_t file = {.fo_name = "/none/such"};

	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL), ENOENT);
	file.fo_name = "";
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL), ENOENT);
	file.fo_name = NULL;
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL), EFAULT);
	FAILS(port_associate(port, PORT_SOURCE_FILE, 0, FILE_ACCESS, NULL), EFAULT);
	file.fo_name = "/";
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, 0x8, NULL), EINVAL);
	close(port);
}

static void files_without_permission_are_eacces(void)
{
	char folder[] = "/tmp/portsXXXXXX";
	char inner[64];
	char secret[80];

	if (getuid() != 0)
		return;
	CHECK(mkdtemp(folder) && chmod(folder, 0755) == 0);
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	snprintf(secret, sizeof(secret), "%s/file", inner);
	CHECK(mkdir(inner, 0755) == 0);
	close(open(secret, O_CREAT | O_WRONLY, 0600));
	IN_CHILD({
		int port = new_port();
		file_obj_t file = {.fo_name = secret};
		CHECK(setuid(65534) == 0);
		/* The file may not be read. */
		FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, 0),
		      EACCES);
	});
	CHECK(chmod(inner, 0700) == 0);
	IN_CHILD({
		int port = new_port();
		file_obj_t file = {.fo_name = secret};
		CHECK(setuid(65534) == 0);
		/* Its directory may not be searched. */
		FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, 0),
		      EACCES);
	});
	unlink(secret);
	rmdir(inner);
	rmdir(folder);
}

static void timeouts_out_of_range_are_einval(void)
{
	const timespec_t bad[] = {{-1, 0}, {0, -1}, {0, 1000000001}, {-1, -1}};
	int port = new_port();
	port_event_t event;
	uint_t nget = 1;

	for (int at = 0; at < 4; at++) {
		FAILS(port_get(port, &event, &bad[at]), EINVAL);
		FAILS(port_getn(port, &event, 1, &nget, &bad[at]), EINVAL);
		CHECK(nget == 1);
	}
	close(port);
}

static void null_pointers_are_einval_or_efault(void)
{
	int port = new_port();
	port_event_t event;
	uint_t nget = 1;

	CHECK(port_send(port, 1, NULL) == 0);
	FAILS(port_get(port, NULL, &now), EFAULT);
	FAILS(port_getn(port, NULL, 1, &nget, &now), EINVAL);
	FAILS(port_getn(port, &event, 1, NULL, &now), EINVAL);
	FAILS(port_getn(port, NULL, 0, NULL, &now), EINVAL);
	nget = 2;
	FAILS(port_getn(port, &event, 1, &nget, &now), EINVAL);
	CHECK(port_get(port, &event, &now) == 0);
	close(port);
}

static void sendn_of_none_is_einval_and_without_arrays_efault(void)
{
	int port = new_port();
	int error = 77;

	FAILS(port_sendn(&port, &error, 0, 1, NULL), EINVAL);
	FAILS(port_sendn(NULL, &error, 1, 1, NULL), EFAULT);
	FAILS(port_sendn(&port, NULL, 1, 1, NULL), EFAULT);
	CHECK(error == 77);
	nothing(port);
	close(port);
}

static void flags_of_alert_that_exclude_each_other_are_einval(void)
{
	int port = new_port();

	FAILS(port_alert(port, PORT_ALERT_SET | PORT_ALERT_UPDATE, 1, NULL), EINVAL);
	nothing(port);
	CHECK(port_alert(port, PORT_ALERT_UPDATE, 1, NULL) == 0);
	FAILS(port_alert(port, PORT_ALERT_UPDATE, 1, NULL), EBUSY);
	CHECK(port_alert(port, PORT_ALERT_SET, 2, NULL) == 0);
	close(port);
}

static void a_full_port_is_eagain(void)
{
	int port = new_port();
	int count = 0;
	int ports[2] = {port, new_port()};
	int errors[2] = {5, 5};

	while (port_send(port, 1, NULL) == 0)
		count++;
	CHECK(errno == EAGAIN && count == 65536);
	CHECK(port_sendn(ports, errors, 2, 1, NULL) == 1);
	CHECK(errors[0] == EAGAIN && errors[1] == 0);
	close(port);
	close(ports[1]);
}

MAIN(CASE(create_fails_without_descriptors), CASE(what_is_not_open_is_ebadf),
     CASE(what_is_no_port_is_ebadfd), CASE(a_port_that_is_closed_is_ebadf),
     CASE(a_number_that_was_a_port_is_no_port), CASE(objects_that_are_no_descriptors_are_ebadfd),
     CASE(sources_that_cannot_be_associated_are_einval),
     CASE(dissociation_of_what_is_not_associated_is_enoent),
     CASE(files_that_do_not_exist_are_enoent), CASE(files_without_permission_are_eacces),
     CASE(timeouts_out_of_range_are_einval), CASE(null_pointers_are_einval_or_efault),
     CASE(sendn_of_none_is_einval_and_without_arrays_efault),
     CASE(flags_of_alert_that_exclude_each_other_are_einval), CASE(a_full_port_is_eagain))
