//! `FlatBuffers`, as far as the heads of Arrow's messages need them: tables of numbers, texts, tables
//! and lists, laid out from front to back.
//!
//! ```text
//! root ─▶ table: where its list of fields is, then the fields; what does not fit in place follows
//! ```

/// What a field of a table holds; a field that is left out has its default.
pub(super) enum Field {
    Default,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    Object(Object),
}

/// What stands behind a table and is pointed to.
pub(super) enum Object {
    Text(String),
    Table(Vec<Field>),
    Tables(Vec<Object>),
    /// Rows of longs, one after the other, each with so many.
    Rows(Vec<i64>, usize),
}

/// Returns the bytes of a buffer whose root is a table.
pub(super) fn flatbuffer(root: Object) -> Vec<u8> {
    let mut buffer = Buffer {
        bytes: vec![0; size_of::<u32>()],
    };
    buffer.point(0, root);
    buffer.bytes
}

struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Adds an object and lets the offset at `from` point to it.
    fn point(&mut self, from: usize, object: Object) {
        let place = match object {
            Object::Text(text) => self.add_text(&text),
            Object::Table(fields) => self.add_table(fields),
            Object::Tables(tables) => self.add_tables(tables),
            Object::Rows(longs, width) => self.add_rows(&longs, width),
        };
        self.put(from, &((place - from) as u32).to_le_bytes());
    }

    fn add_text(&mut self, text: &str) -> usize {
        self.align(4, 0);
        let place = self.bytes.len();
        self.push(&(text.len() as u32).to_le_bytes());
        self.push(text.as_bytes());
        self.push(&[0]);
        place
    }

    fn add_tables(&mut self, tables: Vec<Object>) -> usize {
        self.align(4, 0);
        let place = self.bytes.len();
        self.push(&(tables.len() as u32).to_le_bytes());
        let first = self.bytes.len();
        self.bytes.resize(first + 4 * tables.len(), 0);
        for (index, table) in tables.into_iter().enumerate() {
            self.point(first + 4 * index, table);
        }
        place
    }

    fn add_rows(&mut self, longs: &[i64], width: usize) -> usize {
        // The rows themselves are aligned, not their number before them.
        self.align(8, 4);
        let place = self.bytes.len();
        self.push(&((longs.len() / width) as u32).to_le_bytes());
        for long in longs {
            self.push(&long.to_le_bytes());
        }
        place
    }

    /// Adds the list of fields, the table behind it, and what it points to behind that.
    fn add_table(&mut self, fields: Vec<Field>) -> usize {
        const HEAD: usize = 4;
        let mut end = HEAD;
        let mut places = Vec::with_capacity(fields.len());
        for field in &fields {
            let size = field.size();
            end = end.next_multiple_of(size.max(1));
            places.push(if size == 0 { 0 } else { end });
            end += size;
        }
        self.align(8, 0);
        let list = self.bytes.len();
        self.push(&((4 + 2 * fields.len()) as u16).to_le_bytes());
        self.push(&(end as u16).to_le_bytes());
        for &place in &places {
            self.push(&(place as u16).to_le_bytes());
        }
        self.align(8, 0);
        let table = self.bytes.len();
        self.bytes.resize(table + end, 0);
        self.put(table, &((table - list) as i32).to_le_bytes());
        for (field, place) in fields.into_iter().zip(places) {
            let place = table + place;
            match field {
                Field::Default => {}
                Field::Byte(value) => self.put(place, &[value]),
                Field::Short(value) => self.put(place, &value.to_le_bytes()),
                Field::Int(value) => self.put(place, &value.to_le_bytes()),
                Field::Long(value) => self.put(place, &value.to_le_bytes()),
                Field::Object(object) => self.point(place, object),
            }
        }
        table
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put(&mut self, place: usize, bytes: &[u8]) {
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
    }

    /// Fills up with zeros until what comes `ahead` bytes later is aligned.
    fn align(&mut self, to: usize, ahead: usize) {
        while !(self.bytes.len() + ahead).is_multiple_of(to) {
            self.bytes.push(0);
        }
    }
}

impl Field {
    const fn size(&self) -> usize {
        match self {
            Self::Default => 0,
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Int(_) | Self::Object(_) => 4,
            Self::Long(_) => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    #[test]
    fn a_reader_finds_each_field() {
        let bytes = flatbuffer(Object::Table(vec![
            Field::Short(4),
            Field::Default,
            Field::Long(-7),
            Field::Object(Object::Text("mm".into())),
        ]));
        let table = number(&bytes, 0);
        let list = table - number(&bytes, table);
        let field = |index: usize| {
            let at = list + 4 + 2 * index;
            usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
        };
        assert_eq!(field(1), 0);
        let short = table + field(0);
        assert_eq!(bytes[short..short + 2], [4, 0]);
        let long = table + field(2);
        assert!(long.is_multiple_of(8));
        assert_eq!(bytes[long..long + 8], (-7_i64).to_le_bytes());
        let text = table + field(3) + number(&bytes, table + field(3));
        assert_eq!(number(&bytes, text), 2);
        assert_eq!(&bytes[text + 4..text + 7], b"mm\0");
    }
}
