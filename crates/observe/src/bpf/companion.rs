//! Additional programs that watch the same threads during the same watch: the trace costs no more
//! if they are not requested.

use std::collections::{HashMap, HashSet};
use std::thread;

use super::books::Books;
use super::exchanges::RequestBook;
use super::layout::{CALL_I386, CALL_NUMBER, FileKey};
use super::names::path;
use super::object::{Knobs, Session, Shared};
use super::without::{Refused, Without, load_without};
use crate::naming::{call_name, numbers};
use iotomy_sys::syscalls::Abi;

/// Programs beside the trace's. A companion that fails before `stop` keeps the watch from beginning; after
/// that nothing it does may cost the command its run.
pub(crate) trait Companion: Send {
    /// Loads its programs, in a thread of its own: the trace's and other companions' are loaded meanwhile.
    ///
    /// # Errors
    /// The refused call and the kernel's error.
    fn load(&mut self, shared: &Shared) -> Result<(), Refused>;

    /// Attaches its programs: the trace's are attached, so these run behind them, and nothing is watched
    /// yet.
    ///
    /// # Errors
    /// The refused call and the kernel's error.
    fn begin(&mut self, session: &Session) -> Result<(), String>;

    /// Starts the parts that run by time and not by call, once the overhead of a call is known. The
    /// counts until now are of iotomy's own threads, which measured that.
    ///
    /// # Errors
    /// The refused call and the kernel's error.
    fn start(&mut self, session: &Session) -> Result<(), String>;

    /// Ends its counting; the trace's own end comes next.
    fn stop(&mut self);

    /// Collects the counts: the trace's books are closed. Rows that cannot be read are counted as
    /// lost.
    fn finish(&mut self, session: &Session, images: &Images);
}

/// Loads the trace's programs and those of its companions, without what this kernel refuses and can be left out.
///
/// # Errors
/// The refused call and the kernel's error.
pub(super) fn load(
    knobs: &Knobs,
    companions: &mut [&mut dyn Companion],
) -> Result<Session, String> {
    let (session, _) = load_without(|without| load_all(knobs, companions, without))?;
    Ok(session)
}

/// The same at once, concurrently.
fn load_all(
    knobs: &Knobs,
    companions: &mut [&mut dyn Companion],
    without: &Without,
) -> Result<Session, Refused> {
    if companions.is_empty() {
        return Session::load(knobs, None, without);
    }
    let shared = Shared::load(knobs, without)?;
    thread::scope(|scope| {
        let loading: Vec<_> = companions
            .iter_mut()
            .map(|companion| {
                let load = || companion.load(&shared);
                let thread = thread::Builder::new().name("load".to_owned());
                thread.spawn_scoped(scope, load)
            })
            .collect();
        let session = Session::load(knobs, Some(&shared), without);
        for one in loading {
            let one =
                one.map_err(|error| format!("cannot load the BPF programs: no thread: {error}"))?;
            one.join()
                .map_err(|_| "cannot load the BPF programs: the thread ended".to_owned())??;
        }
        session
    })
}

/// The owners of images.
#[derive(Debug, Default)]
pub(crate) struct Images {
    by_id: HashMap<u32, (u32, String)>,
    /// As the trace's rows have it.
    numbers: HashMap<u32, u32>,
    began_ns: HashMap<u32, u64>,
    first: Option<u32>,
    /// When the first image began.
    pub(super) first_ns: u64,
    paths: HashMap<FileKey, String>,
    /// The requests that were taken out of the kernel's tables while the watch went on.
    pub(super) requests: RequestBook,
    /// Process ids with threads that had not ended.
    living: HashSet<u32>,
}

impl Images {
    /// Of the books, this process's own left out.
    pub(super) fn from_books(books: &Books) -> Self {
        let own = std::process::id();
        let watched = || books.images.iter().filter(|(_, image)| image.pid != own);
        let name = |id: u32| books.program(id).map_or("?", |program| program.exec.as_str());
        let mut in_order: Vec<_> = watched().collect();
        in_order.sort_by_key(|(id, image)| (image.start_ns, **id));
        let keys = in_order.iter().map(|(id, image)| (image.pid, name(**id)));
        let numbers = numbers(&keys.collect::<Vec<_>>());
        Self {
            by_id: watched().map(|(id, image)| (*id, (image.pid, name(*id).to_owned()))).collect(),
            numbers: in_order.iter().map(|(id, _)| **id).zip(numbers).collect(),
            began_ns: watched().map(|(id, image)| (*id, image.start_ns)).collect(),
            first: in_order.first().map(|(id, _)| **id),
            first_ns: watched().map(|(_, image)| image.start_ns).min().unwrap_or(0),
            paths: books.file_names.iter().map(|(key, n)| (*key, path(n, key.inode))).collect(),
            requests: books.requests.clone(),
            living: watched().filter(|(_, image)| image.live > 0).map(|(_, i)| i.pid).collect(),
        }
    }

    /// The path of a file that was met.
    pub(super) fn path(&self, file: &FileKey) -> Option<&str> {
        self.paths.get(file).map(String::as_str)
    }

    /// When an image began; the launch has none of its own.
    pub(super) fn began_ns(&self, id: u32) -> Option<u64> {
        self.began_ns.get(&id).copied()
    }

    /// Process id and program of an image; 0 is the launch, which is the first image's.
    pub(crate) fn name(&self, id: u32) -> Option<(u32, &str)> {
        let id = if id == 0 { self.first? } else { id };
        self.by_id.get(&id).map(|(pid, exec)| (*pid, exec.as_str()))
    }

    /// Whether the process of an image has ended.
    pub(super) fn has_ended(&self, id: u32) -> bool {
        self.name(id).is_none_or(|(pid, _)| !self.living.contains(&pid))
    }

    /// The programs of processes by their ids: of several, the last.
    pub(super) fn by_pid(&self) -> HashMap<u32, String> {
        let mut in_order: Vec<_> = self.by_id.iter().collect();
        in_order.sort_unstable_by_key(|(id, _)| **id);
        in_order.into_iter().map(|(_, (pid, exec))| (*pid, exec.clone())).collect()
    }

    /// Which of its process's images of this name it is, as the trace's rows have it.
    pub(super) fn number(&self, id: u32) -> u32 {
        let id = if id == 0 { self.first } else { Some(id) };
        id.and_then(|id| self.numbers.get(&id)).copied().unwrap_or(0)
    }
}

/// A call by the number the programs have it under, as the record names it.
pub(crate) fn call_by_number(call: u16) -> String {
    let abi = if call & CALL_I386 == 0 { Abi::X86_64 } else { Abi::I386 };
    call_name(abi, u32::from(call & CALL_NUMBER))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::layout::Image;
    use super::super::object::RowAction;
    use super::*;
    use crate::{Request, Target};

    /// Notes how many images the trace knew at each step.
    #[derive(Default)]
    struct Witness {
        at_begin: usize,
        at_start: usize,
    }

    fn images(session: &Session) -> usize {
        let mut images = 0;
        session.visit("images", |_: u32, _: Image| {
            images += 1;
            RowAction::Kept
        });
        images
    }

    impl Companion for Witness {
        fn load(&mut self, _: &Shared) -> Result<(), Refused> {
            Ok(())
        }

        fn begin(&mut self, session: &Session) -> Result<(), String> {
            self.at_begin = images(session);
            Ok(())
        }

        fn start(&mut self, session: &Session) -> Result<(), String> {
            self.at_start = images(session);
            // That is all there is to see.
            Err("seen".to_owned())
        }

        fn stop(&mut self) {}

        fn finish(&mut self, _: &Session, _: &Images) {}
    }

    #[test]
    fn the_price_of_a_call_is_measured_with_the_companions_beside_the_trace() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let request = Request::new(Target::process(child.id()));
        let mut witness = Witness::default();
        let refused = super::super::watch(&request, &mut [&mut witness], None).unwrap_err();
        drop(child.stdin.take());
        child.wait().unwrap();
        if !refused.to_string().contains("seen") {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Bpf,
                &refused.to_string(),
            );
        }
        assert_eq!((witness.at_begin, witness.at_start), (0, 1), "iotomy's own thread is measured");
    }
}
