//! The programs of `anatomy.bpf.c`: samples of the watched threads, and their sleeps by stack.
//!
//! The one tricky invariant is the order: its program on sched_switch must be attached behind the
//! trace's, whose books it reads, and its samples must end before those books are closed.

use iotomy_sys::errno;

use super::companion::{Companion, Images};
use super::features::feature;
use super::object::{Session, Shared, iterate};
use super::perf_events::{NoEvents, online, open_events};
use super::sample_object::Loaded;
use super::sample_price;
use super::without::Refused;
use crate::anatomy::kernel::{self, KernelSymbols};
use crate::anatomy::samples::{Raw, SampleSettings};
use crate::anatomy::side_band::{Listener, MappedBefore};

/// Samples the watched threads, and notes what they sleep in.
pub(crate) struct Sampler {
    asked: SampleSettings,
    /// Whether calls may be left out.
    restricts: bool,
    /// The processes that run already.
    mapped: MappedBefore,
    loaded: Option<Loaded>,
    raw: Option<(Raw, KernelSymbols)>,
}

impl Sampler {
    /// As asked, of what runs already or of a command; `restricts`: a filter may leave calls out.
    pub(crate) fn new(asked: SampleSettings, restricts: bool, mapped: MappedBefore) -> Self {
        Self { asked, restricts, mapped, loaded: None, raw: None }
    }

    /// The samples, once the watch has ended, and the names of the kernel's functions then.
    pub(crate) fn into_raw(self) -> Option<(Raw, KernelSymbols)> {
        self.raw
    }
}

impl Companion for Sampler {
    fn load(&mut self, shared: &Shared) -> Result<(), Refused> {
        self.loaded = Some(Loaded::load(shared, self.asked.user_stacks, self.restricts)?);
        Ok(())
    }

    fn begin(&mut self, _: &Session) -> Result<(), String> {
        self.loaded.as_mut().map_or(Ok(()), Loaded::attach_lasting)
    }

    fn start(&mut self, session: &Session) -> Result<(), String> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        let samples = feature("perf events");
        let opened = match session.lacks(samples) {
            true => Err(NoEvents::Refused(String::new())),
            false => open_events(self.asked.hz),
        };
        let events = match opened {
            Ok((ticker, events)) => {
                loaded.ticker = ticker;
                loaded.price_ns = sample_price::price(loaded, session)?;
                events
            }
            Err(NoEvents::TooOften(reason)) => return Err(reason),
            Err(NoEvents::Refused(reason)) => {
                session.lack(samples, reason);
                loaded.price_ns = f64::NAN;
                Vec::new()
            }
        };
        loaded.before = loaded.counted();
        if self.asked.user_stacks {
            match Listener::begin(&online(), &self.mapped) {
                Ok(listener) => loaded.listener = Some(listener),
                Err(error) => {
                    let reason = format!("events of new mappings: {}", errno::message(&error));
                    session.lack(feature("events of mappings"), reason);
                }
            }
        }
        for event in events {
            loaded.attach_event(event)?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        // The sleeps go on until the trace's books are closed: see `finish`.
        if let Some(loaded) = &mut self.loaded {
            loaded.event_links.clear();
        }
    }

    fn finish(&mut self, session: &Session, images: &Images) {
        let Some(loaded) = &mut self.loaded else { return };
        let unsettled = iterate(&loaded.object, "wake").is_err();
        loaded.links.clear();
        let mut raw = loaded.collect(self.asked.hz, images);
        raw.lost_sleeps += u64::from(unsettled);
        // The programs of the watch are functions of the kernel, too, as long as they are loaded.
        let addresses = kernel::addresses(&raw.stacks);
        let mut symbols = loaded.names(&addresses).unwrap_or_default();
        symbols.complete(&addresses);
        if let (false, true, Err(reason)) =
            (addresses.is_empty(), symbols.is_empty(), kernel::probe())
        {
            session.lack(feature("the kernel's symbols"), reason);
        }
        self.raw = Some((raw, symbols));
    }
}
