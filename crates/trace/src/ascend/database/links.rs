//! Links kernels to the operators and calls that launched them.
//!
//! ```text
//! aten::mm       |---------|                CONNECTION_IDS lists the connection 8 for it
//!  Node@launch      |---|                   connection 8
//! MatMulV2                   |-------|      connection 8
//! ```

use mindprof_model::{Category, Event, Flags};

use super::DatabaseReading;
use super::connection::integer;
use crate::ascend::id_map::IdMap;
use crate::error::Result;

impl DatabaseReading<'_> {
    /// Sets the links of all events, which have their order.
    pub(super) fn link(&mut self) -> Result<()> {
        let mut owners = self.stated_owners()?;
        if self.has_lone_kernels(&owners) {
            self.add_owners_by_time(&mut owners);
        }
        let assembly = &mut self.assembly;
        for (index, event) in assembly.events.iter().enumerate() {
            let connection = assembly.connections[index];
            let mut links = assembly.links.at(index);
            match event.category {
                Category::Operator | Category::Annotation => links.external = index as u32 + 1,
                Category::Kernel => {
                    let owner = owners.get(u64::from(connection));
                    let owner = owner.filter(|_| connection != 0);
                    links.external = owner.map_or(0, |owner| owner + 1);
                    links.correlation = connection;
                }
                Category::Runtime => links.correlation = connection,
                Category::PythonFunction | Category::DeviceAnnotation | Category::Other => continue,
            }
            assembly.links.set(index, links);
        }
        Ok(())
    }

    /// Returns the operator of each connection, as the database states it. Operators refer to lists
    /// of connections in `CONNECTION_IDS`, or to one connection if there is no such table.
    fn stated_owners(&self) -> Result<IdMap> {
        let mut by_list = IdMap::default();
        let events = self.assembly.events.iter().zip(&self.assembly.connections);
        for (index, (event, &connection)) in (0..).zip(events) {
            if is_scope(event) && connection != 0 {
                by_list.insert(u64::from(connection), index);
            }
        }
        let mut owners = IdMap::default();
        let columns = ["id", "connectionId"];
        let are_listed = self.database.each_row("CONNECTION_IDS", &columns, |row| {
            if let (Some(list), Some(connection)) = (integer(row, 0)?, integer(row, 1)?)
                && let Some(owner) = by_list.get((list as u64).wrapping_add(1))
            {
                owners.insert((connection as u64).wrapping_add(1), owner);
            }
            Ok(())
        })?;
        Ok(if are_listed { owners } else { by_list })
    }

    fn has_lone_kernels(&self, owners: &IdMap) -> bool {
        let mut events = self.assembly.events.iter().zip(&self.assembly.connections);
        events.any(|(event, &connection)| {
            let is_launched = event.category == Category::Kernel && connection != 0;
            is_launched && owners.get(u64::from(connection)).is_none()
        })
    }

    /// Adds the operator around each call to the connections that have none.
    fn add_owners_by_time(&self, owners: &mut IdMap) {
        let assembly = &self.assembly;
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); assembly.part.threads().len()];
        let events = assembly.events.iter().zip(&assembly.connections);
        for (index, (event, &connection)) in (0..).zip(events) {
            let is_call = event.category == Category::Runtime && connection != 0;
            if !is_call && !is_scope(event) {
                continue;
            }
            let open = &mut open[event.thread.index()];
            let end = |index: u32| assembly.events[index as usize].end();
            while open.pop_if(|other| end(*other) <= event.start).is_some() {}
            if !is_call {
                open.push(index);
                continue;
            }
            let around = open.iter().rfind(|&&other| end(other) >= event.end());
            if let Some(&around) = around
                && owners.get(u64::from(connection)).is_none()
            {
                owners.insert(u64::from(connection), around);
            }
        }
    }
}

fn is_scope(event: &Event) -> bool {
    let is_scope = matches!(event.category, Category::Operator | Category::Annotation);
    is_scope && !event.flags.contains(Flags::HIDDEN)
}
