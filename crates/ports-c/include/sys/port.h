/* sys/port.h - types and constants of event ports: see port_create(3iotomy) */
#ifndef IOTOMY_SYS_PORT_H
#define IOTOMY_SYS_PORT_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of types that Solaris has in sys/types.h and time.h. */
typedef unsigned int uint_t;
typedef unsigned short ushort_t;
typedef struct timespec timespec_t;
typedef struct timespec timestruc_t;

/* Sources. AIO and MQ are here for their names; their functions do not take ports. */
#define PORT_SOURCE_AIO	  1
#define PORT_SOURCE_TIMER 2
#define PORT_SOURCE_USER  3
#define PORT_SOURCE_FD	  4
#define PORT_SOURCE_ALERT 5
#define PORT_SOURCE_MQ	  6
#define PORT_SOURCE_FILE  7

typedef struct port_event {
	int portev_events;
	ushort_t portev_source;
	ushort_t portev_pad;
	uintptr_t portev_object;
	void *portev_user;
} port_event_t;

typedef struct port_notify {
	int portnfy_port;
	void *portnfy_user;
} port_notify_t;

typedef struct file_obj {
	timestruc_t fo_atime;
	timestruc_t fo_mtime;
	timestruc_t fo_ctime;
	uintptr_t fo_pad[3];
	char *fo_name;
} file_obj_t;

/* Flags of port_alert(). */
#define PORT_ALERT_SET	   0x01
#define PORT_ALERT_UPDATE  0x02
#define PORT_ALERT_INVALID (PORT_ALERT_SET | PORT_ALERT_UPDATE)

/* Events of files that can be asked for. */
#define FILE_ACCESS   0x00000001
#define FILE_MODIFIED 0x00000002
#define FILE_ATTRIB   0x00000004
#define FILE_TRUNC    0x00100000
#define FILE_NOFOLLOW 0x10000000

/* Events of files that come unasked. MOUNTEDOVER never comes on Linux. */
#define FILE_DELETE	 0x00000010
#define FILE_RENAME_TO	 0x00000020
#define FILE_RENAME_FROM 0x00000040
#define UNMOUNTED	 0x20000000
#define MOUNTEDOVER	 0x40000000
#define FILE_EXCEPTION	 (UNMOUNTED | FILE_DELETE | FILE_RENAME_TO | FILE_RENAME_FROM | MOUNTEDOVER)

#ifdef __cplusplus
}
#endif

#endif
