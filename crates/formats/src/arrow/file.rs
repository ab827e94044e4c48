//! Columns as a file of Arrow's own format (IPC, version 5), which every library of Arrow's opens
//! without a copy: a schema, the distinct texts of each column, the rows, and where all that lies.

use std::io::Write;

use mindprof_analyze::Analysis;

use super::flatbuffer::{Field, Object, flatbuffer};
use crate::columns::{Column, Values, event_columns};
use crate::error::Result;

const MAGIC: &[u8] = b"ARROW1";
const VERSION: i16 = 4;
/// Stands before each message, and alone behind the last.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Writes everything that a profile shows, a row each, as a file of Arrow's. Returns how many there
/// are.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_arrow(analysis: &Analysis, out: impl Write) -> Result<u64> {
    let columns = event_columns(analysis);
    write_columns(&columns, out)?;
    Ok(columns.first().map_or(0, |column| column.values.len()) as u64)
}

fn write_columns(columns: &[Column], out: impl Write) -> Result<()> {
    let mut file = File { out, written: 0 };
    file.write(MAGIC)?;
    file.write(&[0; 2])?;
    file.message(header::SCHEMA, schema(columns), &Body::default())?;
    let mut dictionaries = Vec::new();
    for (id, column) in columns.iter().enumerate() {
        if let Values::Text { texts, .. } | Values::TextLists { texts, .. } = &column.values {
            let body = Body::of_texts(texts);
            let batch = Object::Table(vec![
                Field::Long(id as i64),
                Field::Object(body.batch(texts.len())),
            ]);
            dictionaries.extend(file.message(header::DICTIONARY, batch, &body)?);
        }
    }
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut body = Body::default();
    for column in columns {
        body.add_column(column);
    }
    let batches = file.message(header::RECORDS, body.batch(rows), &body)?;
    file.write(&CONTINUATION)?;
    file.write(&[0; 4])?;
    let footer = flatbuffer(Object::Table(vec![
        Field::Short(VERSION),
        Field::Object(schema(columns)),
        Field::Object(Object::Rows(dictionaries, BLOCK)),
        Field::Object(Object::Rows(batches.to_vec(), BLOCK)),
    ]));
    file.write(&footer)?;
    file.write(&(footer.len() as i32).to_le_bytes())?;
    file.write(MAGIC)?;
    Ok(file.out.flush()?)
}

/// The kinds of messages.
mod header {
    pub(super) const SCHEMA: u8 = 1;
    pub(super) const DICTIONARY: u8 = 2;
    pub(super) const RECORDS: u8 = 3;
}

/// The numbers of the types of values.
mod kind {
    pub(super) const INT: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const TEXT: u8 = 5;
    pub(super) const BOOL: u8 = 6;
    pub(super) const LIST: u8 = 12;
}

/// How many longs say where a message lies: its place, the length of its head, that of its body.
const BLOCK: usize = 3;

struct File<W> {
    out: W,
    written: usize,
}

impl<W: Write> File<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len();
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes a message and returns where it lies.
    fn message(&mut self, kind: u8, head: Object, body: &Body) -> Result<[i64; BLOCK]> {
        let place = self.written;
        let mut head = flatbuffer(Object::Table(vec![
            Field::Short(VERSION),
            Field::Byte(kind),
            Field::Object(head),
            Field::Long(body.bytes.len() as i64),
        ]));
        head.resize(head.len().next_multiple_of(8), 0);
        self.write(&CONTINUATION)?;
        self.write(&(head.len() as i32).to_le_bytes())?;
        self.write(&head)?;
        self.write(&body.bytes)?;
        Ok([place as i64, head.len() as i64 + 8, body.bytes.len() as i64])
    }
}

fn schema(columns: &[Column]) -> Object {
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(id, column)| field(id, column)).collect();
    Object::Table(vec![Field::Default, Field::Object(Object::Tables(fields))])
}

fn field(id: usize, column: &Column) -> Object {
    let is_nullable = column.known.is_some();
    let named = |item: Item| item.object(&column.name, is_nullable);
    let list = |item: Item| Item {
        kind: kind::LIST,
        details: Vec::new(),
        dictionary: None,
        children: vec![item.object("item", true)],
    };
    match &column.values {
        Values::Text { .. } => named(Item::text(id)),
        Values::Int(_) => named(Item::int()),
        Values::Float(_) => named(Item::plain(kind::FLOAT, vec![Field::Short(2)])),
        Values::Bool(_) => named(Item::plain(kind::BOOL, Vec::new())),
        Values::TextLists { .. } => named(list(Item::text(id))),
        Values::IntLists { .. } => named(list(list(Item::int()))),
    }
}

/// The type of a field.
struct Item {
    kind: u8,
    details: Vec<Field>,
    /// The number of the texts that it counts in.
    dictionary: Option<usize>,
    children: Vec<Object>,
}

impl Item {
    const fn plain(kind: u8, details: Vec<Field>) -> Self {
        Self {
            kind,
            details,
            dictionary: None,
            children: Vec::new(),
        }
    }

    fn int() -> Self {
        Self::plain(kind::INT, whole_number(64))
    }

    fn text(id: usize) -> Self {
        Self {
            dictionary: Some(id),
            ..Self::plain(kind::TEXT, Vec::new())
        }
    }

    fn object(self, name: &str, is_nullable: bool) -> Object {
        let dictionary = self.dictionary.map_or(Field::Default, |id| {
            Field::Object(Object::Table(vec![
                Field::Long(id as i64),
                Field::Object(Object::Table(whole_number(32))),
            ]))
        });
        Object::Table(vec![
            Field::Object(Object::Text(name.into())),
            Field::Byte(is_nullable.into()),
            Field::Byte(self.kind),
            Field::Object(Object::Table(self.details)),
            dictionary,
            Field::Object(Object::Tables(self.children)),
        ])
    }
}

/// Returns the type of whole numbers with a sign.
fn whole_number(bits: i32) -> Vec<Field> {
    vec![Field::Int(bits), Field::Byte(1)]
}

/// The values of a message: of each field how many and how many are unknown, and where its bytes
/// lie.
#[derive(Default)]
struct Body {
    nodes: Vec<i64>,
    buffers: Vec<i64>,
    bytes: Vec<u8>,
}

impl Body {
    fn of_texts(texts: &[String]) -> Self {
        let mut body = Self::default();
        body.add_node(texts.len(), None);
        body.add_offsets(texts.iter().map(String::len));
        body.add_buffer(texts.iter().flat_map(|text| text.bytes()));
        body
    }

    fn batch(&self, rows: usize) -> Object {
        Object::Table(vec![
            Field::Long(rows as i64),
            Field::Object(Object::Rows(self.nodes.clone(), 2)),
            Field::Object(Object::Rows(self.buffers.clone(), 2)),
        ])
    }

    fn add_column(&mut self, column: &Column) {
        self.add_node(column.values.len(), column.known.as_deref());
        match &column.values {
            Values::Text { numbers, .. } => self.add_numbers(numbers.iter().copied()),
            Values::Int(values) => self.add_longs(values.iter().copied()),
            Values::Float(values) => {
                self.add_buffer(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            Values::Bool(values) => self.add_bits(values),
            Values::TextLists { numbers, lists, .. } => {
                let lists = || numbers.iter().map(|&number| &lists[number as usize]);
                self.add_offsets(lists().map(Vec::len));
                self.add_node(lists().map(Vec::len).sum(), None);
                self.add_numbers(lists().flatten().copied());
            }
            Values::IntLists { numbers, lists } => {
                let lists = || numbers.iter().map(|&number| &lists[number as usize]);
                let inner = || lists().flatten();
                self.add_offsets(lists().map(Vec::len));
                self.add_node(inner().count(), None);
                self.add_offsets(inner().map(Vec::len));
                self.add_node(inner().map(Vec::len).sum(), None);
                self.add_longs(inner().flatten().copied());
            }
        }
    }

    /// Adds a field and the bits that say which of its values are known.
    fn add_node(&mut self, count: usize, known: Option<&[bool]>) {
        let unknown = known.map_or(0, |known| known.iter().filter(|known| !**known).count());
        self.nodes.extend([count as i64, unknown as i64]);
        match known {
            Some(known) => self.add_bits(known),
            None => self.add_buffer([]),
        }
    }

    fn add_numbers(&mut self, numbers: impl Iterator<Item = i32>) {
        self.add_buffer(numbers.flat_map(i32::to_le_bytes));
    }

    fn add_longs(&mut self, longs: impl Iterator<Item = i64>) {
        self.add_buffer(longs.flat_map(i64::to_le_bytes));
    }

    /// Adds where each of the lists of these lengths begins, and where the last ends.
    fn add_offsets(&mut self, lengths: impl Iterator<Item = usize>) {
        let ends = lengths.scan(0, |end: &mut i32, length| {
            *end += length as i32;
            Some(*end)
        });
        self.add_numbers([0].into_iter().chain(ends));
    }

    fn add_bits(&mut self, bits: &[bool]) {
        let bytes = bits.chunks(8).map(|bits| {
            let bits = bits.iter().enumerate();
            bits.fold(0, |byte, (place, &bit)| byte | u8::from(bit) << place)
        });
        self.add_buffer(bytes);
    }

    fn add_buffer(&mut self, bytes: impl IntoIterator<Item = u8>) {
        let begin = self.bytes.len();
        self.bytes.extend(bytes);
        let length = self.bytes.len() - begin;
        self.buffers.extend([begin as i64, length as i64]);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    /// That Arrow's own library reads it is a test of the Python package.
    #[test]
    fn the_file_is_framed_and_aligned() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            time.annotation("step", |time| time.op("mm", 1500));
        }));
        let mut out = Vec::new();
        assert_eq!(write_arrow(&analysis, &mut out).unwrap(), 2);
        assert!(out.starts_with(b"ARROW1\0\0\xff\xff\xff\xff") && out.ends_with(MAGIC));
        let end = out.len() - MAGIC.len() - 4;
        let footer = i32::from_le_bytes(out[end..end + 4].try_into().unwrap()) as usize;
        let before = end - footer;
        assert!(before.is_multiple_of(8));
        assert_eq!(
            out[before - 8..before],
            [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]
        );
    }
}
