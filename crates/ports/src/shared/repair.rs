//! What is done when a process was killed while it held the lock: queue, index and free nodes are made
//! again from what the nodes say of themselves.
//!
//! Events that the dead process had taken out of the queue are gone with it, as if it had retrieved them.

use std::sync::atomic::Ordering;

use super::header::*;
use super::{BUCKETS, Field, Kind, LIMIT, LINKED, Locked, Node, OBJECTS, State, bucket, number};

impl Locked<'_> {
    pub(super) fn repair(&self) {
        self.repair_queue();
        let taken = self.head(TAKEN);
        self.append_taken(taken);
        self.absorb();
        self.repair_objects();
    }

    /// Keeps the order as far as the links lead, and appends the nodes to which none leads.
    fn repair_queue(&self) {
        let fresh = self.shared.head(FRESH_SENT).load(Ordering::Relaxed);
        let all = self.objects().chain((OBJECTS..OBJECTS + fresh).map(|sent| Node(sent as u32)));
        let is_linked = |node: &Node| self.get(*node, Field::State) & LINKED != 0;
        let is_node = |node: &Node| u64::from(node.0) < OBJECTS + LIMIT;
        let mut is_kept = vec![false; (OBJECTS + LIMIT) as usize];
        let mut kept = Vec::new();
        let mut next = number(self.head(FIRST));
        while let Some(node) = next.filter(|node| is_node(node) && is_linked(node)) {
            if std::mem::replace(&mut is_kept[node.0 as usize], true) {
                break;
            }
            kept.push(node);
            next = number(self.get(node, Field::Next));
        }
        kept.extend(all.clone().filter(|node| is_linked(node) && !is_kept[node.0 as usize]));
        self.set_head(FIRST, 0);
        self.set_head(LAST, 0);
        for node in kept {
            self.append(node);
        }
        // Sent events that were taken out of the queue, and not freed.
        let is_lost = |node: &Node| u64::from(node.0) >= OBJECTS && !is_linked(node);
        for node in all.filter(|node| is_lost(node) && self.state(*node) == State::Queued) {
            self.set(node, Field::State, State::Free as u64);
            self.shared.push_sent(node);
        }
    }

    fn repair_objects(&self) {
        for fd in 0..BUCKETS as usize {
            if self.head(bucket(fd)) != 0 {
                self.set_head(bucket(fd), 0);
            }
        }
        self.set_head(FREE_OBJECT, 0);
        let mut live = 0;
        for node in self.objects() {
            let state = self.state(node);
            live += u64::from(matches!(state, State::Armed | State::Queued));
            if state != State::Free && self.kind(node) == Kind::Fd {
                let bucket = bucket(self.object(node));
                self.set(node, Field::Chain, self.head(bucket));
                self.set_head(bucket, u64::from(node.0) + 1);
            }
            if state == State::Free && !self.is_linked(node) {
                self.push_object(node);
            }
        }
        self.set_head(LIVE, live);
    }
}
