//! The stack machine that a pickle is a program for, without the operations that run code.

use std::cmp::Ordering;

use mindprof_model::StringId;

use super::fields::Key;
use super::objects::{Dict, List, Object, Value};
use super::operations::Operation;
use super::records::Records;

/// The most containers inside one another. Snapshots have seven.
const DEEPEST: u8 = 64;

/// The bit that tells texts from objects in the memo.
const IS_TEXT: u32 = 1 << 31;

/// Why a pickle cannot be run on.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not valid.
    Bad(String),
    /// It is valid, but not a snapshot.
    Strange(String),
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Self::Bad(what.into())
    }
}

/// Whether a pickle is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Running,
    Stopped,
}

/// The state of the machine.
///
/// The memo holds ids of texts and objects in 32 bits: files have several memoized objects for each
/// entry of the history.
pub(super) struct Machine {
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<u32>,
    objects: Vec<Object>,
    /// The number of values in lists.
    items: usize,
    /// The number of dictionaries that are kept as such.
    dicts: usize,
    records: Records,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            objects: Vec::new(),
            items: 0,
            dicts: 0,
            records: Records::new(),
        }
    }

    /// Returns about how many bytes the machine holds.
    pub(super) fn bytes(&self) -> u64 {
        let values = (self.stack.len() + self.items) * size_of::<Value>();
        let objects = self.objects.len() * size_of::<Object>() + self.dicts * size_of::<Dict>();
        let marks = self.marks.len() * size_of::<usize>();
        let memo = self.memo.len() * size_of::<u32>();
        (values + objects + marks + memo) as u64 + self.records.bytes()
    }

    /// Returns the result and the objects that it refers to.
    pub(super) fn finish(self) -> Result<(Value, Vec<Object>, Records), Fault> {
        match self.stack[..] {
            [result] => Ok((result, self.objects, self.records)),
            _ => Err("it ends with values that belong to nothing".into()),
        }
    }

    /// Returns the topmost texts, which `STACK_GLOBAL` imports.
    pub(super) fn top_names(&self) -> String {
        let from = self.stack.len().saturating_sub(2);
        let names = self.stack[from..].iter().filter_map(|value| value.text());
        let names = names.map(|name| self.records.text(name));
        names.collect::<Vec<_>>().join(".")
    }

    /// Runs one operation.
    pub(super) fn run(&mut self, operation: Operation<'_>) -> Result<Progress, Fault> {
        match operation {
            Operation::Stop => return Ok(Progress::Stopped),
            Operation::Skip => {}
            Operation::Mark => self.mark()?,
            Operation::None | Operation::Other => self.stack.push(Value::Nothing),
            Operation::Bool(value) => self.stack.push(Value::Bool(value)),
            Operation::Int(value) => self.stack.push(Value::Int(value)),
            Operation::Text(bytes) => {
                let text = self.records.intern(&String::from_utf8_lossy(bytes))?;
                self.stack.push(Value::Text(text));
            }
            Operation::EmptyDict => self.push(Object::Dict(None))?,
            Operation::EmptyList => self.push(Object::List(None))?,
            Operation::EmptyOther => self.push(Object::Opaque(1))?,
            Operation::Tuple(length) => self.tuple(length)?,
            Operation::MarkedOther => {
                let values = self.marked()?;
                self.opaque(&values)?;
            }
            Operation::MarkedList => {
                let values = self.marked()?;
                self.push(Object::List(None))?;
                self.append(&values)?;
            }
            Operation::MarkedDict => {
                let values = self.marked()?;
                self.push(Object::Dict(None))?;
                self.set_items(&values)?;
            }
            Operation::Append => {
                let value = self.pop()?;
                self.append(&[value])?;
            }
            Operation::Appends => {
                let values = self.marked()?;
                self.append(&values)?;
            }
            Operation::SetItem => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(&[key, value])?;
            }
            Operation::SetItems => {
                let values = self.marked()?;
                self.set_items(&values)?;
            }
            Operation::AddItems => {
                let values = self.marked()?;
                self.pop()?;
                self.opaque(&values)?;
            }
            Operation::Put(index) => self.put(index as usize)?,
            Operation::Memoize => self.put(self.memo.len())?,
            Operation::Get(index) => self.get(index as usize)?,
            Operation::Pop => {
                self.pop()?;
            }
            Operation::PopMark => {
                self.marked()?;
            }
            Operation::Duplicate => {
                let top = self.pop()?;
                self.stack.extend([top, top]);
            }
        }
        Ok(Progress::Running)
    }

    fn mark(&mut self) -> Result<(), Fault> {
        if self.marks.len() >= usize::from(DEEPEST) {
            return Err(too_deep());
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn push(&mut self, object: Object) -> Result<(), Fault> {
        if self.objects.len() >= IS_TEXT as usize {
            return Err("it has more than 2,147,483,648 objects".into());
        }
        self.stack.push(Value::Object(self.objects.len() as u32));
        self.objects.push(object);
        Ok(())
    }

    /// Takes the topmost value. Those before the last mark are out of reach.
    fn pop(&mut self) -> Result<Value, Fault> {
        let floor = self.marks.last().copied().unwrap_or_default();
        if self.stack.len() <= floor {
            return Err("an operation lacks its values".into());
        }
        Ok(self.stack.pop().unwrap_or_default())
    }

    /// Takes the values behind the last mark.
    fn marked(&mut self) -> Result<Vec<Value>, Fault> {
        let mark = self.marks.pop().ok_or("an operation lacks its mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, length: usize) -> Result<(), Fault> {
        let mut values = [Value::Nothing; 3];
        for value in values[..length].iter_mut().rev() {
            *value = self.pop()?;
        }
        if let [Value::Int(first), Value::Int(second)] = values[..length]
            && let (Ok(first), Ok(second)) = (u32::try_from(first), u32::try_from(second))
        {
            return self.push(Object::Pair(first, second));
        }
        self.opaque(&values[..length])
    }

    fn opaque(&mut self, values: &[Value]) -> Result<(), Fault> {
        let depth = self.depth_around(values)?;
        self.push(Object::Opaque(depth))
    }

    fn depth_around(&self, values: &[Value]) -> Result<u8, Fault> {
        let objects = values
            .iter()
            .filter_map(|value| value.object(&self.objects));
        let depth = 1 + objects.map(Object::depth).max().unwrap_or_default();
        if depth > DEEPEST {
            return Err(too_deep());
        }
        Ok(depth)
    }

    /// Returns the object on top of the stack, which stays there.
    fn top_object(&self) -> Result<usize, Fault> {
        let floor = self.marks.last().copied().unwrap_or_default();
        match self.stack[floor..].last() {
            Some(Value::Object(object)) => Ok(*object as usize),
            Some(Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Text(_)) | None => {
                Err("an operation lacks the object that it changes".into())
            }
        }
    }

    fn append(&mut self, values: &[Value]) -> Result<(), Fault> {
        let target = self.top_object()?;
        let depth = self.depth_around(values)?;
        let Object::List(list) = &mut self.objects[target] else {
            return Err(changed(&self.objects[target]));
        };
        if values.is_empty() {
            return Ok(());
        }
        let list = list.get_or_insert_with(Box::<List>::default);
        list.items.extend_from_slice(values);
        list.depth = list.depth.max(depth);
        self.items += values.len();
        Ok(())
    }

    /// Adds keys and values to the dictionary on top of the stack. If it becomes a record by that, it
    /// is complete: picklers add all keys of a small dictionary at once.
    fn set_items(&mut self, values: &[Value]) -> Result<(), Fault> {
        let target = self.top_object()?;
        let depth = self.depth_around(values)?;
        if !values.len().is_multiple_of(2) {
            return Err("a dictionary has a key without a value".into());
        }
        let Object::Dict(dict) = &mut self.objects[target] else {
            return Err(changed(&self.objects[target]));
        };
        let mut dict = dict.take().unwrap_or_else(|| Box::new(Dict::new()));
        dict.depth = dict.depth.max(depth);
        for pair in values.chunks_exact(2) {
            if let Some(key) = pair[0].text().and_then(Key::of) {
                dict.fields.set(key, pair[1]);
            }
        }
        let record = self.records.record(&dict.fields, &mut self.objects)?;
        self.items -= self.records.take_released();
        self.objects[target] = match record {
            Some(record) => record,
            None if dict.fields.is_needed() => {
                self.dicts += 1;
                Object::Dict(Some(dict))
            }
            None => Object::OtherDict(dict.depth),
        };
        Ok(())
    }

    fn put(&mut self, index: usize) -> Result<(), Fault> {
        let slot = match self.stack.last() {
            None => return Err("it memoizes a value that is not there".into()),
            Some(Value::Text(text)) => text.to_raw() | IS_TEXT,
            Some(Value::Object(object)) => *object,
            Some(&value @ (Value::Nothing | Value::Bool(_) | Value::Int(_))) => {
                self.push(Object::Scalar(Box::new(value)))?;
                self.stack.pop();
                self.objects.len() as u32 - 1
            }
        };
        // Picklers number the memo without gaps, and a gap could be as large as memory.
        match index.cmp(&self.memo.len()) {
            Ordering::Less => self.memo[index] = slot,
            Ordering::Equal => self.memo.push(slot),
            Ordering::Greater => return Err("it leaves gaps in the memo".into()),
        }
        Ok(())
    }

    fn get(&mut self, index: usize) -> Result<(), Fault> {
        let Some(&slot) = self.memo.get(index) else {
            return Err("it refers to a value that was not memoized".into());
        };
        let value = if slot & IS_TEXT != 0 {
            Value::Text(StringId::from_raw(slot & !IS_TEXT))
        } else if let Object::Scalar(value) = &self.objects[slot as usize] {
            **value
        } else {
            Value::Object(slot)
        };
        self.stack.push(value);
        Ok(())
    }
}

fn too_deep() -> Fault {
    Fault::Bad(format!("containers nest more than {DEEPEST} deep"))
}

fn changed(object: &Object) -> Fault {
    Fault::Bad(format!(
        "{} is changed after it was complete",
        object.noun()
    ))
}
