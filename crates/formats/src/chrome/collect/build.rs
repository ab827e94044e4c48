//! Settles what is only known when all events are, and makes the profile.

use mindprof_model::{Category, Nanos, ScopeKind, ThreadId};

use super::{Collector, order};
use crate::chrome::category;
use crate::chrome::keys::ArgumentKey;
use crate::chrome::reading::Unknown;
use crate::chrome::repairs::Repair;
use crate::{Reading, Result};

impl Collector {
    /// Builds the profile: the window's start becomes time zero, or the first event if that is
    /// earlier.
    pub(in crate::chrome) fn build(mut self) -> Result<Reading> {
        for unfinished in self.spans.close(&mut self.events, &mut self.repairs) {
            self.forget_argument(unfinished, ArgumentKey::Finished);
        }
        self.settle_amended();
        self.python
            .finish(&mut self.events, &mut self.profile.stacks);
        let is_stray = |(repair, ..): (Repair, u64, String)| repair == Repair::UnmatchedEnd;
        if self.repairs.iter().any(is_stray) {
            self.drop_unused_tracks();
        }
        self.forget_idle_links();
        let zero = self.earliest();
        let is_ordered = self.settle_events(zero);
        self.shift_others(zero);
        let reference = i128::from(self.base_ns) + i128::from(zero);
        self.profile.reference_unix_ns = u64::try_from(reference).unwrap_or(0);
        if let Some((start, span)) = self.window {
            self.profile.span = Nanos(start.wrapping_sub(zero) as u64 + span.0);
        }
        if !is_ordered {
            let order = order::find(&self.events);
            self.tensors.reorder(&order);
            order::apply(
                order,
                &mut self.events,
                &mut self.links,
                &mut self.profile.extras,
            );
        }
        self.settle_forward_threads();
        let resolution = if self.has_nanoseconds { 0 } else { 1000 };
        let crossing = order::nest(&mut self.events, &self.tracks.are_whole(), resolution);
        self.repairs.add(Repair::Crossing, crossing);
        let bad_texts = self.meanings.bad_texts() + self.kept.bad_texts();
        self.repairs.add(Repair::BadText, bad_texts);
        self.tracks.add_to(&mut self.profile, self.device);
        self.profile.add_linked_events(self.events, self.links);
        self.profile.add_memory_records(self.memory);
        self.tensors.add_to(&mut self.profile);
        Ok(Reading {
            profile: self.profile.build()?,
            repairs: self.repairs,
            set_aside: self.set_aside,
            left_out: self.left_out,
        })
    }

    /// Lets go of numbers that tie nothing together, unless the trace is written again.
    fn forget_idle_links(&mut self) {
        let are_idle = !self.has_device_events && !self.has_forward_threads;
        if are_idle && self.kept.unknown == Unknown::Count {
            self.links = Vec::new();
        }
    }

    /// Drops the tracks on which there was nothing but an end.
    fn drop_unused_tracks(&mut self) {
        let mut is_used = vec![false; self.tracks.len()];
        let events = self.events.iter_mut().map(|event| &mut event.thread);
        let memory = self.memory.iter_mut().map(|record| &mut record.thread);
        let roles = self.tensors.roles.iter_mut();
        let records = self.profile.extras.records_mut().iter_mut();
        let mut named: Vec<&mut ThreadId> = events
            .chain(memory)
            .chain(roles.map(|role| &mut role.thread))
            .chain(records.map(|record| &mut record.thread))
            .collect();
        for thread in &named {
            is_used[thread.index()] = true;
        }
        let moved = self.tracks.retain(&is_used);
        for thread in &mut named {
            **thread = moved[thread.index()];
        }
    }

    /// Returns the first of all times.
    fn earliest(&self) -> i64 {
        let times = self.memory.iter().map(|record| record.time.0 as i64);
        let roles = self.tensors.roles.iter().map(|role| role.time.0 as i64);
        let window = self.window.map(|(start, _)| start);
        let times = times.chain(roles).chain(window).chain(self.earliest_start);
        times.min().unwrap_or(0)
    }

    /// Makes the times of events relative to `zero`, and finds the nodes of the backward graph: not
    /// every one says where its forward ran, but each has a wrapper that ends in its name. Returns
    /// whether the events lie in the order of a profile.
    ///
    /// One walk does it all: the events are far more than a cache holds.
    fn settle_events(&mut self, zero: i64) -> bool {
        let strings = &self.profile.strings;
        let mut is_node = vec![false; strings.len()];
        for name in strings.iter().filter_map(category::wrapped_node) {
            if let Some(id) = strings.find(name) {
                is_node[id.index()] = true;
            }
        }
        let mut is_ordered = true;
        let mut previous = order::FIRST;
        for event in &mut self.events {
            event.start = Nanos((event.start.0 as i64).abs_diff(zero));
            let key = order::key(event);
            is_ordered &= previous <= key;
            previous = key;
            if event.category == Category::Operator && is_node[event.name.index()] {
                event.scope = ScopeKind::Backward;
            }
        }
        is_ordered
    }

    /// Makes all other times relative to `zero`.
    fn shift_others(&mut self, zero: i64) {
        for record in &mut self.memory {
            record.time = Nanos((record.time.0 as i64).abs_diff(zero));
        }
        for role in &mut self.tensors.roles {
            role.time = Nanos((role.time.0 as i64).abs_diff(zero));
        }
        for record in self.profile.extras.records_mut() {
            let is_timeless = record.time_ns == i64::MAX;
            record.time_ns = if is_timeless {
                0
            } else {
                record.time_ns - zero
            };
        }
    }

    /// Forward threads are known by number: the host's threads in the order in which they began to
    /// work.
    fn settle_forward_threads(&mut self) {
        if !self.has_forward_threads {
            return;
        }
        let mut threads = Vec::new();
        let mut is_known = vec![false; self.tracks.len()];
        for event in &self.events {
            let of_host = matches!(
                event.category,
                Category::Operator | Category::Annotation | Category::PythonFunction
            );
            let is_known = &mut is_known[event.thread.index()];
            if of_host && !*is_known {
                *is_known = true;
                threads.push(event.thread);
            }
        }
        for links in &mut self.links {
            if let Some(number) = links.forward_thread() {
                links.set_forward_thread(threads.get(number.index()).copied());
            }
        }
    }
}
