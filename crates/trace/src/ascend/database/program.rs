//! The program's side: operators, queued tasks and Python calls, calls of CANN, ranges and steps.

use mindprof_model::{
    Category, DeviceKind, Flags, ForwardThread, Links, ScopeKind, StackId, StringId, ThreadId,
    is_backward_wrapper, is_hidden_event, is_step_event, wrapped_node,
};
use rusqlite::Row as Columns;
use rustc_hash::FxHashMap;

use super::DatabaseReading;
use super::connection::integer;
use crate::ascend::assembly::Row;
use crate::ascend::id_map::IdMap;
use crate::ascend::is_user_range;
use crate::error::Result;

const API_COLUMNS: [&str; 11] = [
    "startNs",
    "endNs",
    "globalTid",
    "connectionId",
    "name",
    "type",
    "sequenceNumber",
    "fwdThreadId",
    "inputShapes",
    "inputDtypes",
    "callchainId",
];
const CALL_COLUMNS: [&str; 6] = [
    "startNs",
    "endNs",
    "globalTid",
    "connectionId",
    "name",
    "type",
];
const COLLECTION_COLUMNS: [&str; 3] = ["startNs", "endNs", "globalTid"];
const RANGE_COLUMNS: [&str; 4] = ["startNs", "endNs", "globalTid", "message"];

/// The numbers of the kinds of rows in `PYTORCH_API`, unless `ENUM_API_TYPE` has others.
const API_KINDS: [(i64, &str); 4] = [
    (50_001, "op"),
    (50_002, "queue"),
    (50_003, "trace"),
    (50_004, "mstx"),
];

impl DatabaseReading<'_> {
    /// Reads everything that the program did.
    pub(super) fn read_program(&mut self) -> Result<()> {
        let mut kinds: FxHashMap<i64, String> = FxHashMap::default();
        kinds.extend(API_KINDS.map(|(number, name)| (number, name.to_owned())));
        self.database
            .each_row("ENUM_API_TYPE", &["id", "name"], |row| {
                if let Some(number) = integer(row, 0)? {
                    kinds.insert(number, super::connection::text(row, 1)?.to_owned());
                }
                Ok(())
            })?;
        let stacks = self.read_stacks()?;
        self.read_operators(&kinds, &stacks)?;
        self.read_calls(&kinds)?;
        self.read_collections()?;
        self.read_ranges()
    }

    fn read_operators(&mut self, kinds: &FxHashMap<i64, String>, stacks: &IdMap) -> Result<()> {
        let database = self.database;
        let mut classes: Vec<Option<NameClass>> = Vec::new();
        database.each_row("PYTORCH_API", &API_COLUMNS, |row| {
            let name = self.names.string(row, 4, &mut self.assembly.part.strings)?;
            if classes.len() <= name.index() {
                classes.resize(name.index() + 1, None);
            }
            let strings = &self.assembly.part.strings;
            let class =
                classes[name.index()].get_or_insert_with(|| NameClass::of(strings.text(name)));
            let class = *class;
            let kind = integer(row, 5)?.and_then(|kind| kinds.get(&kind));
            let category = match kind.map_or("op", String::as_str) {
                "queue" => Category::Runtime,
                "trace" => Category::PythonFunction,
                "mstx" => Category::Annotation,
                _ if class == NameClass::UserRange => Category::Annotation,
                _ => Category::Operator,
            };
            self.add_api(row, name, category, class, stacks)
        })?;
        self.mark_nodes();
        Ok(())
    }

    fn add_api(
        &mut self,
        row: &Columns<'_>,
        name: StringId,
        category: Category,
        class: NameClass,
        stacks: &IdMap,
    ) -> Result<()> {
        // Those of queued tasks have another meaning.
        let connection = match category {
            Category::Operator | Category::Annotation => connection_of(integer(row, 3)?),
            _ => 0,
        };
        let row_of = Row {
            category,
            name,
            thread: self.program_thread(integer(row, 2)?),
            start_ns: integer(row, 0)?,
            end_ns: integer(row, 1)?,
            connection,
            task: 0,
        };
        let sequence = integer(row, 6)?.and_then(|number| u32::try_from(number).ok());
        let forward = integer(row, 7)?.and_then(|number| u32::try_from(number).ok());
        let strings = &mut self.assembly.part.strings;
        let shapes = self.names.string(row, 8, strings)?;
        let dtypes = self.names.string(row, 9, strings)?;
        let inputs = self.assembly.inputs(shapes, dtypes);
        let stack = integer(row, 10)?.and_then(|chain| stacks.get(chain as u64));
        let index = self.assembly.events.len();
        let Some(event) = self.assembly.add(row_of) else {
            return Ok(());
        };
        event.stack = stack.map_or(StackId::NONE, StackId::from_raw);
        if class == NameClass::Hidden {
            event.flags = event.flags.union(Flags::HIDDEN);
        }
        if category == Category::Operator {
            event.inputs = inputs;
            event.set_sequence(sequence);
            if let Some(forward) = forward.and_then(|number| number.checked_sub(1)) {
                if class != NameClass::BackwardWrapper {
                    event.scope = ScopeKind::Backward;
                }
                let mut links = Links::default();
                // By number until all threads are known.
                links.set_forward_thread(ForwardThread::At(ThreadId::from_raw(forward)));
                self.assembly.links.set(index, links);
            }
        }
        Ok(())
    }

    /// Marks autograd nodes: not every one states the thread of its forward operator, but each has a
    /// wrapper that ends in its name.
    fn mark_nodes(&mut self) {
        let strings = &self.assembly.part.strings;
        let mut is_node = vec![false; strings.len()];
        for name in strings.iter().filter_map(wrapped_node) {
            if let Some(id) = strings.find(name) {
                is_node[id.index()] = true;
            }
        }
        for event in &mut self.assembly.events {
            if event.category == Category::Operator && is_node[event.name.index()] {
                event.scope = ScopeKind::Backward;
            }
        }
    }

    fn read_calls(&mut self, kinds: &FxHashMap<i64, String>) -> Result<()> {
        let database = self.database;
        let mut known: FxHashMap<(i64, StringId), StringId> = FxHashMap::default();
        database.each_row("CANN_API", &CALL_COLUMNS, |row| {
            let strings = &mut self.assembly.part.strings;
            let bare = self.names.string(row, 4, strings)?;
            let kind = integer(row, 5)?.unwrap_or(-1);
            let name = *known.entry((kind, bare)).or_insert_with(|| {
                let level = kinds.get(&kind).map_or("", String::as_str);
                let name = call_name(level, strings.text(bare));
                strings.intern(&name)
            });
            let thread = self.program_thread(integer(row, 2)?);
            self.assembly.add(Row {
                category: Category::Runtime,
                name,
                thread,
                start_ns: integer(row, 0)?,
                end_ns: integer(row, 1)?,
                connection: connection_of(integer(row, 3)?),
                task: 0,
            });
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the runs of Python's garbage collector as ranges.
    fn read_collections(&mut self) -> Result<()> {
        let database = self.database;
        database.each_row("GC_RECORD", &COLLECTION_COLUMNS, |row| {
            let name = self.assembly.part.strings.intern("Python GC");
            let thread = self.program_thread(integer(row, 2)?);
            self.add_range(name, thread, integer(row, 0)?, integer(row, 1)?);
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the ranges that the program marked itself.
    fn read_ranges(&mut self) -> Result<()> {
        let database = self.database;
        database.each_row("MSTX_EVENTS", &RANGE_COLUMNS, |row| {
            let strings = &mut self.assembly.part.strings;
            let name = self.names.string(row, 3, strings)?;
            let thread = self.program_thread(integer(row, 2)?);
            self.add_range(name, thread, integer(row, 0)?, integer(row, 1)?);
            Ok(())
        })?;
        Ok(())
    }

    /// Adds a range of the program.
    fn add_range(
        &mut self,
        name: StringId,
        thread: ThreadId,
        start_ns: Option<i64>,
        end_ns: Option<i64>,
    ) {
        self.assembly.add(Row {
            category: Category::Annotation,
            name,
            thread,
            start_ns,
            end_ns,
            connection: 0,
            task: 0,
        });
    }

    /// Reads the stacks of operators: a row for each frame, numbered from the innermost one.
    fn read_stacks(&mut self) -> Result<IdMap> {
        let mut frames: Vec<(i64, i64, StringId)> = Vec::new();
        let columns = ["id", "stackDepth", "stack"];
        let database = self.database;
        database.each_row("PYTORCH_CALLCHAINS", &columns, |row| {
            let strings = &mut self.assembly.part.strings;
            let frame = self.names.string(row, 2, strings)?;
            if let (Some(id), Some(depth)) = (integer(row, 0)?, integer(row, 1)?) {
                frames.push((id, depth.saturating_neg(), frame));
            }
            Ok(())
        })?;
        frames.sort_unstable();
        let mut stacks = IdMap::default();
        for chain in frames.chunk_by(|a, b| a.0 == b.0) {
            let mut stack = StackId::NONE;
            for &(_, _, frame) in chain {
                stack = self.assembly.part.stacks.push(stack, frame);
            }
            stacks.insert(chain[0].0 as u64, stack.to_raw());
        }
        Ok(stacks)
    }

    /// Reads the steps, unless the program's ranges show them.
    pub(super) fn read_steps(&mut self) -> Result<()> {
        let strings = &self.assembly.part.strings;
        let is_step: Vec<bool> = strings.iter().map(is_step_event).collect();
        let mut events = self.assembly.events.iter();
        if events.any(|event| is_step[event.name.index()]) {
            return Ok(());
        }
        let operators = self.assembly.events.iter();
        let mut operators = operators.filter(|event| event.category == Category::Operator);
        let main = operators.next().map(|event| event.thread);
        let main = main.unwrap_or_else(|| self.assembly.thread(DeviceKind::Cpu, 0, 0));
        let columns = ["id", "startNs", "endNs"];
        let database = self.database;
        database.each_row("STEP_TIME", &columns, |row| {
            let number = integer(row, 0)?.unwrap_or(0);
            let strings = &mut self.assembly.part.strings;
            let name = strings.intern(&format!("ProfilerStep#{number}"));
            self.add_range(name, main, integer(row, 1)?, integer(row, 2)?);
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the thread with a number that contains that of its process.
    fn program_thread(&mut self, global: Option<i64>) -> ThreadId {
        let global = global.unwrap_or(0) as u64;
        let (process, native) = (global >> 32, global & u64::from(u32::MAX));
        self.assembly.thread(DeviceKind::Cpu, process, native)
    }
}

/// Returns an id that ties events together: zero for none, which the database writes as the largest
/// number or as -1.
pub(super) fn connection_of(id: Option<i64>) -> u32 {
    let id = id.and_then(|id| u32::try_from(id).ok());
    id.map_or(0, |id| id.wrapping_add(1))
}

/// Returns the name of a call, as `trace_view.json` writes it: `AscendCL@aclrtMemcpy`.
fn call_name(level: &str, name: &str) -> String {
    let level = match level {
        "" => return name.to_owned(),
        "acl" => "AscendCL",
        "node" => "Node",
        "model" => "Model",
        "runtime" => "Runtime",
        "communication" | "hccl" => "Communication",
        level => level,
    };
    format!("{level}@{name}")
}

/// The meaning of the name of a row in `PYTORCH_API`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameClass {
    UserRange,
    BackwardWrapper,
    Hidden,
    Any,
}

impl NameClass {
    fn of(name: &str) -> Self {
        match name {
            _ if is_user_range(name) => Self::UserRange,
            _ if is_backward_wrapper(name) => Self::BackwardWrapper,
            _ if is_hidden_event(name) => Self::Hidden,
            _ => Self::Any,
        }
    }
}
