/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Constants of the kernel's that its BTF has no names for. */
#ifndef IOTOMY_KERNEL_NUMBERS_BPF_H
#define IOTOMY_KERNEL_NUMBERS_BPF_H

/* Kinds of files: of i_mode. */
#define S_IFMT	 0170000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFSOCK 0140000

/* Sockets. */
#define SOCKFS_MAGIC 0x534F434B
#define AF_UNIX	     1
#define AF_INET	     2
#define AF_INET6     10
#define SOCK_STREAM  1
#define IPPROTO_TCP  6

/* States of a connection; UNIX sockets have them, too. */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT	2
#define TCP_FIN_WAIT1	4
#define TCP_FIN_WAIT2	5
#define TCP_CLOSE	7
#define TCP_CLOSE_WAIT	8
#define TCP_LISTEN	10

/* Flags of a receive. */
#define MSG_PEEK     0x2
#define MSG_TRUNC    0x20
#define MSG_ERRQUEUE 0x2000
/* Of a System V message. */
#define MSG_COPY 040000

#endif
