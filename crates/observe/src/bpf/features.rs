//! What the programs use of a kernel beyond the base: each feature may be refused alone.
//!
//! The base is what a plain `trace` cannot do without: programs on BTF-typed raw tracepoints, and maps that are
//! hashes, arrays, and arrays a CPU. Everything else is declared here, and `loading.rs` leaves out what the kernel
//! refuses.

/// Something of a kernel that it may refuse, and what it costs to be without.
#[derive(Debug)]
pub struct Feature {
    /// In a report.
    pub name: &'static str,
    /// In the programs.
    pub(super) parts: &'static [Part],
    /// The parts of the command that use it.
    pub used_by: &'static str,
    /// What takes its place, or what is lost.
    pub without: &'static str,
    /// What is lost, in a line of a report; empty: nothing but time.
    pub lost: &'static str,
}

/// How a feature is known in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Programs whose section begins so: their type, and where they are attached.
    Section(&'static str),
    /// Programs whose name begins so.
    Program(&'static str),
    /// Maps of a type.
    Map(u32),
    /// Calls of a helper.
    Helper(u32),
}

use Part::{Helper, Map, Program, Section};

/// All of them; a feature's place is its bit in `without` of the programs (`without.bpf.h`).
pub static FEATURES: [Feature; 25] = [
    Feature {
        name: "task iterators",
        parts: &[Section("iter/task")],
        used_by: "trace, anatomy, lab run herd",
        without: "`trace` of a command uses ptrace; the rest is refused",
        lost: "",
    },
    Feature {
        name: "task storage",
        parts: &[Map(29), Helper(156), Helper(157)],
        used_by: "trace, anatomy, d, lab run herd",
        without: "a hash by tasks takes its place, which costs unwatched processes more",
        lost: "",
    },
    Feature {
        name: "ring buffers",
        parts: &[Map(27), Helper(130), Helper(134)],
        used_by: "trace, anatomy, d",
        without: "`trace` and `anatomy` look after ended threads 20 times a second; `d` is refused",
        lost: "rows of ended threads are kept until the end, so tables fill sooner",
    },
    Feature {
        name: "tables of stacks",
        parts: &[Map(7), Helper(27)],
        used_by: "anatomy, race --flame",
        without: "times of calls are not split by layers",
        lost: "stacks, and with them the layers under the calls",
    },
    Feature {
        name: "queues",
        parts: &[Map(22), Helper(87), Helper(88)],
        used_by: "anatomy --timeline",
        without: "buffers of ended threads are not used again",
        lost: "timelines of calls once 512 threads have made some",
    },
    Feature {
        name: "LRU hashes",
        parts: &[Map(9)],
        used_by: "trace --peers, --requests, --where peer",
        without: "a plain hash takes its place",
        lost: "when connections were made, once thousands wait to be accepted",
    },
    Feature {
        name: "perf events",
        parts: &[Section("perf_event")],
        used_by: "anatomy, race --flame, profile probes of d",
        without: "only sleeps have stacks; a program of D with a profile probe is refused",
        lost: "samples: the layers of the time on a CPU",
    },
    Feature {
        name: "programs on tracepoints",
        parts: &[Section("tp/"), Section("tracepoint")],
        used_by: "anatomy: pages added to the page cache, timelines",
        without: "these parts are left out",
        lost: "pages added to the page cache, and events inside of timelines",
    },
    Feature {
        name: "bpf_loop",
        parts: &[Helper(181)],
        used_by: "paths, readahead, d, trace --slowest, --until",
        without: "loops that the verifier follows turn by turn: of a read, read-ahead is looked up in the first 32 MiB; \
                  single calls have the callers that frame pointers lead to; `d` is refused",
        lost: "callers of functions that keep no frame pointer",
    },
    Feature {
        name: "bpf_task_pt_regs",
        parts: &[Helper(175)],
        used_by: "trace -p, anatomy --user-stacks",
        without: "the call that a thread is inside of when the watch begins is not known",
        lost: "calls that were entered before the watch, page faults that sleep as such, and callers \
               of functions without a frame",
    },
    Feature {
        name: "bpf_find_vma",
        parts: &[Helper(180)],
        used_by: "anatomy, race --flame, trace --slowest, --until",
        without: "time in user space is not split by file, and single calls have no callers",
        lost: "functions and files of user space",
    },
    Feature {
        name: "attach cookies",
        parts: &[Helper(174)],
        used_by: "anatomy --timeline, profile probes of d",
        without: "timelines have no events; a program of D with a profile probe is refused",
        lost: "events inside of timelines",
    },
    Feature {
        name: "bpf_for_each_map_elem",
        parts: &[Helper(164)],
        used_by: "trace --peers",
        without: "connections that are open at the end have no figures of TCP",
        lost: "TCP's figures of connections that are open at the end",
    },
    Feature {
        name: "programs run by a call",
        parts: &[Section("syscall")],
        used_by: "d, completion ports",
        without: "`d` is refused; completion ports read /proc",
        lost: "",
    },
    Feature {
        name: "tracepoints of io_uring",
        parts: &[Section("raw_tp/io_uring")],
        used_by: "trace, anatomy",
        without: "requests of io_uring are not counted",
        lost: "requests of io_uring",
    },
    Feature {
        name: "sched_waking",
        parts: &[Program("sched_waking"), Program("timeline_waking")],
        used_by: "trace --slowest, --until, anatomy --timeline",
        without: "the thread that ended a wait is not named",
        lost: "who woke the threads of the slowest calls",
    },
    Feature {
        name: "tracepoints of control groups",
        parts: &[Program("cgroup_")],
        used_by: "trace --cgroup, d --cgroup",
        without: "processes that move into a selected control group are found with the next exec",
        lost: "processes that move into a selected control group, until they execute a program",
    },
    Feature {
        name: "tracepoints of sockets",
        parts: &[Program("inet_sock_set_state"), Program("tcp_destroy_sock")],
        used_by: "trace --peers, --requests",
        without: "connections have no beginning, end, or figures of TCP",
        lost: "when connections began and ended, and TCP's figures of them",
    },
    Feature {
        name: "tracepoints of writeback",
        parts: &[Program("writeback_")],
        used_by: "anatomy: block layer",
        without: "writes of the kernel's flusher have no process",
        lost: "whose pages the kernel's flusher writes",
    },
    Feature {
        name: "block layer",
        parts: &[],
        used_by: "anatomy: block layer, --timeline",
        without: "the work of the block layer is left out",
        lost: "the work of the block layer, and timelines",
    },
    Feature {
        name: "names in iterators",
        parts: &[Program("name_address"), Helper(126)],
        used_by: "anatomy, race --flame",
        without: "functions of the kernel are looked up in `/proc/kallsyms`",
        lost: "",
    },
    Feature {
        name: "the kernel's symbols",
        parts: &[],
        used_by: "anatomy, race --flame",
        without: "functions of the kernel are shown by their addresses, which belong to no layer",
        lost: "names of the kernel's functions, and the layers that follow from them",
    },
    Feature {
        name: "events of mappings",
        parts: &[],
        used_by: "anatomy --user-stacks",
        without: "stacks of user space are left out",
        lost: "stacks of user space",
    },
    Feature {
        name: "sk_data_ready",
        parts: &[Program("sk_data_ready")],
        used_by: "trace --requests",
        without: "a request begins when it is first read",
        lost: "the time that requests wait until they are first read",
    },
    Feature {
        name: "requests",
        parts: &[],
        used_by: "trace --requests",
        without: "requests are left out",
        lost: "the requests of connections",
    },
];

/// By name; those that other modules speak of.
pub(super) fn feature(name: &str) -> &'static Feature {
    FEATURES.iter().find(|one| one.name == name).expect("it is declared")
}

impl Feature {
    /// Its bit.
    pub(super) fn bit(&self) -> u32 {
        let place = FEATURES.iter().position(|one| std::ptr::eq(one, self));
        1 << place.expect("features are those of the table")
    }

    fn has(&self, part: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(part)
    }

    /// Whether programs of this section and name are part of it.
    pub(super) fn has_program(&self, section: &str, name: &str) -> bool {
        self.has(|part| match part {
            Section(begins) => section.starts_with(begins),
            Program(begins) => name.starts_with(begins),
            Map(_) | Helper(_) => false,
        })
    }

    /// Whether programs of this name are part of it by their name alone.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.has(|part| matches!(part, Program(begins) if name.starts_with(begins)))
    }

    pub(super) fn has_map(&self, kind: u32) -> bool {
        self.has(|part| *part == Map(kind))
    }

    pub(super) fn has_helper(&self, number: u32) -> bool {
        self.has(|part| *part == Helper(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_number_features_as_the_table_does() {
        const PLACES: [(&str, &str); 9] = [
            ("TASK_STORAGE", "task storage"),
            ("RING_BUFFERS", "ring buffers"),
            ("STACK_TABLES", "tables of stacks"),
            ("QUEUES", "queues"),
            ("LOOPS", "bpf_loop"),
            ("REGISTERS", "bpf_task_pt_regs"),
            ("MAPPED_AT", "bpf_find_vma"),
            ("EACH_ROW", "bpf_for_each_map_elem"),
            ("DATA_READY", "sk_data_ready"),
        ];
        let header = include_str!("without.bpf.h");
        let numbers: Vec<(&str, u32)> = header
            .lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("#define ")?.split_whitespace();
                Some((words.next()?, words.next()?.parse().ok()?))
            })
            .collect();
        assert_eq!(numbers.len(), PLACES.len(), "{numbers:?}");
        for (constant, name) in PLACES {
            let (_, number) = numbers.iter().find(|(one, _)| *one == constant).unwrap();
            assert_eq!(1 << number, feature(name).bit(), "{constant}");
        }
    }
}
